"""All that a run is asked for, and its name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from numpy.typing import ArrayLike

from tutelage._checks import function, instance, refused, several, text, whole
from tutelage._errors import BadInput
from tutelage._identity import described, digest
from tutelage._limits import fits
from tutelage._revisions import REVISIONS, SCHEMA
from tutelage.dynamics.base import AbstractDynamics
from tutelage.dynamics.record import Record, Stop
from tutelage.problem.problem import AbstractProblem, Start

if TYPE_CHECKING:
    from tutelage.trajectory.result import Run


class Changes(TypedDict, total=False):
    """What may differ from one stage to the next."""

    problem: AbstractProblem
    seeds: tuple[int, ...]
    start: Start | None


@dataclass(frozen=True)
class Handover:
    """What one stage of a run gives to the next: a problem, and where its students begin.

    `start`: the teacher, and the students with a leading seed axis, in common coordinates; None for a start of the
    problem's own. `runs`: the stages that are over, by name.
    """

    problem: AbstractProblem
    seeds: tuple[int, ...]
    start: Start | None = None
    runs: dict[str, "Run"] = field(default_factory=dict)

    def changed(self, **changes: Unpack[Changes]) -> "Handover":
        """The same with another problem or start."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Stage:
    """One stage of a run: a dynamics, and what changes before it begins.

    - `enter(handover)`: takes what the stage before left and returns what this one begins from, a `Handover` with
      another problem (a new teacher, a pruned student, another router, fewer layers that train) or another start
      (weights drawn anew, flipped or scaled). Without it training goes on as it was.
    - `record`, `stop`: of this stage; those of the run if None.

    ```python
    >>> import jax, tutelage as tt
    >>> def halved(handover):
    ...     teacher, student = handover.start
    ...     return handover.changed(start=tt.Start(teacher, jax.tree.map(lambda leaf: leaf / 2, student)))
    >>> problem = tt.Problem(
    ...     inputs=tt.Gaussian(10**6),
    ...     teacher=tt.TwoLayer("linear", first=[[1.0]]),
    ...     student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-3), width=1, trains=("first",)),
    ... )
    >>> stages = [tt.Stage("fast", tt.Descent(step=0.5, steps=20)), tt.Stage("slow", tt.Flow(until=3.0), halved)]
    >>> run = tt.run(problem, stages, seeds=2)
    >>> list(run.stages), bool((run.stages["slow"].loss[:, 0] > run.stages["fast"].last("loss")).all())
    (['fast', 'slow'], True)

    ```
    """

    name: str
    dynamics: AbstractDynamics
    enter: Callable[[Handover], Handover] | None = None
    record: Record | None = None
    stop: Stop | None = None

    def __post_init__(self) -> None:
        instance("Stage: name", self.name, str, "text")
        instance("Stage: dynamics", self.dynamics, AbstractDynamics, "a dynamics such as tt.Flow(until=10.0)")
        if self.enter is not None:
            function("Stage: enter", self.enter, "a Handover")
        if self.record is not None:
            instance("Stage: record", self.record, Record, "a tt.Record")
        if self.stop is not None:
            instance("Stage: stop", self.stop, Stop, "a tt.Stop")

    def entered(self, handover: Handover) -> Handover:
        """What the stage begins from."""
        if self.enter is None:
            return handover
        return instance(f"What enter of the stage {self.name!r} gives", self.enter(handover), Handover, "a tt.Handover")


Plan = AbstractDynamics | tuple[Stage, ...]


@dataclass(frozen=True)
class Asked:
    """What a run is asked for. Two that are asked alike are the same run, wherever and whenever they are computed."""

    problem: AbstractProblem
    plan: Plan
    seeds: tuple[int, ...]
    record: Record = Record()
    stop: Stop = Stop()
    start: Start | None = None
    about: dict[str, Any] = field(default_factory=dict, compare=False)
    """For listings. The `paper`, its `settings` and its `code` count as well: they decide what is said of a run."""

    def __post_init__(self) -> None:
        if not self.seeds:
            raise BadInput("seeds is empty, but at least one seed is needed.")
        problem = "a problem such as tt.Problem(...)"
        instance("The first argument of a run", self.problem, AbstractProblem, problem)
        instance("record", self.record, Record, "a tt.Record, or when to record,")
        instance("stop", self.stop, Stop, "a tt.Stop")
        if self.start is not None:
            instance("start", self.start, Start, "a tt.Start")
        if isinstance(self.plan, tuple):
            names = [text("The name of a stage", stage.name) for stage in self.plan]
            if any("/" in name for name in names):
                raise BadInput(f"The stages {names} have a slash in a name, which files cannot hold; leave it out.")
            if not names or len(set(names)) < len(names):
                raise BadInput(f"The stages {names} of a run must be at least one, each with its own name.")

    @cached_property
    def description(self) -> dict[str, Any]:
        """Everything that makes a difference, as JSON."""
        parts = {name: getattr(self, name) for name in ("problem", "plan", "seeds", "record", "stop", "start")}
        asked = {name: described(part) for name, part in parts.items()}
        # A paper says of a run what another would not, such as its phases, and says it by all of its settings.
        whose: dict[str, Any] = {name: self.about[name] for name in ("paper", "settings", "code") if name in self.about}
        return {"schema": SCHEMA, "revisions": self.revisions, **asked, **whose}

    @property
    def described(self) -> dict[str, Any] | None:
        """The description, or None if there cannot be one: a run that is not kept needs no name."""
        try:
            return self.description
        except BadInput:
            return None

    @property
    def revisions(self) -> dict[str, int]:
        """Of all that produces its numbers."""
        stages = self.plan if isinstance(self.plan, tuple) else (Stage("", self.plan),)
        kind = type(getattr(self.problem, "student", self.problem)).__name__
        moves = {stage.dynamics.name: stage.dynamics.revision for stage in stages}
        paper = {self.about["paper"]: self.about.get("revision", 1)} if "paper" in self.about else {}
        return {"loop": REVISIONS["loop"], kind: REVISIONS.get(kind, 1)} | moves | paper

    @cached_property
    def identity(self) -> str:
        """Sixteen hexadecimal digits that name it."""
        return digest(self.description)

    @property
    def label(self) -> str:
        """The dynamics in a word."""
        return self.plan.name if isinstance(self.plan, AbstractDynamics) else "stages"


def plan_of(dynamics: Any) -> Plan:
    """A dynamics, or stages."""
    if isinstance(dynamics, AbstractDynamics):
        return dynamics
    return several("dynamics", dynamics, Stage, "a dynamics such as tt.Flow(until=10.0), or a list of tt.Stage,")


LAST_SEED = 2**63 - 1
SEED_BYTES = 100  # of a number in a list of them, and what is made of it


def seed_list(seeds: ArrayLike) -> tuple[int, ...]:
    """Seeds 0, 1, ... from how many there are, or the seeds themselves.

    ```python
    >>> import numpy as np
    >>> from tutelage.trajectory.asked import seed_list
    >>> seed_list(np.int64(2)), seed_list([5, 3])
    ((0, 1), (5, 3))

    ```
    """
    refusal = refused("seeds", seeds, "a number of seeds from 1 up, or a list of different whole numbers from 0 up,")
    listed = isinstance(seeds, Sequence) and not isinstance(seeds, (str, bytes))
    given: Any = seeds  # whatever came
    try:
        chosen = given if listed or getattr(seeds, "ndim", 0) == 1 else range(whole("seeds", seeds, least=1))
        count = len(chosen)
    except (BadInput, OverflowError):
        raise refusal from None
    fits(f"A list of {count} seeds", SEED_BYTES * count, "ask for fewer seeds")
    numbers = tuple(whole("A seed", seed, most=LAST_SEED) for seed in chosen)
    if not numbers or len(set(numbers)) < len(numbers):
        raise refusal
    return numbers
