"""What is to be learned, and by whom."""

import lazy_loader

from tutelage._config import configure as _configure

# Every other folder builds on this one, so double precision is on before any array is made.
_configure()

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
