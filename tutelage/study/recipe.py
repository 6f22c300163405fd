"""From the settings of a study to a run: what to learn, how to move, what to record, and what to say of it."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

import numpy as np
import pydantic

from tutelage._errors import BadInput
from tutelage._identity import identity
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.dynamics.descent import Schedule, Truncation
from tutelage.dynamics.driver import Progress
from tutelage.dynamics.record import Record, Stop, When, recorded
from tutelage.dynamics.staging import Data
from tutelage.problem.problem import AbstractProblem
from tutelage.store.store import Store
from tutelage.study.moves import Move, Moves, moves_of, parted, planned
from tutelage.trajectory.asked import Asked, Stage, seed_list
from tutelage.trajectory.findings import Certificate, Phase
from tutelage.trajectory.result import Run
from tutelage.verbs import Rates, Seeds, ask

if TYPE_CHECKING:
    from optax import GradientTransformation


class Settings(pydantic.BaseModel):
    """Base of every study's settings: unknown names are refused, values are frozen.

    ```python
    >>> import tutelage as tt
    >>> tt.papers.both_layers(dim=True)
    Traceback (most recent call last):
    ...
    tutelage._errors.BadInput: both_layers: setting 'dim' got True: a number was expected. dim is the input dimension d.

    ```
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @pydantic.field_validator("*", mode="before")
    @classmethod
    def _numbers(cls, value: object, info: pydantic.ValidationInfo) -> object:
        """Neither True nor a text is a number, although pydantic would make one of it."""
        kinds = _kinds(cls.model_fields[info.field_name or ""].annotation)
        if any(isinstance(leaf, (bool, np.bool_)) and bool not in kinds for leaf in _leaves(value)):
            raise ValueError("a number was expected" if kinds & {int, float} else "a text was expected")
        if kinds <= {int, float} and any(isinstance(leaf, str) for leaf in _leaves(value)):
            raise ValueError("a number was expected")
        return value


def _kinds(annotation: Any) -> set[type]:
    """What the values of a field are made of."""
    if annotation in (bool, int, float, str):
        return {annotation}
    if isinstance(annotation, str):  # of a Literal
        return {str}
    return set().union(*map(_kinds, get_args(annotation)))


def _leaves(value: object) -> Iterator[object]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else None
    if inside is None:
        yield value
    else:
        for each in inside:
            yield from _leaves(each)


class Options(TypedDict, total=False):
    """Options of a study's run: those of `Recipe.run`, and the fields of this package's dynamics.

    A dynamics of one's own may have other fields; `Recipe.run` takes any.
    """

    seeds: Seeds
    record: Record | When | None
    stop: Stop | None
    certify: bool
    store: Store | str | Path | None
    checkpoint: Checkpoint | str | Path | None
    progress: Progress | None
    told: Callable[[str], None] | None
    fresh: bool
    # Fields of the dynamics.
    step: float
    steps: int
    until: float
    rtol: float | None
    solver: Literal["auto", "explicit", "stabilised", "stiff"]
    data: Data
    schedule: Schedule | None
    truncation: Truncation | None
    rates: Rates | None
    momentum: float
    batch: int
    optimiser: "GradientTransformation | None"
    law: Literal["exact", "direct"]
    dtype: Literal["float64", "float32"]


class AnyDynamics(Options, total=False):
    """The same, with the dynamics: by name, or as an object."""

    dynamics: str | Moves | None


def _plain_record(settings: Any, dynamics: str) -> Record:
    return Record()


def _no_phases(run: Run, settings: Any) -> Iterable[Phase]:
    return ()


def _of_package(function: Callable[..., Any]) -> bool:
    return getattr(function, "__module__", "").partition(".")[0] == "tutelage"


def _certified(certify: Callable[[Run, Any], Certificate], settings: Any, run: Run) -> Certificate:
    return certify(run, settings)


@dataclass(frozen=True)
class Recipe:
    """How an experiment is run.

    - `problem(settings)`: what is to be learned.
    - `plan(settings, dynamics, record)`: how to move, by one of the `dynamics`, the first if none is asked for. Stages
      may make what they record of the record that was asked for.
    - `record(settings, dynamics)`: what to record unless asked otherwise.
    - `phases(run, settings)`: the phases found in a run; `complete(run, settings)`: whatever else is said of it.
    - `certify(run, settings)`: its certificate, where that of any run will not do.

    """

    name: str
    settings: type[Settings]
    problem: Callable[[Any], AbstractProblem]
    plan: Callable[[Any, str, Record], Move]
    dynamics: tuple[str, ...] = ("descent", "flow")
    record: Callable[[Any, str], Record] = _plain_record
    phases: Callable[[Run, Any], Iterable[Phase]] = _no_phases
    complete: Callable[[Run, Any], Run] | None = None
    certify: Callable[[Run, Any], Certificate] | None = None

    def run(
        self,
        settings: Settings | None = None,
        *,
        dynamics: str | Moves | None = None,
        seeds: Seeds = 1,
        record: Record | When | None = None,
        stop: Stop | None = None,
        certify: bool = False,
        store: Store | str | Path | None = None,
        checkpoint: Checkpoint | str | Path | None = None,
        progress: Progress | None = None,
        told: Callable[[str], None] | None = None,
        fresh: bool = False,
        **changes: object,
    ) -> Run:
        """Run the experiment. Arguments are those of `tutelage.run`; `changes` are fields of the dynamics.

        - `dynamics`: one of its own by name, perhaps with changes (`flow:until=1e3,rtol=1e-9`), or another, such as
          `tt.Sgd(...)`.
        - `told`: is told in words what the store does.
        """
        asked = self.asked(settings, dynamics=dynamics, seeds=seeds, record=record, stop=stop, **changes)
        chosen = settings or self.settings()
        return ask(
            asked, certify=certify, store=store, checkpoint=checkpoint, progress=progress, told=told, fresh=fresh,
            finish=lambda run: self._finished(run, chosen),
            certifier=partial(_certified, self.certify, chosen) if self.certify else None,
        )  # fmt: skip

    def asked(
        self,
        settings: Settings | None = None,
        *,
        dynamics: str | Moves | None = None,
        seeds: Seeds = 1,
        record: Record | When | None = None,
        stop: Stop | None = None,
        **changes: object,
    ) -> Asked:
        """All that such a run is asked for."""
        if not (dynamics is None or isinstance(dynamics, str)):
            other = self.moving_by(dynamics)
            return other.asked(settings, dynamics=other.dynamics[0], seeds=seeds, record=record, stop=stop, **changes)
        chosen, called = settings or self.settings(), self.known(dynamics)
        name, fields = parted(called)
        wanted = recorded(record).over(self.record(chosen, name))
        words = {"paper": self.name, "settings": chosen.model_dump(mode="json"), "dynamics": called}
        plan = self._plan(chosen, name, wanted, fields | changes)
        return Asked(
            self.problem(chosen), plan, seed_list(seeds), wanted, stop or Stop(),
            about=words | {"revision": REVISIONS.get(self.name, 1)} | self._code,
        )  # fmt: skip

    @property
    def _code(self) -> dict[str, str]:
        """The name of the code that says something of a run, for a study that no revision of this package counts."""
        own = [each for each in (self.phases, self.complete, self.certify) if each and not _of_package(each)]
        return {"code": identity(*own)} if own else {}

    def known(self, dynamics: str | None) -> str:
        """One of the dynamics, perhaps with changes of its fields, the first if None; another is refused."""
        chosen = self.dynamics[0] if dynamics is None else dynamics
        name, _ = parted(chosen)
        if name not in self.dynamics:
            names = " and ".join(filter(None, (", ".join(self.dynamics[:-1]), self.dynamics[-1])))
            raise BadInput(f"{self.name} knows the dynamics {names}, but {name!r} was asked for; choose one of them.")
        return chosen

    def moving_by(self, dynamics: Moves) -> "Recipe":
        """The same recipe with other dynamics."""
        moves = moves_of(dynamics)
        return dataclasses.replace(self, plan=partial(planned, moves), dynamics=tuple(moves))

    def _plan(
        self, settings: Settings, dynamics: str, record: Record, changes: dict[str, object]
    ) -> AbstractDynamics | tuple[Stage, ...]:
        plan = self.plan(settings, dynamics, record)
        if not changes:
            return plan if isinstance(plan, AbstractDynamics) else tuple(plan)
        known: list[str] = [each.name for each in dataclasses.fields(plan)] if dataclasses.is_dataclass(plan) else []
        for name in changes:
            if name not in known:
                has = f"it has {', '.join(known)}" if known else "it has stages, which are changed one by one"
                raise BadInput(f"{self.name}: a run by {dynamics} has no option {name!r}; {has}.")
        return dataclasses.replace(plan, **changes)  # type: ignore[type-var, return-value]

    def _finished(self, run: Run, settings: Settings) -> Run:
        about = {"paper": self.name, "paper_settings": settings.model_dump_json()}
        done = dataclasses.replace(run, dataset=run.dataset.assign_attrs(about))
        done = done.with_findings(phases=self.phases(done, settings))
        return self.complete(done, settings) if self.complete else done
