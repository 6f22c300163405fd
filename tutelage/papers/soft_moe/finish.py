"""How perfect recovered pairs are some time after the last recovery, and when that is, in several dims (Theorem 1)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tutelage.dynamics import Observable, Record, Snapshot
from tutelage.oracle import units
from tutelage.papers.soft_moe import recipe
from tutelage.papers.soft_moe.clauses import LOG
from tutelage.papers.soft_moe.draws import Draws
from tutelage.papers.soft_moe.events import CROSSINGS
from tutelage.papers.soft_moe.gaps import gaps
from tutelage.papers.soft_moe.matching import race
from tutelage.papers.soft_moe.races import Race
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.problem import Numbers

AFTER = 20.0
"""The fixed wait: routers are recovered about 6 after their experts."""
RIGHT = 0.02
"""Part of a predicted time by which the last recovery may miss it."""
BESIDE = 0.5
"""Between records."""


def _missing(own: Array, taught: Array) -> Float[Array, "student teacher"]:
    """`1 - u.u*` of unit vectors, by their difference: nothing is lost when it is small."""
    return jnp.sum((own[:, None] - taught[None]) ** 2, axis=-1) / 2


def _router_misses(view: Snapshot) -> Float[Array, "student teacher"]:
    return _missing(units(view.weights.first).router, units(view.teacher.first).router)


def _expert_misses(view: Snapshot) -> Float[Array, "student teacher"]:
    return _missing(units(view.weights.first).expert, units(view.teacher.first).expert)


_MET = ("student", "teacher")
MISSES = (
    Observable("router_misses", _router_misses, _MET, "1 - cosine of router and teacher's router"),
    Observable("expert_misses", _expert_misses, _MET, "1 - cosine of expert and teacher's expert"),
)


@dataclass(frozen=True)
class Finish:
    """The same orthonormal seeds in several dims: those with the widest smallest gap (Lemma 2) of the first 40."""

    settings: SoftMoeSettings
    dims: tuple[int, ...]
    count: int
    candidates: int = 40

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        draws = Draws(self._at(self.dims[0]), self.candidates)
        widest = np.argsort(-gaps(draws.products).worst("all"))[: self.count]
        return tuple(sorted(int(seed) for seed in widest))

    def _at(self, dim: int) -> SoftMoeSettings:
        return SoftMoeSettings(**self.settings.model_dump() | {"dim": dim, "init": "orthonormal", "until": None})

    @cached_property
    def races(self) -> tuple["Close", ...]:
        return tuple(Close(self._at(dim), seed) for dim in self.dims for seed in self.seeds)

    def _table(self, value: Callable[["Close"], float]) -> Numbers:
        return np.array([value(one) for one in self.races]).reshape(len(self.dims), len(self.seeds))

    @cached_property
    def times(self) -> Numbers:
        """When the last pair is recovered by router and expert (dim, seed); infinite if one is not."""
        return self._table(lambda one: one.time)

    def misses(self, role: str, wait: Callable[[int], float]) -> Numbers:
        """The largest `1 - cosine` of a recovered pair (dim, seed), `wait(dim)` after the last recovery."""
        return self._table(lambda one: one.miss(role, wait(one.settings.dim)))


class Close:
    """One flow, recorded closely where its last recovery is predicted and for some time after."""

    def __init__(self, settings: SoftMoeSettings, seed: int):
        self.settings, self.seed = settings, seed

    @cached_property
    def race(self) -> Race:
        draws = Draws(self.settings, self.seed + 1)
        expected = race(draws.overlap_expert[self.seed], draws.norm_expert[self.seed]).pairs[-1].time
        begin = (1 - RIGHT) * expected
        until = (1 + RIGHT) * expected + 10 + max(AFTER, LOG * math.log(self.settings.dim)) + 2 * BESIDE
        found = Race(self.settings, (self.seed,), until)
        at = np.concatenate([[0.0], np.arange(begin, until, BESIDE), [until]])
        settings = self.settings.model_copy(update={"until": until})
        found.run = recipe.run(
            settings, seeds=(self.seed,), record=Record(at, observables=(), own=MISSES, crossings=CROSSINGS)
        )
        return found

    @property
    def time(self) -> float:
        return float(self.race.finish[0]) if self.race.matched[0] else math.inf

    def miss(self, role: str, wait: float) -> float:
        """Between two records along the exponential through them."""
        if not math.isfinite(self.time):
            return math.nan
        pairs = self.race.matching[0], np.arange(self.settings.teachers)
        worst = self.race.run.dataset[f"{role}_misses"].values[0][:, *pairs].max(1)
        return float(np.exp(np.interp(self.time + wait, self.race.run.time.values, np.log(worst))))
