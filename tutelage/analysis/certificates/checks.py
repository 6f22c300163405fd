"""Independent routes to numbers an oracle gives: balls, long arithmetic, sampling, plain loops, differences."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from tutelage.analysis.certificates.enclosure import Enclosed
from tutelage.analysis.certificates.long_arithmetic import Precise, parts, value
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.correlated import CorrelatedOracle
from tutelage.oracle.empirical import EmpiricalOracle
from tutelage.oracle.geometry import angles, rows
from tutelage.oracle.mixture import MixtureOracle
from tutelage.oracle.penalised import PenalisedOracle
from tutelage.oracle.population import PopulationOracle
from tutelage.oracle.tied import TiedOracle
from tutelage.problem.activations import Activation
from tutelage.problem.assorted import each_unit
from tutelage.problem.hidden import AbstractHidden
from tutelage.problem.networks import Weights, host_weights, untied
from tutelage.problem.trees import flatten, unflatten
from tutelage.rigour import CannotEnclose
from tutelage.trajectory.findings import Check as Check

EPS = float(np.finfo(float).eps)
# A number in double precision is expected right to this part of itself, and to this part of the terms it is summed of.
RELATIVE, OF_TERMS = 1e-10, 64 * EPS
# What the grouped form keeps of a loss, and of a gradient, however small they are.
GROUPED_LOSS, GROUPED_SLOPE = 1e-6, 1e-9
# Once in a million certificates a sampling interval misses a right number.
FALSE_ALARM = 1e-6
# Long arithmetic takes about half a millisecond per pair of units; networks with more units are sampled only.
MOST_UNITS = 64
LARGEST_HESSIAN = 2000

Numbers = NDArray[np.float64]
Long = Enclosed | Precise


@dataclass(frozen=True)
class Moment:
    """A recorded moment of one seed, with the oracle of that seed."""

    name: str
    oracle: AbstractOracle
    weights: Weights
    loss: float
    gradient_norm: float | None


def penalty(moment: Moment, direction: Weights) -> Iterator[Check]:
    """The derivative of a penalised loss, and the gradient's norm, against the plain loss and a sum over weights."""
    oracle = moment.oracle
    if not isinstance(oracle, PenalisedOracle):
        return
    gradient, own = (_gradient(each, moment.weights) for each in (oracle, oracle.plain))
    layers = _layers(moment.weights, oracle)
    whole = [np.asarray(getattr(own, name)) + strength * values for name, strength, values in layers]
    size = float(np.sqrt(sum(np.sum(part**2) for part in whole)))
    found = sum(
        float(np.vdot(part, getattr(direction, name))) for part, (name, _, _) in zip(whole, layers, strict=True)
    )
    terms = along(*(jax.tree.map(jnp.abs, each) for each in (own, direction)))
    tolerance = RELATIVE * abs(found) + OF_TERMS * terms
    route = "the loss without penalty"
    yield check(f"derivative with penalty at {moment.name}", route, along(gradient, direction), found, tolerance)
    if moment.gradient_norm is not None:
        norms = float(np.linalg.norm(_vector(own)))
        tolerance = RELATIVE * size + OF_TERMS * norms
        yield check(f"gradient norm with penalty at {moment.name}", route, moment.gradient_norm, size, tolerance)


def _layers(weights: Weights, oracle: PenalisedOracle) -> list[tuple[str, float, Numbers]]:
    """Name, strength of the penalty, and weights of each layer."""
    names = ("first", "second")
    return [(name, float(getattr(oracle.strengths, name)), np.asarray(getattr(weights, name))) for name in names]


def unpenalised(moment: Moment) -> Moment:
    """The same moment without the penalty; its loss never had it."""
    oracle = moment.oracle.unpenalised
    return moment if oracle is moment.oracle else replace(moment, oracle=oracle, gradient_norm=None)


def tie(moment: Moment, direction: Weights) -> Iterator[Check]:
    """The derivative of a tied network's loss, against that of the plain network which computes the same; so for one
    whose inputs have a covariance."""
    if isinstance(moment.oracle, (TiedOracle, CorrelatedOracle)):
        plain, turn = untie(moment, direction)
        reported = along(_gradient(moment.oracle, moment.weights), direction)
        gradient = _gradient(plain.oracle, plain.weights)
        found, terms = along(gradient, turn), along(*(jax.tree.map(jnp.abs, w) for w in (gradient, turn)))
        tolerance = RELATIVE * abs(found) + OF_TERMS * terms
        yield check(f"derivative at {moment.name}", "the plain network", reported, found, tolerance)


def untie(moment: Moment, direction: Weights) -> tuple[Moment, Weights]:
    """A moment of a tied network, or of one whose inputs have a covariance, as one of the plain network on standard
    inputs which computes the same, and how that one moves."""
    if not isinstance(moment.oracle, (TiedOracle, CorrelatedOracle)):
        return moment, direction
    weights, turn = jax.jvp(_inside(moment.oracle), (moment.weights,), (direction,))
    return untie(replace(moment, oracle=moment.oracle.plain, weights=weights, gradient_norm=None), turn)


def _inside(oracle: TiedOracle | CorrelatedOracle) -> Callable[[Weights], Weights]:
    """From its weights to those of the plain network."""
    return untied if isinstance(oracle, TiedOracle) else oracle.inside


def activations(oracle: AbstractOracle) -> Iterator[Check]:
    """The values of the activations against their definitions, at points of both signs."""
    oracle = oracle.unpenalised
    while isinstance(oracle, (TiedOracle, CorrelatedOracle)):
        oracle = oracle.plain
    points = np.array([-2.5, -0.3, 0.7, 1.9])
    for role in ("student", "teacher"):
        activation = getattr(oracle, role, None)
        known = parts(activation) if isinstance(activation, Activation) else None
        if activation is None or known is None:
            continue
        found, mine = np.asarray(activation(points)), np.array([float(value(known, z)) for z in points])
        worst = int(np.argmax(np.abs(found - mine)))
        tolerance = 1e-13 * max(1.0, float(np.max(np.abs(mine))))
        what = f"the {role}'s {activation.name}({points[worst]})"
        yield check(what, "definition", float(found[worst]), float(mine[worst]), tolerance)


def by_digits(moment: Moment, direction: Weights, digits: int) -> Iterator[Check]:
    """The population loss, its derivative along a direction, and its gradient's norm: enclosed in balls where the
    kernels are, and else in long arithmetic."""
    for precise in _precise(moment.oracle, moment.weights, digits):
        try:
            rows = list(_by_precise(precise, moment, direction))
        except CannotEnclose:
            continue
        yield from rows
        return


def _by_precise(precise: Long, moment: Moment, direction: Weights) -> Iterator[Check]:
    route = precise.route
    loss, terms = precise.loss()
    tolerance = RELATIVE * abs(loss) + _rounding(moment.oracle, precise, loss, terms)
    yield check(f"loss at {moment.name}", route, moment.loss, loss, tolerance)
    gradient = _gradient(moment.oracle, moment.weights)
    slope, terms = precise.derivative(np.asarray(direction.first), np.asarray(direction.second))
    tolerance = RELATIVE * abs(slope) + OF_TERMS * terms
    yield check(f"derivative at {moment.name}", route, along(gradient, direction), slope, tolerance)
    if moment.gradient_norm:
        # Along its own direction the derivative is the norm of the gradient.
        unit = jax.tree.map(lambda leaf: np.asarray(leaf) / moment.gradient_norm, gradient)
        size, terms = precise.derivative(unit.first, unit.second)
        lost = OF_TERMS * terms
        tolerance = RELATIVE * size + (min(lost, GROUPED_SLOPE * size) if _grouped(moment.oracle) else lost)
        yield check(f"gradient norm at {moment.name}", route, moment.gradient_norm, size, tolerance)


def _rounding(oracle: AbstractOracle, precise: Long, loss: float, terms: float) -> float:
    """What rounding may do to a loss: a part of its terms, or of the terms of the line form where that is in use.

    The line form adds two squares, whose roots are summed to 1e-24 of their terms, and pairs of units off one line;
    only those pairs can cancel. The grouped form keeps six digits of the loss itself.
    """
    if _grouped(oracle):
        return min(OF_TERMS * terms, GROUPED_LOSS * abs(loss))
    if not getattr(oracle, "on_lines", False):
        return OF_TERMS * terms
    return OF_TERMS * precise.off_line() + 1e-22 * np.sqrt(abs(loss) * terms) + 1e-44 * terms


def _grouped(oracle: AbstractOracle) -> bool:
    """Whether the grouped form is in use and keeps its digits: it does when the teachers are well apart."""
    if not (isinstance(oracle, PopulationOracle) and oracle.on_groups):
        return False
    first = np.asarray(oracle.target.first)
    unit = first / np.linalg.norm(first, axis=1, keepdims=True)
    return bool(np.max(np.abs(unit @ unit.T - np.eye(len(unit)))) < 0.9)


def _precise(oracle: AbstractOracle, weights: Weights, digits: int) -> Iterator[Long]:
    """The loss in balls and in long arithmetic, where it has a closed form and not too many pairs of units."""
    if not digits or not isinstance(oracle, PopulationOracle) or oracle.means:
        return
    students, teachers = parts(oracle.student), parts(oracle.teacher)
    first = np.concatenate([weights.first, oracle.target.first])
    if students is None or teachers is None or len(first) > MOST_UNITS:
        return
    second = np.concatenate([weights.second, -oracle.target.second])
    precise = Precise(students, teachers, first, second, len(weights.first), digits)
    with contextlib.suppress(CannotEnclose):
        yield Enclosed(precise, oracle.student, oracle.teacher)
    yield precise


def by_samples(
    moment: Moment, direction: Weights, samples: int, intervals: int, generator: np.random.Generator
) -> Iterator[Check]:
    """The population loss and its derivative along a direction, as means over inputs in frame coordinates.

    The `intervals` of a certificate together miss with probability `FALSE_ALARM` (Bonferroni). Near an optimum most
    of the loss can lie between kinks that almost coincide, where no sample falls: such moments are left out.
    """
    oracle = moment.oracle
    if not samples or not isinstance(oracle, (PopulationOracle, MixtureOracle)):
        return
    if isinstance(oracle, PopulationOracle) and _unseen(oracle, moment.weights, samples) > 1e-3 * moment.loss:
        return
    inputs = generator.standard_normal((samples, moment.weights.first.shape[1]))
    if isinstance(oracle, PopulationOracle) and oracle.means:
        inputs[:, 0] = 1.0
    x = jax.device_put(inputs)
    values = [np.asarray(each) for each in _drawn(oracle, x, moment.weights, direction)]
    numbers = (moment.loss, along(_gradient(oracle, moment.weights), direction))
    seen = tuple(zip(("loss", "derivative"), numbers, values, strict=True))
    # Single samples have no slope where units jump, and their mean is not that of the population.
    for what, reported, draws in seen[:1] if _jumps(oracle) else seen:
        half = _half_width(draws, FALSE_ALARM / intervals)
        yield check(f"{what} at {moment.name}", f"{samples} samples", reported, float(np.mean(draws)), half)


def _unseen(oracle: PopulationOracle, weights: Weights, samples: int) -> float:
    """How much of the loss may lie in wedges between the kinks of two students that 20 samples do not fall into.

    Between rows at the angle psi the wedge has probability psi/pi, and |s| there is at most psi times the row's norm.
    Units that jump differ there by 2 or less.
    """
    if 0.0 not in oracle.student.kinks:
        return 0.0
    angle, norm = (np.asarray(each) for each in _near(weights.first))
    strength = (2 if _jumps(oracle) else norm[:, None]) * np.asarray(weights.second)
    thin = angle < 20 * np.pi / samples
    wedge = angle if _jumps(oracle) else angle**3
    return float(np.sum(np.abs(strength @ strength.T) * np.where(thin, wedge, 0.0)) / np.pi)


def _jumps(oracle: AbstractOracle) -> bool:
    return isinstance(oracle, PopulationOracle) and oracle.student.jumps


def _half_width(draws: NDArray[np.floating], miss: float) -> float:
    """Half of the interval around the mean that misses the expectation with probability `miss`.

    Squares of networks are skewed, and a mean divided by its own estimated error is skewed the other way: the normal
    quantile is widened by the first two terms of the expansion for that ratio (Hall 1992). That is enough for tails
    up to those of a fourth power of a normal variable; beyond (polynomial activations) `miss` is only roughly right.
    """
    count, spread = len(draws), float(np.std(draws))
    if spread == 0:
        return EPS * abs(float(draws[0]))
    z = -float(ndtri(miss / 2))
    skew = abs(float(np.mean(((draws - np.mean(draws)) / spread) ** 3)))
    reach = z + skew * (2 * z**2 + 1) / (6 * np.sqrt(count)) + skew**2 * (z**5 + 2 * z**3) / (18 * count)
    return reach * spread / float(np.sqrt(count))


def _outputs(hidden: AbstractHidden, x: jax.Array, weights: Weights) -> jax.Array:
    return hidden(weights.first, weights.first @ x.T).T @ weights.second


def by_loop(moment: Moment, direction: Weights) -> Iterator[Check]:
    """The loss on the data and its derivative, unit by unit in NumPy."""
    if not isinstance(moment.oracle, EmpiricalOracle):
        return
    residual, change, y = _loop(moment.oracle, moment.weights, direction)
    loss, terms = float(np.sum(residual**2)) / (2 * len(y)), float(np.sum(y**2)) / (2 * len(y))
    # Each residual carries the rounding of its label, which enters the loss times the residual.
    tolerance = RELATIVE * loss + OF_TERMS * np.sqrt(loss * terms) + OF_TERMS**2 * terms
    yield check(f"loss at {moment.name}", "plain loop", moment.loss, loss, tolerance)
    slope, terms = _loop_derivative(residual, change, y)
    reported = along(_gradient(moment.oracle, moment.weights), direction)
    tolerance = RELATIVE * abs(slope) + OF_TERMS * terms
    yield check(f"derivative at {moment.name}", "plain loop", reported, slope, tolerance)


def _loop(oracle: EmpiricalOracle, weights: Weights, direction: Weights) -> tuple[Numbers, Numbers, Numbers]:
    """Residuals on the data, how they change along a direction, and the labels."""
    x, y = np.asarray(oracle.x), np.asarray(oracle.y)
    residual, change = -y, np.zeros_like(y)
    layers = (weights.first, weights.second, direction.first, direction.second)
    units = each_unit(oracle.student, len(weights.first))
    for unit, w, v, dw, dv in zip(units, *map(np.asarray, layers), strict=True):
        hidden, slope = np.asarray(unit(x @ w)), np.asarray(unit.derivative(x @ w))
        residual = residual + np.outer(hidden, v)
        change = change + np.outer(slope * (x @ dw), v) + np.outer(hidden, dv)
    return residual, change, y


def _loop_derivative(residual: Numbers, change: Numbers, y: Numbers) -> tuple[float, float]:
    """The derivative of the loss, and the size of the terms it is summed of."""
    terms = float(np.sum((np.abs(residual) + np.abs(y)) * np.abs(change)))
    return float(np.sum(residual * change)) / len(y), terms / len(y)


def hessian_row(moment: Moment, direction: Weights) -> Iterator[Check]:
    """The Hessian times a direction against a central difference of the gradient, at two steps.

    The difference of the two steps says how far a difference quotient can be trusted here; rounding of the gradient,
    over the step, is allowed on top.
    """
    oracle, weights = moment.oracle, moment.weights
    if sum(leaf.size for leaf in jax.tree.leaves(direction)) > LARGEST_HESSIAN:
        return
    product = _vector(_hessian_times(oracle, weights, direction))
    step = _safe_step(oracle, weights, direction)

    def slope(h: float) -> Numbers:
        beside = jax.tree.map(lambda leaf, move: np.asarray(leaf) + h * np.asarray(move), weights, direction)
        return _vector(_gradient(oracle, beside))

    coarse, fine = ((slope(h) - slope(-h)) / (2 * h) for h in (step, step / 2))
    reported, found = float(np.linalg.norm(product)), float(np.linalg.norm(fine))
    tolerance = 4 * float(np.linalg.norm(coarse - fine)) + (1e-7 + OF_TERMS / step) * found
    difference = float(np.linalg.norm(product - fine))
    yield Check(f"Hessian at {moment.name}", "differences", reported, found, difference, tolerance)


def _safe_step(oracle: AbstractOracle, weights: Weights, direction: Weights) -> float:
    """1e-5 of the weights; on data with a kinked activation, half of the way to the nearest kink if that is less."""
    oracle = oracle.unpenalised
    if isinstance(oracle, TiedOracle):
        oracle = oracle.plain
    if not isinstance(oracle, EmpiricalOracle) or 0.0 not in oracle.student.kinks:
        return 1e-5
    reach = jnp.abs(oracle.x @ weights.first.T) / jnp.maximum(jnp.abs(oracle.x @ direction.first.T), 1e-300)
    return min(1e-5, 0.5 * float(jnp.min(reach)))


def derivative(oracle: AbstractOracle, weights: Weights, direction: Weights, digits: int) -> tuple[str, float, float]:
    """The route, the derivative of the loss along a direction, and the size of its terms."""
    if isinstance(oracle, PenalisedOracle):
        route, slope, terms = derivative(oracle.plain, weights, direction, digits)
        layers = _layers(weights, oracle)
        pulls = [strength * values * np.asarray(getattr(direction, name)) for name, strength, values in layers]
        added = (sum(float(np.sum(each)) for each in some) for some in (pulls, map(np.abs, pulls)))
        return route, slope + next(added), terms + next(added)
    if isinstance(oracle, (TiedOracle, CorrelatedOracle)):
        plain, turn = jax.jvp(_inside(oracle), (weights,), (direction,))
        return derivative(oracle.plain, plain, turn, digits)
    if isinstance(oracle, EmpiricalOracle):
        return "plain loop", *_loop_derivative(*_loop(oracle, weights, direction))
    for precise in _precise(oracle, weights, digits):
        with contextlib.suppress(CannotEnclose):
            return precise.route, *precise.derivative(np.asarray(direction.first), np.asarray(direction.second))
    slope = along(_gradient(oracle, weights), direction)
    return "the oracle's gradient", slope, abs(slope)


def random_direction(weights: Weights, generator: np.random.Generator) -> Weights:
    """A random direction, scaled unit by unit so that small units are moved as much as large ones."""

    def scaled(layer: Any) -> NDArray[np.floating]:
        layer = np.asarray(layer)
        return generator.standard_normal(layer.shape) * (np.linalg.norm(layer, axis=1, keepdims=True) + 1e-300)

    drawn: Weights = jax.device_put(host_weights(scaled(weights.first), scaled(weights.second)))
    return drawn


def along(gradient: Weights, direction: Weights) -> float:
    """The inner product of two sets of weights."""
    return float(np.vdot(gradient.first, direction.first) + np.vdot(gradient.second, direction.second))


def _vector(weights: Weights) -> Numbers:
    """All of them, on the host, where every operation on the device would be a program of its own."""
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(weights)])


@eqx.filter_jit
def _gradient(oracle: AbstractOracle, weights: Weights) -> Weights:
    return oracle.gradient(weights)


@eqx.filter_jit
def _hessian_times(oracle: AbstractOracle, weights: Weights, direction: Weights) -> Weights:
    return unflatten(oracle.hessian(weights) @ flatten(direction), weights)


@eqx.filter_jit
def _near(first: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Angles between rows, and their norms."""
    units = rows(first)
    return angles(units, units).near, units.norm


@eqx.filter_jit
def _drawn(
    oracle: PopulationOracle | MixtureOracle, x: jax.Array, weights: Weights, direction: Weights
) -> tuple[jax.Array, jax.Array]:
    """Of every sample, the loss and its derivative along a direction."""
    student, teacher = oracle.sides
    residual, change = jax.jvp(lambda w: _outputs(student, x, w), (weights,), (direction,))
    residual = residual - _outputs(teacher, x, oracle.target)
    return 0.5 * jnp.sum(residual**2, 1), jnp.sum(residual * change, 1)


def check(what: str, route: str, reported: float, independent: float, tolerance: float) -> Check:
    return Check(what, route, reported, independent, abs(reported - independent), tolerance)
