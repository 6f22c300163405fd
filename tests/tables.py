"""The members of each kind, a small example of each. `tests/contracts` takes every row through the same tests.

A new member is tested by being here; one that is not fails the test of completeness of its table.
"""

import ast
import dataclasses
import functools
import importlib
import inspect
import math
import pkgutil
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.typing import NDArray
from scipy import integrate, special, stats

import tutelage as tt
from tutelage.analysis.claims import Claim, Finding
from tutelage.dynamics.base import AbstractDynamics
from tutelage.dynamics.flow import SOLVERS
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.mixture import EmpiricalMixture
from tutelage.oracle.population import exact
from tutelage.oracle.routing import passing, winning
from tutelage.papers.cluster_moe.plan import SecondLayer
from tutelage.problem import activations as act
from tutelage.problem.hidden import AbstractHidden, GatedHidden, PlainHidden, TiedHidden
from tutelage.problem.initial import AbstractEntries, AbstractRows
from tutelage.problem.routers import Router


def members(base: type) -> set[type]:
    """All classes of the package that are a `base` and can be made: found by importing every module there is.

    But for what other tools are timed with, which need not be installed.
    """
    for module in pkgutil.walk_packages(tt.__path__, "tutelage."):
        if not module.name.endswith("__main__") and ".bench.peers." not in module.name:
            importlib.import_module(module.name)
    return {kind for kind in _below(base) if kind.__module__.startswith("tutelage.") and not inspect.isabstract(kind)}


def _below(base: type) -> Iterator[type]:
    for kind in base.__subclasses__():
        yield kind
        yield from _below(kind)


# Activations --------------------------------------------------------------------------------------------------------


def late_ramp(z):
    return jnp.maximum(z - 0.4, 0.0)


def half_cosine(z):
    return jnp.where(z > 0, 1 + z, jnp.cos(z))


def broken_cosine(z):
    return jnp.where(z > 0, 1 + z, -jnp.cos(z))


ACTIVATIONS = {
    **{name: tt.activation(name) for name in ("relu", "abs", "half_abs", "linear", "erf", "sigmoid", "tanh", "probit")},
    **{name: tt.activation(name) for name in ("constant", "softplus", "he2", "he3", "he12", "sign", "step")},
    "erf_over_sqrt2": tt.activation("erf_over_sqrt2"),
    "polynomial": act.polynomial([0.5, -1.0, 0.3, 0.2]),
    "leaky_relu": act.leaky_relu(0.2),
    "from_callable, kink at 0": act.from_callable(half_cosine, kinks=(0.0,)),
    "from_callable, kink elsewhere": act.from_callable(late_ramp, kinks=(0.4,)),
    "from_callable, jump at 0": act.from_callable(broken_cosine, kinks=(0.0,)),
}


def known_activations() -> set[str]:
    """Names that `tt.activation` takes, as its own refusal tells them, and the makers of other activations."""
    with pytest.raises(tt.BadInput) as refusal:
        tt.activation("?")
    listed = re.search(r"Known are (.*)\.", str(refusal.value))
    assert listed is not None
    makers = inspect.getmembers(act, inspect.isfunction)
    made = {name for name, make in makers if make.__annotations__.get("return") is act.Activation}
    return {family(name) for name in {*listed.group(1).split(", "), *made} - {"activation"}}


def family(name: str) -> str:
    """What a row stands for: `he2`, `he3`, ... are all made by `hermite`."""
    return "hermite" if re.fullmatch(r"he\d+", name) else name.partition(",")[0]


# Oracles ------------------------------------------------------------------------------------------------------------

FRAME, UNITS, TEACHERS = 4, 3, 2


class Seen(NamedTuple):
    """What an oracle's loss is by definition: `1/2 E|f - y|^2`, over given samples or (None) over all inputs."""

    oracle: AbstractOracle
    student: AbstractHidden
    samples: tuple[Any, Any] | None = None
    added: tuple[float, float] = (0.0, 0.0)
    """Of a penalty: what is added to the loss is half of this times the squared weights of each layer."""
    law: tuple[Any, Any] | None = None
    """Of inputs that are not standard: the root of their covariance and their mean."""


def network(seed: int, rows: int, outputs: int, per_unit: int = 1, columns: int = FRAME) -> tt.Weights:
    """Rows and outgoing weights with nothing special about them; `per_unit` rows per unit."""
    draw = np.random.default_rng(seed)
    first = 0.7 * draw.standard_normal((rows, columns))
    return tt.Weights(jnp.asarray(first), jnp.asarray(draw.standard_normal((rows // per_unit, outputs))))


def turned(weights: tt.Weights, turn: Any) -> tt.Weights:
    return tt.Weights(weights.first @ turn, weights.second)


def _population(student: str, teacher: str | list[str], outputs: int = 1, **options: Any) -> Callable[[Any], Seen]:
    def make(turn: Any) -> Seen:
        target = turned(network(1, TEACHERS, outputs), turn)
        oracle = tt.PopulationOracle(student=student, teacher=teacher, target=target, **options)
        return Seen(oracle, PlainHidden(tt.activation(student)))

    return make


def _data(turn: Any, outputs: int) -> tuple[Any, Any]:
    draw = np.random.default_rng(2)
    return jnp.asarray(draw.standard_normal((40, FRAME)) @ turn), jnp.asarray(draw.standard_normal((40, outputs)))


def _empirical(student: str, outputs: int = 1) -> Callable[[Any], Seen]:
    def make(turn: Any) -> Seen:
        x, y = _data(turn, outputs)
        return Seen(tt.EmpiricalOracle(student=student, x=x, y=y), PlainHidden(tt.activation(student)), (x, y))

    return make


def _correlated(student: str) -> Callable[[Any], Seen]:
    """Samples that are multiplied by the root, which is turned with the space."""

    def make(turn: Any) -> Seen:
        oracle, hidden, (x, y), *_ = _empirical(student)(turn)
        root = jnp.asarray(turn.T @ (np.diag([2.0, 0.5, 1.0, 0.0]) - np.eye(FRAME)) @ turn + np.eye(turn.shape[1]))
        return Seen(tt.CorrelatedOracle(oracle, root), hidden, (x @ root, y))

    return make


def _with_mean(student: str, teacher: str, outputs: int = 1) -> Callable[[Any], Seen]:
    """Inputs with a mean in one direction and a covariance; one direction is constant, as that of biases is."""

    def make(turn: Any) -> Seen:
        root = jnp.asarray(turn.T @ (np.diag([1.5, 0.5, 1.0, 0.0]) - np.eye(FRAME)) @ turn + np.eye(turn.shape[1]))
        mean, target = jnp.asarray(np.array([0.5, 0.0, -0.3, 1.0]) @ turn), turned(network(1, TEACHERS, outputs), turn)
        oracle = exact(tt.activation(student), tt.activation(teacher), target, tied=False, root=root, mean=mean)
        return Seen(oracle, PlainHidden(tt.activation(student)), law=(root, mean))

    return make


def _tied(plain: Callable[[Any], Seen]) -> Callable[[Any], Seen]:
    def make(turn: Any) -> Seen:
        seen = plain(turn)
        assert isinstance(seen.student, PlainHidden)
        return seen._replace(oracle=tt.TiedOracle(seen.oracle), student=TiedHidden(seen.student.activation))

    return make


def _penalised(plain: Callable[[Any], Seen]) -> Callable[[Any], Seen]:
    def make(turn: Any) -> Seen:
        seen, added = plain(turn), (0.3, 0.7)
        return seen._replace(oracle=tt.PenalisedOracle(seen.oracle, tt.Penalty(*added)), added=added)

    return make


def _mixture(student: GatedHidden, teacher: GatedHidden) -> Callable[[Any], Seen]:
    def make(turn: Any) -> Seen:
        target = turned(network(1, 2 * TEACHERS, 1, per_unit=2), turn)
        return Seen(tt.MixtureOracle(student, teacher, target), student)

    return make


def _empirical_mixture(student: GatedHidden) -> Callable[[Any], Seen]:
    def make(turn: Any) -> Seen:
        x, y = _data(turn, 1)
        return Seen(EmpiricalMixture(student, x, y), student, (x, y))

    return make


_SQUARE, _LINE = GatedHidden(act.probit, 2), GatedHidden(act.erf, 1)

# Each row takes a matrix with orthonormal rows, by which the input space is turned, or put into a larger one.
ORACLES: dict[str, Callable[[Any], Seen]] = {
    "population, linear teacher": _population("relu", "linear", outputs=2),
    "population, shared kink": _population("relu", "relu"),
    "population, shared kink, quick": _population("relu", "relu", form="plain"),
    "population, other kink": _population("relu", "abs"),
    "population, erf": _population("erf", "erf", outputs=2),
    "population, sum of atoms": _population("probit", "he3"),
    "population, series": _population("erf", "softplus"),
    "population, teacher of several kinds": _population("tanh", ["he2", "relu"], outputs=2),
    "population, signs": _population("sign", "sign"),
    "population, step teacher": _population("tanh", "step"),
    "population, step student": _population("step", "erf", outputs=2),
    "empirical": _empirical("tanh", outputs=2),
    "empirical, kinked": _empirical("relu"),
    "tied population": _tied(_population("relu", "relu", form="plain")),
    "tied empirical": _tied(_empirical("tanh")),
    "correlated empirical": _correlated("tanh"),
    "with a mean, erf": _with_mean("erf", "erf", outputs=2),
    "with a mean, kinks": _with_mean("relu", "abs"),
    "with a mean, sum of atoms": _with_mean("probit", "he3"),
    "with a mean, series": _with_mean("erf", "softplus"),
    "with a mean, tied": _tied(_with_mean("relu", "erf")),
    "with a mean, penalised": _penalised(_with_mean("probit", "step")),
    "penalised population": _penalised(_population("erf", "erf", outputs=2)),
    "penalised empirical, tied": _penalised(_tied(_empirical("tanh"))),
    "mixture": _mixture(_SQUARE, _SQUARE),
    "mixture, another teacher": _mixture(_LINE, _SQUARE),
    "empirical mixture": _empirical_mixture(_SQUARE),
}

HOMOGENEOUS = {
    **dict.fromkeys(("population, linear teacher", "population, shared kink", "population, shared kink, quick"), 1),
    **dict.fromkeys(("population, other kink", "empirical, kinked"), 1),
    "tied population": 2,
    **dict.fromkeys(("population, signs", "population, step student"), 0),
    **dict.fromkeys(("mixture", "mixture, another teacher", "empirical mixture"), 0),
}
"""Oracles of units that are homogeneous in their rows, and the degree: a row `c w` makes a unit `c^degree` times as
large. Of a mixture only the directions of rows matter, each by itself."""


# Dynamics -----------------------------------------------------------------------------------------------------------

Changes = dict[str, Any]


class Moves(NamedTuple):
    """A way to move: `move(problem, seeds, **changes)` calls `tt.run`, and nothing else here does.

    `changes` may be a time to run to, a step or a tolerance, or a checkpoint, a report of progress, records.

    - `scalars`: changes for which nothing may be compiled. `count`: seeds in a batch.
    - `limit`: what a flow has to be asked for to be the limit of small steps.
    - `alone`: how far a seed by itself may be from one in a batch, relative to the scale of its weights.
    """

    kind: type[AbstractDynamics]
    move: Callable[..., tt.Run]
    scalars: tuple[Changes, ...]
    alone: float
    count: int = 3
    limit: Changes = {}


ASKED: Changes = {
    "record": tt.Record(24, observables=("loss", "overlap", "overlap_ss")),
    "stop": tt.Stop(gradient=0.0),
}


def _descent(kind: Any = tt.Descent, **fixed: Any) -> Callable[..., tt.Run]:
    def move(problem: tt.Problem, seeds: Sequence[int], *, step: float = 0.05, time: float = 2.0, **changes: Any):
        return tt.run(problem, kind(step, round(time / step), **fixed), seeds=list(seeds), **ASKED | changes)

    return move


def _flow(solver: str) -> Callable[..., tt.Run]:
    def move(
        problem: tt.Problem, seeds: Sequence[int], *, time: float = 2.0, rtol: float = 1e-8, data=None, **changes: Any
    ):
        return tt.run(problem, tt.Flow(time, rtol, solver, data), seeds=list(seeds), **ASKED | changes)

    return move


def _sgd(optimised: bool = False, **fixed: Any) -> Callable[..., tt.Run]:
    def move(problem: tt.Problem, seeds: Sequence[int], *, step: float = 2e-3, time: float = 0.25, **changes: Any):
        pace = {"optimiser": _optimiser(step)} if optimised else {"step": step}
        moves = tt.Sgd(round(time / step), 4, **pace | fixed)
        return tt.run(problem, moves, seeds=list(seeds), **ASKED | changes)

    return move


def _optimised(**fixed: Any) -> Callable[..., tt.Run]:
    def move(problem: tt.Problem, seeds: Sequence[int], *, time: float = 2.0, **changes: Any):
        return tt.run(
            problem, tt.Optimised(_NESTEROV, round(time / 0.05), **fixed), seeds=list(seeds), **ASKED | changes
        )

    return move


_NESTEROV = optax.sgd(0.05, momentum=0.5, nesterov=True)


def _sphere(problem: tt.Problem, seeds: Sequence[int], *, step: float = 2e-3, time: float = 0.25, **changes: Any):
    """The same problem, with students on the sphere."""
    student = tt.TwoLayer("erf", first=tt.SphereRows(1.0), width=problem.student.width, trains=("first",))
    moves = tt.Sphere(round(time / 2e-3), step, "squared")
    return tt.run(dataclasses.replace(problem, student=student), moves, seeds=list(seeds), **ASKED | changes)


def _ode(problem: tt.Problem, seeds: Sequence[int], *, time: float = 2.0, rate: float = 0.5, **changes: Any):
    return tt.run(problem, tt.Ode(rate, time), seeds=list(seeds), **ASKED | changes)


def _kernel_flow(problem: tt.Problem, seeds: Sequence[int], *, time: float = 2.0, rtol: float = 1e-8, **changes: Any):
    return tt.run(problem, tt.KernelFlow(time, rtol), seeds=list(seeds), **ASKED | changes)


@functools.cache
def _optimiser(step: float) -> optax.GradientTransformation:
    return optax.sgd(step)


def solvers() -> set[str]:
    """The solvers that a flow may be given."""
    return set(SOLVERS)


_STEPPED = ({"step": 0.04}, {"time": 1.6})
_TIMED = ({"time": 1.6}, {"rtol": 1e-7})
# Without a batch axis sums are in another order. A flow then takes other steps, all good to its tolerance of 1e-8.
_TRUNCATION = tt.Truncation((1.0, 30.0), (7,))
DYNAMICS = {
    "descent": Moves(tt.Descent, _descent(), _STEPPED, alone=1e-12),
    "truncated descent": Moves(
        tt.Descent, _descent(truncation=tt.Truncation((1.0, 30.0), (7,))), _STEPPED, alone=1e-12
    ),
    "descent on data": Moves(tt.Descent, _descent(data=30), _STEPPED, alone=1e-12, limit={"data": 30}),
    "heavy ball": Moves(tt.HeavyBall, _descent(tt.HeavyBall, momentum=0.5), _STEPPED, alone=1e-12),
    "optimiser": Moves(tt.Optimised, _optimised(), ({"time": 1.6},), alone=1e-12),
    "optimiser, full space": Moves(tt.Optimised, _optimised(space="full"), ({"time": 1.6},), alone=1e-12),
    "flow, auto": Moves(tt.Flow, _flow("auto"), _TIMED, alone=1e-7),
    "flow, explicit": Moves(tt.Flow, _flow("explicit"), _TIMED, alone=1e-7),
    "flow, stabilised": Moves(tt.Flow, _flow("stabilised"), _TIMED, alone=1e-7),
    "flow, stiff": Moves(tt.Flow, _flow("stiff"), _TIMED, alone=1e-7),
    "sphere": Moves(tt.Sphere, _sphere, ({"step": 1e-3}, {"time": 0.2}), alone=1e-11),
    "sgd": Moves(tt.Sgd, _sgd(), ({"step": 1e-3}, {"time": 0.2}), alone=1e-11, count=64),
    "sgd, direct": Moves(tt.Sgd, _sgd(law="direct"), ({"step": 1e-3}, {"time": 0.2}), alone=1e-11, count=64),
    "sgd, single precision": Moves(tt.Sgd, _sgd(dtype="float32"), ({"step": 1e-3},), alone=1e-4, count=64),
    "ode": Moves(tt.Ode, _ode, ({"time": 1.6}, {"rate": 0.4}), alone=1e-5),
    "kernel flow": Moves(tt.KernelFlow, _kernel_flow, _TIMED, alone=1e-7),
    "sgd, optimiser": Moves(tt.Sgd, _sgd(optimised=True), ({"time": 0.2},), alone=1e-11, count=64),
}


CLUSTERED = {tt.Spherical, tt.RouterSteps, SecondLayer, tt.NeuronFlow, tt.NeuronSgd}
PLACED = {tt.Given}
"""Does not move by itself."""
"""Of experts and neurons on clustered inputs, whose weights and records are others: test_spherical.py, test_overlaps.py
and test_chain.py take them through chunks, seeds, saving and restoring, the tests of cluster_moe through stages."""


# Routers ------------------------------------------------------------------------------------------------------------

Numbers = NDArray[np.float64]


class Routes(NamedTuple):
    """A router, the probability with which each expert is chosen at given scores, and the factor of those chosen.

    `shares(theta, inputs)`: the probabilities over clustered inputs, (cluster, expert), where there is a formula.
    """

    router: Router
    chance: Callable[[Numbers], Numbers]
    factor: Callable[[Numbers], Numbers]
    shares: Callable[[Numbers, tt.Clusters], Numbers] | None = None


def _highest(count: int) -> Callable[[Numbers], Numbers]:
    """The places that are left after those that are surely in are shared evenly among those that are tied."""

    def chance(scores: Numbers) -> Numbers:
        edge = np.sort(scores)[-count]
        above, tied = scores > edge, scores == edge
        return above + tied * (count - above.sum()) / tied.sum()

    return chance


def _noisy(noise: float) -> Callable[[Numbers], Numbers]:
    """The chance that `score + noise u` is highest: integrated over the expert's own uniform number u."""

    def chance(scores: Numbers) -> Numbers:
        def wins(u: float, m: int) -> float:
            return float(np.prod(np.clip(np.delete((scores[m] - scores) / noise + u, m), 0, 1)))

        return np.array([integrate.quad(wins, 0, 1, args=(m,), limit=200)[0] for m in range(len(scores))])

    return chance


def _softmax(scores: Numbers) -> Numbers:
    return special.softmax(scores)


ROUTERS = {
    "Top1": Routes(tt.Top1(), _highest(1), _softmax, lambda theta, inputs: winning(theta, inputs).value),
    "Top1, noisy": Routes(tt.Top1(1.5), _noisy(1.5), _softmax),
    "TopK": Routes(tt.TopK(2), _highest(2), _softmax),
    "Threshold": Routes(tt.Threshold(0.5), lambda s: (s >= 0.5) * 1.0, np.ones_like, lambda t, i: passing(t, i, 0.5)),
}


# Starts -------------------------------------------------------------------------------------------------------------


class Drawn(NamedTuple):
    """A law of rows, and what theory says of the Gram matrix of teachers (unit vectors, orthogonal) and rows.

    `mean(dim)` and `spread(dim)`: means and standard deviations of its entries, nan where nothing is said.
    """

    law: AbstractRows
    mean: Callable[[int], Numbers]
    spread: Callable[[int], Numbers]
    rows: int = 3
    least: int = 5


TAUGHT = 2


def _gram(*, taught: Any, own: Any, others: Any, rows: int = 3) -> Numbers:
    """Teachers with teachers are known; rows with teachers, rows with themselves, rows with others."""
    gram = np.eye(TAUGHT + rows)
    gram[TAUGHT:, :TAUGHT] = taught
    gram[:TAUGHT, TAUGHT:] = gram[TAUGHT:, :TAUGHT].T
    gram[TAUGHT:, TAUGHT:] = np.where(np.eye(rows), own, others)
    return gram


def _spreads(**parts: Any) -> Numbers:
    gram = _gram(**parts)
    gram[:TAUGHT, :TAUGHT] = 0.0
    return gram


def _leaning(value: float, other: float, rows: int = 3) -> Numbers:
    """Row i leans to teacher i mod 2."""
    return np.where(np.arange(rows)[:, None] % TAUGHT == np.arange(TAUGHT), value, other)


_ANGLE, _ZETA = 1.0, 0.2


def _kept_length(power: int) -> Callable[[int], float]:
    """Moments of chi, kept between half and twice `sqrt(dim)`."""

    def moment(dim: int) -> float:
        share = [np.diff(special.chdtr(degrees, [dim / 4, 4 * dim]))[0] for degrees in (dim + power, dim)]
        return 2 ** (power / 2) * special.poch(dim / 2, power / 2) * share[0] / share[1]

    return moment


def _weak_spread(dim: int) -> Numbers:
    one, two, four = (_kept_length(power)(dim) for power in (1, 2, 4))
    lean, rest = math.cos(_ANGLE) * math.sqrt(max(two - one**2, 0.0)), math.sin(_ZETA) * math.sqrt(two / 3)
    return _spreads(taught=_leaning(lean, rest), own=math.sqrt(four - two**2), others=math.nan)


def _weak_mean(dim: int) -> Numbers:
    own = _kept_length(2)(dim)
    return _gram(taught=_leaning(math.cos(_ANGLE) * _kept_length(1)(dim), 0.0), own=own, others=math.nan)


def _mixture_moments(norm: Callable[[int, int], Any], spread: bool, others: bool = True) -> Callable[[int], Numbers]:
    """Two routers, then two experts. A router has one degree of freedom less than an expert, whom it avoids."""

    def moments(dim: int) -> Numbers:
        degrees = np.array([dim - 1, dim - 1, dim, dim])
        own = np.diag([norm(k, dim) for k in degrees])
        # An expert meets a router of another in dim - 1 dimensions, and routers meet in these less one, on average.
        met = np.array([[0, math.nan, 0, 1], [math.nan, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
        size = np.sqrt(np.array([[0, 0, 0, dim - 1], [0, 0, dim - 1, 0], [0, dim - 1, 0, dim], [dim - 1, 0, dim, 0]]))
        across = met * size / dim if spread else 0 * met
        across = across if others else np.full((4, 4), math.nan)
        taught = np.sqrt(degrees / dim)[:, None] / math.sqrt(dim) if spread else 0.0
        parts = {"taught": taught, "own": own, "others": across, "rows": 4}
        return _spreads(**parts) if spread else _gram(**parts)

    return moments


_IID = (
    _mixture_moments(lambda k, dim: k / dim, False),
    # |v|^2 of a router is chi-squared with dim - 1 degrees, over dim.
    _mixture_moments(lambda k, dim: math.sqrt(2 * k) / dim, True),
)
_NO_OTHERS = (
    _mixture_moments(lambda k, dim: k / dim, False, others=False),
    _mixture_moments(lambda k, dim: math.sqrt(2 * k) / dim, True, others=False),
)


def _half(dim: int) -> float:
    """The mean size of a coordinate of a unit vector."""
    return math.exp(special.gammaln(dim / 2) - special.gammaln((dim + 1) / 2)) / math.sqrt(math.pi)


STARTS = {
    "GaussianRows": Drawn(
        tt.GaussianRows(0.5),
        lambda dim: _gram(taught=0.0, own=dim / 4, others=0.0),
        lambda dim: _spreads(taught=0.5, own=math.sqrt(2 * dim) / 4, others=math.sqrt(dim) / 4),
    ),
    "GaussianRows, mean": Drawn(
        tt.GaussianRows(0.5, mean=((1.5,),)),
        lambda dim: _gram(taught=[1.5, 0.0], own=dim / 4 + 2.25, others=2.25),
        lambda dim: _spreads(
            taught=0.5, own=math.sqrt(dim / 8 + 2.25), others=math.sqrt(dim / 16 + 2 * 2.25 / 4)
        ),
    ),
    "SphereRows": Drawn(
        tt.SphereRows(2.0),
        lambda dim: _gram(taught=0.0, own=4.0, others=0.0),
        lambda dim: _spreads(taught=2 / math.sqrt(dim), own=0.0, others=4 / math.sqrt(dim)),
    ),
    "HalfSphereRows": Drawn(
        tt.HalfSphereRows(((1.0,),), norm=2.0),
        lambda dim: _gram(taught=[2 * _half(dim), 0.0], own=4.0, others=4 * _half(dim) ** 2),
        lambda dim: _spreads(
            taught=[2 * math.sqrt(1 / dim - _half(dim) ** 2), 2 / math.sqrt(dim)],
            own=0.0,
            others=4 * math.sqrt(1 / dim - _half(dim) ** 4),
        ),
    ),
    "OrthonormalRows": Drawn(
        tt.OrthonormalRows(2.0),
        lambda dim: _gram(taught=0.0, own=4.0, others=0.0),
        lambda dim: _spreads(taught=2 / math.sqrt(dim), own=0.0, others=0.0),
    ),
    "WeakRecoveryRows": Drawn(
        tt.WeakRecoveryRows(1.0, toward=((1.0, 0.0), (0.0, 1.0)), angle=_ANGLE, zeta=_ZETA), _weak_mean, _weak_spread
    ),
    "MixtureRows, iid": Drawn(tt.MixtureRows("iid"), *_IID, rows=4, least=6),
    "MixtureRows, flipped": Drawn(tt.MixtureRows("flipped"), *_NO_OTHERS, rows=4, least=6),
    "MixtureRows, unit": Drawn(
        tt.MixtureRows("unit"),
        lambda dim: _gram(taught=0.0, own=1.0, others=0.0, rows=4),
        lambda dim: _spreads(taught=1 / math.sqrt(dim), own=0.0, others=math.nan, rows=4),
        rows=4,
        least=6,
    ),
    "MixtureRows, orthonormal": Drawn(
        tt.MixtureRows("orthonormal"),
        lambda dim: _gram(taught=0.0, own=1.0, others=0.0, rows=4),
        lambda dim: _spreads(taught=1 / math.sqrt(dim), own=0.0, others=0.0, rows=4),
        rows=4,
        least=6,
    ),
}  # fmt: skip

# A law of outgoing weights, and the distribution function of each unit's.
ENTRIES: dict[str, tuple[AbstractEntries, tuple[Any, ...]]] = {
    "GaussianEntries": (tt.GaussianEntries(0.3), (stats.norm(scale=0.3),) * 3),
    "ChiEntries": (
        tt.ChiEntries(0.5, 3.0, (1.0, 1.0, 1.0)),
        (stats.chi(3, scale=0.5),) * 3,
    ),
}


# Papers -------------------------------------------------------------------------------------------------------------


class Paper(NamedTuple):
    """Settings of a paper that run in a second or two, and where in `tests/papers` its claims are seen to be false.

    - `planted`: names of tests, or of tables they go through, by file. A claim counts if its id stands there.
    - `besides`: claims that are falsified there without being named, and where.
    - `unplanted`: claims that no test has seen to change its verdict, and why.
    """

    settings: Changes
    planted: dict[str, tuple[str, ...]]
    besides: dict[str, str] = {}
    unplanted: dict[str, str] = {}


_NEVER_HOLDS = "found to fail as printed; no test has seen it hold where the print is mended"

PAPERS = {
    "both_layers": Paper({"dim": 20, "steps": 30}, {"test_both_layers_claims.py": ("PLANTED", "LIFTED")}),
    "relu_teachers": Paper(
        {"dim": 20, "teachers": 2, "students": 3, "norm": 1.0, "scale": 0.1, "steps": 30, "batch": 8},
        {"test_relu_teachers_claims.py": ("PLANTED",)},
    ),
    "beyond_ntk": Paper(
        {"dim": 4, "width": 6, "until": 2.0},
        {
            "test_beyond_ntk_kernels.py": ("PLANTS",),
            "test_beyond_ntk_lemmas.py": ("PLANTS",),
            "test_beyond_ntk_lottery.py": ("PLANTED",),
            "test_beyond_ntk_stages.py": ("PLANTED",),
            "test_beyond_ntk_symmetry.py": ("PLANTS",),
            "test_beyond_ntk_theorem.py": ("PLANTED",),
            "test_beyond_ntk_width.py": ("PLANTS",),
            "test_beyond_ntk_recipe.py": (
                *("PLANTED", "test_claims_about_figure_1_can_fail", "test_claims_about_figure_2_can_fail"),
                *("test_longer_on_samples_can_fail", "test_the_order_of_plateaus_can_fail"),
            ),
            "test_beyond_ntk_experiments.py": (
                *("test_a_broken_law_flips_the_claim", "test_the_exponent_of_full_size_has_all_dimensions"),
            ),
        },
    ),
    "cluster_moe": Paper(
        {
            **{"dim": 8, "experts": 2, "explore_samples": 2000, "router_samples": 1000, "samples": 2000},
            **{"late_samples": 1000, "ridge_samples": 500, "test_samples": 500, "vanilla_width": 8},
        },
        {
            "test_cluster_moe_formulas.py": ("PLANTS",),
            "test_cluster_moe_growth.py": (
                *("test_claims_and_figures_at_small_sizes", "test_growth_bounds_claim", "test_exponents_claim"),
                *("test_race_claims", "test_exponents_of_passages_are_judged"),
                "test_the_exponent_of_changed_coefficients_is_judged",
            ),
            "test_cluster_moe_vanilla.py": ("PLANTS", "test_fractions_are_judged_by_their_exponent"),
            "test_cluster_moe_router.py": (
                *("test_unequal_chances_are_seen", "test_a_bound_that_is_too_high_is_seen"),
                *("test_too_few_experts_are_seen", "test_winners_that_stand_out_are_seen"),
                "test_starts_that_do_not_stand_out_are_seen",
                *("test_rows_that_do_not_add_up_are_seen", "test_the_right_gradient_adds_up"),
                *("test_a_router_of_the_wrong_sign_is_seen", "test_a_router_that_knows_the_clusters_is_seen"),
                *("test_enough_samples_are_seen", "test_wrong_probabilities_are_seen"),
                "test_a_wrong_factor_of_the_expected_step_is_seen",
                *("test_a_router_that_outgrows_the_radius_is_seen", "test_a_split_that_changes_the_result_is_seen"),
            ),
            "test_cluster_moe_pipeline.py": (
                *("PLANTED", "test_a_right_definition_is_seen", "test_experts_that_miss_a_task_are_seen"),
                "test_clusters_that_nobody_serves_are_seen",
                *("test_an_overlap_on_the_way_is_seen", "test_a_wrong_step_is_seen"),
                "test_a_smaller_step_keeps_what_is_learned",
            ),
            "test_cluster_moe_rates.py": (
                *("PLANTED", "test_a_mixture_that_is_no_better_is_seen", "test_a_negligible_slant_is_seen"),
                "test_errors_below_the_least_are_seen",
                "test_a_router_that_no_radius_helps_is_seen",
            ),
        },
    ),
    "soft_moe": Paper(
        {"dim": 12, "teachers": 1, "students": 2, "until": 0.3, "batch": 8},
        {
            "test_soft_moe_theory.py": (
                *("test_lemmas_notice_a_wrong_moment", "test_lemma_21_notices_a_wrong_moment"),
                *("test_claims_notice_a_wrong_factor", "test_claims_notice_wrong_constants", "RIGHT"),
                *("test_mended_lemma_7_notices_a_wrong_force", "test_lag_notices_a_router_at_a_wrong_time"),
            ),
            "test_soft_moe_matching.py": (
                *("ERRORS", "test_the_magnitude_claim_fails_on_shorter_experts"),
                "test_wider_norms_are_seen",
            ),
            "test_soft_moe_recovery.py": (
                "PLANTED",
                "test_the_printed_bound_before_a_recovery_holds_where_it_is_mended",
            ),
            "test_soft_moe_pruning.py": ("TestClaimsCanFail",),
            "test_soft_moe_limit.py": ("PLANTED", "test_even_degrees_are_judged_by_flows"),
            "test_soft_moe_induction.py": ("PLANTS", "SWAPPED"),
            "test_soft_moe_lemmas.py": ("PLANTS", "TestSamples", "TestSoftmax"),
        },
        besides={
            "SM-N": "test_soft_moe_recovery.py::test_norms_and_frame",
            "SM-R": "test_soft_moe_recovery.py::test_norms_and_frame",
            "SM-T1b": "test_soft_moe_recovery.py::test_the_exponent_of_the_first_recovery",
            "SM-T1b:last": "test_soft_moe_recovery.py::test_the_last_recovery",
            "SM-T1d": "test_soft_moe_recovery.py::test_nearly_perfect_recovery_falls_with_dim",
            "SM-T1d:fixed": "test_soft_moe_recovery.py::test_nearly_perfect_recovery_falls_with_dim",
            "SM-FIG1": "test_soft_moe_recovery.py::test_one_student_a_teacher_and_no_other",
            "SM-PAIRS": "test_soft_moe_recovery.py::test_pairs_plateaus_and_predictions",
            "SM-X1": "test_soft_moe_recovery.py::test_other_predictions_are_not_those_of_the_race",
            "SM-X3": "test_soft_moe_recovery.py::test_pairs_plateaus_and_predictions",
            "SM-LIMIT:flows": "test_soft_moe_recovery.py::test_pairs_plateaus_and_predictions",
            "SM-X2:breaking": "test_soft_moe_theory.py::test_slow_laws_notice_a_factor_of_two",
            "SM-X2:sharing": "test_soft_moe_theory.py::test_slow_laws_notice_a_factor_of_two",
        },
    ),
}


def conditions_are_told(claim: Claim, finding: Finding) -> bool:
    """Of a theorem or a corollary: that its hypotheses were measured, or that it says why it has none; not both."""
    if not re.match("Theorem|Corollary", claim.where):
        return True
    return bool(finding.hypotheses) != bool(claim.unconditional)


@functools.cache
def pieces_of(file: str) -> dict[str, ast.stmt]:
    """Tests and tables of a file in `tests/papers`, by name."""
    tree = ast.parse((Path(__file__).parent / "papers" / file).read_text(encoding="utf-8"))
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
    return found


def strings(node: ast.AST) -> set[str]:
    """All texts that stand in a piece of code."""
    return {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)}
