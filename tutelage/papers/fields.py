"""Types and checks that the settings of several papers share."""

from typing import Annotated

from pydantic import Field

from tutelage.problem.rows import least_cosine

Positive = Annotated[float, Field(gt=0)]


def check_cosine(cosine: float, count: int) -> None:
    """Refuse a cosine that `count` vectors cannot all have with each other."""
    if cosine <= least_cosine(count):
        raise ValueError(
            f"cosine is {cosine:g}, but {count} vectors can only have equal cosines above {least_cosine(count):g}; "
            "choose a larger one"
        )
