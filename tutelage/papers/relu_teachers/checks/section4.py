"""Section 4's sentences: which phase gets longer or shorter with k, m, sigma and eta."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from tutelage.analysis import Claim, Finding, Kind, Verdict, all_of, mean_at_least, mean_at_most
from tutelage.papers.relu_teachers.evidence import Evidence
from tutelage.papers.relu_teachers.section4 import FIGURE_2, FIGURE_3, Case, late_slopes
from tutelage.problem import Numbers

FEW, NARROW, USUAL, WIDE = FIGURE_2
LARGE, MIDDLE, _, FAST = FIGURE_3
LITTLE = 0.5  # of an exponent


def _longer(evidence: Evidence, pairs: list[tuple[Case, Case]], names: tuple[str, ...] = ("t1", "t2")) -> Finding:
    """That t1 and t2 of the second case of each pair are longer, seed by seed."""
    findings = []
    for one, other in pairs:
        for name in names:
            short, long = (evidence.trained[case][name].values for case in (one, other))
            text = f"{name}: {_mean(short)} at {_told(one, other)}, {_mean(long)} at {_told(other, one)}."
            findings.append(mean_at_least(long - short, 0.0, detail=text))
    return all_of(findings)


def _mean(values: Numbers) -> str:
    return f"{np.mean(values):.0f}"


def _told(case: Case, other: Case) -> str:
    """What tells a case from another."""
    names = {"teachers": "k", "students": "m", "scale": "sigma", "eta": "eta"}
    return ", ".join(
        f"{names[name]} = {value:g}" for name, value in case._asdict().items() if value != getattr(other, name)
    )


def _end(found: xr.Dataset) -> Numbers:
    """ln of the last loss over the first."""
    loss = found["loss"].transpose("seed", "step").values
    return np.log(loss[:, -1] / loss[:, 0])


def _slower(evidence: Evidence, one: Case, other: Case, rate: Callable[[xr.Dataset], Numbers], what: str) -> Finding:
    """That the second case has the larger rate (of ln L, so the slower fall)."""
    fast, slow = (rate(evidence.trained[case]) for case in (one, other))
    text = f"{what}: {np.mean(fast):.2f} at {_told(one, other)}, {np.mean(slow):.2f} at {_told(other, one)}."
    return mean_at_least(slow - fast, 0.0, detail=text)


SLOPE, END = "ln L against ln T over the second half of the updates", "ln of the last loss over the first"


def more_teachers(evidence: Evidence) -> Finding:
    return _longer(evidence, [(FEW, USUAL)])


def more_teachers_rate(evidence: Evidence) -> Finding:
    return _slower(evidence, FEW, USUAL, _end, END)


def more_students(evidence: Evidence) -> Finding:
    return _longer(evidence, [(WIDE, USUAL), (USUAL, NARROW)])


def more_students_rate(evidence: Evidence) -> Finding:
    slopes = {case.students: late_slopes(evidence.trained[case]) for case in (NARROW, USUAL, WIDE)}
    text = "Exponent of the loss over the second half of the updates: "
    text += ", ".join(f"{np.mean(values):.2f} for m = {m}" for m, values in slopes.items()) + "."
    gaps = [np.abs(slopes[m] - slopes[USUAL.students]) for m in (NARROW.students, WIDE.students)]
    return all_of([mean_at_most(gap, LITTLE, detail=text if not n else "") for n, gap in enumerate(gaps)])


def larger_start(evidence: Evidence) -> Finding:
    return _longer(evidence, [(LARGE, USUAL)])


def larger_start_rate(evidence: Evidence) -> Finding:
    return _slower(evidence, USUAL, LARGE, late_slopes, SLOPE)


def larger_step(evidence: Evidence) -> Finding:
    return _longer(evidence, [(FAST, USUAL)])


def larger_step_slope(evidence: Evidence) -> Finding:
    return _slower(evidence, USUAL, FAST, late_slopes, SLOPE)


def larger_step_loss(evidence: Evidence) -> Finding:
    return _slower(evidence, USUAL, FAST, _end, END)


SETTING = "online SGD at the paper's settings, weak recovery"
TIMES = (
    "t1 and t2 are not defined; t1 is when the mean cosine to the nearest teacher stays above 0.95, t2 when the mean "
    "norm stays above 95 % of the balanced one. The start is not told either; from a Gaussian one cosines do not get "
    "there with four teachers."
)
RATE = "The rate is {}."
CLAIMS = (
    Claim(
        "S4-K",
        "Section 4, Figure 2",
        "Larger k leads to longer t1 and t2.",
        f"{SETTING}: k = 2 and 4, m = 20",
        more_teachers,
        kind=Kind.READING,
        reading=TIMES,
        explanation="The clocks of the plateau and of growth go as m/k.",
    ),
    Claim(
        "S4-K:rate",
        "Section 4, Figure 2",
        "Larger k leads to slower convergence.",
        f"{SETTING}: k = 2 and 4, m = 20",
        more_teachers_rate,
        kind=Kind.READING,
        reading=RATE.format("the last loss over the first; exponents depend on the phase that a run is in"),
        explanation="Groups are smaller, there are more of them, and they get there later.",
    ),
    Claim(
        "S4-M",
        "Section 4, Figure 2",
        "Larger m leads to shorter t1 and t2.",
        f"{SETTING}: m = 12, 20, 40, k = 4",
        more_students,
        kind=Kind.READING,
        reading=TIMES,
        explanation="Curves fall together on eta m T (COPIES).",
    ),
    Claim(
        "S4-M:rate",
        "Section 4, Figure 2",
        "Larger m has little effect on the convergence rate.",
        f"{SETTING}: m = 12, 20, 40, k = 4",
        more_students_rate,
        kind=Kind.READING,
        reading=RATE.format("the exponent of the loss over the second half of the updates, and little is 0.5"),
        expected=Verdict.FAILS,
        explanation="After the same number of updates wider networks are in a later phase. In the end all have the "
        "exponent 3, and a constant that falls with m (THM2:m).",
    ),
    Claim(
        "S4-SIGMA",
        "Section 4, Figure 3",
        "A larger sigma reduces the first two phases.",
        f"{SETTING}: sigma = 1e-6 and 1e-4",
        larger_start,
        kind=Kind.READING,
        reading=TIMES,
        explanation="By little: the first update is longer than the start already.",
    ),
    Claim(
        "S4-SIGMA:rate",
        "Section 4, Figure 3",
        "A larger sigma slows down the convergence in the third phase.",
        f"{SETTING}: sigma = 1e-6 and 1e-4",
        larger_start_rate,
        kind=Kind.READING,
        reading=RATE.format("the exponent of the loss over the second half of the updates"),
        expected=Verdict.UNDECIDED,
        explanation="If there is an effect it is of some hundredths: a run that is ahead by a little is in a slightly "
        "flatter stretch of the same curve.",
    ),
    Claim(
        "S4-ETA",
        "Section 4, Figure 3",
        "A larger eta reduces the first two phases.",
        f"{SETTING}: eta = 5e-4 and 1e-3",
        larger_step,
        kind=Kind.READING,
        reading=TIMES,
        explanation="Time is eta T.",
    ),
    Claim(
        "S4-ETA:slope",
        "Section 4, Figure 3",
        "A larger eta slows down the convergence in the third phase: the loss falls with a smaller power of T.",
        f"{SETTING}: eta = 5e-4 and 1e-3",
        larger_step_slope,
        kind=Kind.READING,
        reading=RATE.format(
            "the exponent of the loss over the second half of the updates; by the loss itself it fails"
        ),
        explanation="That run is further on, at the slow beginning of the local phase.",
    ),
    Claim(
        "S4-ETA:loss",
        "Section 4, Figure 3",
        "A larger eta slows down the convergence in the third phase: the loss ends higher.",
        f"{SETTING}: eta = 5e-4 and 1e-3",
        larger_step_loss,
        kind=Kind.READING,
        reading=RATE.format("the last loss; by the exponent the sentence holds"),
        expected=Verdict.FAILS,
        explanation="Time is eta T: it ends lower.",
    ),
)
