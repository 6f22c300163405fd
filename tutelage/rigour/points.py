"""Stationary points in balls: there is one in a box and only one, its index, and what the loss is there.

With x the weights that learn, B the directions `b_g` of the gauge at the middle of the box (`gauge`), and y one number
for each, the equations are

    grad L(x) + B y = 0,    B' (x - middle) = 0.

Krawczyk's operator maps a box into itself: there is one solution in it, and only one. There y is 0: the gradient is
orthogonal to the gauge at x, `b_g(x)`, so that `b_h(x).b_g(middle) y_g` sums to 0 for each h, and that matrix is shown
to have an inverse. So x is stationary, and no other point of the box with `B' (x - middle) = 0` is.

The Hessian is 0 along the gauge at x. `H + sum s b_g(x) b_g(x)'` with positive s has the eigenvalues of H across the
gauge, and positive ones: its inertia is that of the point.
"""

import time
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from flint import arb, arb_mat

from tutelage._checks import whole
from tutelage._errors import BadInput
from tutelage.problem.problem import Problem
from tutelage.rigour.balls import MOST_BITS, CannotEnclose, Number, ball, box, dot, exact, inside, precision
from tutelage.rigour.gauge import NEGLIGIBLE, gauge_of
from tutelage.rigour.loss import State, identity
from tutelage.rigour.losses import loss_of
from tutelage.rigour.networks import Ended, Given, Layers, Networks, networks_of
from tutelage.rigour.spectra import doubles, inertia

POLISHES = 12
NEAR = 0.1
"""How far Newton steps may go, relative to the weights: what they find farther away is another point."""


@dataclass(frozen=True)
class StationaryPoint:
    """A stationary point that was proved to exist.

    - `middle`, `radius`: it lies in this box, the only one there but for the gauge.
    - `index`: how many eigenvalues of the Hessian are negative, in all `dim` coordinates.
    - `least`: a number below all eigenvalues across the gauge.
    - `loss`: a ball with the loss.
    - `scalings`, `rotations`: how many directions of the gauge were divided out.
    - `distance`: between the middle and the weights that were given.
    """

    middle: Layers
    radius: Fraction
    index: int
    least: float
    loss: arb
    scalings: int
    rotations: int
    distance: float
    bits: int
    seconds: float

    @property
    def strict_minimum(self) -> bool:
        """Whether it is a local minimum, and across the gauge a strict one."""
        return self.index == 0 and self.least > 0

    def __repr__(self) -> str:
        kind = "a strict local minimum" if self.strict_minimum else f"a saddle of index {self.index}"
        divided = [f"{n} {what}" for n, what in ((self.scalings, "scalings"), (self.rotations, "rotations")) if n]
        return "\n".join([
            f"There is one stationary point within {float(self.radius):.0e} of the middle, {kind}.",
            f"Its loss is {self.loss.str(15)}; all eigenvalues of the Hessian{' across the gauge' if divided else ''} "
            f"are above {self.least:.6g}.",
            *([f"Divided out: {' and '.join(divided)}, which do not change the loss."] if divided else []),
            f"{self.distance:.1e} from the weights given; {self.bits} bits, {self.seconds:.1f} s.",
        ])  # fmt: skip


def stationary(
    problem: Problem,
    weights: Given | Ended | None = None,
    *,
    teacher: Given | None = None,
    seed: int = 0,
    radius: Number = "1e-30",
    bits: int = 192,
) -> StationaryPoint:
    """Prove that there is a stationary point near some weights, such as the last of a run, and what kind it is of.

    - `weights`, `teacher`: as in `tt.prove.descend`; without them those of the problem. A run gives its
      last ones (of the seed at that place) and its teacher.
    - `radius`: half the width of the box in each coordinate.

    Moving the scale of a unit between the layers and rotating what is orthogonal to all teachers do not change the
    loss. Such directions are found and divided out. Points that are not isolated across them, those where a kinked unit
    has a row of zero, and those that need more precision are refused with a sentence.

    ```python
    >>> import tutelage as tt
    >>> relu = tt.TwoLayer("relu", first=[[1.0, 0.0]], trains=("first",))
    >>> tt.prove.stationary(tt.Problem(tt.Gaussian(2), relu, relu), [[1.0001, 0.0]]).strict_minimum
    True

    ```
    """
    began = time.perf_counter()
    networks = networks_of(problem, "prove.stationary", weights, teacher, seed=seed)
    if not networks.trains:
        raise BadInput("prove.stationary: no layer is trained, so that every point is stationary.")
    used = _used(networks)
    size = exact("prove.stationary: radius", radius)
    if not 0 < size < 1:
        raise BadInput(f"prove.stationary: radius is {float(size):g}, but a number between 0 and 1 was expected.")
    with precision(whole("prove.stationary: bits", bits, least=64, most=MOST_BITS)):
        found = _Point(used, ball(size))
        middle, inverse = found.polished(found.column(found.begin))
        settled = found.gauge.settled(_exact(found.state(middle)).first)
        if settled != found.gauge:  # the point lies in the teachers' span, where the weights given did not
            found.gauge = settled
            middle, inverse = found.polished(middle)
        found.unique(middle, inverse)
        index, least = found.kind(middle)
        state = found.state(box(middle, found.radius))
        gauge = found.gauge
        return StationaryPoint(
            _exact(found.state(middle)), size, index, least, found.loss.value(state), len(gauge.scaling),
            gauge.rotations + len(gauge.free) * (used.dim - used.columns), float(found.distance(middle)), bits,
            time.perf_counter() - began,
        )  # fmt: skip


def _used(networks: Networks) -> Networks:
    """Without the coordinates in which no teacher and no student is anything: these are all alike."""
    students, teachers = networks.student.first, networks.teacher.first
    most = max(abs(x) for row in (*students, *teachers) for x in row)
    kept = [
        n
        for n in range(networks.columns)
        if any(row[n] for row in teachers) or any(abs(row[n]) > NEGLIGIBLE * most for row in students)
    ]
    kept = kept or [0]
    student, target = (
        layers._replace(first=tuple(tuple(row[n] for n in kept) for row in layers.first))
        for layers in (networks.student, networks.teacher)
    )
    return replace(networks, student=student, teacher=target)


def _exact(state: State) -> Layers:
    """Middles as fractions."""
    return Layers(*(tuple(tuple(_fraction(x) for x in row) for row in part.tolist()) for part in state))


def _fraction(value: arb) -> Fraction:
    number, power = value.mid().man_exp()
    return Fraction(int(number)) * Fraction(2) ** int(power)


class _Point:
    """The equations of a point, and what is shown of them."""

    def __init__(self, networks: Networks, radius: arb):
        self.networks, self.radius = networks, radius
        self.loss, self.gauge = loss_of(networks), gauge_of(networks)
        self.begin = self.loss.start()
        # All that moves: outgoing weights first, as in Hessians.
        self.moves = [layer for layer in ("second", "first") if layer in networks.trains]
        self.size = sum(getattr(self.begin, layer).nrows() * getattr(self.begin, layer).ncols() for layer in self.moves)

    def state(self, column: arb_mat) -> State:
        """Weights from a column of all that moves."""
        parts, entries = {"first": self.begin.first, "second": self.begin.second}, column.entries()
        for layer in self.moves:
            rows, columns = parts[layer].nrows(), parts[layer].ncols()
            parts[layer] = arb_mat(rows, columns, entries[: rows * columns])
            entries = entries[rows * columns :]
        return State(**parts)

    def column(self, state: State) -> arb_mat:
        """All that moves as a column."""
        entries = [x for layer in self.moves for x in getattr(state, layer).entries()]
        return arb_mat(len(entries), 1, entries)

    def across(self, state: State) -> arb_mat:
        """The gauge at some weights, a column for each direction."""
        columns = [self.column(each).entries() for each in self.gauge.directions(state, self.networks.trains)]
        return arb_mat([list(row) for row in zip(*columns, strict=True)]) if columns else arb_mat(self.size, 0)

    def equations(self, column: arb_mat, fixed: arb_mat) -> arb_mat:
        """The equations at the middle itself, with y = 0."""
        slope = self.column(self.loss.gradient(self.state(column))).entries()
        return arb_mat(self.size + fixed.ncols(), 1, [*slope, *[arb(0)] * fixed.ncols()])

    def derivative(self, column: arb_mat, fixed: arb_mat) -> arb_mat:
        """Of the equations: the Hessian, bordered by the gauge at the middle."""
        rows, border = self.loss.hessian(self.state(column)).tolist(), fixed.tolist()
        last = [[*row, *[arb(0)] * fixed.ncols()] for row in fixed.transpose().tolist()]
        return arb_mat([[*row, *more] for row, more in zip(rows, border, strict=True)] + last)

    def polished(self, begin: arb_mat) -> tuple[arb_mat, arb_mat]:
        """The middle of the box and an approximate inverse there, by Newton steps; nothing of it needs to be exact."""
        here, goal, before = begin.mid(), self.radius / 1000, np.inf
        reach = NEAR * np.linalg.norm(doubles(here))
        inverse = None
        for _ in range(POLISHES):
            fixed = self.across(self.state(here)).mid()
            if inverse is None or before > 1e-6:  # not yet where one inverse serves all steps
                inverse = _inverse(self.derivative(here, fixed))
            change = (inverse * self.equations(here, fixed)).entries()[: self.size]
            before = max(float(abs(x).upper()) for x in change)
            here = (here - arb_mat(self.size, 1, change)).mid()
            if not self.distance(here) < reach:
                break
            if before < goal:
                return here, inverse
        raise CannotEnclose(
            "No stationary point was found near these weights: come closer first; or it is not isolated."
        )

    def unique(self, middle: arb_mat, inverse: arb_mat) -> None:
        """Krawczyk's test, and that y is 0."""
        fixed = self.across(self.state(middle)).mid()
        wide = box(arb_mat(middle.nrows() + fixed.ncols(), 1), self.radius)
        derivative = self.derivative(box(middle, self.radius), fixed)
        rest = (identity(wide.nrows()) - inverse * derivative) * wide
        image = rest - inverse * self.equations(middle, fixed)
        if not all(inside(one, other) for one, other in zip(image.entries(), wide.entries(), strict=True)):
            raise CannotEnclose(
                "The box is not mapped into itself: the point may not be isolated, or the box is too large or small."
            )
        if fixed.ncols():
            turned = fixed.transpose() * self.across(self.state(box(middle, self.radius)))
            size = turned.det()
            if not (size > 0 or size < 0):
                raise CannotEnclose(
                    "Rotations outside the teachers' span depend on each other there; give the weights in coordinates "
                    "of which the students use as few as they can."
                )

    def kind(self, middle: arb_mat) -> tuple[int, float]:
        """The index and a lower bound of all eigenvalues across the gauge, in all coordinates."""
        state = self.state(box(middle, self.radius))
        found = inertia(_raised(self.loss.hessian(state), self.across(state)))
        more = self.networks.dim - self.networks.columns if "first" in self.networks.trains else 0
        if not more:
            return found.negative, found.least
        beyond = inertia(_raised(self.loss.outside(state), self.gauge.outside(state)))
        return found.negative + more * beyond.negative, min(found.least, beyond.least)

    def distance(self, middle: arb_mat) -> arb:
        """From the weights given."""
        change = (middle - self.column(self.begin)).entries()
        return dot(change, change).sqrt().upper()


def _raised(hessian: arb_mat, gauge: arb_mat) -> arb_mat:
    """The Hessian with positive curvature along the gauge, of the size of its own."""
    if not gauge.ncols():
        return hessian
    size, length = _largest(hessian), _largest(gauge)
    return hessian + gauge * gauge.transpose() * (arb(size) / arb(length) / arb(length))


def _largest(matrix: arb_mat) -> float:
    return max((float(abs(x).upper()) for x in matrix.entries()), default=0.0)


def _inverse(matrix: arb_mat) -> arb_mat:
    """An approximate inverse, of doubles that are taken as exact."""
    try:
        return arb_mat(np.linalg.inv(doubles(matrix)).tolist())
    except np.linalg.LinAlgError:
        raise CannotEnclose("The Hessian is singular there, so that the point is not isolated.") from None
