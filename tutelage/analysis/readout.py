"""The second layer by ridge regression (Phase IV), and the error of what comes out.

Features are `gate_m(x) s_mj(w_mj.x + b_mj)/J`. Normal equations are gathered chunk by chunk. Experts that are never
active together have a zero block between them, so that groups of such experts are solved one by one, with the same
result and less work.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dsyrk
from scipy.sparse.csgraph import connected_components

from tutelage._errors import BadInput
from tutelage.dynamics.streams import Samples, Stream, total
from tutelage.problem.outputs import First, checked, expert_outputs, unit_values
from tutelage.problem.routers import Router, Threshold
from tutelage.problem.units import Units

Theta = Float[Array, "expert dim"]
CHUNK = 2048


@dataclass(frozen=True)
class Readout:
    """Outgoing weights (expert, unit) by ridge regression.

    - `groups`: the experts that were solved together; one group of all experts if there was nothing to split.
    - `idle`: the part of the samples for which no expert was active.
    """

    outgoing: NDArray[np.float64]
    groups: tuple[tuple[int, ...], ...]
    idle: float

    def put(self, units: Units) -> Units:
        """The units with these outgoing weights."""
        return eqx.tree_at(lambda each: each.outgoing, units, jnp.asarray(self.outgoing))


def ridge(
    stream: Stream,
    units: Units,
    first: First,
    *,
    samples: int,
    penalty: float,
    theta: ArrayLike | None = None,
    router: Router | None = None,
    split: bool = True,
    begin: int = 0,
    chunk: int = CHUNK,
) -> Readout:
    """The weights `a` that minimise `mean (y - Phi a)^2 + lambda |a|^2`, where `penalty` is `lambda J^2`.

    - `units`, `first`: biases and incoming weights (expert, unit, dim), signs already flipped. The outgoing weights
      of `units` are not used.
    - `theta`, `router`: which experts are active; `Threshold(0)` by default. Without `theta` all are, always: a network
      without a router is one expert.
    - `split`: solve groups of experts that are never active together one by one; the result is the same.

    ```python
    >>> import numpy as np, tutelage as tt
    >>> from tutelage.analysis.readout import errors, ridge
    >>> from tutelage.dynamics.streams import stream
    >>> from tutelage.problem.clusters import antipodal
    >>> tasks = tt.Tasks(local=[{1: 1.0}, {1: 1.0}], shared={}, interference=(0, 0), directions=np.eye(5)[[0, 0, 1]])
    >>> data = stream(tt.Clustered(antipodal(5, 1.0), tasks), seed=0, phase=4)
    >>> units, first = tt.Experts(1, 8, activation=(1, 1)).draw(np.random.default_rng(0), dim=5)  # linear units
    >>> found = ridge(data, units, first, samples=2000, penalty=1e-8)
    >>> bool(errors(data, found.put(units), first, samples=2000, begin=2000).absolute.value < 1e-5)
    True

    ```
    """
    first, theta, router = _network("ridge", stream, units, first, theta, router)
    if not (np.isfinite(penalty) and penalty > 0):
        raise BadInput(f"ridge: penalty is {penalty}, but a finite lambda J^2 above 0 was expected, such as 1e-4.")
    _some("ridge", samples)
    together, idle = _met(stream, theta, router, len(first), jnp.asarray(begin), jnp.asarray(samples), chunk)
    groups = _groups(np.asarray(together) > 0) if split else (tuple(range(len(first))),)
    outgoing = np.zeros(first.shape[:2])
    sums = [_Sums(len(group) * first.shape[1]) for group in groups]
    for features, labels in _chunks(stream, units, first, theta, router, samples, begin, chunk):
        for group, kept in zip(groups, sums, strict=True):
            seen = features if len(groups) == 1 else features[:, group]
            kept.add(seen.reshape(len(seen), -1), labels)
    for group, kept in zip(groups, sums, strict=True):
        outgoing[list(group)] = first.shape[1] * kept.solve(samples, penalty).reshape(len(group), -1)
    return Readout(outgoing, groups, float(idle) / samples)


class Estimate(NamedTuple):
    """A mean over samples and its standard error."""

    value: float
    error: float


class Errors(NamedTuple):
    """How far a network is from the labels without noise, over all samples and in each cluster.

    `zero` is the mean absolute error of saying 0 always; `idle` the part of samples without an active expert.
    """

    absolute: Estimate
    squared: Estimate
    absolute_by_cluster: tuple[Estimate, ...]
    squared_by_cluster: tuple[Estimate, ...]
    zero: float
    idle: float


def errors(
    stream: Stream,
    units: Units,
    first: First,
    *,
    samples: int,
    theta: ArrayLike | None = None,
    router: Router | None = None,
    begin: int = 0,
    chunk: int = CHUNK,
) -> Errors:
    """Errors of `sum_m gate_m(x) f_m(x)`, with `f_m = 1/J sum_j a_mj s_mj`, on `samples` samples from `begin` on.

    Take a phase of the stream, or numbers, that training has not seen.
    """
    first, theta, router = _network("errors", stream, units, first, theta, router)
    _some("errors", samples)
    sums = np.asarray(_missed(stream, units, first, theta, router, jnp.asarray(begin), jnp.asarray(samples), chunk))
    every = sums.sum(axis=0)
    return Errors(
        _estimate(every[0], every[1], every[2]),
        _estimate(every[0], every[2], every[3]),
        tuple(_estimate(row[0], row[1], row[2]) for row in sums),
        tuple(_estimate(row[0], row[2], row[3]) for row in sums),
        float(every[4] / samples),
        float(every[5] / samples),
    )


def _estimate(count: float, total: float, squares: float) -> Estimate:
    """A mean and its standard error from sums; nan where no sample was seen."""
    if count < 1:
        return Estimate(float("nan"), float("nan"))
    mean = total / count
    return Estimate(float(mean), float(np.sqrt(max(squares / count - mean**2, 0.0) / count)))


class _Sums:
    """The normal equations of some features."""

    def __init__(self, size: int):
        self.gram = np.zeros((size, size), order="F")
        self.right = np.zeros(size)

    def add(self, features: NDArray[np.float64], labels: NDArray[np.float64]) -> None:
        active = features.any(axis=1)
        rows = np.ascontiguousarray(features[active]).T
        if rows.size:
            self.gram = dsyrk(1.0, rows, beta=1.0, c=self.gram, overwrite_c=True)  # upper half only, in place
            self.right += rows @ labels[active]

    def solve(self, samples: int, penalty: float) -> NDArray[np.float64]:
        matrix = self.gram / samples
        matrix[np.diag_indices_from(matrix)] += penalty
        try:
            return cho_solve(cho_factor(matrix, overwrite_a=True), self.right / samples)
        except LinAlgError:
            raise BadInput(f"ridge: features are dependent and penalty {penalty:g} is too small; raise it.") from None


def _chunks(
    stream: Stream,
    units: Units,
    first: First,
    theta: Theta | None,
    router: Router,
    samples: int,
    begin: int,
    chunk: int,
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Features (sample, expert, unit) without the factor 1/J, and labels."""
    for done in range(0, samples, chunk):
        features, labels = _features(stream, units, first, theta, router, jnp.asarray(begin + done), chunk)
        yield np.asarray(features)[: samples - done], np.asarray(labels)[: samples - done]


@eqx.filter_jit
def _features(
    stream: Stream, units: Units, first: First, theta: Theta | None, router: Router, at: Array, chunk: int
) -> tuple[Float[Array, "sample expert unit"], Float[Array, " sample"]]:
    drawn, uniforms = stream.samples(at, chunk), stream.uniforms(at, chunk, len(first))
    gates = _gates(drawn, uniforms, theta, router)
    return gates[..., None] * unit_values(units, first, drawn.inputs), drawn.labels.astype(float)


@eqx.filter_jit
def _met(
    stream: Stream, theta: Theta | None, router: Router, experts: int, at: Array, samples: Array, chunk: int
) -> tuple[Float[Array, "expert expert"], Array]:
    """How often experts were active together, and how often none was."""

    def term(drawn: Samples, uniforms: Array, live: Array) -> tuple[Array, Array]:
        active = (_gates(drawn, uniforms, theta, router) != 0).astype(float) * live[:, None]
        return active.T @ active, jnp.sum(live * (jnp.sum(active, axis=1) == 0).astype(float))

    return total(term, stream, at, samples, chunk=chunk, columns=experts)


@eqx.filter_jit
def _missed(
    stream: Stream,
    units: Units,
    first: First,
    theta: Theta | None,
    router: Router,
    at: Array,
    samples: Array,
    chunk: int,
) -> Float[Array, "cluster sum"]:
    """By cluster: the number of samples, sums of |e|, e^2, e^4, |label|, and samples without an expert."""

    def term(drawn: Samples, uniforms: Array, live: Array) -> Array:
        gates = _gates(drawn, uniforms, theta, router)
        miss = jnp.sum(gates * expert_outputs(units, first, drawn.inputs), axis=1) - drawn.clean.astype(float)
        idle = jnp.all(gates == 0, axis=1).astype(float)
        sums = jnp.stack(
            [jnp.ones_like(miss), jnp.abs(miss), miss**2, miss**4, jnp.abs(drawn.clean).astype(float), idle], axis=1
        )
        return (jax.nn.one_hot(drawn.cluster, stream.problem.inputs.count, dtype=float) * live[:, None]).T @ sums

    return total(term, stream, at, samples, chunk=chunk, columns=len(first))


def _gates(drawn: Samples, uniforms: Array, theta: Theta | None, router: Router) -> Float[Array, "sample expert"]:
    if theta is None:
        return jnp.ones_like(uniforms)
    return router.gates(drawn.inputs.astype(float) @ theta.T, uniforms)


def _groups(together: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Experts linked by samples that they share; those that were never active stand alone."""
    count, label = connected_components(together, directed=False)
    return tuple(tuple(np.flatnonzero(label == number).tolist()) for number in range(count))


def _network(
    owner: str, stream: Stream, units: Units, first: First, theta: ArrayLike | None, router: Router | None
) -> tuple[First, Theta | None, Router]:
    dim = stream.problem.inputs.dim
    first = checked(owner, units, first, dim)
    if theta is not None and np.shape(theta) != (len(first), dim):
        raise BadInput(f"{owner}: theta has shape {np.shape(theta)}, but (experts, dim) = {len(first), dim} is needed.")
    return first, None if theta is None else jnp.asarray(theta, float), Threshold() if router is None else router


def _some(owner: str, samples: int) -> None:
    if samples < 1:
        raise BadInput(f"{owner}: {samples} samples were asked for, but at least one was expected.")
