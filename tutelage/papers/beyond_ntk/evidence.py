"""What the claims look at: sizes, random numbers, and shared runs, each made once, when first asked for."""

import numpy as np

from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.papers.paper import Size


class Evidence:
    """`settings` are the user's; `seeds` is how many starts a statement about starts gets; `size` "quick" or "full"."""

    def __init__(self, settings: BeyondNtkSettings | None = None, size: Size = "quick", seeds: int = 10):
        self.settings = settings or BeyondNtkSettings()
        self.size, self.seeds = size, seeds

    @property
    def full(self) -> bool:
        return self.size == "full"

    def random(self, number: int) -> np.random.Generator:
        """A stream of random numbers of one check."""
        return np.random.default_rng([2026, number])
