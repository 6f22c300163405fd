"""The population loss and its derivative enclosed in balls: in place of long arithmetic, where kernels are enclosed."""

from collections.abc import Callable

import numpy as np
from flint import arb
from numpy.typing import NDArray

from tutelage.analysis.certificates.long_arithmetic import Precise
from tutelage.problem.assorted import LayerUnits
from tutelage.problem.problem import one_kind
from tutelage.rigour import CannotEnclose, Kernel, form_of, meeting, precision

Rows = list[list[arb]]
ENOUGH = 1e-14
"""What a ball may have beside its number."""
NOTHING = 1e-45
"""And beside the sum of all terms, where the number may be 0."""
MOST_BITS = 2048


class Enclosed:
    """The numbers of `Precise` by the formulas of `rigour`: sums, and the sizes of their terms."""

    route = "ball arithmetic"

    def __init__(self, precise: Precise, student: LayerUnits, teacher: LayerUnits):
        self.precise, self.count = precise, precise.count
        s, t = (form_of(one_kind(units)) for units in (student, teacher))
        self.bits = int(3.33 * precise.digits) + 32
        self.kinds = {(True, True): (s, s), (True, False): (s, t), (False, False): (t, t)}

    def off_line(self) -> float:
        return self.precise.off_line()

    def loss(self) -> tuple[float, float]:
        return self._sums(lambda: [term for term, _ in self._terms(None)])

    def derivative(self, first: NDArray[np.floating], second: NDArray[np.floating]) -> tuple[float, float]:
        """Along a direction of the students' weights."""
        return self._sums(lambda: [change for _, change in self._terms((first, second))])

    def _sums(self, terms: Callable[[], list[arb]]) -> tuple[float, float]:
        """The sum and that of the sizes, with more bits until the ball is small."""
        bits = self.bits
        while bits <= MOST_BITS:
            with precision(bits):
                found = terms()
                total, size = sum(found, arb(0)), sum(map(abs, found), arb(0))
                if total.rad() <= ENOUGH * abs(total).mid() or total.rad() <= NOTHING * size.mid():
                    return float(total.mid()), float(size.mid())
            bits *= 2
        raise CannotEnclose(f"The loss cannot be enclosed with {MOST_BITS} bits.")

    def _terms(self, turn: tuple[NDArray[np.floating], NDArray[np.floating]] | None) -> list[tuple[arb, arb]]:
        """The terms `1/2 S_u.S_u' K(w_u, w_u')`, each pair once, and how each changes along a direction."""
        kernels = {sides: Kernel(*forms) for sides, forms in self.kinds.items()}
        rows, out = _balls(self.precise.first), _balls(self.precise.second)
        others = len(rows) - self.count
        moves = None if turn is None else [_balls(np.pad(layer, ((0, others), (0, 0)))) for layer in turn]
        found = []
        for i in range(len(rows)):
            for j in range(i + 1):
                kernel = kernels[j < self.count, i < self.count]
                found.append(_term(kernel, (rows, out), moves, (j, i), i < self.count))
        return found


def _term(
    kernel: Kernel, layers: tuple[Rows, Rows], moves: list[Rows] | None, pair: tuple[int, int], both: bool
) -> tuple[arb, arb]:
    """One term and its change; `both` are students."""
    (rows, out), (i, j) = layers, pair
    a, b, weight = rows[i], rows[j], _dot(out[i], out[j])
    if i == j:
        alone = kernel.alone(_dot(a, a))
        term = weight * alone.value / 2
        if moves is None:
            return term, arb(0)
        turn, change = moves[0][i], _dot(out[i], moves[1][i])
        return term, change * alone.value + weight * alone.slope[0] * _dot(a, turn)
    met = meeting(a, b)
    size = kernel.value(met)
    if moves is None:
        return weight * size, arb(0)
    if not any(map(bool, moves[0][i] + moves[0][j] + moves[1][i] + moves[1][j])):
        return weight * size, arb(0)
    change = (_dot(moves[1][i], out[j]) + _dot(out[i], moves[1][j])) * size
    here = kernel.slopes(met)
    change += weight * (here.onto_a * _dot(a, moves[0][i]) + here.onto_b * _dot(b, moves[0][i]))
    if both:
        there = kernel.slopes(met.turned())
        change += weight * (there.onto_a * _dot(b, moves[0][j]) + there.onto_b * _dot(a, moves[0][j]))
    return weight * size, change


def _balls(matrix: NDArray[np.floating]) -> Rows:
    """The doubles themselves."""
    return [[arb(float(x)) for x in row] for row in np.asarray(matrix)]


def _dot(a: list[arb], b: list[arb]) -> arb:
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))
