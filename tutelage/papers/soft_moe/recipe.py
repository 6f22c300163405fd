"""From settings to a problem and a run."""

import numpy as np

from tutelage.dynamics import AbstractDynamics, Descent, Flow, Record, Sgd
from tutelage.papers.soft_moe.events import CROSSINGS
from tutelage.papers.soft_moe.phases import phases
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.problem import Gaussian, Mixture, MixtureRows, Problem, equicorrelated
from tutelage.study import Recipe

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


def plan(settings: SoftMoeSettings, dynamics: str, record: Record) -> AbstractDynamics:
    """Gradient flow as in the paper's theorems, online batch SGD as in its figures, or descent."""
    if dynamics == "flow":
        return Flow(until=settings.horizon)
    if dynamics == "descent":
        return Descent(settings.step, settings.steps)
    return Sgd(settings.steps, settings.batch, settings.step)


def record(settings: SoftMoeSettings, dynamics: str) -> Record:
    """Evenly spaced, because recoveries follow each other."""
    if dynamics == "flow":
        return Record(np.linspace(0, settings.horizon, 301), crossings=CROSSINGS)
    return Record(np.unique(np.round(np.linspace(0, settings.steps, 301))), crossings=CROSSINGS)


RECIPE = Recipe("soft_moe", SoftMoeSettings, problem, plan, ("flow", "sgd", "descent"), record, phases)
run = RECIPE.run
