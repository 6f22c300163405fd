"""Laws by which a positive measure may grow with a parameter: how each predicts, and where a fit of it starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tutelage._errors import unknown
from tutelage._types import Numbers


@dataclass(frozen=True)
class Law:
    """A positive function of one variable with a few parameters.

    - `predict(x, *parameters)`: its value; it must broadcast, as NumPy's own functions do.
    - `start(x, y)`: parameters to begin a fit from, given one typical value `y` at each distinct `x`.
    - `logs(x, *parameters)`: the logarithm of its value, if that is known where the value itself would overflow.
    - `positive`: the parameters that cannot be zero or below; a fit moves their logarithms.
    - `slopes(x, *parameters)`: derivatives of the logarithm of the prediction, one for each parameter (in a positive
      one by its logarithm). Differences are taken if there are none.
    - `form`, `shown`: how a sentence writes it, with `{y}`, `{x}` and the parameters to fill in, and the parameters
      whose intervals belong in the sentence.
    - `needs_positive`: it has no value at x = 0 and below.

    ```python
    >>> import numpy as np
    >>> from tutelage.analysis.scaling.laws import Law
    >>> gap = Law("gap", "a / (x - c)", ("a", "c"), lambda x, a, c: a / (x - c), lambda x, y: (y[0] * x[0], 0.0))
    >>> gap.predict(np.array([2.0, 4.0]), 3.0, 1.0)
    array([3., 1.])

    ```
    """

    name: str
    formula: str
    parameters: tuple[str, ...]
    predict: Callable[..., Any]
    start: Callable[[Numbers, Numbers], Sequence[float]]
    logs: Callable[..., Any] | None = None
    positive: tuple[str, ...] = ()
    slopes: Callable[..., tuple[Any, ...]] | None = None
    form: str = ""
    shown: tuple[str, ...] = ()
    needs_positive: bool = False

    def log(self, x: Numbers, moved: Numbers) -> Numbers:
        """The logarithm of the prediction, at parameters as a fit moves them, `moved[..., parameter]`: (..., x).

        It is nan where the prediction is not positive and finite.
        """
        parameters = self._columns(self.still(moved))
        with np.errstate(all="ignore"):
            found = self.logs(x, *parameters) if self.logs is not None else np.log(self.predict(x, *parameters))
        return np.broadcast_to(np.where(np.isfinite(found), found, np.nan), (*moved.shape[:-1], x.size))

    def jacobian(self, x: Numbers, moved: Numbers) -> Numbers:
        """Derivatives of `log` in the parameters as a fit moves them: (..., x, parameter)."""
        shape = (*moved.shape[:-1], x.size)
        if self.slopes is not None:
            slopes = self.slopes(x, *self._columns(self.still(moved)))
            return np.stack([np.broadcast_to(np.asarray(slope, float), shape) for slope in slopes], -1)
        # Central differences: the cube root of the rounding error balances it against the third derivative.
        steps = 6e-6 * np.maximum(np.abs(moved), 1e-3)
        columns = []
        for index in range(len(self.parameters)):
            shift = np.zeros_like(moved)
            shift[..., index] = steps[..., index]
            rise = self.log(x, moved + shift) - self.log(x, moved - shift)
            columns.append(rise / (2 * steps[..., index, None]))
        return np.stack(columns, -1)

    def moved(self, parameters: ArrayLike) -> Numbers:
        """The parameters as a fit moves them: logarithms of the positive ones."""
        values = np.asarray(parameters, float)
        return np.where(self._logs, np.log(np.where(self._logs, values, 1.0)), values)

    def still(self, moved: Numbers) -> Numbers:
        """The inverse of `moved`."""
        with np.errstate(over="ignore"):
            return np.where(self._logs, np.exp(np.where(self._logs, moved, 0.0)), moved)

    @property
    def _logs(self) -> NDArray[np.bool_]:
        return np.array([name in self.positive for name in self.parameters])

    def _columns(self, parameters: Numbers) -> list[Numbers]:
        return [parameters[..., index, None] for index in range(len(self.parameters))]


def _least_squares(columns: list[Numbers], target: Numbers) -> Numbers:
    return np.asarray(np.linalg.lstsq(np.stack(columns, -1), target, rcond=None)[0], float)


def _straight(of: Callable[[Numbers], Numbers]) -> Callable[[Numbers, Numbers], tuple[float, float]]:
    """The start of a law whose logarithm is a straight line in `of(x)`."""

    def start(x: Numbers, y: Numbers) -> tuple[float, float]:
        height, slope = _least_squares([np.ones_like(x), of(x)], np.log(y))
        return float(np.exp(height)), float(slope)

    return start


def _proportional(name: str, power: float, shape: str) -> Law:
    """The law a x^power with a known power, `shape` being its factor in words."""

    def start(x: Numbers, y: Numbers) -> tuple[float]:
        return (float(np.exp(np.mean(np.log(y / x**power)))),)

    return Law(
        name,
        f"a{shape.format(x='x')}",
        ("a",),
        lambda x, a: a * x**power,
        start,
        lambda x, a: np.log(a) + (power * np.log(x) if power else 0.0),
        positive=("a",),
        slopes=lambda x, a: (np.ones_like(x),),
        form=f"{{y}} = {{a}}{shape}",
        shown=("a",),
        needs_positive=power > 0,
    )


def _start_logarithmic(x: Numbers, y: Numbers) -> tuple[float, float]:
    """The best of the lines b (log x - c) that are positive on the data, by trying zeros c on both sides of them."""
    logs = np.log(x)
    span = np.ptp(logs)
    away = span * np.geomspace(1e-3, 1e3, 61)
    best = (np.inf, 0.0, 0.0)
    for zero, sign in [(c, 1.0) for c in logs.min() - away] + [(c, -1.0) for c in logs.max() + away]:
        rest = np.log(y) - np.log(sign * (logs - zero))
        slope = sign * np.exp(rest.mean())
        best = min(best, (float(rest.var()), float(-slope * zero), float(slope)))
    return best[1:]


POWER = Law(
    "power",
    "a x^b",
    ("a", "b"),
    lambda x, a, b: a * x**b,
    _straight(np.log),
    lambda x, a, b: np.log(a) + b * np.log(x),
    positive=("a",),
    slopes=lambda x, a, b: (np.ones_like(x), np.log(x)),
    form="{y} = {a} {x}^{b}",
    shown=("a", "b"),
    needs_positive=True,
)
EXPONENTIAL = Law(
    "exponential",
    "a e^(b x)",
    ("a", "b"),
    lambda x, a, b: a * np.exp(b * x),
    _straight(np.asarray),
    lambda x, a, b: np.log(a) + b * x,
    positive=("a",),
    slopes=lambda x, a, b: (np.ones_like(x), x),
    form="{y} = {a} e^({b} {x})",
    shown=("a", "b"),
)
LOGARITHMIC = Law(
    "logarithmic",
    "a + b log x",
    ("a", "b"),
    lambda x, a, b: a + b * np.log(x),
    _start_logarithmic,
    slopes=lambda x, a, b: (1 / (a + b * np.log(x)), np.log(x) / (a + b * np.log(x))),
    form="{y} = {a} + {b} log {x}",
    shown=("a", "b"),
    needs_positive=True,
)
CONSTANT = _proportional("constant", 0.0, "")
SQRT = _proportional("sqrt", 0.5, " {x}^(1/2)")
LINEAR = _proportional("linear", 1.0, " {x}")
LAWS = {law.name: law for law in (POWER, EXPONENTIAL, LOGARITHMIC, CONSTANT, SQRT, LINEAR)}


def named(law: "str | Law") -> Law:
    """The law of this name, or the one given."""
    if isinstance(law, str):
        if law not in LAWS:
            raise unknown("law", law, LAWS)
        return LAWS[law]
    return law
