"""The public names of this folder; `__init__.py` reads this file to load each when it is first used."""

from .sweep_result import Sweep as Sweep
