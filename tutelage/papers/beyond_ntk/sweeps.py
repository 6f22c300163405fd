"""Numbers that a sweep may ask of a run by name: when the plateau ends, where the loss ends; a phase diagram."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tutelage import BadInput
from tutelage.dynamics import Event, Snapshot
from tutelage.oracle import rows
from tutelage.papers.beyond_ntk.observed import paper_loss
from tutelage.study import Diagram
from tutelage.trajectory import Measure, Run

HALVED = 0.5
"""The plateau is over when the fourth order is this part of that of a student with no fourth order."""


def fourth_order(view: Snapshot) -> Float[Array, ""]:
    """The squared error of the fourth tensor over the square of the teacher's, both networks scaled to order 0 equal.

    It is of directions and shares of mass only, so that it is the same for all units, and on samples.
    """
    student, teacher = rows(view.weights.first), rows(view.teacher.first)
    mass = student.norm**2 / jnp.sum(student.norm**2)
    taught = view.teacher.second[:, 0] * teacher.norm
    taught = taught / jnp.sum(taught)

    def product(left, x, right, y):
        return x @ (left.unit @ right.unit.T) ** 4 @ y

    target = product(teacher, taught, teacher, taught)
    met = product(student, mass, teacher, taught)
    return (product(student, mass, student, mass) - 2 * met + target) / target


def _escapes(view: Snapshot) -> Float[Array, ""]:
    return HALVED - fourth_order(view)


ESCAPES = Event("fourth_order_halved", _escapes)


def escape_time(run: Run) -> np.ndarray:
    """When the fourth order is learned to half, which ends the plateau; nan if it is not."""
    if "event" not in run.dataset.coords or ESCAPES.name not in run.dataset["event"].values:
        raise BadInput("escape_time needs the event of the escape, but the run did not watch for it; sweep it.")
    return run.dataset["event_time"].sel(event=ESCAPES.name).values


def final_loss(run: Run) -> np.ndarray:
    """The paper's population loss at the end."""
    return paper_loss(run.dataset).isel(time=-1).values


def covered(run: Run) -> np.ndarray:
    """How many teacher directions have a unit on them at the end."""
    return (run.last("caught") > 0).sum("teacher").values


MEASURES = (
    Measure(
        "escape_time",
        "time at which the fourth order is half learned",
        escape_time,
        kind="time",
        observables=(),
        records=8,
        events=(ESCAPES,),
        stop=ESCAPES,
    ),
    Measure("final_L", "population loss at the end, without the factor 1/2", final_loss, observables=(), records=8),
    Measure("covered", "number of teacher directions with a unit on them", covered, observables=(), records=8),
)

DIAGRAMS = (
    Diagram(
        "escape",
        "End of the plateau, over the dimension and the width",
        "escape_time",
        over={
            "quick": {"dim": (6, 10), "width": (10, 40)},
            "full": {"dim": (6, 10, 16, 24, 32), "width": (32, 64, 96, 128)},
        },
        seeds={"quick": 8, "full": 16},
        settings={"until": 1500.0},
        dynamics="descent",
    ),
)
