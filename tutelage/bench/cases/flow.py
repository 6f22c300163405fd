"""Gradient flow of 8 ReLU students of 4 teachers: dense records, long times, and the stiff solver."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

import tutelage as tt
from tutelage.bench.contest import Case, Contest, Entry, Limit
from tutelage.bench.limits import gradient
from tutelage.bench.process import tell
from tutelage.bench.relu import OWN, PEER, TORCH, Numbers, problem, starts
from tutelage.bench.timing import Plan, interleaved, spread

TEACHERS, STUDENTS, NORM = 4, 8, 0.1
"""Students begin with norms of about 0.1."""
AT = "overlaps at all records"


class Sizes(NamedTuple):
    dims: tuple[int, ...]
    until: float
    records: int
    rtol: float


FULL, QUICK = Sizes((50, 1000), 1000.0, 200, 1e-8), Sizes((20, 60), 20.0, 20, 1e-8)


class Task(NamedTuple):
    """A flow to be computed: the same for everybody."""

    dim: int
    until: float
    records: int
    rtol: float

    @property
    def problem(self) -> tt.Problem:
        return problem(TEACHERS, STUDENTS, self.dim, NORM / self.dim**0.5)

    @property
    def times(self) -> Numbers:
        """Evenly spaced, the end included."""
        return np.linspace(0.0, self.until, self.records + 1)[1:]


@cache
def _start(task: Task) -> tuple[Numbers, Numbers]:
    first, teacher = starts(task.problem, 1)
    return first[0], teacher


def followed(task: Task, solver: Literal["auto", "stiff"] = "auto") -> tt.Run:
    """The flow by tutelage."""
    record = tt.Record(task.times, observables=("loss", "overlap"))
    stop = tt.Stop(gradient=-1.0)
    return tt.flow(task.problem, until=task.until, rtol=task.rtol, solver=solver, record=record, stop=stop)


def ours(task: Task, solver: Literal["auto", "stiff"] = "auto") -> Numbers:
    """Overlaps (time, student, teacher) by tutelage."""
    return np.asarray(followed(task, solver).overlap.transpose("seed", "time", "student", "teacher").values[0, 1:])


def diffrax(task: Task, solver: Literal["Tsit5", "Kvaerno5"]) -> Numbers:
    from tutelage.bench.peers import by_diffrax

    first, teacher = _start(task)
    solved = by_diffrax.solve(*map(jnp.asarray, (first, teacher, task.times)), task.rtol, solver)
    return np.asarray(solved.ys) @ teacher.T


def scipy(task: Task, method: str) -> Numbers:
    from tutelage.bench.peers import by_scipy

    first, teacher = _start(task)
    return by_scipy.flow(first, teacher, task.times, task.rtol, method) @ teacher.T


def torchdiffeq(task: Task) -> Numbers:
    from tutelage.bench.peers import by_torchdiffeq

    first, teacher = _start(task)
    return by_torchdiffeq.flow(first, teacher, task.times, task.rtol, "dopri5") @ teacher.T


def _entries(task: Task) -> dict[str, Entry]:
    entries = (
        Entry("tutelage", partial(ours, task), needs=OWN),
        Entry("diffrax Tsit5", partial(diffrax, task, "Tsit5"), needs=("diffrax", *PEER)),
        Entry("SciPy DOP853", partial(scipy, task, "DOP853"), needs=("scipy.integrate",)),
        Entry("SciPy LSODA", partial(scipy, task, "LSODA"), needs=("scipy.integrate",)),
        Entry("torchdiffeq dopri5", partial(torchdiffeq, task), needs=("torchdiffeq", *TORCH)),
    )
    return {entry.name: entry for entry in entries}


def _limit(task: Task) -> Limit:
    """A step has six gradients, each of which needs the one before."""
    return Limit("gradients of the steps", lambda: 6 * _own_steps(task) * gradient(task.problem))


def _own_steps(task: Task) -> int:
    return int(followed(task).dataset["solver_steps"].item())


def contests(quick: bool) -> Sequence[Contest]:
    sizes = QUICK if quick else FULL
    found = []
    for dim, goal in zip(sizes.dims, (2.0, 10.0), strict=True):
        bare, dense = (Task(dim, sizes.until, records, sizes.rtol) for records in (1, sizes.records))
        goals = {"diffrax Tsit5": goal}
        known = _entries(bare)
        entries = known["tutelage"], known["diffrax Tsit5"]
        found.append(Contest(f"d={dim}, the end only", entries, 1e-5, AT, goals=goals, limit=_limit(bare)))
        known = _entries(dense)
        if dim > 100:  # LSODA differences a Jacobian of as many columns as there are weights
            del known["SciPy LSODA"]
        found.append(
            Contest(
                f"d={dim}, {sizes.records} records",
                tuple(known.values()),
                1e-5,
                AT,
                goals=goals | {"torchdiffeq dopri5": 50.0},
                first={"diffrax Tsit5": 0.0},
                given=partial(_start, dense),
                limit=_limit(dense),
                headline=True,
            )
        )
    stiff = Task(sizes.dims[0], sizes.until, sizes.records, sizes.rtol)
    entries = (
        Entry("tutelage", partial(ours, stiff, "stiff"), needs=OWN),
        Entry("diffrax Kvaerno5", partial(diffrax, stiff, "Kvaerno5"), needs=("diffrax", *PEER)),
    )
    name = f"d={stiff.dim}, {stiff.records} records, stiff solver"
    goals, first = {"diffrax Kvaerno5": 20.0}, {"diffrax Kvaerno5": None}
    found.append(Contest(name, entries, 1e-5, AT, goals=goals, first=first, given=partial(_start, stiff)))
    return found


def _steps(task: Task) -> dict[str, int]:
    """That tutelage and diffrax take."""
    from tutelage.bench.peers import by_diffrax

    first, teacher = _start(task)
    solved = by_diffrax.solve(*map(jnp.asarray, (first, teacher, task.times)), task.rtol, "Tsit5")
    return {"tutelage": _own_steps(task), "diffrax Tsit5": int(solved.stats["num_steps"])}


def precision(quick: bool) -> Mapping[str, Any]:
    """Error against seconds: the largest error of an overlap at any record, over tolerances."""
    sizes = QUICK if quick else FULL
    tolerances = (1e-4, 1e-8) if quick else (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
    task = Task(sizes.dims[0], sizes.until, sizes.records, 1e-12)
    tell("flow: error against seconds")
    exact, second = scipy(task, "DOP853"), diffrax(task, "Tsit5")
    rows: list[dict[str, Any]] = []
    for rtol in tolerances:
        task = task._replace(rtol=rtol)
        known, steps = _entries(task), _steps(task)
        chosen = [known[name] for name in ("tutelage", "diffrax Tsit5", "SciPy DOP853")]
        errors = {entry.name: float(np.max(np.abs(entry.call() - exact))) for entry in chosen}
        taken = interleaved(chosen, Plan(repeat=3, patience=1.0))
        rows += [
            {"entry": name, "rtol": rtol, "error": errors[name], "steps": steps.get(name), **spread(taken[name])}
            for name in taken
        ]
    about = {"dim": task.dim, "until": task.until, "records": task.records}
    return {"work_precision": {**about, "references_apart": float(np.max(np.abs(exact - second))), "rows": rows}}


REASON = (
    "Of a call the part under *limit* are the gradients of its steps, one after the other; the rest is error control, "
    "the exact loss and all overlaps at every record, and what the host does for the start and the Dataset. The stiff "
    "solver stops at every record and so takes more than twice the steps of diffrax: the polynomial between its steps "
    "is of third order, and records that are read from it, as diffrax's are, are far less right than the steps. A "
    "first call compiles several programs, among them the careful form of the gradient near an optimum; plain diffrax "
    "has one."
)
CASE = Case("Gradient flow, 4 ReLU teachers, 8 ReLU students", contests, precision, REASON)
