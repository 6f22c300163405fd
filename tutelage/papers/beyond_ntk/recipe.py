"""From settings to a problem and a run."""

import math
from typing import Any, Literal

import numpy as np

from tutelage._errors import BadInput
from tutelage.dynamics.descent import Truncation
from tutelage.experiment import descend, flow
from tutelage.papers.beyond_ntk.observed import observed
from tutelage.papers.beyond_ntk.phases import phases
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.papers.paper import with_phases
from tutelage.problem.initial import GaussianRows
from tutelage.problem.inputs import Gaussian
from tutelage.problem.networks import TwoLayer
from tutelage.problem.problem import Problem
from tutelage.problem.rows import equicorrelated
from tutelage.trajectory.result import Run


def problem(settings: BeyondNtkSettings) -> Problem:
    """The problem of the paper: `sum a_i |z_i|`, and m units of equal mass whose size counts twice.

    ```python
    >>> from tutelage.papers.beyond_ntk.recipe import problem
    >>> from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
    >>> problem(BeyondNtkSettings(dim=10**9, teachers=4, width=8)).begin(seed=0).student.first.shape
    (8, 12)

    ```
    """
    student = TwoLayer(
        "abs" if settings.variant == "abs" else "relu",
        first=GaussianRows(settings.scale / math.sqrt(settings.dim)),
        second=np.full(settings.width, settings.mass),
        width=settings.width,
        trains=("first",),
        tied=True,
    )
    teacher = TwoLayer(
        settings.teacher, first=equicorrelated(settings.count, settings.cosine), second=settings.teacher_weights
    )
    return Problem(inputs=Gaussian(settings.dim), teacher=teacher, student=student, noise=settings.noise)


def run(
    settings: BeyondNtkSettings | None = None,
    *,
    seeds: Any = 1,
    dynamics: Literal["descent", "flow"] = "descent",
    certify: bool = False,
    progress: Any = None,
    **options: Any,
) -> Run:
    """Run the paper's experiment: Algorithm 1, with steps of `eta_inf`, or the flow that it follows at small ones.

    Time is the number of steps times `eta_inf`. `options` go to `tutelage.descend` or `flow`.

    ```python
    >>> import tutelage as tt
    >>> result = tt.papers.beyond_ntk.run(tt.papers.beyond_ntk.configure({"dim": 6, "width": 12, "until": 20}))
    >>> bool(result.last("loss")[0] < result.loss[0, 0])
    True

    ```
    """
    settings = settings or BeyondNtkSettings()
    chosen = problem(settings)
    common = {"seeds": seeds, "certify": certify, "progress": progress, "data": settings.samples or None}
    common |= {"rates": {"first": rate(settings)}, "observables": ("loss", "gradient_norm", "first_norm")}
    common |= {"observe": observed(chosen, settings)} | options
    result = _dynamics(settings, chosen, dynamics, common)
    return with_phases(result, "beyond_ntk", settings, phases(result))


def rate(settings: BeyondNtkSettings) -> float:
    """From the gradient of the library's loss in one unit to the paper's, of infinite width.

    The paper's loss has no factor 1/2, and its gradient is that of the loss in a unit of mass 1/m, over that mass.
    """
    return 2.0 * settings.width


def _dynamics(settings: BeyondNtkSettings, chosen: Problem, dynamics: str, options: dict[str, Any]) -> Run:
    options = {"record": 300} | options
    if dynamics == "descent":
        return descend(chosen, step=settings.step, steps=settings.steps, truncation=truncation(settings), **options)
    if settings.truncate:
        raise BadInput("beyond_ntk: truncation is for descent, but a flow was asked for; leave out truncate.")
    return flow(chosen, until=settings.until, **options)


def truncation(settings: BeyondNtkSettings) -> Truncation | None:
    """Algorithm 1's two stages, in updates."""
    if not settings.truncate:
        return None
    ends = () if settings.stage is None else (max(1, round(settings.stage / settings.step)),)
    return Truncation(settings.caps, ends)
