"""tutelage: a laboratory for teacher-student learning dynamics.

Public names are loaded when first used, so that `import tutelage` and `tutelage --help` are quick.
"""

from typing import Any

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"tutelage has no {name!r}; it has {', '.join(__all__)}.")
    return _load(name)
