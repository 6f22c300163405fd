"""A paper while its figures and claims are made: each part by itself, and what is there so far at any time."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from tutelage._compiling import COMPILING
from tutelage._interrupt import Interrupted, stop_asked
from tutelage._plain import plain
from tutelage.analysis.claims import Checked, Table
from tutelage.present import figures
from tutelage.present.checks import guarded
from tutelage.present.costs import Costs
from tutelage.present.overview import overview
from tutelage.present.progress import Reporter
from tutelage.present.reproduction import Crash, DrawnFigure, PaperResult
from tutelage.present.versions import versions
from tutelage.study.parts import Figure, Size
from tutelage.study.study import Study
from tutelage.trajectory.dataset import save
from tutelage.trajectory.findings import Certificate

AT_ONCE = 2
"""Parts that are made at a time: compilation, most of a quick reproduction, uses one core only."""

_DRAWING = threading.Lock()  # the settings of matplotlib are global


class Steps:
    """The parts of all papers: tells `progress` of each before it begins, and how long the rest may take by what
    parts cost last time. Where a stop was asked for, none begins."""

    def __init__(self, costs: Costs, size: Size, progress: Reporter | None) -> None:
        self.costs, self.size, self.progress = costs, size, progress
        self.total = self.begun = 0
        self._left: dict[tuple[str, str], float | None] = {}
        self._lock = threading.Lock()

    def plan(self, paper: str, names: Sequence[str]) -> None:
        """Parts that are to be made."""
        self._left |= {(paper, name): self.costs.of(paper, name, self.size) for name in names}
        self.total = len(self._left)

    def start(self, paper: str, name: str, label: str) -> None:
        if stop_asked():
            raise Interrupted(f"stopped before {label}")
        with self._lock:
            if expect := getattr(self.progress, "expect", None):
                expect(part=self.costs.of(paper, name, self.size), whole=self._whole())
            if self.progress:
                self.progress(f"{paper}: {label}", self.begun, self.total)
            self.begun += 1

    def end(self, paper: str, name: str, seconds: float | None) -> None:
        """What the part took, for the next time; None if it crashed."""
        with self._lock:
            del self._left[paper, name]
        if seconds is not None:
            self.costs.note(seconds, paper, name, self.size)

    def _whole(self) -> float | None:
        known = [seconds for seconds in self._left.values() if seconds is not None]
        return max(max(known), sum(known) / AT_ONCE) if 0 < len(known) == len(self._left) else None


class Making:
    """What there is of a paper so far, and what makes the rest. `changed` is called after every part."""

    def __init__(
        self,
        paper: Study,
        chosen: tuple[Figure, ...] | None,
        size: Size,
        folder: Path,
        seeds: int,
        certify: bool,
        steps: Steps,
        changed: Callable[[], None],
    ) -> None:
        self.paper, self.size, self.seeds, self.steps, self.changed = paper, size, seeds, steps, changed
        self.place, self.settings = folder / paper.name, paper.configure()
        self.figures = _telling_first(paper) if chosen is None else chosen
        self.claims = tuple(paper.claims) if chosen is None else ()
        self.certify, self.seconds = certify, 0.0
        self.certificate: Certificate | None = None
        self._drawn: dict[str, DrawnFigure] = {}
        self._rows: list[Checked] = []
        self._crashes: list[Crash] = []
        self._coming = [f"figure {figure.id}" for figure in self.figures]
        self._coming += [f"claim {claim.id}" for claim in self.claims] + ["certificate"] * certify
        steps.plan(paper.name, [self._known_as(what) for what in self._coming])

    def parts(self) -> list[Callable[[], None]]:
        """What can be made side by side: the most telling figure first, then the claims, which share their evidence and
        come one after another, then the other figures."""
        drawing: list[Callable[[], None]] = [partial(self._draw, figure) for figure in self.figures]
        checking = [self._check] if self.claims else []
        return [*drawing[:1], *checking, *drawing[1:], *([self._certify] if self.certify else [])]

    def result(self) -> PaperResult:
        """What there is now."""
        drawn, rows, coming = dict(self._drawn), tuple(self._rows), tuple(self._coming)
        shown = tuple(drawn[figure.id] for figure in self.figures if figure.id in drawn)
        crashes = sorted(self._crashes, key=lambda crash: not crash.what.startswith("figure"))
        return PaperResult(
            self.paper, self.settings, Table(rows), shown, self.certificate, self.seconds, self.size, self.seeds,
            tuple(crashes), coming,
        )  # fmt: skip

    # ---- parts

    def _draw(self, figure: Figure) -> None:
        def draw() -> None:
            began = time.perf_counter()
            data = _labelled(figure.compute(self.settings, self.size), self, figure)
            netcdf, png = self.place / f"{figure.id}.nc", self.place / f"{figure.id}.png"
            with _DRAWING:
                self.place.mkdir(exist_ok=True)
                save(data, netcdf)
                sheet = figure.sheet(data)
                figures.save(sheet, png)
            self._drawn[figure.id] = DrawnFigure(figure, sheet, png, netcdf, time.perf_counter() - began)

        self._attempt(f"figure {figure.id}", draw)

    def _certify(self) -> None:
        def certify() -> None:
            self.certificate = self.paper.run(self.settings, certify=True).certificate

        self._attempt("certificate", certify)

    def _attempt(self, what: str, work: Callable[[], None]) -> None:
        """Do the work, or note its crash."""
        self._start(what)
        began, compiled = time.perf_counter(), COMPILING.here
        try:
            work()
        except Exception as error:
            self._crashes.append(Crash.of(what, error))
            self._end(what, None)
        else:
            self._end(what, time.perf_counter() - began, COMPILING.here - compiled)

    def _check(self) -> None:
        compiled = COMPILING.here

        def begins(id: str, done: int, total: int) -> None:
            nonlocal compiled
            self._start(f"claim {id}")
            compiled = COMPILING.here

        try:
            safe = guarded(self.paper, self._crashes)
            for row in safe.checked(self.settings, size=self.size, seeds=self.seeds, progress=begins):
                what = f"claim {row.claim.id}"
                crashed = any(crash.what == what for crash in self._crashes)
                self._rows.append(row)
                self._end(what, None if crashed else row.seconds, COMPILING.here - compiled)
        except Exception as error:
            self._crashes.append(Crash.of("claims", error))
            for what in [what for what in self._coming if what.startswith("claim ")]:
                self._end(what, None)

    def _start(self, what: str) -> None:
        self.steps.start(self.paper.name, self._known_as(what), what)

    def _end(self, what: str, seconds: float | None, compiled: float = 0.0) -> None:
        """It took so long, of which compilation is no cost; or it crashed."""
        self._coming.remove(what)
        self.seconds += seconds or 0.0
        self.steps.end(self.paper.name, self._known_as(what), None if seconds is None else seconds - compiled)
        self.changed()

    def _known_as(self, what: str) -> str:
        """The name under which the cost of a part is kept."""
        return f"{what} of {self.seeds} seeds" if what.startswith("claim ") else what


def _telling_first(paper: Study) -> tuple[Figure, ...]:
    if not paper.figures:
        return (overview_of(paper),)
    return tuple(sorted(paper.figures, key=lambda figure: figure.id != paper.telling))


def overview_of(study: Study) -> Figure:
    """The picture of any run, for a study without figures."""
    title = f"A run of {study.name}"
    return Figure("overview", title, partial(_run, study), partial(overview, title=title))


def _run(study: Study, settings: Any, size: Size) -> xr.Dataset:
    return study.run(settings, seeds=32 if size == "full" else 8).dataset


def _labelled(data: xr.Dataset | xr.DataTree, made: Making, figure: Figure) -> xr.Dataset | xr.DataTree:
    """The data with attributes that say which figure of which paper it is; its own attributes win."""
    about = {
        "title": figure.title,
        "paper": made.paper.name,
        "figure": figure.id,
        "size": made.size,
        "tutelage_version": versions()["tutelage"],
        "settings": json.dumps(plain(made.settings), sort_keys=True),
    }
    labelled = data.copy()
    labelled.attrs = about | data.attrs
    return labelled
