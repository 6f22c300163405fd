"""The population loss `1/2 E|f - f*|^2` with its gradient and its Hessian, enclosed."""

from collections.abc import Callable
from typing import NamedTuple

from flint import arb, arb_mat, arb_series

from tutelage.rigour import series
from tutelage.rigour.balls import balls, dot, known
from tutelage.rigour.kernels import Kernel, Meeting, Row, area, meeting
from tutelage.rigour.networks import Layers, Networks

Rows = list[list[arb]]
Add = Callable[[arb_mat, int, int], None]


class State(NamedTuple):
    """Weights as balls: incoming (unit, coordinate) and outgoing (unit, output). Also a gradient."""

    first: arb_mat
    second: arb_mat


class Loss:
    """The loss of a student whose teacher is fixed, at the precision at which it was made.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.rigour.loss import Loss
    >>> from tutelage.rigour.networks import networks_of
    >>> relu = tt.TwoLayer("relu", first=[[1.0, 0.0]])
    >>> loss = Loss(networks_of(tt.Problem(tt.Gaussian(2), relu, relu), "example", start=[[2, 0]]))
    >>> loss.value(loss.start()).contains(0.25)  # (2 - 1)^2 E[relu(z)^2] / 2
    True

    ```
    """

    def __init__(self, networks: Networks):
        self.networks = networks
        s, t = networks.student_form, networks.teacher_form
        self.within, self.across = Kernel(s, s), Kernel(s, t)
        self.teach(_state(networks.teacher))

    def teach(self, target: State) -> None:
        """Take another teacher, such as one whose weights are known as balls only."""
        t = self.networks.teacher_form
        self.target, self._rows = target, target.first.tolist()
        self._squares = [dot(row, row) for row in self._rows]
        self._floor = _inner(target.second, _table(Kernel(t, t), self._rows) * target.second) / 2

    def start(self) -> State:
        """The student's given weights."""
        return _state(self.networks.student)

    def value(self, state: State) -> arb:
        """The loss."""
        rows, second = state.first.tolist(), state.second
        own = _inner(second, _table(self.within, rows) * second) / 2
        return self._floor + own - _inner(second, self._values(rows) * self.target.second)

    def gradient(self, state: State) -> State:
        """The gradient in both layers; that of a layer that is not trained is 0."""
        first, second = state
        trains = self.networks.trains
        return State(
            self._first(state) if "first" in trains else arb_mat(first.nrows(), first.ncols()),
            self._second(state) if "second" in trains else arb_mat(second.nrows(), second.ncols()),
        )

    def _first(self, state: State) -> arb_mat:
        return arb_mat(self.factors(state)) * arb_mat(state.first.tolist() + self._rows)

    def factors(self, state: State) -> list[list[arb]]:
        """The incoming gradient is this matrix times the rows of students and then of teachers."""
        first, second = state
        rows, targets = first.tolist(), self._rows
        students, teachers = len(rows), len(targets)
        inner, taught = first * first.transpose(), first * self.target.first.transpose()
        own, other = second * second.transpose(), second * self.target.second.transpose()
        none = arb(0)
        found = [[none] * (students + teachers) for _ in rows]
        for i in range(students):
            p = inner[i, i]
            found[i][i] += own[i, i] * self.within.alone(p).slope[0]
            for j in range(i):
                q, c = inner[j, j], inner[i, j]
                met = Meeting(p, q, c, area(p, q, c, rows[i], rows[j]) if self.within.bent else none)
                here, there = self.within.both_slopes(met)
                weight = own[i, j]
                found[i][i] += weight * here.onto_a
                found[i][j] = weight * here.onto_b
                found[j][j] += weight * there.onto_a
                found[j][i] = weight * there.onto_b
            for j in range(teachers):
                q, c = self._squares[j], taught[i, j]
                met = Meeting(p, q, c, area(p, q, c, rows[i], targets[j]) if self.across.bent else none)
                here = self.across.slopes(met)
                weight = -other[i, j]
                found[i][i] += weight * here.onto_a
                found[i][students + j] = weight * here.onto_b
        return found

    def along(self, first: list[list[arb_series]], second: list[list[arb_series]]) -> series.Slope:
        """The gradient where weights are power series in time, whichever layers learn."""
        within, across = self.within, self.across
        targets = [[arb_series([x]) for x in row] for row in self._rows]
        taught = [[arb_series([x]) for x in row] for row in self.target.second.tolist()]
        slope, other = [], []
        for i, (a, own) in enumerate(zip(first, second, strict=True)):
            row, outer = [arb_series([0])] * len(a), [arb_series([0])] * len(own)
            sides = [(within, b, out, 1, i == j) for j, (b, out) in enumerate(zip(first, second, strict=True))]
            sides += [(across, b, out, -1, False) for b, out in zip(targets, taught, strict=True)]
            for kernel, b, out, sign, same in sides:
                weight = sign * series.inner(own, out)
                value, change = series.alone(kernel, a) if same else series.both(kernel, a, b)
                row = [x + weight * y for x, y in zip(row, change, strict=True)]
                outer = [x + sign * value * y for x, y in zip(outer, out, strict=True)]
            slope.append(row)
            other.append(outer)
        return series.Slope(slope, other)

    def _second(self, state: State) -> arb_mat:
        rows = state.first.tolist()
        return _table(self.within, rows) * state.second - self._values(rows) * self.target.second

    def _values(self, rows: Rows) -> arb_mat:
        """The kernel of students and teachers."""
        return arb_mat([[self.across.value(meeting(a, b)) for b in self._rows] for a in rows])

    def hessian(self, state: State) -> arb_mat:
        """Second derivatives in all weights that are trained: outgoing ones unit by unit, then incoming ones."""
        first, second = state
        students, columns, outputs = first.nrows(), first.ncols(), second.ncols()
        trains = self.networks.trains
        begin = students * outputs if "second" in trains else 0
        size = begin + (students * columns if "first" in trains else 0)
        found = [[arb(0)] * size for _ in range(size)]

        def add(block: arb_mat, i: int, j: int) -> None:
            for x, row in enumerate(block.tolist()):
                target = found[i + x]
                for y, entry in enumerate(row, start=j):
                    target[y] += entry

        if "second" in trains:
            for i, row in enumerate(_table(self.within, first.tolist()).tolist()):
                for j, entry in enumerate(row):
                    for o in range(outputs):
                        found[i * outputs + o][j * outputs + o] += entry
        if "first" in trains:
            self._curve(state, lambda block, i, j: add(block, begin + i * columns, begin + j * columns))
        if len(trains) == 2:
            self._mix(state, lambda block, i, j: add(block, begin + i * columns, j * outputs))
            for i in range(begin):
                for j in range(begin, size):
                    found[i][j] = found[j][i]
        return arb_mat(found)

    def outside(self, state: State) -> arb_mat:
        """Second derivatives along one coordinate that is 0 in all rows: a row and a column for each student."""
        students = state.first.nrows()
        return arb_mat([row[:students] for row in self.factors(state)])

    def _curve(self, state: State, add: Add) -> None:
        """Blocks of two incoming rows."""
        rows, second = state.first.tolist(), state.second
        own, other = second * second.transpose(), second * self.target.second.transpose()
        for i, a in enumerate(rows):
            alone = self.within.alone(dot(a, a))
            square = _outer(a, a) * (2 * alone.bend(0, 0))
            add((square + identity(len(a)) * alone.slope[0]) * own[i, i], i, i)
            for j, b in enumerate(rows):
                if i != j:
                    same, mixed = self.within.blocks(a, b)
                    add(same * own[i, j], i, i)
                    add(mixed * own[i, j], i, j)
            for j, b in enumerate(self._rows):
                add(self.across.blocks(a, b)[0] * -other[i, j], i, i)

    def _mix(self, state: State, add: Add) -> None:
        """Blocks of an incoming row and outgoing weights: `a_i.a_j K(w_i, w_j)` in w_i and a_j, or in w_i and a_i."""
        rows, second, target = state.first.tolist(), state.second.tolist(), self.target.second.tolist()
        for i, a in enumerate(rows):
            own = 2 * self.within.alone(dot(a, a)).slope[0]
            block = _outer([own * x for x in a], second[i])
            for j, b in enumerate(rows):
                if i != j:
                    slope = _gradient(self.within, a, b)
                    add(_outer(slope, second[i]), i, j)
                    block += _outer(slope, second[j])
            for j, b in enumerate(self._rows):
                block -= _outer(_gradient(self.across, a, b), target[j])
            add(block, i, i)


def identity(size: int) -> arb_mat:
    """The identity."""
    return arb_mat([[int(i == j) for j in range(size)] for i in range(size)])


def _state(layers: Layers) -> State:
    return State(balls(layers.first), balls(layers.second))


def _table(kernel: Kernel, rows: Rows) -> arb_mat:
    """The kernel of all rows with each other; of a row with itself as a function of that row alone."""
    found = [[arb(0)] * len(rows) for _ in rows]
    for i, a in enumerate(rows):
        found[i][i] = known(kernel.alone(dot(a, a)).value, "The loss")
        for j in range(i):
            found[i][j] = found[j][i] = kernel.value(meeting(a, rows[j]))
    return arb_mat(found)


def _inner(one: arb_mat, other: arb_mat) -> arb:
    return dot(one.entries(), other.entries())


def _outer(a: Row, b: Row) -> arb_mat:
    return arb_mat([[x] for x in a]) * arb_mat([list(b)])


def _gradient(kernel: Kernel, a: Row, b: Row) -> list[arb]:
    slopes = kernel.slopes(meeting(a, b))
    return [slopes.onto_a * x + slopes.onto_b * y for x, y in zip(a, b, strict=True)]
