"""A penalty on the size of the weights, which is a part of what is descended."""

from dataclasses import dataclass

import jax.numpy as jnp

from tutelage._checks import put, real
from tutelage.problem.networks import Rates


@dataclass(frozen=True)
class Penalty:
    """`1/2 (first |W|^2 + second |V|^2)` of all incoming and all outgoing weights, added to the loss: weight decay.

    A run then descends this sum, its `objective`, and stops by its gradient; the `loss` that is recorded, and that
    events and `Stop(loss=...)` look at, has no penalty in it. Rates of layers multiply both. The rows of a mixture's
    routers and experts are all of `first`.

    ```python
    >>> import tutelage as tt
    >>> problem = tt.Problem(
    ...     inputs=tt.Gaussian(10**6),
    ...     teacher=tt.TwoLayer("linear", first=[[1.0]]),
    ...     student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-3), width=1, trains=("first",)),
    ...     penalty=tt.Penalty(first=0.25),
    ... )
    >>> run = tt.flow(problem, until=40.0)
    >>> round(float(run.last("overlap").squeeze()), 6)  # 1 / (1 + 0.25)
    0.8
    >>> round(float(run.last("objective")[0] - run.last("loss")[0]), 6)  # 1/2 0.25 0.8^2
    0.08

    ```
    """

    first: float = 0.0
    second: float = 0.0

    def __post_init__(self) -> None:
        put(self, first=real("Penalty: first", self.first, least=0))
        put(self, second=real("Penalty: second", self.second, least=0))

    @property
    def strengths(self) -> Rates:
        """What multiplies each layer in the gradient."""
        return Rates(jnp.asarray(self.first), jnp.asarray(self.second))
