"""A claim of one's own: a function of a run or of a sweep that says what it found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tutelage._checks import function, instance, mapping, one_of, text
from tutelage._errors import BadInput, unknown
from tutelage.analysis.claims import Claim, Finding, Hypothesis, Kind, Verdict
from tutelage.study.evidence import Evidence

if TYPE_CHECKING:
    from tutelage.study.measuring import Wanted

Condition = Callable[[Any], "bool | Finding"]
PARTS = ("over", "dynamics", "settings", "seeds")
"""What of a claim may be otherwise at full size."""


def claim(
    statement: str,
    *,
    id: str | None = None,
    where: str = "",
    setting: str = "",
    over: Mapping[str, Any] | None = None,
    measure: "Wanted | Sequence[Wanted] | None" = None,
    dynamics: str | None = None,
    settings: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    full: Mapping[str, Any] | None = None,
    hypotheses: Mapping[str, Condition] | None = None,
    kind: Kind | str = Kind.PAPER,
    must_hold: bool = True,
    expected: Verdict = Verdict.HOLDS,
    explanation: str = "",
    reading: str = "",
    mended: str = "",
) -> Callable[[Callable[[Any], Finding]], Claim]:
    """Make a claim of a function that takes a run and returns a `Finding`, such as `tt.at_most(...)`.

    - `statement`: what is claimed, in words; `where`: its place in the paper; `setting`: the situation.
    - `id`: its name in tables; the function's if None.
    - `over`, `measure`: with them the function takes a sweep over these settings, and not a run.
    - `dynamics`, `settings`, `seeds`: of the run or the sweep, where they are not those that are checked.
    - `full`: which of these, `over` among them, are others at full size: `full={"over": {"dim": [10**3, 10**4]}}`.
    - `hypotheses`: conditions by their words: functions of the run (or sweep) that return true or false, or a finding
      with the measured value. If one is not met the verdict is *not applicable*, whatever the function would say.
    - `kind`: "paper", a statement of the paper as it stands; "reading", one for which you had to choose a constant, a
      size or an order of limits (`reading` says which, and how the verdict depends on it); "printed slip", a misprint
      (`mended` is the id of the claim about the corrected statement); "ours", a statement of your own.
    - `must_hold`, `expected`, `explanation`: as in `Claim`; one that must hold and fails makes the exit code 1.

    ```python
    >>> import tutelage as tt
    >>> @tt.claim("After time 20 the loss is below 1e-6.")
    ... def learned(run):
    ...     return tt.at_most(run.last("loss"), 1e-6)
    >>> def line(dim: int = 100) -> tt.Problem:
    ...     teacher = tt.TwoLayer("linear", first=[[1.0]])
    ...     return tt.Problem(tt.Gaussian(dim), teacher, tt.TwoLayer("linear", first=tt.GaussianRows(0.01), width=1))
    >>> table = tt.Study.of(line, dynamics=tt.Flow(until=20.0), claims=[learned]).check(seeds=3)
    >>> table["learned"].finding.verdict.value
    'holds'

    ```
    """
    if (over is None) != (measure is None):
        raise BadInput("A claim about a sweep needs over=... and measure=...; one about a run has neither.")

    larger = dict(mapping("full", full or {}, "a dictionary such as {'seeds': 100}"))
    for part in larger:
        if part not in PARTS or (part == "over" and over is None):
            raise unknown("part of a claim at full size", part, PARTS if over is not None else PARTS[1:])

    def claimed(of: Callable[[Any], Finding]) -> Claim:
        name = text("The id of a claim", id or getattr(function("A claim", of, "a run"), "__name__", "claim"))
        conditions = dict(mapping("hypotheses", hypotheses or {}, "a dictionary of conditions by their words"))
        asked: dict[str, Any] = {"dynamics": dynamics, "settings": settings, "seeds": seeds}
        if over is not None:
            asked |= {"over": over, "measure": measure}
        check = Judged(name, of, conditions, asked, larger)
        one_of("kind", str(kind), [each.value for each in Kind])
        return Claim(
            name, where, text("The statement of a claim", statement), setting, check, Kind(kind), must_hold, expected,
            explanation, reading, mended,
        )  # fmt: skip

    return claimed


@dataclass(frozen=True)
class Judged:
    """The check of a claim: `of` judges what was `asked` for, if the hypotheses are met there; `full` is what is asked
    otherwise at full size."""

    name: str
    of: Callable[[Any], Finding]
    hypotheses: dict[str, Condition] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)
    full: dict[str, Any] = field(default_factory=dict)

    def __call__(self, evidence: Evidence) -> Finding:
        asked = self.asked | (self.full if evidence.size == "full" else {})
        about = (evidence.sweep if "over" in asked else evidence.run)(**asked)
        hypotheses = tuple(_measured(words, holds(about)) for words, holds in self.hypotheses.items())
        if not all(each.met for each in hypotheses):
            said = " ".join(each.sentence for each in hypotheses)
            return Finding(Verdict.NOT_APPLICABLE, seeds=evidence.seeds, detail=said, hypotheses=hypotheses)
        found = instance(f"What the claim {self.name} returns", self.of(about), Finding, "a finding, tt.at_most(...),")
        seeds = found.seeds or asked.get("seeds") or evidence.seeds
        return replace(found, seeds=seeds, hypotheses=(*found.hypotheses, *hypotheses))


def _measured(words: str, found: "bool | Finding") -> Hypothesis:
    """A hypothesis with what was found of it, and the measured value if there is one."""
    if not isinstance(found, Finding):
        return Hypothesis(words, bool(found))
    return Hypothesis(words, found.verdict is Verdict.HOLDS, found.measured, found.bound, found.relation)
