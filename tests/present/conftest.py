"""A tiny paper, so that presentation is tested without running anything long."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import numpy as np
import pydantic
import pytest
import xarray as xr

from tutelage import papers
from tutelage._errors import unknown
from tutelage.analysis.certificates import Certificate, Check
from tutelage.analysis.claims import Claim, Finding, Verdict, at_most, probability_is
from tutelage.analysis.panels import Panel, Sheet, line
from tutelage.papers.paper import Figure, Paper, Settings
from tutelage.present import costs
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


CERTIFICATE = Certificate((Check("loss", "long <arithmetic>", 0.25, 0.25, 3e-17, 1e-15),), ("A note.",))


class TinyRun:
    def __init__(self, settings, seeds, dynamics, certify):
        self.settings, self.dynamics = settings, dynamics
        self.dataset = trajectory(seeds if isinstance(seeds, int) else len(seeds))
        self.certificate = CERTIFICATE if certify else None
        self.seconds = 0.25
        if certify:
            self.dataset.attrs["certificate"] = json.dumps(self.certificate.records())

    def summary(self):
        about = {"dim": self.settings.dim, "dynamics": self.dynamics, "stopped": {"converged": 3}, "worst": np.nan,
                 "loss": {"median": 1e-30}, "seconds": self.seconds}  # fmt: skip
        return about | ({"certificate": self.certificate.records()} if self.certificate else {})

    def save(self, path):
        save(self.dataset, path)


def run(settings, *, seeds=8, dynamics="descent", certify=False, progress=None, checkpoint=None):
    if progress:
        progress("descent", 1, 1)
    return TinyRun(settings, seeds, dynamics, certify)


def figure_data(settings, size):
    time = [1.0, 2.0, 3.0]
    return xr.Dataset({"loss": ("time", [1.0, 0.5, 0.1])}, coords={"time": time}, attrs={"dim": settings.dim})


def figure_sheet(dataset):
    curve = line(dataset.time.values, dataset.loss.values, "loss")
    return Sheet("Decay", (Panel("Loss", "time", "loss", (curve,), yscale="log"),), caption="It decays & <decays>.")


def refused(evidence):
    return Finding(Verdict.FAILS, 4041.0, 55.0, "<=", detail="The paper's time is far too long.")


CLAIMS = (
    Claim("T01", "Lemma 1", "loss <= 1 & falls", "k = 2", lambda e: at_most(e.loss, 1.0, seeds=e.seeds)),
    Claim("T02", "Lemma 2", "success with `p = 1/2`", "small start", lambda e: probability_is(50, 100, 0.5), ours=True),
    Claim("T03", "Lemma 6", "soon", "", refused, must_hold=False, expected=Verdict.FAILS, explanation="Vacuous."),
    Claim("T04", "Thm 2", "large n", "", lambda e: Finding(Verdict.NOT_APPLICABLE, detail="n is too small.")),
    Claim("T05", "Thm 3", "late", "", lambda e: Finding(Verdict.NOT_REACHED)),
)
FIGURES = (Figure("fig1", "Loss of the tiny paper", figure_data, figure_sheet),)


@pytest.fixture
def paper() -> Paper:
    return Paper(
        name="tiny",
        title="A tiny paper",
        authors="A. Author",
        reference="Journal of Small Results",
        summary="It shows <that> little is needed.",
        settings=TinySettings,
        run=run,
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
    """A function that makes the given papers the only ones there are; the tiny one at first."""

    def register(*known: Paper) -> None:
        by_name = {each.name: each for each in known}

        def get(name: str) -> Paper:
            if name not in by_name:
                raise unknown("paper", name, by_name)
            return by_name[name]

        monkeypatch.setattr(papers, "get", get, raising=False)
        monkeypatch.setattr(papers, "names", lambda: tuple(by_name), raising=False)

    register(paper)
    return register


@pytest.fixture
def saved_run(tmp_path) -> Path:
    save(trajectory(), tmp_path / "run.nc")
    return tmp_path / "run.nc"
