"""Functions that a user brings along: an error of theirs comes through as it is, and says whose it was."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from tutelage._checks import refused


def numbers_of(what: str, function: Callable[..., Any], seen: Any, *, one: bool = False) -> Array:
    """The numbers that a function gives for what it sees; `one`: a single number. `what` names it in a sentence.

    ```python
    >>> from tutelage.dynamics.own import numbers_of
    >>> numbers_of("The schedule", lambda n: "fast", 3, one=True)
    Traceback (most recent call last):
    ...
    tutelage._errors.BadInput: The schedule gives what is 'fast', but one number was expected.

    ```
    """
    try:
        found = function(seen)
    except Exception as error:
        error.add_note(f"{what} was being computed, by a function that was given to tutelage.")
        raise
    if not _is_numbers(found) or (one and jnp.shape(found)):
        raise refused(f"{what} gives what", found, "one number" if one else "an array of numbers")
    return jnp.asarray(found)


def _is_numbers(found: Any) -> bool:
    try:
        return found is not None and jnp.asarray(found).dtype.kind in "biuf"
    except (TypeError, ValueError):
        return False
