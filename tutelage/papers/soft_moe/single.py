"""Runs of one or two students and one teacher from given vectors: what the leading and the slow laws predict.

All have two students, so that they share one compiled program; where one is enough the other has output weight 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from tutelage import flow
from tutelage.dynamics import Crossings, Record, Snapshot, Stop
from tutelage.oracle import units
from tutelage.papers.soft_moe.constants import Constants
from tutelage.papers.soft_moe.events import CROSSINGS
from tutelage.papers.soft_moe.growth import predicted_time
from tutelage.papers.soft_moe.laws import breaking_time, sharing_time
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.problem import Gaussian, Mixture, Numbers, Problem
from tutelage.trajectory import Run

DIMS = (10**3, 10**4, 10**6)
NORMS = ((1.0, 1.0), (0.95, 1.05))  # of router and expert; the second at the middle dim only
# sqrt(dim) times gamma1, gamma2, zeta1, zeta2: a fixed start of the size that a random one has.
START = (0.8, 0.5, -0.6, 0.4)
SLOW = (0.05, 0.025, 0.0125)
HALF = 0.5
RECORDS = 80
FRAME = 6  # two vectors of the teacher, four of the students
# An expert that starts at overlap 1e-3 stays near it for a long time, where the usual error per step is too much.
RTOL = 1e-9


def _halfway(view: Snapshot) -> Float[jax.Array, "student teacher"]:
    own, taught = units(view.weights.first), units(view.teacher.first)
    return jnp.abs(own.expert @ taught.expert.T) - HALF


WATCHED = (*CROSSINGS, Crossings("half_time", _halfway, ("student", "teacher"), "time at which |gamma2| is 1/2"))


@dataclass(frozen=True)
class Journey:
    """One student to one teacher: its first overlaps and norms, gamma2 at the recorded times, and events."""

    dim: int
    gamma1: float
    gamma2: float
    router_norm: float
    expert_norm: float
    time: Numbers
    overlap: Numbers
    half_time: float
    expert_time: float
    router_time: float

    @property
    def lag(self) -> float:
        return self.router_time - self.expert_time


@dataclass(frozen=True)
class Slow:
    """A slow motion from the overlap `x`: the time at which |x| is 1/2, predicted and observed, and the last loss."""

    x: float
    predicted: float
    observed: float
    loss: float


class Single:
    """The runs, made when first asked for, with the settings' gate and degree.

    ```python
    >>> from tutelage.papers.soft_moe.settings import SoftMoeSettings
    >>> from tutelage.papers.soft_moe.single import Single
    >>> single = Single(SoftMoeSettings())
    >>> router, expert = single.vectors(1000)
    >>> bool(abs(router @ expert) < 1e-15), round(float(expert[1]) * 1000**0.5, 12)  # gamma2 is 0.5 / sqrt(dim)
    (True, 0.5)

    ```
    """

    def __init__(self, settings: SoftMoeSettings):
        self.settings = settings
        self.constants = Constants.of(settings.gate, settings.degree)

    @cached_property
    def journeys(self) -> tuple[Journey, ...]:
        """m = m* = 1 at several dims with norms 1, and once with other norms."""
        cases = [(dim, NORMS[0]) for dim in DIMS] + [(DIMS[1], NORMS[1])]
        return tuple(self._journey(dim, *norms) for dim, norms in cases)

    @cached_property
    def breaking(self) -> tuple[Slow, ...]:
        """Two students that cancel each other, beside a teacher not yet learned."""
        axes = np.eye(FRAME)
        return tuple(
            self._slow(x, float(breaking_time(self.constants, x)), [axes[2], axes[2]], [_tilted(x), -_tilted(x)])
            for x in SLOW
        )

    @cached_property
    def sharing(self) -> tuple[Slow, ...]:
        """A student that has learned the teacher, and one that has not, on either side."""
        axes = np.eye(FRAME)
        return tuple(
            self._slow(x, float(sharing_time(self.constants, x)), [axes[2], axes[0]], [_tilted(x), axes[1]])
            for size in SLOW
            for x in (size, -size)
        )

    def vectors(self, dim: int) -> tuple[Numbers, Numbers]:
        """Router and expert of the start, orthogonal to each other; the teacher has the axes 0 and 1."""
        gamma1, gamma2, zeta1, zeta2 = np.array(START) / math.sqrt(dim)
        router = np.array([gamma1, zeta1, math.sqrt(1 - gamma1**2 - zeta1**2), 0, 0, 0])
        across = -(gamma1 * zeta2 + zeta1 * gamma2) / router[2]
        expert = np.array([zeta2, gamma2, across, math.sqrt(1 - zeta2**2 - gamma2**2 - across**2), 0, 0])
        return router, expert

    def _journey(self, dim: int, a: float, b: float) -> Journey:
        (router, expert), idle = self.vectors(dim), np.eye(FRAME)[4:]
        until = 1.2 * float(predicted_time(expert[1], b)) + 12
        run = self._run([a * router, idle[0]], [b * expert, idle[1]], until, second=(1.0, 0.0))
        return Journey(
            dim=dim,
            gamma1=float(router[0]),
            gamma2=float(expert[1]),
            router_norm=a,
            expert_norm=b,
            time=run.dataset["time"].values,
            overlap=run.dataset["overlap_expert"].values[0, :, 0, 0],
            half_time=float(run.dataset["half_time"][0, 0, 0]),
            expert_time=float(run.dataset["expert_time"][0, 0, 0]),
            router_time=float(run.dataset["router_time"][0, 0, 0]),
        )

    def _slow(self, x: float, predicted: float, routers: Sequence[Numbers], experts: Sequence[Numbers]) -> Slow:
        """Follow the first student, of overlap `x`."""
        run = self._run(routers, experts, 1.5 * predicted + 60)
        return Slow(x, predicted, float(run.dataset["half_time"][0, 0, 0]), float(run.dataset["loss"][0, -1]))

    def _run(
        self, routers: Sequence[Numbers], experts: Sequence[Numbers], until: float, second: Sequence[float] = (1.0, 1.0)
    ) -> Run:
        kind: dict[str, Any] = {"gate": self.settings.gate, "degree": self.settings.degree}
        axes = np.eye(2)
        teacher = Mixture(routers=axes[:1], experts=axes[1:], **kind)
        student = Mixture(routers=np.stack(routers), experts=np.stack(experts), second=np.array(second), **kind)
        return flow(
            Problem(Gaussian(FRAME), teacher, student),
            until=until,
            rtol=RTOL,
            record=Record(
                np.linspace(0, until, RECORDS + 1)[1:], observables=("loss", "overlap_expert"), crossings=WATCHED
            ),
            stop=Stop(gradient=0.0),
        )


def _tilted(x: float) -> Numbers:
    """A unit vector with overlap x with the teacher's expert."""
    return np.array([0, x, 0, math.sqrt(1 - x**2), 0, 0])
