"""What can be said of a run, as plain data: phases, certificates, and claims with their verdicts."""

import enum
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from tutelage._extensions import extension
from tutelage._plain import number
from tutelage.rigour.standing import Settled, Standing, standing


@dataclass(frozen=True)
class Interval:
    """A closed interval with its confidence level."""

    low: float
    high: float
    level: float = 0.99

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Line:
    """A straight line through a window of records: its slope, standard error, interval, and the window.

    The standard error is that of least squares for independent noise and, added in quadrature, half the range
    of the slopes of the window's three thirds as far as noise does not explain it: a trajectory is never quite
    straight, and the bend limits what the slope can mean.
    """

    slope: float
    error: float
    interval: Interval
    start: float
    end: float
    points: int
    residual: float


@dataclass(frozen=True)
class Phase:
    """A named stretch of one seed's trajectory; `predicted` and `uncertainty` are those of its `end`."""

    name: str
    start: float
    end: float
    description: str = ""
    predicted: float | None = None
    uncertainty: float | None = None
    seed: int = 0
    fit: Line | None = None

    def record(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON, with `error = end - predicted` where there is a prediction."""
        return asdict(self) | {"error": None if self.predicted is None else self.end - self.predicted}

    @classmethod
    def read(cls, record: dict[str, Any]) -> "Phase":
        """From its record."""
        parts = {each.name: record[each.name] for each in fields(cls)}
        fit = parts["fit"]
        return cls(**parts | {"fit": None if fit is None else Line(**fit | {"interval": Interval(**fit["interval"])})})


@dataclass(frozen=True)
class Check:
    """One number looked at twice. They agree when `difference` is at most `tolerance`."""

    what: str
    route: str
    reported: float
    independent: float
    difference: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        return bool(self.difference <= self.tolerance)  # nan does not agree


@dataclass(frozen=True)
class Certificate:
    """All checks of a run."""

    rows: tuple[Check, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def ok(self) -> bool:
        return bool(self.rows) and all(row.agrees for row in self.rows)

    @property
    def sentence(self) -> str:
        bad = [row for row in self.rows if not row.agrees]
        if not self.rows:
            return "Nothing could be checked."
        if not bad:
            used = ", ".join(dict.fromkeys(row.route for row in self.rows))
            return f"All {len(self.rows)} checks agree ({used})."
        worst = bad[0]
        return (
            f"{len(bad)} of {len(self.rows)} checks disagree; first, {worst.what} ({worst.route}): reported "
            f"{worst.reported:.10g}, found {worst.independent:.10g}, allowed difference {worst.tolerance:.1e}."
        )

    def records(self) -> list[dict[str, Any]]:
        """Plain dictionaries, ready for JSON (a number that is not finite becomes None)."""
        rows = [asdict(row) | {"agrees": row.agrees} for row in self.rows]
        finite = lambda v: None if isinstance(v, float) and not np.isfinite(v) else v  # noqa: E731
        return [{name: finite(entry) for name, entry in row.items()} for row in rows]

    @classmethod
    def read(cls, records: list[dict[str, Any]]) -> "Certificate":
        """From its records (None is nan again); they hold no notes."""
        known = [each.name for each in fields(Check)]
        number: Callable[[Any], Any] = lambda v: np.nan if v is None else v  # noqa: E731
        return cls(tuple(Check(**{name: number(record[name]) for name in known}) for record in records))


class Verdict(enum.StrEnum):
    """The outcome of checking a claim. There is no default: every check must say one."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"
    NOT_APPLICABLE = "not applicable"
    NOT_REACHED = "not reached"


class Kind(enum.StrEnum):
    """Whose statement a claim is."""

    PAPER = "paper"
    """The paper's, with its hypotheses, quantifiers and constants."""
    READING = "reading"
    """The paper's, where a constant, an asymptotic size or an order of limits had to be chosen by us."""
    SLIP = "printed slip"
    """The paper's words as they are printed, where they are a misprint."""
    OURS = "ours"
    """Not in the paper."""


@dataclass(frozen=True)
class Hypothesis:
    """A condition of a statement, and whether it was met where the statement was looked at."""

    words: str
    met: bool
    measured: float | None = None
    bound: float | None = None
    relation: str = "<="

    def __post_init__(self) -> None:
        object.__setattr__(self, "met", bool(self.met))

    @property
    def sentence(self) -> str:
        numbers = "" if self.measured is None else f" ({number(self.measured)} {self.relation} {number(self.bound)})"
        return f"Hypothesis: {self.words}: {'met' if self.met else 'not met'}{numbers}."


@dataclass(frozen=True)
class Finding:
    """What a check saw: `measured` beside `bound`, on how many seeds, and why in a sentence.

    `needed`: of an undecided one, how many seeds would decide. `hypotheses`: those of the statement, as measured.
    """

    verdict: Verdict
    measured: float | None = None
    bound: float | None = None
    relation: str = "<="
    seeds: int = 0
    successes: int | None = None
    interval: Interval | None = None
    detail: str = ""
    needed: int | None = None
    hypotheses: tuple[Hypothesis, ...] = ()

    def __post_init__(self) -> None:
        # A measurement that is not a number supports no verdict but its own failure.
        if self.measured is not None and np.isnan(self.measured) and self.verdict is Verdict.HOLDS:
            object.__setattr__(self, "verdict", Verdict.FAILS)
            object.__setattr__(self, "detail", f"The measured value is not a number. {self.detail}".strip())

    @property
    def outcome(self) -> str:
        """The verdict in words, with what would decide where nothing is decided."""
        return self.verdict.value + (f" ({self.needed} seeds would decide)" if self.needed else "")


PLURAL = {
    Kind.PAPER: "The paper's statements",
    Kind.READING: "Our readings",
    Kind.SLIP: "Printed slips",
    Kind.OURS: "Ours",
}
"""Several claims of a kind."""


@dataclass(frozen=True)
class Claim:
    """One checkable statement.

    - `id`, `where`: its name in the tables, and the place in the paper.
    - `statement`: the predicate in words; `setting`: in what situation it is claimed.
    - `check`: takes the evidence a paper has gathered and returns a `Finding`.
    - `kind`: whose statement it is. `reading`, of one that we had to choose something for: what, and how the verdict
      depends on it. `mended`, of a printed slip: the id of the claim about the corrected statement.
    - `must_hold`: an identity, or proved with explicit constants: the software is wrong if it fails.
    - `unconditional`, of a theorem without hypotheses that could be measured: why there are none.
    - `expected`: the verdict known from earlier measurements, shown beside the new one; it never changes the verdict.
    """

    id: str
    where: str
    statement: str
    setting: str
    check: Callable[[Any], Finding]
    kind: Kind = Kind.PAPER
    must_hold: bool = False
    expected: Verdict = Verdict.HOLDS
    explanation: str = ""
    reading: str = ""
    mended: str = ""
    unconditional: str = ""


@dataclass(frozen=True)
class Checked:
    """A claim together with what was found, and the proofs about it."""

    claim: Claim
    finding: Finding
    seconds: float = 0.0
    settled: tuple[Settled, ...] = ()

    @property
    def standing(self) -> Standing | None:
        """What is proved of it, whatever was measured."""
        return standing(self.settled)

    @property
    def verdict(self) -> str:
        """What was measured, and what is proved."""
        return ", ".join((self.finding.verdict, *filter(None, [self.standing])))

    @property
    def outcome(self) -> str:
        """The same, with what would decide where nothing is decided."""
        return ", ".join((self.finding.outcome, *filter(None, [self.standing])))

    @property
    def broken(self) -> bool:
        """A claim that must hold was measured to fail, or is refuted."""
        wrong = self.finding.verdict is Verdict.FAILS or self.standing is Standing.REFUTED
        return self.claim.must_hold and wrong

    def record(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        claim = {each.name: getattr(self.claim, each.name) for each in fields(Claim) if each.name != "check"}
        claim |= {"kind": self.claim.kind.value, "expected": self.claim.expected.value}
        finding = asdict(self.finding) | {"verdict": self.finding.verdict.value}
        finding["hypotheses"] = list(finding["hypotheses"])  # as a file would give it back
        return claim | finding | {"seconds": self.seconds, "settled": [each.record() for each in self.settled]}

    @classmethod
    def read(cls, record: dict[str, Any]) -> "Checked":
        """From its record, which has all of it but the check itself."""

        def check(evidence: Any) -> Finding:
            raise TypeError(f"The claim {record['id']} was read from a file, which holds no check; ask its paper.")

        parts = {each.name: record[each.name] for each in fields(Claim) if each.name != "check"}
        words = {"expected": Verdict(record["expected"]), "kind": Kind(record["kind"])}
        claim = Claim(**parts | words | {"check": check})
        found = {each.name: record[each.name] for each in fields(Finding)}
        interval = None if found["interval"] is None else Interval(**found["interval"])
        hypotheses = tuple(Hypothesis(**each) for each in found["hypotheses"])
        finding = Finding(
            **found | {"verdict": Verdict(found["verdict"]), "interval": interval, "hypotheses": hypotheses}
        )
        settled = tuple(Settled.read(each) for each in record.get("settled", ()))  # older ones have no proofs
        return cls(claim, finding, record["seconds"], settled)


@dataclass(frozen=True, repr=False)
class Table:
    """Checked claims; prints as a table and counts itself.

    `code`: the name of what judged them, of claims that are kept; of others it is not asked for.

    ```python
    >>> import tutelage as tt
    >>> tt.papers.both_layers().check(only=["BL43", "BL45"])
    claim  verdict  measured  bound     where
    BL43   fails    1.414     <= 1e-08  Figure 1, caption
    BL45   fails    707.1     <= 112.1  Lemma 9
    2 claims. Printed slips: 2 fail.

    ```
    """

    rows: tuple[Checked, ...] = field(default_factory=tuple)
    code: str = ""

    def __getitem__(self, id: str) -> Checked:
        return next(row for row in self.rows if row.claim.id == id)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        cells = [("claim", "verdict", "measured", "bound", "where"), *map(_cells, self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
        return "\n".join((*lines, self.sentence))

    @property
    def sentence(self) -> str:
        """How many claims there are, and with which verdicts; statements of different kinds are counted apart."""
        kinds = [kind for kind in Kind if self.counts(kind)]
        told = {kind: ", ".join(tally(*each) for each in self.counts(kind).items()) for kind in kinds}
        many = f"{len(self)} claim{'' if len(self) == 1 else 's'}"
        proofs = ", ".join(f"{count} {name}" for name, count in self.standings().items())
        proofs = f" By proof: {proofs}." if proofs else ""
        if kinds in ([], [Kind.PAPER]):
            return f"{many}{': ' if kinds else ''}{''.join(told.values())}.{proofs}"
        return f"{many}. " + " ".join(f"{PLURAL[kind]}: {told[kind]}." for kind in kinds) + proofs

    def counts(self, kind: Kind | None = None) -> dict[str, int]:
        """How many claims, or claims of one kind, got each verdict, in the order of the verdicts."""
        seen = Counter(row.finding.verdict for row in self.rows if kind in (None, row.claim.kind))
        return {verdict.value: seen[verdict] for verdict in Verdict if seen[verdict]}

    def standings(self) -> dict[str, int]:
        """How many claims are proved, refuted, or proved in part."""
        seen = Counter(row.standing for row in self.rows)
        return {standing.value: seen[standing] for standing in Standing if seen[standing]}

    @property
    def broken(self) -> tuple[Checked, ...]:
        return tuple(row for row in self.rows if row.broken)

    def records(self) -> list[dict[str, Any]]:
        return [row.record() for row in self.rows]

    def to_latex(self) -> str:
        """The table for a paper, with the rules of `booktabs`."""
        return str(extension("latex")(self))

    @classmethod
    def read(cls, records: list[dict[str, Any]], code: str = "") -> "Table":
        """The table that gave these records. Its claims are to be read; they cannot be checked again."""
        return cls(tuple(Checked.read(record) for record in records), code)


def _cells(row: Checked) -> tuple[str, ...]:
    claim, found = row.claim, row.finding
    bound = number(None) if found.bound is None else f"{found.relation} {number(found.bound)}"
    return claim.id, row.verdict, number(found.measured), bound, claim.where


def tally(verdict: str, count: int) -> str:
    """A count in good English.

    ```python
    >>> from tutelage.trajectory.findings import tally
    >>> tally("holds", 3), tally("fails", 1), tally("not reached", 2)
    ('3 hold', '1 fails', '2 not reached')

    ```
    """
    return f"{count} {verdict.removesuffix('s') if count != 1 else verdict}"
