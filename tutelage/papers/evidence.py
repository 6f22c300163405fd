"""What the claims of a paper look at: settings, sizes and random numbers."""

from typing import Any, ClassVar

import numpy as np

from tutelage.study import Settings, Size


class PlainEvidence:
    """`settings` are the user's; `seeds` is how many starts a statement about starts gets; `size` "quick" or "full".

    A paper names its `defaults`, and a `stream` number of its own. What claims share is cached where it is made.
    """

    defaults: ClassVar[type[Settings]]
    stream: ClassVar[int]

    def __init__(self, settings: Any = None, size: Size = "quick", seeds: int = 10):
        self.settings: Any = settings or self.defaults()
        self.size, self.seeds = size, seeds

    @property
    def full(self) -> bool:
        return self.size == "full"

    def random(self, number: int) -> np.random.Generator:
        """A stream of random numbers of one check."""
        return np.random.default_rng([self.stream, number])
