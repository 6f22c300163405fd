"""Progress of long computations: they report it, and a listener may show it."""

import contextlib
import threading
from collections.abc import Callable, Iterator

Listener = Callable[[str, int, int], None]

_LISTENERS: list[Listener] = []
_LOCK = threading.Lock()


def tell(label: str, done: int, total: int) -> None:
    """Say that `done` of `total` is done."""
    with _LOCK:
        for listener in _LISTENERS:
            listener(label, done, total)


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Within it `listener` hears everything, from all threads.

    ```python
    >>> from tutelage._progress import listening, tell
    >>> with listening(lambda label, done, total: print(label, done, total)):
    ...     tell("half", 1, 2)
    half 1 2

    ```
    """
    with _LOCK:
        _LISTENERS.append(listener)
    try:
        yield
    finally:
        with _LOCK:
            _LISTENERS.remove(listener)
