"""Proofs by ball arithmetic: what is said here is true of the exact numbers, roundings included.

Public names are loaded when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
