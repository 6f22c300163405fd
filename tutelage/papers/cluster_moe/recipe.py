"""From settings to a run of all four phases."""

import hashlib
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from tutelage._errors import BadInput
from tutelage._version import __version__
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.dynamics.driver import Progress
from tutelage.dynamics.record import recorded
from tutelage.papers.cluster_moe import result
from tutelage.papers.cluster_moe.certificate import certify as certified
from tutelage.papers.cluster_moe.expected import run_expected
from tutelage.papers.cluster_moe.pipeline import Pipeline
from tutelage.papers.cluster_moe.presets import unstated
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.papers.recipe import Recipe
from tutelage.trajectory.result import Run

RECORDS = 48
LARGEST = 5_000
"""The largest dim for SGD, whose samples have all their entries."""


def _run(
    settings: ClusterMoeSettings | None = None,
    *,
    seeds: Any = 1,
    dynamics: Literal["sgd", "flow"] = "sgd",
    certify: bool = False,
    progress: Progress | None = None,
    checkpoint: Checkpoint | str | Path | None = None,
    record: int = RECORDS,
) -> Run:
    """Run exploration, router, experts and second layer, and the vanilla network beside them.

    - `dynamics`: "sgd", sample by sample, or "flow", the exact population dynamics in overlaps, for any dim.
    - `record`: how many log-spaced records a stage has.
    - `checkpoint`: a file in which a long run is kept; the same run asked for again goes on from there.

    ```python
    >>> import tutelage as tt
    >>> small = dict(dim=8, experts=2, explore_samples=20_000, router_samples=5000, samples=20_000, late_samples=9000)
    >>> run = tt.papers.cluster_moe(**small, ridge_samples=2000, test_samples=2000, vanilla_width=8).sgd(seeds=1)
    >>> run.overlap.dims
    ('seed', 'expert_time', 'expert', 'unit', 'row')

    ```
    """
    settings = settings or ClusterMoeSettings()
    numbers = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not numbers:
        raise BadInput(f"seeds is {seeds!r}, but at least one seed is needed.")
    if dynamics == "flow":
        return run_expected(settings, numbers, record)
    if settings.dim > LARGEST:
        raise BadInput(
            f"cluster_moe: SGD draws whole samples, for dim up to {LARGEST}; dim is {settings.dim}: use flow."
        )
    for sentence in unstated(settings):
        warnings.warn(sentence, stacklevel=2)
    began = time.perf_counter()
    pipeline = Pipeline(settings, numbers, records=record, identity=identity_of(settings, numbers, record))
    kept = checkpoint if isinstance(checkpoint, Checkpoint) or checkpoint is None else Checkpoint(checkpoint)
    if kept:
        kept.resume(pipeline)
    pipeline.finish(progress, kept)
    if kept:
        kept.ended(pipeline)
    data = result.dataset(settings, numbers, pipeline.found)
    certificate = certified(settings, numbers, pipeline.found) if certify else None
    done = Run(data, time.perf_counter() - began, facts=result.numbers(data), certificate=certificate)
    return _labelled(done, settings).said(phases=result.phases(settings))


def identity_of(settings: ClusterMoeSettings, seeds: list[int], record: int = RECORDS) -> str:
    """What makes a run this one and no other, as a hash."""
    text = f"{__version__} {settings.model_dump_json()} {seeds} {record}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _labelled(done: Run, settings: ClusterMoeSettings) -> Run:
    about = {"paper": "cluster_moe", "paper_settings": settings.model_dump_json()}
    return replace(done, dataset=done.dataset.assign_attrs(about))


class ClusterRecipe(Recipe):
    """Its four phases are not yet stages of the common loop."""

    def run(self, settings: Any = None, *, dynamics: str | None = None, record: Any = None, **options: Any) -> Run:
        known = {"seeds", "certify", "progress", "checkpoint"}
        kept = {name: value for name, value in options.items() if name in known}
        at = recorded(record).at
        return _run(settings, dynamics=self.known(dynamics), record=at if isinstance(at, int) else RECORDS, **kept)


RECIPE = ClusterRecipe("cluster_moe", ClusterMoeSettings, lambda s: s.problem(), None, ("sgd", "flow"))
run = RECIPE.run
