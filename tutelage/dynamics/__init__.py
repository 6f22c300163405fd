"""How the student moves: one loop, and the dynamics that it drives."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
