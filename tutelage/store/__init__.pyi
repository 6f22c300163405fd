"""The public names of this folder; `__init__.py` reads this file to load each when it is first used."""

from .store import Store as Store
