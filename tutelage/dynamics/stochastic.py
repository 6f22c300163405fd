"""Online SGD: a fresh Gaussian batch at every update, exact in law at any input dimension.

A sample enters the update of unit i as `c_bi x_b`, and the coefficients `C` depend on `x_b` through its projection on
the frame only. So the projections `U` are drawn, and the update inside the frame is `-(step/batch) C^T U`. Outside it
is `-(step/batch) C^T G` with a Gaussian `G` of `dim - n` columns, independent of everything else. Only its Gram
matrix is ever seen: with `F F^T = C^T C` it has the law of `F T T^T F^T`, where `T` is the triangular factor of a
Gaussian matrix (Bartlett: chi-distributed diagonal, normals below). The units then span as many new directions as `T`
has columns, and a rotation of the space outside the teachers brings them back to the columns there are.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tutelage.dynamics.base import AbstractDynamics, Moment
from tutelage.dynamics.normals import Key, normals, uniforms
from tutelage.oracle.population import PopulationOracle
from tutelage.problem.networks import Weights

# What the random numbers of one update are for.
_INPUTS, _LABELS, _BELOW, _DIAGONAL = range(4)


class Online(AbstractDynamics):
    """`w <- w - step * rate * (gradient on a fresh batch)`, both layers at once.

    - `step_size`, `rates`, `trains`, `schedule`: as for `Descent`.
    - `batch`: samples an update. `noise`: standard deviation of the label noise, None for none.
    - `outside`: the number of dimensions outside the frame; None if the frame is the whole space. If not None, the
      frame has the teachers' columns first, then as many columns as there are units, and the latter turn at every
      update: inner products with the teachers and between units have a meaning, single coordinates do not.
    - `precision`: of the samples and of what is computed from them; weights are kept in double precision.
    """

    step_size: Float[Array, ""]
    rates: Weights
    noise: Float[Array, ""] | None
    outside: Float[Array, ""] | None
    trains: tuple[str, ...] = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    schedule: Callable[[Float[Array, ""]], Float[Array, ""]] | None = eqx.field(static=True, default=None)
    precision: str = eqx.field(static=True, default="float64")

    def begin(self, oracle, weights):
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), jnp.zeros((), jnp.uint64))

    def seeded(self, moment, key):
        return moment._replace(carry=key)

    def step(self, oracle, moment, limit):
        del limit  # one update is one tick: limits are whole numbers of updates
        size = self.step_size if self.schedule is None else self.step_size * self.schedule(moment.clock)
        shape = (self.batch, moment.weights.first.shape[1])
        inputs = normals(moment.carry, moment.clock, _INPUTS, shape, self.precision)
        errors, slope = self._sample(oracle, moment, inputs)
        weights = moment.weights
        if "first" in self.trains:
            moved = self._first(moment, inputs, errors, size * self.rates.first / self.batch)
            weights = Weights(moved, weights.second)
        if "second" in self.trains:
            weights = Weights(weights.first, weights.second - size * self.rates.second / self.batch * slope)
        clock = moment.clock + 1
        time = clock * size if self.schedule is None else moment.time + size
        return Moment(weights, clock, time, moment.carry), jnp.array(True), jnp.array(False)

    def within(self, oracle, moment, clock):
        del clock  # nothing happens between two updates: an event is seen at the update itself
        return self.step(oracle, moment, moment.clock)[0]

    def _sample(self, oracle: PopulationOracle, moment: Moment, inputs: Array) -> tuple[Array, Array]:
        """The coefficients (sample, unit) of the samples in the incoming gradient, and the outgoing gradient."""
        one = jax.tree.map(lambda leaf: leaf.astype(self.precision), (moment.weights, oracle.target))
        weights, target = one
        seen = inputs @ jnp.concatenate([weights.first, target.first]).T
        pre, taught = seen[:, : len(weights.first)], seen[:, len(weights.first) :]
        hidden = oracle.student(pre)
        residual = hidden @ weights.second - oracle.teacher(taught) @ target.second
        if self.noise is not None:
            noise = normals(moment.carry, moment.clock, _LABELS, residual.shape, self.precision)
            residual = residual - self.noise.astype(self.precision) * noise
        errors = oracle.student.derivative(pre) * (residual @ weights.second.T)
        return errors, (hidden.T @ residual).astype(float)

    def _first(self, moment: Moment, inputs: Array, errors: Array, pace: Array) -> Float[Array, "unit frame"]:
        inside = moment.weights.first - pace * (errors.T @ inputs).astype(float)
        if self.outside is None:
            return inside
        factor = _factor(errors).astype(float)
        beyond = pace * factor @ bartlett(moment.carry, moment.clock, self.outside, factor.shape[1])
        return _turned(inside, beyond)


def _factor(errors: Float[Array, "sample unit"]) -> Float[Array, "unit rank"]:
    """`F` with `F F^T = C^T C`, of the fewer columns; by QR, which is right also for dead and for equal units."""
    samples, units = errors.shape
    return errors.T if samples <= units else jnp.linalg.qr(errors, mode="r").T


def _turned(inside: Float[Array, "unit frame"], beyond: Float[Array, "unit rank"]) -> Float[Array, "unit frame"]:
    """Rows of `inside` and `beyond` together, turned back into the columns of the frame; teachers stay in place."""
    teachers = inside.shape[1] - len(inside)
    rest = jnp.concatenate([inside[:, teachers:], beyond], axis=1)
    return jnp.concatenate([inside[:, :teachers], jnp.linalg.qr(rest.T, mode="r").T], axis=1)


def bartlett(key: Key, step: Array, columns: Float[Array, ""], count: int) -> Float[Array, "count count"]:
    """The triangular factor of a Gaussian matrix of `count` rows and `columns` columns (zeros beyond these)."""
    degrees = jnp.maximum(columns - jnp.arange(count), 0.0)
    below = jnp.tril(normals(key, step, _BELOW, (count, count)), -1)
    return jnp.where(degrees > 0, below, 0.0) + jnp.diag(chi(key, step, degrees))


def chi(key: Key, step: Array, degrees: Float[Array, " count"]) -> Float[Array, " count"]:
    """Independent chi variables, by the exact rejection method of Marsaglia and Tsang (2000); 0 for 0 degrees."""
    count = len(degrees)
    shape = degrees / 2
    centre = jnp.where(shape < 1, shape + 1, shape) - 1 / 3
    width = 1 / jnp.sqrt(9 * centre)
    own = jnp.arange(count, dtype=jnp.uint64) + np.uint64(1 << 31)

    def attempt(state):
        turn, kept, done = state
        x = normals(key, step, _DIAGONAL, (count,), skip=turn * count)
        u = uniforms(key, step, _DIAGONAL, own + turn * np.uint64(count))
        cube = (1 + width * x) ** 3
        bound = 0.5 * x**2 + centre * (1 - cube + jnp.log(jnp.where(cube > 0, cube, 1.0)))
        good = (cube > 0) & (jnp.log(u) < bound) & ~done
        return turn + np.uint64(1), jnp.where(good, cube, kept), done | good

    start = (jnp.zeros((), jnp.uint64), jnp.ones(count), degrees <= 0)
    cube = jax.lax.while_loop(lambda state: ~jnp.all(state[2]), attempt, start)[1]
    # Below two degrees of freedom: one more, and a power of a uniform.
    lift = uniforms(key, step, _DIAGONAL, own + np.uint64(1 << 30)) ** (1 / jnp.where(shape > 0, shape, 1.0))
    square = 2 * centre * cube * jnp.where(shape < 1, lift, 1.0)
    return jnp.where(degrees > 0, jnp.sqrt(square), 0.0)
