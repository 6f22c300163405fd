"""Arguments that are what they should be, from Python or NumPy; anything else is refused with one sentence."""

import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from tutelage._errors import BadInput, unknown


def whole(name: str, value: Any, *, least: int = 0, most: int | None = None) -> int:
    """A whole number, whoever made it; 1e6 is one, and True is not.

    ```python
    >>> import numpy as np
    >>> from tutelage._checks import whole
    >>> whole("steps", np.int64(3)), whole("steps", 1e6)
    (3, 1000000)
    >>> whole("steps", 2.7)
    Traceback (most recent call last):
    ...
    tutelage._errors.BadInput: steps is 2.7, but a whole number of at least 0 was expected.

    ```
    """
    number = _scalar(value)
    expected = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    if number is None or not math.isfinite(number) or number != math.floor(number):
        raise refused(name, value, expected)
    if number < least or (most is not None and number > most):
        raise refused(name, value, expected)
    return int(number)


def real(
    name: str, value: Any, *, above: float | None = None, least: float | None = None, most: float | None = None
) -> float:
    """A finite number within its bounds.

    ```python
    >>> from tutelage._checks import real
    >>> real("step", 0.1, above=0)
    0.1
    >>> real("step", "a", above=0)
    Traceback (most recent call last):
    ...
    tutelage._errors.BadInput: step is 'a', but a finite number above 0 was expected.

    ```
    """
    number = _scalar(value)
    limits = {"above": above, "of at least": least, "of at most": most}
    bounds = [f"{word} {bound:g}" for word, bound in limits.items() if bound is not None]
    expected = " ".join(["a finite number", " and ".join(bounds)]).strip()
    if number is None or not math.isfinite(number):
        raise refused(name, value, expected)
    if (above is not None and number <= above) or (least is not None and number < least):
        raise refused(name, value, expected)
    if most is not None and number > most:
        raise refused(name, value, expected)
    return float(number)


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """One of some names."""
    known = list(known)
    if not isinstance(value, str):
        raise refused(name, value, f"one of {', '.join(known)}")
    if value not in known:
        raise unknown(name, value, known)
    return value


def refused(name: str, value: Any, expected: str) -> BadInput:
    """The error for a value that was not expected; a long one is cut."""
    text = repr(value)
    return BadInput(f"{name} is {text if len(text) < 80 else text[:77] + '...'}, but {expected} was expected.")


def _scalar(value: Any) -> int | float | None:
    """The number that a value is, of Python, NumPy or JAX; None if it is none, or True or False."""
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if hasattr(value, "__array__") and np.ndim(value) == 0:
        array = np.asarray(value)
        return array.item() if array.dtype.kind in "iuf" else None
    return None
