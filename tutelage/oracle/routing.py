"""What a linear router does to clustered inputs, in closed form: in each cluster its scores are Gaussian."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from tutelage._errors import BadInput
from tutelage._types import Numbers
from tutelage.oracle.clustered import ClusterOracle, Overlaps
from tutelage.problem.clusters import Clustered, Clusters
from tutelage.problem.units import Units

ORTHANTS = 10
"""Top-1 probabilities are integrals of one dimension less than there are experts; above this they are sampled."""


def entropy_of(shares: ArrayLike) -> NDArray[np.float64]:
    """`-sum p log p` along the last axis, in nats; `0 log 0 = 0`.

    ```python
    >>> from tutelage.oracle.routing import entropy_of
    >>> [round(float(v), 4) for v in entropy_of([[0.5, 0.5], [1.0, 0.0]])]
    [0.6931, 0.0]

    ```
    """
    p = np.asarray(shares, float)
    return np.asarray(np.sum(-p * np.log(np.where(p > 0, p, 1.0)), axis=-1) + 0.0)


def passing(theta: ArrayLike, inputs: Clusters, level: float = 0.0) -> Numbers:
    """`P(theta_m.x >= level | c) = Phi((radius v_c.theta_m - level)/|theta_m|)`, (cluster, expert).

    ```python
    >>> from tutelage.oracle.routing import passing
    >>> from tutelage.problem.clusters import antipodal
    >>> passing([[0.0, 0.0, 0.0, 2.0, 0.0]], antipodal(5, 1.0)).round(4).tolist()
    [[0.8413], [0.1587]]

    ```
    """
    rows = _rows(theta, inputs)
    scale = np.linalg.norm(rows, axis=1)
    centred = _centres(rows, inputs) - level
    sure = np.where(centred >= 0, 1.0, 0.0)  # a router of zeros: every sample has score 0
    return np.where(scale > 0, ndtr(centred / np.where(scale > 0, scale, 1.0)), sure)


class Shares(NamedTuple):
    """Probabilities (cluster, expert) and how far off they may be: a standard error, or the integral's tolerance."""

    value: Numbers
    error: Numbers


def winning(theta: ArrayLike, inputs: Clusters, *, samples: int = 200_000, seed: int = 0) -> Shares:
    """`P(expert m has the highest score | c)`: Gaussian orthants for few experts, else sampled; ties are shared.

    Up to 10 experts the integral is that of SciPy, to about 1e-5. Scores that are always equal have no orthant, so that
    routers with equal rows are sampled, whatever their number.
    """
    rows = _rows(theta, inputs)
    means, gram = _centres(rows, inputs), rows @ rows.T
    gaps = np.diag(gram)[:, None] + np.diag(gram)[None, :] - 2 * gram + np.eye(len(rows))
    if 1 < len(rows) <= ORTHANTS and gaps.min() > 1e-12 * np.diag(gram).max() > 0:
        value = np.array([[_orthant(mean, gram, m) for m in range(len(rows))] for mean in means])
        return Shares(value, np.full(value.shape, 1e-5))
    return _sampled(means, rows, samples, np.random.default_rng(seed))


def expected_router(problem: Clustered, units: Units, first: ArrayLike, *, step: float = 1.0) -> Numbers:
    """The router after one step from zero with exact expectations: `theta_m = step/M^2 (V_m - mean V)`, (expert, dim).

    `V_m = E[y f_m(x) x]`. `first` has the experts' unit rows, (expert, unit, dim).
    """
    rows = np.asarray(first, float)
    if rows.ndim != 3 or rows.shape[-1] != problem.inputs.dim:
        expected = f"(experts, units, {problem.inputs.dim})"
        raise BadInput(f"population: first has shape {rows.shape}, but {expected} was expected.")
    frame = problem.frame
    frame = np.pad(frame, ((0, 0), (0, rows.shape[-1] - frame.shape[1])))
    field = np.asarray(_router(ClusterOracle(problem), units, jnp.asarray(rows @ frame.T)))
    pull = np.mean(field[..., :-1] @ frame + field[..., -1:] * rows, axis=1)
    return np.asarray(step / len(rows) ** 2 * (pull - pull.mean(axis=0)))


@eqx.filter_jit
def _router(oracle: ClusterOracle, units: Units, overlaps: Overlaps) -> Float[jax.Array, "expert unit wide"]:
    return oracle.field(units, overlaps).router


def effective_rank(first: ArrayLike) -> Numbers:
    """`exp` of the entropy of an expert's normalised squared singular values: how many directions its units span.

    1 if all units are parallel, the number of units if they are orthogonal and of one length; for each expert.

    ```python
    >>> import numpy as np
    >>> from tutelage.oracle.routing import effective_rank
    >>> effective_rank([np.eye(4)[:3], np.ones((3, 4))]).round(6).tolist()
    [3.0, 1.0]

    ```
    """
    squares = np.linalg.svd(np.asarray(first, float), compute_uv=False) ** 2
    return np.exp(entropy_of(squares / squares.sum(axis=-1, keepdims=True)))


def _rows(theta: ArrayLike, inputs: Clusters) -> Numbers:
    rows = np.asarray(theta, float)
    if rows.ndim != 2 or rows.shape[1] != inputs.dim:
        raise BadInput(f"A router has shape {rows.shape}, but (experts, dim) with dim = {inputs.dim} was expected.")
    return rows


def _centres(rows: Numbers, inputs: Clusters) -> Numbers:
    """The scores' means, (cluster, expert)."""
    means = np.asarray(inputs.means)
    return inputs.radius * means @ rows[:, : means.shape[1]].T


def _orthant(mean: Numbers, gram: Numbers, m: int) -> float:
    """All differences `h_m - h_m'` are positive: a Gaussian of one dimension less, flipped for the cdf at zero."""
    from scipy.stats import multivariate_normal  # takes as long to load as JAX, and few ask for it

    turn = np.delete(np.eye(len(mean)), m, axis=0) - np.eye(len(mean))[m]
    law = multivariate_normal(turn @ mean, turn @ gram @ turn.T, allow_singular=True, seed=0)
    return float(law.cdf(np.zeros(len(mean) - 1)))


def _sampled(means: Numbers, rows: Numbers, samples: int, draw: np.random.Generator) -> Shares:
    root = np.linalg.qr(rows.T, mode="r")  # its columns have the rows' inner products; equal rows stay equal
    scores = means[:, None] + draw.standard_normal((samples, len(root))) @ root
    best = scores >= scores.max(axis=-1, keepdims=True) - 1e-12 * np.abs(root).max()
    value = np.mean(best / best.sum(axis=-1, keepdims=True), axis=1)
    return Shares(value, np.sqrt(value * (1 - value) / samples))
