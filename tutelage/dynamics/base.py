"""What a dynamics is: a step that the loop repeats, and how it is made for a problem.

`AbstractStep` is what is compiled: how to begin, one step, where inside a step something happened, and what changes
between two chunks of the run. `AbstractDynamics` is what a user writes, such as `Flow(until=100.0)`: plain values from
which the step is prepared for a problem. A new dynamics is a file with one of each.
"""

import abc
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree, UInt64
from numpy.typing import NDArray

from tutelage.oracle.base import AbstractOracle
from tutelage.problem.problem import AbstractProblem, Start

if TYPE_CHECKING:
    from tutelage.dynamics.record import Record


class Moment(NamedTuple):
    """The state a step starts from and ends in.

    `weights` is any tree of parameters. `clock` counts what limits are stated in: updates for descent, time for flow.
    `carry` is private to the step.
    """

    weights: PyTree
    clock: Float[Array, ""]
    time: Float[Array, ""]
    carry: PyTree


class Taken(NamedTuple):
    """What a step gives: the new moment, whether it moved on, whether it is stuck for good, and whether the form of the
    oracle was strained by it, so that another should take the step."""

    moment: Moment
    moved: Bool[Array, ""]
    stuck: Bool[Array, ""]
    strained: Bool[Array, ""] | bool = False


class Ahead(NamedTuple):
    """What a step may look at between two calls of compiled code: all seeds, where they are, which of them have paused
    after many steps, the next record of each, and the end of the run."""

    oracle: AbstractOracle
    batched: bool
    moments: Moment
    paused: NDArray[np.bool_]
    due: NDArray[np.float64]
    end: float


class AbstractStep(eqx.Module):
    """A way for the student to move, one step at a time. All loops are in `dynamics.loop`."""

    @abc.abstractmethod
    def begin(self, oracle: AbstractOracle, weights: PyTree) -> Moment:
        """The moment before the first step."""

    @abc.abstractmethod
    def step(self, oracle: AbstractOracle, moment: Moment, limit: Float[Array, ""]) -> Taken:
        """One step, not past `limit`."""

    def back(self, moment: Moment, clock: Float[Array, ""]) -> Moment:
        """The moment at `clock`, inside the step that has led to `moment`; for a step that `passes` records."""
        del clock
        return moment

    def within(self, oracle: AbstractOracle, moment: Moment, clock: Float[Array, ""]) -> Moment:
        """The moment at `clock`, inside the step that starts at `moment`; used to locate events.

        Nothing happens inside a step that jumps: an event is seen at the update itself.
        """
        del clock
        return self.step(oracle, moment, moment.clock)[0]

    def seeded(self, moment: Moment, key: UInt64[Array, ""]) -> Moment:
        """The same moment with its seed's own random key, for a step that draws."""
        del key
        return moment

    def velocity(self, oracle: AbstractOracle, moment: Moment) -> PyTree | None:
        """How fast the weights change with the clock; None for a step that jumps."""
        del oracle, moment
        return None

    def spent(self, moment: Moment) -> Bool[Array, ""]:
        """Whether the supply that `supplied` gave the step is used up; for a step that `draws`."""
        del moment
        return jnp.array(False)

    def supplied(self, moment: Moment) -> Moment:
        """The same moment with all that the next steps draw: made for many of them at once it costs a part of it."""
        return moment

    # What the loop asks on the host, between two calls of compiled code.

    @property
    def draws(self) -> bool:
        """Whether a step takes random numbers from a supply in its carry."""
        return False

    @property
    def watches(self) -> bool:
        """Whether the weights are of one time after every step, so that events and crossings can be watched."""
        return True

    @property
    def apart(self) -> bool:
        """Whether seeds run one by one on all cores, in place of one batch."""
        return False

    @property
    def factorises(self) -> bool:
        """Whether a step factorises a matrix (see `dynamics.batch.one_factorisation`)."""
        return False

    @property
    def tells_strain(self) -> bool:
        """Whether `Taken` says when the form of the oracle was strained. A step that does not is given it in full."""
        return False

    @property
    def passes(self) -> bool:
        """Whether a step may go past a record, which is then looked up with `back`."""
        return False

    def between(self, ahead: Ahead) -> tuple["AbstractStep", Moment]:
        """The step to go on with, and the moments that it begins from."""
        return self, ahead.moments

    def memo(self) -> dict[str, Any]:
        """What `between` has changed, as plain values for a checkpoint."""
        return {}

    def recalled(self, memo: dict[str, Any], ahead: Ahead) -> tuple["AbstractStep", Moment]:
        """The step that wrote the memo, and moments of its shape."""
        del memo
        return self, ahead.moments


class DrivenStep(AbstractStep):
    """A way to move that goes from one record to the next by itself, on the host, by the random key of its seed.

    For work that is cut for several cores, which no compiled loop can do. Events are not watched then.
    """

    def begin(self, oracle: AbstractOracle, weights: PyTree) -> Moment:
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), jnp.zeros((), jnp.uint64))

    def seeded(self, moment: Moment, key: UInt64[Array, ""]) -> Moment:
        return moment._replace(carry=key)

    def step(self, oracle: AbstractOracle, moment: Moment, limit: Float[Array, ""]) -> Taken:
        raise NotImplementedError(f"{type(self).__name__} drives itself.")

    @property
    def watches(self) -> bool:
        return False

    @abc.abstractmethod
    def drive(self, oracle: AbstractOracle, moments: Moment, stop: float) -> Moment:
        """All seeds towards `stop`; one may pause before it, at a place that does not depend on how the run is cut."""


class Prepared(NamedTuple):
    """A dynamics made ready for a problem.

    `start` has a leading seed axis, and so has the oracle if it is `batched` (each seed has its own data). `keys`: one
    per seed, for a step that draws. `scored`: whether the oracle has a loss to record and to stop by.
    """

    step: AbstractStep
    oracle: AbstractOracle
    batched: bool
    teacher: PyTree
    start: PyTree
    keys: NDArray[np.uint64]
    scored: bool = True


class AbstractDynamics(abc.ABC):
    """What `tutelage.run` is asked to do with a problem: plain values, compared and stored as such.

    `revision` is raised with every change of the numbers that it gives for the same values: what an older revision
    computed is then no longer read from a store. A test compares numbers with those recorded for the revision.
    """

    name: ClassVar[str]
    revision: ClassVar[int] = 1
    still: ClassVar[float] = 1e-14
    """The gradient, as a part of the norm of the weights, at which a run has converged unless asked otherwise."""
    most: ClassVar[int] = 2**62
    """The most steps of a seed unless asked otherwise: no limit where the number of updates is one."""

    @property
    def counted(self) -> bool:
        """Whether its clock counts updates, which all cost the same; the steps of a flow are long or short."""
        return self.most == AbstractDynamics.most

    @abc.abstractmethod
    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        """The step, its oracle and the starting weights of all seeds.

        `start`: a `Start` (teacher, and students with a leading seed axis) in place of the problem's own.
        """

    def room(self, problem: AbstractProblem, seeds: int) -> dict[str, float]:
        """The bytes that a run takes at least, by what to do to need fewer (see `dynamics.room`)."""
        del problem, seeds
        return {}

    @abc.abstractmethod
    def stops(self, record: "Record") -> NDArray[np.float64]:
        """When to record, on the step's clock; the last is the end."""

    @abc.abstractmethod
    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        """What the attributes of a Dataset say of it."""
