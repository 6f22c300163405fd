"""Lemmas 9 to 17 along exact flows, and where the induction ends for iid starts."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

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
    lines,
    mean_at_most,
)
from tutelage.papers.soft_moe.checks.units import WRONG, papers_units
from tutelage.papers.soft_moe.evidence import Evidence
from tutelage.papers.soft_moe.growth import Growth
from tutelage.papers.soft_moe.induction import (
    AFTER,
    BETA_6,
    DIMS,
    LOG,
    SEEDS,
    Course,
    Init,
    courses,
    first,
    largest,
)

SLACK = 0.05
"""Of an exponent in d that is to be at most 0: the next terms, smaller by a power of d, bend the line a little."""
Ratio = Callable[[Course, int], float]


def flows(evidence: Evidence, init: Init) -> dict[int, tuple[Course, ...]]:
    """The courses of one kind of start, by dim."""
    return {dim: courses(init, dim, SEEDS[evidence.size]) for dim in DIMS[evidence.size]}


def window(course: Course, level: int) -> NDArray[np.bool_]:
    """Which records lie before T_c, the first at which an error is too large, and up to `T_(r,l) + beta_8`."""
    return course.until(course.recovery(level) + AFTER) & (course.time < course.t_c(level))


# What each lemma bounds, over its bound: 1 or less if the constant of O(.) is 1.


def lemma_9(course: Course, level: int) -> float:
    left, (i, j) = _left(course, level), course.pairs[level - 1]
    table = np.abs(course.seen.gamma2[window(course, level)]).copy()
    table[:, i, j] = 0.0
    targets = [target for _, target in course.pairs[level - 1 :]]
    return float(np.max(table[:, left][:, :, targets])) / course.bound


def lemma_10(course: Course, level: int) -> float:
    before = [target for _, target in course.pairs[: level - 1]]
    table = np.abs(course.seen.gamma2[window(course, level)])
    return float(np.max(table[:, _left(course, level)][:, :, before])) / course.bound


def lemma_12(course: Course, level: int) -> float:
    at, found, gamma2 = window(course, level), course.errors(level), course.own(level)[1]
    cube = course.settings.students * found.sum_2**3
    others, own = found.backward_3 / cube, found.five / (cube + found.sum_2 * gamma2**2)
    return float(np.max(np.maximum(others, own)[at]))


def lemma_15(course: Course, level: int) -> float:
    i, j = course.pairs[level - 1]
    others = np.setdiff1d(np.arange(course.settings.teachers), j)
    parts = [course.seen.zeta1[:, i], course.seen.zeta2[:, i]]
    parts += [course.seen.gamma1[:, i, others], course.seen.gamma2[:, i, others]]
    total = course.errors(level).sum_1
    allowed = course.bound + course.settings.students * total**3 + total**2
    return float(np.max(np.max([largest(part) for part in parts], axis=0) / allowed))


def lemma_16(course: Course, level: int) -> float:
    late = course.time >= course.both(level) + LOG * math.log(course.settings.dim)
    total = course.errors(level).sum_1
    missing = 1 - np.min(course.own(level), axis=0)
    return float(np.max((missing / (course.settings.students * total**3 + course.near))[late], initial=0.0))


def _left(course: Course, level: int) -> list[int]:
    """The students that are not in `R_(l-1)`."""
    return [
        int(i) for i in np.setdiff1d(np.arange(course.settings.students), [i for i, _ in course.pairs[: level - 1]])
    ]


# Judgements.


def _levels(course: Course, init: Init, first: int = 1) -> list[int]:
    """From iid starts level 1 only, whose inductive hypothesis is empty; from others all, that were reached."""
    last = 1 if init == "iid" else len(course.pairs)
    return [level for level in range(first, last + 1) if level == 1 or math.isfinite(course.both(level - 1))]


def no_growth(found: dict[int, tuple[Course, ...]], ratio: Callable[[Course], float], text: str) -> Finding:
    """A ratio does not grow with d: the exponents of the starts, each in all dims, by the interval of their mean."""
    seeds = set.intersection(*({one.seed for one in each} for each in found.values()))
    table = np.array([[ratio(one) for one in each if one.seed in seeds] for each in found.values()])
    text = f"{text}: {_listed(found, table.max(1))}; exponent in d by start; {len(seeds)} starts that meet Condition 1."
    return mean_at_most(lines.exponent(list(found), table), SLACK, detail=text)


def bounded(ratio: Ratio, init: Init, first: int = 1) -> Callable[[Evidence], Finding]:
    """An O(.) at fixed m: the ratio to what stands in it does not grow with d."""

    def worst(course: Course) -> float:
        return max(ratio(course, level) for level in _levels(course, init, first))

    def check(evidence: Evidence) -> Finding:
        return no_growth(flows(evidence, init), worst, "Largest ratio to the bound with constant 1")

    return papers_units(check)


def within(ratio: Ratio, init: Init) -> Callable[[Evidence], Finding]:
    """An O(.) with its constant taken as 1, in the largest dim."""

    def check(evidence: Evidence) -> Finding:
        found = flows(evidence, init)
        worst = [max(ratio(one, level) for one in each for level in _levels(one, init)) for each in found.values()]
        text = f"Largest ratio to the bound with constant 1: {_listed(found, worst)}; {_starts(found)}."
        return at_most(worst[-1], 1.0, seeds=_count(found), detail=text)

    return papers_units(check)


def pace(course: Course, mended: bool) -> float:
    """The largest `|d I2/dt|` of two students outside R_1 up to T_c, over `eps_A gamma2^2 + m eps_A^3`.

    `mended` takes away what the proof loses, `-4.5 (1/b_i^2 + 1/b_r^2) I2^2`.
    """
    at, moved = course.velocity
    total, gamma2 = course.errors(1).sum_2[at], course.own(1)[1][at]
    allowed = total * gamma2**2 + course.settings.students * total**3
    if mended:
        inverse = course.start.norms**-2.0
        force = Growth.of(course.settings).force * (inverse[:, None] + inverse)
        moved = moved + force * course.seen.i2[at] ** 2
    unused = np.setdiff1d(np.arange(course.settings.students), course.pairs[0][0])
    among = moved[:, unused][:, :, unused] * ~np.eye(len(unused), dtype=bool)
    return float(np.max(largest(among) / allowed))


def inequality(init: Init, mended: bool = False) -> Callable[[Evidence], Finding]:
    """Lemma 11's differential inequality for the overlap of two experts."""

    def check(evidence: Evidence) -> Finding:
        text = "Largest rate up to T_c, over eps_A gamma2^2 + m eps_A^3"
        return no_growth(flows(evidence, init), lambda one: pace(one, mended), text)

    return papers_units(check)


def in_time(init: Init) -> Callable[[Evidence], Finding]:
    """Lemma 13: at every start T_c comes later than recovery and a constant, and the pair is recovered."""

    def check(evidence: Evidence) -> Finding:
        found = flows(evidence, init)
        last = list(found.values())[-1]
        cases = [(one, level) for one in last for level in _levels(one, init)]
        good = [_later(one, level) and math.isfinite(one.both(level)) for one, level in cases]
        scale = math.sqrt(list(found)[-1])
        early = [one.t_c(1) / scale for one in last]
        met = [one.recovery(1) / scale for one in last]
        text = f"d = {list(found)[-1]:.0e}, level 1: T_c / sqrt(d) = {_times(early)}; recovery at {_times(met)}."
        return at_least(np.mean(good), 1.0, seeds=len(last), detail=text)

    return papers_units(check)


def _later(course: Course, level: int) -> bool:
    return course.t_c(level) >= course.recovery(level) + AFTER


def stays(init: Init) -> Callable[[Evidence], Finding]:
    """Lemma 17: from T_1 on, up to T_c, router and expert stay above 0.9."""

    def check(evidence: Evidence) -> Finding:
        found = flows(evidence, init)
        last = list(found.values())[-1]
        least = []
        for one in last:
            for level in _levels(one, init):
                at = (one.time >= one.both(level)) & one.until(max(one.t_c(level), one.both(level) + AFTER))
                if at.any():
                    least.append(float(np.min([part[at] for part in one.own(level)])))
        if not least:
            text = f"At none of {_starts(found)} is the pair of level 1 recovered."
            return Finding(Verdict.NOT_REACHED, seeds=len(last), detail=text)
        text = f"d = {list(found)[-1]:.0e}: {len(least)} recovered pairs."
        return at_least(min(least), 0.9, seeds=len(last), detail=text)

    return papers_units(check)


@papers_units
def printed_t_c(evidence: Evidence) -> Finding:
    found = flows(evidence, "iid")
    last = list(found.values())[-1]
    worst = [float(np.max(one.errors(1).backward_2[one.until(one.printed_t_c(1))])) / one.bound for one in last]
    never = sum(math.isinf(one.printed_t_c(1)) for one in last)
    text = f"T_c as printed does not come in {never} of {len(last)} flows; before it eps_B is up to {max(worst):.3g} "
    return at_most(worst, BETA_6, seeds=len(last), detail=text + "of m^2 / (delta_P sqrt(d)).")


@papers_units
def t_c_is_positive(evidence: Evidence) -> Finding:
    found = flows(evidence, "iid")
    last = list(found.values())[-1]
    worst = [float(errors.sum_2[0]) / one.bound for one in last for errors in [one.errors(1)]]
    own = [float(errors.backward_3[0] / errors.sum_2[0] ** 3) for one in last for errors in [one.errors(1)]]
    text = f"d = {list(found)[-1]:.0e}, {len(last)} starts: errors over m^2 / (delta_P sqrt(d)) at time 0."
    return all_of([at_most(worst, BETA_6, seeds=len(last), detail=text), at_most(own, 1.0)])


@papers_units
def dies(evidence: Evidence) -> Finding:
    found = flows(evidence, "iid")
    last, scale = list(found.values())[-1], math.sqrt(list(found)[-1])
    good, told = [], []
    for one in last:
        crossed = one.crossed(1)
        name = min(crossed, key=crossed.__getitem__)
        at = int(np.searchsorted(one.time, crossed[name]))
        apart = ~np.eye(one.settings.students, dtype=bool)
        lowest = float(np.min(one.seen.i2[at][apart]))
        met = float(np.nan_to_num(one.expert_time, nan=math.inf).min())
        good.append(name == "eps_B" and lowest <= -BETA_6 * one.bound and crossed[name] < met)
        told.append(f"{crossed[name] / scale:.3f} ({met / scale:.3f})")
    text = f"d = {list(found)[-1]:.0e}: T_c over sqrt(d), and in brackets the first recovery of any teacher: "
    return at_least(np.mean(good), 1.0, seeds=len(last), detail=text + ", ".join(told) + ".")


def _listed(found: dict[int, tuple[Course, ...]], values: list[float]) -> str:
    return ", ".join(f"{value:.3g} at d = {dim:.0e}" for dim, value in zip(found, values, strict=True))


def _starts(found: dict[int, tuple[Course, ...]]) -> str:
    return f"{_count(found)} starts that meet Condition 1"


def _count(found: dict[int, tuple[Course, ...]]) -> int:
    return min(len(each) for each in found.values())


def _times(values: list[float]) -> str:
    return ", ".join("never" if math.isinf(value) else f"{value:.3f}" for value in values)


# Condition 2.


def inductive(course: Course) -> bool:
    """Condition 2 at level 2: what is learned stays learned, others are small before, forward errors are small."""
    found, own = course.errors(2), np.min(course.own(1), axis=0)
    ends = first(course.time, course.own(1)[1] >= 1 - course.near)
    small = found.sum_1 <= course.bound
    settled = max(ends, course.both(1) + LOG * math.log(course.settings.dim))
    kept = own[small & (course.time >= settled)]
    others = np.setdiff1d(np.arange(course.settings.students), course.pairs[0][0])
    tables = (course.seen.gamma1, course.seen.gamma2)
    before = max(float(np.max(np.abs(table[course.time <= ends][:, others]))) for table in tables)
    allowed = BETA_6 * course.settings.students**2 / math.sqrt(course.settings.dim)
    forward = bool(np.all(found.forward[small] <= course.bound))
    return bool(np.all(kept >= 1 - course.near)) and before <= allowed and forward


def condition_2(init: Init) -> Callable[[Evidence], Finding]:
    """Whether every start meets it at level 2."""

    def check(evidence: Evidence) -> Finding:
        found = flows(evidence, init)
        last = list(found.values())[-1]
        good = sum(inductive(one) for one in last)
        return every(good, len(last), detail=f"d = {list(found)[-1]:.0e}, level 2, {_starts(found)}.")

    return papers_units(check)


@papers_units
def lemma_10_iid(evidence: Evidence) -> Finding:
    """Level 2 is the first that it speaks of, and its hypothesis is looked at."""
    last = list(flows(evidence, "iid").values())[-1]
    good = [one for one in last if inductive(one) and math.isfinite(one.both(1))]
    met = Hypothesis("Condition 2 at level 2, at some start", bool(good), len(good), 1.0, ">=")
    worst = max((lemma_10(one, 2) for one in good), default=0.0)
    return given(at_most(worst, 1.0, seeds=len(last), detail=f"{len(good)} of {len(last)} starts meet it."), met)


_CHOSEN = (
    f"delta_P = 1/7, beta_6 = {BETA_6:g}, beta_8 = {AFTER:g}, xi = 0.9. T(delta_P^2 / d^(2/5)), which is 0 below "
    "d = 1e17 and close to the recovery only from about 1e28, is replaced by the recovery time. T_c is the first time "
    "at which any error is too large. m = 8, m* = 2; starts that meet Condition 1; from iid starts level 1, whose "
    "Condition 2 is empty, from orthonormal ones both levels."
)
_RATIO = (
    f"O(.) is read as a ratio that does not grow with d: an exponent of at most {SLACK}, by Student's interval of the "
    f"starts' own exponents. {_CHOSEN}"
)
_DEFINED = (
    "Up to T_c the bound with the constant beta_6 is the definition of T_c: what is checked is that the ratio does not "
    f"creep up with d. {_RATIO}"
)
_CONSTANT = f"The constant in O(.) is 1, at the largest d. {_CHOSEN}"
_SETTING = {"iid": "iid starts that meet Condition 1, level 1", "orthonormal": "orthonormal starts, both levels"}
ENDS = (
    "From iid starts two experts with a negative overlap run to opposite directions before the pair is recovered, by "
    "the term that Lemma 7 loses."
)
EMPTY = "Once two students have cancelled, eps_A is 1 and the bound says nothing."


def _both(
    id: str,
    where: str,
    statement: str,
    make: Callable[[Init], Callable[[Evidence], Finding]],
    reading: str,
    explanation: str = "",
    fails: bool = False,
) -> tuple[Claim, Claim]:
    """A statement from the paper's start, and the same from orthonormal ones, which is ours."""
    chosen = {"kind": Kind.READING, "reading": reading, "explanation": explanation} | (WRONG if fails else {})
    return (
        Claim(id, where, statement, _SETTING["iid"], make("iid"), **chosen),
        Claim(f"{id}:orthonormal", where, statement, _SETTING["orthonormal"], make("orthonormal"), kind=Kind.OURS),
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "SM-TC",
        "Eq. (14)",
        "T_c is positive: at the start every error is below its bound.",
        _SETTING["iid"],
        t_c_is_positive,
        kind=Kind.READING,
        reading=_CONSTANT,
    ),
    Claim(
        "SM-TC:printed",
        "Eq. (14)",
        "Up to T_c, the first time at which the least of eps_B, eps_3, eps_4 and two more are too large, eps_B is at "
        "most beta_6 m^2 / (delta_P sqrt(d)).",
        _SETTING["iid"],
        printed_t_c,
        kind=Kind.SLIP,
        mended="SM-TC",
        **WRONG,
        explanation="Printed with 'and' and with a minimum. What follows it needs 'or' and the maximum: no error may "
        "be too large before T_c.",
    ),
    *_both(
        "SM-COND2",
        "Condition 2",
        "The inductive hypothesis holds at level 2.",
        condition_2,
        f"{_CONSTANT} beta_9 = 1.",
        ENDS,
        fails=True,
    ),
    *_both(
        "SM-L9",
        "Lemma 9",
        "Up to T_c other experts' overlaps with teachers not yet learned are O(m^2 / (delta_P sqrt(d))).",
        lambda init: bounded(lemma_9, init),
        _DEFINED,
        f"Up to T_c, which comes early. {ENDS}",
    ),
    Claim(
        "SM-L10",
        "Lemma 10",
        "Up to T_c unused experts' overlaps with teachers that are learned are O(m^2 / (delta_P sqrt(d))).",
        "iid starts that meet Condition 1, level 2",
        lemma_10_iid,
        kind=Kind.READING,
        reading=f"Up to T_c the bound with the constant beta_6 is the definition of T_c. {_CONSTANT}",
        explanation=ENDS,
    ),
    Claim(
        "SM-L10:orthonormal",
        "Lemma 10",
        "Up to T_c unused experts' overlaps with teachers that are learned are O(m^2 / (delta_P sqrt(d))).",
        "orthonormal starts, level 2",
        bounded(lemma_10, "orthonormal", 2),
        kind=Kind.OURS,
    ),
    *_both(
        "SM-L11",
        "Lemma 11",
        "d|I2_ij|/dt <= O(eps_A) gamma2^2 + O(m eps_A^3) for two students outside R_l up to T_c: what the lemma adds "
        "to the definition of T_c.",
        inequality,
        f"Up to T_c the lemma's bounds are its definition; what it adds is this inequality of its proof. {_RATIO}",
        "Inherited from Lemma 7: the overlap of two experts moves as -9 I2^2, of order eps^2, so that the ratio grows "
        "as sqrt(d).",
        fails=True,
    ),
    Claim(
        "SM-L11:mended",
        "Lemma 11",
        "The same bound for d I2/dt + 4.5 (1/b_i^2 + 1/b_j^2) I2^2.",
        _SETTING["iid"],
        inequality("iid", mended=True),
        kind=Kind.OURS,
    ),
    *_both(
        "SM-L12",
        "Lemma 12",
        "Up to T_c |v_i.w_i| is O(m eps_A^3), and O(eps_A gamma2^2 + m eps_A^3) for the pair that is being learned.",
        lambda init: bounded(lemma_12, init),
        _DEFINED,
    ),
    *_both(
        "SM-L13",
        "Lemma 13",
        "T_c comes later than the recovery and any constant, and router and expert of the pair are recovered.",
        in_time,
        f"{_CONSTANT} That some T_1 <= T_c exists, as the lemma says too, fails without what stands for its time.",
        f"This is where the induction ends. {ENDS}",
        fails=True,
    ),
    *_both(
        "SM-L15",
        "Lemma 15",
        "At all times the other overlaps of the pair's student with teachers are O(m^2/(delta_P sqrt(d)) + m eps_A^3 + "
        "eps_A^2).",
        lambda init: within(lemma_15, init),
        _CONSTANT,
        EMPTY,
    ),
    *_both(
        "SM-L16",
        "Lemma 16",
        "From T_1 + O(log d) on 1 - gamma1 and 1 - gamma2 are O(m eps_A^3 + m^7 / (delta_P^3 d^(3/2))).",
        lambda init: within(lemma_16, init),
        f"{_CONSTANT} O(log d) is {LOG:g} log d.",
        EMPTY,
    ),
    *_both(
        "SM-L17",
        "Lemma 17",
        "From T_1 to T_c router and expert of the pair stay above 0.9.",
        stays,
        _CHOSEN,
        "Of the starts at which the pair of level 1 is recovered.",
    ),
    Claim(
        "SM-INDUCTION",
        "Appendix A.5",
        "From every iid start the first error to leave its bound is the overlap of two experts, on its way to -1, "
        "before any teacher is recovered.",
        _SETTING["iid"],
        dies,
        kind=Kind.OURS,
    ),
)
