"""Drift and noise of one neuron on the sphere, and the step at which they balance.

Single-sample SGD with an effective step `e` moves the alignment `kappa = w.w_task` by `e D(kappa)` on average, where
`D` is the population gradient, and takes `kappa e^2 (d - 1) N(kappa)/2` off it: noise in all other directions lengthens
the neuron, which is then divided by its length. Here `N = E[y^2 s'(w.x + b)^2]` over the samples that the neuron
receives. So for each alignment there is one step at which the two cancel,

    `e(kappa) = 2 D(kappa) / (kappa (d - 1) N(kappa))`,

and with a smaller one the alignment grows. At the start, `kappa ~ 2/sqrt(d)`, this is the largest step that learns at
all, of order `d^(-k/2)` for the information exponent k. Near 1 it says where the alignment settles. Other overlaps than
that with the task are taken to be what the task itself gives.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from numpy.polynomial.hermite_e import hermegauss, hermeval, hermevander
from numpy.typing import ArrayLike

from tutelage._checks import instance, real
from tutelage._errors import BadInput
from tutelage._types import Numbers
from tutelage.oracle.clustered import ClusterOracle
from tutelage.oracle.kernels.shifted import panels
from tutelage.problem.clusters import Clustered
from tutelage.problem.hermite import normalised
from tutelage.problem.units import Units

_GRID = np.concatenate([np.linspace(0.01, 0.9, 30), 1 - np.geomspace(0.08, 1e-3, 10)])
_ROUNDS = 7  # each divides the interval by the size of the grid

_gradient = eqx.filter_jit(ClusterOracle.turning)


def noise_level(problem: Clustered, units: Units, overlaps: ArrayLike) -> Numbers:
    """`E[y^2 s'(w.x + b)^2]` in each cluster (unit, cluster), from overlaps with the frame (unit, row).

    By quadrature without error but rounding: Gauss-Hermite of its degree for the squared label given `w.x`, and
    Gauss-Legendre between the kinks of the activation for `w.x`. Label noise is part of `y`.

    ```python
    >>> import jax.numpy as jnp, numpy as np, tutelage as tt
    >>> from tutelage.oracle.step_size import noise_level
    >>> from tutelage.problem.clusters import antipodal
    >>> tasks = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
    >>> problem = tt.Clustered(antipodal(30, 3.0), tasks)
    >>> unit = tt.Units(jnp.ones(1), jnp.zeros(1), kind=tt.activation("relu"))
    >>> noise_level(problem, unit, np.zeros((1, 5))).round(12).tolist()  # E[y^2] = 2, and half of the samples
    [[1.0, 1.0]]

    ```
    """
    overlaps = np.asarray(overlaps, float)
    count = problem.inputs.count
    return np.stack([_in_cluster(problem, units, overlaps, c) for c in range(count)], axis=-1)


def _in_cluster(problem: Clustered, units: Units, overlaps: Numbers, cluster: int) -> Numbers:
    argument, weights = panels(units.kind.kinks if units.kind is not None else ())
    bias = np.asarray(units.bias)[..., None]
    row = problem.inputs.count + 1 + cluster
    # The argument of the activation is w.x + b; `standard` is w.x without its mean, a standard normal.
    standard = argument - bias - problem.inputs.radius * overlaps[..., row, None]
    density = weights * np.exp(-(standard**2) / 2) / np.sqrt(2 * np.pi)
    slope = np.moveaxis(np.asarray(units.slope(jnp.moveaxis(jnp.asarray(argument - bias), -1, 0))), 0, -1)
    series = np.moveaxis(_squared_label(problem, cluster, overlaps), -1, 0)
    square = hermeval(standard, series[..., None] / normalised(len(series))[:, *(None,) * standard.ndim], tensor=False)
    return np.asarray(np.sum(density * slope**2 * square, axis=-1))


def _squared_label(problem: Clustered, cluster: int, overlaps: Numbers) -> Numbers:
    """Hermite coefficients (unit, order) of `E[y^2 | w.x]`, a polynomial in the standard normal part of `w.x`."""
    teacher, count = problem.teacher, problem.inputs.count
    gram = problem.frame @ problem.frame.T
    pair = [cluster, count]  # the local task, and the global one
    seen, mean = overlaps[..., pair], problem.inputs.radius * gram[pair, count + 1 + cluster]
    nodes, weights = _normal_nodes(teacher.orders)  # exact for a square of the degree of the label
    wide, wide_weights = _normal_nodes(2 * teacher.orders)
    # Given w.x the two tasks are normal with less spread.
    sizes, axes = np.linalg.eigh(gram[np.ix_(pair, pair)] - seen[..., :, None] * seen[..., None, :])
    root = axes * np.sqrt(np.maximum(sizes, 0.0))[..., None, :]
    spread = root @ np.stack(np.meshgrid(nodes, nodes, indexing="ij")).reshape(2, -1)
    z = (mean[:, None] + seen[..., None] * wide)[..., None] + spread[..., None, :]
    scale = normalised(teacher.orders)
    label = hermeval(z[..., 0, :, :], np.asarray(teacher.local)[cluster] / scale)
    label = label + teacher.interference[cluster] * hermeval(z[..., 1, :, :], np.asarray(teacher.shared) / scale)
    square = label**2 @ np.outer(weights, weights).ravel() + problem.noise**2
    table = hermevander(wide, 2 * teacher.orders - 2) / normalised(2 * teacher.orders - 1)
    return np.asarray((square * wide_weights) @ table)


def _normal_nodes(count: int) -> tuple[Numbers, Numbers]:
    nodes, weights = hermegauss(count)
    return nodes, weights / weights.sum()


@dataclass(frozen=True, eq=False)
class Balance:
    """Units on their way to one task of a clustered problem: a row of the frame, `task`.

    `served`: how probable the clusters are among the samples that a unit receives; those of the problem if None, and
    (1, 0) for an expert that a router sends the first of two clusters. Alignments may have more axes before the units'.
    Where a task is learned with the opposite sign, `kappa` is the size of the alignment.
    """

    problem: Clustered
    units: Units
    task: int
    served: tuple[float, ...] | None = None

    @cached_property
    def _oracle(self) -> ClusterOracle:
        oracle = ClusterOracle(self.problem)
        return oracle if self.served is None else oracle.served(jnp.asarray(self._weights))

    @property
    def _weights(self) -> Numbers:
        weights = self.problem.inputs.weights if self.served is None else np.asarray(self.served, float)
        return np.asarray(weights / weights.sum())

    def _signed(self, kappa: Numbers) -> Numbers:
        """The population gradient of the alignment."""
        return np.asarray(_gradient(self._oracle, self.units, jnp.asarray(self._overlaps(kappa))))[..., self.task]

    def _overlaps(self, kappa: Numbers) -> Numbers:
        row = (self.problem.frame @ self.problem.frame.T)[self.task]
        return np.asarray(kappa[..., None] * row)

    @cached_property
    def _sign(self) -> Numbers:
        """On which side of zero the alignment grows; both are the same if only even orders count."""
        ahead, back = self._signed(_GRID[0] * np.array([1.0, -1.0]).reshape(2, *self._ones))
        return np.where(ahead >= -back, 1.0, -1.0)

    def _at(self, kappa: ArrayLike) -> Numbers:
        return np.asarray(self._sign * np.asarray(kappa, float))

    def drift(self, kappa: ArrayLike) -> Numbers:
        """`D`: how the population gradient changes the size of the alignment."""
        return np.asarray(self._sign * self._signed(self._at(kappa)))

    def noise(self, kappa: ArrayLike) -> Numbers:
        """`N`."""
        return noise_level(self.problem, self.units, self._overlaps(self._at(kappa))) @ self._weights

    def step_at(self, kappa: ArrayLike) -> Numbers:
        """The step at which drift and noise cancel at this alignment; negative where the drift is."""
        dim = self.problem.inputs.dim
        return 2 * self.drift(kappa) / (np.abs(self._at(kappa)) * (dim - 1) * self.noise(kappa))

    def stationary(self, step: float) -> Numbers:
        """The largest alignment at which drift and noise cancel, where they do so stably; nan if there is none."""
        ends, part = np.append(_GRID, 1.0), np.linspace(0, 1, len(_GRID)).reshape(-1, *self._ones)
        above = self.step_at(_GRID.reshape(part.shape)) >= step
        last = len(_GRID) - 1 - np.argmax(above[::-1], axis=0)
        low, high = ends[last], ends[last + 1]
        for _ in range(_ROUNDS):
            kappa = low + part * (high - low)
            still = self.step_at(kappa) >= step
            place = np.maximum(len(part) - 1 - np.argmax(still[::-1], axis=0), 0)[None]
            low, high = (np.take_along_axis(kappa, np.minimum(place + n, len(part) - 1), 0)[0] for n in (0, 1))
        return np.where(above.any(0), low, np.nan)

    @property
    def _ones(self) -> tuple[int, ...]:
        return (1,) * np.ndim(self.units.bias)

    def near_one(self, step: float) -> Numbers:
        """The stationary alignment where it is near 1: `1 - step d N(1)/(4 D(kappa)/(1 - kappa^2))`, D there at 1."""
        edge = 1 - 1e-6
        slope = self.drift(edge) / (1 - edge**2)
        slope = np.where(slope > 0, slope, np.nan)
        return 1 - step * self.problem.inputs.dim * self.noise(1.0) / (4 * slope)

    def largest_start(self, start: float | None = None) -> Numbers:
        """The step above which noise wins at the start, whose alignment is 2/sqrt(d) if it is not given."""
        return self.step_at(typical_start(self.problem) if start is None else start)


def typical_start(problem: Clustered) -> float:
    """`2/sqrt(d)`, at most 1/2: the best of a few random neurons."""
    return min(2 / float(np.sqrt(problem.inputs.dim)), 0.5)


class Advice(NamedTuple):
    """A step, and why: by task, the step above which nothing starts, and that above which too little is kept.

    Both are medians over the units that can learn the task, and nan for a task that none can.
    """

    step: float
    start: dict[str, float]
    end: dict[str, float]


def recommended_step(
    problem: Clustered,
    units: Units,
    *,
    alignment: float = 0.9,
    start: float | None = None,
    served: tuple[float, ...] | None = None,
    safety: float = 0.5,
) -> Advice:
    """The effective step with which units learn the tasks that they can learn, from their start to an `alignment`.

    It is `safety` times the smallest step at which drift and noise cancel anywhere on the way, for the median of the
    units that can learn a task, and for the hardest of these tasks. `served`: as for `Balance`.

    ```python
    >>> import numpy as np, tutelage as tt
    >>> from tutelage.oracle.step_size import recommended_step
    >>> from tutelage.problem.clusters import antipodal
    >>> tasks = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
    >>> problem = tt.Clustered(antipodal(30, 3.0), tasks)
    >>> units = tt.Experts(1, 4, "relu").units(np.random.default_rng(0))
    >>> advice = recommended_step(problem, units)
    >>> f"{advice.step:.1e}", bool(np.isnan(advice.start["wg"]))  # without a router the signs of the global task cancel
    ('6.5e-04', True)

    ```
    """
    instance("recommended_step: problem", problem, Clustered, "a tt.Clustered")
    instance("recommended_step: units", units, Units, "tt.Units")
    first = typical_start(problem) if start is None else real("recommended_step: start", start)
    alignment, safety = real("recommended_step: alignment", alignment), real("recommended_step: safety", safety)
    if not (0 < first < alignment < 1 and safety > 0):
        raise BadInput(
            f"recommended_step: start is {first:g}, alignment {alignment:g} and safety {safety:g}, but "
            "0 < start < alignment < 1 and a positive safety were expected."
        )
    way = np.geomspace(first, alignment, len(_GRID))
    starts, ends, least = {}, {}, []
    for task, name in enumerate(problem.tasks):
        balance = Balance(problem, units, task, served)
        steps = balance.step_at(way.reshape(-1, *(1,) * np.ndim(units.bias))).reshape(len(way), -1)
        able = steps.min(0) > 0
        starts[name], ends[name] = (float(np.median(row[able])) if able.any() else np.nan for row in steps[[0, -1]])
        least += [float(np.median(steps.min(0)[able]))] if able.any() else []
    if not least:
        raise BadInput("recommended_step: none of the units can learn a task; draw more units, or other activations.")
    return Advice(safety * min(least), starts, ends)
