"""One cell of a sweep: one run of some seeds, and the numbers asked of it. What a worker computes, anywhere."""

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tutelage._identity import digest
from tutelage._plain import plain
from tutelage.analysis.claims import Verdict
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.study.measuring import Measurement
from tutelage.study.recipe import Settings
from tutelage.study.registry import get
from tutelage.study.study import Study, first_seeds
from tutelage.trajectory.measures import Measured, needed

VERDICTS = {Verdict.HOLDS: 1.0, Verdict.FAILS: 0.0}


@dataclass(frozen=True)
class Cell:
    """A run of a sweep, and what to measure of it. `checkpoint`: a file for it, if the worker shares the disk.

    `study` is a name where a worker can find it, else the study itself, which is sent along. `run` is the name of the
    run, which a worker need not find out again.
    """

    study: Study | str
    settings: dict[str, Any]
    dynamics: str
    seeds: tuple[int, ...]
    measurements: tuple[Measurement, ...]
    run: str
    checkpoint: Path | None = None

    @cached_property
    def id(self) -> str:
        return digest({"kind": "cell", "run": self.run, "measures": sorted(each.key for each in self.measurements)})

    def plain(self) -> dict[str, Any]:
        """What was run, in words."""
        name = self.study if isinstance(self.study, str) else self.study.name
        return {"paper": name, "settings": self.settings, "dynamics": self.dynamics, "seeds": list(self.seeds)}


def compute(cell: Cell) -> dict[str, Any]:
    """Run a cell: for each measure its numbers, one per seed, as plain lists, and its law. None is nan, or no limit."""
    began = time.perf_counter()
    study = get(cell.study) if isinstance(cell.study, str) else cell.study
    settings = study.configure(cell.settings)
    found = _verdicts(study, settings, cell) | _numbers(study, settings, cell)
    return {"measures": found, "seconds": round(time.perf_counter() - began, 3)}


def _numbers(study: Study, settings: Settings, cell: Cell) -> dict[str, Any]:
    measures = [each.measure(study) for each in cell.measurements if not each.claim]
    if not measures:
        return {}
    run = study.run(
        settings,
        dynamics=cell.dynamics,
        seeds=list(cell.seeds),
        record=needed(measures),
        checkpoint=Checkpoint(cell.checkpoint) if cell.checkpoint else None,
    )
    laws = [measure.law(settings) if measure.law else None for measure in measures]
    return {measure.name: _plain(measure.measured(run), law) for measure, law in zip(measures, laws, strict=True)}


def _plain(measured: Measured, law: float | None = None) -> dict[str, Any]:
    return {"values": plain(measured.values), "limit": plain(measured.limit), "law": plain(law)}


def _verdicts(study: Study, settings: Settings, cell: Cell) -> dict[str, Any]:
    wanted = {each.claim: each.name for each in cell.measurements if each.claim}
    if not wanted:
        return {}
    seeds = first_seeds(cell.seeds)
    table = study.check(settings, seeds=seeds, only=tuple(wanted))
    rows = [row for row in table.rows if row.claim.id in wanted]  # "SM-T2" also names "SM-T2:edge"
    numbers = {wanted[row.claim.id]: VERDICTS.get(row.finding.verdict, np.nan) for row in rows}
    return {name: _plain(Measured(np.full(seeds, each), np.full(seeds, np.inf))) for name, each in numbers.items()}
