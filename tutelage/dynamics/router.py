"""Training of a router while the experts stand still (Phase II): gradient steps on the correlation with the label.

With one expert per sample, `F(x) = pi_{m*}(x) f_{m*}(x)`, the gradient of `y F` in `theta_m` is exactly
`(1[m = m*] - pi_m) pi_{m*} f_{m*}(x) y x`; over the experts it adds up to zero.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import flag, instance, one_of, put, real, table, whole
from tutelage._errors import BadInput
from tutelage._limits import STEPS
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics, DrivenStep, Moment, Prepared
from tutelage.dynamics.random import MAX_STEPS
from tutelage.dynamics.record import Record
from tutelage.dynamics.room import COPIES, NUMBER, SEED
from tutelage.dynamics.staging import stacked, unstacked
from tutelage.dynamics.streams import Samples, Stream, stream, total
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.clustered import ClusterOracle
from tutelage.oracle.routing import entropy_of
from tutelage.problem.clusters import Clustered
from tutelage.problem.outputs import First, checked, expert_outputs
from tutelage.problem.problem import AbstractProblem, Start, of_kind
from tutelage.problem.routers import Router, Top1
from tutelage.problem.units import Units

Theta = Float[Array, "expert dim"]
CHUNK = 2048  # samples in memory at a time
RECORDS = 60  # steps that are recorded unless others are asked for


@dataclass(frozen=True)
class Routed:
    """A trained router, `theta`, and what was seen at the steps in `steps`, before the router moved.

    - `counts`: samples of each cluster that went to each expert, (step, cluster, expert).
    - `entropy`: of the softmax weights of a sample, on average, in nats; `log M` if nothing is preferred.
    - `norms`: of each expert's row of `theta`, (step, expert).
    - `end`: the number of the first sample that was not used.
    """

    theta: NDArray[np.float64]
    steps: NDArray[np.int64]
    counts: NDArray[np.float64]
    entropy: NDArray[np.float64]
    norms: NDArray[np.float64]
    end: int

    @property
    def load(self) -> NDArray[np.float64]:
        """The part of all samples that each expert got, (step, expert)."""
        seen = self.counts.sum(axis=1)
        share: NDArray[np.float64] = seen / seen.sum(axis=-1, keepdims=True)
        return share

    @property
    def load_entropy(self) -> NDArray[np.float64]:
        """The entropy of the load in nats, for each recorded step: `log M` if all experts get the same."""
        return entropy_of(self.load)

    def collapse(self, below: float | None = None) -> int | None:
        """The recorded step from which on the entropy of the load stays under `below`; None if it ends above.

        By default the limit is half of `log M`: the load is that of `sqrt(M)` experts.
        """
        limit = 0.5 * math.log(len(self.theta)) if below is None else below
        above = np.flatnonzero(self.load_entropy >= limit)
        fallen = int(above[-1]) + 1 if len(above) else 0
        return int(self.steps[fallen]) if fallen < len(self.steps) else None


def route(
    stream: Stream,
    units: Units,
    first: First,
    *,
    samples: int,
    steps: int = 1,
    step: float = 1.0,
    router: Router | None = None,
    start: ArrayLike | None = None,
    rao_blackwell: bool = False,
    balance: float = 0.0,
    chunk: int = CHUNK,
    record: Sequence[int] | None = None,
    begin: int = 0,
) -> Routed:
    """`steps` gradient steps of size `step` on the mean of `samples` fresh samples each, from `theta = 0` or `start`.

    - `units`, `first`: the experts, which do not move; `first` has the shape (expert, unit, dim).
    - `router`: `Top1()` by default, with ties drawn; with noise, only the choice of the expert has it.
    - `rao_blackwell`: instead of drawing among tied experts, average over them. At `theta = 0` this takes the noise of
      the draw out of the first step, for the cost of nothing.
    - `balance`: the weight of the load-balancing penalty `M sum_m f_m P_m`, which is subtracted from the correlation:
      `f_m` is the part of the step's samples that expert m gets (taken as a constant), `P_m` its mean softmax weight.
    - `record`: the steps to look at, from 0 on; about 60 by default. `steps` itself is allowed: it costs one more pass
      over further samples.
    - `chunk`: how many samples are in memory at a time.
    - `begin`: the number of the first sample. Step `t` uses those from `begin + t samples` on.

    ```python
    >>> import numpy as np, tutelage as tt
    >>> from tutelage.dynamics.router import route
    >>> from tutelage.dynamics.streams import stream
    >>> from tutelage.problem.clusters import antipodal
    >>> tasks = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
    >>> data = stream(tt.Clustered(antipodal(10, 3.0), tasks), seed=0, phase=2)
    >>> units, first = tt.Experts(4, 3, "relu").draw(np.random.default_rng(0), dim=10)
    >>> found = route(data, units, first, samples=1000)
    >>> found.theta.shape, bool(abs(found.theta.sum(0)).max() < 1e-12)
    ((4, 10), True)

    ```
    """
    instance("route: stream", stream, Stream, "a Stream, such as stream(problem, seed, phase) makes,")
    instance("route: units", units, Units, "tt.Units")
    samples, steps, step, balance = _checked(samples, steps, step, balance)
    chunk, begin = whole("route: chunk", chunk, least=1), whole("route: begin", begin)
    way = _way(samples, step, router, flag("route: rao_blackwell", rao_blackwell), balance, chunk)
    clusters, dim = stream.problem.inputs.count, stream.problem.inputs.dim
    first = checked("route", units, first, dim)
    theta = _start(start, len(first), dim)
    wanted = _wanted(record, steps)
    counts, entropies, norms = [], [], []
    for number in range(steps + (steps in wanted)):
        after, counted, entropy = _climb(way, stream, units, first, theta, jnp.asarray(begin + number * samples))
        if number in wanted:
            counts.append(np.asarray(counted))
            entropies.append(float(entropy) / samples)
            norms.append(np.linalg.norm(np.asarray(theta), axis=1))
        theta = after if number < steps else theta
    return Routed(
        np.asarray(theta),
        np.array(sorted(wanted), int),
        np.array(counts).reshape(-1, clusters, len(first)),
        np.array(entropies),
        np.array(norms).reshape(-1, len(first)),
        begin + steps * samples,
    )


class _Way(eqx.Module):
    """How steps are made. Numbers are arrays, so that others need no compilation."""

    router: Top1
    samples: Array
    step: Array
    balance: Array | None
    rao_blackwell: bool = eqx.field(static=True)
    chunk: int = eqx.field(static=True)


@eqx.filter_jit
def _climb(
    way: _Way, stream: Stream, units: Units, first: First, theta: Theta, at: Array
) -> tuple[Theta, Float[Array, "cluster expert"], Array]:
    """One step: the new router, the counts of samples, and the sum of the samples' entropies."""
    experts, clusters = len(first), stream.problem.inputs.count
    samples, balance, chunk = way.samples, way.balance, way.chunk

    def choice(drawn: Samples, uniforms: Array) -> tuple[Array, Array]:
        scores = drawn.inputs.astype(float) @ theta.T
        if way.rao_blackwell:
            tied = (scores == jnp.max(scores, axis=-1, keepdims=True)).astype(float)
            return scores, tied / jnp.sum(tied, axis=-1, keepdims=True)
        return scores, way.router.chosen(scores, uniforms).astype(float)

    def counted(drawn: Samples, uniforms: Array, live: Array) -> Array:
        chosen = choice(drawn, uniforms)[1]
        return jax.nn.one_hot(drawn.cluster, clusters, dtype=float).T @ (live[:, None] * chosen)

    def term(drawn: Samples, uniforms: Array, live: Array) -> tuple[Array, Array, Array]:
        scores, chosen = choice(drawn, uniforms)
        logs = jax.nn.log_softmax(scores, axis=-1)
        pi = jnp.exp(logs)
        said = chosen * expert_outputs(units, first, drawn.inputs)
        good = pi * (said - jnp.sum(pi * said, axis=-1, keepdims=True)) * drawn.labels[:, None].astype(float)
        if balance is not None:
            good -= balance * experts * pi * (load - jnp.sum(pi * load, axis=-1, keepdims=True))
        gradient = (live[:, None] * good).T @ drawn.inputs.astype(float)
        return gradient, counted(drawn, uniforms, live), -jnp.sum(live * jnp.sum(pi * logs, axis=-1))

    # The penalty needs the whole step's load before its gradient: one more pass, and no memory.
    if balance is not None:
        seen = total(counted, stream, at, samples, chunk=chunk, columns=experts)
        load = jnp.sum(seen, axis=0)[None] / samples.astype(float)
    gradient, counts, entropy = total(term, stream, at, samples, chunk=chunk, columns=experts)
    return theta + way.step * gradient / samples.astype(float), counts, entropy


def _start(start: ArrayLike | None, experts: int, dim: int) -> Theta:
    if start is None:
        return jnp.zeros((experts, dim))
    rows = table("route: start", start, "a matrix (experts, dim)", axes=(2,))
    if rows.shape != (experts, dim):
        raise BadInput(f"route: start has shape {rows.shape}, but (experts, dim) = {experts, dim} was expected.")
    return jnp.asarray(rows)


def _way(samples: int, step: float, router: Router | None, rao_blackwell: bool, balance: float, chunk: int) -> _Way:
    """From numbers that were checked."""
    chosen = _chooser(router, rao_blackwell)
    sizes = jnp.asarray(samples), jnp.asarray(float(step)), jnp.asarray(float(balance)) if balance else None
    return _Way(Top1(jnp.asarray(chosen.noise, float)), *sizes, rao_blackwell, chunk)


def _chooser(router: Router | None, rao_blackwell: bool) -> Top1:
    router = Top1() if router is None else router
    if not isinstance(router, Top1):
        raise BadInput(f"route: the router is {type(router).__name__}, but only Top1 has a gradient; pass Top1().")
    if rao_blackwell and float(router.noise):
        raise BadInput(f"route: rao_blackwell averages over ties, but noise {router.noise} leaves none; set one to 0.")
    return router


def _checked(samples: Any, steps: Any, step: Any, balance: Any) -> tuple[int, int, float, float]:
    return (
        whole("route: samples", samples, least=1, most=MAX_STEPS),
        whole("route: steps", steps, least=1, most=STEPS),
        real("route: step", step),
        real("route: balance", balance, least=0),
    )


def _wanted(record: ArrayLike | None, steps: int) -> set[int]:
    if record is None:
        return set(np.unique(np.linspace(0, steps - 1, RECORDS).astype(int)).tolist())
    listed = table("route: record", record, f"a list of steps from 0 to {steps}", axes=(1,))
    return {whole("route: a step in record", number, most=steps) for number in listed}


class RoutedExperts(eqx.Module):
    """Experts that stand still, the router in front of them, and what the last step saw before it moved.

    `counts`: samples of each cluster that went to each expert; `entropy`: mean entropy of a sample's softmax weights.
    """

    first: Float[Array, "*seed expert unit dim"]
    units: Units
    theta: Float[Array, "*seed expert dim"]
    counts: Float[Array, "*seed cluster expert"]
    entropy: Float[Array, "*seed"]


@dataclass(frozen=True)
class RouterSteps(AbstractDynamics):
    """Gradient steps of a router on the correlation, each on the mean of fresh samples; experts stand still.

    `samples`, `steps`, `step`, `router`, `rao_blackwell` and `balance` are those of `route`; `phase` is the number of
    the stream of samples. A stage begins from the experts of the stage before it, with `theta = 0`.
    """

    name: ClassVar[str] = "router"
    revision: ClassVar[int] = REVISIONS["router"]

    samples: int
    steps: int = 1
    step: float = 1.0
    router: Router | None = None
    rao_blackwell: bool = False
    balance: float = 0.0
    phase: int = 2
    precision: Literal["float64", "float32"] = "float64"

    def __post_init__(self) -> None:
        samples, steps, step, balance = _checked(self.samples, self.steps, self.step, self.balance)
        put(
            self, samples=samples, steps=steps, step=step, balance=balance,
            phase=whole("RouterSteps: phase", self.phase, least=1),
            rao_blackwell=flag("RouterSteps: rao_blackwell", self.rao_blackwell),
        )  # fmt: skip
        one_of("precision", self.precision, ["float64", "float32"])
        _chooser(self.router, self.rao_blackwell)

    def room(self, problem: AbstractProblem, seeds: int) -> dict[str, float]:
        problem = of_kind(problem, Clustered, self.name)
        student, dim = problem.student, problem.inputs.dim
        units = student.count * student.width if student else 1
        held = seeds * (SEED + COPIES * NUMBER * float(units) * dim) + 2 * NUMBER * float(CHUNK) * dim
        return {"ask for fewer seeds, units or dimensions": held}

    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        problem = of_kind(problem, Clustered, self.name)
        if start is None:
            raise BadInput(
                "RouterSteps: there are no experts to route to; make it a stage after one in which they learn."
            )
        way = _way(self.samples, self.step, self.router, self.rao_blackwell, self.balance, CHUNK)
        experts = start.student
        shape = (len(seeds), experts.first.shape[1])
        weights = RoutedExperts(
            jnp.asarray(experts.first, float),
            experts.units,
            *jax.device_put(
                (
                    np.zeros((*shape, problem.inputs.dim)),
                    np.zeros((shape[0], problem.inputs.count, shape[1])),
                    np.zeros(shape[0]),
                )
            ),
        )
        keys = np.stack([stream(problem, seed, self.phase).key for seed in seeds])
        step = RouterStep(problem, way, self.precision)
        return Prepared(step, ClusterOracle(problem), False, start.teacher, weights, keys, scored=False)

    def stops(self, record: Record) -> NDArray[np.float64]:
        """A record after a step says what that step saw; before the first there is nothing to say."""
        if isinstance(record.at, (int, str)):
            return record.updates(self.steps)[1:]
        wanted = _wanted(record.at, self.steps)
        return np.array(sorted({min(number + 1, self.steps) for number in wanted} | {self.steps}), float)

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        return {"samples": self.samples, "steps": self.steps, "step": self.step, "phase": self.phase}


class RouterStep(DrivenStep):
    """One step of the router after the other, each compiled: the sums over samples are the loop that counts."""

    problem: Clustered
    way: _Way
    precision: str = eqx.field(static=True)

    def drive(self, oracle: AbstractOracle, moments: Moment, stop: float) -> Moment:
        done = []
        for moment in unstacked(moments, len(moments.clock)):
            while float(moment.clock) < stop:
                moment = self._after(moment)
            done.append(moment)
        return stacked(done)

    def _after(self, moment: Moment) -> Moment:
        """One step further."""
        weights, samples, done = moment.weights, int(self.way.samples), int(moment.clock)
        data, at = Stream(self.problem, moment.carry, self.precision), jax.device_put(done * samples)
        theta, counts, entropy = _climb(self.way, data, weights.units, weights.first, weights.theta, at)
        # Numbers of the host, which compile nothing.
        mean, clock = jax.device_put((float(entropy) / samples, done + 1.0))
        return Moment(RoutedExperts(weights.first, weights.units, theta, counts, mean), clock, clock, moment.carry)
