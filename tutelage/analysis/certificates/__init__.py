"""Certificates: numbers a run reported, computed again by routes that share nothing with the first.

- the population loss and gradient at sampled moments, enclosed in ball arithmetic (`enclosure`) or, where kernels are
  not, in fifty-digit arithmetic (`long_arithmetic`); and by sampling inputs in frame coordinates, where `x ~ N(0, I)`
  is exact in law;
- the empirical loss and gradient by a plain loop over units;
- the Hessian by differences of the gradient;
- a flow against the same flow at half the solver's tolerance; single updates of descent against the gradient that the
  routes above find.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tutelage._errors import BadInput
from tutelage.analysis.certificates import checks as routes
from tutelage.analysis.certificates.checks import Check, Moment
from tutelage.analysis.certificates.enclosure import Enclosed
from tutelage.dynamics.descent import Descent
from tutelage.dynamics.flow import Flow
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.networks import Weights, host_weights
from tutelage.problem.problem import Problem, of_kind
from tutelage.trajectory.findings import Certificate as Certificate
from tutelage.trajectory.result import Run
from tutelage.trajectory.running import again

# Two solutions of a flow should agree to this part of the weights.
SOLVER = 1e-5
LAYERS = ("first", "second")
FEW = 256
"""Seeds that are run again for the updates of one of them: so many use the programs of a run of more."""


def certify(run: Run, *, times: int = 3, digits: int = 50, samples: int = 100_000, seed: int = 0) -> Certificate:
    """Check a run's reported numbers at `times` moments, spread from its first record to its last.

    - `digits`: of ball arithmetic (to begin with) and of long arithmetic; `samples`: Monte-Carlo inputs at each moment.
      0 leaves a route out.
    - `seed`: of the choice of moments, of directions for derivatives, and of the samples.

    A run that did not record its weights is run again to get them.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.analysis.certificates import certify
    >>> problem = tt.Problem(
    ...     inputs=tt.Gaussian(100),
    ...     teacher=tt.TwoLayer("linear", first=[[1.0]]),
    ...     student=tt.TwoLayer("relu", first=tt.GaussianRows(1e-2), second=[0.01, -0.01], width=2),
    ... )
    >>> certify(tt.descend(problem, step=0.1, steps=100)).ok
    True

    ```
    """
    if times < 1:
        raise BadInput(f"certify: times is {times}, but at least one moment is needed.")
    generator = np.random.default_rng(seed)
    recorded = run if "weights_first" in run.dataset else again(run, record={"weights": True})
    moments = list(_moments(run, recorded, times, generator))
    rows = list(routes.activations(run.oracle))
    for moment in moments:
        direction = routes.random_direction(moment.weights, generator)
        rows += routes.hessian_row(moment, direction)
        rows += routes.penalty(moment, direction)
        moment = routes.unpenalised(moment)
        rows += routes.tie(moment, direction)
        plain, turn = routes.untie(moment, direction)
        rows += routes.by_loop(plain, turn)
        rows += routes.by_digits(plain, turn, digits)
        rows += routes.by_samples(plain, turn, samples, 2 * times, generator)
    rows += _solver(run, recorded)
    rows += _updates(run, times, digits, generator)
    return Certificate(tuple(rows), tuple(_notes(rows, digits, samples, len(moments))))


def _notes(rows: list[Check], digits: int, samples: int, moments: int) -> Iterator[str]:
    """What a reader of the rows should know."""
    used = {row.route for row in rows}
    long = {Enclosed.route, f"{digits} digits"}
    if digits and not {*long, "plain loop"} & used:
        yield "There is no closed form here, or too many units for long arithmetic: sampling alone checks the loss."
    sampled = sum(row.route == f"{samples} samples" for row in rows) // 2
    if Enclosed.route in used:
        yield "Ball arithmetic encloses the exact number of these weights, its own roundings included."
    if samples and long & used and sampled < moments:
        yield "Sampling is left out where most of the loss lies between kinks too close for any sample to fall into."
    if sampled:
        yield f"Sampling intervals are wide: in {routes.FALSE_ALARM:g} of certificates one misses a right number."
    if "half the tolerance" in used:
        yield "Weights are compared as a part of their norm or, if larger, of their change per e-fold of time."


def _moments(run: Run, recorded: Run, times: int, generator: np.random.Generator) -> Iterator[Moment]:
    for part in np.linspace(0, 1, times) if times > 1 else [1.0]:
        which = int(generator.integers(run.dataset.sizes["seed"]))
        # A seed that diverged may have recorded a loss beyond all measure; there is nothing to check in it.
        usable = np.flatnonzero(np.abs(run.dataset["loss"].values[which]) < 1e60)
        if not len(usable):
            continue
        at = int(usable[round(part * (len(usable) - 1))])
        weights = _weights(recorded.dataset.isel(seed=which, time=at))
        place = run.dataset.isel(seed=which, time=at)
        name = f"seed {int(place['seed'])}, time {float(place['time']):.6g}"
        size = float(place["gradient_norm"]) if "gradient_norm" in place else None
        yield Moment(name, _oracle_of(run, which), weights, float(place["loss"]), size)


def _weights(record: Any) -> Weights:
    found: Weights = jax.device_put(host_weights(record["weights_first"].values, record["weights_second"].values))
    return found


def _oracle_of(run: Run, which: int) -> AbstractOracle:
    return jax.tree.map(lambda leaf: leaf[which], run.oracle) if run.batched else run.oracle


def _solver(run: Run, recorded: Run) -> Iterator[Check]:
    """A flow again at half its tolerance, and at a hundredth: the largest distance of the weights, as a part of them.

    Half the tolerance alone can miss a loose one: if recording times or stability already decide the steps, both
    runs take the same ones. Where weights change fast, after a saddle for instance, a small delay is a large
    distance; it is measured against their change per e-fold of time if that is larger than the weights themselves.
    """
    dynamics = run.asked.plan if run.asked else None
    if run.asked is None or not isinstance(dynamics, Flow):
        return
    rtol = dynamics.tolerance(of_kind(run.problem, Problem, dynamics.name))
    for route, tighter in (("half the tolerance", rtol / 2), ("a hundredth of the tolerance", min(rtol / 100, 1e-6))):
        second = again(run, rtol=max(tighter, 1e-13), record={"weights": True}).dataset
        count = min(recorded.dataset.sizes["time"], second.sizes["time"])
        one, two = _paths(recorded.dataset, count), _paths(second, count)
        clock = np.log(np.maximum(recorded.dataset["time"].values[:count], 1e-300))
        speed = np.linalg.norm(np.gradient(one, clock, axis=1), axis=-1) if count > 1 else np.zeros(())
        scale = np.maximum(np.linalg.norm(one, axis=-1), np.nan_to_num(speed))
        worst = float(np.nanmax(np.linalg.norm(one - two, axis=-1) / scale))
        yield Check(f"weights at {count} times, relative, with rtol {rtol:g}", route, 0.0, worst, worst, SOLVER)


def _paths(dataset: Any, count: int) -> NDArray[np.floating]:
    """All weights of each seed at the first `count` times, as vectors."""
    layers = [dataset[name].values[:, :count] for name in ("weights_first", "weights_second")]
    return np.concatenate([layer.reshape(*layer.shape[:2], -1) for layer in layers], axis=-1)


def _updates(run: Run, times: int, digits: int, generator: np.random.Generator) -> Iterator[Check]:
    """Single updates of descent, in which every layer must have moved by step * rate * gradient."""
    options = run.asked.plan if run.asked else None
    if run.asked is None or not isinstance(options, Descent):
        return
    student = of_kind(run.problem, Problem, options.name).student
    which = int(generator.integers(run.dataset.sizes["seed"]))
    last = int(run.dataset["step"].values[int(run.dataset["recorded"].values[which]) - 1])
    befores = np.unique(np.linspace(0, max(last - 1, 0), times).astype(int))
    record = {"at": np.union1d(befores, befores + 1), "weights": True}
    # Starts that were given are those of all seeds.
    first = max(0, min(which, len(run.asked.seeds) - FEW)) if run.asked.start is None else 0
    seeds = run.asked.seeds[first : first + FEW] if run.asked.start is None else None
    second = again(run, record=record, seeds=seeds).dataset.isel(seed=which - first)
    rates, trained = student.rates(options.rates), student.layers
    records = {int(step): _weights(second.isel(time=i)) for i, step in enumerate(second["step"].values)}
    for n in befores:
        if n + 1 not in records or not np.all(np.isfinite(records[n + 1].first)):
            continue  # the run ended before
        size: Any = options.step * (float(options.schedule(jnp.asarray(float(n)))) if options.schedule else 1.0)
        direction = routes.random_direction(records[n], generator)
        if options.truncation is not None:
            size = size * np.asarray(options.truncation.moving(records[n].first, jnp.asarray(float(n))))
        paced = Weights(
            *(size * (layer in trained) * getattr(rates, layer) * getattr(direction, layer) for layer in LAYERS)
        )
        route, slope, terms = routes.derivative(_oracle_of(run, which), records[n], paced, digits)
        before, after = (jax.tree.map(np.asarray, records[at]) for at in (n, n + 1))
        moved = routes.along(jax.tree.map(lambda a, b: a - b, before, after), direction)
        rounding = routes.along(*(jax.tree.map(lambda leaf: np.abs(leaf), w) for w in (before, direction)))
        tolerance = routes.RELATIVE * abs(slope) + routes.OF_TERMS * terms + 4 * routes.EPS * rounding
        yield routes.check(f"update {n} of seed {int(second['seed'])}", route, moved, slope, tolerance)
