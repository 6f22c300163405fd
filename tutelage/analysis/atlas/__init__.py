"""An atlas of stationary points: which there are, of what kind and symmetry, and how often training ends at each.

From many starts a flow descends until its gradient is small, and Newton's method finds the stationary point beside it
(`polish`). Points that are the same up to the order and signs of units are one (`symmetry`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tutelage._errors import BadInput
from tutelage._extensions import extension
from tutelage._plain import number
from tutelage._types import Numbers
from tutelage.analysis.atlas.polish import Polished, polish
from tutelage.analysis.atlas.proved import proved, told
from tutelage.analysis.atlas.symmetry import Isotropy, Shape, isotropy, parity, same
from tutelage.analysis.claims import Interval, binomial_interval
from tutelage.analysis.landscape import Kind, classify, spectrum
from tutelage.analysis.landscape.stationary import solve
from tutelage.analysis.panels import Field, Panel, Series, Sheet, line
from tutelage.dynamics.flow import Flow
from tutelage.dynamics.record import Record, Stop
from tutelage.oracle.population import PopulationOracle
from tutelage.problem.activations import Activation
from tutelage.problem.networks import TwoLayer, Weights, host_weights
from tutelage.problem.problem import Problem, Start, one_kind, plain_networks
from tutelage.rigour.points import StationaryPoint
from tutelage.trajectory.asked import Asked
from tutelage.trajectory.result import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLOCK = 250
"""Starts of one run: an atlas of more starts takes up the runs of one with fewer."""
TOLERANCE = 1e-13
"""A gradient at which a point is stationary, for weights of length up to one, and in proportion beyond."""
FLAT = 1e-8
"""Eigenvalues of the Hessian within this part of the largest count as zero."""
LEVEL = 1e-9
"""Two losses within this, as a part of that of the zero network, may be of one point."""
ROUGH, FINE = 1e-5, 1e-10
"""Gradients at which a descent hands over to Newton, as parts of the length of the weights: first, and where Newton
then found no minimum nearby, so that the descent may have been passing a saddle."""
CONFIDENCE = 0.95
MOST = 12
"""Points whose curvature the figure shows."""
By = Literal["flow", "newton"]


@dataclass(frozen=True)
class Place:
    """A stationary point, or a valley of them, of which `weights` is a member.

    - `loss`, `gradient`: there; `least`: the smallest eigenvalue of the Hessian that is not zero.
    - `kind`: minimum, strict saddle or non-strict saddle; `lowest`: a loss of zero, below which there is nothing.
    - `index`: how many eigenvalues are negative, in all input dimensions; `zero`: how many are zero, of which `moves`
      are explained by symmetries that go on continuously: turns of the space outside the teachers, and scale handed
      from one layer to the other. What is left makes a `valley`.
    - `isotropy`: the exchanges of units that leave it as it is.
    - `count`: how many starts came here; `frequency` with its interval.
    """

    loss: float
    gradient: float
    kind: Kind
    lowest: bool
    index: int
    zero: int
    moves: int
    least: float
    isotropy: Isotropy
    count: int
    frequency: float
    interval: Interval
    weights: Weights = field(repr=False)
    eigenvalues: Numbers = field(repr=False)
    """Of the Hessian in the frame."""
    proved: StationaryPoint | str | None = field(default=None, repr=False)
    """On request the point that is proved to be here, or why there is no proof."""

    @property
    def valley(self) -> int:
        """The zero eigenvalues that no symmetry explains."""
        return self.zero - self.moves

    @property
    def spurious(self) -> bool:
        """A minimum that is not the lowest."""
        return self.kind is Kind.MINIMUM and not self.lowest

    @property
    def title(self) -> str:
        """What it is, in a word or two."""
        if self.kind is not Kind.MINIMUM:
            return str(self.kind)
        return "global minimum" if self.lowest else "minimum"


@dataclass(frozen=True)
class Atlas:
    """Stationary points, the lowest first, and how often each was reached. It prints as a table, and draws itself.

    `unresolved` starts ended at no stationary point: the descent was not over, or Newton did not reach a gradient of
    1e-13 beside it. They are part of `starts`, of which frequencies are parts.
    """

    places: tuple[Place, ...]
    starts: int
    unresolved: int
    by: By
    target: Weights = field(repr=False)

    @property
    def spurious(self) -> float:
        """The part of the starts that ended in minima that are not the lowest."""
        return self._spurious / self.starts

    @property
    def spurious_interval(self) -> Interval:
        """What is known of its probability, at 95 %."""
        return binomial_interval(self._spurious, self.starts, CONFIDENCE)

    @property
    def _spurious(self) -> int:
        return sum(place.count for place in self.places if place.spurious)

    def overlaps(self, place: Place) -> Numbers:
        """Inner products (student, teacher), with the students in the order of the teachers that they are like."""
        from scipy.optimize import linear_sum_assignment

        products = np.asarray(place.weights.first) @ np.asarray(self.target.first).T
        teachers = [unit for orbit in sorted(place.isotropy.teachers, key=len, reverse=True) for unit in orbit]
        products = products[:, teachers]
        rows, columns = linear_sum_assignment(-np.abs(products))
        first = rows[np.argsort(columns)]
        return products[np.concatenate([first, np.setdiff1d(np.arange(len(products)), first)])]

    def __str__(self) -> str:
        head = ("", "loss", "kind", "index", "zero", "symmetry", "orbits", "starts", "frequency [95 %]", "proved")
        rows = [head, *(self._row(number, place) for number, place in enumerate(self.places))]
        shown = len(head) - all(place.proved is None for place in self.places)
        widths = [max(len(row[column]) for row in rows) for column in range(shown)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows
        ]
        return "\n".join([*lines, self.sentence])

    def _row(self, place: int, here: Place) -> tuple[str, ...]:
        zero = f"{here.zero}" if not here.valley else f"{here.zero} ({here.valley} of a valley)"
        often = f"{here.frequency:.3g} [{here.interval.low:.2g}, {here.interval.high:.2g}]"
        return (
            str(place + 1), number(here.loss, 6), here.title, str(here.index), zero, here.isotropy.name,
            here.isotropy.parts, str(here.count), often, told(here.proved),
        )  # fmt: skip

    @property
    def sentence(self) -> str:
        """What was found, in a sentence."""
        way = "a flow" if self.by == "flow" else "the solver for zeros of the gradient"
        ends = self.spurious_interval
        return (
            f"{self.starts} starts of {way}: {len(self.places)} points, {self.unresolved} starts unresolved; "
            f"{self.spurious:.3g} [{ends.low:.2g}, {ends.high:.2g}] ended in minima that are not the lowest."
        )

    def sheet(self) -> Sheet:
        """The figure as data: loss and frequency of each point, its curvatures, and the lowest spurious one itself."""
        panels = [_frequencies(self.places), _curvatures(self.places)]
        shown = next((place for place in self.places if place.spurious), self.places[0] if self.places else None)
        if shown is not None:
            panels.append(self._portrait(shown))
        return Sheet("Stationary points", tuple(panels), columns=3, caption=self.sentence)

    def _portrait(self, place: Place) -> Panel:
        values = self.overlaps(place)
        students, teachers = (np.arange(1.0, count + 1) for count in values.shape)
        size = float(np.max(np.abs(values)))
        table = Field(teachers, students, values, "inner product", cells=True, ends=(-size, size))
        title = f"Point {self.places.index(place) + 1}: {place.title}, {place.isotropy.name}"
        return Panel(title, "teacher", "student", fields=(table,))

    def plot(self) -> "Figure":
        """The figure, drawn by matplotlib."""
        figure: Figure = extension("draw")(self.sheet())
        return figure


def _frequencies(places: tuple[Place, ...]) -> Panel:
    """Loss against frequency, a colour for each kind."""
    series = []
    for colour, title in enumerate(dict.fromkeys(place.title for place in places)):
        here = [place for place in places if place.title == title]
        ends = [np.array([getattr(place.interval, end) for place in here]) for end in ("low", "high")]
        often, loss = np.array([place.frequency for place in here]), [max(place.loss, 0.0) for place in here]
        series.append(line(loss, often, title, kind="points", colour=colour, low=ends[0], high=ends[1]))
    return Panel("How often", "loss", "part of the starts", tuple(series), yscale="log")


def _curvatures(places: tuple[Place, ...]) -> Panel:
    """The eigenvalues of each point."""
    series = tuple(_levels(at, place.eigenvalues) for at, place in enumerate(places[:MOST]))
    names = tuple(str(at + 1) for at in range(len(series)))
    ends = (-0.6, len(series) - 0.4)
    return Panel("Curvature", "point", "eigenvalue of the Hessian", series, xlim=ends, names=names)


def _levels(at: int, values: Numbers) -> Series:
    return line(np.full(len(values), at), values, kind="points", colour=0, marker="_")


def explore(
    problem: Problem,
    seeds: Sequence[int],
    ask: Callable[[Asked], Run],
    *,
    until: float,
    by: By,
    prove: bool = False,
) -> Atlas:
    """The atlas from these starts; `ask` gives the run that is asked for (`tutelage.atlas` asks a store)."""
    student, teacher = plain_networks(problem, "atlas")
    if not student.trains:
        raise BadInput("atlas: the student trains no layer, so that every point is stationary; name one in trains.")
    parts, oracle = [], None
    for begin in range(0, len(seeds), BLOCK):
        some = tuple(seeds[begin : begin + BLOCK])
        oracle, found = (_descended if by == "flow" else _solved)(problem, some, ask, until)
        parts.append(found)
    assert oracle is not None
    found = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    atlas = _Gathering(problem, student, teacher, oracle).atlas(found, by)
    if not prove:
        return atlas
    places = [replace(place, proved=proved(problem, atlas.target, place.weights, place.loss)) for place in atlas.places]
    return replace(atlas, places=tuple(places))


def _descended(
    problem: Problem, seeds: tuple[int, ...], ask: Callable[[Asked], Run], until: float
) -> tuple[PopulationOracle, Polished]:
    """Where a flow ends. What Newton did not bring to a minimum goes on to a smaller gradient first."""
    record = Record(60, observables=("loss", "gradient_norm"))
    run = ask(Asked(problem, Flow(until, rtol=1e-5), seeds, record, Stop(gradient=ROUGH)))
    oracle = run.oracle
    assert isinstance(oracle, PopulationOracle)
    found = polish(oracle.quick(), run.final, problem.student.layers)
    loose = np.flatnonzero(~(settled(found) & (_negative(found) == 0)))
    if not len(loose):
        return oracle, found
    left = Start(run.teacher, jax.tree.map(lambda leaf: jnp.asarray(leaf)[loose], run.final))
    chosen = tuple(seeds[each] for each in loose)
    on = ask(Asked(problem, Flow(until), chosen, record, Stop(gradient=FINE), left))
    again = polish(oracle.quick(), on.final, problem.student.layers)

    def put(leaf: NDArray[np.generic], new: NDArray[np.generic]) -> NDArray[np.generic]:
        leaf = np.array(leaf)
        leaf[loose] = new
        return leaf

    return oracle, jax.tree.map(put, found, again)


def _solved(
    problem: Problem, seeds: tuple[int, ...], ask: Callable[[Asked], Run], until: float
) -> tuple[PopulationOracle, Polished]:
    """Zeros of the gradient from the starts themselves: saddles as well as minima."""
    del ask, until
    prepared = Flow(1.0).prepare(problem, list(seeds))
    oracle, trains = prepared.oracle, problem.student.layers
    assert isinstance(oracle, PopulationOracle)
    ends, _, _ = solve(oracle.quick(), prepared.start, trains)
    found = polish(oracle.quick(), ends, trains)
    return oracle, found


def settled(found: Polished) -> NDArray[np.bool_]:
    """Which points are stationary, and where the descent had led."""
    length = np.sqrt(sum(np.sum(np.asarray(leaf) ** 2, axis=(1, 2)) for leaf in jax.tree.leaves(found.weights)))
    return (found.slope <= TOLERANCE * np.maximum(1.0, length)) & found.near


def _negative(found: Polished) -> NDArray[np.int64]:
    largest = np.max(np.abs(found.eigenvalues), axis=1, keepdims=True)
    return np.sum(found.eigenvalues < -FLAT * np.maximum(largest, 1.0), axis=1)


@dataclass(frozen=True)
class _Gathering:
    """Points sorted into places."""

    problem: Problem
    student: TwoLayer
    teacher: TwoLayer
    oracle: PopulationOracle

    def atlas(self, found: Polished, by: By) -> Atlas:
        starts = len(found.loss)
        good = np.flatnonzero(settled(found))
        groups: list[list[int]] = []
        floor = max(float(self.oracle.floor()), 1e-300)
        shapes: dict[int, Shape] = {}
        for each in good[np.argsort(found.loss[good], kind="stable")]:
            shapes[each] = self._shape(found, each)
            for group in reversed(groups):
                first = group[0]
                if found.loss[each] - found.loss[first] > LEVEL * floor:
                    groups.append([each])
                    break
                if same(shapes[first], shapes[each]) or self._one(found, first, each):
                    group.append(each)
                    break
            else:
                groups.append([each])
        places = [self._place(found, group, starts, floor, shapes[group[0]]) for group in groups]
        places.sort(key=lambda place: (round(place.loss / floor / LEVEL), -place.count))
        return Atlas(tuple(places), starts, starts - len(good), by, self.oracle.target)

    def _shape(self, found: Polished, each: int) -> Shape:
        weights, target = found.at(each).weights, self.oracle.target
        parities = parity(one_kind(self.student.activation)), parity(one_kind(self.teacher.activation))
        if self._handed:
            weights, target = (_balanced(side, self._handed) for side in (weights, target))
        return Shape.of(weights, target, parities)

    @property
    def _handed(self) -> float:
        """The degree of a homogeneous student whose layers both train: scale may go from one to the other."""
        return homogeneity(one_kind(self.student.activation)) if len(self.student.trains) == 2 else 0.0

    def _one(self, found: Polished, first: int, other: int) -> bool:
        """Whether two points of one loss are of one valley: a flat direction that no symmetry explains at both."""
        zero = [self._counts(found, each)[:2] for each in (first, other)]
        return zero[0] == zero[1] and zero[0][1] > self._moves(found.at(first).weights)

    def _counts(self, found: Polished, each: int) -> tuple[int, int, float]:
        """How many eigenvalues are negative and zero in all input dimensions, and the least of the others."""
        weights, trains = found.at(each).weights, self.student.trains
        values = found.eigenvalues[each]
        columns = weights.first.shape[1]
        outside = self.problem.inputs.dim - columns if "first" in trains else 0
        size = FLAT * max(1.0, float(np.max(np.abs(values))))
        negative, zero = int(np.sum(values < -size)), int(np.sum(np.abs(values) <= size))
        regular = values[np.abs(values) > size]
        least = float(regular[0]) if len(regular) else 0.0
        if not outside:
            return negative, zero, least
        more = spectrum(self.oracle, jax.device_put(weights), dim=columns + 1, trains=trains).eigenvalues
        sums = [int(np.sum(more < -size)) - negative, int(np.sum(np.abs(more) <= size)) - zero]
        beyond = more[np.abs(more) > size]
        return negative + outside * sums[0], zero + outside * sums[1], float(beyond[0]) if len(beyond) else least

    def _moves(self, weights: Weights) -> int:
        """Dimensions of the orbit of a point under turns outside the teachers' span, and under handing over scale."""
        first, taught = np.asarray(weights.first), np.asarray(self.oracle.target.first)
        basis = np.linalg.svd(taught)[2][: np.linalg.matrix_rank(taught)]
        turned = 0
        if "first" in self.student.trains:
            beyond = first - first @ basis.T @ basis
            length = max(1.0, float(np.linalg.norm(first)))
            rank = int(np.sum(np.linalg.svd(beyond, compute_uv=False) > 1e-6 * length))
            turned = rank * (self.problem.inputs.dim - len(basis)) - rank * (rank + 1) // 2
        live = np.any(first != 0, axis=1) & np.any(np.asarray(weights.second) != 0, axis=1)
        return turned + (int(np.sum(live)) if self._handed else 0)

    def _place(self, found: Polished, group: list[int], starts: int, floor: float, shape: Shape) -> Place:
        best = min(group, key=lambda each: float(found.slope[each]))
        weights: Weights = jax.tree.map(jnp.asarray, found.at(best).weights)
        negative, zero, least = self._counts(found, best)
        loss = float(self.oracle.loss(weights))
        lowest = loss <= 1e-13 * floor
        moves = min(self._moves(weights), zero)
        kind = Kind.STRICT_SADDLE if negative else Kind.MINIMUM
        if not negative and zero > moves and not lowest:
            kind = classify(self.oracle, weights, trains=self.student.trains, polish=False).kind
        return Place(
            loss, float(found.slope[best]), kind, lowest, negative, zero, moves, least, isotropy(shape), len(group),
            len(group) / starts, binomial_interval(len(group), starts, CONFIDENCE), weights,
            found.eigenvalues[best],
        )  # fmt: skip


def homogeneity(activation: Activation) -> float:
    """The power `p` with `s(c z) = c^p s(z)` for every positive `c`; 0 if there is none.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.analysis.atlas import homogeneity
    >>> [homogeneity(tt.activation(name)) for name in ("relu", "abs", "erf", "he2")]
    [1.0, 1.0, 0.0, 0.0]

    ```
    """
    z = np.concatenate([-np.linspace(0.1, 3.0, 32), np.linspace(0.1, 3.0, 32)])
    one, two = np.asarray(activation(z)), np.asarray(activation(2 * z))
    power = round(float(np.log2(np.sum(np.abs(two)) / np.sum(np.abs(one)))), 9) if np.any(one) else 0.0
    return power if power > 0 and np.allclose(two, 2.0**power * one, rtol=1e-12, atol=0) else 0.0


def _balanced(weights: Weights, power: float) -> Weights:
    """The same network with incoming rows of length one."""
    first, second = np.asarray(weights.first), np.asarray(weights.second)
    norm = np.linalg.norm(first, axis=1, keepdims=True)
    return host_weights(first / np.where(norm > 0, norm, 1.0), second * norm**power)
