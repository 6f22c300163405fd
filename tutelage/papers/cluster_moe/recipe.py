"""From settings to a run of all four phases."""

import dataclasses
import warnings
from typing import Any

from tutelage import BadInput
from tutelage.dynamics import Record
from tutelage.papers.cluster_moe import plan, result
from tutelage.papers.cluster_moe.certificate import certify
from tutelage.papers.cluster_moe.expected import run_expected
from tutelage.papers.cluster_moe.presets import unstated
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.papers.recipe import Move, Recipe
from tutelage.trajectory import Certificate, Run, seed_list

RECORDS = 48
LARGEST = 5_000
"""The largest dim for SGD, whose samples have all their entries."""


def phases_of(settings: ClusterMoeSettings, dynamics: str, record: Record) -> Move:
    """Exploration, router, experts and second layer, and the vanilla network beside them."""
    if settings.dim > LARGEST:
        raise BadInput(
            f"cluster_moe: SGD draws whole samples, for dim up to {LARGEST}; dim is {settings.dim}: use flow."
        )
    for sentence in unstated(settings):
        warnings.warn(sentence, stacklevel=2)
    return plan.plan(settings, record.at if isinstance(record.at, int) else RECORDS)


def complete(run: Run, settings: ClusterMoeSettings) -> Run:
    """The run with the Dataset of all phases, and a few numbers."""
    arrays, seeds = plan.found(run, settings), [int(seed) for seed in run.dataset["seed"].values]
    data = result.dataset(settings, seeds, arrays)
    about = {
        name: run.dataset.attrs[name] for name in ("paper", "paper_settings", "phases") if name in run.dataset.attrs
    }
    return dataclasses.replace(run, dataset=data.assign_attrs(about), facts=result.numbers(data))


def certified(run: Run, settings: ClusterMoeSettings) -> Certificate:
    """Some of its samples again by plain loops."""
    seeds = [int(seed) for seed in run.dataset["seed"].values]
    return certify(settings, seeds, plan.found(run, settings))


class ClusterRecipe(Recipe):
    """By SGD, a run of stages; the expectations of `flow` are computed at once, at any dim."""

    def run(self, settings: Any = None, *, dynamics: str | None = None, record: Any = None, **options: Any) -> Run:
        if self.known(dynamics) != "flow":
            return super().run(settings, dynamics=dynamics, record=record, **options)
        chosen: Any = settings or self.settings()
        done = run_expected(
            chosen, list(seed_list(options.get("seeds", 1))), record if isinstance(record, int) else RECORDS
        )
        about = {"paper": self.name, "paper_settings": chosen.model_dump_json()}
        return dataclasses.replace(done, dataset=done.dataset.assign_attrs(about))


RECIPE = ClusterRecipe(
    "cluster_moe",
    ClusterMoeSettings,
    lambda settings: settings.problem(),
    phases_of,
    ("sgd", "flow"),
    phases=lambda run, settings: result.phases(settings),
    complete=complete,
    certify=certified,
)
run = RECIPE.run
