"""Sweeps: one Dataset of many runs; what is kept is not computed again; stopped, killed or damaged, nothing is lost."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tutelage as tt
from tutelage._errors import BadInput
from tutelage._interrupt import Interrupted, ask_to_stop, gentle_signals
from tutelage._revisions import REVISIONS
from tutelage.store.fetching import differences
from tutelage.study import cells, workers
from tutelage.study.cells import VERDICTS, Cell
from tutelage.study.measuring import measurements
from tutelage.study.study import Study
from tutelage.study.sweep import Sweep, _Work
from tutelage.study.sweep_result import CellsFailed
from tutelage.trajectory.findings import Checked, Finding, Table, Verdict

BASE = tt.papers.both_layers(steps=50)
CLAIM = next(claim for claim in BASE.study.claims if claim.id == "BL01")
DIMS = {"dim": [10, 100, 1000]}


def sweep(store, over=DIMS, measure="final_loss", seeds=2, **options):
    return tt.sweep(BASE, over=over, measure=measure, seeds=seeds, store=store, **{"processes": 1} | options)


@pytest.fixture
def computed(monkeypatch):
    """The cells that are computed in this process, as they come."""
    cells = []

    def compute(cell, real=workers.compute):
        cells.append(cell)
        return real(cell)

    monkeypatch.setattr(workers, "compute", compute)
    return cells


def test_a_sweep_asks_the_store_in_use(tmp_path):
    with tt.Store(tmp_path).in_use():
        swept = sweep(None, {"dim": [10]})
    assert swept.entry.folder.parent == tmp_path


class Killed(BaseException):
    """In place of a signal."""


def bare(run):
    return run.last("loss")


# ---- the result


def test_settings_are_dims_and_every_number_is_that_of_the_run_itself(tmp_path):
    found = sweep(tmp_path, {"dim": [10, 100], "scale": [1e-2, 1e-4]}, "final_loss,stop_time", seeds=[3, 5, 8])
    assert found.final_loss.dims == ("dim", "scale", "seed")
    assert found.dataset.seed.values.tolist() == [3, 5, 8]
    assert found.dim.values.tolist() == [10, 100] and found.dim.dtype.kind == "i"
    assert found.done.dims == ("dim", "scale") and found.done.values.all()
    assert found.settings == ("dim", "scale") and found.measures == ("final_loss", "stop_time")
    for dim in (10, 100):
        for scale in (1e-2, 1e-4):
            run = tt.papers.both_layers(steps=50, dim=dim, scale=scale).descend(seeds=[3, 5, 8])
            assert np.array_equal(found.final_loss.sel(dim=dim, scale=scale), run.last("loss"))


def test_the_dataset_says_what_it_holds(tmp_path):
    found = sweep(tmp_path, measure="final_loss,growth_time,success").dataset
    assert found.attrs["paper"] == "both_layers" and json.loads(found.attrs["settings"])["kind"] == "sweep"
    assert {"tutelage_version", "jax_version", "created_at"} <= set(found.attrs)
    assert found.final_loss.attrs == {"long_name": "final loss", "kind": "number", "units": ""}
    assert found.growth_time.attrs["kind"] == "time" and found.success.attrs["kind"] == "chance"
    assert "final_loss_limit" not in found and "final_loss_law" not in found


def test_a_time_still_to_come_has_a_limit(tmp_path):
    """50 steps of 0.1 end at time 5, long before anything has grown from a start of 1e-4."""
    found = sweep(tmp_path, measure="growth_time").dataset
    assert found.growth_time.isnull().all() and (found.growth_time_limit == 5).all()


def test_laws_of_papers_and_of_ones_own_are_beside_the_measures(tmp_path):
    own = tt.Measure("own", "one of my own", bare, law=lambda settings: 1 / settings.dim)
    found = sweep(tmp_path, measure=["success", own]).dataset
    assert found.own_law.values.tolist() == [0.1, 0.01, 0.001]
    expected = [
        tt.papers.both_layers.measure("success").law(tt.papers.both_layers(dim=d).settings) for d in DIMS["dim"]
    ]
    assert found.success_law.dims == ("dim",) and found.success_law.values.tolist() == expected


def test_random_and_sobol_points_are_one_dim(tmp_path):
    for kind in ("random", "sobol"):
        found = sweep(tmp_path, {"dim": "10..1e3", "init": "xavier,paper_chi"}, design=kind, points=4, design_seed=1)
        assert found.final_loss.dims == ("point", "seed") and found.dim.dims == found.init.dims == ("point",)
        first = found.dataset.isel(point=0)
        run = tt.papers.both_layers(steps=50, dim=int(first.dim), init=str(first.init.values)).descend(seeds=2)
        # Of the same settings, not of the same bits: these have been seen to differ in the last place.
        np.testing.assert_allclose(first.final_loss, run.last("loss"), rtol=1e-14)


def test_verdicts_of_claims(tmp_path):
    """The verdict is that of the paper's own check at these settings."""
    found = sweep(tmp_path, {"dim": [100]}, "claim:BL01,final_loss")
    (row,) = tt.papers.both_layers(steps=50, dim=100).check(seeds=2, only=("BL01",)).rows
    wanted = VERDICTS.get(row.finding.verdict, np.nan)
    verdict = found.dataset["claim:BL01"]
    assert np.array_equal(verdict, [[wanted] * 2], equal_nan=True) and verdict.attrs["kind"] == "verdict"
    assert not found.failed and found.final_loss.notnull().all()


def test_a_sweep_of_verdicts_alone_needs_no_run(tmp_path, monkeypatch):
    monkeypatch.setattr(Study, "run", lambda *args, **options: pytest.fail("ran it"))
    monkeypatch.setattr(Study, "check", lambda *args, **options: Table((Checked(CLAIM, Finding(Verdict.HOLDS)),)))
    found = sweep(tmp_path, {"dim": [10, 100]}, "claim:BL01")
    assert found.dataset["claim:BL01"].values.tolist() == [[1.0, 1.0], [1.0, 1.0]] and not found.failed


def test_a_claim_is_judged_once_on_all_seeds_from_0_up(tmp_path, monkeypatch):
    """Not block by block, each on the same first seeds."""
    asked = []

    def check(self, settings, *, seeds, only):
        asked.append(seeds)
        return Table((Checked(CLAIM, Finding(Verdict.HOLDS), 0.0),))

    monkeypatch.setattr(Study, "check", check)
    found = sweep(tmp_path, {"dim": [100]}, "claim:BL01", seeds=40)
    assert asked == [40] and found.dataset["claim:BL01"].shape == (1, 40)
    with pytest.raises(BadInput, match="seeds from 0 up"):
        sweep(tmp_path, {"dim": [100]}, "claim:BL01", seeds=[3, 4])
    cell = Cell(
        "both_layers", BASE.settings.model_dump(), "descent", (32, 33), measurements(BASE.study, "claim:BL01"), ""
    )
    with pytest.raises(BadInput, match="seeds from 0 up"):
        cells.compute(cell)
    assert asked == [40]


def test_failed_cells_are_a_warning(tmp_path, monkeypatch):
    def compute(cell):
        raise RuntimeError("no luck")

    monkeypatch.setattr(workers, "compute", compute)
    with pytest.warns(
        CellsFailed, match="3 of 3 cells failed and have no numbers, such as dim=10: RuntimeError: no luck"
    ):
        assert np.isnan(sweep(tmp_path).final_loss).all()


def test_whole_numbers_beyond_64_bits_are_coordinates(tmp_path, monkeypatch):
    measures = {"final_loss": {"values": [0.5, 0.5], "limit": [None, None], "law": None}}
    monkeypatch.setattr(workers, "compute", lambda cell: {"measures": measures, "seconds": 0.0})
    assert sweep(tmp_path, {"target": [10**25, 1]}).target.values.tolist() == [1e25, 1.0]


def test_a_claim_whose_id_begins_that_of_another(monkeypatch):
    """`check(only="A")` also checks "A:x", which was not asked for."""
    paper = tt.papers.both_layers
    twice = replace(paper, claims=(CLAIM, replace(CLAIM, id="BL01:again")))
    monkeypatch.setattr(cells, "get", lambda name: twice)
    cell = Cell("both_layers", BASE.settings.model_dump(), "descent", (0, 1), measurements(twice, "claim:BL01"), "")
    assert list(cells.compute(cell)["measures"]) == ["claim:BL01"]


# ---- only what is missing


def test_asked_again_nothing_is_computed(tmp_path, computed):
    first = sweep(tmp_path)
    again = sweep(tmp_path)
    assert len(computed) == 3
    assert differences(first.dataset, again.dataset) == [] and first.entry.id == again.entry.id
    assert again.entry.state == "finished" and again.entry.summary["cells"] == 3


def test_a_larger_sweep_keeps_the_cells_of_the_smaller(tmp_path, computed):
    small = sweep(tmp_path, {"dim": [10, 100]}, seeds=32)
    assert len(computed) == 2
    large = sweep(tmp_path, seeds=64)
    assert len(computed) == 2 + 4  # the second block of two dims, both blocks of the third
    assert [cell.seeds[0] for cell in computed[2:]] == [32, 32, 0, 32]
    assert np.array_equal(large.final_loss.sel(dim=[10, 100])[:, :32], small.final_loss)


def test_what_an_older_revision_computed_is_shown_as_such_and_computed_anew(tmp_path, computed, monkeypatch):
    old = sweep(tmp_path).entry
    assert not old.outdated
    monkeypatch.setitem(REVISIONS, "both_layers", REVISIONS["both_layers"] + 1)
    new = sweep(tmp_path).entry
    assert len(computed) == 6 and new.id != old.id
    assert old.outdated == {"both_layers": REVISIONS["both_layers"] - 1} and not new.outdated


def test_a_changed_function_is_measured_anew(tmp_path, computed):
    file = tmp_path / "own.py"
    for factor, count in ((2, 3), (2, 3), (3, 6), (2, 6)):
        file.write_text(f"def own(run):\n    return {factor} * run.last('loss')\n")
        found = sweep(tmp_path / "store", measure=["final_loss", f"{file}:own"])
        assert len(computed) == count
        assert np.array_equal(found.own, factor * found.final_loss)


def test_a_function_with_other_values_around_it_is_measured_anew(tmp_path, computed):
    found = [sweep(tmp_path, measure=lambda run, f=f: f * run.last("loss")).dataset["measure"] for f in (1, 2, 1)]
    assert len(computed) == 6 and np.array_equal(2 * found[0], found[1]) and np.array_equal(found[0], found[2])


# ---- what goes wrong


def test_a_cell_that_raises_is_told_and_tried_again(tmp_path, computed):
    mark = tmp_path / "mark"

    def choosy(run):
        """Fails for one dimension, while there is no mark."""
        import json
        import os

        if json.loads(run.dataset.attrs["paper_settings"])["dim"] == 100 and not os.path.exists(mark):
            raise RuntimeError("no mark")
        return run.last("loss")

    with pytest.warns(CellsFailed, match="1 of 3 cells failed"):
        found = sweep(tmp_path / "store", measure=choosy)
    assert found.failed == {"dim=100": "RuntimeError: no mark"}
    assert found.done.values.tolist() == [True, False, True]
    assert found.choosy.isnull().any("seed").values.tolist() == [False, True, False]
    assert found.entry.state == "unfinished" and "failed: dim=100" in (found.entry.folder / "log").read_text()
    mark.touch()
    again = sweep(tmp_path / "store", measure=choosy)
    assert [cell.settings["dim"] for cell in computed] == [10, 100, 1000, 100]
    assert not again.failed and again.done.values.all() and again.entry.state == "finished"


def test_failures_of_several_blocks_are_all_told(tmp_path):
    with pytest.warns(CellsFailed, match="2 of 2 cells failed"):
        found = sweep(tmp_path, {"dim": [10]}, measure=lambda run: 1 / 0, seeds=4, block=2)
    assert list(found.failed) == ["dim=10, seeds 0 to 1", "dim=10, seeds 2 to 3"]


def test_a_cell_that_was_changed_or_is_of_another_place_is_not_taken(tmp_path):
    sweep(tmp_path)
    one, other = sorted((tmp_path / ".cells").rglob("*.json"))[:2]
    changed = one.read_text().replace('"seconds":', '"seconds": 1, "was":')
    for folder in tmp_path.glob("[0-9a-f]*"):
        shutil.rmtree(folder)  # so that the sweep is made of its cells again
    for text in (changed, other.read_text()):
        one.write_text(text)
        with pytest.raises(BadInput, match="checksum does not agree|is the result of another cell") as told:
            sweep(tmp_path)
        assert one.name in str(told.value) and one.read_text() == text


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"measures": {"final_loss": {"values": [1], "limit": [1]}}}', ""]
)
def test_a_damaged_cell_is_one_sentence_and_left_alone(tmp_path, content):
    sweep(tmp_path)
    file = sorted((tmp_path / ".cells").rglob("*.json"))[0]
    file.write_text(content)
    with pytest.raises(BadInput, match="not changed"):
        sweep(tmp_path)
    assert file.read_text() == content


@pytest.mark.parametrize("name", ["spec.json", "sweep.nc"])
def test_a_damaged_sweep_says_how_to_have_it_again(tmp_path, computed, name):
    entry, store = sweep(tmp_path).entry, tt.Store(tmp_path)
    (entry.folder / name).write_bytes(b"?")
    with pytest.raises(BadInput, match=f"{name}.* not changed.*`tutelage rm {entry.id}`.* keeps its cells") as told:
        sweep(tmp_path)
    assert "fresh" not in str(told.value) and (entry.folder / name).read_bytes() == b"?"
    store.remove(store.find(entry.id))
    assert sweep(tmp_path).entry.state == "finished" and len(computed) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"over": {"dim": [-5]}}, "dim"),
        ({"over": {"dims": [5]}}, "dims"),
        ({"dynamics": "sgd"}, "sgd"),
        ({"seeds": 0}, "seeds is 0"),
        ({"block": 0}, "block"),
        ({"measure": "claim:NO"}, "NO"),
        ({"measure": "nope"}, "Unknown measure 'nope'"),
        ({"measure": "succes"}, "did you mean 'success'"),
        ({"measure": ["final_loss", "final_lost"]}, "Unknown observable 'lost': did you mean 'loss'"),
        ({"measure": "final_overlap"}, "final_overlap.max"),
        ({"measure": "event_time"}, "Unknown measure 'event_time'"),
        ({"measure": tt.Measure("own", "own", bare, observables=("lost",))}, "Unknown observable 'lost'"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(tmp_path, computed, options, words):
    with pytest.raises(BadInput, match=words):
        sweep(tmp_path / "store", **options)
    assert not (tmp_path / "store").exists() and computed == []


def test_events_and_crossings_of_a_paper_are_foreseen(tmp_path):
    small = tt.papers.soft_moe(students=2, teachers=1, until=0.1)
    found = tt.sweep(
        small, over={"dim": [20]}, measure=["expert_time.min", "stop_time"], seeds=2, store=tmp_path, processes=1
    )
    assert found.dataset["expert_time.min"].dims == ("dim", "seed")


def test_an_unfinished_sweep_has_a_result_that_can_be_read(tmp_path, computed):
    seen = []

    def stop_after_one(label, done, total):
        if done == 1:  # while it is going on
            seen.extend(Sweep.read(entry).done.values.tolist() for entry in tt.Store(tmp_path).entries())
            ask_to_stop()

    with gentle_signals(), pytest.raises(Interrupted):
        sweep(tmp_path, progress=stop_after_one)
    (entry,) = tt.Store(tmp_path).entries()
    part = Sweep.read(entry)
    assert seen == [[True, False, False]]
    assert entry.state == "unfinished" and part.done.values.tolist() == [True, False, False]
    assert part.final_loss.isnull().all("seed").values.tolist() == [False, True, True]
    whole = sweep(tmp_path)
    assert len(computed) == 3 and whole.entry.state == "finished"
    assert np.array_equal(whole.final_loss[0], part.final_loss[0])


def test_a_sweep_killed_after_its_last_cell_is_finished_by_asking_again(tmp_path, monkeypatch):
    """All cells are kept, but the result was written when some were missing, and there is no summary."""
    whole = sweep(tmp_path / "whole")

    def die(self, real=_Work._write, *, final=False, **options):
        if final:
            raise Killed
        real(self, **options)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(_Work, "_write", die)
        sweep(tmp_path / "store")
    assert [entry.state for entry in tt.Store(tmp_path / "store").entries()] == ["unfinished"]
    again = sweep(tmp_path / "store")
    assert again.entry.state == "finished" and differences(again.dataset, whole.dataset) == []


def test_what_was_half_written_is_tidied_up(tmp_path):
    id = sweep(tmp_path / "other").entry.id
    (tmp_path / id).mkdir()
    cell = next((tmp_path / "other" / ".cells").rglob("*.json")).stem
    left = [tmp_path / id / ".sweep.nc.x.part", tmp_path / ".cells" / cell[:2] / f".{cell}.npz.x.part"]
    for file in left:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("half")
    sweep(tmp_path)
    assert not any(file.exists() for file in left)


# ---- several processes


def drive(body: str, *arguments, **options) -> subprocess.Popen:
    """A process that does a sweep."""
    source = "import sys, tutelage as tt\n" + textwrap.dedent(body)
    return subprocess.Popen(
        [sys.executable, "-c", source, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def children(pid: int) -> list[int]:
    """The worker processes of a process, without Python's own helper."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found if "popen_loky" in command(int(child))]


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def until(condition, seconds=120.0):
    """Wait for something that comes in a while; the limit is only for a test that hangs."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)
    return found


def kept(store: Path) -> int:
    return len(list((store / ".cells").rglob("*.json")))


def busy(store: Path) -> int:
    return len(list((store / ".cells").rglob("*.npz")))


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes through /proc")


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """What `SLOW` gives, computed without a disturbance."""
    return slow(tmp_path_factory.mktemp("reference"), processes=1)


# Some seconds per cell, so that there are checkpoints; so small a step that nothing converges before.
SLOW = {"over": {"dim": [10, 20, 40]}, "measure": "final_loss,largest_loss", "seeds": 2}
SETTINGS = {"steps": 1_500_000, "step": 1e-5}


def slow(store, **options):
    return tt.sweep(tt.papers.both_layers(**SETTINGS), store=store, **SLOW | options)


DRIVER = f"""
    from tutelage._interrupt import Interrupted, gentle_signals
    try:
        with gentle_signals():
            experiment = tt.papers.both_layers(**{SETTINGS!r})
            tt.sweep(experiment, store=sys.argv[1], processes=int(sys.argv[2]), **{SLOW!r})
        print("done")
    except Interrupted:
        print("stopped")
"""


@needs_proc
def test_a_killed_worker_loses_nothing(tmp_path, reference):
    process = drive(DRIVER, tmp_path, 2)
    try:
        until(lambda: busy(tmp_path) or kept(tmp_path))
        os.kill(children(process.pid)[0], signal.SIGKILL)
        told, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    assert told == "done\n", errors
    (entry,) = tt.Store(tmp_path).entries()
    assert entry.state == "finished" and differences(Sweep.read(entry).dataset, reference.dataset) == []


@needs_proc
def test_a_killed_parent_leaves_no_workers_and_no_harm(tmp_path, reference):
    with drive(DRIVER, tmp_path, 2) as process:  # workers that live on have its pipes: nobody waits for their end
        try:
            until(lambda: busy(tmp_path) or kept(tmp_path))
            mine = children(process.pid)
        finally:
            process.kill()
    assert len(mine) == 2
    until(lambda: not any("popen_loky" in command(pid) for pid in mine))
    assert differences(slow(tmp_path, processes=1).dataset, reference.dataset) == []


@needs_proc
@pytest.mark.parametrize("processes", [1, 2])
def test_ctrl_c_stops_soon_and_keeps_what_was_done(tmp_path, reference, processes):
    process = drive(DRIVER, tmp_path, processes)
    try:
        until(lambda: busy(tmp_path) or kept(tmp_path))
        process.send_signal(signal.SIGINT)
        told, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    assert told == "stopped\n" and errors == ""
    assert kept(tmp_path) < 3 and kept(tmp_path) + busy(tmp_path) > 0
    (entry,) = tt.Store(tmp_path).entries()
    assert entry.state == "unfinished" and Sweep.read(entry).done.sum() == kept(tmp_path)
    assert differences(slow(tmp_path, processes=1).dataset, reference.dataset) == []


@needs_proc
def test_ctrl_c_while_workers_start_says_nothing_of_its_own(tmp_path):
    process = drive(DRIVER, tmp_path, 2)
    try:
        until(lambda: len(children(process.pid)) == 2)
        for _ in range(20):  # as a terminal does, to the whole group; at every stage of a Python that starts
            for pid in children(process.pid):
                os.kill(pid, signal.SIGINT)
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        told, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    assert told == "stopped\n" and errors == ""


def test_a_script_may_sweep_at_its_top_level(tmp_path):
    """Workers do not run the script again: they would wait for the lock that their parent has."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport tutelage as tt\n"
        "def own(run):\n    return 2 * run.last('loss')\n"
        "found = tt.sweep(tt.papers.both_layers(steps=50), over={'dim': [10, 100]}, measure=['final_loss', own], "
        "seeds=2, store=sys.argv[1], processes=2)\n"
        "print((found.own == 2 * found.final_loss).values.all(), found.failed)\n"
    )
    done = subprocess.run(
        [sys.executable, script, tmp_path / "store"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout == "True {}\n" and done.stderr == ""


def test_a_cell_that_kills_its_workers_is_an_error_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "ATTEMPTS", 2)

    def deadly(run):
        import json
        import os

        if json.loads(run.dataset.attrs["paper_settings"])["dim"] == 100:
            os._exit(9)
        return run.last("loss")

    with pytest.warns(CellsFailed, match="1 of 2 cells failed"):
        found = sweep(tmp_path, {"dim": [100, 10]}, measure=deadly, processes=2)
    assert list(found.failed) == ["dim=100"] and "died 2 times" in found.failed["dim=100"]
    assert found.done.values.tolist() == [False, True]


def test_an_error_while_workers_compute_does_not_wait_for_them(tmp_path, monkeypatch):
    def full(self, id, outcome):
        raise BadInput("no room")

    monkeypatch.setattr(_Work, "_commit", full)

    def sleepy(run):
        import json
        import time

        if json.loads(run.dataset.attrs["paper_settings"])["dim"] > 10:
            time.sleep(600)
        return run.last("loss")

    with pytest.raises(BadInput, match="no room"):
        sweep(tmp_path, measure=sleepy, processes=2)
    assert multiprocessing.active_children() == []


def test_workers_that_no_longer_listen_do_not_hold_up_the_end(tmp_path, monkeypatch):
    """Found by the soak: an idle worker that is killed owns the lock of the queue, for which the others then wait for
    ever. Here all are stopped when the last cell is done."""
    pools, collected = [], workers._collected

    class Noted(workers.ProcessPoolExecutor):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            pools.append(self)

    def then_stopped(*args):
        yield from collected(*args)
        for worker in pools[-1]._processes:
            os.kill(worker, signal.SIGSTOP)

    monkeypatch.setattr(workers, "ProcessPoolExecutor", Noted)
    monkeypatch.setattr(workers, "_collected", then_stopped)
    options = {"over": {"width": [1, 2]}, "measure": "final_loss", "seeds": 1, "store": tmp_path, "processes": 2}
    thread = threading.Thread(target=lambda: tt.sweep(tt.papers.both_layers(steps=20), **options), daemon=True)
    thread.start()
    thread.join(240)
    assert pools and not thread.is_alive()
