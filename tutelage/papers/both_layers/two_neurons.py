"""Trajectories of two neurons with signs (+,-): the observables of the proof, by the paper's names.

`second` holds signed outgoing weights; the paper's magnitudes are v_1 = second_1, v_2 = -second_2.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tutelage.analysis import angle_between
from tutelage.papers.both_layers.constants import C4, C7
from tutelage.problem import Numbers
from tutelage.trajectory import Run

SIDES = np.array([1.0, -1.0])


@dataclass(frozen=True)
class TwoNeurons:
    """States of two neurons, any leading axes: second (..., 2), first (..., 2, n), target (n,).

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.both_layers.two_neurons import TwoNeurons
    >>> state = TwoNeurons(np.array([1.0, -2.0]), np.array([[1.0, 0.0], [-0.5, 0.1]]), np.array([1.0, 0.0]))
    >>> state.magnitudes.tolist(), state.error.round(3).tolist(), round(float(state.angle), 3)
    ([1.0, 2.0], [0.0, 0.2], 2.944)

    ```
    """

    second: Numbers
    first: Numbers
    target: Numbers

    @classmethod
    def final(cls, run: Run) -> "TwoNeurons":
        """The states (seed, ...) in which a run of two neurons ends."""
        weights, teacher = run.final, run.teacher
        return cls(np.asarray(weights.second)[..., 0], np.asarray(weights.first), np.asarray(teacher.first)[0])

    @property
    def size(self) -> float:
        return float(np.linalg.norm(self.target))

    @cached_property
    def magnitudes(self) -> Numbers:
        """v_1, v_2 of the paper; a negative value means that the neuron has changed its sign."""
        return self.second * SIDES

    @cached_property
    def norms(self) -> Numbers:
        """|w_1|, |w_2|."""
        return np.linalg.norm(self.first, axis=-1)

    @cached_property
    def along(self) -> Numbers:
        """Components of w_1 along a and of w_2 along -a."""
        return self.first @ self.target / self.size * SIDES

    @cached_property
    def across(self) -> Numbers:
        """Norms of the components of w_i across the target."""
        direction = self.target / self.size
        return np.linalg.norm(self.first - (self.along * SIDES)[..., None] * direction, axis=-1)

    @cached_property
    def angles(self) -> Numbers:
        """theta_1 = angle(w_1, a), theta_2 = angle(w_2, -a)."""
        return np.arctan2(self.across, self.along)

    @cached_property
    def angle(self) -> Numbers:
        """theta, the angle of w_1 and w_2."""
        return angle_between(self.first[..., 0, :], self.first[..., 1, :])

    @cached_property
    def misfit(self) -> Numbers:
        """h_1 = v_1 w_1 - a and -h_2 = -(v_2 w_2 + a), both as second_i w_i - a."""
        return self.second[..., None] * self.first - self.target

    @cached_property
    def error(self) -> Numbers:
        """|h_1|, |h_2|."""
        return np.linalg.norm(self.misfit, axis=-1)

    @cached_property
    def error_squared(self) -> Numbers:
        """|h_1|^2 + |h_2|^2 = |diag(v) W - W*|_F^2."""
        return np.sum(self.error**2, axis=-1)

    @cached_property
    def imbalance(self) -> Numbers:
        """b_i = |w_i|^2 - v_i^2, as a product so that nearly balanced layers are resolved."""
        return (self.norms - np.abs(self.second)) * (self.norms + np.abs(self.second))

    def drift(self, in_second: Numbers, in_first: Numbers, step: float) -> Numbers:
        """b_i(tau+1) - b_i(tau) = mu^2 (|grad_{w_i}|^2 - |grad_{v_i}|^2), not by differencing b (Section 5.2)."""
        return step**2 * (np.sum(in_first**2, axis=-1) - in_second**2)


@dataclass(frozen=True)
class Course:
    """Runs of two neurons: states (seed, time, ...), loss (seed, time), update numbers `tau` (time,)."""

    states: TwoNeurons
    loss: Numbers
    tau: Numbers
    step: float
    scale: float

    @cached_property
    def aligned(self) -> NDArray[np.integer]:
        """Index of the time from which both angles stay below c4; the number of times where that never happens."""
        outside = np.max(self.states.angles, axis=-1) > C4
        backwards = np.argmax(outside[:, ::-1], axis=1)
        last = np.where(outside.any(1), outside.shape[1] - 1 - backwards, -1)
        return last + 1

    @cached_property
    def grown(self) -> NDArray[np.integer]:
        """Index of the first time after alignment with v_1, v_2 >= c7 sqrt|a|; the number of times where never."""
        large = np.min(self.states.magnitudes, axis=-1) >= C7 * np.sqrt(self.states.size)
        large &= np.arange(len(self.tau)) >= self.aligned[:, None]
        return np.where(large.any(1), np.argmax(large, axis=1), len(self.tau))

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Seeds that went through alignment and growth within the run."""
        return self.grown < len(self.tau)

    def at(self, index: NDArray[np.integer]) -> TwoNeurons:
        """The state of each seed at its own time index."""
        seeds = np.arange(len(index))
        return TwoNeurons(self.states.second[seeds, index], self.states.first[seeds, index], self.states.target)
