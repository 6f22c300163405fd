"""The verb `spherical`: normalised SGD of experts on clustered inputs, from a problem to a Dataset."""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from tutelage._errors import BadInput
from tutelage.dynamics.blocks import Rule
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.dynamics.driver import Progress
from tutelage.dynamics.spherical import SEGMENT, Course, Learner
from tutelage.dynamics.streams import stream
from tutelage.problem.clusters import Clustered
from tutelage.problem.frame import stream as weights_of
from tutelage.problem.routers import Router
from tutelage.problem.units import Experts
from tutelage.trajectory.dataset import provenance
from tutelage.trajectory.result import Run

_WEIGHTS = 10  # the stream of a seed's starting weights


def spherical(
    problem: Clustered,
    experts: Experts,
    *,
    samples: int,
    step: float,
    seeds: int | Sequence[int] = 1,
    theta: ArrayLike | None = None,
    router: Router | None = None,
    weighted: bool = False,
    loss: Literal["correlation", "squared"] = "correlation",
    batch: int = 1,
    precision: Literal["float64", "float32"] = "float64",
    record: int = 48,
    phase: int = 1,
    checkpoint: Checkpoint | str | Path | None = None,
    progress: Progress | None = None,
) -> Run:
    """SGD on the sphere: each neuron takes a step of the tangent gradient and is normalised, sample by sample.

    It is run in exact blocks of matrix products, some 25 times as fast as a loop; the result is that of the loop.

    - `step`: what multiplies `y a s'(u) (x - u w)`; with `loss="squared"` the label is less the network's output.
    - `theta`, `router`: which expert sees which sample, as `tt.Threshold()` or `tt.Top1()`; without them all see all.
      `weighted`: gates scale the step too.
    - `batch`: samples an update, a divisor of 64. Batches of routed experts end with a segment of 8192 samples.
    - `record`: how many log-spaced records; they fall on whole segments. `phase`: the number of the stream of samples.
    - `checkpoint`: a file in which a long run is kept; the same run asked for again goes on from there, bit by bit.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.problem.clusters import antipodal
    >>> tasks = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
    >>> run = tt.spherical(tt.Clustered(antipodal(20, 3.0), tasks), tt.Experts(1, 4), samples=20_000, step=1e-3)
    >>> run.overlap.dims
    ('seed', 'time', 'expert', 'unit', 'row')

    ```
    """
    began = time.perf_counter()
    if not (np.isfinite(step) and step > 0 and samples >= 1):
        raise BadInput(f"spherical: step is {step} and samples {samples}, but both must be above 0.")
    numbers = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    learners = [
        _learner(problem, experts, seed, phase, precision, theta, router, weighted) for seed in numbers
    ]  # fmt: skip
    asked = {
        "dynamics": "spherical", "dim": problem.inputs.dim, "samples": samples, "step": step, "loss": loss,
        "batch": batch, "precision": precision, "phase": phase, "router": str(router), "experts": str(experts),
    }  # fmt: skip
    rule = Rule(jnp.asarray(float(step)), jnp.asarray(1 / experts.width), loss, batch)
    stops = np.geomspace(SEGMENT, max(samples, 2 * SEGMENT), record)
    course = Course(learners, rule, samples, stops, watched(problem), _identity(asked, numbers, record, learners))
    kept = checkpoint if isinstance(checkpoint, Checkpoint) or checkpoint is None else Checkpoint(checkpoint)
    if kept:
        kept.resume(course)
    course.finish(progress, "spherical SGD", kept)
    if kept:
        kept.ended(course)
    return Run(_dataset(problem, course, numbers, asked), time.perf_counter() - began)


def watched(problem: Clustered) -> Callable[[Learner], dict[str, Any]]:
    """What is recorded of learners: overlaps with the frame."""
    frame = jnp.asarray(problem.frame)

    def watch(learner: Learner) -> dict[str, Any]:
        return {"overlap": jnp.asarray(learner.first[..., : frame.shape[1]], float) @ frame.T}

    return watch


def rows_of(problem: Clustered) -> list[str]:
    """Names of the frame's rows: `w1`, ..., `wg`, `v1`, ..."""
    return [*problem.tasks, *(f"v{c + 1}" for c in range(problem.inputs.count))]


def best_of(overlap: xr.DataArray, problem: Clustered) -> xr.DataArray:
    """The largest |overlap| of an expert's neurons with each task, `w1 ... wg`."""
    best = abs(overlap.sel(row=list(problem.tasks))).max("unit").rename(row="task")
    return best.assign_attrs(long_name="largest |overlap| of an expert's neurons")


def _learner(problem, experts, seed, phase, precision, theta, router, weighted) -> Learner:
    units, first = experts.draw(weights_of(seed, _WEIGHTS), problem.inputs.dim)
    rows = None if theta is None else jnp.asarray(theta, float)
    if rows is not None and rows.shape != (experts.count, problem.inputs.dim):
        wanted = (experts.count, problem.inputs.dim)
        raise BadInput(f"spherical: theta has shape {rows.shape}, but (experts, dim) = {wanted} was expected.")
    data = stream(problem, seed, phase, precision)
    return Learner(data, units, jnp.asarray(first, precision), rows, router, weighted)


def _identity(asked: dict[str, Any], seeds: list[int], record: int, learners: list[Learner]) -> str:
    text = json.dumps([asked, seeds, record], sort_keys=True, default=str).encode()
    arrays = (np.asarray(leaf) for leaf in jax.tree.leaves(learners))
    return hashlib.sha256(b"".join([text, *(array.tobytes() for array in arrays)])).hexdigest()[:16]


def _dataset(problem: Clustered, course: Course, seeds: list[int], asked: dict[str, Any]) -> xr.Dataset:
    axes = ("seed", "time", "expert", "unit", "row")
    first = np.stack([np.asarray(each.first) for each in course.learners])
    data = xr.Dataset(
        {
            "overlap": (axes, course.records()["overlap"], {"long_name": "overlap of neurons with the frame"}),
            "weights": (("seed", "expert", "unit", "input"), first),
            "recorded": ("seed", np.full(len(seeds), len(course.stops))),
            "stop_time": ("seed", np.full(len(seeds), float(course.end))),
        },
        coords={"seed": seeds, "time": course.stops, "row": rows_of(problem)},
    )
    data = data.assign(best=best_of(data["overlap"], problem))
    data["time"].attrs = {"long_name": "samples"}
    data.attrs = provenance(asked)
    return data
