"""What the claims look at: a few shared runs, each made once, when first asked for."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tutelage.papers.soft_moe import gaps
from tutelage.papers.soft_moe.draws import COUNTS, Draws
from tutelage.papers.soft_moe.lifted import Lifted
from tutelage.papers.soft_moe.matching import race
from tutelage.papers.soft_moe.pruned import Pruned
from tutelage.papers.soft_moe.races import Race, Sweep, stage, swept
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.papers.soft_moe.single import Single
from tutelage.study import Size


@dataclass(frozen=True)
class Sizes:
    """How much is run: `QUICK` for a minute, `FULL` for the sizes that a report should quote."""

    large: int  # the dim in which Theorem 1 is looked at; that of the settings if it is larger
    perfect: tuple[int, ...]
    candidates: int


QUICK = Sizes(10**7, (10**5, 10**6), 40)
FULL = Sizes(10**8, (10**5, 10**6, 10**7, 10**8), 40)


@dataclass(frozen=True)
class Evidence:
    """Everything that the claims of one report share."""

    settings: SoftMoeSettings
    size: Size
    seeds: int

    @property
    def sizes(self) -> Sizes:
        return QUICK if self.size == "quick" else FULL

    @property
    def plain(self) -> bool:
        """The paper's problem: its gate, its degree, equal orthogonal teachers, fixed output weights."""
        s = self.settings
        equal = s.alphas is None or set(s.alphas) == {1.0}
        return (s.gate, s.degree, s.cosine, s.trains) == ("sigmoid", 3, 0.0, "routers and experts") and equal

    @cached_property
    def draws(self) -> Draws:
        return Draws(self.settings, COUNTS[self.size])

    @cached_property
    def single(self) -> Single:
        return Single(self.settings)

    @cached_property
    def pruned(self) -> Pruned:
        return Pruned(self.settings, self.size, self.seeds)

    @cached_property
    def lifted(self) -> Lifted:
        return Lifted()

    @cached_property
    def large(self) -> Race:
        """The first stage from the settings' own start, in a dim where the theorem's bounds say something."""
        return stage(self.settings, self.seeds, dim=max(self.settings.dim, self.sizes.large))

    @cached_property
    def own(self) -> Race:
        """The run of the settings themselves, at their own dim."""
        return Race(self.settings, self.seeds, self.settings.horizon, records=300)

    @cached_property
    def sweep(self) -> Sweep:
        """The first recovery from orthonormal starts, in dims where an overlap has far to go."""
        return swept(self.settings, self.size).beyond(10**4)

    def _orthonormal(self, dim: int) -> SoftMoeSettings:
        return SoftMoeSettings(**self.settings.model_dump() | {"dim": dim, "init": "orthonormal", "until": None})

    @cached_property
    def clear_seed(self) -> int:
        """The seed whose smallest gap (Lemma 2) is largest, of the first few."""
        draws = Draws(self._orthonormal(self.sizes.perfect[0]), self.sizes.candidates)
        return int(np.argmax(gaps.gaps(draws.products).worst("all")))

    @cached_property
    def perfect(self) -> NDArray[np.float64]:
        """max(1 - gamma2) of the recovered pairs, 20 after the last recovery, in each dim of `sizes.perfect`."""
        return np.array([self._perfect(dim) for dim in self.sizes.perfect])

    def _perfect(self, dim: int) -> float:
        settings, seed = self._orthonormal(dim), self.clear_seed
        draws = Draws(settings, seed + 1)
        until = 1.02 * race(draws.overlap_expert[seed], draws.norm_expert[seed]).pairs[-1].time + 20
        flow = Race(settings, (seed,), until, records=2)
        overlap = flow.run.last("overlap_expert").values[0]
        found = overlap[flow.winners[0], np.arange(settings.teachers)]
        return float(np.max(1 - found)) if np.all(flow.winners[0] >= 0) else math.nan
