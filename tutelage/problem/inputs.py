"""Where inputs come from."""

import operator
from dataclasses import dataclass

from tutelage._errors import BadInput


@dataclass(frozen=True)
class Gaussian:
    """Standard Gaussian inputs `x ~ N(0, I_dim)`; `dim` is only a number, up to 1e12.

    ```python
    >>> import tutelage as tt
    >>> tt.Gaussian(1e9).dim
    1000000000

    ```
    """

    dim: int

    def __init__(self, dim: float) -> None:
        object.__setattr__(self, "dim", _whole("dim", dim))
        if not 1 <= self.dim <= 10**12:
            raise BadInput(f"Gaussian: dim is {self.dim}, but it must lie between 1 and 1e12.")


def _whole(name: str, value: float) -> int:
    try:
        if float(value).is_integer():
            return int(value)
        return operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"Gaussian: {name} is {value!r}, but it must be a whole number such as 1000 or 1e9.") from None
