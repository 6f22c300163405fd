"""The times of the paper and of what happens besides: recovery of teachers, annihilation and sharing of students."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage.dynamics import Crossings, Snapshot
from tutelage.oracle import units

RECOVERED, ANNIHILATED, SHARED = 0.9, -0.9, 0.8
"""Overlaps: with a teacher (Theorem 1), of two experts that cancel each other, and of two that share a teacher."""
RISING = 0.3
"""An overlap that is not small: the bound of Theorem 1 on what is not recovered, for one delta_P (`clauses`)."""


def expert_overlap(view: Snapshot) -> Float[Array, "student teacher"]:
    """The overlap of each student's expert with each teacher's."""
    return units(view.weights.first).expert @ units(view.teacher.first).expert.T


def _router(view: Snapshot) -> Float[Array, "student teacher"]:
    return units(view.weights.first).router @ units(view.teacher.first).router.T


def _expert_reaches(view: Snapshot) -> Float[Array, "student teacher"]:
    return expert_overlap(view) - RECOVERED


def _router_reaches(view: Snapshot) -> Float[Array, "student teacher"]:
    return _router(view) - RECOVERED


def _cancels(view: Snapshot) -> Float[Array, "student student"]:
    expert = units(view.weights.first).expert
    return ANNIHILATED - expert @ expert.T


def _rises(view: Snapshot) -> Float[Array, "student teacher"]:
    return jnp.maximum(jnp.abs(_router(view)), jnp.abs(expert_overlap(view))) - RISING


def _shares(view: Snapshot) -> Float[Array, " teacher"]:
    """The second largest overlap with each teacher."""
    overlap = expert_overlap(view)
    return jnp.sort(overlap, axis=0)[-2] - SHARED if len(overlap) > 1 else jnp.full(overlap.shape[1], -1.0)


CROSSINGS = (
    Crossings("expert_time", _expert_reaches, ("student", "teacher"), "time at which an expert recovers a teacher's"),
    Crossings("router_time", _router_reaches, ("student", "teacher"), "time at which a router recovers a teacher's"),
    Crossings("pair_time", _cancels, ("student", "student_b"), "time at which two experts are opposite"),
    Crossings("shared_time", _shares, ("teacher",), "time at which two experts share a teacher"),
)

THEOREM = (
    *CROSSINGS,
    Crossings("rising_time", _rises, ("student", "teacher"), "time at which an overlap with a teacher is not small"),
)
"""What the clauses of Theorem 1 look at."""
