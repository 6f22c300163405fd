"""What a dynamics is: how to begin, how to take one step, how to say where inside a step something happened."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import Array, Bool, Float, UInt64

from tutelage.oracle.base import AbstractOracle
from tutelage.problem.networks import Weights


class Moment(NamedTuple):
    """The state a step starts from and ends in.

    `clock` counts what limits are stated in: updates for descent, time for flow. `carry` is private to the dynamics.
    """

    weights: Weights
    clock: Float[Array, ""]
    time: Float[Array, ""]
    carry: Any


class AbstractDynamics(eqx.Module):
    """A way for the student to move. All loops are in `dynamics.run`; here is one step only."""

    @abc.abstractmethod
    def begin(self, oracle: AbstractOracle, weights: Weights) -> Moment:
        """The moment before the first step."""

    def seeded(self, moment: Moment, key: UInt64[Array, ""]) -> Moment:
        """The same moment with its seed's own random key, for a dynamics that draws."""
        del key
        return moment

    @abc.abstractmethod
    def step(
        self, oracle: AbstractOracle, moment: Moment, limit: Float[Array, ""]
    ) -> tuple[Moment, Bool[Array, ""], Bool[Array, ""]]:
        """One step, not past `limit`: the new moment, whether it moved on, and whether it is stuck for good."""

    def velocity(self, oracle: AbstractOracle, moment: Moment) -> Weights | None:
        """How fast the weights change with the clock; None for a dynamics that jumps."""
        del oracle, moment
        return None

    @abc.abstractmethod
    def within(self, oracle: AbstractOracle, moment: Moment, clock: Float[Array, ""]) -> Moment:
        """The moment at `clock`, inside the step that starts at `moment`; used to locate events."""
