"""Programs that were compiled, and the seconds it took: what a first call is made of."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import jax

_EVENT = "/jax/core/compile/backend_compile_duration"


@dataclass
class Compiled:
    """A count of programs and the seconds in the compiler."""

    programs: int = 0
    seconds: float = 0.0


@cache
def _total() -> Compiled:
    """Of this process, from the first call on. A listener cannot be taken away again: there is one."""
    total = Compiled()

    def heard(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == _EVENT:
            total.programs += 1
            total.seconds += duration_secs

    jax.monitoring.register_event_duration_secs_listener(heard)
    return total


@contextmanager
def compilations() -> Iterator[Compiled]:
    """What is compiled within it; read from a cache counts as a program, too, of few seconds.

    ```python
    >>> import jax
    >>> from tutelage.bench.counting import compilations
    >>> with compilations() as found:
    ...     one = jax.jit(lambda x: 3 * x)(1.0)
    >>> found.programs
    1

    ```
    """
    total = _total()
    programs, seconds, found = total.programs, total.seconds, Compiled()
    try:
        yield found
    finally:
        found.programs, found.seconds = total.programs - programs, total.seconds - seconds
