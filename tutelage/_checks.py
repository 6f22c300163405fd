"""Arguments that are what they should be, from Python or NumPy; anything else is refused with one sentence."""

import math
import numbers
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tutelage._errors import BadInput, shown, unknown

Kind = TypeVar("Kind")


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
    if number is None or (isinstance(number, float) and not number.is_integer()):
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
    number = None if number is None else _float(number)
    limits = {"above": above, "of at least": least, "of at most": most}
    bounds = [f"{word} {bound:g}" for word, bound in limits.items() if bound is not None]
    expected = " ".join(["a finite number", " and ".join(bounds)]).strip()
    if number is None or not math.isfinite(number):
        raise refused(name, value, expected)
    if (above is not None and number <= above) or (least is not None and number < least):
        raise refused(name, value, expected)
    if most is not None and number > most:
        raise refused(name, value, expected)
    return number


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """One of some names."""
    known = list(known)
    if not isinstance(value, str):
        raise refused(name, value, f"one of {', '.join(known)}")
    if value not in known:
        raise unknown(name, value, known)
    return value


def flag(name: str, value: Any) -> bool:
    """True or False, and nothing that only passes for it."""
    if not isinstance(value, (bool, np.bool_)):
        raise refused(name, value, "True or False")
    return bool(value)


def text(name: str, value: Any) -> str:
    """A name of something: text, and not empty."""
    if not isinstance(value, str) or not value:
        raise refused(name, value, "a name")
    return value


def function(name: str, value: Any, of: str) -> Callable[..., Any]:
    """Something that can be called; `of` says with what."""
    if not callable(value):
        raise refused(name, value, f"a function of {of}")
    called: Callable[..., Any] = value
    return called


def instance(name: str, value: Any, kind: type[Kind] | tuple[type[Kind], ...], expected: str) -> Kind:
    """Something of a class.

    ```python
    >>> from tutelage._checks import instance
    >>> instance("steps", "a", int, "a number")
    Traceback (most recent call last):
    ...
    tutelage._errors.BadInput: steps is 'a', but a number was expected.

    ```
    """
    if not isinstance(value, kind):
        raise refused(name, value, expected)
    return value


def several(name: str, values: Any, kind: type[Kind] | tuple[type[Kind], ...], expected: str) -> tuple[Kind, ...]:
    """A list or tuple of things of one class, as a tuple; a text is none, although it has letters."""
    if not isinstance(values, (list, tuple)) or not all(isinstance(each, kind) for each in values):
        raise refused(name, values, expected)
    return tuple(values)


def mapping(name: str, value: Any, expected: str) -> Mapping[Any, Any]:
    """A dictionary, or what behaves as one."""
    return instance(name, value, Mapping, expected)


def table(name: str, value: Any, expected: str, *, axes: tuple[int, ...]) -> NDArray[np.float64]:
    """An array of finite numbers with so many axes, from an array or from lists.

    ```python
    >>> from tutelage._checks import table
    >>> table("mean", [[1, 2]], "a matrix", axes=(2,))
    array([[1., 2.]])
    >>> table("mean", [["1", 2]], "a matrix", axes=(2,))
    Traceback (most recent call last):
    ...
    tutelage._errors.BadInput: mean is [['1', 2]], but a matrix was expected.

    ```
    """
    try:
        # A tensor of PyTorch that takes part in a gradient says that it is no array unless it is detached.
        found = np.asarray(value.detach().cpu() if callable(getattr(value, "detach", None)) else value)
    except (TypeError, ValueError):  # rows of different lengths, or an array that a compiler is tracing
        raise refused(name, value, expected) from None
    if found.dtype.kind not in "iuf" or found.ndim not in axes or not np.all(np.isfinite(found)):
        raise refused(name, value, expected)
    return np.asarray(found, float)


def path(name: str, value: Any) -> Path:
    """A place on the disk."""
    if not isinstance(value, (str, os.PathLike)) or not str(value) or "\0" in str(value):
        raise refused(name, value, "a path")
    return Path(value)


def put(thing: object, **values: Any) -> None:
    """Write checked values into a frozen dataclass while it is being made."""
    for name, value in values.items():
        object.__setattr__(thing, name, value)


def refused(name: str, value: Any, expected: str) -> BadInput:
    """The error for a value that was not expected."""
    return BadInput(f"{name} is {shown(value)}, but {expected} was expected.")


def _scalar(value: Any) -> int | float | None:
    """The number that a value is, of Python, NumPy or JAX; None if it is none, or True or False."""
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return _float(value)
    if hasattr(value, "__array__") and np.ndim(value) == 0:
        try:
            array = np.asarray(value)
        except TypeError:  # it is being traced
            return None
        return array.item() if array.dtype.kind in "iuf" else None
    return None


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a fraction beyond all floats
        return math.inf
