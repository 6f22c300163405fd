"""What the tab key offers: studies, presets, settings, claims and runs. What cannot be known is not offered."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from tutelage.study.study import Study

Offer = Callable[[typer.Context, str], list[str]]


def _offering(names: Callable[[dict[str, Any]], Iterable[str]]) -> Offer:
    """The names that begin as the incomplete word does. A tab key never shows an error."""

    def offered(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            return sorted(name for name in names(ctx.params) if name.startswith(incomplete))
        except Exception:
            return []

    return offered


def _study(given: dict[str, Any]) -> "Study":
    from tutelage.study.registry import get

    # Behind an option that waits for its value nothing is parsed: the study is the second word of the line then.
    words = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    return get(given["study"] or words.split()[2])


@_offering
def studies(_: dict[str, Any]) -> Iterator[str]:
    from tutelage.study.announced import installed

    yield from installed()


@_offering
def targets(_: dict[str, Any]) -> Iterator[str]:
    """Studies, and figures of those that were begun to be typed."""
    from tutelage.study.announced import installed
    from tutelage.study.registry import get

    for name in installed():
        yield name
        yield from (f"{name}/{figure.id}" for figure in get(name).figures)


@_offering
def presets(given: dict[str, Any]) -> Iterable[str]:
    return _study(given).presets


@_offering
def dynamics(given: dict[str, Any]) -> Iterable[str]:
    return _study(given).dynamics


@_offering
def settings(given: dict[str, Any]) -> Iterator[str]:
    yield from (f"{name}=" for name in _study(given).settings.model_fields)


@_offering
def measures(given: dict[str, Any]) -> Iterator[str]:
    yield from (measure.name for measure in _study(given).measures)


@_offering
def claims(given: dict[str, Any]) -> Iterator[str]:
    yield from (claim.id for claim in _study(given).claims)


@_offering
def runs(given: dict[str, Any]) -> Iterator[str]:
    from tutelage.store.store import Store

    yield "last"
    yield from (entry.id[:8] for entry in Store(given.get("folder")).entries())
