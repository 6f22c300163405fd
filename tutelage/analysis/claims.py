"""A paper's claim as an object: where it stands, what would make it false, and what was measured."""

import enum
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta
from scipy.stats import t as student


class Verdict(enum.StrEnum):
    """The outcome of checking a claim. There is no default: every check must say one."""

    HOLDS = "holds"
    FAILS = "fails"
    NOT_APPLICABLE = "not applicable"
    NOT_REACHED = "not reached"


@dataclass(frozen=True)
class Interval:
    """A closed interval with its confidence level."""

    low: float
    high: float
    level: float = 0.99

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Finding:
    """What a check saw: `measured` beside `bound`, on how many seeds, and why in a sentence."""

    verdict: Verdict
    measured: float | None = None
    bound: float | None = None
    relation: str = "<="
    seeds: int = 0
    successes: int | None = None
    interval: Interval | None = None
    detail: str = ""

    def __post_init__(self) -> None:
        # A measurement that is not a number supports no verdict but its own failure.
        if self.measured is not None and np.isnan(self.measured) and self.verdict is Verdict.HOLDS:
            object.__setattr__(self, "verdict", Verdict.FAILS)
            object.__setattr__(self, "detail", f"The measured value is not a number. {self.detail}".strip())


@dataclass(frozen=True)
class Claim:
    """One checkable statement.

    - `id`, `where`: its name in the tables, and the place in the paper.
    - `statement`: the predicate in words; `setting`: in what situation it is claimed.
    - `check`: takes the evidence a paper has gathered and returns a `Finding`.
    - `ours`: it is not in the paper but new here. `must_hold`: the software is wrong if it fails.
    - `expected`: the verdict known from earlier measurements, shown beside the new one; it never changes the verdict.
    """

    id: str
    where: str
    statement: str
    setting: str
    check: Callable[[Any], Finding]
    ours: bool = False
    must_hold: bool = True
    expected: Verdict = Verdict.HOLDS
    explanation: str = ""


@dataclass(frozen=True)
class Checked:
    """A claim together with what was found."""

    claim: Claim
    finding: Finding
    seconds: float = 0.0

    @property
    def broken(self) -> bool:
        """A claim that must hold was measured to fail."""
        return self.claim.must_hold and self.finding.verdict is Verdict.FAILS

    def record(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        claim = {k: getattr(self.claim, k) for k in ("id", "where", "statement", "setting", "ours", "must_hold")}
        finding = asdict(self.finding)
        finding["verdict"] = self.finding.verdict.value
        extra = {"expected": self.claim.expected.value, "explanation": self.claim.explanation, "seconds": self.seconds}
        return claim | finding | extra

    @classmethod
    def read(cls, record: dict[str, Any]) -> "Checked":
        """From its record, which has all of it but the check itself."""

        def check(evidence: Any) -> Finding:
            raise TypeError(f"The claim {record['id']} was read from a file, which holds no check; ask its paper.")

        parts = {each.name: record[each.name] for each in fields(Claim) if each.name != "check"}
        claim = Claim(**parts | {"check": check, "expected": Verdict(record["expected"])})
        found = {each.name: record[each.name] for each in fields(Finding)}
        interval = None if found["interval"] is None else Interval(**found["interval"])
        finding = Finding(**found | {"verdict": Verdict(found["verdict"]), "interval": interval})
        return cls(claim, finding, record["seconds"])


@dataclass(frozen=True)
class Table:
    """Checked claims; prints as a table and counts itself."""

    rows: tuple[Checked, ...] = field(default_factory=tuple)

    def __getitem__(self, id: str) -> Checked:
        return next(row for row in self.rows if row.claim.id == id)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def broken(self) -> tuple[Checked, ...]:
        return tuple(row for row in self.rows if row.broken)

    def records(self) -> list[dict[str, Any]]:
        return [row.record() for row in self.rows]

    @classmethod
    def read(cls, records: list[dict[str, Any]]) -> "Table":
        """The table that gave these records. Its claims are to be read; they cannot be checked again."""
        return cls(tuple(Checked.read(record) for record in records))


def holds_if(ok: Any) -> Verdict:
    """*holds* when true, else *fails*."""
    return Verdict.HOLDS if bool(ok) else Verdict.FAILS


def at_most(measured: Any, bound: float, *, seeds: int = 0, detail: str = "") -> Finding:
    """The claim `measured <= bound`; an array is judged by its largest entry, and nan fails."""
    worst = float(np.max(np.asarray(measured, float)))
    return Finding(holds_if(worst <= bound), worst, bound, "<=", seeds, detail=detail)


def at_least(measured: Any, bound: float, *, seeds: int = 0, detail: str = "") -> Finding:
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
    low = 0.0 if successes == 0 else float(beta.ppf(tail, successes, trials - successes + 1))
    high = 1.0 if successes == trials else float(beta.ppf(1 - tail, successes + 1, trials - successes))
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
    half = float(student.ppf((1 + level) / 2, drawn.size - 1) * drawn.std(ddof=1) / np.sqrt(drawn.size))
    return Interval(float(drawn.mean()) - half, float(drawn.mean()) + half, level)


def probability_is(successes: int, trials: int, law: float, *, level: float = 0.999, detail: str = "") -> Finding:
    """The claim that a success probability equals `law`: it must lie in the exact binomial interval."""
    interval = binomial_interval(successes, trials, level)
    return Finding(holds_if(law in interval), successes / trials, law, "=", trials, successes, interval, detail)


def probability_at_least(successes: int, trials: int, law: float, *, level: float = 0.999, detail: str = "") -> Finding:
    """The claim that a success probability is at least `law`: it fails when the whole interval lies below."""
    interval = binomial_interval(successes, trials, level)
    return Finding(holds_if(interval.high >= law), successes / trials, law, ">=", trials, successes, interval, detail)


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
