"""The parts of a study: figures, phase diagrams, and what is imported only when it is looked at."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from typing import Any, Literal, TypeVar, overload

import xarray as xr

from tutelage.analysis.panels import Sheet

Size = Literal["quick", "full"]
Told = Callable[[str, int, int], None]
"""Is told what is being done, how much is done, and how much there is."""


@dataclass(frozen=True)
class Figure:
    """A figure of a study: `compute(settings, size)` gives its data, `sheet(data)` the panels to draw.

    The data are a Dataset, or a DataTree where several runs are shown, each a group of its own.
    """

    id: str
    title: str
    compute: Callable[[Any, Size], xr.Dataset | xr.DataTree]
    sheet: Callable[[Any], Sheet]
    ours: bool = False


@dataclass(frozen=True)
class Diagram:
    """A phase diagram: one measure over two settings, many seeds per cell, beside its law where there is one.

    `over` has the values of the two settings by size; `settings` what else differs from the study's defaults.
    """

    id: str
    title: str
    measure: str
    over: dict[Size, dict[str, tuple[object, ...]]]
    seeds: dict[Size, int]
    settings: dict[str, Any] = field(default_factory=dict)
    dynamics: str | None = None


Item = TypeVar("Item")


class Deferred(Sequence[Item]):
    """A tuple of another module, which is imported when the tuple is first looked at: a run needs no figures.

    ```python
    >>> from tutelage.study import Deferred
    >>> len(Deferred("tutelage.papers.both_layers.sweeps", "DIAGRAMS"))
    1

    ```
    """

    def __init__(self, module: str, name: str):
        self.module, self.name = module, name

    @cached_property
    def _items(self) -> tuple[Item, ...]:
        found: tuple[Item, ...] = getattr(import_module(self.module), self.name)
        return found

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"{self.module}.{self.name}"


def deferred(module: str, name: str) -> Callable[..., Any]:
    """A function of another module, which is imported when the function is first called."""
    return partial(_call, module, name)


def _call(module: str, name: str, *args: Any, **options: Any) -> Any:
    return getattr(import_module(module), name)(*args, **options)


def undeferred(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, which is imported if need be."""
    if not (isinstance(function, partial) and function.func is _call):
        return function
    module, name = function.args
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def contents(package: str) -> dict[str, Any]:
    """Evidence, claims, figures, measures and diagrams of a study's folder, imported when first used."""
    return {
        "evidence": deferred(f"{package}.evidence", "Evidence"),
        "claims": Deferred(f"{package}.claims", "CLAIMS"),
        "figures": Deferred(f"{package}.figures", "FIGURES"),
        "measures": Deferred(f"{package}.sweeps", "MEASURES"),
        "diagrams": Deferred(f"{package}.sweeps", "DIAGRAMS"),
    }
