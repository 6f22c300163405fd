"""What the claims look at: a few shared runs and samples, each made once, when first asked for.

The target is a = e_1 throughout: (V, W, A, mu) -> (sqrt(s) V, sqrt(s) W, s A, mu/s) maps trajectories to
trajectories.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tutelage import descend, flow
from tutelage.analysis import Levels, search
from tutelage.dynamics import Record, Stop
from tutelage.oracle import EmpiricalOracle
from tutelage.papers.both_layers import batch, recipe
from tutelage.papers.both_layers.concentration import (
    Supremum,
    circle_net,
    net_deviation,
    planar_supremum,
    search_supremum,
    tail_moments,
    truncated_supremum,
)
from tutelage.papers.both_layers.constants import LOG_SIGMA0, STEP_GROWTH
from tutelage.papers.both_layers.inequalities import Contraction
from tutelage.papers.both_layers.landscape import nonstrict_saddle
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.papers.both_layers.slices import escape_steps
from tutelage.papers.both_layers.start import logarithmic_start
from tutelage.papers.both_layers.two_neurons import Course, TwoNeurons
from tutelage.papers.evidence import PlainEvidence
from tutelage.problem import Numbers
from tutelage.trajectory import Run

STEP = 0.1
SMALL = 1e-8
FRAME = 10  # columns of networks drawn at random: more than the three that two neurons and a target span
LARGE_BATCH, SMALL_BATCH = 4096, 64
PER_DIM = 10  # samples over d, of the runs on samples behind the rate of Theorem 2


@dataclass(frozen=True)
class Sizes:
    """How much is run: `QUICK` for a minute, `FULL` for the sizes that a report should quote."""

    states: int
    samples: int
    trials: int
    widths: tuple[int, ...]
    failure_dims: tuple[int, ...]
    failure_trials: int
    outputs: tuple[int, ...]
    output_seeds: int
    output_steps: tuple[tuple[float, int], ...]
    nullity_outputs: tuple[int, ...]
    empirical_dim: int
    empirical_ratios: tuple[int, ...]
    empirical_seeds: int
    scan_dims: tuple[int, ...]
    scan_ratios: tuple[float, ...]
    scan_seeds: int
    concentration: tuple[tuple[int, int], ...]
    restarts: int
    planar_ratios: tuple[int, ...]
    planar_sets: int
    truncated_sets: int
    gauss_dims: tuple[int, ...]
    larger_starts: int
    many_seeds: int
    rate_dims: tuple[int, ...]
    rate_seeds: int
    multi_outputs: tuple[int, ...]
    multi_dims: tuple[int, ...]
    multi_seeds: int
    escapes: tuple[tuple[float, float, float, float, float], ...]
    search_widths: tuple[int, ...]
    search_starts: int


# An escape is (c, v_1, v_2, shift, step); c = 1 with unit outgoing weights is the saddle of Figure 1(b).
QUICK = Sizes(
    states=16_384, samples=200_000, trials=400, widths=(2, 4), failure_dims=(3, 5), failure_trials=400,
    outputs=(3,), output_seeds=20, output_steps=((0.1, 4000), (0.05, 8000)), nullity_outputs=(1, 3),
    empirical_dim=10, empirical_ratios=(10, 50), empirical_seeds=4,
    scan_dims=(10, 40), scan_ratios=(2, 3), scan_seeds=16,
    concentration=((5, 20), (10, 20), (10, 100), (20, 50)), restarts=9,
    planar_ratios=(20, 80, 320), planar_sets=12, truncated_sets=60,
    gauss_dims=(3, 100), larger_starts=60, many_seeds=3, rate_dims=(10, 40), rate_seeds=8,
    multi_outputs=(2,), multi_dims=(10,), multi_seeds=8,
    escapes=((1.0, 1.0, 1.0, 0.05, 0.1), (0.5, 1.2, 0.8, 0.05, 0.1)), search_widths=(2,), search_starts=60,
)  # fmt: skip
FULL = Sizes(
    states=400_000, samples=2_000_000, trials=600, widths=(2, 3, 4, 5, 6, 8),
    failure_dims=(2, 3, 5, 8), failure_trials=2000,
    outputs=(2, 3, 5), output_seeds=60, output_steps=((0.1, 4000), (0.02, 20_000)), nullity_outputs=(1, 2, 3, 4),
    empirical_dim=20, empirical_ratios=(3, 10, 50, 500), empirical_seeds=4,
    scan_dims=(10, 20, 40), scan_ratios=(2, 2.5, 3, 4, 6), scan_seeds=24,
    concentration=((5, 20), (5, 400), (10, 20), (10, 100), (10, 1600), (20, 50), (20, 400)), restarts=30,
    planar_ratios=(20, 80, 320, 1280), planar_sets=40, truncated_sets=60,
    gauss_dims=(3, 10, 100, 1000), larger_starts=200, many_seeds=6, rate_dims=(10, 20, 40), rate_seeds=16,
    multi_outputs=(2, 3), multi_dims=(10, 20), multi_seeds=8,
    escapes=((1.0, 1.0, 1.0, 0.025, 0.1), (0.5, 1.2, 0.8, 0.05, 0.1), (-2.0, 0.7, 1.1, 0.05, 0.1)),
    search_widths=(2, 3), search_starts=300,
)  # fmt: skip


@dataclass(frozen=True)
class Trials:
    """Many small starts and where they ended (one output): weights (trial, k), (trial, k, n)."""

    start_second: Numbers
    start_first: Numbers
    final_second: Numbers
    final_first: Numbers
    loss: Numbers
    target: Numbers

    @property
    def success(self) -> NDArray[np.bool_]:
        return self.loss < 1e-6


@dataclass(frozen=True)
class Outputs(Trials):
    """The same with several outputs, at one step size: weights (seed, k, r), (seed, k, n)."""

    step: float


@dataclass(frozen=True)
class Sampled:
    """Empirical runs at one ratio n/d, the data (seed, n, d), and the largest deviation found on each data set."""

    ratio: int
    course: Course
    inputs: Numbers
    suprema: tuple[Supremum, ...]


class Evidence(PlainEvidence):
    """Runs and samples behind the claims, made when first asked for.

    `settings.dim` is the dimension of the population runs; scales, steps and widths are those of the claims.

    ```python
    >>> from tutelage.papers.both_layers.evidence import Evidence
    >>> evidence = Evidence(size="quick", seeds=2)
    >>> evidence.sizes.trials, evidence.courses[1e-4].states.second.shape  # this runs something
    (400, (2, 701, 2))

    ```
    """

    defaults = BothLayersSettings
    stream = 2025
    settings: BothLayersSettings

    @cached_property
    def sizes(self) -> Sizes:
        return FULL if self.full else QUICK

    # Values at single networks, evaluated in batches of two sizes only, so that little is compiled.

    def losses(self, second: Numbers, first: Numbers, target: Numbers) -> Numbers:
        """Losses of networks second (N, k, r), first (N, k, n) for target (r, n)."""
        return _in_batches(batch.losses, second, first, target)

    def gradients(self, second: Numbers, first: Numbers, target: Numbers) -> tuple[Numbers, Numbers]:
        """Their gradients, in the second and in the first layer."""
        slope = _in_batches(batch.gradients, second, first, target)
        return slope.second, slope.first

    def hessians(self, second: Numbers, first: Numbers, target: Numbers) -> Numbers:
        """Their Hessians (N, P, P)."""
        return _in_batches(batch.hessians, second, first, target, SMALL_BATCH)

    def sample_gradients(self, x: Numbers, y: Numbers, second: Numbers, first: Numbers) -> tuple[Numbers, Numbers]:
        """Gradients of the empirical loss on data x (n, d), y (n, r)."""
        slope = batch.sample_gradients(jnp.asarray(x), jnp.asarray(y), batch.network(second, first))
        return np.asarray(slope.second), np.asarray(slope.first)

    def slopes(self, states: TwoNeurons) -> tuple[Numbers, Numbers]:
        """Population gradients of two-neuron states of any leading shape: in v (..., 2) and W (..., 2, n)."""
        second, first = states.second.reshape(-1, 2, 1), states.first.reshape(-1, *states.first.shape[-2:])
        in_second, in_first = self.gradients(second, widen(first), widen(states.target[None]))
        kept = in_first[..., : first.shape[-1]]
        return in_second.reshape(states.second.shape), kept.reshape(states.first.shape)

    def values(self, states: TwoNeurons) -> Numbers:
        """Population losses of two-neuron states."""
        second, first = states.second.reshape(-1, 2, 1), states.first.reshape(-1, *states.first.shape[-2:])
        return self.losses(second, widen(first), widen(states.target[None])).reshape(states.second.shape[:-1])

    # Runs of two neurons on the population loss.

    def course(self, scale: float, step: float = STEP, steps: int = 700, stride: int = 1) -> Course:
        """Theorem 2's start at one scale, `seeds` runs, weights recorded at every `stride`-th update."""
        chosen = BothLayersSettings(dim=self.settings.dim, scale=scale)
        run = _descend(chosen, step, steps, self.seeds, record=Record(np.arange(0, steps + 1, stride), weights=True))
        return _course(run, step, scale)

    @cached_property
    def courses(self) -> dict[float, Course]:
        """Default runs by scale: large, moderate and small starts."""
        return {scale: self.course(scale) for scale in (2.0, 1e-2, 1e-4, SMALL)}

    @cached_property
    def slow_course(self) -> Course:
        """sigma = 1e-4 with a small step, for comparison with the scalar map."""
        return self.course(1e-4, step=0.01, steps=2800, stride=4)

    def from_point(
        self,
        second: Numbers,
        first: Numbers,
        *,
        step: float,
        steps: int,
        stride: int = 1,
        fixed: bool = False,
        samples: int = 0,
    ) -> Course:
        """One run of two neurons from given weights (2,), (2, 3); `fixed` holds the outgoing weights."""
        chosen = BothLayersSettings(
            dim=3, second=tuple(np.ravel(second)), first=tuple(map(tuple, np.asarray(first))), samples=samples
        )
        times = np.arange(0, steps + 1, stride)
        # A rate of zero instead of an untrained layer: the same compiled code serves both.
        rates = {"second": 0.0 if fixed else 1.0}
        return _course(_descend(chosen, step, steps, 1, Record(times, weights=True), rates), step, 1.0)

    @cached_property
    def escapes(self) -> tuple[Course, ...]:
        """Runs that leave non-strict saddles, one for each entry of `sizes.escapes`, to a little past their escape."""
        runs = []
        for c, v1, v2, shift, step in self.sizes.escapes:
            point = nonstrict_saddle([1.0, 0.0, 0.0], c, v1, v2)
            first = point.first + np.array([[0.0, shift / v1, 0.0], [0.0, shift / v2, 0.0]])
            stride = math.ceil(1.2 * escape_steps(shift, c, step=step, v1=v1, v2=v2) / 1000)
            runs.append(self.from_point(point.second, first, step=step, steps=1000 * stride, stride=stride))
        return tuple(runs)

    @cached_property
    def plateau(self) -> Course:
        """Figure 1(b): v = (1,-1) fixed, both neurons started near 1.5 a; perturbation 0.1."""
        first = np.array([[1.5, 0.1, 0.0], [1.5, 0.0, 0.1]])
        return self.from_point(np.array([1.0, -1.0]), first, step=STEP, steps=16_000, stride=16, fixed=True)

    @cached_property
    def refinement(self) -> Course:
        """The last phase at the largest step for which D.2's bound contracts, from a grown state."""
        course = self.courses[1e-2]
        seed = int(np.argmax(course.complete))
        state = course.at(np.minimum(course.grown, len(course.tau) - 1))
        return self.from_point(
            state.second[seed], state.first[seed], step=Contraction().largest_step, steps=2000, stride=2
        )

    @cached_property
    def sampled_refinement(self) -> Course:
        """The last phase on 30 000 d samples, where D.2's bound contracts: near the optimum, deviations are 0.004."""
        first = np.array([[0.97, 0.08, 0.0], [-1.02, 0.0, 0.08]])
        step = Contraction(deviation=0.004, low=0.8, high=1.2).largest_step
        return self.from_point(np.array([1.0, -1.02]), first, step=step, steps=150, samples=90_000)

    @cached_property
    def grown_from_nothing(self) -> Course:
        """Lemma 7 at its own sizes: sigma_0 = 10^-357, and a step so small that descent is the flow to 1e-11.

        The linearised start, exact there, leads to weights of 1e-3; from these the flow goes on for the rest of T2.
        """
        begun = self.courses[SMALL].at(np.zeros(self.seeds, int))
        step, grown = STEP_GROWTH / -LOG_SIGMA0, math.log(1e-3) - LOG_SIGMA0
        options = {"step": step, "tau": grown / math.log1p(step / 2), "log_scale": LOG_SIGMA0 - math.log(SMALL)}
        parts = []
        for second, first in zip(begun.second, begun.first, strict=True):
            end = logarithmic_start(second, first, begun.target, **options)
            v = end.side * np.exp(end.log_second)
            rows = np.stack([np.abs(v) * np.cos(end.angle), np.abs(v) * np.sin(end.angle), 0 * v], axis=1)
            rows[:, 0] *= end.side
            chosen = BothLayersSettings(dim=3, second=tuple(v), first=tuple(map(tuple, rows)))
            until = 32 * -LOG_SIGMA0 - 2 * grown
            parts.append(flow(recipe.problem(chosen), until=until, record=Record(100, weights=True)))
        second = np.concatenate([run.dataset["weights_second"].values[..., 0] for run in parts])
        first = np.concatenate([run.dataset["weights_first"].values for run in parts])
        loss, time = np.concatenate([run.dataset["loss"].values for run in parts]), parts[0].dataset["time"].values
        return Course(TwoNeurons(second, first, np.asarray(parts[0].teacher.first)[0]), loss, time, 1.0, 1e-3)

    @cached_property
    def local(self) -> Course:
        """Near an unbalanced optimum, v = (0.8, -0.8): for the local rates."""
        first = np.array([[1.25 + 1e-7, 2e-7, 0.0], [-1.25 + 2e-7, 0.0, -1e-7]])
        return self.from_point(np.array([0.8, -0.8]), first, step=0.05, steps=500)

    # Many trials, and networks with several outputs.

    def _trials(self, dim: int, width: int, init: str, count: int, **changes: Any) -> Trials:
        run = starts(dim, width, init, count, **changes)
        start_second, start_first, final_second, final_first = _ends(run)
        loss, target = run.last("loss").values, np.asarray(run.teacher.first)[0]
        return Trials(start_second[..., 0], start_first, final_second[..., 0], final_first, loss, target)

    @cached_property
    def trials(self) -> dict[int, Trials]:
        """Xavier starts of scale 1e-8 by width k (Section 4)."""
        return {
            k: self._trials(max(self.settings.dim, k + 1), k, "xavier", self.sizes.trials) for k in self.sizes.widths
        }

    @cached_property
    def theorem_trials(self) -> dict[int, Trials]:
        """Theorem 2's start of scale 1e-8 by dimension d."""
        count = self.sizes.failure_trials
        return {d: self._trials(d, 2, "paper_chi", count) for d in self.sizes.failure_dims}

    @cached_property
    def gauss_trials(self) -> dict[tuple[int, int], Trials]:
        """The start of the remark after Theorem 2, Gaussian v, by (d, k); its variance falls as 1/k."""
        cases = [
            *((d, 2) for d in self.sizes.gauss_dims),
            *((self.settings.dim, k) for k in self.sizes.widths if k > 2),
        ]
        scales = {k: SMALL * math.sqrt(2 / k) for _, k in cases}
        # As many as Theorem 2's own start has: of 600 starts the interval is wider than what is asked about k = 2.
        counts = {k: self.sizes.failure_trials if k == 2 else self.sizes.trials for _, k in cases}
        return {(d, k): self._trials(max(d, k + 1), k, "gauss_half", counts[k], scale=scales[k]) for d, k in cases}

    @cached_property
    def default_trials(self) -> Trials:
        """Two units from the default Xavier start, sigma = 1."""
        return self._trials(self.settings.dim, 2, "xavier", self.sizes.larger_starts, scale=1.0, steps=20_000)

    @cached_property
    def fixed_trials(self) -> Trials:
        """Four units with v fixed at +1, -1, +1, -1 and incoming weights of the default start, sigma = 1."""
        dim, count = max(self.settings.dim, 5), self.sizes.larger_starts
        return self._trials(dim, 4, "xavier", count, scale=1.0, steps=20_000, trains="first")

    @cached_property
    def outputs(self) -> dict[int, tuple[Outputs, ...]]:
        """k = 2r Xavier runs by number of outputs r, each at two step sizes (Appendix E.1)."""
        return {
            r: tuple(self._outputs(r, step, steps) for step, steps in self.sizes.output_steps)
            for r in self.sizes.outputs
        }

    @cached_property
    def many_outputs(self) -> Outputs:
        """r = 12, more than the paper shows."""
        return self._outputs(12, STEP, 4000, self.sizes.many_seeds)

    def _outputs(self, outputs: int, step: float, steps: int, seeds: int = 0) -> Outputs:
        dim = max(self.settings.dim, 3 * outputs)
        chosen = BothLayersSettings(dim=dim, width=2 * outputs, outputs=outputs, init="xavier", scale=SMALL)
        run = _descend(chosen, step, steps, seeds or self.sizes.output_seeds)
        target = np.asarray(run.teacher.second).T @ np.asarray(run.teacher.first)
        return Outputs(*_ends(run), run.last("loss").values, target, step)

    @cached_property
    def short_of_one(self) -> Numbers:
        """Final losses of k = 2r - 1 neurons with r = 3 outputs, one too few for three pairs."""
        dim = max(self.settings.dim, 9)
        chosen = BothLayersSettings(dim=dim, width=5, outputs=3, init="xavier", scale=SMALL)
        return _descend(chosen, STEP, 16_000, self.sizes.output_seeds).last("loss").values

    @cached_property
    def stationary(self) -> dict[int, Levels]:
        """Zeros of the gradient found from random starts, d = 3, by width k."""
        found = {}
        for k in self.sizes.search_widths:
            draw, count = self.random(k), self.sizes.search_starts
            starts = batch.network(draw.standard_normal((count, k, 1)), draw.standard_normal((count, k, 3)))
            found[k] = search(batch.linear_target(np.eye(1, 3)), starts)
        return found

    # Empirical runs.

    @cached_property
    def sampled(self) -> tuple[Sampled, ...]:
        """Runs on fixed data sets with sigma = 1e-3, every update recorded, by n/d."""
        return tuple(self._sampled(ratio) for ratio in self.sizes.empirical_ratios)

    def _sampled(self, ratio: int) -> Sampled:
        dim, seeds = self.sizes.empirical_dim, self.sizes.empirical_seeds
        chosen = BothLayersSettings(dim=dim, scale=1e-3, samples=ratio * dim)
        run = _descend(chosen, STEP, 600, seeds, record=Record(np.arange(601), weights=True))
        assert isinstance(run.oracle, EmpiricalOracle)
        inputs = np.asarray(run.oracle.x)
        search = [search_supremum(x, rng=self.random(ratio), restarts=QUICK.restarts) for x in inputs]
        return Sampled(ratio, _course(run, STEP, 1e-3), inputs, tuple(search))

    @cached_property
    def recovered(self) -> dict[int, dict[float, NDArray[np.bool_]]]:
        """Which of `sizes.scan_seeds` empirical runs recover the target (|h|^2 < 1e-4), by d and n/d."""
        return {
            dim: {ratio: self._recovers(dim, ratio) for ratio in self.sizes.scan_ratios} for dim in self.sizes.scan_dims
        }

    def _recovers(self, dim: int, ratio: float) -> NDArray[np.bool_]:
        chosen = BothLayersSettings(dim=dim, scale=1e-3, samples=round(ratio * dim))
        return TwoNeurons.final(_descend(chosen, STEP, 6000, self.sizes.scan_seeds)).error_squared < 1e-4

    @cached_property
    def recovered_outputs(self) -> dict[tuple[int, int], Numbers]:
        """Population losses at the end of empirical runs with r outputs on n = 4 r d samples, by (r, d)."""
        found = {}
        for r in self.sizes.multi_outputs:
            for d in self.sizes.multi_dims:
                chosen = BothLayersSettings(dim=d, outputs=r, width=2 * r, init="xavier", scale=1e-3, samples=4 * r * d)
                run = _descend(chosen, STEP, 6000, self.sizes.multi_seeds)
                found[r, d] = self.losses(*_ends(run)[2:], np.eye(r, np.asarray(run.final.first).shape[-1]))
        return found

    @cached_property
    def rates(self) -> dict[int, Course]:
        """Runs on n = `PER_DIM` d samples, by d: for the rate of Theorem 2."""
        found = {}
        for dim in self.sizes.rate_dims:
            chosen = BothLayersSettings(dim=dim, scale=1e-3, samples=PER_DIM * dim)
            times = np.arange(0, 1601, 4)
            run = _descend(chosen, STEP, 1600, self.sizes.rate_seeds, record=Record(times, weights=True))
            found[dim] = _course(run, STEP, 1e-3)
        return found

    @cached_property
    def suprema(self) -> dict[tuple[int, int], Supremum]:
        """The largest moment deviation found for each (d, n/d)."""
        found = {}
        for dim, ratio in self.sizes.concentration:
            x = self.random(dim).standard_normal((dim * ratio, dim))
            found[dim, ratio] = search_supremum(x, rng=self.random(ratio), restarts=self.sizes.restarts)
        return found

    @cached_property
    def nets(self) -> dict[float, Numbers]:
        """Nets of the circle by their mesh epsilon."""
        return {eps: circle_net(eps) for eps in (0.05, 0.25, 0.4, 0.49)}

    def tail_moments(self, level: float) -> tuple[float, float]:
        """E Y and E Y^2 of Lemma 15 at tau = `level`, times e^(tau/2)."""
        return tail_moments(level)

    @cached_property
    def truncated(self) -> dict[tuple[float, int], Numbers]:
        """In the plane, by (tau, n/d), for each data set: the supremum of Lemma 21 and the largest of Lemma 16."""
        found = {}
        for ratio in self.sizes.planar_ratios[:-1]:
            sets = self.random(6000 + ratio).standard_normal((self.sizes.truncated_sets, 2 * ratio, 2))
            for level in (1.0, 4.0, 9.0):
                net = self.nets[0.25]
                found[level, ratio] = np.array(
                    [(truncated_supremum(x, level), net_deviation(x, net, level)) for x in sets]
                )
        return found

    @cached_property
    def planar(self) -> dict[int, Numbers]:
        """The supremum itself in the plane, (data set,), for each n/d."""
        found = {}
        for ratio in self.sizes.planar_ratios:
            sets = self.random(5000 + ratio).standard_normal((self.sizes.planar_sets, 2 * ratio, 2))
            found[ratio] = np.array([planar_supremum(x) for x in sets])
        return found


FEW = Record(2, observables=("loss",))


def starts(dim: int, width: int, init: str, count: int, *, steps: int = 2000, **changes: Any) -> Run:
    """Descent from many starts, of scale 1e-8 if not told, for long enough that what succeeds has done so."""
    return _descend(
        BothLayersSettings(**{"dim": dim, "width": width, "init": init, "scale": SMALL} | changes), STEP, steps, count
    )


def _descend(
    settings: BothLayersSettings,
    step: float,
    steps: int,
    seeds: int,
    record: Record = FEW,
    rates: dict[str, float] | None = None,
) -> Run:
    """A run that never stops early; recorded at few times unless asked otherwise."""
    return descend(
        recipe.problem(settings), step=step, steps=steps, data=settings.samples or None, rates=rates, seeds=seeds,
        record=record.over(FEW), stop=Stop(gradient=-1.0),
    )  # fmt: skip


def _ends(run: Run) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Second and first layer at the start and at the end: (seed, k, r), (seed, k, n), twice."""
    start, final = run.start, run.final
    return np.asarray(start.second), np.asarray(start.first), np.asarray(final.second), np.asarray(final.first)


def _course(run: Run, step: float, scale: float) -> Course:
    data = run.dataset
    states = TwoNeurons(
        data["weights_second"].values[..., 0], data["weights_first"].values, np.asarray(run.teacher.first)[0]
    )
    return Course(states, data["loss"].values, data["step"].values, step, scale)


def widen(rows: Numbers) -> Numbers:
    """Zero columns up to FRAME: nothing changes, and one compiled function serves every frame."""
    missing = FRAME - rows.shape[-1]
    return np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, missing)]) if missing > 0 else rows


def _in_batches(function: Callable, second: Numbers, first: Numbers, target: Numbers, most: int = LARGE_BATCH) -> Any:
    """Evaluate in batches of SMALL_BATCH or LARGE_BATCH networks, the last one padded by repetition."""
    size = SMALL_BATCH if len(first) <= SMALL_BATCH else most
    count = -(-len(first) // size) * size
    index = np.minimum(np.arange(count), len(first) - 1).reshape(-1, size)
    aim = jnp.atleast_2d(jnp.asarray(target))
    parts = [function(aim, batch.network(second[rows], first[rows])) for rows in index]
    return jax.tree.map(lambda *leaves: np.concatenate([np.asarray(x) for x in leaves])[: len(first)], *parts)
