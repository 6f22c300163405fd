"""From settings to a problem and a run."""

import math

import numpy as np

from tutelage.dynamics import AbstractDynamics, Descent, Flow, Record
from tutelage.papers.both_layers.phases import phases
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.problem import AbstractEntries, ChiEntries, Gaussian, GaussianEntries, GaussianRows, Problem, TwoLayer
from tutelage.study import Recipe


def target_matrix(settings: BothLayersSettings) -> np.ndarray:
    """A, on its own coordinates: diagonal, because only its singular values matter for Gaussian inputs."""
    values = settings.singular_values or (settings.target,) * settings.outputs
    return np.diag(values)


def problem(settings: BothLayersSettings) -> Problem:
    """The problem of the paper: a linear teacher A x, a ReLU student.

    ```python
    >>> from tutelage.papers.both_layers.recipe import problem
    >>> from tutelage.papers.both_layers.settings import BothLayersSettings
    >>> problem(BothLayersSettings(dim=10**9, width=4)).student.width
    4

    ```
    """
    matrix = target_matrix(settings)
    student = TwoLayer(
        settings.activation,
        first=settings.first if settings.first is not None else _rows(settings),
        second=settings.second if settings.second is not None else _entries(settings),
        width=settings.width,
        outputs=settings.outputs,
        trains=("first", "second") if settings.trains == "both" else ("first",),
    )
    teacher = TwoLayer("linear", first=matrix, second=np.eye(settings.outputs))
    return Problem(inputs=Gaussian(settings.dim), teacher=teacher, student=student, noise=settings.noise)


def _rows(settings: BothLayersSettings) -> GaussianRows:
    variance = 2 / (settings.width + settings.dim) if settings.init == "xavier" else 1 / settings.dim
    mean = ((settings.offset * settings.target,),) if settings.offset else ()
    return GaussianRows(settings.scale * math.sqrt(variance), mean=mean)


def _entries(settings: BothLayersSettings) -> AbstractEntries | np.ndarray:
    if settings.trains == "first":
        return np.repeat(_signs(settings)[:, None], settings.outputs, axis=1)
    if settings.init == "xavier":
        return GaussianEntries(settings.scale * math.sqrt(2 / (settings.outputs + settings.width)))
    if settings.init == "gauss_half":
        return GaussianEntries(settings.scale * math.sqrt(0.5))
    scale = settings.scale / math.sqrt(settings.dim)
    return ChiEntries(scale, float(settings.dim), tuple(float(sign) for sign in _signs(settings)))


def _signs(settings: BothLayersSettings) -> np.ndarray:
    """+, -, +, ...: the sign pattern that Theorem 2 fixes for k = 2."""
    return np.where(np.arange(settings.width) % 2 == 0, 1.0, -1.0)


def plan(settings: BothLayersSettings, dynamics: str, record: Record) -> AbstractDynamics:
    """The paper's descent, or the flow that it follows at small steps."""
    data = settings.samples or None
    if dynamics == "flow":
        return Flow(until=settings.step * settings.steps, data=data)
    return Descent(settings.step, settings.steps, data)


def record(settings: BothLayersSettings, dynamics: str) -> Record:
    """Every update of a descent is recorded while that is cheap, so that phase times are exact."""
    if dynamics == "flow":
        return Record()
    return Record("all" if settings.steps <= 4000 else 2000)


RECIPE = Recipe("both_layers", BothLayersSettings, problem, plan, record=record, phases=phases)
run = RECIPE.run
