"""Maximum likelihood of a law under log-normal noise, some values known only to lie above a limit.

The model is log y = log f(x; parameters) + s e with e standard normal. A value counts by its density, a censored one
by the probability that it lies above its limit. With 1/s and the parameters over s as unknowns the likelihood of a law
whose logarithm is linear in its parameters is concave (Olsen, 1978), so that Newton's method with step halving finds
its maximum from anywhere; another law is linearised at each step (Gauss and Newton). All reweighings of the seeds that
a bootstrap needs are solved at once.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import erfcx, log_ndtr

from tutelage._types import Numbers
from tutelage.analysis.scaling.laws import Law

ROUNDING = 1e-12  # the least noise: logarithms of double precision values are no better than this
ENOUGH = 1e-13  # a step that promises less likelihood than this is the last
CLOSE = 1e-4  # where rounding or patience ends the search before, it has converged if this is the most left to gain
MOST_STEPS = 200


@dataclass(frozen=True)
class Sample:
    """Values at distinct `x`: what is known of them, for each of several weights of the seeds.

    `middle` (x): the mean of the logarithms, from which all logarithms are counted, so that no digits cancel.
    `count`, `total`, `squares` (weights, x): weighted sums over the known values. `where` (censored): the index of x of
    censored entries, with `limit` (censored), its logarithm from the middle, and their `weight` (weights, censored).
    """

    x: Numbers
    middle: Numbers
    count: Numbers
    total: Numbers
    squares: Numbers
    where: np.ndarray
    limit: Numbers
    weight: Numbers

    @classmethod
    def of(cls, x: Numbers, values: Numbers, limit: Numbers, weights: Numbers) -> "Sample":
        """From `values` and `limit` (x, seed), nan where there is none, and `weights` (weights, seed)."""
        known = np.isfinite(values)
        logs = np.log(np.where(known, values, 1.0))
        middle = logs.sum(1) / np.maximum(known.sum(1), 1)
        logs = np.where(known, logs - middle[:, None], 0.0)
        count = weights @ known.T.astype(float)
        squares = weights @ (logs**2).T + count * ROUNDING**2
        where, seed = np.nonzero(np.isfinite(limit) & ~known)
        # Runs often end at one time: entries with the same limit at the same x are one, with their weights added.
        pairs, index = np.unique(np.stack([where, limit[where, seed]], 1), axis=0, return_inverse=True)
        weight = weights[:, seed] @ (index[:, None] == np.arange(len(pairs))).astype(float)
        where = pairs[:, 0].astype(int)
        return cls(x, middle, count, weights @ logs.T, squares, where, np.log(pairs[:, 1]) - middle[where], weight)

    def take(self, which: np.ndarray) -> "Sample":
        """The sample for some of the weights only."""
        parts = {name: getattr(self, name)[which] for name in ("count", "total", "squares", "weight")}
        return replace(self, **parts)

    def spread(self, apart: Numbers) -> Numbers:
        """Summed squares of the residuals of known values, (weights, x); the prediction is `apart` from the middle."""
        return self.squares - 2 * self.total * apart + self.count * apart**2

    def likelihood(self, log_prediction: Numbers, inverse: Numbers) -> Numbers:
        """The log likelihood of the logarithms, by weights, at `log_prediction` (weights, x) and `inverse` = 1/s."""
        apart = log_prediction - self.middle
        squares = self.spread(apart).sum(1)
        with np.errstate(invalid="ignore"):
            known = self.count.sum(1) * (np.log(inverse) - 0.5 * np.log(2 * np.pi)) - 0.5 * inverse**2 * squares
            above = log_ndtr(-inverse[:, None] * (self.limit - apart[:, self.where]))
        return known + (self.weight * above).sum(1)


@dataclass(frozen=True)
class Maximum:
    """Where the likelihood is largest, for each weights: `parameters` as the law knows them, `sigma`, and its value."""

    parameters: Numbers
    sigma: Numbers
    likelihood: Numbers
    converged: np.ndarray


def maximise(law: Law, sample: Sample, parameters: Numbers) -> Maximum:
    """The largest likelihood of `law`, from these start values (parameter)."""
    moved = np.tile(law.moved(parameters), (len(sample.count), 1))
    log_prediction = law.log(sample.x, moved)
    inverse = np.sqrt(sample.count.sum(1) / sample.spread(log_prediction - sample.middle).sum(1))
    value = sample.likelihood(log_prediction, inverse)
    converged = np.zeros(len(moved), bool)
    climbing = np.arange(len(moved))
    for _ in range(MOST_STEPS):
        part, before = sample.take(climbing), value[climbing]
        step, promise = _newton(law, part, moved[climbing], inverse[climbing])
        higher = _climb(law, part, moved[climbing], inverse[climbing], before, step)
        moved[climbing], inverse[climbing], value[climbing] = higher
        raised = higher[2] > before
        converged[climbing] = promise < CLOSE
        climbing = climbing[raised & (promise >= ENOUGH)]
        if not climbing.size:
            break
    return Maximum(law.still(moved), 1 / inverse, value, converged)


def _newton(law: Law, sample: Sample, moved: Numbers, inverse: Numbers) -> tuple[Numbers, Numbers]:
    """The step in (parameters over s, 1/s), counted from the present prediction, and the rise that it promises."""
    # In an orthonormal basis of the slopes the equations are well-conditioned, whatever the units of the parameters.
    basis, back = np.linalg.qr(law.jacobian(sample.x, moved))
    gradient, curvature = derivatives(sample, law.log(sample.x, moved) - sample.middle, basis, inverse)
    size = np.sqrt(np.maximum(np.diagonal(curvature, axis1=1, axis2=2), 1e-300))
    scaled = curvature / (size[:, :, None] * size[:, None, :]) + 1e-14 * np.eye(size.shape[1])
    step = np.linalg.solve(scaled, (gradient / size)[..., None])[..., 0] / size
    promise = 0.5 * (step * gradient).sum(1)
    back = back + 1e-300 * np.eye(back.shape[1])  # parameters without effect make no crash
    step[:, :-1] = np.linalg.solve(back, step[:, :-1, None])[..., 0]
    return step, promise


def derivatives(sample: Sample, apart: Numbers, slopes: Numbers, inverse: Numbers) -> tuple[Numbers, Numbers]:
    """Gradient of the likelihood in (g, 1/s), and minus its second derivatives with the law linearised.

    The logarithm of the prediction is `apart` (weights, x) from the middle, plus s g times `slopes` (weights, x, g).
    """
    # Residuals of the known values, summed at each x.
    total = sample.total - sample.count * apart
    squares = sample.spread(apart).sum(1)
    # Censored: the residual of the limit, and the normal hazard there with its slope.
    limit = sample.limit - apart[:, sample.where]
    standard = inverse[:, None] * limit
    hazard = np.sqrt(2 / np.pi) / erfcx(standard / np.sqrt(2))
    bend = sample.weight * np.clip(hazard * (hazard - standard), 0.0, 1.0)
    hazard = sample.weight * hazard

    pull = inverse[:, None] * total + _gather(hazard, sample)
    stiff = sample.count + _gather(bend, sample)
    cross = total + _gather(bend * limit, sample)
    counts = sample.count.sum(1)
    of_inverse = counts / inverse - inverse * squares - (hazard * limit).sum(1)
    gradient = np.concatenate([np.einsum("rx,rxp->rp", pull, slopes), of_inverse[:, None]], 1)
    number = gradient.shape[1]
    curvature = np.empty((len(inverse), number, number))
    curvature[:, :-1, :-1] = np.einsum("rx,rxp,rxq->rpq", stiff, slopes, slopes)
    curvature[:, :-1, -1] = curvature[:, -1, :-1] = -np.einsum("rx,rxp->rp", cross, slopes)
    curvature[:, -1, -1] = counts / inverse**2 + squares + (bend * limit**2).sum(1)
    return gradient, curvature


def _gather(entries: Numbers, sample: Sample) -> Numbers:
    """Sums of censored entries (weights, censored) at their x: (weights, x)."""
    at = np.zeros((sample.where.size, sample.x.size))
    at[np.arange(sample.where.size), sample.where] = 1.0
    return entries @ at


def _climb(
    law: Law, sample: Sample, moved: Numbers, inverse: Numbers, value: Numbers, step: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """Take the step, halved until the likelihood does not fall; where it never rises, stay."""
    length = np.ones(len(moved))
    best = (moved.copy(), inverse.copy(), value.copy())
    left = np.ones(len(moved), bool)
    for _ in range(40):
        later = inverse + length * step[:, -1]
        fine = left & (later > 0)
        later = np.where(fine, later, inverse)
        there = moved + (length / later)[:, None] * step[:, :-1]
        reached = sample.likelihood(law.log(sample.x, there), later)
        taken = fine & (reached >= value)
        for old, new in zip(best, (there, later, reached), strict=True):
            old[taken] = new[taken]
        left &= ~taken
        if not left.any():
            break
        length = np.where(left, length / 2, length)
    return best
