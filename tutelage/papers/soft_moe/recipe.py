"""From settings to a problem and a run."""

from typing import Any, Literal

import numpy as np

from tutelage.experiment import descend, flow, sgd
from tutelage.papers.paper import with_phases
from tutelage.papers.soft_moe.events import CROSSINGS
from tutelage.papers.soft_moe.phases import phases
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.problem.initial import MixtureRows
from tutelage.problem.inputs import Gaussian
from tutelage.problem.mixture import Mixture
from tutelage.problem.problem import Problem
from tutelage.problem.rows import equicorrelated
from tutelage.trajectory.result import Run

PARTS = {
    "routers and experts": ("routers", "experts"),
    "experts": ("experts",),
    "all": ("routers", "experts", "second"),
}


def teacher(settings: SoftMoeSettings) -> Mixture:
    """Orthonormal routers and experts (Assumption 1); experts with a common cosine if that is asked for."""
    count = settings.teachers
    axes = np.eye(2 * count)
    return Mixture(
        settings.gate,
        degree=settings.degree,
        routers=axes[:count],
        experts=equicorrelated(count, settings.cosine) @ axes[count:],
        second=settings.importance,
    )


def problem(settings: SoftMoeSettings) -> Problem:
    """The problem of the paper: m* orthonormal teacher experts, m students, all output weights 1 (Eqs. 1 to 3).

    ```python
    >>> from tutelage.papers.soft_moe.recipe import problem
    >>> from tutelage.papers.soft_moe.settings import SoftMoeSettings
    >>> problem(SoftMoeSettings(dim=10**12)).begin(seed=0).student.first.shape  # 25 routers, 25 experts; 50 + 10 axes
    (50, 60)

    ```
    """
    student = Mixture(
        settings.gate,
        degree=settings.degree,
        start=MixtureRows(settings.init),
        width=settings.students,
        trains=PARTS[settings.trains],
    )
    return Problem(Gaussian(settings.dim), teacher(settings), student, noise=settings.noise)


def run(
    settings: SoftMoeSettings | None = None,
    *,
    seeds: Any = 1,
    dynamics: Literal["flow", "sgd", "descent"] = "flow",
    certify: bool = False,
    progress: Any = None,
    **options: Any,
) -> Run:
    """Run the paper's experiment: gradient flow as in its theorems, online batch SGD as in its figures, or descent.

    `options` go to `tutelage.flow`, `sgd` or `descend`.

    ```python
    >>> import tutelage as tt
    >>> settings = tt.papers.soft_moe.configure({"students": 2, "teachers": 1, "dim": 50, "until": 1.0})
    >>> result = tt.papers.soft_moe.run(settings, record=4)
    >>> bool((result.last("loss") < result.loss[:, 0]).all())
    True

    ```
    """
    settings = settings or SoftMoeSettings()
    common = {"seeds": seeds, "certify": certify, "progress": progress, "crossings": CROSSINGS} | options
    result = _dynamics(settings, dynamics, common)
    return with_phases(result, "soft_moe", settings, phases(result, settings))


def _dynamics(settings: SoftMoeSettings, dynamics: str, options: dict[str, Any]) -> Run:
    chosen, until = problem(settings), settings.horizon
    if dynamics == "flow":
        times = np.linspace(0, until, 301)
        return flow(chosen, until=until, **{"record": times} | options)
    updates = np.unique(np.round(np.linspace(0, settings.steps, 301)))
    options = {"record": updates} | options
    if dynamics == "descent":
        return descend(chosen, step=settings.step, steps=settings.steps, **options)
    return sgd(chosen, step=settings.step, steps=settings.steps, batch=settings.batch, **options)
