"""The verbs: `flow`, `descend` and `sgd` run a problem and return a `Run`."""

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from tutelage._errors import BadInput, unknown
from tutelage.analysis.certificates import certify as certify_run
from tutelage.dynamics.base import AbstractDynamics
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.dynamics.descent import Descent, Truncation
from tutelage.dynamics.equivariance import check_lawful, vectors
from tutelage.dynamics.events import Crossings, Event
from tutelage.dynamics.flow import Flow
from tutelage.dynamics.loop import Limits, Loop, Progress
from tutelage.dynamics.online import Online
from tutelage.dynamics.random import MAX_STEPS, key_of
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.empirical import draw, empirical
from tutelage.oracle.population import population
from tutelage.problem.frame import settle
from tutelage.problem.mixture import Mixture
from tutelage.problem.networks import host_weights
from tutelage.problem.problem import Problem, Start
from tutelage.trajectory.dataset import to_dataset
from tutelage.trajectory.observables import Observe, chosen
from tutelage.trajectory.result import Run

if TYPE_CHECKING:
    from optax import GradientTransformation

Seeds = int | Sequence[int]
Data = int | tuple[ArrayLike, ArrayLike] | None
Record = int | Literal["all"] | ArrayLike


def descend(
    problem: Problem,
    *,
    step: float,
    steps: int,
    seeds: Seeds = 1,
    data: Data = None,
    schedule: Callable[[Any], Any] | None = None,
    truncation: Truncation | None = None,
    rates: Mapping[str, float | ArrayLike] | None = None,
    record: Record = 200,
    observables: tuple[str, ...] | None = None,
    observe: Observe | None = None,
    weights: bool = False,
    events: Sequence[Event] = (),
    crossings: Sequence[Crossings] = (),
    stop_loss: float = 0.0,
    stop_gradient: float = 1e-14,
    certify: bool = False,
    checkpoint: Checkpoint | str | Path | None = None,
    progress: Progress | None = None,
) -> Run:
    """Gradient descent, all seeds in one compiled batch.

    - `step`, `steps`: the step size and the number of updates; `schedule(n)` multiplies the step at update n.
    - `seeds`: how many (0, 1, ...), or which.
    - `data`: None for the exact population loss; a number of samples to draw for each seed; or arrays `(x, y)`.
    - `rates`: factors of the layers, such as `{"second": 0.1}`, or arrays of one factor a unit; a layer the student
      does not train stays fixed.
    - `truncation`: a `Truncation`; units whose squared norm is above its cap stand still.
    - `record`: how many log-spaced updates to record, "all", or the updates themselves.
    - `observables`: names to record (all the standard ones if None); `observe`: your own, `{"name": function of a
      Snapshot}`; `weights`: record the weights as well.
    - `events`: times to note, or to stop at; `crossings`: whole arrays of thresholds to note the times of.
    - `stop_loss`, `stop_gradient`: a run has converged when, at a recording time, its loss is at most `stop_loss` (if
      that is positive) or its gradient at most `stop_gradient` times the norm of the weights.
    - `certify`: check the reported numbers by an independent route; the result is in `run.certificate`.
    - `checkpoint`: a file in which a long run is kept between chunks. The same run asked for again with the same file
      goes on from there, after whatever stopped it, and ends bit-identical to one that was never stopped.

    ```python
    >>> import tutelage as tt
    >>> problem = tt.Problem(
    ...     inputs=tt.Gaussian(10**6),
    ...     teacher=tt.TwoLayer("linear", first=[[1.0]]),
    ...     student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-3), width=1, trains=("first",)),
    ... )
    >>> run = tt.descend(problem, step=0.5, steps=60, seeds=4)
    >>> bool((run.last("loss") < 1e-20).all())
    True

    ```
    """
    asked = dict(locals())
    _positive("step", step)
    _positive("steps", steps)
    if truncation is not None and isinstance(problem.student, Mixture):
        raise BadInput("truncation is for two-layer networks, but the student is a mixture; leave it out.")
    dynamics = Descent(
        jnp.asarray(float(step)), problem.student.rates(rates), problem.student.layers, schedule, truncation
    )
    stops = _whole_stops(record, int(steps))
    about: dict[str, Any] = {"dynamics": "descent", "step": float(step), "steps": int(steps)}
    if truncation is not None:
        about["truncation"] = str(truncation)
    return _execute(descend, asked, dynamics, stops, about, cap=int(steps) + 1)


def flow(
    problem: Problem,
    *,
    until: float,
    seeds: Seeds = 1,
    data: Data = None,
    rates: Mapping[str, float | ArrayLike] | None = None,
    record: Record = 200,
    first: float | None = None,
    observables: tuple[str, ...] | None = None,
    observe: Observe | None = None,
    weights: bool = False,
    events: Sequence[Event] = (),
    crossings: Sequence[Crossings] = (),
    stop_loss: float = 0.0,
    stop_gradient: float = 1e-14,
    solver: Literal["auto", "explicit", "stabilised", "stiff"] = "auto",
    rtol: float | None = None,
    max_steps: int = 1_000_000,
    certify: bool = False,
    checkpoint: Checkpoint | str | Path | None = None,
    progress: Progress | None = None,
) -> Run:
    """Gradient flow to time `until` (up to 1e8 and beyond), all seeds in one compiled batch.

    - `record`: how many log-spaced times to record, or the times themselves; `first`: the first of the log-spaced
      times after 0 (default `until / 1e6`, at most 0.01).
    - `solver`: "explicit" (Tsit5), "stabilised" (RKC2, explicit with long steps), "stiff" (Kvaerno5 with the exact
      Jacobian), or "auto": explicit, changed to stiff when the measured curvature asks for it; a mixture, or a network
      of more than 800 weights, is given to the stabilised solver.
    - `rtol`: relative error per step, 1e-8 if not given (1e-6 for a mixture).
    - `max_steps`: the cap on solver steps of a seed.
    - The other arguments are those of `descend`.

    ```python
    >>> import tutelage as tt
    >>> problem = tt.Problem(
    ...     inputs=tt.Gaussian(10**9),
    ...     teacher=tt.TwoLayer("linear", first=[[1.0]]),
    ...     student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-6), width=1, trains=("first",)),
    ... )
    >>> run = tt.flow(problem, until=20.0)
    >>> round(float(run.last("overlap").squeeze()), 6)
    1.0

    ```
    """
    asked = dict(locals())
    _positive("until", until)
    if solver not in ("auto", "explicit", "stabilised", "stiff"):
        raise unknown("solver", solver, ["auto", "explicit", "stabilised", "stiff"])
    start = _first_solver(problem, data) if solver == "auto" else solver
    rtol = (1e-6 if isinstance(problem.student, Mixture) else 1e-8) if rtol is None else rtol
    _positive("rtol", rtol)
    dynamics = Flow(jnp.asarray(float(rtol)), problem.student.rates(rates), problem.student.layers, start)
    stops = _time_stops(record, float(until), first)
    about = {"dynamics": "flow", "until": float(until), "rtol": float(rtol), "solver": solver}
    return _execute(flow, asked, dynamics, stops, about, cap=max_steps, auto=solver == "auto")


def sgd(
    problem: Problem,
    *,
    steps: int,
    batch: int,
    step: float | None = None,
    optimiser: "GradientTransformation | None" = None,
    seeds: Seeds = 1,
    law: Literal["exact", "direct"] = "exact",
    dtype: Literal["float64", "float32"] = "float64",
    schedule: Callable[[Any], Any] | None = None,
    rates: Mapping[str, float | ArrayLike] | None = None,
    record: Record = 200,
    observables: tuple[str, ...] | None = None,
    observe: Observe | None = None,
    weights: bool = False,
    events: Sequence[Event] = (),
    crossings: Sequence[Crossings] = (),
    stop_loss: float = 0.0,
    stop_gradient: float = 0.0,
    certify: bool = False,
    checkpoint: Checkpoint | str | Path | None = None,
    progress: Progress | None = None,
) -> Run:
    """Online SGD: a fresh batch of noisy examples at every update, exact in law, at a cost that does not grow with dim.

    Losses and gradients that are recorded are the exact population ones along the way.

    - `step`: the step size of plain SGD; or, in its place,
    - `optimiser`: a whole optimiser of optax, with its own step size, such as
      `optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1))`; time then counts updates. With law="exact" it must
      depend neither on the axes of input space nor on their number. Schedules, weight decay, momentum and scaling or
      clipping by norms (of all, of a layer) are permitted; Adam, signs and clipping of single entries are not. What is
      given is tried on random gradients, and refused if it is not permitted; with law="direct" all may be used.
    - `batch`: examples an update, from 1 up; their labels have the problem's `noise`.
    - `law`: "exact" keeps the few coordinates that matter and draws the rest in law; "direct" draws every example
      with its `dim` entries. Inner products of students and teachers have the same law in both. With "exact" the
      coordinates outside the teachers turn at every update: compare inner products, not coordinates (nor `view.start`).
    - `dtype`: the precision of the examples and of what is computed from them; weights and records are float64.
    - The other arguments are those of `descend`.

    ```python
    >>> import tutelage as tt
    >>> problem = tt.Problem(
    ...     inputs=tt.Gaussian(10**8),
    ...     teacher=tt.TwoLayer("linear", first=[[1.0]]),
    ...     student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-9), width=1, trains=("first",)),
    ... )
    >>> run = tt.sgd(problem, step=1e-8, steps=10, batch=1)
    >>> bool(run.last("loss")[0] < run.loss[0, 0])
    True

    ```
    """
    asked = dict(locals())
    _positive("steps", steps)
    if steps > MAX_STEPS:
        raise BadInput(f"steps is {steps}, but there are random numbers for {MAX_STEPS} updates; use fewer.")
    if isinstance(batch, bool) or not isinstance(batch, (int, np.integer)) or batch < 1:
        raise BadInput(f"batch is {batch!r}, but a whole number of examples from 1 up was expected.")
    if law not in ("exact", "direct"):
        raise unknown("law", law, ["exact", "direct"])
    if dtype not in ("float64", "float32"):
        raise unknown("dtype", dtype, ["float64", "float32"])
    size = _step_or_optimiser(step, optimiser, schedule)
    outside = _outside(problem, law, optimiser)
    dynamics = Online(
        step_size=jnp.asarray(size),
        rates=problem.student.rates(rates),
        noise=jnp.asarray(float(problem.noise)) if problem.noise else None,
        outside=jnp.asarray(float(outside)) if outside else None,
        trains=problem.student.layers,
        batch=int(batch),
        schedule=schedule,
        precision=dtype,
        optimiser=optimiser,
    )
    stops = _whole_stops(record, int(steps))
    how = {"step": size} if optimiser is None else {"optimiser": "optax"}
    about = {"dynamics": "sgd", **how, "steps": int(steps), "batch": int(batch), "law": law, "dtype": dtype}
    return _execute(sgd, asked, dynamics, stops, about, cap=int(steps) + 1)


def _execute(
    verb: Callable[..., Run],
    asked: dict[str, Any],
    dynamics: AbstractDynamics,
    stops: NDArray[np.floating],
    about: dict[str, Any],
    *,
    cap: int,
    auto: bool = False,
) -> Run:
    """Run what `verb` was asked for, by `dynamics`, recording at `stops`."""
    began = time.perf_counter()
    problem, seeds = asked["problem"], _seed_list(asked["seeds"])
    measured = chosen(
        problem, asked["observables"], asked["observe"] or {}, weights=asked["weights"] or asked["certify"]
    )
    start, oracle, batched = _stage(problem, seeds, asked.get("data"), asked.get("law"), asked.get("optimiser"))
    loop = Loop(
        dynamics,
        oracle,
        batched=batched,
        teacher=start.teacher,
        start=start.student,
        stops=stops,
        observables=tuple((o.name, o.measure) for o in measured),
        events=asked["events"],
        crossings=asked["crossings"],
        limits=Limits(jnp.asarray(asked["stop_loss"]), jnp.asarray(asked["stop_gradient"]), jnp.asarray(cap)),
        auto=auto,
        keys=np.stack([key_of(seed) for seed in seeds]),
        identity=_identity(about, seeds, stops, (dynamics, start), [o.name for o in measured]),
    )
    loop.finish(asked["progress"], about["dynamics"], _kept_in(asked["checkpoint"]))
    settings = about | {
        "dim": problem.inputs.dim,
        "noise": float(problem.noise),
        "samples": _samples(asked.get("data")),
    }
    run = Run(
        dataset=_gather(loop, measured, seeds, settings),
        stopped=loop.final_reasons(),
        teacher=start.teacher,
        start=start.student,
        final=loop.state.moment.weights,
        oracle=oracle,
        batched=batched,
        seconds=time.perf_counter() - began,
        asked=asked,
        verb=verb,
    )
    return dataclasses.replace(run, certificate=certify_run(run)) if asked["certify"] else run


def _identity(about: dict[str, Any], seeds: list[int], stops: NDArray, moves: tuple, names: list[str]) -> str:
    """What makes a run this one and no other, as a hash: how it moves and from where (`moves`), what it records."""
    text = json.dumps([about, seeds, names], sort_keys=True, default=str).encode()
    arrays = (stops, *(np.asarray(leaf) for leaf in jax.tree.leaves(moves)))
    return hashlib.sha256(b"".join([text, *(array.tobytes() for array in arrays)])).hexdigest()[:16]


def _kept_in(checkpoint: Checkpoint | str | Path | None) -> Checkpoint | None:
    return checkpoint if isinstance(checkpoint, Checkpoint) or checkpoint is None else Checkpoint(checkpoint)


def _first_solver(problem: Problem, data: Data) -> str:
    """Where no Hessian can be afforded, long runs need stages in place of factorisations."""
    student, vectors = problem.student, problem.student.rows + problem.teacher.rows
    columns = min(vectors, problem.inputs.dim) if data is None else problem.inputs.dim
    weights = student.rows * columns + student.width * student.outputs
    return "stabilised" if isinstance(student, Mixture) or weights > Loop.LARGEST_HESSIAN else "explicit"


def _stage(
    problem: Problem,
    seeds: list[int],
    data: Data,
    law: str | None = None,
    optimiser: "GradientTransformation | None" = None,
) -> tuple[Start, AbstractOracle, bool]:
    """Starting weights of every seed, and the oracle (`batched` when each seed draws its own samples)."""
    starts = [problem.begin(seed, full=data is not None or law == "direct") for seed in seeds]
    if law == "exact":
        kept = _kept(problem, starts[0], optimiser)
        starts = [_settled(problem, start, kept) for start in starts]
    teacher = jax.tree.map(jnp.asarray, starts[0].teacher)
    start = Start(teacher, _stacked([start.student for start in starts]))
    if data is None:
        return start, population(problem, teacher), False
    if isinstance(data, int):
        _positive("data", data)
        return start, _stacked([draw(problem, starts[0].teacher, data, seed) for seed in seeds]), True
    x, y = (np.asarray(part, float) for part in data)
    if x.ndim != 2 or x.shape[1] != problem.inputs.dim:
        raise BadInput(f"data: x has shape {x.shape}, but (samples, {problem.inputs.dim}) was expected.")
    return start, empirical(problem, x, y), False


def _settled(problem: Problem, start: Start, kept: int) -> Start:
    """The start in coordinates that online SGD does not leave, with room for `kept` further vectors a unit."""
    rows = np.asarray(start.student.first)
    room = np.concatenate([rows, np.zeros((kept * len(rows), rows.shape[1]))])
    teacher, student = settle(problem.inputs.dim, np.asarray(start.teacher.first), room)
    return Start(host_weights(teacher, start.teacher.second), host_weights(student[: len(rows)], start.student.second))


def _kept(problem: Problem, start: Start, optimiser: "GradientTransformation | None") -> int:
    """How many vectors in input space an optimiser keeps for each unit, such as its momentum."""
    return sum(vectors(optimiser, _training(problem, start))) if optimiser else 0


def _training(problem: Problem, start: Start) -> dict[str, Any]:
    """The layers that an optimiser is given."""
    return {layer: jnp.asarray(getattr(start.student, layer)) for layer in problem.student.layers}


def _outside(problem: Problem, law: str, optimiser: "GradientTransformation | None") -> int:
    """How many dimensions the frame of online SGD leaves out; refuses an optimiser that does not permit it."""
    if law == "direct":
        return 0
    start = problem.begin(0)
    if optimiser is not None:
        check_lawful(optimiser, {name: leaf.shape for name, leaf in _training(problem, start).items()})
    settled = _settled(problem, start, _kept(problem, start, optimiser))
    return problem.inputs.dim - settled.student.first.shape[1]


def _step_or_optimiser(step: float | None, optimiser: Any, schedule: Any) -> float:
    """The step size, which is 1 update of time for an optimiser with a step size of its own."""
    if optimiser is None:
        if step is None:
            raise BadInput("sgd got neither a step nor an optimiser; pass one of them, such as step=0.1.")
        _positive("step", step)
        return float(step)
    if step is not None or schedule is not None:
        raise BadInput("An optimiser has its own step and schedule; leave out step and schedule, or the optimiser.")
    if not (callable(getattr(optimiser, "init", None)) and callable(getattr(optimiser, "update", None))):
        raise BadInput(f"optimiser is {optimiser!r}, but one of optax was expected, such as optax.sgd(0.1).")
    return 1.0


def _stacked(trees: list[Any]) -> Any:
    """Equal trees to one with a leading seed axis."""
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *trees)


def _gather(loop: Loop, measured, seeds: list[int], settings: dict[str, Any]) -> xr.Dataset:
    rows = {name: np.concatenate([row[name] for row in loop.rows], axis=1) for name in loop.rows[0]}
    count = rows["_time"].shape[1]
    clock = loop.stops[:count]
    times = np.where(rows["_reached"], rows["_time"], -np.inf).max(0)
    extra = {
        "stopped": xr.Variable("seed", [reason.name.lower() for reason in loop.final_reasons()]),
        "stop_time": xr.Variable(
            "seed", np.asarray(loop.state.moment.time), {"long_name": "time at which the run ended"}
        ),
        "recorded": xr.Variable("seed", rows["_reached"].sum(1), {"long_name": "number of recorded times"}),
        "solver_steps": xr.Variable("seed", np.asarray(loop.state.steps), {"long_name": "steps taken"}),
    }
    if loop.events:
        extra["event_time"] = xr.Variable(("seed", "event"), loop.event_times, {"long_name": "time of the event"})
        extra["event"] = xr.Variable("event", [event.name for event in loop.events])
    for crossing, crossed in zip(loop.crossings, loop.state.crossed, strict=True):
        about = {"long_name": crossing.long_name or f"time of {crossing.name}"}
        extra[crossing.name] = xr.Variable(("seed", *crossing.dims), np.asarray(crossed), about)
    settings = settings | {"solver": getattr(loop.dynamics, "solver", settings["dynamics"])}
    return to_dataset(
        rows, measured, seeds=np.asarray(seeds), clock=clock, time=times, extra=extra, settings=settings
    )  # fmt: skip


def _seed_list(seeds: Seeds) -> list[int]:
    numbers = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not numbers:
        raise BadInput(f"seeds is {seeds!r}, but at least one seed is needed.")
    return numbers


def _samples(data: Data) -> int:
    if data is None:
        return 0
    return data if isinstance(data, int) else len(np.asarray(data[1]))


def _positive(name: str, value: float) -> None:
    if not (value > 0 and np.isfinite(value)):
        raise BadInput(f"{name} is {value}, but a finite number above 0 was expected.")


def _whole_stops(record: Record, steps: int) -> NDArray[np.floating]:
    if isinstance(record, str):
        if record != "all":
            raise BadInput(f"record is {record!r}; pass a number of points, 'all', or the updates to record.")
        return np.arange(steps + 1.0)
    if isinstance(record, int):
        return np.unique(np.concatenate([[0.0], np.round(np.geomspace(1, steps, max(record, 2)))]))
    return _given_stops(record, steps)


def _time_stops(record: Record, until: float, first: float | None) -> NDArray[np.floating]:
    if isinstance(record, str):
        raise BadInput("record='all' is for descent; a flow records a number of log-spaced times, or given times.")
    if isinstance(record, int):
        begin = min(until / 1e6, 0.01) if first is None else first
        return np.concatenate([[0.0], np.geomspace(begin, until, max(record, 2))])
    return _given_stops(record, until)


def _given_stops(record: ArrayLike, end: float) -> NDArray[np.floating]:
    stops = np.unique(np.asarray(record, float))
    if not len(stops) or stops[0] < 0 or stops[-1] > end or not np.all(np.isfinite(stops)):
        raise BadInput(f"record must hold numbers between 0 and {end:g}.")
    return np.union1d(stops, [0.0, end])
