"""What later layers add to earlier ones, by name: a run can draw itself, and no result needs to know how.

Each is loaded when it is first used, so that a run without pictures needs no matplotlib.
"""

import importlib
from collections.abc import Callable
from typing import Any

_HOMES = {
    "plot": ("tutelage.present.notebook", "plot"),
    "run": ("tutelage.verbs", "run"),
    "table": ("tutelage.present.export", "table"),
    "detect": ("tutelage.analysis.phases", "detect"),
    "html": ("tutelage.present.notebook", "html"),
    "latex": ("tutelage.present.latex", "claims"),
    "progress": ("tutelage.present.progress", "Progress"),
    "draw": ("tutelage.present.figures", "draw"),
}


def extension(name: str) -> Callable[..., Any]:
    """The function of that name."""
    module, function = _HOMES[name]
    return getattr(importlib.import_module(module), function)
