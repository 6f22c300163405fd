"""What a paper is to the laboratory: settings, a recipe, figures and claims. A sixth paper is one more of these."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import pydantic
import xarray as xr

from tutelage._errors import BadInput, unknown
from tutelage.analysis.claims import Checked, Claim, Table
from tutelage.analysis.panels import Sheet
from tutelage.trajectory.measures import Measure, named
from tutelage.trajectory.result import Run
from tutelage.trajectory.staged import StagedRun

Size = Literal["quick", "full"]


class Settings(pydantic.BaseModel):
    """Base of every paper's settings: unknown names are refused, values are frozen."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Figure:
    """A figure of a paper: `compute(settings, size)` gives the Dataset, `sheet(dataset)` the panels to draw."""

    id: str
    title: str
    compute: Callable[[Any, Size], xr.Dataset]
    sheet: Callable[[xr.Dataset], Sheet]
    ours: bool = False


@dataclass(frozen=True)
class Diagram:
    """A phase diagram: one measure over two settings, many seeds a cell, beside its law where there is one.

    `over` has the values of the two settings by size; `settings` what else differs from the paper's defaults.
    """

    id: str
    title: str
    measure: str
    over: dict[Size, dict[str, tuple[Any, ...]]]
    seeds: dict[Size, int]
    settings: dict[str, Any] = field(default_factory=dict)
    dynamics: str | None = None


@dataclass(frozen=True)
class Paper:
    """A paper in the laboratory.

    - `run(settings, dynamics=..., seeds=..., certify=..., progress=...)` runs its experiment and returns a `Run`.
    - `dynamics`: the ways to move that `run` knows; the first is the one it takes if none is asked for.
    - `evidence(settings, size, seeds)` makes the object that every claim's `check` reads (lazily, so that one claim
      costs only what it needs).
    - `measures`: numbers of its runs that a sweep may ask for by name, with their laws; `diagrams`: phase diagrams.
    - `aliases`: other names of settings, such as those of the paper.
    """

    name: str
    title: str
    authors: str
    reference: str
    summary: str
    settings: type[Settings]
    run: Callable[..., Any]
    evidence: Callable[[Any, Size, int], Any]
    claims: tuple[Claim, ...] = ()
    figures: tuple[Figure, ...] = ()
    presets: dict[str, dict[str, Any]] = field(default_factory=dict)
    dynamics: tuple[str, ...] = ("descent", "flow")
    measures: tuple[Measure, ...] = ()
    diagrams: tuple[Diagram, ...] = ()
    aliases: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Paper({self.name!r})"

    def __call__(self, **values: Any) -> "Experiment":
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
        for figure in self.figures:
            if figure.id == id:
                return figure
        raise unknown(f"figure of {self.name}", id, [figure.id for figure in self.figures])

    def measure(self, name: str) -> Measure:
        """The measure with this name: the paper's own, or one that any run has (see `trajectory.measures.named`)."""
        return named(name, self.measures)

    def diagram(self, id: str) -> Diagram:
        """The phase diagram with this id, or an error naming the nearest."""
        for diagram in self.diagrams:
            if diagram.id == id:
                return diagram
        raise unknown(f"phase diagram of {self.name}", id, [diagram.id for diagram in self.diagrams])

    def launch(self, settings: Settings, dynamics: str | None = None, **options: Any) -> Any:
        """Run the experiment by one of the paper's dynamics (its own if None); another is refused."""
        chosen = self.dynamics[0] if dynamics is None else dynamics
        if chosen not in self.dynamics:
            known = " and ".join(filter(None, (", ".join(self.dynamics[:-1]), self.dynamics[-1])))
            raise BadInput(f"{self.name} knows the dynamics {known}, but {chosen!r} was asked for; choose one of them.")
        return self.run(settings, dynamics=chosen, **options)

    def check(
        self,
        settings: Settings | None = None,
        *,
        size: Size = "quick",
        seeds: int = 10,
        only: tuple[str, ...] = (),
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Table:
        """Check the claims (all, or those named in `only`) and return the table.

        A claim in several situations has an id for each, such as "P1-ANGLE:k=1"; "P1-ANGLE" names them all.
        """
        for id in only:
            if not any(_named(claim, id) for claim in self.claims):
                raise unknown(f"claim of {self.name}", id, [claim.id for claim in self.claims])
        wanted = [claim for claim in self.claims if not only or any(_named(claim, id) for id in only)]
        return Table(tuple(self._checked(wanted, settings or self.settings(), size, seeds, progress)))

    def _checked(self, wanted, settings, size, seeds, progress) -> Iterator[Checked]:
        evidence = self.evidence(settings, size, seeds)
        for number, claim in enumerate(wanted):
            if progress:
                progress(claim.id, number, len(wanted))
            start = time.perf_counter()
            finding = claim.check(evidence)
            yield Checked(claim, finding, time.perf_counter() - start)


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

    def descend(self, **options: Any) -> Any:
        """Gradient descent; options are those of `tutelage.descend`, such as `seeds`, `record`, `certify`."""
        return self._run("descent", options)

    def flow(self, **options: Any) -> Any:
        """Gradient flow; options are those of `tutelage.flow`."""
        return self._run("flow", options)

    def sgd(self, **options: Any) -> Any:
        """Online SGD, for a paper that knows it; options are those of `tutelage.sgd`."""
        return self._run("sgd", options)

    def check(self, **options: Any) -> Table:
        """The paper's claims at these settings; options are those of `Paper.check`."""
        return self.paper.check(self.settings, **options)

    def _run(self, dynamics: str, options: dict[str, Any]) -> Any:
        result = self.paper.launch(self.settings, dynamics, **options)
        return replace(result, check=self.check)


Result = TypeVar("Result", Run, StagedRun)


def with_phases(result: Result, paper: str, settings: Settings, phases: list[dict[str, Any]]) -> Result:
    """The run with its phases, and with paper, settings, phases and certificate in the attributes of its Dataset."""
    about = {"paper": paper, "paper_settings": settings.model_dump_json(), "phases": json.dumps(phases)}
    if result.certificate is not None:
        about["certificate"] = json.dumps(result.certificate.records())
    return replace(result, dataset=result.dataset.assign_attrs(about), phases=phases)


def sentence(owner: str, model: type[pydantic.BaseModel], error: pydantic.ValidationError) -> str:
    """The first validation error as one sentence: what came, what was expected, what to try."""
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    came = f"got {first['input']!r}" if name else ""
    about = model.model_fields[name].description if name in model.model_fields else ""
    message = first["msg"].removeprefix("Value error, ")
    place = f"{owner}: setting {name!r}" if name else f"{owner}: settings"
    hint = f" {name} is {about}" if about else ""
    text = f"{place} {came}: {message[0].lower()}{message[1:].rstrip('.')}.{hint}".replace(" :", ":")
    return text if text.endswith(".") else f"{text}."
