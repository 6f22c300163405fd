"""The population loss in long arithmetic, by formulas of its own: the second opinion behind certificates.

Nothing here is shared with the oracles. An activation is written as a sum of powers, `|z|`, signs and `erf(b z)`; each
pair has an expectation in `p = |a|^2`, `q = |b|^2` and `c = a.b`. The oracles work with angles, series and forms that
do not cancel in double precision; here plain moments, Stein's identity and arcs are simply carried to fifty digits.
"""

import re
from dataclasses import dataclass
from math import comb, factorial
from typing import Any

import mpmath as mp
import numpy as np
from numpy.typing import NDArray

from tutelage.problem.assorted import Assorted, LayerUnits
from tutelage.problem.atoms import ErfMixture, PiecewiseLinear, Polynomial, Sign

Part = tuple[Any, str, Any]  # (coefficient, "power" | "abs" | "sign" | "erf", degree or slope)

_NAMED: dict[str, tuple[Part, ...]] = {
    "linear": ((1, "power", 1),),
    "abs": ((1, "abs", None),),
    "relu": ((mp.mpf(1) / 2, "power", 1), (mp.mpf(1) / 2, "abs", None)),
    "erf": ((1, "erf", 1),),
}


def parts(activation: LayerUnits) -> tuple[Part, ...] | None:
    """The activation as a sum of powers, `|z|`, signs and erf; None if it is not one such sum (tanh, a callable)."""
    if isinstance(activation, Assorted):
        return None
    if activation.name in _NAMED:
        return _NAMED[activation.name]
    if re.fullmatch(r"he\d+", activation.name):
        return _hermite(int(activation.name[2:]))
    found: list[Part] = []
    for atom in activation.atoms:
        if isinstance(atom, Polynomial):
            found += [(mp.mpf(c), "power", k) for k, c in enumerate(atom.coefficients)]
        elif isinstance(atom, PiecewiseLinear):
            found += [(mp.mpf(atom.linear), "power", 1), (mp.mpf(atom.kink), "abs", None)]
        elif isinstance(atom, Sign):
            found += [(mp.mpf(atom.size), "sign", None)]
        elif isinstance(atom, ErfMixture) and len(atom.weights) == 1:
            found += [(mp.mpf(atom.weights[0]), "erf", mp.mpf(atom.slopes[0]))]
        else:
            return None
    return tuple(part for part in found if part[0] != 0)


def _hermite(order: int) -> tuple[Part, ...]:
    """`He_k = sum_j (-1)^j k! / (2^j j! (k-2j)!) z^(k-2j)`."""
    terms = range(order // 2 + 1)
    return tuple(
        ((-1) ** j * factorial(order) // (2**j * factorial(j) * factorial(order - 2 * j)), "power", order - 2 * j)
        for j in terms
    )


def value(total: tuple[Part, ...], z: float) -> Any:
    """The activation at a point."""
    shapes = {
        **{"power": lambda k: mp.mpf(z) ** k, "erf": lambda b: mp.erf(b * z)},
        **{"abs": lambda _: abs(mp.mpf(z)), "sign": lambda _: mp.sign(z)},
    }
    return mp.fsum(coefficient * shapes[kind](detail) for coefficient, kind, detail in total)


def expectation(left: tuple[Part, ...], right: tuple[Part, ...], p: Any, q: Any, c: Any) -> Any:
    """`E[s(u) t(v)]` for centred Gaussians with variances `p`, `q` and covariance `c`."""
    return mp.fsum(x * y * _pair(kx, dx, ky, dy, p, q, c) for x, kx, dx in left for y, ky, dy in right)


def _pair(kind: str, detail: Any, other: str, more: Any, p: Any, q: Any, c: Any) -> Any:
    order = {"abs": 0, "sign": 1, "erf": 2, "power": 3}
    if order[kind] > order[other]:
        kind, detail, other, more, p, q = other, more, kind, detail, q, p
    if kind == "power":
        return _powers(detail, more, p, q, c)
    if other == "power" and kind in ("abs", "sign"):
        return _absolute_power(more, p, q, c, 1 if kind == "abs" else 0)
    if (kind, other) == ("erf", "power"):
        return _erf_power(detail, more, p, q, c)
    if (kind, other) == ("erf", "erf"):
        return 2 / mp.pi * mp.asin(2 * detail * more * c / mp.sqrt((1 + 2 * detail**2 * p) * (1 + 2 * more**2 * q)))
    if kind == "abs" and other in ("erf", "sign"):
        return mp.mpf(0)  # even times odd
    root = mp.sqrt(max(p * q - c * c, mp.mpf(0)))
    if (kind, other) == ("sign", "sign"):
        return 2 / mp.pi * mp.atan2(c, root) if p * q else mp.mpf(0)
    if (kind, other) == ("sign", "erf"):
        return 2 / mp.pi * mp.asin(more * c * mp.sqrt(2 / (p * (1 + 2 * more**2 * q)))) if p else mp.mpf(0)
    return 2 / mp.pi * (root + c * mp.atan2(c, root))  # E|u||v|


def _moment(k: int, variance: Any) -> Any:
    """`E[w^k]` of a centred Gaussian: `(k-1)!! variance^(k/2)`."""
    return mp.mpf(0) if k % 2 else mp.fac2(k - 1) * variance ** (k // 2)


def _powers(i: int, j: int, p: Any, q: Any, c: Any) -> Any:
    """`E[u^i v^j]` by pairing the factors (Isserlis): k pairs join a u to a v."""
    if (i + j) % 2:
        return mp.mpf(0)
    joined = range(i % 2, min(i, j) + 1, 2)
    return mp.fsum(
        comb(i, k) * comb(j, k) * factorial(k) * c**k * _moment(i - k, p) * _moment(j - k, q) for k in joined
    )


def _absolute_power(j: int, p: Any, q: Any, c: Any, size: int) -> Any:
    """`E[|u| v^j]` (size 1) or `E[sign(u) v^j]` (size 0) with `v = (c/p) u + w`, w independent of u."""
    if (j + size) % 2 == 0 or p == 0:
        return mp.mpf(0)
    rest = q - c * c / p
    absolute = lambda k: mp.sqrt(2 * p) ** k * mp.gamma(mp.mpf(k + 1) / 2) / mp.sqrt(mp.pi)  # noqa: E731  (E|u|^k)
    return mp.fsum(
        comb(j, k) * (c / p) ** (j - k) * absolute(j - k + size) * _moment(k, rest) for k in range(0, j + 1, 2)
    )


def _erf_power(b: Any, j: int, p: Any, q: Any, c: Any) -> Any:
    """`E[erf(b u) v^j]` by Stein: `(j-1) q E[erf v^(j-2)] + c E[erf' v^(j-1)]`; erf' tilts the law of v."""
    if j % 2 == 0:
        return mp.mpf(0)
    shrink = 1 + 2 * b * b * p
    tilted = 2 * b / mp.sqrt(mp.pi * shrink) * _moment(j - 1, q - 2 * b * b * c * c / shrink)
    return c * tilted + ((j - 1) * q * _erf_power(b, j - 2, p, q, c) if j > 1 else 0)


@dataclass(frozen=True)
class Precise:
    """The loss `1/2 E|f - f*|^2` of units given in double precision, to `digits` digits.

    `first` and `second` hold the students' rows and then the teachers', the latter's outgoing weights negated.
    Every number comes with its magnitude, the same sum with absolute values: rounding in double precision may lose
    about 1e-16 of the magnitude.
    """

    students: tuple[Part, ...]
    teachers: tuple[Part, ...]
    first: NDArray[np.floating]
    second: NDArray[np.floating]
    count: int
    digits: int = 50

    @property
    def route(self) -> str:
        return f"{self.digits} digits"

    def loss(self) -> tuple[float, float]:
        with mp.workdps(self.digits):
            terms = self._terms(self.first, self.second, mp.mpf(0), None)
            return float(mp.fsum(terms)), float(mp.fsum(map(abs, terms)))

    def derivative(self, first: NDArray[np.floating], second: NDArray[np.floating]) -> tuple[float, float]:
        """Along a direction of the students' weights, by a central difference with a third of the digits as step."""
        with mp.workdps(self.digits):
            step = mp.mpf(10) ** (-self.digits // 3)
            others = len(self.first) - self.count
            move = np.pad(first, ((0, others), (0, 0))), np.pad(second, ((0, others), (0, 0)))
            up, down = (self._terms(self.first, self.second, sign * step, move) for sign in (1, -1))
            terms = [(x - y) / (2 * step) for x, y in zip(up, down, strict=True)]
            return float(mp.fsum(terms)), float(mp.fsum(map(abs, terms)))

    def off_line(self) -> float:
        """How far units with `|z|` parts are from lying on one line, in units of the loss.

        For `s = l z + k |z|`, `E|u||v| = +-c + (2/pi)|a||b| g(psi)` with `psi` the angle of the two lines and
        `g = sin - psi cos`. The sum of the sizes of the g-terms is what can cancel in a line form.
        """
        bent = np.array([float(sum(c for c, kind, _ in shape if kind == "abs")) for shape in self._shapes()])
        norms = np.linalg.norm(self.first, axis=1)
        units = self.first / np.where(norms > 0, norms, 1.0)[:, None]
        chords = np.stack([np.linalg.norm(units[:, None] - s * units[None], axis=-1) for s in (1, -1)])
        psi = 2 * np.arcsin(np.clip(chords.min(0) / 2, 0, 1))
        strength = (bent * norms)[:, None] * self.second
        return float(np.sum(np.abs(strength @ strength.T) * np.maximum(np.sin(psi) - psi * np.cos(psi), psi**3 / 4)))

    def _shapes(self) -> list[tuple[Part, ...]]:
        return [self.students] * self.count + [self.teachers] * (len(self.first) - self.count)

    def _terms(self, first: NDArray[np.floating], second: NDArray[np.floating], step: Any, move: Any) -> list[Any]:
        """The terms `1/2 S_u.S_u' K(w_u, w_u')`, each pair once."""
        rows, out = _exact(first), _exact(second)
        if move is not None:
            rows = [
                [x + step * y for x, y in zip(*pair, strict=True)] for pair in zip(rows, _exact(move[0]), strict=True)
            ]
            out = [
                [x + step * y for x, y in zip(*pair, strict=True)] for pair in zip(out, _exact(move[1]), strict=True)
            ]
        shape = self._shapes()
        square = [mp.fdot(row, row) for row in rows]
        terms = []
        for i in range(len(rows)):
            for j in range(i + 1):
                weight = mp.fdot(out[i], out[j]) * (mp.mpf(1) / 2 if i == j else 1)
                inner = square[i] if i == j else mp.fdot(rows[i], rows[j])
                terms.append(weight * expectation(shape[i], shape[j], square[i], square[j], inner))
        return terms


def _exact(matrix: NDArray[np.floating]) -> list[list[Any]]:
    return [[mp.mpf(float(x)) for x in row] for row in matrix]
