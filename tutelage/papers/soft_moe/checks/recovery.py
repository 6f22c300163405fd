"""What the flow is, and what it does besides Theorem 1: pairs that cancel, the race they take part in, plateaus."""

import math

import numpy as np

from tutelage.analysis import Claim, Finding, Kind, Verdict, at_most, every, interval_is, mean_at_least, mean_interval
from tutelage.papers.soft_moe.checks.units import listed, plain
from tutelage.papers.soft_moe.constants import Constants
from tutelage.papers.soft_moe.evidence import Evidence
from tutelage.papers.soft_moe.races import STAGE, Race

SETTLED = 1e-3  # a plateau: the loss changes by less than this part of a quantum over the last tenth of the run
CLOSE = 1.0  # teachers by which the mean number recovered may miss the race's


def where(race: Race) -> str:
    return f"{race.settings.init} start, d = {race.settings.dim:.0e}, {race.count} seeds to t = {race.until:.0f}"


def norms(evidence: Evidence) -> Finding:
    return at_most(evidence.lifted.drift, 1e-9, seeds=1, detail="m = 2, m* = 1, dim 60, rtol 1e-11.")


def reduced(evidence: Evidence) -> Finding:
    lifted = evidence.lifted
    text = (
        f"Against DOP853 in all 60 coordinates to t = {lifted.until:g}, which leaves the span of its first vectors by "
    )
    text += f"{lifted.escaped:.1e}."
    return at_most(lifted.gap, 1e-6, seeds=1, detail=text)


def one_and_only_one(evidence: Evidence) -> Finding:
    race = evidence.own
    good = int(np.sum(race.singles == race.settings.teachers))
    text = f"{where(race)}: teachers with one and only one student at the end: {listed(race.singles)}."
    return every(good, race.count, detail=text)


def cancelling(evidence: Evidence) -> Finding:
    race = evidence.own
    early = STAGE * math.sqrt(race.settings.dim)
    count, teachers = race.opposite(early), race.settings.teachers
    text = f"{where(race)}: disjoint pairs of the {race.settings.students} experts with overlap below -0.9 at "
    text += f"t = {early:.3g}: {listed(count)}; teachers recovered by then {listed((race.times <= early).sum(1))}."
    same = race.agreement("greedy")
    text += f" At the end {int(same.sum())} of {same.size * teachers} teachers were first recovered by the student of "
    text += f"Eq. (6): {listed(same)}."
    return every(int(np.sum(count > 0)), race.count, detail=text)


def predicted(evidence: Evidence) -> Finding:
    race = evidence.iid.race
    teachers = race.settings.teachers
    same, other = race.agreement("generalised"), race.agreement("greedy")
    text = f"{where(race)}: of {teachers} teachers, predicted right {listed(same)} by the matching with students that "
    text += f"cancel, {listed(other)} by Eq. (6)."
    return mean_at_least(same / teachers, 0.6, detail=text)


def as_many_as_the_race(evidence: Evidence) -> Finding:
    race = evidence.iid.race
    expected = np.array([sum(pair.time <= race.until for pair in start.generalised.pairs) for start in race.starts])
    apart = race.recovered - expected
    text = f"{where(race)}: teachers recovered less those of the race: {listed(apart)}."
    return interval_is(
        float(apart.mean()), mean_interval(apart, 0.99), 0.0, within=CLOSE, seeds=race.count, detail=text
    )


def plateaus(evidence: Evidence) -> Finding:
    race, quantum = evidence.iid.race, Constants.of().quantum
    loss = race.run.loss.values
    end, before = loss[:, -1], loss[:, round(0.9 * (loss.shape[1] - 1))]
    settled = (np.abs(end - before) < SETTLED * quantum) & _decided(race)
    if not settled.any():
        text = f"{where(race)}: no seed rests on a plateau with every overlap decided."
        return Finding(Verdict.NOT_REACHED, seeds=race.count, detail=text)
    level = end[settled] / quantum
    text = f"{where(race)}: {int(settled.sum())} of {race.count} seeds rest at the end with no teacher shared, on "
    text += f"L/{quantum:.7f} = " + ", ".join(f"{x:.5f}" for x in level) + "."
    return at_most(np.abs(level - np.round(level)), 1e-2, seeds=int(settled.sum()), detail=text)


def _decided(race: Race) -> np.ndarray:
    """Whether every overlap of experts is near 0 or 1 in size at the end: no teacher is shared."""
    parts = [np.abs(race.run.last(name).values) for name in ("overlap_expert", "overlap_ss_expert")]
    return np.all([np.all((x < 0.1) | (x > 0.98), axis=(1, 2)) for x in parts], axis=0)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "SM-N",
        "Appendix A.3",
        "The norms of routers and experts do not change along the flow.",
        "small problem",
        norms,
        must_hold=True,
    ),
    Claim(
        "SM-R",
        "new",
        "The flow in the span of its first vectors is the flow in all coordinates.",
        "small problem",
        reduced,
        kind=Kind.OURS,
        must_hold=True,
    ),
    Claim(
        "SM-FIG1",
        "Figure 1",
        "Each teacher is recovered by one and only one expert and router, in every run.",
        "the settings' own start and dim, exact flow",
        plain(one_and_only_one),
        kind=Kind.READING,
        expected=Verdict.FAILS,
        reading="The paper shows the end of one run of online SGD, and says that its setting allows it. Here it is "
        "asked of the exact flow of every seed to the settings' time; asked of one seed, it holds.",
        explanation="Late in a run teachers come to be shared by several students (SM-X2:sharing).",
    ),
    Claim(
        "SM-PAIRS",
        "new",
        "Students' experts are opposite in pairs at 0.4 sqrt(d), at every seed.",
        "the settings' own start and dim",
        plain(cancelling),
        kind=Kind.OURS,
    ),
    Claim(
        "SM-X1",
        "Eq. (6), generalised",
        "The matching with students that cancel names the right student, or rightly none, for at least 3 of 5 teachers "
        "in the mean.",
        "iid start in a large dim",
        plain(predicted),
        kind=Kind.OURS,
    ),
    Claim(
        "SM-LIMIT:flows",
        "Limit of Theorem 1",
        "Flows in a large dim recover as many teachers in the mean as the race with students that cancel says.",
        "iid start in a large dim, to one teacher",
        plain(as_many_as_the_race),
        kind=Kind.OURS,
        explanation="The race of these very starts, with their norms and to the same time: what SM-LIMIT counts in the "
        "limit.",
    ),
    Claim(
        "SM-X3",
        "new",
        "Runs rest where the loss is a whole number of quanta 3 E[pi^2].",
        "iid start in a large dim, seeds at rest without sharing",
        plain(plateaus),
        kind=Kind.OURS,
    ),
)
