"""What a paper is to the laboratory: settings, a recipe, figures and claims. A sixth paper is one more of these."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from typing import Any, Literal, TypeVar, Unpack, overload

import pydantic
import xarray as xr

from tutelage._errors import BadInput, shown, unknown
from tutelage._identity import identity
from tutelage._revisions import REVISIONS
from tutelage._version import __version__
from tutelage.analysis.claims import Checked, Claim, Table
from tutelage.analysis.panels import Sheet
from tutelage.papers.recipe import AnyDynamics, Options
from tutelage.papers.recipe import Recipe as Recipe
from tutelage.papers.recipe import Settings as Settings
from tutelage.problem.problem import AbstractProblem
from tutelage.store.store import some_store
from tutelage.trajectory.asked import seed_list
from tutelage.trajectory.measures import Measure, named
from tutelage.trajectory.result import Run

Size = Literal["quick", "full"]
Told = Callable[[str, int, int], None]
"""Is told what is being done, how much is done, and how much there is."""


@dataclass(frozen=True)
class Figure:
    """A figure of a paper: `compute(settings, size)` gives its data, `sheet(data)` the panels to draw.

    The data are a Dataset, or a DataTree where several runs are shown, each a group of its own.
    """

    id: str
    title: str
    compute: Callable[[Any, Size], xr.Dataset | xr.DataTree]
    sheet: Callable[[Any], Sheet]
    ours: bool = False


@dataclass(frozen=True)
class Diagram:
    """A phase diagram: one measure over two settings, many seeds per cell, beside its law where there is one.

    `over` has the values of the two settings by size; `settings` what else differs from the paper's defaults.
    """

    id: str
    title: str
    measure: str
    over: dict[Size, dict[str, tuple[object, ...]]]
    seeds: dict[Size, int]
    settings: dict[str, Any] = field(default_factory=dict)
    dynamics: str | None = None


Item = TypeVar("Item")


class Deferred(Sequence[Item]):
    """A tuple of another module, which is imported when the tuple is first looked at: a run needs no figures.

    ```python
    >>> from tutelage.papers.paper import Deferred
    >>> len(Deferred("tutelage.papers.both_layers.sweeps", "DIAGRAMS"))
    1

    ```
    """

    def __init__(self, module: str, name: str):
        self.module, self.name = module, name

    @cached_property
    def _items(self) -> tuple[Item, ...]:
        return getattr(import_module(self.module), self.name)

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"{self.module}.{self.name}"


def deferred(module: str, name: str) -> Callable[..., Any]:
    """A function of another module, which is imported when the function is first called."""
    return partial(_call, module, name)


def _call(module: str, name: str, *args: Any, **options: Any) -> Any:
    return getattr(import_module(module), name)(*args, **options)


def _undeferred(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, which is imported if need be."""
    if not (isinstance(function, partial) and function.func is _call):
        return function
    module, name = function.args
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def contents(package: str) -> dict[str, Any]:
    """Evidence, claims, figures, measures and diagrams of a paper's folder, imported when first used."""
    return {
        "evidence": deferred(f"{package}.evidence", "Evidence"),
        "claims": Deferred(f"{package}.claims", "CLAIMS"),
        "figures": Deferred(f"{package}.figures", "FIGURES"),
        "measures": Deferred(f"{package}.sweeps", "MEASURES"),
        "diagrams": Deferred(f"{package}.sweeps", "DIAGRAMS"),
    }


@dataclass(frozen=True)
class Paper:
    """A paper in the laboratory.

    - `recipe`: from settings to a run.
    - `evidence(settings, size, seeds)` makes the object that every claim's `check` reads (lazily, so that one claim
      costs only what it needs).
    - `measures`: numbers of its runs that a sweep may ask for by name, with their laws; `diagrams`: phase diagrams.
    - `presets`: settings by name. `short` is what a command runs when nothing is set: the main effect in seconds.
      `own` names the preset with the paper's own sizes, and `takes` says of presets how many seconds a run of eight
      seeds takes on two cores, about.
    - `aliases`: other names of settings, such as those of the paper.
    - `telling`: the figure that says most, by its id: it is made and shown before the others. The first if not given.

    Claims, figures, measures and diagrams may be `Deferred`, evidence `deferred`, so that a run imports none of them.
    """

    name: str
    title: str
    authors: str
    reference: str
    summary: str
    recipe: Recipe
    evidence: Callable[[Any, Size, int], object]
    claims: Sequence[Claim] = ()
    figures: Sequence[Figure] = ()
    presets: dict[str, dict[str, Any]] = field(default_factory=dict)
    own: str | None = None
    takes: dict[str, float] = field(default_factory=dict)
    measures: Sequence[Measure] = ()
    diagrams: Sequence[Diagram] = ()
    aliases: dict[str, str] = field(default_factory=dict)
    telling: str | None = None

    def __repr__(self) -> str:
        return f"Paper({self.name!r})"

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

    def judged(self, run: Run) -> Run:
        """The run without claims that were kept beside it and that other code than the present has judged."""
        return run if run.claims is None or run.claims.code == self.code else replace(run, claims=None)

    @property
    def code(self) -> str:
        """The name of what judges its claims, so that a kept verdict is not taken for that of other code.

        Claims and evidence count by their source. The version is there for what they call of this package.
        """
        return identity(tuple(self.claims), _undeferred(self.evidence), REVISIONS.get(self.name, 1), __version__)

    def __call__(self, **values: object) -> "Experiment":
        """The paper's experiment with these settings: `tt.papers.both_layers(dim=10**6).flow(seeds=8)`."""
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
        with some_store():  # claims share runs
            return Table(tuple(self.checked(settings, size=size, seeds=seeds, only=only, progress=progress)))

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
        evidence = self.evidence(settings or self.settings(), size, len(seed_list(seeds)))
        for number, claim in enumerate(wanted):
            if progress:
                progress(claim.id, number, len(wanted))
            start = time.perf_counter()
            finding = claim.check(evidence)
            yield Checked(claim, finding, time.perf_counter() - start)


def _with_id(id: str, what: str, items: Sequence[Any]) -> Any:
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


def _named(claim: Claim, id: str) -> bool:
    return id in (claim.id, claim.id.partition(":")[0])


@dataclass(frozen=True)
class Experiment:
    """A paper with its settings: run it by descent, flow or online SGD, or check its claims.

    ```python
    >>> import tutelage as tt
    >>> run = tt.papers.both_layers(dim=10**9).descend(seeds=4)
    >>> bool((run.last("loss") < 1e-20).all())
    True

    ```
    """

    paper: Paper
    settings: Settings

    def __repr__(self) -> str:
        """As it was asked for, with the settings that are not the paper's own."""
        changed = self.settings.model_dump(exclude_defaults=True)
        return f"{self.paper.name}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    @property
    def problem(self) -> AbstractProblem:
        """What is to be learned: a problem like any other, for `tutelage.run`, `flow`, `descend` and `sgd`."""
        return self.paper.recipe.problem(self.settings)

    def run(self, **options: Unpack[AnyDynamics]) -> Run:
        """Run it; options are those of `Recipe.run`, such as `dynamics`, `seeds`, `record`, `certify`, `store`."""
        return self.paper.run(self.settings, **options)

    def descend(self, **options: Unpack[Options]) -> Run:
        """Gradient descent."""
        return self.run(dynamics="descent", **options)

    def flow(self, **options: Unpack[Options]) -> Run:
        """Gradient flow."""
        return self.run(dynamics="flow", **options)

    def sgd(self, **options: Unpack[Options]) -> Run:
        """Online SGD, for a paper that knows it."""
        return self.run(dynamics="sgd", **options)

    def check(
        self,
        *,
        size: Size = "quick",
        seeds: int = 10,
        only: tuple[str, ...] = (),
        progress: Told | None = None,
    ) -> Table:
        """The paper's claims at these settings: see `Paper.check`."""
        return self.paper.check(self.settings, size=size, seeds=seeds, only=only, progress=progress)


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
