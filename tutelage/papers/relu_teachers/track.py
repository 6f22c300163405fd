"""A recorded run of students under orthogonal teachers of norm 1, as the claims read it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage.analysis import Hypothesis
from tutelage.papers.relu_teachers import measures
from tutelage.papers.relu_teachers.assumptions import Assumptions, assumptions
from tutelage.papers.relu_teachers.chain import norm_bounds
from tutelage.problem import Numbers

NORM = 1.0
"""The norm of the teachers: only sigma/nv matters (the claim SCALE)."""


@dataclass(frozen=True)
class Track:
    """The Dataset of a run with recorded weights, its teachers (k, n), and the law of its start.

    Arrays have axes (seed, time, ...). `eps1` is the free parameter of Theorem 6 that the run was made for.
    """

    dataset: xr.Dataset
    teacher: Numbers
    dim: int
    sigma: float
    eps1: float = 0.1

    @property
    def teachers(self) -> int:
        return len(self.teacher)

    @property
    def students(self) -> int:
        return self.weights.shape[2]

    @property
    def seeds(self) -> int:
        return self.weights.shape[0]

    @cached_property
    def time(self) -> Numbers:
        return self.dataset["time"].values

    @cached_property
    def weights(self) -> Numbers:
        """w_i, (seed, time, m, n)."""
        return self.dataset["weights_first"].values

    @cached_property
    def loss(self) -> Numbers:
        return self.dataset["loss"].values

    @cached_property
    def slope(self) -> Numbers:
        """|grad|_F."""
        return self.dataset["gradient_norm"].values

    @cached_property
    def norms(self) -> Numbers:
        """|w_i|, (seed, time, m)."""
        return self.dataset["first_norm"].values

    @cached_property
    def home(self) -> NDArray[np.intp]:
        """tau_i, (seed, m)."""
        return measures.home(self.dataset).values

    @cached_property
    def now(self) -> NDArray[np.intp]:
        """The teacher that is nearest at the end, (seed, m)."""
        return self.dataset["overlap_angle"].isel(time=-1).argmin("teacher").values

    @cached_property
    def theta(self) -> Numbers:
        """theta_i*, (seed, time, m)."""
        return _ordered(measures.home_angles(self.dataset), "student")

    @cached_property
    def heights(self) -> Numbers:
        """h_i*, (seed, time, m)."""
        return _ordered(measures.heights(self.dataset, NORM), "student")

    @cached_property
    def missing(self) -> Numbers:
        """H_l, (seed, time, k)."""
        return _ordered(measures.missing(self.dataset, NORM), "teacher")

    @cached_property
    def mean_cosine(self) -> Numbers:
        """The cosine of each student to the mean direction of the teachers, (seed, time, m)."""
        return _ordered(measures.mean_cosines(self.dataset), "student")

    @cached_property
    def spread(self) -> Numbers:
        """How far the directions differ within the span of the teachers, (seed, time)."""
        return measures.spread(self.dataset).transpose("seed", "time").values

    @cached_property
    def outside(self) -> Numbers:
        """The part of each unit vector outside the span of the teachers: rms of the students, (seed, time)."""
        axes = self.teacher / np.linalg.norm(self.teacher, axis=1, keepdims=True)
        apart = self.weights - (self.weights @ axes.T) @ axes
        return np.sqrt(np.mean((np.linalg.norm(apart, axis=-1) / self.norms) ** 2, axis=-1))

    @property
    def bounds(self) -> tuple[float, float]:
        """s1 and s2 of Lemma 1."""
        return norm_bounds(self.sigma, self.dim)

    def sizes(self, groups: NDArray[np.intp]) -> NDArray[np.intp]:
        """m_l of the group of each student, (seed, m), from group labels (seed, m)."""
        return (groups[:, :, None] == groups[:, None, :]).sum(-1)

    def within(self, low: float, high: float = np.inf) -> NDArray[np.bool_]:
        """The recorded times between `low` and `high`, with a rounding error of room."""
        return (self.time >= low * (1 - 1e-12)) & (self.time <= high * (1 + 1e-12))

    def assumptions(self, seed: int) -> Assumptions:
        """Assumptions 1 to 3 and Lemma 1 at the start of one run."""
        return assumptions(self.weights[seed, 0], self.teacher, dim=self.dim, sigma=self.sigma, eps1=self.eps1)


def hypotheses(tracks: Iterable[Track]) -> tuple[Hypothesis, ...]:
    """What the theorems on all phases ask of a start, each as the worst start of these runs has it."""
    starts = (track.assumptions(seed).hypotheses for track in tracks for seed in range(track.seeds))
    return tuple(max(rows, key=lambda each: each.measured or 0.0) for rows in zip(*starts, strict=True))


def _ordered(values: xr.DataArray, last: str) -> Numbers:
    return values.transpose("seed", "time", last).values
