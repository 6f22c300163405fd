"""Descent with the momentum of a heavy ball: `w <- w - step * rate * gradient + momentum (w - w before)`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import put, real, whole
from tutelage._errors import BadInput
from tutelage._limits import STEPS
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics, AbstractStep, Moment, Prepared, Taken
from tutelage.dynamics.record import Record
from tutelage.dynamics.room import columns_of, of_data, of_network
from tutelage.dynamics.staging import Data, given_data, samples_of, staged
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.networks import rates_given
from tutelage.problem.problem import AbstractProblem, Problem, Start, of_kind
from tutelage.problem.trees import scaled


@dataclass(frozen=True)
class HeavyBall(AbstractDynamics):
    """Descent with momentum, from 0 (plain descent) to below 1; `step`, `steps`, `data` and `rates` as for `Descent`.

    ```python
    >>> import tutelage as tt
    >>> problem = tt.Problem(
    ...     inputs=tt.Gaussian(10**6),
    ...     teacher=tt.TwoLayer("linear", first=[[1.0]]),
    ...     student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-3), width=1, trains=("first",)),
    ... )
    >>> bool(tt.run(problem, tt.HeavyBall(step=0.1, steps=200)).last("loss")[0] < 1e-8)
    True

    ```
    """

    name: ClassVar[str] = "heavy_ball"
    revision: ClassVar[int] = REVISIONS["heavy_ball"]

    step: float
    steps: int
    momentum: float = 0.9
    data: Data = None
    rates: Mapping[str, float | ArrayLike] | None = None

    def __post_init__(self) -> None:
        put(
            self, step=real("step", self.step, above=0), steps=whole("steps", self.steps, least=1, most=STEPS),
            momentum=real("momentum", self.momentum, least=0), data=given_data(self.data),
        )  # fmt: skip
        rates_given(self.rates)
        if not self.momentum < 1:
            raise BadInput(f"momentum is {self.momentum}, but a number from 0 to below 1 was expected.")

    def room(self, problem: AbstractProblem, seeds: int) -> dict[str, float]:
        problem = of_kind(problem, Problem, self.name)
        columns = columns_of(problem, full=self.data is not None)
        return of_network(problem, seeds, columns) | of_data(problem, seeds, self.data)

    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        problem = of_kind(problem, Problem, self.name)
        sizes = jnp.asarray(float(self.step)), jnp.asarray(float(self.momentum))
        step = HeavyBallStep(*sizes, problem.student.rates(self.rates), problem.student.layers)
        return staged(step, problem, seeds, self.data, start)

    def stops(self, record: Record) -> NDArray[np.float64]:
        return record.updates(int(self.steps))

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        about = {"step": float(self.step), "steps": int(self.steps), "momentum": float(self.momentum)}
        return about | {"samples": samples_of(self.data)}


class HeavyBallStep(AbstractStep):
    """One update; what it takes along is the last move."""

    step_size: Float[Array, ""]
    momentum: Float[Array, ""]
    rates: PyTree
    trains: tuple[str, ...] = eqx.field(static=True)

    @property
    def tells_strain(self) -> bool:
        return True

    def begin(self, oracle: AbstractOracle, weights: PyTree) -> Moment:
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), jax.tree.map(jnp.zeros_like, weights))

    def step(self, oracle: AbstractOracle, moment: Moment, limit: Float[Array, ""]) -> Taken:
        gradient = oracle.gradient(moment.weights)
        slope = scaled(gradient, self.rates, self.trains)
        move = jax.tree.map(lambda m, g: self.momentum * m - self.step_size * g, moment.carry, slope)
        weights = jax.tree.map(jnp.add, moment.weights, move)
        clock = moment.clock + 1
        after = Moment(weights, clock, clock * self.step_size, move)
        return Taken(after, jnp.array(True), jnp.array(False), oracle.strained(moment.weights, gradient=gradient))
