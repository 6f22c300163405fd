"""Theorem 1 when d goes to infinity, by the race in which no d is left; and which starts save it."""

import numpy as np

from tutelage.analysis import (
    Claim,
    Finding,
    Hypothesis,
    Kind,
    Verdict,
    all_of,
    at_most,
    given,
    probability_at_least,
    probability_at_most,
)
from tutelage.papers.soft_moe.checks.units import FRAME, TEACHERS, paper, papers_units
from tutelage.papers.soft_moe.clauses import MOST_DELTA
from tutelage.papers.soft_moe.evidence import Evidence
from tutelage.papers.soft_moe.exact import Exact
from tutelage.papers.soft_moe.limit import Limit
from tutelage.papers.soft_moe.repairs import paired

LAW = 6 / 7
"""`1 - 7 delta_P` of the proof, with delta_P = 1/49."""
SIZE = (25, 5)
"""The paper's own, for the starts that may save the theorem."""
HALF = 0.5
IDENTITY = 1e-12


def _needed(limit: Limit) -> float:
    """`m* log(m*/delta_P)`."""
    return float(limit.teachers * np.log(limit.teachers * 7 / MOST_DELTA))


def _over_the_grid(evidence: Evidence, greedy: bool) -> Finding:
    """Judged where it is likeliest, of the sizes that meet the hypothesis on m: its constant is open."""
    found, told, spare = [], [], []
    for limit in evidence.limits.grid:
        good = int((limit.as_greedy if greedy else limit.matched).sum())
        told.append(f"({limit.students}, {limit.teachers}): {good / limit.draws:.3f}")
        if limit.students >= _needed(limit):
            found.append(probability_at_least(good, limit.draws, LAW))
            spare.append(limit.students / _needed(limit))
    best = max(found, key=lambda one: one.measured or 0.0)
    text = f"P at (m, m*) {', '.join(told)}. Of the sizes that meet the hypothesis the best has {best.measured:.3f}."
    enough = Hypothesis("m >= m* log(m*/delta_P) with delta_P = 1/49", min(spare) >= 1, min(spare), 1.0, ">=")
    return given(all_of([best], text), enough)


def matched(evidence: Evidence) -> Finding:
    return _over_the_grid(evidence, greedy=False)


def as_greedy(evidence: Evidence) -> Finding:
    return _over_the_grid(evidence, greedy=True)


# Starts that may save it.


def _counts(evidence: Evidence, start: str) -> tuple[int, int, str]:
    limit, first = evidence.limits.at(*SIZE, start), evidence.limits.at(*SIZE)
    good = int(limit.matched.sum())
    text = f"(m, m*) = {SIZE}: all teachers matched in {good} of {limit.draws} draws, as Eq. (6) in "
    text += f"{int(limit.as_greedy.sum())}; from iid starts in {int(first.matched.sum())} of {first.draws}."
    return good, limit.draws, text


def even(evidence: Evidence) -> Finding:
    """By flows: the race of an even degree has no edges between students, so that it leaves nothing to see."""
    flows = paired(evidence.starts.even)
    text = f"Exact flows to t = {evidence.starts.even.until:.0f}, d = {evidence.starts.even.settings.dim:.0e}."
    return probability_at_least(int(flows.sum()), len(flows), HALF, level=0.99, detail=text)


def flipped(evidence: Evidence) -> Finding:
    good, draws, text = _counts(evidence, "flipped")
    flows = paired(evidence.starts.flipped)
    text += f" Exact flows, d = {evidence.starts.flipped.settings.dim:.0e}: in {int(flows.sum())} of {len(flows)}."
    return probability_at_most(good, draws, HALF, detail=text)


def signs_are_flips(evidence: Evidence) -> Finding:
    """The gradient of students with output signs is that of students with the experts turned round."""
    rows = np.random.default_rng(19).standard_normal((4, FRAME))
    signs, exact = np.array([1.0, -1.0]), Exact(paper(), TEACHERS, FRAME)
    turned = np.concatenate([np.ones(2), signs])[:, None]
    apart = exact.gradient(rows, second=signs.tolist()) - turned * exact.gradient(turned * rows)
    good, draws, text = _counts(evidence, "signed")
    same = at_most(np.abs(apart), IDENTITY, detail=f"Gradients agree to {np.abs(apart).max():.0e}. {text}")
    return all_of([same, probability_at_most(good, draws, HALF)])


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "SM-LIMIT",
        "Theorem 1, limit",
        "When d goes to infinity at fixed m and m*, every teacher is recovered by a student of its own, whichever and "
        "however late on the scale sqrt(d), with probability 1 - 7 delta_P = 6/7.",
        "iid start; all sizes of the grid with m >= m* log(m*/delta_P); the race of leading order",
        matched,
        kind=Kind.READING,
        expected=Verdict.FAILS,
        reading="d goes to infinity first, at fixed m, as d >= poly(m, 1/delta_P) allows; delta_P is 1/49, and the "
        "theorem allows any delta_P below 1/7: with a small one 1 - 7 delta_P is near 1, and the verdict is the same "
        "for every delta_P at which more is promised than was seen. No time limit, no bound on overlaps and no "
        "constant enters but that of the bound on m, which is 1; it is judged at the size at which it is likeliest.",
        explanation="Students with a negative overlap cancel on the time scale on which teachers are learned, however "
        "large d is. More students help up to a point only: with one teacher and m to infinity the chance goes to 0.80 "
        "(m even) or 0.81 (m odd), `limit.one_teacher`.",
    ),
    Claim(
        "SM-LIMIT:greedy",
        "Theorem 1, limit",
        "The same with the students and in the order of Eq. (6).",
        "iid start; all sizes of the grid with m >= m* log(m*/delta_P); the race of leading order",
        as_greedy,
        kind=Kind.READING,
        expected=Verdict.FAILS,
        reading="As SM-LIMIT: d to infinity at fixed m, delta_P = 1/49, no other constant.",
        explanation="With more students it is ever less likely.",
    ),
    Claim(
        "SM-START:even",
        "new",
        "With experts of degree 4 every teacher gets a student of its own, up to the sign of its expert, in at least "
        "half of the flows, in a time of order d.",
        "(m, m*) of the settings, iid start, exact flows",
        even,
        kind=Kind.OURS,
        explanation="Between students the force of an even degree pulls their overlap to 0. The theorem has sqrt(d); "
        "two students may still come to share a teacher, in some of the flows.",
    ),
    Claim(
        "SM-START:flipped",
        "new",
        "Signs of experts that are flipped so that students agree do not save it: the probability stays below 1/2.",
        "(m, m*) = (25, 5), the race of leading order; flows beside it",
        flipped,
        kind=Kind.OURS,
        explanation="Twenty-five random vectors cannot all be made to agree: many negative overlaps are left.",
    ),
    Claim(
        "SM-START:signed",
        "new",
        "Fixed output signs +1 and -1 do nothing for it: s He_3(w.x) is He_3(s w.x), a flipped start and as random.",
        "gradients at a random state; (m, m*) = (25, 5), the race of leading order",
        papers_units(signs_are_flips),
        kind=Kind.OURS,
    ),
)
