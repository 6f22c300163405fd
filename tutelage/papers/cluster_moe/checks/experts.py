"""Experts of which the samples are sorted: who leads (Lemmas C.12, C.13), and what Phase III makes of a draw (C.17 to
C.21). All without noise, by the exact flow."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import binom, norm

from tutelage.analysis import (
    Claim,
    Finding,
    Hypothesis,
    Kind,
    Verdict,
    all_of,
    at_least,
    at_most,
    every,
    given,
    probability_is,
)
from tutelage.papers.cluster_moe import races
from tutelage.papers.cluster_moe.evidence import Evidence
from tutelage.papers.cluster_moe.vanilla import PROTECTED, RECORDS, WIDTH, Race, begun, destined, example, flown, race
from tutelage.problem import Experts, Numbers

ALIGNED = 0.9
MARGIN = 0.1  # a_c and a_g of Lemma C.17
WEAK = 0.1  # a_2
LEADS = 10**8  # the dimension of Lemmas C.12 and C.13


# Definition C.18 and Lemmas C.17, C.21.


def _alone(evidence: Evidence, **changes: Any) -> Race:
    """An expert that is sent the first cluster only."""
    dim = 10**4 if evidence.full else 10**3
    return race(example(dim, exponent=4, **PROTECTED | changes), served=(1.0, 0.0))


def _reached(ran: Race, members: NDArray[np.bool_], row: int) -> float:
    return float(np.mean(np.abs(ran.flow.final[members, row]) > ALIGNED))


def destinies(evidence: Evidence) -> Finding:
    ran = _alone(evidence)
    own, common = destined(ran)
    fit = ran.rates[:, 0] > 0
    text = f"d = {ran.dim}: {int((own & fit).sum())} compatible neurons in J_c and {int((common & fit).sum())} in J_g "
    text += f"of {len(fit)}."
    return at_least([_reached(ran, own & fit, 0), _reached(ran, common & fit, ran.clusters)], 1.0, detail=text)


def larger_starts_win(evidence: Evidence) -> Finding:
    ran = _alone(evidence)
    fit, shared = ran.rates[:, 0] > 0, ran.clusters
    ends = np.where(np.abs(ran.flow.final[:, 0]) > ALIGNED, 0, shared)
    larger = np.where(np.abs(ran.start[:, 0]) > np.abs(ran.start[:, shared]), 0, shared)
    wins = float(np.mean(ends[fit] == larger[fit]))
    unfit = float(np.mean(np.abs(ran.flow.final[~fit][:, [0, shared]]).max(-1) > ALIGNED))
    text = f"d = {ran.dim}: the larger start wins for {wins:.1%} of the {int(fit.sum())} compatible neurons; "
    text += f"{unfit:.1%} of the others learn anything."
    return all_of([at_least(wins, 1.0, detail=text), at_most(unfit, 0.0)])


def printed_destinies(evidence: Evidence) -> Finding:
    ran = _alone(evidence)
    own, common = destined(ran)
    parts = [_reached(ran, own, 0), _reached(ran, common, ran.clusters)]
    text = f"{int(own.sum())} neurons in J_c, of which {parts[0]:.1%} learn w_c; {int(common.sum())} in J_g, "
    text += f"{parts[1]:.1%} of them w_g."
    return at_least(parts, 1.0, detail=text)


def sign_decides(evidence: Evidence) -> Finding:
    ran = _alone(evidence, local=({4: -1.0}, {4: 1.0}))
    fit = ran.rates[:, 0] > 0
    parts = [_reached(ran, fit, 0), _reached(ran, ~fit, ran.clusters)]
    text = f"{int(fit.sum())} of {len(fit)} neurons have beta alpha > 0."
    return at_least(parts, 1.0, detail=text)


def share_of_members(k: int = 4) -> float:
    """`P(z >= 1 and z^(k-2) (1 - a) >= |y|^(k-2))` of two standard Gaussians: a neuron is in `J_c` for large d."""
    reach = (1 - MARGIN) ** (1 / (k - 2))
    return float(quad(lambda z: norm.pdf(z) * (2 * norm.cdf(reach * z) - 1), 1, 12)[0])


def members_are_many(evidence: Evidence) -> Finding:
    """Members counted among drawn neurons in four dimensions, and how many there are of J neurons then."""
    count, k, found = 40_000 if evidence.full else 10_000, 4, []
    law, least = share_of_members(k), 1.0
    for number, dim in enumerate((10**2, 10**4, 10**6, 10**8)):
        rows = Experts(1, count).overlaps(evidence.random(30 + number), dim, 2)[0]
        leads = np.abs(rows[:, 0]) ** (k - 2) * (1 - MARGIN) >= np.abs(rows[:, 1]) ** (k - 2)
        members = (rows[:, 0] >= dim**-0.5) & leads
        seen = int(members.sum())
        if dim >= 10**4:
            found.append(probability_is(seen, count, law, within=0.02, detail=f"{seen} of {count} (d = {dim:.0e})."))
        for smallest in (1, 4, 16, 64):
            width = round(3 * smallest * np.log(dim) ** 2)
            least = min(least, float(binom.sf(smallest - 1, width, seen / count)))
    text = (
        f"With J = 3 J_min (log d)^2, J_min = 1 to 64, there are J_min of them with probability {least:.4f} or more; a "
    )
    text += f"neuron is one with probability {law:.4f}."
    return all_of([at_least(least, 0.999, detail=text), *found])


# Lemmas C.12 and C.13.


class Led(NamedTuple):
    """Experts whose professional neuron leads as Corollary C.3 asks, until its overlap is `WEAK`.

    - `winner` (expert, record), `others` (expert, record): the leading overlap, the largest of all others; nan later.
    - `low`, `high`: `P` and `Q` of Lemma C.12 at these times. `drawn`: how many experts there were.
    """

    winner: Numbers
    others: Numbers
    low: Numbers
    high: Numbers
    drawn: int


@cache
def led(width: int = 4) -> Led:
    """Corollary C.3 is asked for with the margin 1/log d, and the sign that lets the neuron learn."""
    settings = example(LEADS, exponent=4)
    k, ran = settings.exponent, race(settings)
    _, units, start = begun(settings, WIDTH)
    rates, count = k * ran.rates, ran.clusters
    pace = rates[:, :count] * np.abs(start[:, :count]) ** (k - 2)
    quick = float(np.median(pace[pace > 0]))
    times = np.geomspace(1e-3, 30, RECORDS) / ((k - 2) * quick)
    states = flown(settings, units, start, at=times).last("noted").values[0, :, 0]
    groups = lambda table: table.reshape(-1, width, table.shape[-1])  # noqa: E731
    first, rate = groups(np.abs(start[:, : count + 1])), groups(rates)
    signed = groups(start[:, :count]).reshape(-1, width * count)
    best = signed.argmax(1)
    found: dict[str, list[Numbers]] = {name: [] for name in ("winner", "others", "low", "high")}
    for expert, place in enumerate(best):
        neuron, task = divmod(int(place), count)
        lead, grows = first[expert, neuron, task], rate[expert, neuron, task]
        rest = first[expert].copy()
        rest[neuron, task] = 0.0
        most = float(np.abs(rate[expert]).max())
        ahead = grows * lead ** (k - 2) * (1 - 1 / np.log(LEADS)) - most * rest.max() ** (k - 2)
        if grows <= 0 or ahead < 0:
            continue
        path = np.abs(states[:, expert * width : (expert + 1) * width, : count + 1])
        winner = path[:, neuron, task].copy()
        path[:, neuron, task] = 0.0
        now = winner <= WEAK
        low = races.power_growth((1 - WEAK) * lead, grows, k, times)
        high = races.power_growth((1 + WEAK) * max(rest.max(), 0.5 * LEADS**-0.5), (1 + WEAK) * most, k, times)
        table = (winner, path.max((1, 2)), low, high)
        for name, values in zip(found, table, strict=True):
            found[name].append(np.where(now, values, np.nan))
    winner, others, below, above = (np.array(values) for values in found.values())
    return Led(winner, others, below, above, len(best))


def _leads(seen: Led) -> Hypothesis:
    met = len(seen.winner)
    words = (
        f"Corollary C.3 is true at the start, with 1/log d for its a: experts, of {seen.drawn}, to which it is confined"
    )
    return Hypothesis(words, met > 0, met, 1, ">=")


def sequences_bound(evidence: Evidence) -> Finding:
    seen = led()
    with np.errstate(invalid="ignore"):
        below, above = np.nansum(seen.winner < seen.low), np.nansum(seen.others > seen.high)
    count = int(np.isfinite(seen.winner).sum())
    text = f"{count} moments of {len(seen.winner)} experts: {int(below)} with the winner below P, {int(above)} with "
    text += "another "
    text += "above Q (without the term with A_3, which only helps)."
    return given(at_most([float(below), float(above)], 0.0, seeds=len(seen.winner), detail=text), _leads(seen))


def others_stay_behind(evidence: Evidence) -> Finding:
    seen = led()
    worst = float(np.nanmax(seen.others) * LEADS**0.5)
    ahead = int(np.nansum(seen.others > seen.winner))
    text = f"{len(seen.winner)} experts: until the winner has {WEAK:g}, {LEADS**0.5 * WEAK:.0f} d^-1/2, others reach "
    text += "at most "
    text += f"{worst:.3g} d^-1/2."
    behind = every(seen.winner.size - ahead, seen.winner.size)
    found = all_of([at_most(worst, 4 * float(np.log(LEADS)), seeds=len(seen.winner), detail=text), behind])
    return given(found, _leads(seen))


_ONE = "an expert that is sent one cluster, k = 4, activation a h_4, beta and s gamma of equal signs"
_LED = "k = 4, C = 2, 200 experts of 4 ReLU neurons, biases in [-0.3, 0.3], d = 10^8, exact flow"

CLAIMS = (
    Claim(
        "CM-C12",
        "Lemma C.12, without noise",
        "Until a_2, the leading overlap of an expert is at least P and all others at most Q, the two sequences that "
        "start "
        "with (1 - a_2) of it, and (1 + a_2) of the next.",
        _LED,
        sequences_bound,
        kind=Kind.READING,
        reading="a_2 = 0.1, A_3 = 0, and steps so small that the sequences are solutions of their equations.",
    ),
    Claim(
        "CM-C13",
        "Lemma C.13, without noise",
        "Until the leading overlap of an expert has reached a_2, all others are below it, and below 4 A_3/sqrt(d).",
        _LED,
        others_stay_behind,
        kind=Kind.READING,
        reading="a_2 = 0.1, A_3 = log d. With a margin of 1/log d in Corollary C.3 others grow by (log d)^(1/2) "
        "before.",
    ),
    Claim(
        "CM-C17",
        "Lemma C.17",
        "Of J = J_min polylog(d) neurons drawn anew at least J_min are in J_c, with probability 0.999.",
        "k = 4, d = 10^2 to 10^8, drawn starts against the Gaussian integral",
        members_are_many,
        kind=Kind.READING,
        reading="J >~ J_min polylog(d) is read as 3 J_min (log d)^2 and a_c as 0.1. A constant factor would do, as a "
        "neuron is "
        "a member with a probability that does not depend on d. J_min is missing from the first condition as printed.",
    ),
    Claim(
        "CM-20",
        "Definition C.18, Lemma C.21, corrected",
        "Compatible neurons in J_c end on w_c, those in J_g on w_g.",
        _ONE,
        destinies,
        kind=Kind.READING,
        reading="The lemma is about large d and SGD; measured is the flow of 800 neurons at one dimension, with a_c = "
        "0.1 in the definition. That neurons are compatible is our correction.",
    ),
    Claim(
        "CM-20:larger",
        "Definition C.18, Lemma C.21",
        "Of compatible neurons the larger start wins, also without the margin, and incompatible ones learn nothing.",
        _ONE,
        larger_starts_win,
        kind=Kind.OURS,
    ),
    Claim(
        "CM-20:printed",
        "Definition C.18, Lemma C.21",
        "Neurons in J_c end on w_c, those in J_g on w_g.",
        "the same, without asking for compatible signs",
        printed_destinies,
        kind=Kind.SLIP,
        mended="CM-20",
        expected=Verdict.FAILS,
        explanation="The sets ignore the sign of alpha_k: half of their neurons are driven away from both tasks.",
    ),
    Claim(
        "CM-20:opposite",
        "Definition C.18",
        "If beta and s gamma have opposite signs, the sign of alpha_k alone decides which task a neuron learns.",
        "the same with beta = -1 and s gamma = 1",
        sign_decides,
        kind=Kind.OURS,
    ),
)
