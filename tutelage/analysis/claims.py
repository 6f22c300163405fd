"""A paper's claim as an object: where it stands, what would make it false, and what was measured.

A statement about a law that was sampled (a probability, a mean, a fitted exponent) is judged by an interval: it *holds*
if all of the interval agrees with it, *fails* if none of it does, and is *undecided* in between.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, stdtrit

from tutelage._errors import BadInput, unknown
from tutelage.trajectory.findings import Checked as Checked
from tutelage.trajectory.findings import Claim as Claim
from tutelage.trajectory.findings import Finding as Finding
from tutelage.trajectory.findings import Hypothesis as Hypothesis
from tutelage.trajectory.findings import Interval as Interval
from tutelage.trajectory.findings import Kind as Kind
from tutelage.trajectory.findings import Table as Table
from tutelage.trajectory.findings import Verdict as Verdict

if TYPE_CHECKING:
    from tutelage.analysis.scaling import Fit


def holds_if(ok: object) -> Verdict:
    """*holds* when true, else *fails*."""
    return Verdict.HOLDS if bool(ok) else Verdict.FAILS


def at_most(measured: ArrayLike, bound: float, *, seeds: int = 0, detail: str = "") -> Finding:
    """The claim `measured <= bound`; an array is judged by its largest entry, and nan fails."""
    worst = float(np.max(np.asarray(measured, float)))
    return Finding(holds_if(worst <= bound), worst, bound, "<=", seeds, detail=detail)


def at_least(measured: ArrayLike, bound: float, *, seeds: int = 0, detail: str = "") -> Finding:
    """The claim `measured >= bound`; an array is judged by its smallest entry, and nan fails."""
    worst = float(np.min(np.asarray(measured, float)))
    return Finding(holds_if(worst >= bound), worst, bound, ">=", seeds, detail=detail)


def binomial_interval(successes: int, trials: int, level: float = 0.99) -> Interval:
    """Clopper-Pearson: covers the true probability with at least the stated level, for any number of trials.

    ```python
    >>> from tutelage.analysis.claims import binomial_interval
    >>> interval = binomial_interval(50, 100, level=0.95)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.3983, 0.6017)

    ```
    """
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, tail))
    high = 1.0 if successes == trials else float(betaincinv(successes + 1, trials - successes, 1 - tail))
    return Interval(low, high, level)


def mean_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Student's interval for the mean of the law that these numbers are drawn from; boundless for a single one.

    ```python
    >>> from tutelage.analysis.claims import mean_interval
    >>> interval = mean_interval([1.0, 2.0, 3.0])
    >>> round(interval.low, 3), round(interval.high, 3)
    (-0.484, 4.484)

    ```
    """
    drawn = np.asarray(values, float)
    if drawn.size < 2:
        return Interval(-np.inf, np.inf, level)
    half = float(stdtrit(drawn.size - 1, (1 + level) / 2) * drawn.std(ddof=1) / np.sqrt(drawn.size))
    return Interval(float(drawn.mean()) - half, float(drawn.mean()) + half, level)


def every(successes: int, trials: int, *, detail: str = "") -> Finding:
    """The claim that something happens in every case that was looked at; one that is not so makes it fail."""
    share = successes / trials if trials else math.nan
    return Finding(holds_if(successes == trials), share, 1.0, "=", trials, successes, detail=detail)


def probability_is(
    successes: int, trials: int, law: float, *, within: float = 0.1, level: float = 0.999, detail: str = ""
) -> Finding:
    """The claim that a success probability equals `law`: it must lie in the exact binomial interval, and this in
    `law` plus or minus `within`; else nothing is decided."""
    interval = binomial_interval(successes, trials, level)
    verdict, needed = _equals(interval, law, within), None
    if verdict is Verdict.UNDECIDED:
        needed = _deciding(successes / trials, trials, level, lambda found: _equals(found, law, within))
    return Finding(verdict, successes / trials, law, "=", trials, successes, interval, detail, needed)


def probability_at_least(successes: int, trials: int, law: float, *, level: float = 0.999, detail: str = "") -> Finding:
    """The claim that a success probability is at least `law`, by the exact binomial interval.

    ```python
    >>> from tutelage.analysis.claims import probability_at_least
    >>> probability_at_least(10, 10, 6 / 7).outcome
    'undecided (50 seeds would decide)'

    ```
    """
    return _probability(successes, trials, law, ">=", level, detail)


def probability_at_most(successes: int, trials: int, law: float, *, level: float = 0.999, detail: str = "") -> Finding:
    """The claim that a success probability is at most `law`, by the exact binomial interval."""
    return _probability(successes, trials, law, "<=", level, detail)


def _probability(successes: int, trials: int, law: float, relation: str, level: float, detail: str) -> Finding:
    if not (0 < law < 1):
        raise BadInput(
            f"The bound of a probability is {law!r}, and no sample can decide about 0 or 1; "
            "use every(successes, trials) for what always happens."
        )
    interval = binomial_interval(successes, trials, level)
    verdict, needed = _beside(interval, law, relation), None
    if verdict is Verdict.UNDECIDED:
        needed = _deciding(successes / trials, trials, level, lambda found: _beside(found, law, relation))
    return Finding(verdict, successes / trials, law, relation, trials, successes, interval, detail, needed)


def mean_at_least(values: ArrayLike, bound: float, *, level: float = 0.99, detail: str = "") -> Finding:
    """The claim that the mean of the law of these numbers, one per seed, is at least `bound`, by Student's interval."""
    return _mean(np.asarray(values, float), bound, ">=", level, detail)


def mean_at_most(values: ArrayLike, bound: float, *, level: float = 0.99, detail: str = "") -> Finding:
    """The claim that the mean of the law of these numbers, one per seed, is at most `bound`, by Student's interval."""
    return _mean(np.asarray(values, float), bound, "<=", level, detail)


def _mean(values: NDArray[np.float64], bound: float, relation: str, level: float, detail: str) -> Finding:
    mean, interval = float(values.mean()), mean_interval(values, level)
    found = _interval(mean, interval, bound, relation, values.size, detail)
    apart, half = abs(mean - bound), interval.high - mean
    if found.verdict is not Verdict.UNDECIDED or not (np.isfinite(half) and apart > 0):
        return found
    return replace(found, needed=math.ceil(values.size * (half / apart) ** 2))  # as many more as shrink it enough


def interval_at_least(value: float, interval: Interval, bound: float, *, seeds: int = 0, detail: str = "") -> Finding:
    """The claim that a number known up to an interval is at least `bound`."""
    return _interval(value, interval, bound, ">=", seeds, detail)


def interval_at_most(value: float, interval: Interval, bound: float, *, seeds: int = 0, detail: str = "") -> Finding:
    """The claim that a number known up to an interval is at most `bound`."""
    return _interval(value, interval, bound, "<=", seeds, detail)


def interval_is(
    value: float, interval: Interval, law: float, *, within: float, seeds: int = 0, detail: str = ""
) -> Finding:
    """The claim that a number known up to an interval is `law`: the interval has it, and lies `within` of it."""
    verdict = _equals(interval, law, within) if not np.isnan(value) else Verdict.FAILS
    return Finding(verdict, value, law, "=", seeds, interval=interval, detail=detail)


def _interval(value: float, interval: Interval, bound: float, relation: str, seeds: int, detail: str) -> Finding:
    verdict = _beside(interval, bound, relation) if not np.isnan(value) else Verdict.FAILS
    return Finding(verdict, value, bound, relation, seeds, interval=interval, detail=detail)


def _beside(interval: Interval, bound: float, relation: str) -> Verdict:
    """Whether all of an interval, none of it, or a part is on the right side."""
    right, wrong = interval.low >= bound, interval.high < bound
    if relation == "<=":
        right, wrong = interval.high <= bound, interval.low > bound
    return Verdict.HOLDS if right else Verdict.FAILS if wrong else Verdict.UNDECIDED


def _equals(interval: Interval, law: float, within: float) -> Verdict:
    if law not in interval:
        return Verdict.FAILS
    close = law - within <= interval.low and interval.high <= law + within
    return Verdict.HOLDS if close else Verdict.UNDECIDED


MOST = 10**7  # trials; a rate that these do not tell from the bound is the bound


def _deciding(rate: float, trials: int, level: float, judge: Callable[[Interval], Verdict]) -> int | None:
    """The least number of trials at which the same rate would be judged, if there is one."""

    def decided(count: int) -> bool:
        return judge(binomial_interval(round(rate * count), count, level)) is not Verdict.UNDECIDED

    low, high = trials, 2 * trials
    while not decided(high):
        low, high = high, 2 * high
        if high > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high


def exponent_is(fit: "Fit", value: float, *, parameter: str = "b", within: float = 0.25, detail: str = "") -> Finding:
    """The claim that a fitted parameter, the exponent of a power law if not named, is `value`.

    Its interval has the value, and lies `within` of it; a wider one decides nothing. An interval that is not known, or
    half-open for want of points, supports no verdict but *not reached*.

    ```python
    >>> import numpy as np, tutelage as tt
    >>> from tutelage.analysis.scaling import fit
    >>> x = np.array([10.0, 100.0, 1000.0])
    >>> times = 3 * x[:, None] ** 0.5 * np.exp(np.random.default_rng(0).normal(0, 0.1, (3, 20)))
    >>> tt.exponent_is(fit(x, times), 0.5).verdict.value
    'holds'

    ```
    """
    if parameter not in fit.estimates:
        raise unknown(f"parameter of the law {fit.law.name}", parameter, fit.estimates)
    estimate, interval = fit.estimates[parameter], fit.intervals[parameter]
    known = bool(np.isfinite([interval.low, interval.high]).all())
    verdict = _equals(interval, value, within) if known else Verdict.NOT_REACHED
    return Finding(verdict, estimate, value, "=", fit.seeds, interval=interval, detail=detail or fit.sentence)


def all_of(findings: Sequence[Finding], detail: str = "") -> Finding:
    """The worst of several: the first that fails, else the first that does not hold, otherwise the first.

    It has the details and hypotheses of all, and their trials together.

    ```python
    >>> from tutelage.analysis.claims import all_of, at_most
    >>> all_of([at_most(0.1, 1.0), at_most(3.0, 2.0)]).measured
    3.0

    ```
    """
    bad = [found for found in findings if found.verdict is not Verdict.HOLDS]
    chosen = next((found for found in bad if found.verdict is Verdict.FAILS), (bad or list(findings))[0])
    text = " ".join(part for part in (*(found.detail for found in findings), detail) if part)
    met = tuple(dict.fromkeys(each for found in findings for each in found.hypotheses))
    return replace(chosen, detail=text, seeds=max(found.seeds for found in findings), hypotheses=met)


def given(finding: Finding, *hypotheses: Hypothesis) -> Finding:
    """A finding with the hypotheses of its statement; where one is not met, it is *not applicable*, whatever came out.

    ```python
    >>> from tutelage.analysis.claims import Hypothesis, at_most, given
    >>> small = Hypothesis("sigma <= sigma_0", met=False, measured=1e-2, bound=1e-6)
    >>> given(at_most(3.0, 2.0), small).verdict.value
    'not applicable'

    ```
    """
    met = all(each.met for each in hypotheses)
    verdict = finding.verdict if met else Verdict.NOT_APPLICABLE
    return replace(finding, verdict=verdict, hypotheses=(*finding.hypotheses, *hypotheses))
