"""Reading a file that a run was saved to."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, overload

import xarray as xr

from tutelage._checks import flag
from tutelage._errors import BadInput
from tutelage._identity import described
from tutelage.dynamics.base import AbstractDynamics
from tutelage.problem.problem import AbstractProblem
from tutelage.trajectory.asked import Asked, Stage, plan_of
from tutelage.trajectory.dataset import load_tree, whole
from tutelage.trajectory.result import Run


@overload
def load(
    path: str | Path,
    *,
    problem: AbstractProblem | None = None,
    dynamics: AbstractDynamics | Sequence[Stage] | None = None,
    tree: Literal[False] = False,
) -> Run: ...
@overload
def load(path: str | Path, *, tree: Literal[True]) -> xr.DataTree: ...
def load(
    path: str | Path,
    *,
    problem: AbstractProblem | None = None,
    dynamics: AbstractDynamics | Sequence[Stage] | None = None,
    tree: bool = False,
) -> Run | xr.DataTree:
    """The run that `run.save` wrote: its records, phases, certificate, stages and last weights.

    - `problem`, `dynamics`: those of the run, which give it its oracle, teacher and start. A file has no more than what
      tells them from others, with which they are compared.
    - `tree`: any NetCDF file of tutelage, such as that of a figure or a sweep, as an xarray DataTree.

    ```python
    >>> import tempfile, pathlib, tutelage as tt
    >>> problem = tt.Problem(
    ...     inputs=tt.Gaussian(10**6),
    ...     teacher=tt.TwoLayer("linear", first=[[1.0]]),
    ...     student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-3), width=1, trains=("first",)),
    ... )
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.nc"
    >>> tt.flow(problem, until=20.0).save(path)
    >>> run = tt.load(path, problem=problem, dynamics=tt.Flow(until=20.0))
    >>> bool(run.oracle.loss(tt.Weights(run.final.first[0], run.final.second[0])) < 1e-12)
    True

    ```
    """
    found = load_tree(path)
    if flag("load: tree", tree):
        return found
    if "stopped" not in whole(found).variables:
        raise BadInput(f"{path} is not the file of a run; read it with `tt.load(path, tree=True)`.")
    run = Run.read(found)
    if problem is None and dynamics is None:
        return run
    if problem is None or dynamics is None:
        raise BadInput("load: problem and dynamics go together; pass both, or neither.")
    seeds = tuple(int(seed) for seed in run.dataset["seed"].values)
    return replace(run, asked=_same(Asked(problem, plan_of(dynamics), seeds), run.dataset, path))


def _same(asked: Asked, dataset: xr.Dataset, path: str | Path) -> Asked:
    """What was asked for, if it is what the file says."""
    said = json.loads(dataset.attrs.get("asked", "{}"))
    if said.get("start") is not None:
        raise BadInput(f"{path} is of a run that began from a start of its own; ask for it with tt.run and its store.")
    for name in ("problem", "plan"):
        part = described(getattr(asked, name))
        if said and json.loads(json.dumps(part)) != said.get(name):
            raise BadInput(
                f"{path} is of a run with another {'dynamics' if name == 'plan' else name}; pass that of the run."
            )
    return asked
