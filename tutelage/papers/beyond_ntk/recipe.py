"""From settings to a problem and a run."""

import math
from dataclasses import replace

import numpy as np

from tutelage import BadInput
from tutelage.dynamics import Descent, Flow, Record, Truncation
from tutelage.papers.beyond_ntk.observed import observed
from tutelage.papers.beyond_ntk.phases import phases
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.papers.fields import updates
from tutelage.problem import Gaussian, GaussianRows, Problem, TwoLayer, equicorrelated
from tutelage.study import Move, Recipe
from tutelage.trajectory import Stage


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


def rate(settings: BeyondNtkSettings) -> float:
    """From the gradient of the library's loss in one unit to the paper's, of infinite width.

    The paper's loss has no factor 1/2, and its gradient is that of the loss in a unit of mass 1/m, over that mass.
    """
    return 2.0 * settings.width


def plan(settings: BeyondNtkSettings, dynamics: str, record: Record) -> Move:
    """Algorithm 1, with steps of `eta_inf`, or the flow that it follows at small ones; time is steps times that."""
    data, rates = settings.samples or None, {"first": rate(settings)}
    if dynamics == "descent":
        caps, end = settings.caps if settings.truncate else (math.inf,), _first_stage(settings)
        moves = [Descent(settings.step, settings.steps, data, truncation=_capped(cap), rates=rates) for cap in caps]
        return moves[0] if end is None else _two_stages(moves[0], moves[1], end, record)
    if settings.truncate:
        raise BadInput("beyond_ntk: truncation is for descent, but a flow was asked for; leave out truncate.")
    return Flow(settings.until, data=data, rates=rates)


def record(settings: BeyondNtkSettings, dynamics: str) -> Record:
    """What the paper speaks of: the loss, its orders, and how units lie."""
    own = observed(problem(settings), settings)
    return Record(300, observables=("loss", "gradient_norm", "first_norm"), own=own)


def _capped(cap: float) -> Truncation | None:
    return None if math.isinf(cap) else Truncation((cap,))


def _first_stage(settings: BeyondNtkSettings) -> int | None:
    """After how many updates Algorithm 1 raises its cap; None if it has one stage."""
    if not settings.truncate or settings.stage is None:
        return None
    return updates(settings.stage, settings.step)


def _two_stages(one: Descent, two: Descent, end: int, record: Record) -> list[Stage]:
    """Algorithm 1's two stages: a unit that stood still moves again once the cap is higher."""
    stops = one.stops(record)
    early, late = np.append(stops[stops < end], end), np.append(end, stops[stops > end]) - end
    return [
        Stage("stage 1", replace(one, steps=end), record=replace(record, at=early)),
        Stage("stage 2", replace(two, steps=one.steps - end), record=replace(record, at=late)),
    ]


RECIPE = Recipe("beyond_ntk", BeyondNtkSettings, problem, plan, record=record, phases=lambda run, settings: phases(run))
run = RECIPE.run
