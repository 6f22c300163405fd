"""A paper's claim as an object: where it stands, what would make it false, and what was measured."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, stdtrit

from tutelage._errors import unknown
from tutelage.trajectory.findings import Checked as Checked
from tutelage.trajectory.findings import Claim as Claim
from tutelage.trajectory.findings import Finding as Finding
from tutelage.trajectory.findings import Interval as Interval
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


def probability_is(successes: int, trials: int, law: float, *, level: float = 0.999, detail: str = "") -> Finding:
    """The claim that a success probability equals `law`: it must lie in the exact binomial interval."""
    interval = binomial_interval(successes, trials, level)
    return Finding(holds_if(law in interval), successes / trials, law, "=", trials, successes, interval, detail)


def probability_at_least(successes: int, trials: int, law: float, *, level: float = 0.999, detail: str = "") -> Finding:
    """The claim that a success probability is at least `law`: it fails when the whole interval lies below."""
    interval = binomial_interval(successes, trials, level)
    return Finding(holds_if(interval.high >= law), successes / trials, law, ">=", trials, successes, interval, detail)


def exponent_is(fit: "Fit", value: float, *, parameter: str = "b", detail: str = "") -> Finding:
    """The claim that a fitted parameter, the exponent of a power law if not named, is `value`: its interval has it.

    An interval that is not known, or half-open for want of points, supports no verdict but *not reached*.

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
    verdict = holds_if(value in interval) if known else Verdict.NOT_REACHED
    return Finding(verdict, estimate, value, "=", fit.seeds, interval=interval, detail=detail or fit.sentence)


def all_of(findings: Sequence[Finding], detail: str = "") -> Finding:
    """The first that fails, otherwise the first; the details of all, and their trials together.

    ```python
    >>> from tutelage.analysis.claims import all_of, at_most
    >>> all_of([at_most(0.1, 1.0), at_most(3.0, 2.0)]).measured
    3.0

    ```
    """
    chosen = next((found for found in findings if found.verdict is not Verdict.HOLDS), findings[0])
    text = " ".join(part for part in (*(found.detail for found in findings), detail) if part)
    return replace(chosen, detail=text, seeds=max(found.seeds for found in findings))


def unless(condition: bool, finding: Finding, verdict: Verdict, detail: str) -> Finding:
    """`finding` when `condition` holds; otherwise its numbers with another verdict and reason.

    A finding that fails keeps failing: an unmet hypothesis is no excuse for a wrong conclusion that was measured.
    """
    if condition or finding.verdict is Verdict.FAILS:
        return finding
    return replace(finding, verdict=verdict, detail=f"{detail} {finding.detail}".strip())
