"""`RKC2`: the explicit Runge-Kutta-Chebyshev method of order two, for stiff gradient flows too large to factorise.

Sommeijer, Shampine and Verwer, "RKC: an explicit solver for parabolic PDEs" (1998), whose names are kept. With
`s` stages per step is stable as far as `0.65 s^2` over the largest curvature: ten times the stages carry a step a
hundred times as far. The eigenvalues of the Jacobian must lie near the real axis, as those of a gradient flow do.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

DAMPING = 2 / 13
"""The paper's epsilon: it keeps the stability polynomial below one, by about a third of this."""

GROWTH = 1.54
"""Stages for a step: `s^2 = 1 + 1.54 * width * radius`, a little more than the limit `0.653 (s^2 - 1)` asks for."""

MARGIN = 1.2
"""The bound on the spectral radius over its estimate, which is reached from below."""

DECAY = 0.95
"""The bound falls no faster than this a step: an estimate that lost its eigenvector has time to find the new one."""

KICK = 0.03
"""The part of a fixed random direction that is mixed into the eigenvector at each iteration.

Without it a converged eigenvector is blind to a curvature that grows in a direction orthogonal to it. In the end it
costs the estimate half a per cent.
"""

Vector = Float[Array, " parameters"]
Scalar = Float[Array, ""]
Time = Float[Array, ""] | Float[np.ndarray, ""] | float
Field = Callable[[Time, Vector], Vector]
Flag = Bool[Array, ""] | Bool[np.ndarray, ""] | bool
Terms = diffrax.AbstractTerm[Any, Any]


class Memory(NamedTuple):
    """What an accepted step leaves for the next: all of it belongs to the place where the step ended.

    - `velocity`: the field there.
    - `direction`: a unit vector, close to the eigenvector of the largest eigenvalue in modulus.
    - `bound`: an upper bound of that modulus, `MARGIN` included.
    """

    velocity: Vector
    direction: Vector
    bound: Scalar


Taken = tuple[Vector, Vector, Vector]
"""A step: its end, its error, and the field at its end."""
Stepped = tuple[Vector, Vector, dict[str, Vector], Memory, Any]
"""What `diffrax` wants of a step: its end, its error, what to interpolate from, the memory, and how it went."""


class Polynomials(NamedTuple):
    """The Chebyshev polynomial of one degree at `w0`, its two derivatives, and `b = T'' / T'^2`."""

    value: Scalar
    first: Scalar
    second: Scalar
    weight: Scalar


_Stage = tuple[Int[Array, ""], Vector, Vector, Polynomials, Polynomials, Vector]


class RKC2(diffrax.AbstractAdaptiveSolver[Memory]):
    """A solver for `diffrax`, of flat vectors without jumps, that chooses its number of stages at each step.

    - `most`: the largest number of stages. A step that needs more is refused: its error is infinite and its result is
      not a number. `longest` says how far a step may go.

    Its memory is a `Memory`. One evaluation per step serves the spectral radius, so that a step costs `s + 1` of them.

    ```python
    >>> import diffrax, jax.numpy as jnp
    >>> decay = diffrax.ODETerm(lambda t, y, args: -jnp.array([1.0, 1000.0]) * y)
    >>> solver, start = RKC2(), jnp.ones(2)
    >>> memory = solver.init(decay, 0.0, 0.1, start, None)
    >>> int(solver.stages(0.1, memory.bound))
    14
    >>> bool(abs(solver.step(decay, 0.0, 0.1, start, None, memory, False)[0][0] - jnp.exp(-0.1)) < 1e-4)
    True

    ```
    """

    most: int = eqx.field(static=True, default=250)

    term_structure: ClassVar = diffrax.ODETerm
    interpolation_cls: ClassVar = diffrax.LocalLinearInterpolation

    def order(self, terms: Terms) -> int:
        return 2

    def error_order(self, terms: Terms) -> int:
        return 3

    def func(self, terms: Terms, t0: Time, y0: Vector, args: PyTree) -> Vector:
        velocity: Vector = terms.vf(t0, y0, args)
        return velocity

    def stages(self, width: Scalar | float, bound: Scalar | float) -> Int[Array, ""]:
        """The number of stages of a step, at least two; minus one if it is more than `most`."""
        need = jnp.ceil(jnp.sqrt(1 + GROWTH * jnp.abs(width) * bound))
        # Compared before it becomes an integer: a width or a bound that is not finite is refused too.
        return jnp.where(need <= self.most, jnp.maximum(need, 2), -1).astype(int)

    def longest(self, bound: Scalar | float) -> Scalar:
        """The longest step that `most` stages can make, less a thousandth for the rounding of the clock."""
        return 0.999 * (self.most**2 - 1) / GROWTH / jnp.asarray(bound)

    def init(self, terms: Terms, t0: Time, t1: Time, y0: Vector, args: PyTree) -> Memory:
        first = Memory(jnp.zeros_like(y0), jnp.asarray(_noise(y0.size), y0.dtype), jnp.zeros_like(y0, shape=()))

        def again(number: Int[Array, ""], memory: Memory) -> Memory:
            # The first turn is for the velocity itself; one place for the field compiles faster than two.
            found = self.func(terms, t0, y0 + jnp.where(number > 0, _length(y0), 0.0) * memory.direction, args)
            # The bound is forgotten between iterations: that of a vector which has not converged means nothing.
            later = _improved(y0, found, memory._replace(bound=0 * memory.bound))
            begun = memory._replace(velocity=found)
            chosen: Memory = jax.tree.map(lambda a, b: jnp.where(number > 0, a, b), later, begun)
            return chosen

        found: Memory = jax.lax.fori_loop(0, 16, again, first)
        return found

    def step(
        self,
        terms: Terms,
        t0: Time,
        t1: Time,
        y0: Vector,
        args: PyTree,
        solver_state: Memory,
        made_jump: Flag,
    ) -> Stepped:
        del made_jump
        y1, error, velocity = self.taken(terms, t0, t1, y0, args, solver_state)
        beside = self.func(terms, t1, y1 + _length(y1) * solver_state.direction, args)
        memory = _improved(y1, beside, solver_state._replace(velocity=velocity))
        return y1, error, {"y0": y0, "y1": y1}, memory, diffrax.RESULTS.successful

    def taken(self, terms: Terms, t0: Time, t1: Time, y: Vector, args: PyTree, memory: Memory) -> Taken:
        """A step from `y`; not a number with an infinite error if refused."""
        field, width = lambda t, y: self.func(terms, t, y, args), terms.contr(t0, t1)
        stages = self.stages(width, memory.bound)
        move, end = _travel(field, t0, t1 - t0, width, y, memory.velocity, jnp.maximum(stages, 2))
        error = -0.8 * move + 0.4 * width * (memory.velocity + end)
        failed = (stages < 0) | ~jnp.all(jnp.isfinite(error))
        return y + jnp.where(failed, jnp.nan, move), jnp.where(failed, jnp.inf, error), end


def _noise(size: int) -> np.ndarray:
    """A fixed unit vector without structure; the old generator, because its stream is frozen."""
    noise = np.random.RandomState(0).standard_normal(size)
    return noise / np.linalg.norm(noise)


def _travel(
    field: Field, start: Time, span: Time, width: Scalar | float, y: Vector, velocity: Vector, stages: Int[Array, ""]
) -> tuple[Vector, Vector]:
    """One step: the move, and the field where it ends.

    Stages are kept as moves from `y`. A small move then loses no digits to a large `y`, nor does its error estimate.
    """
    w0, w1 = _arguments(stages)

    def stage(carry: _Stage) -> _Stage:
        number, older, move, lower, poly, _ = carry
        upper = _next(w0, lower, poly)
        here = field(start + w1 * poly.weight * poly.first * span, y + move)
        slope = here - (1 - poly.weight * poly.value) * velocity
        ratio = 2 * upper.weight / poly.weight
        new = ratio * (w0 * move + w1 * width * slope) - upper.weight / lower.weight * older
        return number + 1, move, new, poly, upper, here

    one, weight = jnp.ones_like(w0), 1 / (2 * w0) ** 2
    zeroth = Polynomials(one, 0 * one, 0 * one, weight)
    first = Polynomials(w0, one, 0 * one, weight)
    begin = (jnp.ones_like(stages), jnp.zeros_like(y), weight * w1 * width * velocity, zeroth, first, velocity)
    # The last turn is for the field at the end; the stage it prepares is not used.
    _, move, _, _, _, end = jax.lax.while_loop(lambda carry: carry[0] <= stages, stage, begin)
    return move, end


def _arguments(stages: Int[Array, ""]) -> tuple[Scalar, Scalar]:
    """`w0` and `w1 = T_s'(w0) / T_s''(w0)`, with `w0 = cosh(angle)` and hence `T_s(w0) = cosh(s * angle)`."""
    s = stages.astype(float)
    w0 = 1 + DAMPING / s**2
    angle = 2 * jnp.arcsinh(jnp.sqrt((w0 - 1) / 2))  # of `w0` as rounded, since the recurrences start from that
    sine = jnp.sinh(angle)
    return w0, sine**2 / (s * sine / jnp.tanh(s * angle) - w0)


def _next(w0: Scalar, lower: Polynomials, poly: Polynomials) -> Polynomials:
    """One degree up, by the three-term recurrence and its derivatives."""
    value = 2 * w0 * poly.value - lower.value
    first = 2 * (w0 * poly.first + poly.value) - lower.first
    second = 2 * (w0 * poly.second + 2 * poly.first) - lower.second
    return Polynomials(value, first, second, second / first**2)


def _length(y: Vector) -> Scalar:
    """Of the difference quotient."""
    size = jnp.linalg.norm(y)
    return jnp.sqrt(jnp.finfo(y.dtype).eps) * jnp.where(size > 0, size, 1)


def _improved(y: Vector, beside: Vector, memory: Memory) -> Memory:
    """One iteration of the nonlinear power method at `y`, from the field `beside` it, in the direction of the old one.

    The sign is that of the curvature, so that what the kicks bring adds up where the curvature is positive.
    """
    image = (memory.velocity - beside) / _length(y)
    radius = jnp.linalg.norm(image)
    usable = jnp.isfinite(radius) & (radius > 0)
    direction = image / jnp.where(usable, radius, 1) + KICK * _noise(y.size)
    direction = jnp.where(usable, direction / jnp.linalg.norm(direction), memory.direction)
    bound = jnp.maximum(jnp.where(usable, MARGIN * radius, 0), DECAY * memory.bound)
    return Memory(memory.velocity, direction, bound)
