"""Starts that may save Theorem 1, by exact flows: in how many seeds every teacher gets a student of its own."""

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tutelage.papers.soft_moe.events import RECOVERED
from tutelage.papers.soft_moe.races import STAGE, Race
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.study import Size

SEEDS: dict[Size, dict[str, int]] = {"quick": {"flipped": 2, "even": 2}, "full": {"flipped": 10, "even": 20}}
FLIPPED_DIM = 10**8
EVEN_DIM, EVEN_UNTIL, DEGREE = 10**6, 0.04, 4
"""Experts of degree 4 turn on the time scale d: to 0.04 d, since `t = d / (48 z^2)` with `z` of order 1."""


class Repairs:
    """Flows from the other starts, each made when first asked for."""

    def __init__(self, settings: SoftMoeSettings, size: Size):
        self.settings, self.size = settings, size

    def _varied(self, **values: object) -> SoftMoeSettings:
        return SoftMoeSettings(**self.settings.model_dump() | {"until": None} | values)

    @cached_property
    def flipped(self) -> Race:
        """Students whose experts' signs are flipped so that few point away from each other."""
        settings = self._varied(init="flipped", dim=max(self.settings.dim, FLIPPED_DIM))
        return Race(settings, SEEDS[self.size]["flipped"], STAGE * math.sqrt(settings.dim) + 10, records=40)

    @cached_property
    def even(self) -> Race:
        """The paper's start with experts of an even degree."""
        settings = self._varied(init="iid", degree=DEGREE, dim=EVEN_DIM)
        return Race(settings, SEEDS[self.size]["even"], EVEN_UNTIL * settings.dim, records=40)


def paired(race: Race) -> NDArray[np.bool_]:
    """Whether at some record every teacher has a student with router and expert above 0.9; of an even degree in size.

    No student can be that close to two teachers, so that they have one each.
    """
    expert, router = race.run.overlap_expert.values, race.run.overlap_router.values
    if race.settings.degree % 2 == 0:
        expert = np.abs(expert)
    each = np.max(np.minimum(expert, router), axis=2)
    return np.asarray(np.any(np.all(each >= RECOVERED, axis=2), axis=1))
