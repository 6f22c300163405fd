"""Reproducing papers: every figure as data and picture, every claim checked, and one report of it all."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import xarray as xr

from tutelage import papers
from tutelage._checks import one_of, path, several, whole
from tutelage._compiling import COMPILING
from tutelage._errors import BadInput
from tutelage._files import check_folder, deliver
from tutelage._interrupt import Interrupted, stop_asked
from tutelage._plain import dumps, plain
from tutelage._progress import listening
from tutelage.analysis.claims import Table
from tutelage.papers.paper import Figure, Paper, Settings, Size
from tutelage.present import figures, report
from tutelage.present.checks import guarded
from tutelage.present.costs import Costs
from tutelage.present.progress import Reporter, Within, working
from tutelage.present.reproduction import Crash, DrawnFigure, PaperResult
from tutelage.present.versions import versions
from tutelage.store.store import Store
from tutelage.trajectory.asked import seed_list
from tutelage.trajectory.dataset import save

_DRAWING = threading.Lock()  # the settings of matplotlib are global


@dataclass(frozen=True)
class Reproduction:
    """Where the report is, and what it says."""

    report: Path
    results: tuple[PaperResult, ...]

    @property
    def ok(self) -> bool:
        """Nothing crashed, and no claim that must hold failed."""
        return all(result.ok for result in self.results)


def reproduce(
    targets: Sequence[str | Paper] = (),
    *,
    size: Size = "quick",
    out: str | Path = "report",
    seeds: int = 10,
    certify: bool = False,
    store: Store | str | Path | None = None,
    progress: Reporter | None = None,
) -> Reproduction:
    """Compute figures, check claims and write `out/report.html`, with PNG and NetCDF files beside it.

    - `targets`: papers by name, or a `Paper` of one's own; single figures as "paper/figure" (then without the claims);
      all papers of the laboratory if empty.
    - `size`: "quick" for minutes, "full" for the sizes of the papers.
    - `certify`: also recompute sampled numbers of the paper's default run by an independent route.
    - `store`: where runs are kept, `runs/` if None; a reproduction that was stopped goes on from what is there.

    A figure or claim that crashes is recorded in the report and does not stop the others.
    """
    expected = "a list of papers, or of names such as 'both_layers' or 'both_layers/fig3',"
    wanted = plan(several("targets", targets, (str, Paper), expected))
    one_of("size", size, ["quick", "full"])
    seeds = len(seed_list(whole("seeds", seeds, least=1)))
    folder, place = path("out", out), store if isinstance(store, Store) else Store(store)
    for each in (folder, place.root):
        check_folder(each)
    folder.mkdir(parents=True, exist_ok=True)
    COMPILING.listen()  # what is compiled is no part of what a part costs
    costs = Costs.of_this_machine()
    before = [costs.of(paper.name, _whole(chosen, seeds, certify), size) for paper, chosen in wanted]
    results = []
    with listening(Within(getattr(progress, "tell", None))), place.in_use():
        for number, (paper, chosen) in enumerate(wanted):
            steps, began = _Steps(paper, size, costs, before[number:], progress), working()
            results.append(_paper(paper, chosen, size, folder, seeds, certify, steps))
            if not results[-1].crashes:
                costs.note(working() - began, paper.name, _whole(chosen, seeds, certify), size)
    checked = {r.paper.name: r.table.records() for r in results if len(r.table)}
    about = dumps({"versions": versions(), "size": size, "seeds": seeds, "papers": checked}) + "\n"
    deliver(folder / "claims.json", lambda part: part.write_text(about, encoding="utf-8"))
    return Reproduction(report.write(results, folder / "report.html"), tuple(results))


def plan(targets: Sequence[str | Paper]) -> list[tuple[Paper, tuple[Figure, ...] | None]]:
    """Papers with the figures asked of each; None means the whole paper."""
    known: dict[str, Paper] = {}
    wanted: dict[str, list[Figure] | None] = {}
    for target in targets or papers.names():
        name, slash, figure = (target.name, "", "") if isinstance(target, Paper) else target.partition("/")
        paper = target if isinstance(target, Paper) else known.get(name) or papers.get(name)
        if known.setdefault(name, paper) is not paper:
            raise BadInput(f"Two papers of targets have the name {name!r}, and so the same files; rename one.")
        if not slash:
            wanted[name] = None
        elif wanted.get(name, []) is not None:
            wanted.setdefault(name, []).append(paper.figure(figure))  # type: ignore[union-attr]
    return [(known[name], None if chosen is None else tuple(chosen)) for name, chosen in wanted.items()]


def _whole(chosen: tuple[Figure, ...] | None, seeds: int, certify: bool) -> str:
    """A name for all that is done for a paper: what cost so much last time."""
    parts = f"all of {seeds} seeds" if chosen is None else "figures " + ", ".join(figure.id for figure in chosen)
    return f"{parts}, certified" if certify else parts


class _Steps:
    """The parts of a paper: tells `progress` of each before it begins; where a stop was asked for, none begins.

    `before`: what this paper and those after it cost last time, for the time that all of them still take.
    """

    def __init__(
        self, paper: Paper, size: Size, costs: Costs, before: Sequence[float | None], progress: Reporter | None
    ) -> None:
        self.paper, self.size, self.costs, self.progress = paper, size, costs, progress
        self.total = self.done = 0
        known = [seconds for seconds in before if seconds is not None]
        self._end = working() + sum(known) if len(known) == len(before) else None
        self._lock = threading.Lock()

    def start(self, label: str, part: str) -> None:
        if stop_asked():
            raise Interrupted(f"stopped before {label}")
        with self._lock:
            if expect := getattr(self.progress, "expect", None):
                whole = None if self._end is None else self._end - working()
                expect(part=self.costs.of(self.paper.name, part, self.size), whole=whole)
            if self.progress:
                self.progress(f"{self.paper.name}: {label}", self.done, self.total)
            self.done += 1

    def note(self, seconds: float, part: str) -> None:
        """What a part took, for the next time."""
        self.costs.note(seconds, self.paper.name, part, self.size)


def _paper(
    paper: Paper,
    chosen: tuple[Figure, ...] | None,
    size: Size,
    folder: Path,
    seeds: int,
    certify: bool,
    steps: _Steps,
) -> PaperResult:
    began = time.perf_counter()
    settings = paper.configure()
    crashes: list[Crash] = []
    failed: list[Crash] = []
    drawing = paper.figures if chosen is None else chosen
    steps.total = len(drawing) + (len(paper.claims) if chosen is None else 0) + int(certify)

    def make(figure: Figure) -> DrawnFigure | None:
        part, compiled = f"figure {figure.id}", COMPILING.here
        steps.start(part, part)
        made = _attempt(part, crashes, lambda: _figure(paper, figure, settings, size, folder))
        assert made is None or isinstance(made, DrawnFigure)
        if made:
            steps.note(made.seconds - (COMPILING.here - compiled), part)
        return made

    # Two things at a time, the claims beside the figures: compilation, most of a quick run, uses one core only.
    with ThreadPoolExecutor(2) as pool:
        checking = pool.submit(_claims, paper, settings, size, seeds, failed, steps) if chosen is None else None
        try:
            drawn = [made for made in pool.map(make, drawing) if made]
            table = checking.result() if checking else Table()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    crashes += failed
    certificate = None
    if certify:
        steps.start("certificate", "certificate")
        certificate = _attempt("certificate", crashes, lambda: paper.run(settings, certify=True).certificate)
    seconds = time.perf_counter() - began
    # The programs of one paper serve no other, and each holds memory maps, of which a process has a limited number.
    jax.clear_caches()
    return PaperResult(paper, settings, table, tuple(drawn), certificate, seconds, size, seeds, tuple(crashes))


def _attempt(what: str, crashes: list[Crash], work: Callable[[], Any]) -> Any:
    """The result of the work, or None and a recorded crash."""
    try:
        return work()
    except Exception as error:
        crashes.append(Crash.of(what, error))
        return None


def _figure(paper: Paper, figure: Figure, settings: Settings, size: Size, folder: Path) -> DrawnFigure:
    began = time.perf_counter()
    data = _labelled(figure.compute(settings, size), paper, figure, settings, size)
    place = folder / paper.name
    with _DRAWING:
        place.mkdir(exist_ok=True)
        save(data, place / f"{figure.id}.nc")
        sheet = figure.sheet(data)
        png = figures.save(sheet, place / f"{figure.id}.png")
    return DrawnFigure(figure, sheet, png, place / f"{figure.id}.nc", time.perf_counter() - began)


def _labelled(
    data: xr.Dataset | xr.DataTree, paper: Paper, figure: Figure, settings: Settings, size: Size
) -> xr.Dataset | xr.DataTree:
    """The data with attributes that say which figure of which paper it is; its own attributes win."""
    about = {
        "title": figure.title,
        "paper": paper.name,
        "figure": figure.id,
        "size": size,
        "tutelage_version": versions()["tutelage"],
        "settings": json.dumps(plain(settings), sort_keys=True),
    }
    labelled = data.copy()
    labelled.attrs = about | data.attrs
    return labelled


def _claims(paper: Paper, settings: Settings, size: Size, seeds: int, crashes: list[Crash], steps: _Steps) -> Table:
    def part(id: str) -> str:
        return f"claim {id} of {seeds} seeds"

    compiled: dict[str, float] = {}  # in seconds, before each claim

    def told(label: str, done: int, total: int) -> None:
        compiled[label] = COMPILING.here
        steps.start(f"claim {label}", part(label))

    safe = guarded(paper, crashes)
    checked = _attempt("claims", crashes, lambda: safe.check(settings, size=size, seeds=seeds, progress=told))
    table: Table = Table() if checked is None else checked
    crashed = {crash.what for crash in crashes}
    ends = dict(zip(compiled, [*compiled.values(), COMPILING.here][1:], strict=True))
    for row in table.rows:
        id = row.claim.id
        if f"claim {id}" not in crashed:
            steps.note(row.seconds - (ends[id] - compiled[id]), part(id))
    return table
