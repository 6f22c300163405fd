"""From settings to a run of all four phases."""

import dataclasses
import warnings
from collections.abc import Iterable

from tutelage import BadInput
from tutelage.dynamics import Record
from tutelage.papers.cluster_moe import plan, result
from tutelage.papers.cluster_moe.presets import unstated
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.study import Move, Recipe
from tutelage.trajectory import Certificate, Phase, Run

RECORDS = 48
LARGEST = 5_000
"""The largest dim for SGD, whose samples have all their entries."""


def phases_of(settings: ClusterMoeSettings, dynamics: str, record: Record) -> Move:
    """Exploration, router, experts and second layer, and the vanilla network beside them; or all in expectation."""
    records = record.at if isinstance(record.at, int) else RECORDS
    if dynamics == "flow":
        from tutelage.papers.cluster_moe import expected  # a solver that SGD does without

        return expected.plan(settings, records)
    if settings.dim > LARGEST:
        raise BadInput(
            f"cluster_moe: SGD draws whole samples, for dim up to {LARGEST}; dim is {settings.dim}: use flow."
        )
    for sentence in unstated(settings):
        warnings.warn(sentence, stacklevel=2)
    return plan.plan(settings, records)


def complete(run: Run, settings: ClusterMoeSettings) -> Run:
    """The run with the Dataset of all phases, and a few numbers."""
    if sampled(run):
        data = result.dataset(run, settings)
        facts = result.numbers(data)
    else:
        from tutelage.papers.cluster_moe import expected

        data = expected.dataset(run, settings)
        facts = expected.numbers(data)
    kept = ("paper", "paper_settings", "phases", "asked", "settings_hash")
    about = {name: run.dataset.attrs[name] for name in kept if name in run.dataset.attrs}
    return dataclasses.replace(run, dataset=data.assign_attrs(about), facts=facts)


def certified(run: Run, settings: ClusterMoeSettings) -> Certificate:
    """Some of its samples again by plain loops."""
    from tutelage.papers.cluster_moe.certificate import certify

    if not sampled(run):
        raise BadInput("cluster_moe: a run in expectation has no samples to certify; ask for sgd, or do not certify.")
    return certify(settings, result.dataset(run, settings))


def sampled(run: Run) -> bool:
    """Whether it was by SGD: a second layer is fitted to samples."""
    return "readout" in run.stages


def phases(run: Run, settings: ClusterMoeSettings) -> Iterable[Phase]:
    """Those of a run by SGD, in samples; in expectation every stage has a clock of its own."""
    return result.phases(settings) if sampled(run) else ()


RECIPE = Recipe(
    "cluster_moe",
    ClusterMoeSettings,
    lambda settings: settings.problem(),
    phases_of,
    ("sgd", "flow"),
    phases=phases,
    complete=complete,
    certify=certified,
)
run = RECIPE.run
