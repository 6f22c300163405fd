"""Compiled functions of trees, called many times in a run."""

import functools
from collections.abc import Callable, Hashable
from typing import Any, Generic, ParamSpec, TypeVar, cast

import jax
import numpy as np

Given = ParamSpec("Given")
T = TypeVar("T")


class Compiled(Generic[Given, T]):
    """What `equinox.filter_jit` makes of a function of trees, if it is called by position and gives arrays only: what
    is no array in its arguments is fixed. A call costs the host less, which counts in a short run.
    """

    def __init__(self, function: Callable[Given, T], options: dict[str, bool | int]):
        functools.update_wrapper(self, function)

        def run(fixed: tuple[Any, tuple[Hashable, ...]], arrays: list[Any]) -> T:
            tree, others = fixed
            given = iter(arrays)
            leaves = [next(given) if leaf is None else leaf for leaf in others]
            return cast(Callable[..., T], function)(*jax.tree.unflatten(tree, leaves))

        self._program = jax.jit(run, static_argnums=0, compiler_options=options)

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> T:
        assert not kwargs
        done: T = self._program(*_parted(args))
        return done

    def lower(self, *args: Any) -> jax.stages.Lowered:
        """As of `jax.jit`."""
        return self._program.lower(*_parted(args))


def _parted(args: tuple[Any, ...]) -> tuple[tuple[Any, tuple[Hashable, ...]], list[Any]]:
    """What is fixed, with None for an array; and the arrays."""
    leaves, tree = jax.tree.flatten(args)
    arrays = [leaf for leaf in leaves if isinstance(leaf, _ARRAYS)]
    return (tree, tuple(None if isinstance(leaf, _ARRAYS) else leaf for leaf in leaves)), arrays


_ARRAYS = (jax.Array, np.ndarray, np.generic)


def number(value: float) -> Any:
    """A number for a compiled function, which takes NumPy's as they are: to put it on the device first costs more."""
    return np.asarray(value)


def compiled(**options: bool | int) -> Callable[[Callable[Given, T]], Compiled[Given, T]]:
    """For functions that are compiled with these options.

    ```python
    >>> from tutelage.dynamics.compiled import compiled
    >>> import numpy as np
    >>> twice = compiled()(lambda x, names: {name: 2 * x for name in names})
    >>> float(twice(np.asarray(1.5), ("loss",))["loss"])
    3.0

    ```
    """
    return lambda function: Compiled(function, dict(options))
