"""The verbs: `run` does to a problem what a dynamics says; `flow`, `descend` and `sgd` are its short forms.

Each loads its dynamics when it is called, and all that makes a result of a run: to name a verb is quick.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from tutelage._checks import flag, function, instance, one_of, real, whole
from tutelage._errors import BadInput
from tutelage._progress import reporting
from tutelage.dynamics.base import AbstractDynamics
from tutelage.dynamics.checkpoint import Checkpoint, checkpoint_at
from tutelage.dynamics.record import Record, Stop, When, recorded
from tutelage.problem.problem import AbstractProblem, Problem, Start
from tutelage.store.store import Store, current_store
from tutelage.trajectory.asked import Asked, Stage, plan_of, seed_list

if TYPE_CHECKING:
    from optax import GradientTransformation

    from tutelage.analysis.atlas import Atlas
    from tutelage.analysis.comparing import Compared, Moves
    from tutelage.dynamics.descent import Schedule, Truncation
    from tutelage.dynamics.driver import Progress
    from tutelage.dynamics.staging import Data
    from tutelage.problem.clusters import Clustered
    from tutelage.problem.routers import Router
    from tutelage.problem.units import Experts
    from tutelage.trajectory.findings import Certificate
    from tutelage.trajectory.result import Run

Seeds = int | Sequence[int]
Rates = Mapping[str, float | ArrayLike]


def run(
    problem: AbstractProblem,
    dynamics: AbstractDynamics | Sequence[Stage],
    *,
    seeds: Seeds = 1,
    record: "Record | When | None" = None,
    stop: Stop | None = None,
    start: Start | None = None,
    certify: bool = False,
    store: Store | str | Path | None = None,
    fresh: bool = False,
    checkpoint: Checkpoint | str | Path | None = None,
    progress: "Progress | None" = None,
) -> "Run":
    """Do to a problem what a dynamics says, or several stages one after the other.

    - `seeds`: how many (0, 1, ...), or which; all run in one compiled batch.
    - `record`: a `Record` (what, and when), or only how many log-spaced moments, "all", or the moments themselves.
    - `stop`: a `Stop`, when it may end before its horizon.
    - `start`: teacher and students in common coordinates, in place of the problem's own start.
    - `certify`: check the reported numbers by an independent route; the result is in `run.certificate`.
    - `store`: a folder of runs. A run that is there is read; one that was begun goes on; else it is computed and kept.
    - `fresh`: compute it even if the store has it; both must agree, bit for bit. What is damaged there is put aside.
    - `checkpoint`: without a store, a file in which a long run is kept between chunks. The same run asked for again
      with the same file goes on from there, after whatever stopped it, and ends bit-identical to one that was never
      stopped.
    - `progress(label, done, total)`: is told how far it is. Without it a bar appears at a terminal after a second.

    ```python
    >>> import tutelage as tt
    >>> problem = tt.Problem(
    ...     inputs=tt.Gaussian(10**6),
    ...     teacher=tt.TwoLayer("linear", first=[[1.0]]),
    ...     student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-3), width=1, trains=("first",)),
    ... )
    >>> run = tt.run(problem, tt.Descent(step=0.5, steps=60), seeds=4, stop=tt.Stop(loss=1e-12))
    >>> {reason.name for reason in run.stopped}
    {'CONVERGED'}

    ```
    """
    ends = Stop() if stop is None else stop
    asked = Asked(problem, plan_of(dynamics), seed_list(seeds), recorded(record), ends, start)
    return ask(asked, certify=certify, store=store, fresh=fresh, checkpoint=checkpoint, progress=progress)


def go_on(
    run: "Run",
    stage: Stage,
    *,
    certify: bool = False,
    store: Store | str | Path | None = None,
    fresh: bool = False,
    checkpoint: Checkpoint | str | Path | None = None,
    progress: "Progress | None" = None,
) -> "Run":
    """A further stage from the end of a finished run: prune and fine-tune, switch the teacher, change the step.

    ```python
    >>> import tutelage as tt
    >>> problem = tt.Problem(
    ...     inputs=tt.Gaussian(10**6),
    ...     teacher=tt.TwoLayer("linear", first=[[1.0]]),
    ...     student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-3), width=1, trains=("first",)),
    ... )
    >>> half = tt.descend(problem, step=0.5, steps=5)
    >>> more = tt.go_on(half, tt.Stage("fine", tt.Flow(until=5.0)))
    >>> bool(more.loss[0, 0] == half.last("loss")[0])
    True

    ```
    """
    from tutelage.trajectory.result import Run

    instance("go_on: run", run, Run, "a run, such as tt.run gives,")
    begin = instance("go_on: stage", stage, Stage, "a tt.Stage").entered(run.handover)
    asked = Asked(
        begin.problem, stage.dynamics, begin.seeds, stage.record or Record(), stage.stop or Stop(), begin.start
    )
    return ask(asked, certify=certify, store=store, fresh=fresh, checkpoint=checkpoint, progress=progress)


def ask(
    asked: Asked,
    *,
    certify: bool = False,
    store: Store | str | Path | None = None,
    checkpoint: Checkpoint | str | Path | None = None,
    progress: "Progress | None" = None,
    told: Callable[[str], None] | None = None,
    fresh: bool = False,
    finish: "Callable[[Run], Run] | None" = None,
    certifier: "Callable[[Run], Certificate] | None" = None,
) -> "Run":
    """The run that was asked for: computed or, with a store, fetched from it (see `store.fetching.fetch`)."""
    from tutelage.trajectory.running import perform

    if progress is not None:
        function("progress", progress, "(label, done, total)")
    flag("fresh", fresh)
    if flag("certify", certify) and isinstance(asked.plan, AbstractDynamics):
        # With the weights, so that it need not be run again to be checked.
        asked = dataclasses.replace(asked, record=dataclasses.replace(asked.record, weights=True))

    def finished(run: "Run") -> "Run":
        run = finish(run) if finish else run
        return (
            run.with_findings(certificate=(certifier or certified)(run)) if certify and run.certificate is None else run
        )

    place = current_store() if store is None else store if isinstance(store, Store) else Store(store)
    with reporting(progress, asked.label) as heard:
        if place is None or checkpoint is not None:
            return finished(perform(asked, progress=heard, checkpoint=checkpoint_at(checkpoint)))
        done = place.fetch(asked, progress=heard, told=told, fresh=fresh, finish=finished)
    # A run with its weights may have been asked for before without a certificate.
    return (
        done.with_findings(certificate=(certifier or certified)(done)) if certify and done.certificate is None else done
    )


def certified(run: "Run") -> "Certificate":
    """The run's certificate."""
    from tutelage.analysis.certificates import certify

    return certify(run)


def descend(
    problem: Problem,
    *,
    steps: int,
    step: float | None = None,
    optimiser: "GradientTransformation | None" = None,
    space: Literal["frame", "full"] = "frame",
    data: "Data" = None,
    schedule: "Schedule | None" = None,
    truncation: "Truncation | None" = None,
    rates: "Rates | None" = None,
    seeds: Seeds = 1,
    record: "Record | When | None" = None,
    stop: Stop | None = None,
    certify: bool = False,
    store: Store | str | Path | None = None,
    fresh: bool = False,
    checkpoint: Checkpoint | str | Path | None = None,
    progress: "Progress | None" = None,
) -> "Run":
    """Gradient descent: `run` with a `Descent` of step size `step` or, with an `optimiser` of optax, an `Optimised`.

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
    return run(
        problem, _descent(step, steps, optimiser, space, data, schedule, truncation, rates), seeds=seeds, record=record,
        stop=stop, certify=certify, store=store, fresh=fresh, checkpoint=checkpoint, progress=progress,
    )  # fmt: skip


def _descent(
    step: float | None,
    steps: int,
    optimiser: "GradientTransformation | None",
    space: Literal["frame", "full"],
    data: "Data",
    schedule: "Schedule | None",
    truncation: "Truncation | None",
    rates: Rates | None,
) -> AbstractDynamics:
    """Plain descent, or that of an optimiser; what cannot go together is refused."""
    if optimiser is None:
        from tutelage.dynamics.descent import Descent

        if step is None:
            raise BadInput("descend got neither a step nor an optimiser; pass one of them, such as step=0.1.")
        if space != "frame":
            raise BadInput('descend: space="full" is for optimisers; plain descent is the same in a few coordinates.')
        return Descent(step, steps, data, schedule, truncation, rates)
    from tutelage.dynamics.optimised import Optimised

    if (step, schedule, truncation) != (None, None, None):
        raise BadInput("An optimiser has its own step; leave out step, schedule and truncation, or the optimiser.")
    return Optimised(optimiser, steps, space, data, rates)


def flow(
    problem: Problem,
    *,
    until: float,
    rtol: float | None = None,
    solver: Literal["auto", "explicit", "stabilised", "stiff"] = "auto",
    data: "Data" = None,
    rates: "Rates | None" = None,
    seeds: Seeds = 1,
    record: "Record | When | None" = None,
    stop: Stop | None = None,
    certify: bool = False,
    store: Store | str | Path | None = None,
    fresh: bool = False,
    checkpoint: Checkpoint | str | Path | None = None,
    progress: "Progress | None" = None,
) -> "Run":
    """Gradient flow to time `until` (up to 1e8 and beyond): `run` with a `Flow`.

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
    from tutelage.dynamics.flow import Flow

    return run(
        problem, Flow(until, rtol, solver, data, rates), seeds=seeds, record=record, stop=stop,
        certify=certify, store=store, fresh=fresh, checkpoint=checkpoint, progress=progress,
    )  # fmt: skip


def sgd(
    problem: Problem,
    *,
    steps: int,
    batch: int,
    step: float | None = None,
    optimiser: "GradientTransformation | None" = None,
    law: Literal["exact", "direct"] = "exact",
    dtype: Literal["float64", "float32"] = "float64",
    schedule: "Schedule | None" = None,
    rates: "Rates | None" = None,
    seeds: Seeds = 1,
    record: "Record | When | None" = None,
    stop: Stop | None = None,
    certify: bool = False,
    store: Store | str | Path | None = None,
    fresh: bool = False,
    checkpoint: Checkpoint | str | Path | None = None,
    progress: "Progress | None" = None,
) -> "Run":
    """Online SGD, exact in law, at a cost that does not grow with dim: `run` with an `Sgd`.

    Losses and gradients that are recorded are the exact population ones along the way.

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
    from tutelage.dynamics.online import Sgd

    return run(
        problem, Sgd(steps, batch, step, optimiser, law, dtype, schedule, rates), seeds=seeds, record=record,
        stop=stop, certify=certify, store=store, fresh=fresh, checkpoint=checkpoint, progress=progress,
    )  # fmt: skip


def observe(
    problem: Problem,
    first: ArrayLike,
    second: ArrayLike | None = None,
    *,
    times: ArrayLike | None = None,
    biases: ArrayLike | None = None,
    record: "Record | When | None" = None,
    store: Store | str | Path | None = None,
    fresh: bool = False,
) -> "Run":
    """What a student did that was trained elsewhere, such as by a loop in PyTorch: `run` with a `Given`.

    Its weights over time, with a leading axis if there are several seeds, become a run like any other: losses and
    gradients are the exact population ones, and it is drawn, measured, judged and kept as others are.

    - `first`: (time, unit, dim) or (seed, time, unit, dim); `second`: (..., unit, output), the problem's own if None.
    - `times`: when the student was there; 0, 1, 2, ... if None.
    - `biases`: (time, unit) or (seed, time, unit), of a student that has them.

    ```python
    >>> import numpy as np, tutelage as tt
    >>> teacher = tt.TwoLayer("relu", first=[[1.0, 0.0]])
    >>> problem = tt.Problem(tt.Gaussian(2), teacher, tt.TwoLayer("relu", first=tt.GaussianRows(0.1), width=1))
    >>> angle = np.linspace(np.pi / 2, 0.0, 5)
    >>> turned = np.stack([np.cos(angle), np.sin(angle)], axis=-1)[:, None]
    >>> seen = tt.observe(problem, turned, np.ones((5, 1, 1)), times=[0, 1, 2, 5, 9])
    >>> seen.overlap_angle.squeeze().round(3).values.tolist()
    [1.571, 1.178, 0.785, 0.393, 0.0]

    ```
    """
    from tutelage.dynamics.given import Given

    given = Given(first, second, times, biases)
    seeds = 1 if np.ndim(given.first) == 3 else np.shape(given.first)[0]
    return run(problem, given, seeds=seeds, record=record, store=store, fresh=fresh)


def spherical(
    problem: "Clustered | Problem",
    experts: "Experts | None" = None,
    *,
    samples: int,
    step: float,
    theta: "ArrayLike | None" = None,
    router: "Router | None" = None,
    weighted: bool = False,
    loss: Literal["correlation", "squared"] = "correlation",
    batch: int = 1,
    precision: Literal["float64", "float32"] = "float64",
    phase: int = 1,
    seeds: Seeds = 1,
    record: "Record | When | None" = None,
    stop: Stop | None = None,
    store: Store | str | Path | None = None,
    fresh: bool = False,
    checkpoint: Checkpoint | str | Path | None = None,
    progress: "Progress | None" = None,
) -> "Run":
    """SGD on the sphere: of a `tt.Problem`, `run` with a `Sphere`, one sample at a time and exact in law at any dim;
    of clustered inputs, `run` with a `Spherical`. `experts`: who learns, if the clustered problem does not say.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.problem.clusters import antipodal
    >>> tasks = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
    >>> run = tt.spherical(tt.Clustered(antipodal(20, 3.0), tasks), tt.Experts(1, 4), samples=20_000, step=1e-3)
    >>> run.overlap.dims
    ('seed', 'time', 'expert', 'unit', 'row')
    >>> teacher = tt.TwoLayer("he3", first=[[1.0]])
    >>> student = tt.TwoLayer("he3", first=tt.SphereRows(1.0), second="ones", width=1, trains=("first",))
    >>> run = tt.spherical(tt.Problem(tt.Gaussian(10**6), teacher, student), samples=1000, step=1e-8)
    >>> run.overlap.dims
    ('seed', 'time', 'student', 'teacher')

    ```
    """
    from tutelage.dynamics.sphere import Sphere
    from tutelage.dynamics.spherical import Spherical
    from tutelage.problem.clusters import Clustered

    instance("spherical: problem", problem, (Clustered, Problem), "a tt.Problem or a tt.Clustered")
    moves: AbstractDynamics
    if isinstance(problem, Problem):
        given = (experts, theta, router, weighted, batch, precision, phase)
        if given != (None, None, None, False, 1, "float64", 1):
            raise BadInput(
                "spherical: experts, theta, router, weighted, batch, precision and phase are for clustered inputs; "
                "leave them out for a tt.Problem, or use tt.sgd for batches."
            )
        moves = Sphere(samples, step, loss)
    else:
        problem = problem if experts is None else problem.taught_to(experts)
        moves = Spherical(samples, step, theta, router, weighted, loss, batch, precision, phase)
    return run(
        problem, moves, seeds=seeds, record=record, stop=stop, store=store, fresh=fresh, checkpoint=checkpoint,
        progress=progress,
    )  # fmt: skip


def atlas(
    problem: Problem,
    starts: int = 1000,
    *,
    seed: int = 0,
    until: float = 1e4,
    by: Literal["flow", "newton"] = "flow",
    prove: bool = False,
    store: Store | str | Path | None = None,
    progress: "Progress | None" = None,
) -> "Atlas":
    """The stationary points of a two-layer problem's exact loss, from many starts of its own law.

    Each is polished by Newton's method to a gradient of 1e-13, its index is that of the exact Hessian in all input
    dimensions, and points that differ by the order and signs of units only are one. The result prints as a table, with
    symmetry types and with intervals for the frequencies, and `.plot()` draws it.

    - `starts`: the seeds `seed`, `seed + 1`, ...; an atlas of more starts takes up the runs of one with fewer.
    - `by`: "flow" follows a gradient flow to time `until`, so that a frequency is the chance of a basin; "newton"
      solves for zeros of the gradient from the starts themselves and so finds saddles too, whose frequencies are those
      of the solver.
    - `prove`: prove each point by `tt.prove.stationary`: the table has a column with its index, or with *no*, and
      `place.proved` has the point, or the sentence that says why not.
    - `store`: a folder in which the flows are kept: one that was stopped goes on, one that is there is read.

    ```python
    >>> import numpy as np, tutelage as tt
    >>> student = tt.TwoLayer("relu", first=tt.GaussianRows(0.7), width=2, trains=("first",))
    >>> problem = tt.Problem(tt.Gaussian(2), tt.TwoLayer("relu", first=np.eye(2)), student)
    >>> found = tt.atlas(problem, starts=20)
    >>> [(place.title, place.isotropy.name, place.count) for place in found.places]
    [('global minimum', 'S2', 20)]

    ```
    """
    from tutelage.analysis.atlas import explore

    count, first = whole("atlas: starts", starts, least=1), whole("atlas: seed", seed)
    until = real("atlas: until", until, above=0)
    one_of("atlas: by", by, ["flow", "newton"])
    instance("atlas: problem", problem, Problem, "a tt.Problem")
    return explore(
        problem,
        range(first, first + count),
        lambda asked: ask(asked, store=store, progress=progress),
        until=until,
        by=by,
        prove=prove,
    )


def compare(
    problem: AbstractProblem | Callable[[int], AbstractProblem],
    dynamics: "Mapping[str, Moves] | Sequence[AbstractDynamics]",
    *,
    dims: Sequence[int] | None = None,
    finer: Sequence[int] | None = None,
    seeds: Seeds = 8,
    record: "Record | When | None" = 400,
    stop: Stop | None = None,
    store: Store | str | Path | None = None,
    progress: "Progress | None" = None,
) -> "Compared":
    """The same problem by several dynamics, from the same starts: how far they are from the first of them.

    The result prints as a table of distances, `.plot()` overlays the losses, and `.runs` has the runs. Time is that of
    a flow: `n` updates of a step last `n` times the step.

    - `dynamics`: a list such as `[tt.Flow(50.0), tt.Descent(0.1, 500)]`, or a dictionary with names of your own.
    - `dims`: compare in each of these input dimensions; the problem is then a function of the dimension, and so may
      dynamics be. `finer`: compare with steps (of SGD's limit, rates) so many times smaller. With three values or more
      there is an exponent with its interval: how the distance shrinks.

    ```python
    >>> import tutelage as tt
    >>> teacher = tt.TwoLayer("erf", first=[[1.0]])
    >>> student = tt.TwoLayer("erf", first=tt.SphereRows(0.3), width=1, trains=("first",))
    >>> problem = tt.Problem(tt.Gaussian(10**6), teacher, student)
    >>> found = tt.compare(problem, [tt.Flow(until=10.0), tt.Descent(step=0.5, steps=20)], finer=[1, 2, 4], seeds=3)
    >>> abs(found.exponents["descent"].estimates["b"] + 1) < 0.1  # descent is a flow up to the order of its step
    True

    ```
    """
    from tutelage.analysis.comparing import cases, compared

    def asked(problem: AbstractProblem, moves: AbstractDynamics) -> "Run":
        return run(problem, moves, seeds=seeds, record=record, stop=stop, store=store, progress=progress)

    return compared(cases(problem, dynamics, dims, finer), asked)
