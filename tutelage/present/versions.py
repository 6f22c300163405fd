"""What a result was made with. No host or user names: a report can be shown to anyone."""

import os
import platform
from importlib import metadata

from tutelage._version import __version__

PACKAGES = ("jax", "jaxlib", "equinox", "diffrax", "optimistix", "numpy", "scipy", "xarray", "matplotlib")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide the numbers.

    ```python
    >>> from tutelage.present.versions import versions
    >>> sorted(versions())[:3]
    ['diffrax', 'equinox', 'jax']

    ```
    """
    own = {"tutelage": __version__, "python": platform.python_version()}
    return own | {name: _version(name) for name in PACKAGES}


def machine() -> dict[str, str]:
    """The kind of machine: system, processor and number of cores."""
    return {"system": platform.system(), "processor": platform.machine(), "cores": str(os.cpu_count() or "unknown")}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
