"""A tiny paper, whose runs are real and take milliseconds: presentation is tested without anything long."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import numpy as np
import pydantic
import pytest
import xarray as xr

import tutelage as tt
from tutelage.analysis.claims import Claim, Finding, Kind, Verdict, at_most, probability_is
from tutelage.analysis.panels import Panel, Sheet, line
from tutelage.present import costs
from tutelage.store import fetching
from tutelage.study import Figure, Recipe, Settings, Study, announced, registry
from tutelage.trajectory.dataset import save


class TinySettings(Settings):
    dim: int = pydantic.Field(100, ge=1, le=10**12, description="d, the input dimension")
    step: float = pydantic.Field(0.1, gt=0, description="mu, the step size")
    start: Literal["chi", "xavier"] = pydantic.Field("chi", description="law of the initial weights")


def trajectory(seeds: int = 3) -> xr.Dataset:
    time = np.concatenate([[0.0], np.geomspace(0.1, 100, 40)])
    decay = np.exp(-time * np.linspace(0.5, 1.0, seeds)[:, None])
    dataset = xr.Dataset(coords={"seed": np.arange(seeds), "time": time, "step": ("time", time / 0.1)})
    dataset["loss"] = (("seed", "time"), 0.5 * decay**2, {"long_name": "loss, with the factor 1/2", "units": "1"})
    dataset["first_norm"] = (("seed", "time", "student"), np.stack([1 - decay, 1 + decay], -1))
    dataset["stopped"] = ("seed", ["converged"] * (seeds - 1) + ["horizon"])
    dataset.attrs = {"settings": json.dumps({"dim": 100}), "tutelage_version": "0.1.0"}
    return dataset


UPDATES = 40
SCALES = {"chi": 1e-3, "xavier": 1e-1}


def problem(settings: TinySettings) -> tt.Problem:
    """One linear unit that learns another."""
    first = tt.GaussianRows(SCALES[settings.start])
    return tt.Problem(
        inputs=tt.Gaussian(settings.dim),
        teacher=tt.TwoLayer("linear", first=[[1.0]]),
        student=tt.TwoLayer("linear", first=first, width=1, trains=("first",)),
    )


def plan(settings: TinySettings, dynamics: str, record: tt.Record):
    if dynamics == "flow":
        return tt.Flow(until=settings.step * UPDATES)
    if dynamics == "sgd":
        return tt.Sgd(UPDATES, 1, settings.step)
    return tt.Descent(settings.step, UPDATES)


def record(settings: TinySettings, dynamics: str) -> tt.Record:
    return tt.Record(UPDATES if dynamics == "flow" else "all")


def complete(run: tt.Run, settings: TinySettings) -> tt.Run:
    """Facts for the summary; one of them is no number."""
    return run.with_findings(facts={"dim": settings.dim, "dynamics": run.asked.about["dynamics"], "worst": np.nan})


RECIPE = Recipe("tiny", TinySettings, problem, plan, record=record, complete=complete)


def figure_data(settings, size):
    time = [1.0, 2.0, 3.0]
    return xr.Dataset({"loss": ("time", [1.0, 0.5, 0.1])}, coords={"time": time}, attrs={"dim": settings.dim})


def figure_sheet(dataset):
    curve = line(dataset.time.values, dataset.loss.values, "loss")
    return Sheet("Decay", (Panel("Loss", "time", "loss", (curve,), yscale="log"),), caption="It decays & <decays>.")


def refused(evidence):
    return Finding(Verdict.FAILS, 4041.0, 55.0, "<=", detail="The paper's time is far too long.")


def small(evidence):
    return at_most(evidence.loss, 1.0, seeds=evidence.seeds)


def half(evidence):
    return probability_is(50, 100, 0.5, within=0.2)


CLAIMS = (
    Claim("T01", "Lemma 1", "loss <= 1 & falls", "k = 2", small, must_hold=True),
    Claim(
        "T02",
        "Lemma 2",
        "success with `p = 1/2`",
        "small start",
        half,
        kind=Kind.OURS,
    ),
    Claim("T03", "Lemma 6", "soon", "", refused, must_hold=False, expected=Verdict.FAILS, explanation="Vacuous."),
    Claim("T04", "Thm 2", "large n", "", lambda e: Finding(Verdict.NOT_APPLICABLE, detail="n is too small.")),
    Claim("T05", "Thm 3", "late", "", lambda e: Finding(Verdict.NOT_REACHED)),
)
FIGURES = (Figure("fig1", "Loss of the tiny paper", figure_data, figure_sheet),)


@pytest.fixture
def paper() -> Study:
    return Study(
        name="tiny",
        title="A tiny paper",
        authors="A. Author",
        reference="Journal of Small Results",
        summary="It shows <that> little is needed.",
        recipe=RECIPE,
        evidence=lambda settings, size, seeds: SimpleNamespace(loss=np.full(seeds, 0.5), seeds=seeds),
        claims=CLAIMS,
        figures=FIGURES,
        presets={"large": {"dim": 10**6}},
    )


@pytest.fixture(autouse=True)
def cost_file(tmp_path_factory, monkeypatch) -> Path:
    """Where reproductions keep what their parts cost: not with those of the user."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(costs, "cache_folder", lambda part: str(folder / part))
    return folder / "costs/seconds.json"


@pytest.fixture
def registered(paper, monkeypatch):
    """A function that makes the given studies the only ones that are installed; the tiny one at first."""

    def register(*known: Study) -> None:
        found = {each.name: SimpleNamespace(name=each.name, value="", load=lambda each=each: each) for each in known}
        for module in (announced, registry):
            monkeypatch.setattr(module, "installed", lambda: found)
        registry._loaded.cache_clear()

    register(paper)
    yield register
    registry._loaded.cache_clear()


@pytest.fixture
def saved_run(tmp_path) -> Path:
    save(trajectory(), tmp_path / "run.nc")
    return tmp_path / "run.nc"


@pytest.fixture
def performed(monkeypatch) -> list[tuple[int, ...]]:
    """The seeds of every run that was computed, and not only read."""
    calls = []

    def perform(asked, real=fetching.perform, **options):
        calls.append(asked.seeds)
        return real(asked, **options)

    monkeypatch.setattr(fetching, "perform", perform)
    return calls
