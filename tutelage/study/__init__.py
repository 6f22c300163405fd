"""Studies: settings, a recipe, claims and figures; sweeps over settings, and where their cells are computed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
