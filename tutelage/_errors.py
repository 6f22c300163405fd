"""What can go wrong, said once: bad input, and the reasons a run stops."""

import difflib
import enum
from collections.abc import Iterable
from typing import Any


class BadInput(ValueError):
    """Input that cannot be used. The message is one sentence: what came, what was expected, what to try."""


class StopReason(enum.IntEnum):
    """Why a run ended; `sentence` says it in words.

    ```python
    >>> from tutelage import StopReason
    >>> StopReason.CONVERGED.sentence
    'The loss or the gradient fell below its convergence threshold.'

    ```
    """

    RUNNING = 0
    CONVERGED = 1
    HORIZON = 2
    EVENT = 3
    NONFINITE = 4
    CAP = 5

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    StopReason.RUNNING: "The run has not ended yet.",
    StopReason.CONVERGED: "The loss or the gradient fell below its convergence threshold.",
    StopReason.HORIZON: "The run reached its horizon.",
    StopReason.EVENT: "An event that was asked to stop the run occurred.",
    StopReason.NONFINITE: "A weight or the loss became infinite or not a number; try a smaller step.",
    StopReason.CAP: "The cap on solver steps was reached before the horizon; raise `tt.Stop(steps=...)` or try "
    "solver='stiff'.",
}


def unknown(kind: str, name: str, known: Iterable[str]) -> BadInput:
    """The error for a name that is not known, with the nearest one that is.

    ```python
    >>> from tutelage._errors import unknown
    >>> print(unknown("setting", "widht", ["width", "dim"]))
    Unknown setting 'widht': did you mean 'width'? Known are dim, width.

    ```
    """
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return BadInput(f"Unknown {kind} {shown(name)}: {hint}Known are {', '.join(known)}.")


def shown(value: Any) -> str:
    """A value as it is written in a sentence: in one line, and a long one cut.

    ```python
    >>> import numpy as np
    >>> from tutelage._errors import shown
    >>> shown("a"), shown(np.float64(2.5)), shown(np.eye(2)), shown(range(10**9)), shown([0] * 10**6)
    ("'a'", '2.5', 'array([[1., 0.], [0., 1.]])', 'range(0, 1000000000)', '<list of 1000000>')

    ```
    """
    try:
        if isinstance(value, (list, tuple, dict, set, str, bytes)) and len(value) > MANY:
            return f"<{type(value).__name__} of {len(value)}>"  # its text might fill the memory
        plain = value.item() if type(value).__module__ == "numpy" and not getattr(value, "ndim", 1) else value
        text = " ".join(repr(plain).split())
    except Exception:  # whatever an object of the user's own does when it is asked
        text = f"<{type(value).__name__}>"
    return text if len(text) < LONG else f"{text[: LONG - 3]}..."


LONG, MANY = 80, 1000
