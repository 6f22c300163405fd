"""What a link function says about learning it: its Hermite expansion, information exponent, leap, and a time.

A single-index teacher `s(v.x)` pulls a student nearly orthogonal to `v` by its first Hermite coefficient that is
not zero. Its order, the information exponent, decides how many samples online SGD needs before it knows the direction
(Ben Arous, Gheissari, Jagannath 2021); for several directions it is the leap (Abbe, Boix-Adsera, Misiakiewicz 2023).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import instance, mapping, real, table, whole
from tutelage._errors import BadInput
from tutelage._extensions import extension
from tutelage._types import Numbers
from tutelage.analysis.panels import Panel, Sheet, line
from tutelage.oracle.kernels import kernel
from tutelage.problem.activations import Activation, Spec, activation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORDERS = 32
"""Orders that are looked at for the first coefficient that is not zero."""
NODES = 128
"""Of the quadrature of a drift over the logarithm of the overlap."""


@dataclass(frozen=True)
class Expansion:
    """Normalised Hermite coefficients `E[s(z) He_k(z)] / sqrt(k!)` of a function, each right to within `error`.

    `square` is `E[s(z)^2]`, the sum of the squares of all of them.
    """

    name: str
    values: Numbers
    error: float
    square: float

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which coefficients are there: larger than their error."""
        return np.abs(self.values) > self.error

    @property
    def parity(self) -> str:
        """`even` or `odd` if the coefficients are, `neither` if they are not."""
        even, odd = bool(np.any(self.present[::2])), bool(np.any(self.present[1::2]))
        return "neither" if even and odd else "odd" if odd else "even"

    @property
    def tail(self) -> Numbers:
        """What the orders above each one add to `E[s^2]`; below 1e-15 of it, it is rounding."""
        return np.maximum(self.square - np.cumsum(self.values**2), 0.0)

    def sheet(self) -> Sheet:
        """The figure as data: the size of each coefficient, and what is left beyond each order."""
        order = np.arange(len(self.values))
        sizes = []
        for colour, (word, part) in enumerate((("even", 0), ("odd", 1))):
            here = (order % 2 == part) & self.present
            for label, sign in ((f"{word}, positive", 1), (f"{word}, negative", -1)):
                chosen = here & (np.sign(self.values) == sign)
                if np.any(chosen):
                    marker = "o" if sign > 0 else "s"
                    y = np.abs(self.values[chosen])
                    sizes.append(line(order[chosen], y, label, kind="points", colour=colour, marker=marker))
        rest = line(order, np.where(self.tail > 1e-15 * self.square, self.tail, np.nan), kind="points", colour=2)
        panels = (
            Panel("Coefficients", "order", "size", tuple(sizes), yscale="log"),
            Panel("What is left beyond", "order", "sum of squares above it", (rest,), yscale="log"),
        )
        return Sheet(f"Hermite expansion of {self.name}", panels, caption=f"Parity: {self.parity}.")

    def plot(self) -> "Figure":
        """The figure, drawn by matplotlib."""
        figure: Figure = extension("draw")(self.sheet())
        return figure


def hermite(link: Spec, count: int = 16) -> Expansion:
    """The first `count` Hermite coefficients of an activation or of any function of one number.

    ```python
    >>> import tutelage as tt
    >>> found = tt.hermite("relu", 6)
    >>> found.values.round(4).tolist(), found.parity
    ([0.3989, 0.5, 0.2821, 0.0, -0.0814, 0.0], 'neither')

    ```
    """
    function = activation(link)
    found = function.hermite(whole("hermite: count", count, least=1))
    one = jnp.ones((1, 1))
    return Expansion(
        function.name, np.asarray(found.values), found.error, float(kernel(function, function).value(one, one)[0, 0])
    )


def information_exponent(link: Spec, tolerance: float = 1e-10) -> int:
    """The order, from 1 on, of the first Hermite coefficient that is not zero.

    A coefficient counts if its square is more than `tolerance` squared of that of the whole function, and if it is
    larger than its own error.

    ```python
    >>> import tutelage as tt
    >>> [tt.information_exponent(link) for link in ("relu", "abs", "he3")]
    [1, 2, 3]

    ```
    """
    tolerance = real("information_exponent: tolerance", tolerance, above=0)
    found = hermite(link, ORDERS + 1)
    least = max(tolerance * math.sqrt(found.square), found.error)
    orders = np.flatnonzero(np.abs(found.values[1:]) > least)
    if not len(orders):
        raise BadInput(
            f"information_exponent: {found.name!r} has no Hermite coefficient of order 1 to {ORDERS}; take another."
        )
    return int(orders[0]) + 1


def recovery_samples(exponent: int, dim: int) -> float:
    """How many samples online SGD on the sphere needs, up to a constant, to know a direction: `dim` for an information
    exponent (or leap) of 1, `dim log(dim)` for 2, and `dim^(exponent - 1)` beyond.

    The order that Ben Arous, Gheissari and Jagannath prove, up to logarithms; its constant depends on link and step.

    ```python
    >>> import tutelage as tt
    >>> tt.recovery_samples(tt.information_exponent("he3"), dim=1000)
    1000000.0

    ```
    """
    order, size = whole("recovery_samples: exponent", exponent, least=1), whole("recovery_samples: dim", dim, least=2)
    return size * math.log(size) if order == 2 else float(size) ** max(order - 1, 1)


def drift_samples(link: Spec, *, start: ArrayLike, step: float, level: float = 0.5) -> Numbers:
    """How many samples online SGD on the sphere takes from an overlap `start` with its teacher to `level` if it follows
    its drift: the time that theory predicts, beside which a measured one can be put.

    - `start`: an overlap above 0, or an array of them, such as the starts of many seeds.
    - `step`: that of `tt.Sphere`. Student and teacher are one unit with this link and outgoing weight 1.

    A sample moves the overlap `m` by `step (1 - m^2) K'(m)` on average, to first order in the step, where `K(m)` is the
    kernel of the link with itself at unit vectors of overlap `m`. Noise, and what the division by the length takes away
    again, `step^2 dim m` times a constant, are left out: both are small if the step is far below `dim^(-k/2)` for an
    information exponent `k > 2`.

    ```python
    >>> import tutelage as tt
    >>> tt.drift_samples("he3", start=[0.01, 0.1], step=1e-3).round().tolist()
    [5474.0, 469.0]

    ```
    """
    function, size = activation(link), real("drift_samples: step", step, above=0)
    level = real("drift_samples: level", level, above=0)
    starts = table("drift_samples: start", start, "an overlap above 0, or an array of them,", axes=(0, 1))
    if level >= 1 or np.any(starts <= 0) or np.any(starts >= 1):
        raise BadInput("drift_samples: start and level are overlaps of unit vectors; give numbers between 0 and 1.")
    ends = np.log(np.minimum(starts, level)), np.log(level)
    places, weights = np.polynomial.legendre.leggauss(NODES)
    middle, half = (ends[1] + ends[0]) / 2, (ends[1] - ends[0]) / 2
    overlap = np.exp(middle[..., None] + half[..., None] * places)  # a power of it is what the drift is near 0
    drift = _drift(function, overlap.reshape(-1)).reshape(overlap.shape)
    if np.any(drift <= 0):
        raise BadInput(
            f"drift_samples: at an overlap of {float(overlap[drift <= 0].min()):.3g} the drift of {function.name!r} is "
            "not positive, so that it leads no further; take a lower level or another link."
        )
    return np.asarray(half * np.sum(weights * overlap / drift, axis=-1) / size)


def _drift(link: Activation, overlap: Numbers) -> Numbers:
    """`(1 - m^2) K'(m)`: how the kernel's gradient moves a unit vector towards another on the sphere."""
    rows = np.stack([overlap, np.sqrt(1 - overlap**2)], axis=1)
    along = np.array([1.0, 0.0])
    slope = np.asarray(kernel(link, link).gradient(jnp.asarray(rows), jnp.asarray(along[None])))[:, 0]
    return np.sum(slope * (along - overlap[:, None] * rows), axis=1)


def leap(coefficients: Mapping[tuple[int, ...], float]) -> int:
    """The leap of a polynomial of several directions: the largest degree in new directions that has to be learned at
    once, when terms are learned in the best order.

    `coefficients`: those of products of Hermite polynomials, `{(1, 0): 1.0, (1, 2): 0.5}` for
    `He_1(x_1) + 0.5 He_1(x_1) He_2(x_2)`. It belongs to these directions; others may have a larger leap.

    ```python
    >>> import tutelage as tt
    >>> tt.leap({(1, 0, 0): 1.0, (1, 1, 0): 1.0, (1, 1, 1): 1.0}), tt.leap({(1, 1, 1): 1.0})
    (1, 3)

    ```
    """
    given = mapping("leap: coefficients", coefficients, "a dictionary such as {(1, 0): 1.0, (1, 2): 0.5}")
    terms = [_degrees(term) for term, value in given.items() if real("leap: a coefficient", value)]
    terms = [term for term in terms if any(term)]
    if not terms or len({len(term) for term in terms}) > 1:
        raise BadInput(
            f"leap: {len(terms)} terms that are not constant came, of {len({len(term) for term in terms})} lengths; at "
            "least one was expected, and a degree for each direction in all."
        )
    known: set[int] = set()
    largest = 0
    while terms:  # a term that adds least is never worse: what is known only makes others cheaper
        cost, term = min((_new(term, known), term) for term in terms)
        largest = max(largest, cost)
        known |= {place for place, degree in enumerate(term) if degree}
        terms.remove(term)
    return largest


def _degrees(term: object) -> tuple[int, ...]:
    degrees = instance("leap: a term", term, tuple, "a tuple of degrees, one for each direction,")
    return tuple(whole("leap: a degree", degree) for degree in degrees)


def _new(term: tuple[int, ...], known: set[int]) -> int:
    return sum(degree for place, degree in enumerate(term) if place not in known)
