"""Plain values: anything a result holds as JSON, and numbers as people read them."""

import dataclasses
import enum
import json
import math
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Dictionaries, lists, numbers and text only. JSON has no nan or infinity: they become None.

    ```python
    >>> import numpy as np
    >>> from tutelage._plain import plain
    >>> plain({"loss": np.float64(0.5), "bound": np.inf, "steps": (1, np.int64(2))})
    {'loss': 0.5, 'bound': None, 'steps': [1, 2]}

    ```
    """
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):  # numpy and jax arrays, and their scalars
        return plain(np.asarray(value).tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)


def dumps(value: Any) -> str:
    """The value as indented JSON text."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)


def number(value: Any, digits: int = 4) -> str:
    """A number as people read it; nothing is a dash.

    ```python
    >>> from tutelage._plain import number
    >>> number(0.0826592), number(1e9), number(12), number(3.2e-15), number(None)
    ('0.08266', '1e+09', '12', '3.2e-15', '–')

    ```
    """
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return str(value) if abs(int(value)) < 10**7 else f"{float(value):.{digits}g}"
    return f"{float(value):.{digits}g}"


def duration(seconds: float) -> str:
    """Seconds as people say them.

    ```python
    >>> from tutelage._plain import duration
    >>> duration(0.042), duration(3.21), duration(75), duration(7300)
    ('42 ms', '3.2 s', '1 min 15 s', '2 h 1 min')

    ```
    """
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.0f} s" if seconds == round(seconds) else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def some(count: int, thing: str) -> str:
    """A count of things.

    ```python
    >>> from tutelage._plain import some
    >>> some(1, "figure"), some(42, "claim")
    ('1 figure', '42 claims')

    ```
    """
    return f"{count} {thing}{'' if count == 1 else 's'}"
