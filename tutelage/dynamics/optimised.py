"""Descent by any optimiser of optax, on the exact population loss or on data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import one_of, put, whole
from tutelage._errors import BadInput
from tutelage._limits import STEPS
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics, AbstractStep, Moment, Prepared, Taken
from tutelage.dynamics.equivariance import check_lawful, check_optimiser, updated
from tutelage.dynamics.record import Record
from tutelage.dynamics.room import columns_of, of_data, of_network
from tutelage.dynamics.staging import Data, given_data, samples_of, staged
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.networks import rates_given
from tutelage.problem.problem import AbstractProblem, Problem, Start, of_kind
from tutelage.problem.trees import part_names

if TYPE_CHECKING:
    from optax import GradientTransformation

WAY_OUT = (
    'use space="full", which keeps all dim coordinates of the weights, or an optimiser of norms and inner products'
)


@dataclass(frozen=True)
class Optimised(AbstractDynamics):
    """Descent by an optimiser of optax, which has its own step size: an update is one unit of time.

    - `optimiser`: such as `optax.sgd(0.1, momentum=0.9, nesterov=True)`; `steps`: the number of updates.
    - `space`: "frame" keeps the few coordinates that matter, at any dim. That is exact for an optimiser that depends
      neither on the axes of input space nor on their number: momentum, schedules, weight decay, clipping and scaling by
      norms. It is tried on random gradients, and refused if it does, as Adam does. "full" keeps all `dim` coordinates,
      for any optimiser; the loss is exact there, too.
    - `data`, `rates`: as for `Descent`; rates multiply what the optimiser adds to a layer. Data are in full space.

    ```python
    >>> import optax, tutelage as tt
    >>> problem = tt.Problem(
    ...     inputs=tt.Gaussian(10**6),
    ...     teacher=tt.TwoLayer("linear", first=[[1.0]]),
    ...     student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-3), width=1, trains=("first",)),
    ... )
    >>> nesterov = optax.sgd(0.1, momentum=0.9, nesterov=True)
    >>> bool(tt.run(problem, tt.Optimised(nesterov, steps=300)).last("loss")[0] < 1e-12)
    True

    ```
    """

    name: ClassVar[str] = "optimised"
    revision: ClassVar[int] = REVISIONS["optimised"]

    optimiser: "GradientTransformation"
    steps: int
    space: Literal["frame", "full"] = "frame"
    data: Data = None
    rates: Mapping[str, float | ArrayLike] | None = None

    def __post_init__(self) -> None:
        check_optimiser(self.optimiser)
        put(self, steps=whole("steps", self.steps, least=1, most=STEPS), data=given_data(self.data))
        one_of("space", self.space, ["frame", "full"])
        rates_given(self.rates)

    @property
    def _full(self) -> bool:
        return self.space == "full" or self.data is not None

    def room(self, problem: AbstractProblem, seeds: int) -> dict[str, float]:
        problem = of_kind(problem, Problem, self.name)
        return of_network(problem, seeds, columns_of(problem, full=self._full)) | of_data(problem, seeds, self.data)

    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        problem = of_kind(problem, Problem, self.name)
        step = OptimisedStep(problem.student.rates(self.rates), problem.student.layers, self.optimiser)
        prepared = staged(step, problem, seeds, self.data, start, full=self._full)
        layers = {name: getattr(prepared.start, name).shape[1:] for name in step.trains}
        if not self._full:
            check_lawful(self.optimiser, layers, WAY_OUT)
        _check_asks(self.optimiser, layers)
        return prepared

    def stops(self, record: Record) -> NDArray[np.float64]:
        return record.updates(int(self.steps))

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        about = {"optimiser": "optax", "steps": int(self.steps), "space": "full" if self._full else "frame"}
        return about | {"samples": samples_of(self.data)}


def _check_asks(optimiser: "GradientTransformation", layers: dict[str, tuple[int, ...]]) -> None:
    """Refuse an optimiser that cannot make an update of weights and their gradient."""
    weights = {name: jnp.zeros(shape) for name, shape in layers.items()}
    try:
        jax.eval_shape(lambda w: updated(optimiser, w, optimiser.init(w), w), weights)
    except TypeError as error:
        raise BadInput(
            f"The optimiser asks for more than weights and their gradient ({error}); use one without a line search."
        ) from None


class OptimisedStep(AbstractStep):
    """One update; what it takes along is the optimiser's state."""

    rates: PyTree
    trains: tuple[str, ...] = eqx.field(static=True)
    optimiser: "GradientTransformation" = eqx.field(static=True)

    @property
    def tells_strain(self) -> bool:
        return True

    def _layers(self, tree: PyTree) -> dict[str, Float[Array, "..."]]:
        return {name: getattr(tree, name) for name in self.trains}

    def begin(self, oracle: AbstractOracle, weights: PyTree) -> Moment:
        state = jax.tree.map(jnp.asarray, self.optimiser.init(self._layers(weights)))
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), state)

    def step(self, oracle: AbstractOracle, moment: Moment, limit: Float[Array, ""]) -> Taken:
        weights, gradient = moment.weights, oracle.gradient(moment.weights)
        moves, state = updated(self.optimiser, self._layers(gradient), moment.carry, self._layers(weights))
        moved = {name: getattr(weights, name) + getattr(self.rates, name) * moves[name] for name in self.trains}
        after = type(weights)(**{name: moved.get(name, getattr(weights, name)) for name in part_names(weights)})
        clock = moment.clock + 1
        strained = oracle.strained(weights, gradient=gradient)
        return Taken(Moment(after, clock, clock, state), jnp.array(True), jnp.array(False), strained)
