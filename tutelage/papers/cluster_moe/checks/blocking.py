"""The proof of Theorem 4.3 step by step (Lemmas B.5 to B.16), measured along the exact flow of ReLU neurons.

Every lemma is judged twice where it needs a start: on the neurons that meet the first condition of Lemma B.9, and on
all. What `O~` and `<~` leave open is chosen here and said: constants of the proof with a factor of two, `(log d)^(k-2)`
for a time, K of `starting_bound` for an overlap.
"""

from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from tutelage.analysis import (
    Claim,
    Finding,
    Hypothesis,
    Kind,
    Verdict,
    all_of,
    at_most,
    every,
    given,
    interval_at_most,
    lines,
)
from tutelage.oracle import ClusterOracle
from tutelage.papers.cluster_moe.checks.vanilla import LOGS, starting_bound
from tutelage.papers.cluster_moe.evidence import Evidence
from tutelage.papers.cluster_moe.vanilla import (
    RECORDS,
    WIDTH,
    Flags,
    Race,
    after,
    begun,
    coefficients,
    course,
    example,
    late,
    level,
    race,
)
from tutelage.problem import Numbers

DIMS = (10**6, 10**9, 10**12)
LATE = 10**8
SOON = slice(RECORDS // 2)  # the records of `course` up to one clock
SLACK = 2.0  # between a constant of the proof and what `<~` may add to it


class Seen(NamedTuple):
    """Overlaps of neurons at some times, and what moves them.

    - `inside`, `outside`, `shared`: of each (record, unit), `sum |kappa_c|` over `C_j`, over the other tasks, and
      `|xi|`; `turn_...`: their derivatives.
    - `gap`, `least`, `most`: the difference of `alpha_k` between clusters, its least and its largest absolute value.
    """

    ran: Race
    states: Numbers
    inside: Numbers
    outside: Numbers
    shared: Numbers
    turn_inside: Numbers
    turn_outside: Numbers
    turn_shared: Numbers
    alpha: Numbers

    @property
    def gap(self) -> Numbers:
        return np.asarray(np.ptp(self.alpha, axis=-1))

    @property
    def least(self) -> Numbers:
        return np.asarray(np.abs(self.alpha).min(-1))

    @property
    def most(self) -> Numbers:
        return np.asarray(np.abs(self.alpha).max(-1))


def weak(dim: int, k: int) -> float:
    """`d^(-1/2 + 1/(2k))`, up to which Lemmas B.5 to B.12 follow a learnable overlap."""
    return float(dim) ** (-1 / 2 + 1 / (2 * k))


@cache
def early(dim: int) -> Seen:
    """From the start until a learnable overlap is `weak`, or for `patience`."""
    settings = example(dim)
    return seen(dim, course(settings, weak(dim, settings.exponent)))


@cache
def blocked() -> tuple[Flags, Seen]:
    """From Lemma B.14's time on: who reaches it, and what follows."""
    reached, states = after(example(LATE))
    return reached, seen(LATE, states)


def seen(dim: int, states: Numbers) -> Seen:
    settings = example(dim)
    ran = race(settings)
    oracle, units, _ = begun(settings, WIDTH)
    slopes = np.sign(states) * np.asarray(_turning(oracle, units, jnp.asarray(states)))
    sizes, count = np.abs(states), ran.clusters
    alpha = coefficients(oracle, units, states, settings.exponent + 1)[..., settings.exponent]
    own = ran.learnable
    inside, outside = (np.sum(np.where(chosen, sizes[..., :count], 0.0), -1) for chosen in (own, ~own))
    rise, fall = (np.sum(np.where(chosen, slopes[..., :count], 0.0), -1) for chosen in (own, ~own))
    return Seen(ran, states, inside, outside, sizes[..., count], rise, fall, slopes[..., count], alpha)


@eqx.filter_jit
def _turning(oracle: ClusterOracle, units: Any, states: Any) -> Any:
    return oracle.turning(units, states)


def _drift(dim: int, states: Numbers, chosen: Flags) -> Numbers:
    """Of each chosen neuron, the largest `|alpha_k(b) - alpha_k(b + rho nu_c)|` on its way."""
    settings = example(dim)
    oracle, units, start = begun(settings, WIDTH)
    k = settings.exponent
    still = coefficients(oracle, units, np.zeros_like(start), k + 1)[..., k]
    moved = coefficients(oracle, units, states, k + 1)[..., k]
    return np.abs(moved - still).max((0, -1))[chosen]


def _condition(ran: Race) -> Hypothesis:
    share = float(ran.ready.mean())
    return Hypothesis(
        "learnable overlaps start with d^-1/2 or more (share of neurons, to which it is confined)", True, share
    )


# Lemmas B.5 to B.12: until a learnable overlap is `d^(-1/2 + 1/(2k))`.


def coefficients_stay(evidence: Evidence) -> Finding:
    table = np.array([_drift(dim, early(dim).states[SOON], np.ones(WIDTH, bool)) for dim in DIMS])
    slope = lines.exponent_over_seeds(DIMS, lambda chosen: np.max(table[:, chosen], axis=1), WIDTH, level=0.999)
    told = ", ".join(f"{row.max():.2e} (d = {dim:.0e})" for row, dim in zip(table, DIMS, strict=True))
    text = f"The largest |alpha_k(b) - alpha_k(b + rho nu_c)| of {WIDTH} neurons on their way: {told}: exponent "
    text += f"{slope:.3f}."
    return interval_at_most(slope.value, slope.interval, -0.5 + LOGS, seeds=WIDTH, detail=text)


def _violations(broken: dict[int, Numbers], text: str) -> Finding:
    count = sum(each.size for each in broken.values())
    told = ", ".join(f"{int(each.sum())} (d = {dim:.0e})" for dim, each in broken.items())
    return at_most(
        sum(int(each.sum()) for each in broken.values()), 0, seeds=count, detail=f"{text}: {told} of {count}."
    )


def others_fall(evidence: Evidence) -> Finding:
    broken = {}
    for dim in DIMS:
        at = early(dim)
        k, count = at.ran.exponent, at.ran.clusters
        push = SLACK * count * at.gap * at.shared**k
        law = k / count * (push - at.least / SLACK * count ** (2 - k) * at.outside ** (k - 1))
        broken[dim] = at.turn_outside > law
    return _violations(broken, "Neurons and moments at which the others' derivative is above the bound")


def learnable_grow(evidence: Evidence) -> Finding:
    broken, worst = {}, np.inf
    for dim in DIMS:
        at = early(dim)
        k, count = at.ran.exponent, at.ran.clusters
        law = k / count * at.least / SLACK * count ** (2 - k) * at.inside ** (k - 1)
        broken[dim] = (at.turn_inside < law)[:, at.ran.ready]
        all_tasks = (count * at.turn_inside / (at.inside + at.outside) ** (k - 1))[:, at.ran.ready]
        worst = min(worst, float(all_tasks.min()))
    text = f"With the sum over all tasks on the right, as printed, the constant is {worst:.2g}. Moments below the bound"
    return given(_violations(broken, text), _condition(early(DIMS[0]).ran))


def starts_are_large(evidence: Evidence) -> Finding:
    """Of how many neurons the learnable overlaps start with `d^-1/2 / log d` or more; what is asked for is 1 - 1/d."""
    told, worst, trials = [], 1.0, 0
    for dim in DIMS:
        ran = race(example(dim))
        tasks = np.abs(ran.start[:, : ran.clusters]) * np.sqrt(dim)
        met = np.all((tasks >= 1 / np.log(dim)) | ~ran.learnable, axis=-1)
        told.append(f"{met.mean():.1%} (d = {dim:.0e})")
        worst, trials = min(worst, float(met.mean())), trials + len(met)
    text = f"Neurons with learnable overlaps of d^-1/2 / log d or more at the start: {', '.join(told)}."
    met_all = round(worst * WIDTH)
    return every(met_all, WIDTH, detail=text)


def shared_grows_slowly(evidence: Evidence) -> Finding:
    broken = {}
    for dim in DIMS:
        at = early(dim)
        k, count = at.ran.exponent, at.ran.clusters
        sizes, own = np.abs(at.states[..., :count]) ** k, at.ran.learnable
        inside, outside = (np.sum(np.where(chosen, sizes, 0.0), -1) for chosen in (own, ~own))
        pull = SLACK * at.most * outside - at.least / SLACK * inside
        law = k / count * (SLACK * at.gap * at.shared ** (k - 1) + at.shared * pull)
        broken[dim] = at.turn_shared > law
    return _violations(broken, "Neurons and moments at which the derivative of |xi| is above the bound")


def others_stay_small(evidence: Evidence) -> Finding:
    told, worst = [], 0.0
    for dim in DIMS:
        at = early(dim)
        sums = (at.shared + at.outside)[SOON] * np.sqrt(dim)
        told.append(f"{sums.max():.3g} (d = {dim:.0e})")
        worst = max(worst, float(sums.max()))
    text = f"The largest (|xi| + sum of others) sqrt(d) up to {', '.join(told)}, {WIDTH} neurons at each d."
    return at_most(worst, SLACK * starting_bound(WIDTH), seeds=WIDTH * len(DIMS), detail=text)


def grown_in_time(evidence: Evidence, *, ready: bool) -> Finding:
    """The last state of `course` is at `patience` clocks, or where a learnable overlap has stopped its neuron."""
    met = count = 0
    told = []
    for dim in DIMS:
        at = early(dim)
        chosen = at.ran.ready if ready else np.ones(WIDTH, bool)
        k = at.ran.exponent
        reached = at.inside[-1] >= weak(dim, k) * (1 - 1e-9)
        small = np.maximum(at.shared[-1], at.outside[-1]) * np.sqrt(dim) <= SLACK * starting_bound(WIDTH)
        good = (reached & small)[chosen]
        told.append(f"{good.mean():.1%} (d = {dim:.0e})")
        met, count = met + int(good.sum()), count + len(good)
    found = every(met, count, detail=f"Neurons of which all three are true: {', '.join(told)}.")
    return given(found, _condition(early(DIMS[0]).ran)) if ready else found


# Lemmas B.14 to B.16: later.


def reached_together(evidence: Evidence) -> Finding:
    reached, at = blocked()
    chosen, root = at.ran.ready, np.sqrt(LATE)
    settings = example(LATE)
    oracle, units, start = begun(settings, WIDTH)
    k = settings.exponent
    steep = float(np.abs(coefficients(oracle, units, start, k + 2)[..., k + 1]).max()) * np.sqrt(k + 1)
    moved = _drift(LATE, at.states[:1], chosen) * root
    small = ((at.shared[0] + at.outside[0]) * root)[chosen]
    allowed = starting_bound(WIDTH)
    text = (
        f"{int(chosen.sum())} neurons, d = {LATE:.0e}. |xi| + sum of others is at most {small.max():.3g} d^-1/2, the "
    )
    text += f"change of alpha_k at most {moved.max():.3g} d^-1/2."
    found = all_of(
        [
            every(int(reached[chosen].sum()), int(chosen.sum()), detail=text),
            at_most(small, SLACK * allowed),
            at_most(moved, SLACK * allowed * steep * settings.radius),
        ]
    )
    return given(found, _condition(at.ran))


def others_shrink(evidence: Evidence) -> Finding:
    reached, at = blocked()
    chosen = at.ran.ready & reached
    growth = (at.turn_shared + at.turn_outside)[:, chosen]
    inside = at.inside[:, chosen].min()
    push = float(np.median((at.gap * at.shared ** (at.ran.exponent - 1))[:, chosen]))
    bar = level(example(LATE))
    text = (
        f"The largest derivative of |xi| + sum of others; {int(chosen.sum())} neurons at {len(at.states)} times from "
    )
    text += f"t_Delta on, d = {LATE:.0e}. The push on w_g is {push:.1e} in the median, not zero. The learnable "
    text += "overlaps add "
    text += f"up to at least {inside:.3e} (asked: {bar:.3e})."
    found = all_of(
        [at_most(growth, 0.0, seeds=int(chosen.sum()), detail=text), at_most(bar * (1 - 1e-6) - inside, 0.0)]
    )
    felt = Hypothesis("there is a push on w_g (median over neurons and times)", push > 0, push, 0.0, ">")
    return given(found, _condition(at.ran), felt)


def all_is_settled(evidence: Evidence, *, ready: bool) -> Finding:
    """The three bullets at all recorded times from `patience` clocks on: a time that no overlap defines."""
    settings = example(LATE)
    at = seen(LATE, late(settings))
    chosen, root, allowed = (at.ran.ready if ready else np.ones(WIDTH, bool)), np.sqrt(LATE), starting_bound(WIDTH)
    bullets = (
        np.all(at.inside >= level(settings), axis=0),
        np.all(at.outside * root <= allowed, axis=0),
        np.all(at.shared * root <= allowed, axis=0),
    )
    good = np.logical_and.reduce(bullets)[chosen]
    told = ", ".join(f"{int((~each[chosen]).sum())}" for each in bullets)
    text = f"{int(good.sum())} of {len(good)} neurons, d = {LATE:.0e}; broken by {told} neurons: learnable overlaps "
    text += "large, "
    text += (
        f"others O~(d^-1/2), |xi| O~(d^-1/2). The largest |xi| sqrt(d) is {(at.shared * root)[:, chosen].max():.3g}."
    )
    found = every(int(good.sum()), len(good), detail=text)
    return given(found, _condition(at.ran)) if ready else found


_FLOW = "Example 4.1, k = 6, C = 2, ReLU, biases in [-0.3, 0.3], orthogonal means, rho = 1; 800 neurons"
_EARLY = f"{_FLOW} at d = 10^6, 10^9, 10^12, 32 times until a learnable overlap is d^(-1/2 + 1/(2k))"
_SOON = f"{_FLOW} at d = 10^6, 10^9, 10^12, 16 times up to that of an overlap that starts with d^-1/2"
_ONCE = "The time is read as that in which an overlap that starts with d^-1/2 is learnt"
_READY = "neurons whose learnable overlaps start with d^-1/2 or more"
_LATER = f"{_FLOW} at d = 10^8"
_CONSTANT = "`<~` is read as the constant of the proof with a factor of 2."
_TIME = "O~ of a time is read as (log d)^(k-2) times that of an overlap that starts with d^-1/2"
_SMALL = "O~(d^-1/2) as twice what 800 Gaussian starts exceed with probability 1e-3"

CLAIMS = (
    Claim(
        "CM-B5",
        "Lemma B.5",
        "While learnable overlaps are below d^(-1/2 + 1/(2k)), the coefficients alpha_k stay within O~(d^-1/2) of "
        "alpha_k(b).",
        _SOON,
        coefficients_stay,
        kind=Kind.READING,
        reading=f"{_ONCE}. O~(d^-1/2) is read as an exponent of at most -0.5 + 0.05 of the largest change over d = "
        "10^6 to 10^12.",
    ),
    Claim(
        "CM-B9:others",
        "Lemma B.9, first part",
        "Overlaps with tasks outside C_j fall: their sum has a derivative of at most k/C (O~(d^-1/2) |xi|^k - c times "
        "the power k - 1 of the sum).",
        _EARLY,
        others_fall,
        kind=Kind.READING,
        reading=_CONSTANT,
    ),
    Claim(
        "CM-B9",
        "Lemma B.9, second part",
        "The learnable overlaps grow: the derivative of their sum is at least k/C c times its power k - 1.",
        f"{_EARLY}; {_READY}",
        learnable_grow,
        kind=Kind.READING,
        reading=f"{_CONSTANT} The sum on the right is over C_j, as in the proof; the statement prints all tasks.",
    ),
    Claim(
        "CM-B9:start",
        "Lemma B.9, first condition",
        "At the start all learnable overlaps are d^-1/2 / log d or more, for all neurons.",
        f"{_FLOW} at d = 10^6, 10^9, 10^12",
        starts_are_large,
        kind=Kind.READING,
        reading="The condition `|kappa_c| >~ d^-1/2` is read with 1/log d for its constant. With another power of "
        "log d, "
        "too, its probability tends to 1 like 1 - 1/polylog(d) and not like 1 - d^-a.",
        expected=Verdict.FAILS,
        explanation="The proof of Lemma B.12 takes the condition for granted. Here the proof of Theorem 4.3 breaks.",
    ),
    Claim(
        "CM-B10",
        "Lemma B.10",
        "The derivative of |xi| is at most k/C (|alpha_(k,1) - alpha_(k,2)| |xi|^(k-1) + |xi| (c' sum over c not in "
        "C_j "
        "of |kappa_c|^k - c sum over C_j)), up to constants.",
        _EARLY,
        shared_grows_slowly,
        kind=Kind.READING,
        reading=_CONSTANT,
    ),
    Claim(
        "CM-B11",
        "Lemma B.11",
        "For times O~(d^((k-2)/2)), |xi| + sum over c not in C_j of |kappa_c| stays O~(d^-1/2).",
        _SOON,
        others_stay_small,
        kind=Kind.READING,
        reading=f"{_ONCE}; {_SMALL}. With (log d)^4 times as long, which is more than d^(1/2) below d = 10^14, "
        "neurons that "
        "learn the global task would do so in this time.",
    ),
    Claim(
        "CM-B12",
        "Lemma B.12, with its start",
        "In a time O~(d^((k-2)/2)) the learnable overlaps reach d^(-1/2 + 1/(2k)), while others and |xi| are "
        "O~(d^-1/2).",
        f"{_EARLY}; {_READY}",
        lambda evidence: grown_in_time(evidence, ready=True),
        kind=Kind.READING,
        reading=f"{_TIME}; {_SMALL}.",
    ),
    Claim(
        "CM-B12:all",
        "Lemma B.12",
        "The same for all neurons.",
        _EARLY,
        lambda evidence: grown_in_time(evidence, ready=False),
        kind=Kind.READING,
        reading=f"{_TIME}; {_SMALL}. A higher power of log d leaves a part of the neurons, too.",
        expected=Verdict.FAILS,
        explanation="An overlap that starts as d^-1/2/A needs A^(k-2) times as long.",
    ),
    Claim(
        "CM-B14",
        "Lemma B.14, with its start",
        "There is a time at which the learnable overlaps add up to d^(-1/4-Delta), the others and |xi| are "
        "O~(d^-1/2), and "
        "alpha_k has changed by O~(d^-1/2).",
        f"{_LATER}, Delta = 1/(8k); {_READY}",
        reached_together,
        kind=Kind.READING,
        reading=f"{_SMALL}; Delta as in Lemma B.15.",
    ),
    Claim(
        "CM-13",
        "Lemma B.15",
        "After t_Delta, |xi| + sum over c not in C_j of |kappa_c| does not increase, and the learnable overlaps stay "
        "above "
        "d^(-1/4-1/(8k)).",
        f"{_LATER}, which feel a force on w_g; {_READY}",
        others_shrink,
        kind=Kind.READING,
        reading="`<~ 0` is read as at most 0.",
    ),
    Claim(
        "CM-12",
        "Lemmas 4.5 and B.16, with their start",
        "From a time O~(d^((k-2)/2)) on the learnable overlaps add up to d^(-1/4-1/(8k)) or more, and other local "
        "ones and "
        "|xi| are O~(d^-1/2).",
        f"{_LATER}; {_READY}",
        lambda evidence: all_is_settled(evidence, ready=True),
        kind=Kind.READING,
        reading=f"{_TIME}; O~(d^-1/2) as what 800 Gaussian starts exceed with probability 1e-3.",
    ),
    Claim(
        "CM-12:relu",
        "Lemmas 4.5 and B.16",
        "The same for all neurons.",
        _LATER,
        lambda evidence: all_is_settled(evidence, ready=False),
        kind=Kind.READING,
        reading=f"{_TIME}; O~(d^-1/2) as what 800 Gaussian starts exceed with probability 1e-3. Neurons that learn the "
        "global task never meet it, however the time is read.",
        expected=Verdict.FAILS,
        explanation="Neurons with small learnable overlaps at the start are late, or learn the global task.",
    ),
)
