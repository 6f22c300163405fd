"""Reproducing papers: every figure as data and picture, every claim checked, and one report of it all."""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import jax

from tutelage._checks import one_of, path, several, whole
from tutelage._compiling import COMPILING
from tutelage._errors import BadInput
from tutelage._files import check_folder, deliver
from tutelage._plain import dumps
from tutelage._progress import listening
from tutelage.present import report
from tutelage.present.costs import Costs
from tutelage.present.making import AT_ONCE, Making, Steps
from tutelage.present.progress import Reporter, Within
from tutelage.present.reproduction import PaperResult
from tutelage.present.versions import versions
from tutelage.store.store import Store
from tutelage.study.files import is_file_name
from tutelage.study.parts import Figure, Size
from tutelage.study.registry import names, study_of
from tutelage.study.study import Study
from tutelage.trajectory.asked import seed_list


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
    targets: Sequence[str | Study] = (),
    *,
    size: Size = "quick",
    out: str | Path = "report",
    seeds: int = 10,
    certify: bool = False,
    store: Store | str | Path | None = None,
    progress: Reporter | None = None,
) -> Reproduction:
    """Compute figures, check claims and write `out/report.html`, with PNG and NetCDF files beside it.

    - `targets`: studies by name or file, or a `Study` itself; single figures as "study/figure" (then without the
      claims); all that are installed if empty.
    - `size`: "quick" for minutes, "full" for the sizes of the papers.
    - `certify`: also recompute sampled numbers of the paper's default run by an independent route.
    - `store`: where runs are kept, `runs/` if None; a reproduction that was stopped goes on from what is there.

    The most telling figure of every paper comes first, and the report is there from the first figure on and says what
    is still to come. A figure or claim that crashes is recorded in it and does not stop the others.
    """
    expected = "a list of papers, or of names such as 'both_layers' or 'both_layers/fig3',"
    wanted = plan(several("targets", targets, (str, Study), expected))
    one_of("size", size, ["quick", "full"])
    seeds = len(seed_list(whole("seeds", seeds, least=1)))
    folder, place = path("out", out), store if isinstance(store, Store) else Store(store)
    for each in (folder, place.root):
        check_folder(each)
    folder.mkdir(parents=True, exist_ok=True)
    COMPILING.listen()  # what is compiled is no part of what a part costs
    steps, page = Steps(Costs.of_this_machine(), size, progress), _Page(folder / "report.html")
    making = [Making(paper, chosen, size, folder, seeds, certify, steps, page.changed) for paper, chosen in wanted]
    page.making = making
    try:
        with listening(Within(getattr(progress, "tell", None))), place.in_use():
            _make([each.parts() for each in making])
    finally:
        page.write()  # also of what there is when it is stopped
    results = tuple(each.result() for each in making)
    checked = {r.paper.name: r.table.records() for r in results if len(r.table)}
    about = dumps({"versions": versions(), "size": size, "seeds": seeds, "papers": checked}) + "\n"
    deliver(folder / "claims.json", lambda part: part.write_text(about, encoding="utf-8"))
    return Reproduction(page.path, results)


def _make(parts: Sequence[Sequence[Callable[[], None]]]) -> None:
    """All parts of all papers, some at a time: the first part of every paper, then paper by paper."""
    numbered = [(number, part) for number, paper in enumerate(parts) for part in paper]
    firsts = [(number, paper[0]) for number, paper in enumerate(parts) if paper]
    order = firsts + [each for each in numbered if each not in firsts]
    left = Counter(number for number, _ in order)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            begun = {pool.submit(part): number for number, part in order}
            for done in as_completed(begun):
                done.result()
                left[begun[done]] -= 1
                # The programs of a paper serve no other. They hold memory, and maps, of which a process may have few.
                if not left[begun[done]]:
                    jax.clear_caches()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _Page:
    """The report, which is there from the first part on and is written again as others come."""

    OFTEN = 2.0  # seconds between two writings

    def __init__(self, path: Path) -> None:
        self.path, self.making = path, list[Making]()
        self._began, self._written = time.perf_counter(), -math.inf
        self._lock = threading.Lock()

    def changed(self) -> None:
        """Write it again, unless that was done just now or is being done."""
        if time.perf_counter() - self._written < self.OFTEN or not self._lock.acquire(blocking=False):
            return
        try:
            self.write()
            self._written = time.perf_counter()
        finally:
            self._lock.release()

    def write(self) -> None:
        results = [each.result() for each in self.making]
        report.write(results, self.path, seconds=time.perf_counter() - self._began)


def plan(targets: Sequence[str | Study]) -> list[tuple[Study, tuple[Figure, ...] | None]]:
    """Papers with the figures asked of each; None means the whole paper."""
    known: dict[str, Study] = {}
    wanted: dict[str, list[Figure] | None] = {}
    asked: dict[str, Study] = {}
    for target in targets or names():
        studied, figure = (target, "") if isinstance(target, Study) else _parted(target)
        if not isinstance(studied, Study):
            studied = known.get(studied) or asked.get(studied) or asked.setdefault(studied, study_of(studied))
        paper, name = studied, studied.name
        if known.setdefault(name, paper) is not paper:
            raise BadInput(f"Two papers of targets have the name {name!r}, and so the same files; rename one.")
        if not figure:
            wanted[name] = None
        elif wanted.get(name, []) is not None:
            wanted.setdefault(name, []).append(paper.figure(figure))  # type: ignore[union-attr]
    return [(known[name], None if chosen is None else tuple(chosen)) for name, chosen in wanted.items()]


def _parted(target: str) -> tuple[str, str]:
    """The study and the figure of it: "both_layers/fig3", "folder/my_study.py", "folder/my_study.py/loss"."""
    study, slash, figure = target.rpartition("/")
    return (study, figure) if slash and not is_file_name(figure) else (target, "")
