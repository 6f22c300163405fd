"""The clauses of Theorem 1 on flows of many seeds, one by one.

The theorem's constants are not given, and its bound on what is not recovered, `m^2 / (delta_P sqrt(d))`, is taken with
the constant 1. It says something only in high dimension. The delta_P used is the one for which it is `RISING`; the
proof then promises everything with probability `1 - 7 delta_P` (Condition 1), and the window after T* has the length
`delta_P sqrt(d) / m^2 = 1 / RISING`.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tutelage.analysis import Hypothesis
from tutelage.papers.soft_moe.events import RECOVERED, RISING
from tutelage.papers.soft_moe.races import Race
from tutelage.papers.soft_moe.settings import SoftMoeSettings

MOST_DELTA = 1 / 7
ENOUGH = 0.5
"""The constant of `m >= Omega(m* log(m*/delta_P))`, small enough for the paper's own 25 students and 5 teachers."""
LOG = 3.0
"""Of `T* >= T_1 + O(log d)` in the proof: at the rate 0.538 of a router `exp(-0.538 * 3 log d)` is `d^-1.6`."""
WINDOW = 1 / RISING
"""`delta_P sqrt(d) / m^2`."""

Flags = NDArray[np.bool_]


def delta(settings: SoftMoeSettings) -> float:
    """The delta_P for which `m^2 / (delta_P sqrt(d))` is `RISING`.

    ```python
    >>> from tutelage.papers.soft_moe.clauses import delta
    >>> from tutelage.papers.soft_moe.settings import SoftMoeSettings
    >>> round(delta(SoftMoeSettings(dim=10**10)), 4)
    0.0208

    ```
    """
    return settings.students**2 / (RISING * math.sqrt(settings.dim))


def promised(settings: SoftMoeSettings) -> float:
    """`1 - 7 delta_P`; 1 % where that promises nothing, and the hypothesis on delta_P is not met."""
    return max(1 - delta(settings) / MOST_DELTA, 0.01)


def hypotheses(settings: SoftMoeSettings) -> tuple[Hypothesis, ...]:
    """Those of Theorem 1, with what is chosen here where it gives no constant."""
    chance, m, k = delta(settings), settings.students, settings.teachers
    many = ENOUGH * k * math.log(k / min(chance, MOST_DELTA))
    return (
        # The theorem's poly(m, 1/delta_P) has no name: d = m^4 / (0.3 delta_P)^2 is how delta_P is chosen here.
        Hypothesis(
            "delta_P < 1/7 and d >= poly(m, 1/delta_P), read as delta_P = m^2 / (0.3 sqrt(d)) < 1/7",
            *(chance < MOST_DELTA, chance, MOST_DELTA, "<"),
        ),
        Hypothesis("m >= m* log(m*/delta_P) / 2", m >= many, m, many, ">="),
    )


@dataclass(frozen=True)
class Clauses:
    """What a race says of each clause: arrays by seed."""

    race: Race

    @property
    def settings(self) -> SoftMoeSettings:
        return self.race.settings

    @cached_property
    def _time(self) -> NDArray[np.float64]:
        return np.asarray(self.race.run.time.values, float)

    @property
    def recovered(self) -> NDArray[np.int64]:
        """How many teachers have been recovered, router and expert."""
        return np.isfinite(self.race.pair_times).sum(1)

    @cached_property
    def least(self) -> NDArray[np.float64]:
        """The least overlap of a recovered pair, of router or expert, until the last pair is recovered (records)."""
        return np.array([self._least(seed) for seed in range(self.race.count)])

    def _least(self, seed: int) -> float:
        times, students = self.race.pair_times[seed], self.race.matching[seed]
        met = np.flatnonzero(np.isfinite(times))
        if not len(met):
            return math.nan
        data, worst = self.race.run.dataset.isel(seed=seed), 1.0
        for teacher in met:
            inside = (self._time >= times[teacher]) & (self._time < times[met].max())
            both = (data[f"overlap_{role}"].values[inside, students[teacher], teacher] for role in ("router", "expert"))
            worst = min(worst, *(float(values.min(initial=1.0)) for values in both))
        return worst

    @property
    def stays(self) -> Flags:
        """Recovered pairs stay above 0.9 until the last pair is recovered, where any was."""
        return np.asarray(self.least >= RECOVERED)

    def quiet(self, printed: bool = False) -> Flags:
        """Whether the pairs to come stay below the bound until the recovery before theirs; routers and experts.

        `printed`: until their own recovery, as [T_l, T_(l+1)) has it. Only pairs that are recovered in the end.
        """
        return np.array([self._quiet(seed, printed) for seed in range(self.race.count)])

    def _quiet(self, seed: int, printed: bool) -> bool:
        times, students = self.race.pair_times[seed], self.race.matching[seed]
        order = [int(teacher) for teacher in np.argsort(times) if np.isfinite(times[teacher])]
        rises = self.race.run.rising_time.values[seed]
        before = [(later, later if printed else earlier) for earlier, later in zip(order, order[1:], strict=False)]
        return all(rises[students[later], later] >= times[until] for later, until in before)

    @cached_property
    def unused(self) -> NDArray[np.float64]:
        """The largest |overlap| of an unused student with anything, in the window after T*; nan without a T*.

        T* is the last recovery and `3 log d` more. Records from the first one after it to the first after the window.
        """
        return np.array([self._unused(seed) for seed in range(self.race.count)])

    def _unused(self, seed: int) -> float:
        inside = self._window(seed)
        if not self.race.matched[seed] or not inside.any():
            return math.nan
        at = self.race.run.dataset.isel(seed=seed, time=np.flatnonzero(inside))
        idle = np.setdiff1d(np.arange(self.settings.students), self.race.matching[seed])
        if not len(idle):
            return 0.0
        names = ("overlap_router", "overlap_expert", "overlap_router_expert", "overlap_expert_router")
        taught = max(float(np.abs(at[name].values[:, idle]).max()) for name in names)
        other = 1 - np.eye(self.settings.students)  # a vector with itself does not count; `v_i.w_i` does
        blocks = (("overlap_ss_router", other), ("overlap_ss_expert", other), ("overlap_ss_cross", 1.0))
        among = [np.abs(at[name].values * counts) for name, counts in blocks]
        return max(taught, *(float(max(x[:, idle].max(), x[:, :, idle].max())) for x in among))

    def _window(self, seed: int) -> Flags:
        """The records that stand for the window: from T* to the first after its end."""
        first = self.race.finish[seed] + LOG * math.log(self.settings.dim)
        last = self._time[np.searchsorted(self._time, first + WINDOW, side="left").clip(max=len(self._time) - 1)]
        return np.asarray((self._time >= first) & (self._time <= max(last, first)))

    @cached_property
    def learned(self) -> NDArray[np.float64]:
        """The least overlap of a recovered pair in that window; nan without a T*."""
        found = []
        for seed in range(self.race.count):
            inside = self._window(seed)
            if not self.race.matched[seed] or not inside.any():
                found.append(math.nan)
                continue
            at = self.race.run.dataset.isel(seed=seed, time=np.flatnonzero(inside))
            pairs = self.race.matching[seed], np.arange(self.settings.teachers)
            found.append(min(float(at[f"overlap_{role}"].values[:, *pairs].min()) for role in ("router", "expert")))
        return np.array(found)
