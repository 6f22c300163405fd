"""Gradient descent: constant step or schedule; a layer may be frozen or slowed by a factor."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import function, instance, put, real, several, whole
from tutelage._errors import BadInput
from tutelage._limits import STEPS
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics, AbstractStep, Moment, Prepared, Taken
from tutelage.dynamics.own import numbers_of
from tutelage.dynamics.record import Record
from tutelage.dynamics.room import columns_of, of_data, of_network
from tutelage.dynamics.staging import Data, given_data, samples_of, staged
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.mixture import Mixture
from tutelage.problem.networks import rates_given
from tutelage.problem.problem import AbstractProblem, Problem, Start, of_kind
from tutelage.problem.trees import scaled

Schedule = Callable[[Float[Array, ""]], Float[Array, ""]]


@dataclass(frozen=True)
class Truncation:
    """Units with `|w|^2` above a cap stand still: their gradient is dropped, but they go on to contribute.

    - `caps`: one for each stage; infinite for none.
    - `ends`: the number of updates after which a stage is over, for all stages but the last. A unit that stood still
      moves again in a later stage with a higher cap.

    ```python
    >>> import tutelage as tt
    >>> tt.Truncation(caps=(2.0, 50.0), ends=(3000,)).cap(3000)
    Array(50., dtype=float64)

    ```
    """

    caps: tuple[float, ...]
    ends: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        caps = several("Truncation: caps", self.caps, object, "a tuple of caps")
        ends = several("Truncation: ends", self.ends, object, "a tuple of numbers of updates")
        put(
            self, caps=tuple(cap if cap == np.inf else real("Truncation: a cap", cap, above=0) for cap in caps),
            ends=tuple(whole("Truncation: an end", end, least=1, most=STEPS) for end in ends),
        )  # fmt: skip
        if len(self.caps) != len(self.ends) + 1:
            raise BadInput(
                f"Truncation: caps is {self.caps} and ends {self.ends}, but a cap above 0 for each stage and an "
                "end for each but the last were expected."
            )
        if list(self.ends) != sorted(set(self.ends)):
            raise BadInput(f"Truncation: ends is {self.ends}, but rising numbers of updates from 1 up were expected.")

    def cap(self, clock: Float[Array, ""] | float) -> Float[Array, ""]:
        """The cap of the update that begins at `clock`."""
        ends, now = jnp.asarray(self.ends, float), jnp.asarray(clock, float)
        return jnp.asarray(self.caps)[jnp.searchsorted(ends, now, side="right")]

    def moving(self, first: Float[Array, "unit frame"], clock: Float[Array, ""]) -> Bool[Array, "unit 1"]:
        """Which units move."""
        return jnp.sum(first**2, axis=1, keepdims=True) <= self.cap(clock)


@dataclass(frozen=True)
class Descent(AbstractDynamics):
    """Gradient descent, `w <- w - step * rate * gradient`, all layers at once.

    - `step`, `steps`: the step size and the number of updates; `schedule(n)` multiplies the step at update n.
    - `data`: None for the exact population loss; a number of samples to draw for each seed; or arrays `(x, y)`.
    - `rates`: factors of the layers, such as `{"second": 0.1}`, or arrays of one factor per unit; a layer the student
      does not train stays fixed.
    - `truncation`: a `Truncation`; units whose squared norm is above its cap stand still.

    ```python
    >>> import tutelage as tt
    >>> tt.Descent(step=0.1, steps=100).steps
    100

    ```
    """

    name: ClassVar[str] = "descent"
    revision: ClassVar[int] = REVISIONS["descent"]

    step: float
    steps: int
    data: Data = None
    schedule: Schedule | None = None
    truncation: Truncation | None = None
    rates: Mapping[str, float | ArrayLike] | None = None

    def __post_init__(self) -> None:
        put(
            self, step=real("step", self.step, above=0), steps=whole("steps", self.steps, least=1, most=STEPS),
            data=given_data(self.data),
        )  # fmt: skip
        rates_given(self.rates)
        if self.schedule is not None:
            function("schedule", self.schedule, "the number of the update")
        if self.truncation is not None:
            instance("truncation", self.truncation, Truncation, "a tt.Truncation")

    def room(self, problem: AbstractProblem, seeds: int) -> dict[str, float]:
        problem = of_kind(problem, Problem, self.name)
        columns = columns_of(problem, full=self.data is not None)
        return of_network(problem, seeds, columns) | of_data(problem, seeds, self.data)

    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        problem = of_kind(problem, Problem, self.name)
        if self.truncation is not None and isinstance(problem.student, Mixture):
            raise BadInput("truncation is for two-layer networks, but the student is a mixture; leave it out.")
        student = problem.student
        step = DescentStep(
            jnp.asarray(float(self.step)), student.rates(self.rates), student.layers, self.schedule, self.truncation
        )
        return staged(step, problem, seeds, self.data, start)

    def stops(self, record: Record) -> NDArray[np.float64]:
        return record.updates(int(self.steps))

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        del problem
        about: dict[str, Any] = {"step": float(self.step), "steps": int(self.steps), "samples": samples_of(self.data)}
        return about | ({"truncation": str(self.truncation)} if self.truncation else {})


class DescentStep(AbstractStep):
    """One update.

    - `step_size`: with `schedule`, its multiplier at each update is `schedule(number of the update)`.
    - `rates`: a factor for each layer, in a tree like the weights; a layer not named in `trains` stays fixed.
    """

    step_size: Float[Array, ""]
    rates: PyTree
    trains: tuple[str, ...] = eqx.field(static=True)
    schedule: Schedule | None = eqx.field(static=True, default=None)
    truncation: Truncation | None = eqx.field(static=True, default=None)

    @property
    def tells_strain(self) -> bool:
        return True

    def begin(self, oracle: AbstractOracle, weights: PyTree) -> Moment:
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), ())

    def step(self, oracle: AbstractOracle, moment: Moment, limit: Float[Array, ""]) -> Taken:
        del limit  # one update is one tick: limits are whole numbers of updates
        size = step_size(self.step_size, self.schedule, moment.clock)
        gradient = oracle.gradient(moment.weights)
        velocity = scaled(gradient, self.rates, self.trains)
        if self.truncation is not None:
            moving = self.truncation.moving(moment.weights.first, moment.clock)
            velocity = jax.tree.map(lambda g: jnp.where(moving, g, 0.0), velocity)
        weights = jax.tree.map(lambda w, g: w - size * g, moment.weights, velocity)
        after = Moment(weights, *ticked(self.schedule, moment, size), ())
        return Taken(after, jnp.array(True), jnp.array(False), oracle.strained(moment.weights, gradient=gradient))


def step_size(size: Float[Array, ""], schedule: Schedule | None, clock: Float[Array, ""]) -> Float[Array, ""]:
    """The step size of the update that begins at `clock`."""
    return size if schedule is None else size * numbers_of("The schedule", schedule, clock, one=True).astype(size.dtype)


def ticked(
    schedule: Schedule | None, moment: Moment, size: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Clock and time after an update; with a constant step time is a product, which does not gather rounding."""
    clock = moment.clock + 1
    return clock, clock * size if schedule is None else moment.time + size
