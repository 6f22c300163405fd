"""Writes `values.json`: losses and derivatives to 60 digits, as expectations over Gaussian inputs and nothing else.

    python tests/reference/make.py            all values, a few minutes
    python tests/reference/check.py           some of them by other routes

Inputs are doubles, written so that they are read back as the same doubles. Outputs are strings of 30 digits. With each
output stands the size of the terms that it is a sum of, which says what rounding may do to it.

Derivatives are central differences of 120-digit values (of 60-digit ones where an integral is needed), so that they are
independent of every formula for derivatives; those of two tanh or two log cosh are by Stein's identity.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp, mpf

sys.path.insert(0, str(Path(__file__).parents[1]))
from reference import gaussian as gs  # noqa: E402
from reference.gaussian import dot  # noqa: E402

HERE = Path(__file__).parent
UNITS, TEACHERS, FRAME = 3, 2, 3
Row = tuple[Any, ...]


def shown(x: Any) -> Any:
    return [shown(each) for each in x] if isinstance(x, (list, tuple)) else mp.nstr(x, 30)


def size(x: Any) -> Any:
    """Of a term: a double is enough."""
    return [size(each) for each in x] if isinstance(x, (list, tuple)) else float(mp.nstr(x, 3))


def long(matrix: Any) -> list[Row]:
    return [tuple(mpf(float(x)) for x in row) for row in matrix]


class Case(NamedTuple):
    """Two-layer networks with one output, by their rows and outgoing weights."""

    name: str
    first: Any
    second: Any
    target: Any
    outer: Any


# Two-layer networks -------------------------------------------------------------------------------------------------


class Loss:
    """`1/2 E (f - f*)^2`; of a tied student the outgoing weights are multiplied by the norms."""

    def __init__(self, student: str, teacher: str, case: Case, tied: bool = False):
        self.names, self.tied = (student, teacher), tied
        self.first, self.target = long(case.first), long(case.target)
        self.second, self.outer = ([mpf(float(x)) for x in part] for part in (case.second, case.outer))

    def units(self, first: list[Row], second: list[Any]) -> list[tuple[str, Row, Any]]:
        """All units as (activation, row, signed outgoing weight)."""
        out = [s * mp.sqrt(dot(w, w)) for w, s in zip(first, second, strict=True)] if self.tied else second
        left = [(self.names[0], w, s) for w, s in zip(first, out, strict=True)]
        return left + [(self.names[1], w, -s) for w, s in zip(self.target, self.outer, strict=True)]

    def terms(self, first: list[Row], second: list[Any]) -> list[Any]:
        units = self.units(first, second)
        return [
            (1 if i == j else 2) * x[2] * y[2] * gs.expectation(x[0], y[0], x[1], y[1]) / 2
            for i, x in enumerate(units)
            for j, y in enumerate(units[: i + 1])
        ]

    def at(self, place: list[Any]) -> list[Any]:
        """The terms where all weights stand in one list: outgoing ones first, as in the package's Hessians."""
        count, columns = len(self.first), len(self.first[0])
        rows = [tuple(place[count + i * columns : count + (i + 1) * columns]) for i in range(count)]
        return self.terms(rows, place[:count])

    def small(self) -> Any:
        """The relative step of differences."""
        return mpf(10) ** (-30 if gs.closed(*self.names) and gs.closed(*self.names[:1] * 2) else -18)

    def gradient(self) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """In rows and in outgoing weights, each with the size of its terms. None for a row without a derivative."""
        units, small = self.units(self.first, self.second), self.small()
        rows, row_sizes, outs, out_sizes = [], [], [], []
        for i, (name, w, s) in enumerate(units[: len(self.first)]):
            meets = [(t * gs.expectation(name, other, w, b)) for other, b, t in units]
            norm = mp.sqrt(dot(w, w))
            outs.append(mp.fsum(meets) * (norm if self.tied else 1))
            out_sizes.append(mp.fsum(map(abs, meets)) * (norm if self.tied else 1))
            if norm == 0:
                rows.append(None)
                row_sizes.append(None)
                continue
            pulls = [[s * t * x for x in gs.pull(name, other, w, b, small)] for other, b, t in units]
            if self.tied:
                along = self.second[i] * mp.fsum(meets) / norm
                pulls.append([along * x for x in w])
            rows.append([mp.fsum(column) for column in zip(*pulls, strict=True)])
            row_sizes.append(mp.fsum(mp.sqrt(dot(x, x)) for x in pulls))
        return rows, row_sizes, outs, out_sizes

    def hessian(self, pairs: list[tuple[int, int]]) -> list[tuple[int, int, Any, Any]]:
        """Entries with the sizes of their terms; none in a row without a direction."""
        place, small = [*self.second, *(x for row in self.first for x in row)], mpf(10) ** -25
        norms = [mp.sqrt(dot(w, w)) for w in self.first for _ in w]
        steps = [small] * len(self.first) + [small * norm for norm in norms]
        found = []
        for i, j in pairs:
            if 0 in (steps[i], steps[j]):
                continue
            corners = []
            for one, other in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                spot = list(place)
                spot[i] += one * steps[i]
                spot[j] += other * steps[j]
                corners.append([one * other * term / (4 * steps[i] * steps[j]) for term in self.at(spot)])
            terms = [mp.fsum(term) for term in zip(*corners, strict=True)]
            found.append((i, j, mp.fsum(terms), mp.fsum(map(abs, terms))))
        return found


HESSIAN = [(0, 0), (0, 1), (0, 3), (1, 3), (3, 3), (3, 4), (3, 6), (4, 8), (8, 8)]
"""Outgoing weights 0 to 2, then rows of 3: all blocks, of one unit and of two."""


def written(student: str, teacher: str, case: Case, *, tied: bool = False, hessian: bool = False) -> dict[str, Any]:
    exact = all(gs.closed(*pair) for pair in ((student, student), (student, teacher), (teacher, teacher)))
    with mp.workdps(120 if exact else gs.DIGITS):
        loss = Loss(student, teacher, case, tied)
        terms = loss.terms(loss.first, loss.second)
        rows, row_sizes, outs, out_sizes = loss.gradient()
        found = {
            **{"case": case.name, "first": case.first, "second": case.second},
            **{"target": case.target, "outer": case.outer},
            **{"loss": shown(mp.fsum(terms)), "loss_terms": size(mp.fsum(map(abs, terms)))},
            "gradient": [None if row is None else shown(row) for row in rows],
            "gradient_terms": [None if each is None else size(each) for each in row_sizes],
            **{"outgoing": shown(outs), "outgoing_terms": size(out_sizes)},
        }
        if hessian and exact:
            found["hessian"] = [[i, j, shown(x), size(terms)] for i, j, x, terms in loss.hessian(HESSIAN)]
    return found


# Configurations -----------------------------------------------------------------------------------------------------


def drawn(seed: int, norm: float = 1.0, columns: int = FRAME) -> Case:
    draw = np.random.default_rng(seed)
    first, target = (norm * draw.standard_normal((n, columns)) / columns**0.5 for n in (UNITS, TEACHERS))
    second, outer = (draw.standard_normal(n) for n in (UNITS, TEACHERS))
    return Case(f"random {seed}", first.tolist(), second.tolist(), target.tolist(), outer.tolist())


def degenerate() -> list[Case]:
    """Rows as special as they come; all are doubles that mean exactly what they say."""
    plain = drawn(7)
    a, b = np.array(plain.target)
    other = np.array(plain.first)[2]
    across = np.array([-a[1], a[0], 0.0])

    def case(name: str, first: Any, second: Any = (0.75, -0.5, 1.25), target: Any = (a, b)) -> Case:
        return Case(name, np.array(first).tolist(), list(second), np.array(target).tolist(), plain.outer)

    outer = plain.outer
    return [
        case("aligned", [0.5 * a, 2 * b, other]),
        case("opposite", [-0.5 * a, -b, other]),
        case("orthogonal", [across, [0.0, 0.0, 1.5], other], target=([a[0], a[1], 0.0], [1.0, 0.0, 0.0])),
        case("nearly aligned", [a + 1e-9 * across, b + 1e-6 * across, other]),
        case("nearly opposite", [-a + 1e-9 * across, -b + 1e-6 * across, other]),
        case("a zero row", [np.zeros(3), 2 * b, other]),
        case("duplicates", [other, other, -other]),
        case("equal teachers", [a, other, b], target=(a, a)),
        case("one line", [a, -2 * a, 0.25 * a], target=(a, -0.5 * a)),
        case("at the optimum", [a, b, other], (outer[0], outer[1], 0.0)),
        case("at a split optimum", [a, 0.5 * a, b], (0.5 * outer[0], outer[0], outer[1])),
        case("1e-3 off the optimum", [a * (1 + 1e-3), b + 1e-3 * across, other], (outer[0], outer[1], 1e-3)),
        case("1e-8 off the optimum", [a * (1 + 1e-8), b + 1e-8 * across, other], (outer[0], outer[1], 1e-8)),
    ]


def norms() -> list[Case]:
    plain = drawn(8)
    sizes = {"1e-12": (1e-12, 1e-12, 1e-12), "1e6": (1e6, 1e6, 1e6), "1e-12, 1, 1e6": (1e-12, 1.0, 1e6)}
    return [
        plain._replace(name=f"norms {name}", first=(np.array(plain.first) * np.array(by)[:, None]).tolist())
        for name, by in sizes.items()
    ]


KINKED = ("relu", "abs", "half_abs", "leaky_relu", "linear")
PAIRS: dict[str, list[tuple[str, str]]] = {
    # Which form the package takes is another for each of these.
    "kinked": [("relu", "relu"), ("relu", "linear"), ("relu", "abs"), ("abs", "abs"), ("leaky_relu", "relu")],
    "erf": [("erf", "erf"), ("two_erf", "erf")],
    "polynomials": [("he2", "he2"), ("he3", "he2"), ("he4", "polynomial")],
}
OTHERS = [
    *(("linear", "relu"), ("half_abs", "leaky_relu"), ("abs", "linear"), ("linear", "linear"), ("probit", "two_erf")),
    *(("relu", "erf"), ("erf", "relu"), ("relu", "he2"), ("he3", "abs"), ("erf", "he3"), ("he1", "probit")),
    *(("relu_and_erf", "relu"), ("abs_and_he3", "erf"), ("relu", "constant"), ("he6", "he6")),
]
INTEGRALS = [
    *(("tanh", "tanh"), ("sigmoid", "relu"), ("tanh", "erf"), ("erf", "sigmoid"), ("sigmoid", "he3")),
    *(("softplus", "linear"), ("erf", "softplus"), ("gelu", "gelu"), ("gelu", "relu"), ("sin", "sin"), ("sin", "tanh")),
]


def two_layers() -> Iterator[tuple[str, dict[str, Any]]]:
    random, special, long_and_short = [drawn(seed) for seed in (1, 2)], degenerate(), norms()
    for group, pairs in PAIRS.items():
        for student, teacher in pairs:
            # The eighth power of 1e6 says nothing about anything.
            cases = random + special + (long_and_short if group != "polynomials" else long_and_short[:1])
            rows = [written(student, teacher, case, hessian=True) for case in cases]
            yield group, {"student": student, "teacher": teacher, "cases": rows}
    for student, teacher in OTHERS:
        cases = [random[0], special[0], special[6]]
        yield "mixed", {"student": student, "teacher": teacher, "cases": [written(student, teacher, c) for c in cases]}
    for student, teacher in INTEGRALS:
        rows = [written(student, teacher, drawn(3, 0.5))]
        yield "integrals", {"student": student, "teacher": teacher, "cases": rows}
    for student, teacher in (("relu", "relu"), ("erf", "erf")):
        rows = [written(student, teacher, drawn(seed, columns=1)) for seed in (4, 5, 6)]
        yield "one dimension", {"student": student, "teacher": teacher, "cases": rows}
    for student, teacher in (("abs", "abs"), ("relu", "relu"), ("erf", "he2")):
        chosen = [random[0], *(c for c in special if c.name in ("aligned", "opposite", "duplicates", "a zero row"))]
        rows = [written(student, teacher, case, tied=True) for case in (chosen if student != "erf" else chosen[:1])]
        yield "tied", {"student": student, "teacher": teacher, "cases": rows}


# Loss by tensor order -----------------------------------------------------------------------------------------------

ORDERS = 5


def coefficient(name: str, norm: Any, order: int) -> Any:
    """`E[s(norm z) He_k(z)] / sqrt(k!)`."""
    line = (mpf(norm),), (mpf(1),)
    return gs.expectation(name, f"he{order}", *line) / mp.sqrt(mp.factorial(order))


def by_order(student: str, teacher: str, case: Case) -> dict[str, Any]:
    """`1/2 |T_k|^2`, with every entry of the tensor `T_k = E[(f - f*) h_k]` written out."""
    loss = Loss(student, teacher, case)
    units = loss.units(loss.first, loss.second)
    found, terms = [], []
    for order in range(ORDERS):
        total, squares = np.full((FRAME,) * order, mpf(0), dtype=object), mpf(0)
        for name, w, s in units:
            norm = mp.sqrt(dot(w, w))
            entry = np.array(s * coefficient(name, norm, order), dtype=object)
            squares += abs(entry.item())
            for _ in range(order):
                entry = np.multiply.outer(entry, np.array([x / norm for x in w], dtype=object))
            total = np.add(total, entry, dtype=object)
        found.append(mp.fsum(x**2 for x in np.ravel(total)) / 2)
        terms.append(squares**2 / 2)
    weights = {"first": case.first, "second": case.second, "target": case.target, "outer": case.outer}
    return {"case": case.name, **weights, "orders": shown(found), "orders_terms": size(terms)}


def orders() -> Iterator[tuple[str, dict[str, Any]]]:
    special = [case for case in degenerate() if case.name in ("aligned", "opposite", "1e-3 off the optimum")]
    for student, teacher in (("relu", "abs"), ("erf", "erf"), ("he3", "relu"), ("sigmoid", "tanh")):
        cases = [drawn(1), *(special if student != "sigmoid" else [])]
        rows = [by_order(student, teacher, case) for case in cases]
        yield "orders", {"student": student, "teacher": teacher, "cases": rows}


# Mixtures of gated experts ------------------------------------------------------------------------------------------


def gate(name: str, z: Any, order: int) -> Any:
    return mp.fsum(part.weight * part.scale**order * gs.value(part, part.scale * z, order) for part in gs.parts(name))


def gate_step(*names: str) -> Any:
    return min(gs._step(*((part, mpf(part.scale)) for part in gs.parts(name))) for name in names)


class Gates:
    """Means `E[g^(m)(z1) h(v) z1^i z2^j]` for two gates at routers whose cosine is `c`: `v = c z1 + sqrt(1-c^2) z2`."""

    def __init__(self, left: str, right: str, cosine: Any, highest: int, finer: Any = 1):
        points, weights = gs.grid(gate_step(left, right) / finer)
        across = mp.sqrt(1 - cosine**2) if abs(cosine) < 1 - mpf(10) ** -30 else mpf(0)
        self.one_line = across == 0
        own = [[gate(left, z, order) for z in points] for order in (0, 1)]
        powers = [[w * z**j for w, z in zip(weights, points, strict=True)] for j in range(highest + 1)]
        if self.one_line:
            inner = [[gate(right, cosine * z, 0) for z in points]]
        else:
            seen = [[gate(right, cosine * z + across * y, 0) for y in points] for z in points]
            inner = [[mp.fdot(powers[j], row) for row in seen] for j in range(highest + 1)]
        self.table = {
            (order, i, j): mp.fdot(powers[i], (x * y for x, y in zip(own[order], inner[j], strict=True)))
            for order in (0, 1)
            for i in range(highest + 1)
            for j in range(min(len(inner), highest + 1 - i))
        }

    def mean(self, terms: gs.Terms, order: int) -> Any:
        known = 1 if self.one_line else 2
        return gs.mean(terms, lambda i, j=0: self.table[order, i, j], known)


class Unit(NamedTuple):
    gate: str
    degree: int
    router: Row
    expert: Row
    out: Any


def unit_vector(row: Row) -> Row:
    norm = mp.sqrt(dot(row, row))
    return tuple(x / norm for x in row)


_TABLES: dict[Any, Gates] = {}


def met(x: Unit, y: Unit, derivatives: bool) -> tuple[Any, list[Any], list[Any]]:
    """`E[x y]`, and its gradients in the router and in the expert of x (as free vectors of unit norm)."""
    v, w, v2, w2 = (unit_vector(row) for row in (x.router, x.expert, y.router, y.expert))
    axes = gs.basis(v, v2)
    key = (x.gate, y.gate, mp.nstr(dot(v, v2), 40))
    highest = x.degree + y.degree + 1
    if key not in _TABLES:
        _TABLES[key] = Gates(x.gate, y.gate, dot(v, v2), highest)
    gates, columns = _TABLES[key], len(v)

    def seen(row: Row) -> gs.Terms:
        return gs.linear([dot(axis, row) for axis in axes])

    bump = gs.composed(gs.he(x.degree), seen(w), columns)
    slope = gs.composed([x.degree * c for c in gs.he(x.degree - 1)], seen(w), columns)
    other = gs.composed(gs.he(y.degree), seen(w2), columns)
    value = gates.mean(gs.product(bump, other), 0)
    if not derivatives:
        return value, [], []
    both, bent = gs.product(bump, other), gs.product(slope, other)
    inputs = [seen(tuple(mpf(int(k == j)) for j in range(columns))) for k in range(columns)]
    router = [gates.mean(gs.product(both, each), 1) for each in inputs]
    expert = [gates.mean(gs.product(bent, each), 0) for each in inputs]
    return value, router, expert


def projected(free: list[Any], row: Row) -> list[Any]:
    """The gradient in a row of which only the direction counts."""
    norm, axis = mp.sqrt(dot(row, row)), unit_vector(row)
    along = dot(free, axis)
    return [(x - along * y) / norm for x, y in zip(free, axis, strict=True)]


def mixture(name: str, left: tuple[str, int], right: tuple[str, int], rows: Any, taught: Any) -> dict[str, Any]:
    """`rows`: routers, experts, outgoing weights of the students; `taught`: of the teachers."""
    made = [
        [Unit(*kind, tuple(map(mpf, v)), tuple(map(mpf, w)), sign * mpf(s)) for v, w, s in zip(*part, strict=True)]
        for kind, part, sign in ((left, rows, 1), (right, taught, -1))
    ]
    students, units = made[0], made[0] + made[1]
    values = {(i, j): met(x, y, i < len(students)) for i, x in enumerate(units) for j, y in enumerate(units)}
    terms = [units[i].out * units[j].out * each[0] / 2 for (i, j), each in values.items()]
    routers, experts, outs, sizes = [], [], [], []
    for i, x in enumerate(students):
        pulls: list[list[list[Any]]] = [[], []]
        for j, y in enumerate(units):
            for part, (free, row) in enumerate(((values[i, j][1], x.router), (values[i, j][2], x.expert))):
                pulls[part].append([x.out * y.out * each for each in projected(free, row)])
        routers.append([mp.fsum(column) for column in zip(*pulls[0], strict=True)])
        experts.append([mp.fsum(column) for column in zip(*pulls[1], strict=True)])
        outs.append(mp.fsum(y.out * values[i, j][0] for j, y in enumerate(units)))
        # Before the projection: what a sum in double precision has to go through.
        sizes.append(
            [
                mp.fsum(abs(x.out * y.out) * mp.sqrt(dot(f, f)) for j, y in enumerate(units) for f in [values[i, j][k]])
                for k in (1, 2)
            ]
        )
    return {
        **{"case": name, "student": left, "teacher": right, "rows": rows, "taught": taught},
        **{"loss": shown(mp.fsum(terms)), "loss_terms": size(mp.fsum(map(abs, terms)))},
        **{"gradient": shown(routers + experts), "outgoing": shown(outs)},
        "gradient_terms": size([s[0] for s in sizes] + [s[1] for s in sizes]),
    }


def mixtures() -> Iterator[tuple[str, dict[str, Any]]]:
    draw = np.random.default_rng(9)

    def rows(count: int) -> list[Any]:
        return [*draw.standard_normal((2, count, 3)).tolist(), draw.standard_normal(count).tolist()]

    student, teacher = rows(2), rows(1)
    same = [[student[0][0], student[0][0]], [student[1][0], [-x for x in student[1][0]]], student[2]]
    taught = [[student[0][0]], [student[1][1]], [0.75]]
    axes = [np.eye(3)[:2].tolist(), np.eye(3)[1:].tolist(), [1.0, -0.5]]
    for left, right in ((("sigmoid", 3), ("sigmoid", 3)), (("tanh", 2), ("tanh", 2)), (("sigmoid", 2), ("probit", 4))):
        _TABLES.clear()
        cases = [
            ("random", student, teacher),
            ("equal routers, opposite experts, aligned teacher", same, taught),
            ("axes", axes, [[[1.0, 0.0, 0.0]], [[0.0, -1.0, 0.0]], [1.0]]),
        ]
        yield "mixtures", {"cases": [mixture(name, left, right, *both) for name, *both in cases]}


# Clusters -----------------------------------------------------------------------------------------------------------


def shifted_moment(name: str, shift: Any, power: int, order: int) -> Any:
    """`E[s^(order)(u + shift) u^power]`, order 0 or 1: an integral over each side of the kink, if there is one."""

    def s(z: Any) -> Any:
        if name == "relu":
            return max(z, mpf(0)) if order == 0 else mpf(int(z > 0))
        return gate(name, z, order)

    def density(u: Any) -> Any:
        return s(u + shift) * u**power * mp.exp(-(u**2) / 2) / mp.sqrt(2 * mp.pi)

    if name == "relu":
        reach = mpf(19)
        return mp.quad(density, mp.linspace(max(-shift, -reach), reach, 8), method="gauss-legendre")
    points, weights = gs.grid(mpf(1) / 16)
    return mp.fdot(weights, (s(u + shift) * u**power for u in points))


def clusters() -> Iterator[tuple[str, dict[str, Any]]]:
    """Correlation and the vectors `E[y a s'(w.x + b) x]` and `E[y a s(w.x + b) x]` of a unit, by powers of `w.z`."""
    draw = np.random.default_rng(10)
    problem = {
        **{"dim": 3, "radius": 1.375, "weights": [0.25, 0.75], "means": draw.standard_normal((2, 3)).tolist()},
        "local": [[0.25, 0.5, 0.0, 1.0], [0.0, 0.0, -1.0, 0.5]],
        **{"shared": [0.0, 0.0, 1.0, -0.75], "interference": [0.75, -1.25]},
        "directions": draw.standard_normal((3, 3)).tolist(),
    }
    means, directions = ([unit_vector(row) for row in long(problem[name])] for name in ("means", "directions"))
    rows = []
    for name in ("relu", "tanh", "he3"):
        w, bias, out = unit_vector(long(draw.standard_normal((1, 3)))[0]), mpf(0.375), mpf(-1.5)
        given = [float(x) for x in w]  # the unit is made of length one again
        w = unit_vector(long([given])[0])
        rows.append({"kind": name, "row": given, "bias": 0.375, "outgoing": -1.5})
        axes = gs.basis(w)
        sums = [mpf(0), [mpf(0)] * 3, [mpf(0)] * 3]
        for c, weight in enumerate(problem["weights"]):
            centre = [mpf(problem["radius"]) * x for x in means[c]]
            shift = bias + dot(w, centre)
            moments = [[shifted_moment(name, shift, power, order) for power in range(6)] for order in (0, 1)]
            tables: list[Callable[[int], Any]] = [lambda i, row=row: row[i] for row in moments]

            def seen(direction: Row, axes: Any = axes, centre: Any = centre) -> gs.Terms:
                return gs.linear([dot(axis, direction) for axis in axes], dot(direction, centre))

            label = gs.total(
                normal(problem["local"][c], seen(directions[c])),
                gs.times(mpf(problem["interference"][c]), normal(problem["shared"], seen(directions[2]))),
            )
            factor = mpf(weight) * out
            sums[0] += factor * gs.mean(label, tables[0], 1)
            for k in range(3):
                times = gs.product(label, seen(tuple(mpf(int(j == k)) for j in range(3))))
                sums[1][k] += factor * gs.mean(times, tables[1], 1)
                sums[2][k] += factor * gs.mean(times, tables[0], 1)
        along = dot(sums[1], w)
        turning = [x - along * y for x, y in zip(sums[1], w, strict=True)]
        rows[-1] |= {"correlation": shown(sums[0]), "turning": shown(turning), "router": shown(sums[2])}
    yield "clusters", {"problem": problem, "cases": rows}
    shifts = [-3.0, -0.625, 0.0, 0.25, 4.0]
    for name in ("relu", "abs", "tanh", "he3", "erf"):
        tables_of = [shown([hermite_coefficient(name, mpf(m), i) for i in range(6)]) for m in shifts]
        yield "shifted", {"kind": name, "shifts": shifts, "coefficients": tables_of}


def normal(coefficients: list[float], inner: gs.Terms) -> gs.Terms:
    """`sum_i c_i He_i(inner) / sqrt(i!)`."""
    each = [
        gs.times(mpf(c) / mp.sqrt(mp.factorial(i)), gs.composed(gs.he(i), inner, 3)) for i, c in enumerate(coefficients)
    ]
    return gs.total(*each)


def hermite_coefficient(name: str, shift: Any, order: int) -> Any:
    """`E[s(z + shift) He_i(z)] / sqrt(i!)`."""
    powers = gs.he(order)
    if name == "abs":  # |z| = 2 relu(z) - z
        relu = mp.fsum(c * shifted_moment("relu", shift, p, 0) for p, c in enumerate(powers) if c)
        plain = {0: shift, 1: mpf(1)}.get(order, mpf(0))
        return (2 * relu - plain) / mp.sqrt(mp.factorial(order))
    return mp.fsum(c * shifted_moment(name, shift, p, 0) for p, c in enumerate(powers) if c) / mp.sqrt(
        mp.factorial(order)
    )


def everything() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for part in (two_layers, orders, mixtures, clusters):
        for group, row in part():
            found.setdefault(group, []).append(row)
            print(group, row.get("student", ""), row.get("teacher", ""), flush=True)
    return found


def main() -> None:
    with mp.workdps(gs.DIGITS):
        text = json.dumps(everything(), separators=(",", ":"))
    # A line for each case, so that a change can be read.
    (HERE / "values.json").write_text(text.replace('{"case"', '\n{"case"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
