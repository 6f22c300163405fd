"""What the claims look at: a few shared runs, each made once, when first asked for."""

from dataclasses import dataclass
from functools import cached_property

from tutelage.papers.soft_moe.clauses import Clauses
from tutelage.papers.soft_moe.draws import COUNTS, Draws
from tutelage.papers.soft_moe.finish import Finish
from tutelage.papers.soft_moe.lifted import Lifted
from tutelage.papers.soft_moe.limit import Limits
from tutelage.papers.soft_moe.pruned import Pruned
from tutelage.papers.soft_moe.races import SEEDS, Race, Sweep, finished, large, swept
from tutelage.papers.soft_moe.repairs import Repairs
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.papers.soft_moe.single import Single
from tutelage.study import Size


@dataclass(frozen=True)
class Sizes:
    """How much is run: `QUICK` for a minute, `FULL` for the sizes that a report should quote."""

    perfect: tuple[int, ...]
    perfect_seeds: int


QUICK = Sizes((10**6, 10**7), 3)
FULL = Sizes((10**8, 10**9, 10**10), 20)


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
        found = Pruned(self.settings, self.size, SEEDS[self.size])
        if self.plain:
            found.__dict__["orthonormal"] = self.orthonormal.race.run  # the same run, made once
        return found

    @cached_property
    def lifted(self) -> Lifted:
        return Lifted()

    @cached_property
    def iid(self) -> Clauses:
        """The first stage from the paper's start, in a dim where the theorem's bounds say something."""
        return Clauses(large(self.settings, self.size, "iid"))

    @cached_property
    def orthonormal(self) -> Clauses:
        """The same from orthonormal students."""
        return Clauses(large(self.settings, self.size, "orthonormal"))

    @cached_property
    def finished(self) -> Clauses | None:
        """The same from iid starts of which the race says that they will recover all teachers: those with a T*."""
        found = finished(self.settings, self.size)
        return Clauses(found) if found else None

    @cached_property
    def own(self) -> Race:
        """The run of the settings themselves, at their own dim."""
        return Race(self.settings, SEEDS[self.size], self.settings.horizon, records=300)

    @cached_property
    def sweep(self) -> Sweep:
        """The first recovery from orthonormal starts, in dims where an overlap has far to go."""
        return swept(self.settings, self.size).beyond(10**4)

    @cached_property
    def finish(self) -> Finish:
        """The last recovery from orthonormal starts, and what is left some time after it."""
        return Finish(self.settings, self.sizes.perfect, self.sizes.perfect_seeds)

    @cached_property
    def limits(self) -> Limits:
        """The race without a dim, for many numbers of students and teachers and for other starts."""
        return Limits(self.size)

    @cached_property
    def starts(self) -> Repairs:
        """Flows from starts that may save the theorem."""
        return Repairs(self.settings, self.size)
