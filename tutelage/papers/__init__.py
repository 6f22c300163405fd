"""The papers the laboratory knows. Each is a `Study`, imported when it is first asked for."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tutelage._errors import unknown
from tutelage.papers.cards import CARDS, Card

if TYPE_CHECKING:
    from tutelage.papers.beyond_ntk import PAPER as beyond_ntk
    from tutelage.papers.both_layers import PAPER as both_layers
    from tutelage.papers.cluster_moe import PAPER as cluster_moe
    from tutelage.papers.relu_teachers import PAPER as relu_teachers
    from tutelage.papers.soft_moe import PAPER as soft_moe
    from tutelage.study import Study


def names() -> list[str]:
    """The names of all papers."""
    return list(CARDS)


def subjects() -> dict[str, str]:
    """What each paper is about, in a sentence; none is imported.

    ```python
    >>> import tutelage as tt
    >>> tt.papers.subjects()["both_layers"]
    'A ReLU network with both layers trained on a linear target.'

    ```
    """
    return {card.name: card.subject for card in CARDS.values()}


def cards() -> list[Card]:
    """What each paper is: title, authors, summary, how many figures and claims; none is imported.

    ```python
    >>> import tutelage as tt
    >>> tt.papers.cards()[1].authors
    'Berk Tinaz, Changzhi Xie, Mahdi Soltanolkotabi'

    ```
    """
    return list(CARDS.values())


def get(name: str) -> "Study":
    """The paper of that name, or an error with the nearest one.

    ```python
    >>> import tutelage as tt
    >>> tt.papers.get("both_layers").name
    'both_layers'

    ```
    """
    if name not in CARDS:
        raise unknown("paper", name, CARDS)
    return import_module(f"{__name__}.{name}").PAPER


class _Registry(ModuleType):
    """This module, whose attribute `both_layers` is the paper and not the folder of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        # Python puts a folder here when something in it is imported.
        if name not in CARDS or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Registry


def __getattr__(name: str) -> "Study":
    if name in CARDS:
        return get(name)
    raise AttributeError(f"tutelage.papers has no {name!r}; it has {', '.join(__dir__())}.")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = ["beyond_ntk", "both_layers", "cards", "cluster_moe", "get", "names", "relu_teachers", "soft_moe", "subjects"]
