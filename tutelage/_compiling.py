"""Whether JAX compiles just now, and for how long it has: what is done once says nothing of how fast work goes on."""

import threading
import time
from typing import Any

STAGES = {f"/jax/core/compile/{name}_duration" for name in ("jaxpr_trace", "jaxpr_to_mlir_module", "backend_compile")}
"""What JAX calls tracing, lowering, and compiling or the reading of a program that is kept."""


class Spell:
    """Time within something that may be begun again inside itself."""

    def __init__(self) -> None:
        self.depth, self.since, self.before = 0, 0.0, 0.0

    def begin(self) -> None:
        if not self.depth:
            self.since = time.monotonic()
        self.depth += 1

    def end(self) -> None:
        # What had begun before anybody listened is not counted.
        if self.depth == 1:
            self.before += time.monotonic() - self.since
        self.depth = max(0, self.depth - 1)

    @property
    def now(self) -> float:
        """For how long it has gone on; 0 if it does not."""
        return time.monotonic() - self.since if self.depth else 0.0

    @property
    def seconds(self) -> float:
        """All of it, so far."""
        return self.before + self.now


class Compiling:
    """Compilation in this process, in seconds. Nothing is known of it before `listen`.

    ```python
    >>> import jax
    >>> from tutelage._compiling import Compiling
    >>> compiling = Compiling()
    >>> compiling.listen()
    >>> _ = jax.jit(lambda x: x + 1)(1.0)
    >>> compiling.now, compiling.seconds > 0
    (0.0, True)

    ```
    """

    def __init__(self) -> None:
        self._any, self._threads = Spell(), threading.local()
        self._lock, self._listening = threading.Lock(), False

    def listen(self) -> None:
        """From now on. It loads JAX, and is done once."""
        from jax import monitoring

        with self._lock:
            if self._listening:
                return
            self._listening = True
        monitoring.register_scalar_listener(self._begin)
        monitoring.register_event_duration_secs_listener(self._end)

    @property
    def now(self) -> float:
        """For how long some thread has compiled; 0 if none does."""
        return self._any.now

    @property
    def seconds(self) -> float:
        """Of all threads: when two compile at a time, that time counts once."""
        return self._any.seconds

    @property
    def here(self) -> float:
        """Seconds of this thread."""
        return self._here.seconds

    @property
    def _here(self) -> Spell:
        if not hasattr(self._threads, "spell"):
            self._threads.spell = Spell()
        spell: Spell = self._threads.spell
        return spell

    def _begin(self, event: str, value: float, **_: Any) -> None:
        if event in STAGES:
            with self._lock:
                self._any.begin()
            self._here.begin()

    def _end(self, event: str, duration_secs: float, **_: Any) -> None:
        if event in STAGES:
            with self._lock:
                self._any.end()
            self._here.end()


COMPILING = Compiling()
"""Of this process."""


def kept() -> bool:
    """Whether compiled programs are kept, so that they are compiled the first time only."""
    import jax

    return bool(getattr(jax.config, "jax_compilation_cache_dir", None))
