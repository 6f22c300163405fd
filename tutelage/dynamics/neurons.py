"""Single neurons on the sphere as the start of a run: what they are, and their overlaps with the frame alone.

A run of them has the axes seed, expert and unit; neurons do not see each other, and any dimension costs the same.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import instance, refused, table
from tutelage._errors import BadInput
from tutelage.dynamics.staging import stacked
from tutelage.problem.clusters import Clustered
from tutelage.problem.frame import stream as weights_of
from tutelage.problem.problem import Start
from tutelage.problem.units import Experts, Units

Matrix = NDArray[np.float64]
_WEIGHTS = 10  # the stream of a seed's starting weights


class Neurons(eqx.Module):
    """Overlaps with the frame, what else neurons are, and how probable the clusters are among an expert's samples."""

    overlaps: Float[Array, "seed expert unit row"]
    units: Units
    served: Float[Array, "seed expert cluster"]


def initial(problem: Clustered, law: Experts, draw: np.random.Generator) -> tuple[Units, Matrix]:
    """Units as the law draws them, and their overlaps with the frame, in law: any dimension costs the same.

    ```python
    >>> import numpy as np, tutelage as tt
    >>> from tutelage.dynamics.neurons import initial
    >>> from tutelage.problem.clusters import antipodal
    >>> tasks = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
    >>> problem = tt.Clustered(antipodal(10**9, 3.0), tasks)
    >>> units, overlaps = initial(problem, tt.Experts(1, 8, "relu"), np.random.default_rng(0))
    >>> overlaps.shape
    (1, 8, 5)

    ```
    """
    frame = problem.frame
    units = law.units(draw)
    return units, law.overlaps(draw, problem.inputs.dim, frame.shape[1]) @ frame.T


def neurons_at(problem: Clustered, units: Units, overlaps: ArrayLike, served: ArrayLike | None = None) -> Start:
    """The start of a run from these neurons, the same for all seeds.

    - `overlaps`: with the rows of the frame, of one expert (unit, row), of several (expert, unit, row), or with an axis
      of seeds before these.
    - `served`: how probable the clusters are among the samples of a neuron, for all or (expert, cluster); those of the
      problem if None.
    """
    instance("neurons_at: problem", problem, Clustered, "a tt.Clustered")
    instance("neurons_at: units", units, Units, "tt.Units")
    expected = "finite numbers (unit, row), (expert, unit, row) or (seed, expert, unit, row)"
    rows, count = jnp.asarray(table("neurons_at: overlaps", overlaps, expected, axes=(2, 3, 4))), problem.inputs.count
    lead = (None,) * (4 - rows.ndim)
    each = f"{count} numbers from 0 up, one for each cluster,"
    weights = np.asarray(problem.inputs.weights) if served is None else table("served", served, each, axes=(1, 2, 3))
    if weights.shape[-1:] != (count,) or not np.all(weights >= 0):
        raise refused("served", served, each)
    units, rows = jax.tree.map(lambda leaf: leaf[lead], (units, rows))
    sent = jnp.asarray(np.broadcast_to(weights, (*rows.shape[:2], count)))
    return Start(jnp.asarray(problem.frame), Neurons(rows, units, sent))


def begun(problem: Clustered, seeds: list[int], start: Start | None) -> Neurons:
    """The neurons of all seeds: those given, or else such as the problem's student draws."""
    if start is None:
        if problem.student is None:
            raise BadInput("The problem has no student; say which neurons learn it, with taught_to(...) or a start.")
        drawn = [initial(problem, problem.student, weights_of(seed, _WEIGHTS)) for seed in seeds]
        start = neurons_at(problem, stacked([units for units, _ in drawn]), np.stack([rows for _, rows in drawn]))
    given: Any = start.student
    if not hasattr(given, "overlaps"):
        raise BadInput(
            f"The start is {type(given).__name__}, but neurons were expected, such as neurons_at(...) makes."
        )
    inside(problem, given)
    neurons = Neurons(given.overlaps, given.units, given.served)
    all_seeds: Neurons = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(seeds), *leaf.shape[1:])), neurons)
    return all_seeds


def inside(problem: Clustered, neurons: Neurons) -> Matrix:
    """Coordinates in the orthonormal basis of the frame's span (axis, seed, expert, unit); what no neuron can have is
    refused."""
    overlaps, rows = np.asarray(neurons.overlaps), in_basis(problem.frame)
    wanted = (*neurons.units.outgoing.shape, len(rows))
    if overlaps.shape != wanted or len(wanted) != 4:
        raise BadInput(
            f"Overlaps have shape {overlaps.shape[1:]}, but {wanted[1:]} was expected: for each unit its overlaps with "
            "the rows of the frame."
        )
    flat = np.where(np.isfinite(overlaps), overlaps, 2.0).reshape(-1, len(rows)).T  # 2: no overlap of unit vectors
    found = np.linalg.lstsq(rows, flat, rcond=None)[0]
    squares = np.sum(found**2, axis=0)
    if np.max(squares) > 1 + 1e-9 or np.max(np.abs(rows @ found - flat)) > 1e-9:
        raise BadInput(
            f"No unit vector has such overlaps (squared norm {np.max(squares):.3g}, at most 1 was expected, and equal "
            "rows of the frame need equal overlaps); take those of weights, weights @ frame.T."
        )
    return np.asarray(found.reshape(-1, *overlaps.shape[:-1]))


def in_basis(frame: Matrix) -> Matrix:
    """The rows of a frame in an orthonormal basis of their span, by Gram-Schmidt: axes stay axes.

    ```python
    >>> import numpy as np
    >>> from tutelage.dynamics.neurons import in_basis
    >>> in_basis(np.array([[1.0, 0.0], [-1.0, 0.0]])).tolist()
    [[1.0], [-1.0]]

    ```
    """
    basis: list[Matrix] = []
    for row in frame:
        rest = row
        for _ in range(2):  # once more, for what rounding has left
            rest = rest - sum((np.dot(rest, axis) * axis for axis in basis), np.zeros_like(row))
        if np.linalg.norm(rest) > 1e-9 * np.linalg.norm(row):
            basis.append(rest / np.linalg.norm(rest))
    return frame @ np.stack(basis).T
