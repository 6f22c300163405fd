"""The loss of a soft mixture of experts, enclosed: units `gate(v.x/|v|) He_P(w.x/|w|)`.

For two units with unit vectors v1, w1 and v2, w2, and gates p and q, by Wick's formula

    E[p^(a)(v1.x) q^(b)(v2.x) He_P(w1.x) He_Q(w2.x)]
      = sum_k k! C(P,k) C(Q,k) (w1.w2)^k sum_ij C(P-k,i) C(Q-k,j) (v1.w1)^i (v2.w1)^(P-k-i) (v1.w2)^j (v2.w2)^(Q-k-j)
        G_(a+i+j, b+P+Q-2k-i-j)(v1.v2),

with G of `gates`. Derivatives in the six inner products are such moments again (Price). A vector enters by its
direction: what pulls it along itself is taken off, and the rest divided by its length.

Where all routers, the teacher's too, are orthogonal to all experts because they use other coordinates, and all
degrees are the same, they stay so under descent and flow: what would pull a router to an expert has a factor v.w, or a
moment of degrees that differ by one, which is 0 there. Only the term with `(w1.w2)^P` is then left (`moving`).
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

from flint import arb, arb_mat, arb_series, ctx

from tutelage.rigour.balls import CannotEnclose, balls, known
from tutelage.rigour.gates import Gate, Overlap
from tutelage.rigour.loss import State
from tutelage.rigour.networks import Networks
from tutelage.rigour.series import Line, Series, Slope, asked, bent, coefficient, inner
from tutelage.rigour.series import Weights as Coefficients


class Unit(NamedTuple):
    """A router and an expert, their lengths, and the outgoing weights."""

    router: Line
    expert: Line
    lengths: tuple[Series, Series]
    second: Line


class Seen(NamedTuple):
    """The inner products of two units."""

    routers: Series
    experts: Series
    own: Series  # v1.w1
    cross: Series  # v1.w2
    back: Series  # v2.w1
    other: Series  # v2.w2


@functools.cache
def _terms(
    orders: tuple[int, int], degrees: tuple[int, int], some: tuple[bool, ...]
) -> list[tuple[int, tuple[int, int], tuple[int, ...]]]:
    """The terms of `K_ab^PQ` without those of a factor that is 0: how often, of which G, with which powers."""
    (a, b), (left, right) = orders, degrees
    found: list[tuple[int, tuple[int, int], tuple[int, ...]]] = []
    for k in range(min(left, right) + 1):
        for i in range(left - k + 1):
            for j in range(right - k + 1):
                powers = (k, i, left - k - i, j, right - k - j)
                if all(here or not n for n, here in zip(powers, some, strict=True)):
                    ways = math.factorial(k) * math.comb(left, k) * math.comb(right, k)
                    ways *= math.comb(left - k, i) * math.comb(right - k, j)
                    found.append((ways, (a + i + j, b + left + right - 2 * k - i - j), powers))
    return found


class Pair:
    """Moments of two kinds of units."""

    def __init__(self, gates: tuple[Gate, Gate], degrees: tuple[int, int]):
        self.overlap, self.degrees = Overlap(*gates), degrees

    def moment(self, orders: tuple[int, int], degrees: tuple[int, int], seen: Seen) -> Series:
        """`K_ab^PQ`; terms with a factor that is exactly 0 are left out."""
        factors, total = (seen.experts, seen.own, seen.back, seen.cross, seen.other), arb_series([0])
        for ways, places, powers in _terms(orders, degrees, tuple(bool(x.coeffs()) for x in factors)):
            term = self.overlap(*places, seen.routers) * ways
            for n, x in zip(powers, factors, strict=True):
                for _ in range(n):
                    term *= x
            total += term
        return total

    def value(self, seen: Seen) -> Series:
        """`E[unit1 unit2]`."""
        return self.moment((0, 0), self.degrees, seen)

    def pull(self, one: Unit, other: Unit, seen: Seen) -> tuple[list[Series], list[Series]]:
        """The gradient in the router and the expert of the first, as if they were free to change their lengths."""
        p, q = self.degrees
        by_routers = self.moment((1, 1), (p, q), seen)
        by_experts = p * q * self.moment((0, 0), (p - 1, q - 1), seen)
        by_own = p * self.moment((1, 0), (p - 1, q), seen)
        by_cross = q * self.moment((1, 0), (p, q - 1), seen)
        by_back = p * self.moment((0, 1), (p - 1, q), seen)
        router = _mixed((by_routers, by_own, by_cross), (other.router, one.expert, other.expert))
        expert = _mixed((by_experts, by_own, by_back), (other.expert, one.router, other.router))
        return router, expert


def _mixed(factors: Sequence[Series], rows: Sequence[Line]) -> list[Series]:
    """A combination of rows."""
    return [inner(factors, column) for column in zip(*rows, strict=True)]


class MixtureLoss:
    """The loss of a mixture, at the precision at which it was made; the same questions as of a `Loss`.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.rigour.mixtures import MixtureLoss
    >>> from tutelage.rigour.networks import networks_of
    >>> teacher = tt.Mixture(routers=[[1.0, 0.0]], experts=[[0.0, 1.0]])
    >>> loss = MixtureLoss(networks_of(tt.Problem(tt.Gaussian(9), teacher, teacher), "example"))
    >>> loss.value(loss.start()).contains(0)
    True

    ```
    """

    def __init__(self, networks: Networks, *, moving: bool = False):
        self.networks = networks
        gated = networks.gated
        assert gated is not None
        (one, degree), (two, taught) = gated
        self.within, self.across = Pair((one, one), (degree, degree)), Pair((one, two), (degree, taught))
        self.target = State(balls(networks.teacher.first), balls(networks.teacher.second))
        self._masks = _apart(networks) if moving and degree == taught else (None, None)
        self._floor = self._quadratic(self._teachers(), Pair((two, two), (taught, taught)))

    def start(self) -> State:
        """The student's given weights."""
        return State(balls(self.networks.student.first), balls(self.networks.student.second))

    def _teachers(self) -> list[Unit]:
        """The teacher's units, as series that are known as far as those of the moment."""
        return self._units(*_constant(self.target))

    def value(self, state: State) -> arb:
        """The loss."""
        before, ctx.cap = ctx.cap, 1
        try:
            units = self._units(*_constant(state))
            total = self._floor + self._quadratic(units, self.within)
            for one in units:
                for other in self._teachers():
                    total -= inner(one.second, other.second) * self.across.value(_seen(one, other))
        finally:
            ctx.cap = before
        return known(total[0], "The loss")

    def gradient(self, state: State) -> State:
        """The gradient; that of what is not trained is 0."""
        before, ctx.cap = ctx.cap, 1
        try:
            weights = Coefficients(*([[[x] for x in row] for row in part.tolist()] for part in state))
            parts = [[[coefficient(x, 0) for x in row] for row in part] for part in asked(self.along, weights)]
        finally:
            ctx.cap = before
        if "second" not in self.networks.trains:
            parts[1] = [[arb(0)] * len(row) for row in parts[1]]
        return State(*map(arb_mat, parts))

    def hessian(self, state: State) -> arb_mat:
        """Second derivatives in all that is trained: outgoing weights, then routers, then experts."""
        return bent(self.along, *state, [layer for layer in ("second", "first") if layer in self.networks.trains])

    def outside(self, state: State) -> arb_mat:
        """Second derivatives along one coordinate that is 0 in all rows: a row and a column for each vector."""
        wide = [[*row, arb(0)] for row in state.first.tolist()]
        whole = bent(self._unmasked, arb_mat(wide), state.second, ["first"]).tolist()
        places = range(len(wide[0]) - 1, len(whole), len(wide[0]))
        return arb_mat([[whole[i][j] for j in places] for i in places])

    def along(self, first: list[list[Series]], second: list[list[Series]]) -> Slope:
        """The gradient where weights are power series in time; that of outgoing weights only if they learn."""
        return self._slope(self._units(first, second), self._teachers())

    def _unmasked(self, first: list[list[Series]], second: list[list[Series]]) -> Slope:
        """With a coordinate more than the teacher has."""
        teachers = [unit._replace(router=[*unit.router, arb_series([0])], expert=[*unit.expert, arb_series([0])])
                    for unit in self._teachers()]  # fmt: skip
        return self._slope(self._units(first, second, masked=False), teachers)

    def _slope(self, units: Sequence[Unit], teachers: Sequence[Unit]) -> Slope:
        routers, experts, outer = [], [], []
        parts, learns = self.networks.parts, "second" in self.networks.parts
        for unit in units:
            pulled, turned = ([arb_series([0])] * len(unit.router) for _ in range(2))
            out = [arb_series([0])] * len(unit.second)
            for other, pair, sign in (
                *((each, self.within, 1) for each in units),
                *((each, self.across, -1) for each in teachers),
            ):
                seen = _seen(unit, other)
                weight = sign * inner(unit.second, other.second)
                by_router, by_expert = pair.pull(unit, other, seen)
                pulled = [x + weight * y for x, y in zip(pulled, by_router, strict=True)]
                turned = [x + weight * y for x, y in zip(turned, by_expert, strict=True)]
                if learns:
                    value = sign * pair.value(seen)
                    out = [x + value * y for x, y in zip(out, other.second, strict=True)]
            routers.append(_across(pulled, unit.router, unit.lengths[0], trained="routers" in parts))
            experts.append(_across(turned, unit.expert, unit.lengths[1], trained="experts" in parts))
            outer.append(out)
        return Slope(routers + experts, outer)

    def _units(self, first: list[list[Series]], second: list[list[Series]], *, masked: bool = True) -> list[Unit]:
        """Directions and lengths; coordinates that stay exactly 0 are taken for that, whatever their balls are."""
        count, found = len(second), []
        for i, out in enumerate(second):
            rows = []
            for row, used in zip((first[i], first[count + i]), self._masks, strict=True):
                kept = (
                    row
                    if used is None or not masked
                    else [x if n in used else arb_series([0]) for n, x in enumerate(row)]
                )
                square = inner(kept, kept)
                if not square[0] > 0:
                    raise CannotEnclose("A router or an expert may be zero, and then has no direction.")
                length = square.sqrt()
                rows.append(([x / length if x.coeffs() else x for x in kept], length))
            (router, long), (expert, far) = rows
            found.append(Unit(router, expert, (long, far), out))
        return found

    def _quadratic(self, units: Sequence[Unit], pair: Pair) -> Series:
        """Half of `sum_ij second_i second_j K(i, j)`."""
        total = arb_series([0])
        for i, one in enumerate(units):
            for j, other in enumerate(units[: i + 1]):
                part = inner(one.second, other.second) * pair.value(_seen(one, other))
                total += part / 2 if i == j else part
        return total


def _seen(one: Unit, other: Unit) -> Seen:
    """What two units see of each other; of one with itself the unit vectors are known."""
    same = one is other
    unit, cross = arb_series([1]), inner(one.router, one.expert)
    if same:
        return Seen(unit, unit, cross, cross, cross, cross)
    return Seen(
        inner(one.router, other.router), inner(one.expert, other.expert), cross, inner(one.router, other.expert),
        inner(other.router, one.expert), inner(other.router, other.expert),
    )  # fmt: skip


def _across(pull: Line, direction: Line, length: Series, *, trained: bool) -> list[Series]:
    """What turns a vector, as a gradient."""
    if not trained:
        return [arb_series([0]) for _ in pull]
    along = inner(pull, direction)
    return [(x - along * y) / length for x, y in zip(pull, direction, strict=True)]


def _constant(state: State) -> tuple[list[list[Series]], list[list[Series]]]:
    first, second = ([[arb_series([x]) for x in row] for row in part.tolist()] for part in state)
    return first, second


def _apart(networks: Networks) -> tuple[frozenset[int] | None, frozenset[int] | None]:
    """The coordinates that routers and experts use, if no router uses one of an expert; else no restriction."""
    used: tuple[set[int], set[int]] = (set(), set())
    for layers in (networks.student, networks.teacher):
        for i, row in enumerate(layers.first):
            used[i >= len(layers.second)].update(n for n, x in enumerate(row) if x)
    return (None, None) if used[0] & used[1] else (frozenset(used[0]), frozenset(used[1]))
