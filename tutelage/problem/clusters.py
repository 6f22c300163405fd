"""Inputs in clusters, and a teacher with a task of its own in each cluster besides one that all share."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import flag, instance, mapping, real, refused, several, table, whole
from tutelage._errors import BadInput
from tutelage.problem.activations import HIGHEST_ORDER
from tutelage.problem.hermite import normalised, tabulated
from tutelage.problem.inputs import Gaussian
from tutelage.problem.problem import AbstractProblem
from tutelage.problem.units import Experts

Matrix = NDArray[np.float64]
Orders = Mapping[int, float]
MOST_CLUSTERS = 1000  # with a task each, they have a Gram matrix and a kernel of each pair


class Clusters(eqx.Module):
    """Gaussian inputs around centres: `x ~ N(radius means[c], I_dim)` with probability `weights[c]`.

    `means` are unit vectors, given by their first entries; the others are zero.

    ```python
    >>> import tutelage as tt
    >>> tt.Clusters(200, means=[[1.0, 0.0], [0.0, 1.0]], radius=3.0).weights
    array([0.5, 0.5])

    ```
    """

    dim: int = eqx.field(static=True)
    means: Matrix
    radius: float
    weights: NDArray[np.float64]

    def __init__(self, dim: int, means: ArrayLike, radius: float, weights: ArrayLike | None = None):
        self.dim = Gaussian(dim).dim
        self.means = _unit_rows("Clusters: means", means, self.dim)
        self.radius = real("Clusters: radius", radius, least=0)
        count = len(self.means)
        wanted = f"{count} positive numbers"
        given = None if weights is None else table("Clusters: weights", weights, wanted, axes=(1,))
        self.weights = np.full(count, 1 / count) if given is None else given
        if self.weights.shape != (count,) or not np.all(self.weights > 0):
            raise BadInput(f"Clusters: weights are {self.weights.tolist()}; {count} positive numbers were expected.")
        self.weights = self.weights / self.weights.sum()

    @property
    def count(self) -> int:
        """The number of clusters."""
        return len(self.means)


class Tasks(eqx.Module):
    """A teacher for clustered inputs: `f_c(w_c.x) + interference[c] g(w_g.x)` in cluster c.

    - `local`: `f_c` for each cluster, as `{order: coefficient}` of the Hermite polynomials `h_i = He_i/sqrt(i!)`.
    - `shared`: `g` in the same way. `monic`: coefficients are those of `He_i` instead.
    - `directions`: unit rows `w_1 ... w_C, w_g` by their first entries; on the axes if they are not given.

    ```python
    >>> import tutelage as tt
    >>> tasks = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
    >>> tasks.exponent, tasks.local.shape
    (4, (2, 5))

    ```
    """

    local: Float[Array, "cluster order"] | Matrix
    shared: Float[Array, " order"] | Matrix
    interference: Float[Array, " cluster"] | Matrix
    directions: Matrix

    def __init__(
        self,
        local: Sequence[Orders],
        shared: Orders,
        interference: ArrayLike,
        directions: ArrayLike | None = None,
        *,
        monic: bool = False,
    ):
        one = "{order: coefficient}, such as {4: 1.0},"
        local = several("Tasks: local", local, Mapping, f"one {one} for each cluster")
        mapping("Tasks: shared", shared, one)
        count = len(local)
        if not count:
            raise BadInput("Tasks: there are no local tasks, but one for each cluster was expected.")
        size = 1 + max(_order(order) for orders in (*local, shared) for order in (0, *orders))
        monic = flag("Tasks: monic", monic)
        self.local = np.stack([_dense(orders, size, monic) for orders in local])
        self.shared = _dense(shared, size, monic)
        self.interference = table("Tasks: interference", interference, f"{count} finite numbers", axes=(1,))
        if len(self.interference) != count:
            raise BadInput(f"Tasks: interference is {interference!r}, but {count} finite numbers were expected.")
        self.directions = np.eye(count + 1) if directions is None else _unit_rows("Tasks: directions", directions)
        if len(self.directions) != count + 1:
            raise BadInput(f"Tasks: {len(self.directions)} directions were given, but {count} + 1 were expected.")

    @property
    def orders(self) -> int:
        """One more than the highest order."""
        return self.local.shape[1]

    @property
    def exponent(self) -> int:
        """The information exponent k: the lowest order above 0 of any task."""
        return lowest(np.abs(np.asarray(self.local)).sum(0) + np.abs(np.asarray(self.shared)))

    def labels(self, inputs: Float[Array, "sample column"], cluster: Int[Array, " sample"]) -> Float[Array, " sample"]:
        """The labels without noise of samples, of which the first entries (or all) are given."""
        dtype = inputs.dtype
        directions = jnp.asarray(self.directions, dtype)
        seen = tabulated(inputs[:, : directions.shape[1]] @ directions.T, self.orders)
        own = jnp.einsum("sk,sk->s", jnp.asarray(self.local, dtype)[cluster], _chosen(seen, cluster))
        return own + jnp.asarray(self.interference, dtype)[cluster] * (seen[:, -1] @ jnp.asarray(self.shared, dtype))


class Clustered(eqx.Module, AbstractProblem):
    """What is to be learned from clustered inputs: `inputs`, a `teacher` with a task for each cluster, `noise`, and the
    experts that learn it, the `student` (None for formulas, which need none).

    `frame` has the rows `w_1 ... w_C, w_g, v_1 ... v_C`: tasks, then means. If neither is placed by hand, the tasks
    are on the first axes and the means on further ones (`antipodal` and `orthogonal`).
    """

    inputs: Clusters
    teacher: Tasks
    noise: float
    student: Experts | None = eqx.field(static=True)

    def __init__(self, inputs: Clusters, teacher: Tasks, noise: float = 0.0, student: Experts | None = None):
        instance("Clustered: inputs", inputs, Clusters, "tt.Clusters")
        instance("Clustered: teacher", teacher, Tasks, "tt.Tasks")
        if student is not None:
            instance("Clustered: student", student, Experts, "tt.Experts")
        if inputs.count != len(teacher.local):
            raise BadInput(f"Clustered: {inputs.count} clusters but {len(teacher.local)} local tasks; give one each.")
        if teacher.directions.shape[1] > inputs.dim:
            raise BadInput(f"Clustered: dim is {inputs.dim}, directions have {teacher.directions.shape[1]} entries.")
        self.inputs, self.teacher, self.student = inputs, teacher, student
        self.noise = real("Clustered: noise", noise, least=0)

    def taught_to(self, student: Experts) -> "Clustered":
        """The same with experts that learn it."""
        return Clustered(self.inputs, self.teacher, self.noise, student)

    @property
    def frame(self) -> Matrix:
        parts = (np.asarray(self.teacher.directions), np.asarray(self.inputs.means))
        columns = max(part.shape[1] for part in parts)
        return np.concatenate([np.pad(part, ((0, 0), (0, columns - part.shape[1]))) for part in parts])

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the frame's first rows: `w1`, ..., `wg`."""
        return (*(f"w{c + 1}" for c in range(self.inputs.count)), "wg")


def antipodal(dim: int, radius: float, *, tasks: int = 3) -> Clusters:
    """Two clusters around `v` and `-v`, on the axis after those of the `tasks`."""
    row = np.eye(whole("antipodal: tasks", tasks, most=MOST_CLUSTERS) + 1)[-1]
    return Clusters(dim, np.stack([row, -row]), radius)


def orthogonal(dim: int, radius: float, count: int, weights: Sequence[float] | None = None) -> Clusters:
    """`count` clusters with orthogonal means, on the axes after those of their `count + 1` tasks."""
    count = whole("orthogonal: count", count, least=1, most=MOST_CLUSTERS)
    return Clusters(dim, np.eye(2 * count + 1)[count + 1 :], radius, weights)


def lowest(coefficients: ArrayLike) -> int:
    """The information exponent of one function: the lowest order above 0 with a coefficient; 0 if there is none."""
    found = np.flatnonzero(np.abs(np.asarray(coefficients))[1:] > 0)
    return int(found[0]) + 1 if len(found) else 0


def _chosen(seen: Float[Array, "sample task order"], cluster: Int[Array, " sample"]) -> Float[Array, "sample order"]:
    return jnp.take_along_axis(seen, cluster[:, None, None], axis=1)[:, 0]


def _dense(orders: Mapping[Any, Any], size: int, monic: bool) -> Matrix:
    row = np.zeros(size)
    for order, value in orders.items():
        row[_order(order)] = real(f"Tasks: the coefficient of order {order}", value)
    return row * normalised(size) if monic else row


def _order(order: object) -> int:
    return whole("Tasks: an order", order, most=HIGHEST_ORDER)


def _unit_rows(what: str, given: ArrayLike, columns: int | None = None) -> Matrix:
    expected = "one row of finite numbers for each, none of them zero,"
    rows = np.atleast_2d(table(what, given, expected, axes=(1, 2)))
    norms = np.linalg.norm(rows, axis=1)
    if not rows.size or np.any(norms == 0):
        raise refused(what, given, expected)
    if columns is not None and rows.shape[1] > columns:
        raise BadInput(f"{what} have {rows.shape[1]} entries but dim is {columns}; pass at most dim entries.")
    return np.asarray(rows / norms[:, None])
