"""Where inputs come from."""

from dataclasses import dataclass

from tutelage._checks import put, whole


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
        put(self, dim=whole("Gaussian: dim", dim, least=1, most=10**12))
