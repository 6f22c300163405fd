"""Types and checks that the settings of several papers share."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from tutelage._errors import BadInput
from tutelage._limits import STEPS
from tutelage.problem.rows import least_cosine

Positive = Annotated[float, Field(gt=0)]


def updates(until: float, step: float, rounded: Callable[[float], int] = round) -> int:
    """The number of updates to a time; more than anyone can wait for are refused.

    ```python
    >>> from tutelage.papers.fields import updates
    >>> updates(10.0, 0.5)
    20

    ```
    """
    count = until / step
    if not count <= STEPS:
        raise BadInput(
            f"until is {until:g} and step {step:g}, which are {count:.3g} updates, but at most {STEPS:.0e} are done; "
            "choose a shorter time or a larger step."
        )
    return max(1, rounded(count))


def check_cosine(cosine: float, count: int) -> None:
    """Refuse a cosine that `count` vectors cannot all have with each other."""
    if cosine <= least_cosine(count):
        raise ValueError(
            f"cosine is {cosine:g}, but {count} vectors can only have equal cosines above {least_cosine(count):g}; "
            "choose a larger one"
        )
