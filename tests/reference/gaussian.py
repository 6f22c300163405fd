"""Expectations of Gaussian inputs in long arithmetic, from first principles: nothing of the package is used here.

`expectation(s, t, a, b)` is `E[s(a.x) t(b.x)]`. An activation is a sum of parts `weight * base(scale z)`. Moments, arcs
and the erf of a normal number are closed forms. Everything else is conditioned on the argument of one activation, which
leaves an integral over a line, or over a plane for two tanh or two log cosh. These are done by the trapezoidal rule,
which for analytic functions under a Gaussian has an error of `exp(-2 pi d / step)`, `d` being the distance of the
nearest pole from the real axis.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mpmath import mp, mpf

DIGITS = 60
"""Of integrals. Closed forms are computed with twice as many, so that differences of them have as many. Whoever calls
sets the precision."""


class Part(NamedTuple):
    """`weight * base(scale z)`; a polynomial `sum_m c_m z^m` has its coefficients as well."""

    base: str
    weight: Any = 1
    scale: Any = 1
    coefficients: tuple[Any, ...] = ()


def he(order: int) -> tuple[int, ...]:
    """Coefficients of He_k, by `He_{k+1} = z He_k - k He_{k-1}`, constant first."""
    before, here = (0,), (1,)
    for k in range(order):
        after = [0, *here]
        for m, value in enumerate(before):
            after[m] -= k * value
        before, here = here, tuple(after)
    return here


def _polynomial(*coefficients: Any) -> Part:
    return Part("poly", coefficients=coefficients)


def _root() -> Any:
    return mp.sqrt(mpf(1) / 2)


def parts(name: str) -> list[Part]:
    """An activation by name, as what it is by definition."""
    if name.startswith("he"):
        return [_polynomial(*he(int(name[2:])))]
    half = mpf(1) / 2
    known: dict[str, Callable[[], list[Part]]] = {
        "linear": lambda: [_polynomial(0, 1)],
        "abs": lambda: [Part("abs")],
        "half_abs": lambda: [Part("abs", half)],
        "relu": lambda: [_polynomial(0, half), Part("abs", half)],
        # The package is given the double nearest to 0.2.
        "leaky_relu": lambda: [_polynomial(0, (1 + mpf(0.2)) / 2), Part("abs", (1 - mpf(0.2)) / 2)],
        "polynomial": lambda: [_polynomial(mpf(0.5), -1, mpf(0.25), mpf(0.125))],
        "constant": lambda: [_polynomial(1)],
        "erf": lambda: [Part("erf")],
        "two_erf": lambda: [Part("erf", mpf(0.75), mpf(0.5)), Part("erf", mpf(-0.25), 2)],
        "probit": lambda: [_polynomial(half), Part("erf", half, _root())],
        "tanh": lambda: [Part("tanh")],
        "sigmoid": lambda: [_polynomial(half), Part("tanh", half, half)],
        "softplus": lambda: [_polynomial(0, half), Part("lncosh", 1, half)],
        "gelu": lambda: [_polynomial(0, half), Part("zerf", half)],
        "sin": lambda: [Part("sin")],
        "relu_and_erf": lambda: [_polynomial(0, half), Part("abs", half), Part("erf")],
        "abs_and_he3": lambda: [Part("abs"), _polynomial(*he(3))],
    }
    return known[name]()


EVEN = {"abs", "lncosh", "zerf"}
POLES = {"tanh", "lncosh"}
"""Bases with poles, the nearest at `i pi/2`."""


def value(part: Part, z: Any, order: int = 0) -> Any:
    """The base itself or a derivative, without weight and scale."""
    if part.base == "poly":
        coefficients = list(part.coefficients)
        for _ in range(order):
            coefficients = [m * c for m, c in enumerate(coefficients)][1:]
        return mp.polyval(coefficients[::-1], z) if coefficients else mpf(0)
    if part.base == "tanh":
        t = mp.tanh(z)
        return (t, 1 - t**2, -2 * t * (1 - t**2))[order]
    if part.base == "lncosh":  # log(2 cosh z)
        return abs(z) + mp.log1p(mp.exp(-2 * abs(z))) if order == 0 else value(Part("tanh"), z, order - 1)
    if part.base == "erf":
        bell = 2 / mp.sqrt(mp.pi) * mp.exp(-(z**2))
        return (mp.erf(z), bell, -2 * z * bell)[order] if order else mp.erf(z)
    if part.base == "sin":
        return (mp.sin, mp.cos, lambda x: -mp.sin(x))[order](z)
    assert order == 0
    return abs(z) if part.base == "abs" else z * mp.erf(z * _root())


def smoothed(part: Part, mean: Any, variance: Any) -> Any:
    """`E[base(mean + sqrt(variance) g)]` over a normal number g."""
    if variance <= 0:
        return value(part, mean)
    if part.base == "poly":
        total = mpf(0)
        for m, c in enumerate(part.coefficients):
            if c:
                terms = [math.comb(m, 2 * j) * odds(j) * mean ** (m - 2 * j) * variance**j for j in range(m // 2 + 1)]
                total += c * mp.fsum(terms)
        return total
    if part.base == "erf":
        return mp.erf(mean / mp.sqrt(1 + 2 * variance))
    if part.base == "sin":
        return mp.sin(mean) * mp.exp(-variance / 2)
    if part.base == "abs":
        spread = mp.sqrt(2 * variance)
        return spread / mp.sqrt(mp.pi) * mp.exp(-((mean / spread) ** 2)) + mean * mp.erf(mean / spread)
    assert part.base == "zerf"  # by E[g f(g)] = E[f'(g)]
    wide = 1 + variance
    bell = mp.sqrt(2 / (mp.pi * wide)) * mp.exp(-(mean**2) / (2 * wide))
    return mean * mp.erf(mean / mp.sqrt(2 * wide)) + variance * bell


@functools.cache
def odds(j: int) -> int:
    """`(2j - 1)!! = E[g^(2j)]`."""
    return math.prod(range(2 * j - 1, 0, -2))


# Pairs of bases, of arguments u and v with E[u^2] = p, E[v^2] = q, E[uv] = c. --------------------------------------


def _moments(s: Part, t: Part, p: Any, q: Any, c: Any) -> Any:
    """Two polynomials, by Isserlis: j of the factors u are paired with factors v."""
    total = mpf(0)
    for m, left in enumerate(s.coefficients):
        for n, right in enumerate(t.coefficients):
            if left and right and (m + n) % 2 == 0:
                for j in range(m % 2, min(m, n) + 1, 2):
                    alone, other = (m - j) // 2, (n - j) // 2
                    ways = math.comb(m, j) * math.comb(n, j) * math.factorial(j) * odds(alone) * odds(other)
                    total += left * right * ways * c**j * p**alone * q**other
    return total


def _kink_and_polynomial(t: Part, p: Any, q: Any, c: Any) -> Any:
    """`E[|u| t(v)]`, with `v = (c/p) u + g` and the moments of |u|."""
    if p == 0:
        return mpf(0)
    total, rest = mpf(0), q - c**2 / p
    for n, right in enumerate(t.coefficients):
        for j in range(n // 2 + 1) if right and n % 2 == 0 else ():
            power = n - 2 * j + 1
            absolute = (2 * p) ** (mpf(power) / 2) * mp.gamma(mpf(power + 1) / 2) / mp.sqrt(mp.pi)
            total += right * math.comb(n, 2 * j) * odds(j) * (c / p) ** (n - 2 * j) * rest**j * absolute
    return total


def _erf_and_polynomial(t: Part, p: Any, q: Any, c: Any) -> Any:
    """`E[erf(u) t(v)]`, with `v = (c/p) u + g` and the moments of `erf(u)`."""
    if p == 0:
        return mpf(0)
    total, rest, moments = mpf(0), q - c**2 / p, _erf_moments(p, len(t.coefficients))
    for n, right in enumerate(t.coefficients):
        for j in range(n // 2 + 1) if right and n % 2 else ():
            total += right * math.comb(n, 2 * j) * odds(j) * (c / p) ** (n - 2 * j) * rest**j * moments[n - 2 * j]
    return total


def _erf_moments(p: Any, count: int) -> list[Any]:
    """`E[u^k erf(u)]`, by `E[u f(u)] = p E[f'(u)]`, from `E[u^(2j) exp(-u^2)]`, a Gaussian with another width."""
    found = [mpf(0)]
    for k in range(1, count):
        bell = 2 / mp.sqrt(mp.pi * (1 + 2 * p)) * (p / (1 + 2 * p)) ** (k // 2) * odds(k // 2) if k % 2 else 0
        found.append(p * ((k - 1) * found[max(k - 2, 0)] + bell))
    return found


def _arc(p: Any, q: Any, c: Any) -> Any:
    """`E|u||v|`: with the angle of u and v, `2/pi (sin + cos (pi/2 - angle))` of the norms."""
    across = mp.sqrt(max(p * q - c**2, mpf(0)))
    return 2 / mp.pi * (across + c * mp.atan2(c, across))


def _arcsine(p: Any, q: Any, c: Any) -> Any:
    """`E[erf(u) erf(v)]`: erf is a probability, and so this is an area between two great circles."""
    return 2 / mp.pi * mp.atan2(2 * c, mp.sqrt((1 + 2 * p) * (1 + 2 * q) - 4 * c**2))


def _sines(p: Any, q: Any, c: Any) -> Any:
    return mp.exp(-(p + q) / 2) * mp.sinh(c)


def _step(*sides: tuple[Part, Any]) -> Any:
    """The step of the rule that leaves errors below `10^-DIGITS`; 0.1 is enough where there are no poles."""
    far = min([mp.pi / 2 / norm for part, norm in sides if part.base in POLES and norm > 0], default=mpf(3))
    return min(2 * mp.pi * far / (mp.log(10) * (DIGITS + 4) + far**2), mpf(1) / 10)


@functools.cache
def grid(step: Any) -> tuple[list[Any], list[Any]]:
    """Points and weights of the trapezoidal rule for a normal number."""
    reach = int(mp.sqrt(2 * mp.log(10) * (DIGITS + 6)) / step)
    points = [k * step for k in range(-reach, reach + 1)]
    return points, [step * mp.exp(-(z**2) / 2) / mp.sqrt(2 * mp.pi) for z in points]


def _line(s: Part, t: Part, p: Any, q: Any, c: Any, orders: tuple[int, int] = (0, 0), finer: Any = 1) -> Any:
    """`E[s(u) t(v)]` over u; of v given u only the mean and the variance count."""
    norm = mp.sqrt(p)
    slope = c / norm if norm else mpf(0)
    rest = q - slope**2
    sides = [(s, norm)]
    if rest < mpf(10) ** (-mp.dps // 2) * q:  # one direction
        rest = mpf(0)
        sides.append((t, mp.sqrt(q)))
    points, weights = grid(_step(*sides) / finer)
    inner: Callable[[Any], Any] = (lambda m: value(t, m, orders[1])) if not rest else (lambda m: smoothed(t, m, rest))
    return mp.fdot(weights, (value(s, norm * z, orders[0]) * inner(slope * z) for z in points))


ORDERS = ((0, 0), (1, 1), (2, 0), (0, 2))


def _plane(part: Part, p: Any, q: Any, c: Any, finer: Any = 1) -> tuple[Any, ...]:
    """`E[s t]`, `E[s' t']`, `E[s'' t]` and `E[s t'']` for two tanh or two log cosh.

    No function but a logarithm is called in the inner loop: tanh of a sum follows from those of its terms. Numbers
    there are integers, in units of `2^-bits`, which is many times quicker.
    """
    norm = mp.sqrt(p)
    slope = c / norm
    rest = mp.sqrt(q - slope**2)
    points, weights = grid(_step((part, norm), (part, mp.sqrt(q))) / finer)
    bits = mp.prec + 24
    one = 1 << bits

    def fixed(values: Any) -> list[int]:
        return [int(mp.ldexp(x, bits)) for x in values]

    masses = fixed(weights)
    ahead, aside = (fixed(mp.tanh(k * z) for z in points) for k in (slope, rest))
    grown = [[mp.exp(k * z) for z in points] for k in (slope, rest)]
    first = [[value(part, norm * z, order) for z in points] for order in range(3)]
    totals = [mpf(0)] * len(ORDERS)
    for place, left in enumerate(ahead):
        both = [((left + right) << bits) // (one + (left * right >> bits)) for right in aside]
        bend = [one - (x * x >> bits) for x in both]
        sums = [sum(w * x for w, x in zip(masses, row, strict=True)) for row in (both, bend)]
        if part.base == "tanh":
            inner = [*sums, sum(-2 * w * (x * y >> bits) for w, x, y in zip(masses, both, bend, strict=True))]
            seen = [mp.ldexp(mpf(x), -2 * bits) for x in inner]
        else:
            logs = (mp.log(x + 1 / x) for x in (grown[0][place] * y for y in grown[1]))
            seen = [mp.fdot(weights, logs), *(mp.ldexp(mpf(x), -2 * bits) for x in sums)]
        for number, (here, there) in enumerate(ORDERS):
            totals[number] += weights[place] * first[here][place] * seen[there]
    return tuple(totals)


def _odd(part: Part) -> bool | None:
    """Whether a base is odd; None for a polynomial, which is taken apart."""
    return None if part.base == "poly" else part.base not in EVEN


def closed(s: str, t: str) -> bool:
    """Whether all of a pair is in closed form."""
    pairs = [(u.base, v.base) for u in parts(s) for v in parts(t)]
    forms = [{"poly"}, {"abs"}, {"erf"}, {"sin"}, {"poly", "abs"}, {"poly", "erf"}, {"abs", "erf"}]
    return all(set(pair) in forms for pair in pairs)


def _base(s: Part, t: Part, p: Any, q: Any, c: Any) -> Any:
    kinds = {s.base, t.base}
    if s.base != "poly" and t.base != "poly" and _odd(s) != _odd(t):
        return mpf(0)
    if kinds == {"poly"}:
        return _moments(s, t, p, q, c)
    if kinds == {"abs"}:
        return _arc(p, q, c)
    if kinds == {"erf"}:
        return _arcsine(p, q, c)
    if kinds == {"sin"}:
        return _sines(p, q, c)
    if kinds == {"abs", "poly"}:
        return _kink_and_polynomial(t, p, q, c) if s.base == "abs" else _kink_and_polynomial(s, q, p, c)
    if kinds == {"erf", "poly"}:
        return _erf_and_polynomial(t, p, q, c) if s.base == "erf" else _erf_and_polynomial(s, q, p, c)
    rough = ("tanh", "lncosh", "zerf", "erf", "sin", "abs", "poly")  # conditioned on the first of the two in this list
    if rough.index(s.base) > rough.index(t.base):
        s, t, p, q = t, s, q, p
    return _line(s, t, p, q, c)


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return mp.fdot(zip(a, b, strict=True))


def _scaled(s: Part, t: Part, a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, Any, Any]:
    return s.scale**2 * dot(a, a), t.scale**2 * dot(b, b), s.scale * t.scale * dot(a, b)


def _in_plane(s: Part, t: Part) -> bool:
    return s.base == t.base and s.base in POLES


@functools.cache
def _both(part: Part, p: Any, q: Any, c: Any) -> tuple[Any, ...]:
    if p < q:  # each pair once
        same, mixed, left, right = _both(part, q, p, c)
        return same, mixed, right, left
    if p * q - c**2 < mpf(10) ** (-DIGITS // 2) * p * q:  # the same direction
        return tuple(_line(part, part, p, q, c, order) for order in ORDERS)
    return _plane(part, p, q, c)


@functools.cache
def _known(precision: int, s: Part, t: Part, p: Any, q: Any, c: Any) -> Any:
    assert precision == mp.prec
    return _base(s, t, p, q, c)


def expectation(s: str, t: str, a: tuple[Any, ...], b: tuple[Any, ...]) -> Any:
    """`E[s(a.x) t(b.x)]`."""
    total = mpf(0)
    for u in parts(s):
        for v in parts(t):
            pair = _scaled(u, v, a, b)
            total += (
                u.weight
                * v.weight
                * (_both(Part(u.base), *pair)[0] if _in_plane(u, v) else _known(mp.prec, u, v, *pair))
            )
    return total


def pull(s: str, t: str, a: tuple[Any, ...], b: tuple[Any, ...], small: Any) -> list[Any]:
    """The gradient of `E[s(a.x) t(b.x)]` in a: by a central difference of relative step `small`, or by Stein's
    `E[s' t x] = a E[s'' t] + b E[s' t']`."""
    total = [mpf(0)] * len(a)
    for u in parts(s):
        for v in parts(t):
            weight = u.weight * v.weight
            if _in_plane(u, v):
                _, mixed, twice, _ = _both(Part(u.base), *_scaled(u, v, a, b))
                found = [u.scale * (u.scale * x * twice + v.scale * y * mixed) for x, y in zip(a, b, strict=True)]
            else:
                found = [_difference(u, v, a, b, k, small) for k in range(len(a))]
            total = [x + weight * y for x, y in zip(total, found, strict=True)]
    return total


def _difference(u: Part, v: Part, a: tuple[Any, ...], b: tuple[Any, ...], k: int, small: Any) -> Any:
    step = small * mp.sqrt(dot(a, a))
    up, down = (_base(u, v, *_scaled(u, v, moved(a, k, sign * step), b)) for sign in (1, -1))
    return (up - down) / (2 * step)


def moved(a: tuple[Any, ...], k: int, by: Any) -> tuple[Any, ...]:
    return (*a[:k], a[k] + by, *a[k + 1 :])


# Polynomials of several variables, as {exponents: coefficient}. ----------------------------------------------------

Terms = dict[tuple[int, ...], Any]


def linear(form: Sequence[Any], constant: Any = 0) -> Terms:
    size = len(form)
    terms: Terms = {tuple(int(j == k) for j in range(size)): c for k, c in enumerate(form) if c != 0}
    return terms | ({(0,) * size: constant} if constant != 0 else {})


def product(left: Terms, right: Terms) -> Terms:
    found: Terms = {}
    for one, x in left.items():
        for other, y in right.items():
            key = tuple(map(sum, zip(one, other, strict=True)))
            found[key] = found.get(key, mpf(0)) + x * y
    return found


def total(*several: Terms) -> Terms:
    found: Terms = {}
    for each in several:
        for key, x in each.items():
            found[key] = found.get(key, mpf(0)) + x
    return found


def times(factor: Any, terms: Terms) -> Terms:
    return {key: factor * x for key, x in terms.items()}


def composed(coefficients: Sequence[Any], inner: Terms, size: int) -> Terms:
    """`sum_m coefficients[m] inner^m`, by Horner."""
    found: Terms = {}
    for c in reversed(coefficients):
        found = total(product(found, inner), {(0,) * size: mpf(c)})
    return found


def mean(terms: Terms, table: Callable[..., Any], known: int) -> Any:
    """Of a polynomial: `table(i, j, ...)` has the means of powers of the first `known` variables, with whatever weight
    they have; the others are independent normal numbers."""
    found = mpf(0)
    for key, x in terms.items():
        if all(power % 2 == 0 for power in key[known:]):
            found += x * table(*key[:known]) * math.prod(odds(power // 2) for power in key[known:])
    return found


def basis(*vectors: Sequence[Any]) -> list[list[Any]]:
    """An orthonormal basis that begins with the given vectors, made so; parallel ones do not count."""
    size = len(vectors[0])
    units = [[mpf(int(j == k)) for j in range(size)] for k in range(size)]
    found: list[list[Any]] = []
    for vector in (*vectors, *units):
        rest = list(vector)
        for _ in range(2):
            for axis in found:
                along = dot(axis, rest)
                rest = [x - along * y for x, y in zip(rest, axis, strict=True)]
        norm = mp.sqrt(dot(rest, rest))
        if norm > mpf(10) ** (-mp.dps // 2) * mp.sqrt(dot(vector, vector)):
            found.append([x / norm for x in rest])
    return found
