"""Averages of four units: `E[s'(x_i) s'(x_k) g_a(x_a) g_b(x_b)]` over jointly Gaussian arguments.

The noise of online SGD in high dimension is made of them. Two slopes of erf are a Gaussian factor, which changes the
covariance and leaves an arcsine kernel (Saad and Solla 1995). For piecewise linear units all is elementary but the
probability that four Gaussian numbers are positive, which is an integral over one variable (Plackett 1954). Products of
polynomials are summed exactly by a Gauss-Hermite rule.
"""

import itertools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tutelage._errors import BadInput
from tutelage.oracle.geometry import over
from tutelage.oracle.kernels.series import SeriesKernel
from tutelage.problem.activations import Activation
from tutelage.problem.atoms import Atom, ErfMixture, PiecewiseLinear, Polynomial

Covariance = Float[Array, "unit unit"]
Fourth = Float[Array, "student student unit unit"]

HIGHEST = 5
"""Of a polynomial: the rule has (2 degree)^4 nodes."""
NOTHING = 4e-15
"""A variance, as a part of what it was, that is rounding: such a number counts as independent of all others."""


EQUAL = 1e-12
"""Two numbers whose correlation is this near to one are the same."""


def fourth(student: Activation, teacher: Activation, students: int, teachers: int) -> Callable[[Covariance], Fourth]:
    """`E[s'(x_i) s'(x_k) g_a(x_a) g_b(x_b)]`, i and k students, a and b students or teachers (in this order), as a
    function of the covariance of all arguments.

    Right to rounding for erf and polynomials. For piecewise linear units right to about 1e-8 of the squared arguments,
    which is all of it where a student is at an angle below 1e-4 to its teacher.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> from tutelage.oracle.kernels.fourth import fourth
    >>> relu = tt.activation("relu")
    >>> average = fourth(relu, relu, 1, 1)(jnp.eye(2))
    >>> [round(float(average[0, 0, a, a]), 9) for a in (0, 1)]  # E[relu(x)^2], and half of it
    [0.5, 0.25]

    ```
    """
    atoms = [_atom(activation) for activation in (student, teacher)]
    polynomials = [_polynomial(atom) for atom in atoms]
    if all(0 < len(each) <= HIGHEST + 1 for each in polynomials):
        return _Powers(polynomials, students, teachers)
    if all(isinstance(atom, PiecewiseLinear) for atom in atoms):
        return _Kinked(atoms, students, teachers)
    if all(isinstance(atom, ErfMixture) and len(atom.slopes) == 1 for atom in atoms):
        return _Bells(atoms, students, teachers)
    raise BadInput(
        f"The noise of SGD has no exact form for {student.name!r} learning from {teacher.name!r}: both must be erf, "
        f"or piecewise linear, or polynomials up to degree {HIGHEST}; take tt.Sgd at a large dim."
    )


def slopes(student: Activation, rows: Float[Array, "student column"]) -> Float[Array, "student student"]:
    """`E[s'(w_i.x) s'(w_k.x)]` of rows, for the activations that `fourth` takes.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> from tutelage.oracle.kernels.fourth import slopes
    >>> slopes(tt.activation("relu"), jnp.eye(2)).round(12).tolist()
    [[0.5, 0.25], [0.25, 0.5]]

    ```
    """
    atom, gram = _atom(student), rows @ rows.T
    size = jnp.diagonal(gram)
    if isinstance(atom, ErfMixture):
        b = 2 * atom.slopes[0] ** 2
        wide = (1 + b * size)[:, None] * (1 + b * size)[None] - (b * gram) ** 2
        return 2 * b * atom.weights[0] ** 2 / math.pi / jnp.sqrt(wide)
    if isinstance(atom, PiecewiseLinear):
        root = jnp.sqrt(size[:, None] * size[None])
        turn = 2 / math.pi * jnp.arcsin(jnp.clip(over(gram, root), -1, 1))
        return atom.linear**2 + atom.kink**2 * turn
    derived = Polynomial(tuple(np.polynomial.polynomial.polyder(np.array(_polynomial(atom))).tolist()))
    return SeriesKernel(derived, derived, len(derived.coefficients)).value(rows, rows)


def _atom(activation: Activation) -> Atom | None:
    """The atom of an activation that has only one."""
    return activation.atoms[0] if len(activation.atoms) == 1 else None


def _polynomial(atom: Atom | None) -> tuple[float, ...]:
    if isinstance(atom, PiecewiseLinear) and not atom.kink:
        return (0.0, atom.linear)
    return atom.coefficients if isinstance(atom, Polynomial) else ()


def _per_unit(values: list[float], counts: tuple[int, int]) -> np.ndarray:
    return np.repeat(np.array(values, float), counts)


class _Bells:
    """erf: the slopes are bells, which make the arguments narrower."""

    def __init__(self, atoms: list[Atom | None], students: int, teachers: int):
        known = [atom for atom in atoms if isinstance(atom, ErfMixture)]
        counts = students, teachers
        self.students = students
        self.weight = _per_unit([atom.weights[0] for atom in known], counts)
        self.slope = _per_unit([atom.slopes[0] for atom in known], counts)

    def __call__(self, covariance: Covariance) -> Fourth:
        pairs = jnp.asarray(list(itertools.product(range(self.students), repeat=2)))
        found = jax.vmap(lambda pair: self._pair(covariance, pair))(pairs)
        return found.reshape(self.students, self.students, *covariance.shape)

    def _pair(self, covariance: Covariance, pair: Array) -> Covariance:
        weight, slope = float(self.weight[0]), float(self.slope[0])
        rows = covariance[pair]
        block = rows[:, pair] + jnp.eye(2) / (2 * slope**2)
        narrow = covariance - rows.T @ jnp.linalg.solve(block, rows)
        height = (2 * slope * weight) ** 2 / math.pi / jnp.sqrt(jnp.linalg.det(2 * slope**2 * block))
        b = jnp.asarray(self.slope)
        spread = jnp.sqrt(1 + 2 * b**2 * jnp.diagonal(narrow))
        sine = 2 * (b[:, None] * b[None]) * narrow / (spread[:, None] * spread[None])
        outer = jnp.asarray(np.outer(self.weight, self.weight))
        return height * 2 / math.pi * outer * jnp.arcsin(jnp.clip(sine, -1, 1))


class _Powers:
    """Polynomials, by a rule that is exact for their products."""

    def __init__(self, polynomials: list[tuple[float, ...]], students: int, teachers: int):
        self.polynomials = [np.array(each) for each in polynomials]
        self.students, self.units = students, students + teachers
        order = max(len(each) - 1 for each in polynomials)
        nodes, weights = np.polynomial.hermite_e.hermegauss(max(2 * order, 1))
        self.nodes = np.stack([grid.ravel() for grid in np.meshgrid(*[nodes] * 4, indexing="ij")])
        grids = np.meshgrid(*[weights / weights.sum()] * 4, indexing="ij")
        self.weights = np.prod([grid.ravel() for grid in grids], axis=0)

    def __call__(self, covariance: Covariance) -> Fourth:
        places = jnp.asarray(_quadruples(self.students, self.units))
        found: Array = jax.lax.map(lambda four: self._one(covariance, four), places)
        return found.reshape(self.students, self.students, self.units, self.units)

    def _one(self, covariance: Covariance, four: Array) -> Array:
        values, axes = jnp.linalg.eigh(covariance[four[:, None], four[None]])
        x = (axes * jnp.sqrt(jnp.maximum(values, 0.0))[None]) @ jnp.asarray(self.nodes)
        slopes = [self._value(0, x[n], 1) for n in (0, 1)]
        taught = four >= self.students
        heights = [jnp.where(taught[n], self._value(1, x[n], 0), self._value(0, x[n], 0)) for n in (2, 3)]
        return jnp.sum(jnp.asarray(self.weights) * slopes[0] * slopes[1] * heights[0] * heights[1])

    def _value(self, side: int, x: Array, order: int) -> Array:
        values = np.polynomial.polynomial.polyder(self.polynomials[side], order)
        return jnp.polyval(jnp.asarray(values[::-1]), x)


def _quadruples(students: int, units: int) -> np.ndarray:
    ranges = [range(students)] * 2 + [range(units)] * 2
    return np.array(list(itertools.product(*ranges)))


class _Kinked:
    """Piecewise linear units: `p relu(z) - q relu(-z)`, so that each average is a sum of those of ReLU."""

    def __init__(self, atoms: list[Atom | None], students: int, teachers: int):
        known = [atom for atom in atoms if isinstance(atom, PiecewiseLinear)]
        counts = students, teachers
        self.students, self.units = students, students + teachers
        right = _per_unit([atom.linear + atom.kink for atom in known], counts)
        left = _per_unit([atom.linear - atom.kink for atom in known], counts)
        self.slopes, self.heights = {1: right, -1: left}, {1: right, -1: -left}

    def __call__(self, covariance: Covariance) -> Fourth:
        places = _quadruples(self.students, self.units)
        four = jnp.asarray(places)
        blocks = covariance[four[:, :, None], four[:, None, :]]
        signs, factors = self._expanded(places)
        turns = jnp.asarray(signs[:, :, None] * signs[:, None, :])
        ramps = jax.vmap(jax.vmap(_ramps))(turns[:, None] * blocks[None])
        total = jnp.sum(jnp.asarray(factors) * ramps, axis=0)
        return total.reshape(self.students, self.students, self.units, self.units)

    def _expanded(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Signs of the four arguments in each term that is not zero, and its factors at all places."""
        sides = [self.slopes, self.slopes, self.heights, self.heights]
        signs = np.array(list(itertools.product((1, -1), repeat=4)))
        factors = np.array([np.prod([sides[n][row[n]][places[:, n]] for n in range(4)], axis=0) for row in signs])
        kept = np.any(factors != 0, axis=1)
        return signs[kept].astype(float), factors[kept]


FLAT = 1 / math.sqrt(2 * math.pi)
"""The height of the normal density."""


def _ramps(covariance: Float[Array, "4 4"]) -> Array:
    """`E[1(x_0 > 0) 1(x_1 > 0) relu(x_2) relu(x_3)]`, by parts until only chances are left.

    A sign that another number has already says nothing: it is given to an independent number, whose sign is right half
    of the time. Opposite numbers are not both positive.
    """
    size = jnp.sqrt(jnp.diagonal(covariance))
    cosine = jnp.clip(over(covariance, size[:, None] * size[None]), -1, 1)
    same, opposite = cosine > 1 - EQUAL, cosine < EQUAL - 1
    known = jnp.stack(
        [same[0, 2] | same[0, 3], same[1, 0] | same[1, 2] | same[1, 3], jnp.array(False), jnp.array(False)]
    )
    free = jnp.where(known[:, None] | known[None], jnp.eye(4), cosine)
    total = free[2, 3] * positive(free)
    for j in range(3):
        others = [n for n in (0, 1, 2) if n != j]
        total = total + (1.0 if j == 2 else free[2, j]) * FLAT * _ramp(_given(free, (j,)), others)
    return jnp.where(jnp.any(opposite), 0.0, size[2] * size[3] * total * jnp.prod(jnp.where(known, 2.0, 1.0)))


def _ramp(covariance: Float[Array, "4 4"], others: list[int]) -> Array:
    """`E[1(x_a > 0) 1(x_b > 0) relu(x_3)]` of three numbers."""
    a, b = others
    total = jnp.zeros(())
    for j, pair in ((a, (b, 3)), (b, (a, 3)), (3, (a, b))):
        width = jnp.sqrt(jnp.maximum(covariance[j, j], 0.0))
        share = jnp.where(covariance[j, j] > NOTHING, over(covariance[3, j], width), 0.0)
        total = total + share * FLAT * _both(_given(covariance, (j,)), *pair)
    return total


def _given(covariance: Float[Array, "4 4"], zero: tuple[int, ...]) -> Float[Array, "4 4"]:
    """The covariance of all when some are known to be 0."""
    for j in zero:
        column, variance = covariance[:, j], covariance[j, j]
        known = jnp.where(variance > NOTHING, over(jnp.outer(column, column), variance), 0.0)
        covariance = covariance - known
    return covariance


def _both(covariance: Float[Array, "4 4"], a: int, b: int) -> Array:
    """The chance that two numbers are positive; 1/4 if one of them is always 0, as of a number of either sign."""
    one, two = covariance[a, a], covariance[b, b]
    there = (one > NOTHING) & (two > NOTHING)
    root = jnp.sqrt(jnp.where(there, one * two, 1.0))
    sine = jnp.where(there, jnp.clip(covariance[a, b] / root, -1, 1), 0.0)
    return 0.25 + jnp.arcsin(sine) / (2 * math.pi)


def _rule() -> tuple[np.ndarray, np.ndarray]:
    """`1 - t` and weights of the double exponential rule on [0, 1]: it takes whatever happens at the end t = 1."""
    step = 0.1
    u = step * np.arange(-32, 33)
    bent = np.pi / 2 * np.sinh(u)
    return 1 / (1 + np.exp(2 * bent)), step * np.pi / 4 * np.cosh(u) / np.cosh(bent) ** 2


_LEFT, _WEIGHTS = _rule()


def positive(cosine: Float[Array, "4 4"]) -> Array:
    """The chance that four Gaussian numbers with these correlations are all positive.

    Plackett: correlations grow from 0 to what they are, and each adds the chance that the other two numbers are
    positive where its own two are 0.

    ```python
    >>> import jax.numpy as jnp
    >>> from tutelage.oracle.kernels.fourth import positive
    >>> [round(float(positive(matrix)), 7) for matrix in (jnp.eye(4), jnp.ones((4, 4)), (jnp.eye(4) + 1) / 2)]
    [0.0625, 0.5, 0.2]

    ```
    """

    cosine = jnp.clip(cosine, -1, 1)

    def slope(left: Array) -> Array:
        here = (1 - left) * cosine + left * jnp.eye(4)
        total = jnp.zeros(())
        for j, k in itertools.combinations(range(4), 2):
            a, b = (n for n in range(4) if n not in (j, k))
            c = cosine[j, k]
            # 1 - t^2 c^2, without the cancellation at c = 1
            spread = ((1 - jnp.abs(c)) + left * jnp.abs(c)) * (1 + (1 - left) * jnp.abs(c))
            total = total + c / jnp.sqrt(spread) * _both(_given(here, (j, k)), a, b)
        return total / (2 * math.pi)

    return 1 / 16 + jax.vmap(slope)(jnp.asarray(_LEFT)) @ jnp.asarray(_WEIGHTS)
