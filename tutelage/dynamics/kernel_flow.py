"""Gradient flow in the kernel regime: of the student's first-order expansion at its start."""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from numpy.typing import NDArray

from tutelage._checks import put, real
from tutelage._errors import BadInput
from tutelage._limits import LONGEST, SHORTEST
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics, Prepared
from tutelage.dynamics.flow import Flow
from tutelage.dynamics.record import Record
from tutelage.dynamics.room import NUMBER, columns_of, of_network, weights_of
from tutelage.oracle.linearised import LinearisedOracle
from tutelage.oracle.population import PopulationOracle
from tutelage.problem.problem import AbstractProblem, Problem, Start, of_kind


@dataclass(frozen=True)
class KernelFlow(AbstractDynamics):
    """Gradient flow of `f(x; w0) + df(x; w0).(w - w0)` to time `until`: that of the tangent kernel at the start.

    The recorded loss is that of this linear model, of which the weights are the parameters. A student that moves little
    is beside it; one that learns features is not.

    - `rtol`: relative error per step.

    ```python
    >>> import tutelage as tt
    >>> teacher = tt.TwoLayer("relu", first=[[1.0, 0.0]])
    >>> student = tt.TwoLayer("relu", first=tt.SphereRows(1.0), second="mean", width=20, trains=("first",))
    >>> problem = tt.Problem(tt.Gaussian(10), teacher, student)
    >>> kernel, flow = (tt.run(problem, moves) for moves in (tt.KernelFlow(until=1e3), tt.Flow(until=1e3)))
    >>> bool(kernel.last("loss")[0] > 10 * flow.last("loss")[0])
    True

    ```
    """

    name: ClassVar[str] = "kernel"
    revision: ClassVar[int] = REVISIONS["kernel"]
    most: ClassVar[int] = Flow.most

    until: float
    rtol: float = 1e-8

    def __post_init__(self) -> None:
        put(
            self, until=real("KernelFlow: until", self.until, least=SHORTEST, most=LONGEST),
            rtol=real("KernelFlow: rtol", self.rtol, above=0),
        )  # fmt: skip

    def room(self, problem: AbstractProblem, seeds: int) -> dict[str, float]:
        problem = of_kind(problem, Problem, self.name)
        columns = columns_of(problem)
        metric = 3.0 * NUMBER * seeds * weights_of(problem, columns) ** 2
        return of_network(problem, seeds, columns) | {"use fewer units": metric}

    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        flow = Flow(self.until, self.rtol).prepare(problem, seeds, start)
        if not isinstance(flow.oracle, PopulationOracle):
            raise BadInput(
                "KernelFlow is for plain two-layer networks on standard Gaussian inputs, without a penalty; leave "
                "these out, or use tt.Flow."
            )
        return flow._replace(oracle=_linearised(flow.oracle, flow.start), batched=True)

    def stops(self, record: Record) -> NDArray[np.float64]:
        return record.times(float(self.until))

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        del problem
        return {"until": self.until, "rtol": self.rtol}


# One for each seed, in one program.
_linearised = eqx.filter_jit(eqx.filter_vmap(LinearisedOracle, in_axes=(None, 0)))
