"""The soak test: runs and sweeps asked for again and again by processes that are killed at random moments.

Every job is a process of its own, as a user's would be. It is killed with SIGKILL, or asked to stop with SIGINT, or one
of its workers is killed; then it is begun again. When the number of kills is reached, all jobs may finish, and every
variable of every result is compared, bit for bit, with that of a store in which nobody was disturbed.

    python benchmarks/soak.py --kills 200 --minutes 120
"""

import argparse
import functools
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax

import tutelage as tt
from tutelage._interrupt import Interrupted, gentle_signals
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.store import fetching
from tutelage.store.fetching import tree_differences
from tutelage.store.store import Store
from tutelage.study import cells
from tutelage.trajectory.dataset import load, load_tree

OFTEN = 0.1  # seconds between checkpoints, so that kills fall into many of them
STOPPED = 130  # the exit code of a job that stopped when asked to
KILLS = 200
SLOWLY = {"steps": 600_000, "step": 1e-5}  # a second or more; so small a step that nothing converges before


def jobs() -> dict[str, Callable[[Store], object]]:
    """Runs and sweeps of some seconds each. Two of the sweeps share cells, and two have workers."""
    layers, moe = tt.papers.both_layers, tt.papers.soft_moe
    measures = "final_loss,growth_time"
    return {
        "descent": lambda store: layers(**SLOWLY).descend(seeds=2, store=store),
        "descent on data": lambda store: layers(**SLOWLY, samples=32, dim=10).descend(seeds=2, store=store),
        "flow": lambda store: moe(dim=10**4).flow(seeds=2, store=store),
        "stages": lambda store: tt.run(layers().problem, stages(), seeds=2, store=store),
        "sweep": lambda store: tt.sweep(
            layers(**SLOWLY), over={"dim": [10, 20, 40]}, measure=measures, seeds=2, store=store, processes=1
        ),
        "larger sweep": lambda store: tt.sweep(
            layers(**SLOWLY), over={"dim": "10,20,40,80"}, measure=measures, seeds=4, block=2, store=store,
            processes=2,
        ),
        "scattered sweep": lambda store: tt.sweep(
            layers(steps=20_000, step=1e-4), over={"dim": "10..1e6", "scale": "1e-6..1e-2"}, measure="final_loss",
            seeds=2, design="sobol", points=24, store=store, processes=2,
        ),
    }  # fmt: skip


def stages() -> list[tt.Stage]:
    """Descent, then from half of its weights a flow, then descent again."""
    descent = tt.Descent(**SLOWLY)
    return [tt.Stage("first", descent), tt.Stage("flow", tt.Flow(until=5.0), halved), tt.Stage("last", descent)]


def halved(handover: tt.Handover) -> tt.Handover:
    teacher, students = handover.start
    return handover.changed(start=tt.Start(teacher, jax.tree.map(lambda leaf: leaf / 2, students)))


def work(name: str, folder: str) -> int:
    """A job in its own process."""
    cells.Checkpoint = fetching.Checkpoint = functools.partial(Checkpoint, every=OFTEN)
    try:
        with gentle_signals():
            jobs()[name](Store(folder))
    except Interrupted:
        return STOPPED
    return 0


def started(name: str, store: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, __file__, "--job", name, "--store", str(store)], stderr=subprocess.PIPE, text=True
    )


def ended(process: subprocess.Popen) -> int:
    """How a job ended; one that failed by itself is told in full."""
    _, errors = process.communicate()
    # Asked to stop while Python was still starting or importing.
    early = process.returncode == -signal.SIGINT or errors.rstrip().endswith("KeyboardInterrupt")
    if process.returncode not in (0, STOPPED, -signal.SIGKILL) and not early:
        raise SystemExit(f"A job ended with {process.returncode} by itself:\n{errors}")
    return process.returncode


def workers_of(process: subprocess.Popen) -> list[int]:
    try:
        found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        return [int(pid) for pid in found if "popen_loky" in Path(f"/proc/{pid}/cmdline").read_text()]
    except OSError:
        return []


def disturbed(process: subprocess.Popen, way: str, delay: float) -> bool:
    """Wait, then kill; False if the job had ended before, or had no worker to kill."""
    try:
        process.wait(delay)
        return False
    except subprocess.TimeoutExpired:
        pass
    if way == "worker":
        pids = workers_of(process)
        if pids:
            os.kill(pids[0], signal.SIGKILL)
        return bool(pids)
    process.send_signal(signal.SIGKILL if way == "kill" else signal.SIGINT)
    return True


def looked_at(store: Path) -> None:
    """What anybody sees who looks now: every entry can be listed, and what counts as finished can be read."""
    for entry in Store(store).entries():
        if entry.state == "damaged":
            raise SystemExit(f"After a kill: {entry.trouble}")
        if entry.result.is_file():
            load(entry.result)


def soak(
    names: list[str], kills: int, folder: Path, seed: int, *, streams: int = 1, minutes: float = math.inf
) -> dict[str, Any]:
    """Kill jobs until there were as many kills, or the time is over; let all end, and compare.

    The facts, or SystemExit at a fault. Several streams have stores of their own and share the references: jobs wait
    more than they compute.
    """
    began = time.monotonic()
    shares = [kills // streams + (number < kills % streams) for number in range(streams)]
    with ThreadPoolExecutor(streams) as pool:
        lengths = dict(zip(names, pool.map(lambda name: _reference(name, folder), names), strict=True))
        print(f"references in {time.monotonic() - began:.0f} s", flush=True)
        begun = [
            pool.submit(_stream, lengths, share, folder / str(number), seed + number, began + 60 * minutes)
            for number, share in enumerate(shares)
        ]
        ways = sum((each.result() for each in begun), Counter())
    facts = _compared(folder) | {"jobs": len(names), "streams": streams}
    return facts | {"kills": dict(ways), "seconds": round(time.monotonic() - began)}


def _stream(lengths: dict[str, float], kills: int, folder: Path, seed: int, until: float) -> Counter[str]:
    """How many were killed, and how. A job that is finished is begun in a new store: there is always one to disturb."""
    draw, done, ways = random.Random(seed), Counter[str](), Counter[str]()
    while ways.total() < kills and time.monotonic() < until:
        name = draw.choice(list(lengths))
        way = draw.choices(("kill", "interrupt", "worker"), (6, 2, 2))[0]
        store = folder / str(done[name])
        process = started(name, store)
        try:
            hit = disturbed(process, way, draw.uniform(0.2, 0.9) * lengths[name])
            code = ended(process)
        finally:
            process.kill()
        ways[way] += hit
        looked_at(store)
        done[name] += code == 0
        if hit:
            print(
                f"stream {folder.name}, {ways.total()} of {kills}: {name}, {way}; {done.total()} finished", flush=True
            )
    for name in lengths:
        if ended(started(name, folder / str(done[name]))) != 0:
            raise SystemExit(f"{name} did not finish, though nobody disturbed it.")
    return ways


def _reference(name: str, folder: Path) -> float:
    """Compute what a job gives when it is left alone; how long that takes once its programs are compiled."""
    ended(started(name, folder / "reference"))
    began = time.monotonic()
    if ended(started(name, folder / "again")) != 0:
        raise SystemExit(f"The reference of {name} was stopped.")
    return time.monotonic() - began


def _compared(folder: Path) -> dict[str, int]:
    """Every result of every store against the reference."""
    right = {entry.id: load_tree(entry.result) for entry in Store(folder / "reference").entries()}
    compared = variables = 0
    for store in (folder / "again", *folder.glob("[0-9]*/[0-9]*")):
        for entry in Store(store).entries():
            found = load_tree(entry.result)
            apart = tree_differences(found, right[entry.id])
            if apart or entry.state != "finished":
                raise SystemExit(f"{entry.id} is {entry.state} and differs in {apart}")
            compared, variables = compared + 1, variables + sum(len(node.variables) for node in found.subtree)
    return {"results_compared": compared, "variables_compared": variables, "differences": 0}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--kills", type=int, default=KILLS)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--minutes", type=float, default=120.0, help="nobody is killed after these")
    options.add_argument("--streams", type=int, default=2, help="soaks side by side")
    options.add_argument("--job", help=argparse.SUPPRESS)
    options.add_argument("--store", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.job:
        return work(given.job, given.store)
    with tempfile.TemporaryDirectory() as name:
        facts = soak(list(jobs()), given.kills, Path(name), given.seed, streams=given.streams, minutes=given.minutes)
    from _measure import write  # not before: it fixes the number of threads, and jobs are to use all

    write("soak", facts | {"seed": given.seed})
    return 0


if __name__ == "__main__":
    sys.exit(main())
