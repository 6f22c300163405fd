"""A study: settings, a recipe, and as much as one likes of measures, claims, figures and phase diagrams.

The papers of the laboratory are studies, and so is a user's own; nothing is reserved for either.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar, Unpack

import pydantic

from tutelage._errors import BadInput, shown, unknown
from tutelage._identity import identity
from tutelage._progress import reporting
from tutelage._revisions import REVISIONS
from tutelage._version import __version__
from tutelage.analysis.claims import Checked, Claim, Table
from tutelage.dynamics.record import Record
from tutelage.problem.problem import AbstractProblem
from tutelage.store.store import some_store
from tutelage.study.evidence import Evidence
from tutelage.study.functions import Phases, recipe_of
from tutelage.study.moves import Moves
from tutelage.study.parts import Diagram, Figure, Size, Told, undeferred
from tutelage.study.recipe import AnyDynamics, Options, Recipe, Settings
from tutelage.trajectory.asked import seed_list
from tutelage.trajectory.measures import Measure, named
from tutelage.trajectory.result import Run

if TYPE_CHECKING:
    from tutelage.rigour.proofs import Provable
    from tutelage.rigour.standing import Settled


class Parts(TypedDict, total=False):
    """What a study may have besides its recipe."""

    title: str
    authors: str
    reference: str
    summary: str
    evidence: Callable[[Any, Size, int], object] | None
    claims: Sequence[Claim]
    figures: Sequence[Figure]
    presets: Mapping[str, dict[str, Any]]
    own: str | None
    takes: Mapping[str, float]
    measures: Sequence[Measure]
    diagrams: Sequence[Diagram]
    aliases: Mapping[str, str]
    telling: str | None
    proofs: "Sequence[Provable]"
    shipped: Path | None


@dataclass(frozen=True)
class Study:
    """What is studied: how settings become a run, and what is measured, claimed and drawn of it.

    The short way to one is `Study.of(function)`.

    - `recipe`: from settings to a run.
    - `title`, `authors`, `reference`, `summary`: what it is in words; the title is its name if there is none.
    - `evidence(settings, size, seeds)` makes the object that every claim's `check` reads (lazily, so that one claim
      costs only what it needs). If there is none, it is an `Evidence`, which runs and sweeps the study.
    - `measures`: numbers of its runs that a sweep may ask for by name, with their laws; `diagrams`: phase diagrams.
    - `presets`: settings by name. `short` is what a command runs when nothing is set: the main effect in seconds.
      `own` names the preset with the paper's own sizes, and `takes` says of presets how many seconds a run of eight
      seeds takes on two cores, about.
    - `aliases`: other names of settings, such as those of the paper.
    - `telling`: the figure that says most, by its id: it is made and shown before the others. The first if not given.
    - `proofs`: statements that are proved in ball arithmetic, each with the function that makes its proof; `shipped`:
      the folder with their files, by which claims are shown as proved or refuted.

    Claims, figures, measures, diagrams and proofs may be `Deferred`, evidence `deferred`, so that a run imports none of
    them.
    """

    name: str
    recipe: Recipe
    title: str = ""
    authors: str = ""
    reference: str = ""
    summary: str = ""
    evidence: Callable[[Any, Size, int], object] | None = None
    claims: Sequence[Claim] = ()
    figures: Sequence[Figure] = ()
    presets: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    own: str | None = None
    takes: Mapping[str, float] = field(default_factory=dict)
    measures: Sequence[Measure] = ()
    diagrams: Sequence[Diagram] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    telling: str | None = None
    proofs: "Sequence[Provable]" = ()
    shipped: Path | None = None

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.name)

    @classmethod
    def of(
        cls,
        problem: Callable[..., AbstractProblem],
        *,
        name: str | None = None,
        dynamics: Moves | None = None,
        record: Record | Callable[[Any, str], Record] | None = None,
        phases: Phases | None = None,
        **parts: Unpack[Parts],
    ) -> "Study":
        """A study of a function that gives a problem: its arguments, each with a default, are the settings.

        - `problem`: a function of settings, or of one argument that is a `tutelage.study.Settings`.
        - `name`: that of the function if None.
        - `dynamics`: how to move: a dynamics, stages, a function of the settings that gives either, or several of these
          by name, the first being the default. If None: `flow` to time 100, and `descent`, 1000 updates of 0.1.
        - `record`: what to record, with its events; `phases(run, settings)`: the phases found in a run.
        - `parts`: any other field of a study, such as `claims`, `measures`, `figures`, `presets`, `title`.

        ```python
        >>> import numpy as np, tutelage as tt
        >>> def committee(dim: int = 1000, units: int = 3) -> tt.Problem:
        ...     teacher = tt.TwoLayer("erf", first=np.eye(units), second="ones")
        ...     student = tt.TwoLayer("erf", first=tt.GaussianRows(dim**-0.5), width=units, second="ones")
        ...     return tt.Problem(tt.Gaussian(dim), teacher, student)
        >>> study = tt.Study.of(committee, dynamics=tt.Flow(until=2.0))
        >>> study(dim=10**6).run(seeds=2).loss.sizes["seed"]
        2

        ```
        """
        recipe = recipe_of(problem, name=name, dynamics=dynamics, record=record, phases=phases)
        for part in parts:
            if part not in Parts.__annotations__:
                raise unknown("part of a study", part, [*Parts.__annotations__, "dynamics", "record", "phases"])
        return cls(recipe.name, recipe, **parts)

    @classmethod
    def named(cls, name: str) -> "Study":
        """The study of that name: a paper, one of an installed package, or that of a file.

        A file is `my_study.py`, or `my_study.py:committee` if it has several.

        ```python
        >>> import tutelage as tt
        >>> tt.Study.named("both_layers")
        Study('both_layers')

        ```
        """
        from tutelage.study.registry import get

        return get(name)

    def __repr__(self) -> str:
        return f"Study({self.name!r})"

    @property
    def settings(self) -> type[Settings]:
        """The model of its settings."""
        return self.recipe.settings

    @property
    def dynamics(self) -> tuple[str, ...]:
        """The ways to move that it knows; the first is its own."""
        return self.recipe.dynamics

    def run(self, settings: Settings | None = None, **options: Unpack[AnyDynamics]) -> Run:
        """Run its experiment; options are those of `Recipe.run`, such as `dynamics`, `seeds`, `record`, `store`.

        ```python
        >>> import tutelage as tt
        >>> paper = tt.papers.both_layers
        >>> run = paper.run(paper.configure({"steps": 50}), dynamics="descent", seeds=2, certify=False)
        >>> run.loss.sizes["seed"]
        2

        ```
        """
        return self.judged(self.recipe.run(settings, **options))

    def moving_by(self, dynamics: Moves) -> "Study":
        """The same study with other dynamics: one, stages, or several by name (as in `of`)."""
        return replace(self, recipe=self.recipe.moving_by(dynamics))

    def judged(self, run: Run) -> Run:
        """The run without claims that were kept beside it and that other code than the present has judged."""
        return run if run.claims is None or run.claims.code == self.code else replace(run, claims=None)

    @property
    def code(self) -> str:
        """The name of what judges its claims, so that a kept verdict is not taken for that of other code.

        Claims and evidence count by their source. The version is there for what they call of this package.
        """
        evidence = undeferred(self.evidence) if self.evidence else None
        return identity(tuple(self.claims), evidence, REVISIONS.get(self.name, 1), __version__)

    def __call__(self, **values: object) -> "Experiment":
        """The study's experiment with these settings: `tt.papers.both_layers(dim=10**6).flow(seeds=8)`."""
        return Experiment(self, self.configure(values))

    def configure(self, values: dict[str, Any] | None = None) -> Settings:
        """Settings from plain values; a bad one is refused with one sentence."""
        values = {self.aliases.get(name, name): value for name, value in (values or {}).items()}
        for name in values:
            if name not in self.settings.model_fields:
                raise unknown(f"setting of {self.name}", name, self.settings.model_fields)
        try:
            return self.settings(**values)
        except pydantic.ValidationError as error:
            raise BadInput(sentence(self.name, self.settings, error)) from None

    def figure(self, id: str) -> Figure:
        """The figure with this id, or an error naming the nearest."""
        return _with_id(id, f"figure of {self.name}", self.figures)

    def measure(self, name: str) -> Measure:
        """The measure with this name: the paper's own, or one that any run has (see `trajectory.measures.named`)."""
        return named(name, self.measures)

    def diagram(self, id: str) -> Diagram:
        """The phase diagram with this id, or an error naming the nearest."""
        return _with_id(id, f"phase diagram of {self.name}", self.diagrams)

    def provable(self, only: Sequence[str] = ()) -> "list[Provable]":
        """The statements that can be proved: all, or those named; "MINIMA" names "MINIMA:k=6" and all others of it."""
        if not self.proofs:
            raise BadInput(f"{self.name} has no statement with a proof; relu_teachers has some.")
        for id in only:
            if not any(_named(each, id) for each in self.proofs):
                raise unknown(f"proof of {self.name}", id, [each.id for each in self.proofs])
        return [each for each in self.proofs if not only or any(_named(each, id) for id in only)]

    def settled(self, claim: str) -> "tuple[Settled, ...]":
        """What the shipped proofs say of a claim.

        ```python
        >>> import tutelage as tt
        >>> [each.standing.value for each in tt.papers.relu_teachers.settled("HESS:printed")]
        ['refuted']

        ```
        """
        folder = self.shipped
        return () if folder is None else tuple(found for each in self.proofs for found in each.settled(folder, claim))

    def check(
        self,
        settings: Settings | None = None,
        *,
        size: Size = "quick",
        seeds: int = 10,
        only: tuple[str, ...] = (),
        progress: Told | None = None,
    ) -> Table:
        """Check the claims (all, or those named in `only`) and return the table.

        A claim in several situations has an id for each, such as "P1-ANGLE:k=1"; "P1-ANGLE" names them all.
        """
        for id in only:
            if not any(_named(claim, id) for claim in self.claims):
                raise unknown(f"claim of {self.name}", id, [claim.id for claim in self.claims])
        # Claims share runs.
        with some_store(), reporting(progress, f"checking {self.name}") as heard:
            return Table(tuple(self.checked(settings, size=size, seeds=seeds, only=only, progress=heard)))

    def checked(
        self,
        settings: Settings | None = None,
        *,
        size: Size = "quick",
        seeds: int = 10,
        only: tuple[str, ...] = (),
        progress: Told | None = None,
    ) -> Iterator[Checked]:
        """The claims one by one, as they are checked; they share runs if a store is in use."""
        wanted = [claim for claim in self.claims if not only or any(_named(claim, id) for id in only)]
        found = (settings or self.settings(), size, len(seed_list(seeds)))
        evidence = self.evidence(*found) if self.evidence else Evidence(self, *found)
        for number, claim in enumerate(wanted):
            if progress:
                progress(claim.id, number, len(wanted))
            start = time.perf_counter()
            finding = claim.check(evidence)
            yield Checked(claim, finding, time.perf_counter() - start, self.settled(claim.id))


class _Named(Protocol):
    @property
    def id(self) -> str: ...


Item = TypeVar("Item", bound=_Named)


def _with_id(id: str, what: str, items: Sequence[Item]) -> Item:
    found = {item.id: item for item in items}
    if id not in found:
        raise unknown(what, id, found)
    return found[id]


def first_seeds(seeds: Sequence[int]) -> int:
    """How many seeds these are, which must be the first ones: claims are judged on seeds 0, 1, and so on."""
    if list(seeds) != list(range(len(seeds))):
        raise BadInput(
            f"Claims are judged on the seeds from 0 up, but these are {shown(list(seeds))}; ask for a number of seeds."
        )
    return len(seeds)


def _named(claim: "_Named", id: str) -> bool:
    return id in (claim.id, claim.id.partition(":")[0])


@dataclass(frozen=True)
class Experiment:
    """A study with its settings: run it by descent, flow or online SGD, or check its claims.

    ```python
    >>> import tutelage as tt
    >>> run = tt.papers.both_layers(dim=10**9).descend(seeds=4)
    >>> bool((run.last("loss") < 1e-20).all())
    True

    ```
    """

    study: Study
    settings: Settings

    def __repr__(self) -> str:
        """As it was asked for, with the settings that are not the study's own."""
        changed = self.settings.model_dump(exclude_defaults=True)
        return f"{self.study.name}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    @property
    def problem(self) -> AbstractProblem:
        """What is to be learned: a problem like any other, for `tutelage.run`, `flow`, `descend` and `sgd`."""
        return self.study.recipe.problem(self.settings)

    def run(self, **options: Unpack[AnyDynamics]) -> Run:
        """Run it; options are those of `Recipe.run`, such as `dynamics`, `seeds`, `record`, `certify`, `store`."""
        return self.study.run(self.settings, **options)

    def descend(self, **options: Unpack[Options]) -> Run:
        """Gradient descent."""
        return self.run(dynamics="descent", **options)

    def flow(self, **options: Unpack[Options]) -> Run:
        """Gradient flow."""
        return self.run(dynamics="flow", **options)

    def sgd(self, **options: Unpack[Options]) -> Run:
        """Online SGD, for a study that knows it."""
        return self.run(dynamics="sgd", **options)

    def check(
        self,
        *,
        size: Size = "quick",
        seeds: int = 10,
        only: tuple[str, ...] = (),
        progress: Told | None = None,
    ) -> Table:
        """The study's claims at these settings: see `Study.check`."""
        return self.study.check(self.settings, size=size, seeds=seeds, only=only, progress=progress)


def sentence(owner: str, model: type[pydantic.BaseModel], error: pydantic.ValidationError) -> str:
    """The first validation error as one sentence: what came, what was expected, what to try."""
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    came = f"got {shown(first['input'])}" if name else ""
    about = model.model_fields[name].description if name in model.model_fields else ""
    message = first["msg"].removeprefix("Value error, ")
    place = f"{owner}: setting {name!r}" if name else f"{owner}: settings"
    hint = f" {name} is {about}" if about else ""
    text = f"{place} {came}: {message[0].lower()}{message[1:].rstrip('.')}.{hint}".replace(" :", ":")
    return text if text.endswith(".") else f"{text}."
