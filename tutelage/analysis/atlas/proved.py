"""Which points of an atlas are proved: that there is one beside it, and of which index (`tt.prove.stationary`)."""

from tutelage._errors import BadInput
from tutelage.problem.networks import Weights
from tutelage.problem.problem import Problem
from tutelage.rigour.points import StationaryPoint, stationary

NEAR = 1e-6
"""How far the proved point may be from the one found, and its loss."""


def proved(problem: Problem, target: Weights, weights: Weights, loss: float) -> StationaryPoint | str:
    """The proved point, or the sentence that says why there is none."""
    try:
        point = stationary(problem, weights, teacher=target)
    except BadInput as error:  # not isolated, a unit that is zero, an activation without balls
        return str(error)
    if point.distance > NEAR or abs(float(point.loss.mid()) - loss) > NEAR:
        return "Another point was found nearby."
    return point


def told(found: StationaryPoint | str | None) -> str:
    """For a table, in a word or two."""
    if found is None or isinstance(found, str):
        return "no"
    return "strict minimum" if found.strict_minimum else f"index {found.index}"
