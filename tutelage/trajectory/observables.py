"""What is measured along a run. Each observable is computed inside the compiled loop, at the recording times."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike

from tutelage._checks import instance, whole
from tutelage._errors import BadInput, unknown
from tutelage.dynamics.events import Crossings
from tutelage.dynamics.record import Observable as Observable
from tutelage.dynamics.record import Record
from tutelage.dynamics.snapshot import Snapshot
from tutelage.oracle.geometry import Rows, angles, rows
from tutelage.oracle.mixture import units
from tutelage.oracle.orders import order_gradients, order_losses
from tutelage.oracle.population import PopulationOracle, exact
from tutelage.oracle.tied import TiedOracle
from tutelage.problem.activations import MOST_TERMS
from tutelage.problem.assorted import LayerUnits
from tutelage.problem.clusters import Clustered
from tutelage.problem.mixture import Mixture
from tutelage.problem.networks import Weights, untied
from tutelage.problem.problem import AbstractProblem, Problem
from tutelage.problem.trees import part_names


def _angle(left: Rows, right: Rows) -> Array:
    arc = angles(left, right)
    return jnp.where(arc.sign > 0, arc.near, jnp.pi - arc.near)


def _first_norm(view: Snapshot) -> Array:
    return rows(view.weights.first).norm


def _overlap(view: Snapshot) -> Array:
    products: Array = view.weights.first @ view.teacher.first.T
    return products


def _overlap_cos(view: Snapshot) -> Array:
    return rows(view.weights.first).unit @ rows(view.teacher.first).unit.T


def _overlap_angle(view: Snapshot) -> Array:
    return _angle(rows(view.weights.first), rows(view.teacher.first))


def _overlap_ss(view: Snapshot) -> Array:
    products: Array = view.weights.first @ view.weights.first.T
    return products


def _overlap_ss_angle(view: Snapshot) -> Array:
    units = rows(view.weights.first)
    return _angle(units, units)


def _imbalance(view: Snapshot) -> Array:
    """`|w|^2 - |v|^2` as a product of sum and difference: right also when the layers nearly balance."""
    incoming, outgoing = rows(view.weights.first).norm, rows(view.weights.second).norm
    return (incoming - outgoing) * (incoming + outgoing)


_LOSS, _SLOPE = attrgetter("loss"), attrgetter("gradient_norm")
_FIRST, _SECOND = attrgetter("weights.first"), attrgetter("weights.second")
STANDARD = (
    Observable("loss", _LOSS, (), "loss, with the factor 1/2", "squared output"),
    Observable("gradient_norm", _SLOPE, (), "norm of the gradient of all weights", "loss per weight"),
    Observable("first_norm", _first_norm, ("student",), "norm of the incoming weight vector", "weight"),
    Observable("second", _SECOND, ("student", "output"), "outgoing weight", "weight"),
    Observable("overlap", _overlap, ("student", "teacher"), "inner product of student and teacher vectors", "weight^2"),
    Observable("overlap_cos", _overlap_cos, ("student", "teacher"), "cosine of student and teacher vectors"),
    Observable("overlap_angle", _overlap_angle, ("student", "teacher"), "angle of student and teacher vectors", "rad"),
    Observable("overlap_ss", _overlap_ss, ("student", "student_b"), "inner product of two students", "weight^2"),
    Observable("overlap_ss_angle", _overlap_ss_angle, ("student", "student_b"), "angle of two students", "rad"),
    Observable("imbalance", _imbalance, ("student",), "|incoming|^2 - |outgoing|^2 of a unit", "weight^2"),
)
BIAS = Observable("bias", lambda view: view.weights.first[:, 0], ("student",), "bias of a unit", "weight")
VECTORS = ("first_norm", "overlap", "overlap_cos", "overlap_angle", "overlap_ss", "overlap_ss_angle")
"""What is measured of the vectors of incoming weights, and not of the biases in front of them."""
OBJECTIVE = Observable("objective", attrgetter("objective"), (), "loss and penalty on the weights", "squared output")
WEIGHTS = (
    Observable("weights_first", _FIRST, ("student", "frame"), "incoming weights in frame coordinates", "weight"),
    Observable("weights_second", _SECOND, ("student", "output"), "outgoing weights", "weight"),
)


ON_REQUEST = {"loss_order", "loss_beyond", "gradient_order", "population_loss"}
HIGHEST = 8


@dataclass(frozen=True)
class _OfVectors:
    """A measure of the weights without their biases. Equal for equal measures, so that runs share a compilation."""

    measure: Callable[[Snapshot], ArrayLike]

    def __call__(self, view: Snapshot) -> ArrayLike:
        weights, teacher, start = (Weights(w.first[:, 1:], w.second) for w in (view.weights, view.teacher, view.start))
        return self.measure(Snapshot(weights, teacher, start, view.oracle))


def _beside_biases(usual: tuple[Observable, ...]) -> tuple[Observable, ...]:
    """The observables of units that have biases."""
    of_vectors = (replace(each, measure=_OfVectors(each.measure)) if each.name in VECTORS else each for each in usual)
    return (*of_vectors, BIAS)


@dataclass(frozen=True)
class _Networks:
    """What student and teacher are, their weights apart. Equal for equal problems, so that runs share a compilation."""

    activations: tuple[LayerUnits, LayerUnits]
    tied: tuple[bool, bool]

    def plain(self, view: Snapshot) -> tuple[Weights, Weights]:
        """The weights of plain networks that compute the same."""
        student, teacher = (
            untied(weights) if tied else weights
            for weights, tied in zip((view.weights, view.teacher), self.tied, strict=True)
        )
        return student, teacher

    def loss(self, view: Snapshot) -> Float[Array, ""]:
        """The population loss; of a student that descends another one to 1e-16 of the squared output."""
        inner = view.oracle.unpenalised
        inner = inner.plain if isinstance(inner, TiedOracle) else inner
        if isinstance(inner, PopulationOracle):
            return view.loss
        return exact(*self.activations, self.plain(view)[1], tied=self.tied[0]).quick().loss(view.weights)


@dataclass(frozen=True)
class _Orders:
    """The losses of single orders, or of all beyond."""

    networks: _Networks
    highest: int
    rest: bool = False

    def __call__(self, view: Snapshot) -> Float[Array, "..."]:
        found = order_losses(*self.networks.activations, *self.networks.plain(view), self.highest + 1)
        return self.networks.loss(view) - jnp.sum(found) if self.rest else found


@dataclass(frozen=True)
class _Pulls:
    """The norms of the gradients of single orders, in the weights that train."""

    networks: _Networks
    highest: int
    trains: tuple[str, ...]

    def __call__(self, view: Snapshot) -> Float[Array, " order"]:
        target, tied = self.networks.plain(view)[1], self.networks.tied[0]
        found = order_gradients(*self.networks.activations, view.weights, target, self.highest + 1, tied=tied)
        squares = [jnp.sum(getattr(found, layer) ** 2, axis=(1, 2)) for layer in self.trains]
        return jnp.sqrt(sum(squares, jnp.zeros(())))


def _networks(problem: Problem) -> _Networks:
    instance("The problem of an observable", problem, Problem, "a tt.Problem")
    student, teacher = problem.student, problem.teacher
    if isinstance(student, Mixture) or isinstance(teacher, Mixture):
        raise BadInput("loss_order is for two-layer networks, but the student is a mixture; leave it out.")
    if not problem.law.standard:
        raise BadInput(
            "Orders and population losses beside samples are for standard inputs and units without biases; leave the "
            "observable out."
        )
    return _Networks((student.activation, teacher.activation), (student.tied, teacher.tied))


def gradient_orders(problem: Problem, highest: int = HIGHEST) -> Observable:
    """How strongly each order of the Hermite expansion pulls: the norm of its part of the population gradient.

    `observables=("loss", "gradient_order")` records it up to order 8.
    """
    highest = _order(highest)
    pulls = _Pulls(_networks(problem), highest, problem.student.layers)
    about = "norm of the population gradient of one order"
    return Observable("gradient_order", pulls, ("tensor_order",), about, "loss per weight", _orders_to(highest))


def population_loss(problem: Problem) -> Observable:
    """The population loss of a student, also where it descends on samples."""
    about = "population loss, with the factor 1/2"
    return Observable("population_loss", _networks(problem).loss, (), about, "squared output")


def loss_orders(problem: Problem, highest: int = HIGHEST) -> tuple[Observable, Observable]:
    """What each order of the Hermite expansion adds to the population loss, and what all beyond `highest` add.

    `observables=("loss", "loss_order", "loss_beyond")` records them up to order 8; for another order pass these as
    `own` of a `tt.Record`. They sum to the population loss.

    ```python
    >>> import tutelage as tt
    >>> problem = tt.Problem(
    ...     inputs=tt.Gaussian(100),
    ...     teacher=tt.TwoLayer("erf", first=[[1.0]]),
    ...     student=tt.TwoLayer("erf", first=tt.GaussianRows(1e-2), width=2, trains=("first",)),
    ... )
    >>> run = tt.flow(problem, until=1.0, record=tt.Record(own=tt.loss_orders(problem, highest=3)))
    >>> run.loss_order.dims, run.tensor_order.values.tolist()
    (('seed', 'time', 'tensor_order'), [0, 1, 2, 3])

    ```
    """
    highest = _order(highest)
    networks, orders = _networks(problem), _orders_to(highest)
    beyond = f"population loss of all orders above {highest}"
    return (
        Observable(
            "loss_order", _Orders(networks, highest), ("tensor_order",), "population loss of one order",
            "squared output", orders,
        ),
        Observable("loss_beyond", _Orders(networks, highest, rest=True), (), beyond, "squared output"),
    )  # fmt: skip


def _order(highest: int) -> int:
    return whole("highest", highest, most=MOST_TERMS)


def _orders_to(highest: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return (("tensor_order", tuple(range(highest + 1))),)


def _cosines(side: Literal["teacher", "weights"], role: str, other: str) -> Callable[[Snapshot], Array]:
    """Cosines of the students' routers or experts with the teachers', or with their own."""

    def measure(view: Snapshot) -> Array:
        cosines: Array = getattr(units(view.weights.first), role) @ getattr(units(getattr(view, side).first), other).T
        return cosines

    return measure


def _norm(part: int) -> Callable[[Snapshot], Array]:
    def measure(view: Snapshot) -> Array:
        return jnp.split(rows(view.weights.first).norm, 2)[part]

    return measure


_taught, _among = partial(_cosines, "teacher"), partial(_cosines, "weights")
_MET, _PAIR = ("student", "teacher"), ("student", "student_b")
MIXTURE = (
    *STANDARD[:2],
    Observable("norm_router", _norm(0), ("student",), "norm of the router", "weight"),
    Observable("norm_expert", _norm(1), ("student",), "norm of the expert", "weight"),
    Observable("second", _SECOND, ("student", "output"), "output weight", "weight"),
    Observable("overlap_router", _taught("router", "router"), _MET, "cosine of the student's and teacher's routers"),
    Observable("overlap_expert", _taught("expert", "expert"), _MET, "cosine of the student's and teacher's experts"),
    Observable("overlap_router_expert", _taught("router", "expert"), _MET, "cosine of router and teacher's expert"),
    Observable("overlap_expert_router", _taught("expert", "router"), _MET, "cosine of expert and teacher's router"),
    Observable("overlap_ss_router", _among("router", "router"), _PAIR, "cosine of two students' routers"),
    Observable("overlap_ss_expert", _among("expert", "expert"), _PAIR, "cosine of two students' experts"),
    Observable("overlap_ss_cross", _among("router", "expert"), _PAIR, "cosine of a router and a student's expert"),
)
MIXTURE_WEIGHTS = (
    Observable("weights_first", _FIRST, ("vector", "frame"), "routers, then experts, in the frame", "weight"),
    WEIGHTS[1],
)


@dataclass(frozen=True)
class _Best:
    """The largest |overlap| of an expert's neurons with each task."""

    tasks: int

    def __call__(self, view: Snapshot) -> Float[Array, "expert task"]:
        return jnp.max(jnp.abs(_experts_overlap(view)[..., : self.tasks]), axis=1)


def _experts_overlap(view: Snapshot) -> Float[Array, "expert unit row"]:
    frame: Array = view.teacher
    return jnp.asarray(view.weights.first[..., : frame.shape[1]], float) @ frame.T


def row_names(problem: Clustered) -> tuple[str, ...]:
    """Names of the frame's rows: `w1`, ..., `wg`, `v1`, ..."""
    return (*problem.tasks, *(f"v{c + 1}" for c in range(problem.inputs.count)))


def _clustered(problem: Clustered) -> tuple[Observable, ...]:
    """What is recorded of experts: overlaps with the frame, and the best of each expert."""
    rows, tasks = ("row", row_names(problem)), ("task", tuple(problem.tasks))
    axes, best = ("expert", "unit", "row"), _Best(len(problem.tasks))
    return (
        Observable("overlap", _experts_overlap, axes, "overlap of neurons with the frame", coords=(rows,)),
        Observable("best", best, ("expert", "task"), "largest |overlap| of an expert's neurons", coords=(tasks,)),
    )


CLUSTERED_WEIGHTS = (Observable("weights", _FIRST, ("expert", "unit", "input"), "incoming weights", "weight"),)


def _theta_norms(view: Snapshot) -> Float[Array, " expert"]:
    norms: Array = jnp.linalg.norm(view.weights.theta, axis=1)
    return norms


_COUNTS, _ENTROPY = attrgetter("weights.counts"), attrgetter("weights.entropy")
ROUTER = (
    Observable("counts", _COUNTS, ("cluster", "expert"), "samples of a cluster that went to an expert", "samples"),
    Observable("entropy", _ENTROPY, (), "entropy of the softmax weights of a sample", "nats"),
    Observable("theta_norm", _theta_norms, ("expert",), "norm of an expert's row of the router", "weight"),
)


@dataclass(frozen=True)
class _Part:
    """A part of the weights; where it says when something first happened, infinite if that is not before `never`."""

    name: str
    never: float | None = None

    def __call__(self, view: Snapshot) -> Array:
        part: Array = getattr(view.weights, self.name)
        return part if self.never is None else jnp.where(part < self.never, jnp.asarray(part, float), jnp.inf)


def _walked_overlap(view: Snapshot) -> Float[Array, "expert unit row"]:
    return jnp.einsum("ra,aeu->eur", view.teacher, view.weights.inside)


def _noted(view: Snapshot) -> Float[Array, "moment expert unit row"]:
    noted: Array = view.weights.notes.filled(view.weights.overlaps)
    return noted


def _flown(problem: Clustered, start: PyTree) -> tuple[Observable, ...]:
    """What is recorded of neurons that follow a flow."""
    from tutelage.dynamics.neuron_flow import NEVER

    times = tuple(start.notes.times[0].tolist())
    noted = Observable(
        "noted", _noted, ("moment", "expert", "unit", "row"), "overlap at the neuron's own times",
        coords=(("moment", times),),
    )  # fmt: skip
    each, flips = ("expert", "unit", "row"), ("expert", "unit", "cluster", "order")
    rows, clusters = ("row", row_names(problem)), ("cluster", tuple(range(1, problem.inputs.count + 1)))
    crossed, flipped, settled = (_Part(name, NEVER) for name in ("crossed", "flipped", "settled"))
    return (
        Observable("overlap", _Part("overlaps"), each, "overlap of neurons with the frame", coords=(rows,)),
        Observable("largest", _Part("largest"), each, "largest |overlap| so far"),
        Observable("cross_time", crossed, each, "time at which |overlap| crossed the threshold", "time"),
        Observable("flip_time", flipped, flips, "time at which a coefficient changed its sign", "time", (clusters,)),
        Observable("settle_time", settled, each[:2], "time at which a neuron came to rest", "time"),
        *((noted,) if times else ()),
    )


def _walked(problem: Clustered) -> tuple[Observable, ...]:
    """What is recorded of neurons under SGD."""
    from tutelage.dynamics.neuron_sgd import NEVER

    each, rows = ("expert", "unit", "row"), ("row", row_names(problem))
    hits = _Part("hits", NEVER)
    return (
        Observable("overlap", _walked_overlap, each, "overlap of neurons with the frame", coords=(rows,)),
        Observable("beyond", _Part("beyond"), each[:2], "length of a neuron outside the span of the frame"),
        Observable("hit_time", hits, ("level", *each), "samples until |overlap| first was at a level", "samples"),
    )


def _standard(problem: AbstractProblem, start: PyTree) -> tuple[tuple[Observable, ...], tuple[Observable, ...]]:
    """What is recorded unless asked otherwise, and the weights."""
    if isinstance(problem, Clustered):
        parts = part_names(start)
        if "counts" in parts:
            return ROUTER, CLUSTERED_WEIGHTS
        if "hits" in parts:
            return _walked(problem), ()
        if "flipped" in parts:
            return _flown(problem, start), ()
        return (_clustered(problem) if "theta" in parts and len(parts) == 3 else ()), CLUSTERED_WEIGHTS
    mixed = isinstance(problem, Problem) and isinstance(problem.student, Mixture)
    return (MIXTURE, MIXTURE_WEIGHTS) if mixed else (STANDARD, WEIGHTS)


def chosen(problem: AbstractProblem, record: Record, start: PyTree) -> tuple[Observable, ...]:
    """The observables of a run: the standard ones (or those named), the user's own, and the weights if asked for.

    `start`: the weights, whose parts tell what experts are doing; no other problem needs them.
    """
    names = record.observables
    usual, whole = _standard(problem, start)
    two_layer = usual is STANDARD
    if isinstance(problem, Problem) and problem.biased:
        usual = _beside_biases(usual)
    if isinstance(problem, Problem) and problem.penalty is not None:
        usual = (*usual, OBJECTIVE)
    known = {observable.name: observable for observable in usual}
    if two_layer and isinstance(problem, Problem) and _offered(problem, names):
        on_request = (*loss_orders(problem), gradient_orders(problem), population_loss(problem))
        known |= {observable.name: observable for observable in on_request}
    for name in names or ():
        if name not in known:
            raise unknown("observable", name, known)
    standard = tuple(known[name] for name in names) if names is not None else usual
    extra = record.own or ()
    own = extra if isinstance(extra, tuple) else tuple(Observable(name, fn) for name, fn in extra.items())
    result = standard + own + (whole if record.weights else ())
    _distinct(result, record)
    return result


def _offered(problem: Problem, names: tuple[str, ...] | None) -> bool:
    """Whether there are observables on request: where inputs are not standard, to be refused with a sentence."""
    return names is not None and (problem.law.standard or bool(ON_REQUEST & set(names)))


TAKEN = ("seed", "time", "step", "stopped", "stop_time", "recorded", "solver_steps", "event", "event_time")
"""Names that every Dataset of a run has for something else."""


def _distinct(observables: tuple[Observable, ...], record: Record) -> None:
    """Every variable, coordinate and dimension of the Dataset has a name of its own, which a file can hold."""
    variables: list[Observable | Crossings] = [*observables, *(record.crossings or ())]
    names = [each.name for each in variables]
    axes = [axis for each in variables for axis in each.dims]
    along = [name for each in observables for name, _ in each.coords]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"Observable name {name!r} is used twice; give your own a new name.")
        if name in (*TAKEN, *axes, *along) or name.startswith("_") or "/" in name:
            raise BadInput(f"An observable cannot be named {name!r}, which has another meaning; give it a new name.")
    for each in variables:
        if len(set(each.dims)) < len(each.dims) or {"seed", "time"} & set(each.dims):
            raise BadInput(
                f"{each.name!r} has the dims {each.dims}, but different names were expected, not seed or time."
            )
