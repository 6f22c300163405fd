"""Pruning: units of a trained network taken out one by one, or two by two, while the risk does not rise.

The risk is `R = E|f - f*|^2`, without the factor 1/2 of the loss. It is a quadratic form in the output weights, so the
inner products of the units (their Gram matrix) say exactly what every removal changes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import instance, real, table, whole
from tutelage._errors import BadInput
from tutelage._types import Numbers
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.empirical import EmpiricalOracle
from tutelage.oracle.kernels.gated import Moments, Overlaps, overlaps
from tutelage.oracle.mixture import EmpiricalMixture, Gram, MixtureOracle, units
from tutelage.oracle.population import PopulationOracle
from tutelage.problem.hidden import GatedHidden
from tutelage.problem.networks import Weights
from tutelage.trajectory.result import Run


@dataclass(frozen=True)
class Pruning:
    """What pruning did.

    - `steps`: the units removed at each step, one or two; `kept`: the units that are left, in rising order.
    - `risk`: `E|f_S - f*|^2` before the first step and after each.
    - `refused`: the change of the risk by the best step that was not taken; inf if nothing was left to remove.
    """

    kept: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    risk: Numbers
    refused: float

    @property
    def removed(self) -> tuple[int, ...]:
        """The removed units, in order."""
        return tuple(unit for step in self.steps for unit in step)

    @property
    def tau(self) -> int:
        """How many units were removed when it stopped."""
        return len(self.removed)

    @property
    def drops(self) -> Numbers:
        """By how much each step lowered the risk."""
        return -np.diff(self.risk)


class Quadratic(NamedTuple):
    """The risk of a set of kept units: `sum_ir own_ir - 2 sum_i taught_i + constant`, output weights included."""

    own: Numbers
    taught: Numbers
    constant: float

    def risk(self, kept: Iterable[int] | NDArray[np.integer]) -> float:
        """`R` with these units, summed anew."""
        kept = list(kept)
        return float(self.own[np.ix_(kept, kept)].sum() - 2 * self.taught[kept].sum() + self.constant)

    @property
    def changes(self) -> Numbers:
        """The change of the risk by removing one of all units: `H_rr - 2 sum_i H_ri + 2 beta_r`."""
        return np.diag(self.own) - 2 * self.own.sum(1) + 2 * self.taught


def prune(
    gram: Gram,
    *,
    second: ArrayLike | None = None,
    target: ArrayLike | None = None,
    order: int = 1,
    tolerance: float = 0.0,
) -> Pruning:
    """Remove the unit whose removal leaves the least risk, again and again, while the risk falls.

    - `gram`: inner products of the units, students and teachers, as from `MixtureOracle.gram` or `gram_of`.
    - `second`, `target`: output weights of students and teachers, (unit,) or (unit, output); 1 if not given.
    - `order=2`: when no single removal is accepted, try all pairs. Two units that cancel each other leave only so.
    - `tolerance`: accept a step that raises the risk by less than this.

    ```python
    >>> import numpy as np
    >>> from tutelage.analysis.pruning import prune
    >>> from tutelage.oracle.mixture import Gram
    >>> own = np.array([[1.0, 0, 0], [0, 1, -1], [0, -1, 1]])  # the first is the teacher; the others cancel each other
    >>> gram = Gram(own, np.array([[1.0], [0], [0]]), np.eye(1))
    >>> prune(gram).kept, prune(gram, order=2, tolerance=1e-9).kept
    ((0, 1, 2), (0,))

    ```
    """
    order = whole("prune: order", order, least=1, most=2)  # single units, or pairs too
    tolerance = real("prune: tolerance", tolerance, least=0)
    form = quadratic(gram, second, target)
    left, change = np.ones(len(form.own), bool), form.changes.copy()
    steps: list[tuple[int, ...]] = []
    risk = [form.risk(np.flatnonzero(left))]
    while True:
        step, rise = _single(change, left)
        if rise >= tolerance and order == 2 and left.sum() > 1:
            pair = _pair(form.own, change, left)
            step, rise = pair if pair[1] < max(rise, tolerance) else (step, rise)
        if not rise < tolerance:
            break
        for unit in step:
            left[unit] = False
            change += 2 * form.own[unit]
        steps.append(step)
        risk.append(risk[-1] + rise)
    return Pruning(tuple(map(int, np.flatnonzero(left))), tuple(steps), np.array(risk), rise)


def _single(change: Numbers, left: NDArray[np.bool_]) -> tuple[tuple[int, ...], float]:
    if not left.any():
        return (), np.inf
    best = int(np.argmin(np.where(left, change, np.inf)))
    return (best,), float(change[best])


def _pair(own: Numbers, change: Numbers, left: NDArray[np.bool_]) -> tuple[tuple[int, ...], float]:
    units = np.flatnonzero(left)
    both = change[units][:, None] + change[units] + 2 * own[np.ix_(units, units)]
    np.fill_diagonal(both, np.inf)
    first, other = np.unravel_index(np.argmin(both), both.shape)
    return (int(units[first]), int(units[other])), float(both[first, other])


def quadratic(gram: Gram, second: ArrayLike | None = None, target: ArrayLike | None = None) -> Quadratic:
    """The risk as a sum over kept units, from the inner products of units and their output weights."""
    instance("prune: gram", gram, Gram, "a Gram, such as gram_of gives,")
    own, cross, teachers = (table("prune: a part of gram", part, "a matrix of numbers", axes=(2,)) for part in gram)
    out = _outgoing("second", second, len(own))
    wanted = _outgoing("target", target, len(teachers))
    if cross.shape != (len(own), len(teachers)) or out.shape[1] != wanted.shape[1]:
        raise BadInput(
            f"prune: {len(own)} students with {out.shape[1]} outputs and {len(teachers)} teachers with "
            f"{wanted.shape[1]} do not fit inner products of shape {cross.shape}; give a row per student."
        )
    return Quadratic(
        (out @ out.T) * own, ((out @ wanted.T) * cross).sum(1), float(((wanted @ wanted.T) * teachers).sum())
    )


def _outgoing(name: str, given: ArrayLike | None, units: int) -> Numbers:
    wanted = f"output weights of {units} units"
    values = np.ones((units, 1)) if given is None else table(f"prune: {name}", given, wanted, axes=(1, 2))
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != units:
        raise BadInput(f"prune: {name} has shape {values.shape}, but output weights of {units} units were expected.")
    return values


def gram_of(oracle: AbstractOracle, weights: Weights) -> tuple[Gram, Float[jax.Array, "teacher output"]]:
    """Inner products of all units as this loss sees them, and the output weights of the teachers.

    On a data set they are means over its samples, and each output's labels are a teacher.
    """
    if isinstance(oracle, MixtureOracle):
        return _mixture_gram(oracle, weights), oracle.target.second
    if isinstance(oracle, PopulationOracle):
        first, taught = weights.first, oracle.target.first
        student, teacher = oracle.student, oracle.teacher
        return Gram(
            oracle.kernel(student, student).value(first, first),
            oracle.kernel(student, teacher).value(first, taught),
            oracle.kernel(teacher, teacher).value(taught, taught),
        ), oracle.target.second
    if isinstance(oracle, EmpiricalOracle | EmpiricalMixture):
        seen = weights.first @ oracle.x.T
        hidden = oracle.student(seen) if isinstance(oracle, EmpiricalOracle) else oracle.student(weights.first, seen)
        parts = hidden @ hidden.T, hidden @ oracle.y, oracle.y.T @ oracle.y
        return Gram(*(part / len(oracle.x) for part in parts)), jnp.eye(oracle.y.shape[1])
    raise BadInput(f"prune_run: a {type(oracle).__name__} has no inner products of units; use a population loss.")


@eqx.filter_jit
def _mixture_gram(oracle: MixtureOracle, weights: Weights) -> Gram:
    return oracle.gram(weights)


def prune_run(
    run: Run, *, at: float | None = None, seed: int | None = None, order: int = 1, tolerance: float = 0.0
) -> Pruning:
    """Prune what a run had learned at a time.

    - `at`: the recorded time nearest to this; where the seed ended if None. The run needs its weights (`weights=True`)
      or, for the population loss of a mixture of experts, all its overlaps, which are recorded unless left out.
    - `seed`: which seed of the run, its first if None; `order`, `tolerance`: as in `prune`.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.analysis.pruning import prune_run
    >>> teacher = tt.TwoLayer("relu", first=[[1.0, 0.0]])
    >>> student = tt.TwoLayer("relu", first=[[0.9, 0.0], [0.0, 0.5]])
    >>> run = tt.descend(tt.Problem(tt.Gaussian(100), teacher, student), step=0.1, steps=10)
    >>> prune_run(run).kept  # the first had nearly learned the teacher
    (0,)

    ```
    """
    instance("prune_run: run", run, Run, "a run, such as tt.run gives,")
    seeds = [int(number) for number in run.dataset["seed"].values]
    if seed is not None and seed not in seeds:
        raise BadInput(f"prune_run: there is no seed {seed} in this run; it has {', '.join(map(str, seeds))}.")
    which = 0 if seed is None else seeds.index(seed)
    gram, second, target = _seen(run, which, at)
    return prune(gram, second=second, target=target, order=order, tolerance=tolerance)


def _seen(run: Run, which: int, at: float | None) -> tuple[Gram, ArrayLike, ArrayLike]:
    """Inner products and output weights of a seed at the nearest recorded time, or where it stopped."""
    at = None if at is None else real("prune_run: at", at, least=0)
    oracle = (jax.tree.map(lambda leaf: leaf[which], run.oracle) if run.batched else run.oracle).unpenalised
    data = run.dataset
    if at is None or at >= data["stop_time"].values[which]:
        weights = jax.tree.map(lambda leaf: leaf[which], run.final)
        gram, target = gram_of(oracle, weights)
        return gram, weights.second, target
    row = int(np.argmin(np.abs(data["time"].values[: int(data["recorded"].values[which])] - at)))
    if "weights_first" in data:
        weights = Weights(*(jnp.asarray(data[name].values[which, row]) for name in ("weights_first", "weights_second")))
        gram, target = gram_of(oracle, weights)
        return gram, weights.second, target
    if isinstance(oracle, MixtureOracle) and all(name in data for name in (*COSINES, "second")):
        gram = _gram_of_cosines(oracle, [data[name].values[which, row] for name in COSINES])
        return gram, data["second"].values[which, row], oracle.target.second
    raise BadInput(
        "prune_run: this run did not record its weights; run it with record=tt.Record(weights=True), or leave out at."
    )


COSINES = (
    *("overlap_ss_router", "overlap_ss_expert", "overlap_ss_cross"),
    *("overlap_router", "overlap_expert", "overlap_router_expert", "overlap_expert_router"),
)


@eqx.filter_jit
def _gram_of_cosines(oracle: MixtureOracle, cosines: list[ArrayLike]) -> Gram:
    """What `MixtureOracle.gram` gives, from the recorded overlaps in place of the vectors."""
    routers, experts, cross, router, expert, router_expert, expert_router = map(jnp.asarray, cosines)
    taught = units(oracle.target.first)
    among = overlaps(taught, taught)
    own = jnp.diag(cross)[:, None]
    student, teacher = oracle.student, oracle.teacher
    return Gram(
        _moments(student, student, Overlaps(routers, experts, own, cross, cross.T, own.T)),
        _moments(student, teacher, Overlaps(router, expert, own, router_expert, expert_router, among.own_right)),
        _moments(teacher, teacher, among),
    )


def _moments(left: GatedHidden, right: GatedHidden, seen: Overlaps) -> jax.Array:
    degrees = left.degree, right.degree
    return Moments((left.gate, right.gate), degrees, seen, sum(degrees))(0, 0, *degrees)
