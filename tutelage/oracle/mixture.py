"""The loss of a mixture of experts and its derivatives: exactly over Gaussian inputs, or on a data set."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage._checks import instance
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.kernels.gated import GatedKernel, Units
from tutelage.problem.hidden import GatedHidden
from tutelage.problem.networks import Weights
from tutelage.problem.trees import flatten, unflatten


class Gram(NamedTuple):
    """Inner products `E[h h']` of units: students with each other, students with teachers, teachers."""

    students: Float[Array, "student student"]
    cross: Float[Array, "student teacher"]
    teachers: Float[Array, "teacher teacher"]


def units(first: Float[Array, "row frame"]) -> Units:
    """The directions of routers and experts."""
    return Units(*jnp.split(first / jnp.linalg.norm(first, axis=1, keepdims=True), 2))


def _together(left: Units, right: Units) -> Units:
    return Units(*(jnp.concatenate(pair) for pair in zip(left, right, strict=True)))


class MixtureOracle(AbstractOracle):
    """`L = 1/2 E|f - f*|^2` over Gaussian inputs, for mixtures of experts, without samples.

    Sums over pairs of units of the kernel in `oracle.kernels.gated`, good to rounding of their largest terms: near
    an optimum a loss below 1e-14 times the number of units is rounding noise, of either sign.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> unit = tt.Mixture(routers=[[1.0, 0.0]], experts=[[0.0, 1.0]]).hidden
    >>> target = tt.Weights(first=jnp.eye(2, 4), second=jnp.ones((1, 1)))
    >>> oracle = tt.MixtureOracle(student=unit, teacher=unit, target=target)
    >>> apart = tt.Weights(first=jnp.eye(4)[2:], second=jnp.ones((1, 1)))
    >>> round(float(oracle.loss(apart)), 9)  # two units that know nothing of each other: 2 x 3 E[sigmoid^2]
    1.760274215

    ```
    """

    student: GatedHidden = eqx.field(static=True)
    teacher: GatedHidden = eqx.field(static=True)
    target: Weights
    accuracy: str = eqx.field(static=True)

    def __init__(self, student: GatedHidden, teacher: GatedHidden, target: Weights):
        instance("MixtureOracle: target", target, Weights, "tt.Weights of the teacher")
        for name, hidden in {"student": student, "teacher": teacher}.items():
            instance(f"MixtureOracle: {name}", hidden, GatedHidden, "what `hidden` of a tt.Mixture is")
        self.student, self.teacher, self.target = student, teacher, target
        self.accuracy = "exact finite sums, to rounding of the largest term"

    @property
    def sides(self) -> tuple[GatedHidden, GatedHidden]:
        """What the student's units and the teacher's compute on samples."""
        return self.student, self.teacher

    def _kernel(self, left: GatedHidden, right: GatedHidden) -> GatedKernel:
        return GatedKernel((left.gate, right.gate), (left.degree, right.degree))

    def gram(self, weights: Weights) -> Gram:
        """The inner products of all units; output weights do not enter."""
        own, taught = units(weights.first), units(self.target.first)
        if self.student == self.teacher:
            both, cut = _together(own, taught), len(own.router)
            value = self._kernel(self.student, self.student).value(both, both)
            return Gram(value[:cut, :cut], value[:cut, cut:], value[cut:, cut:])
        return Gram(
            self._kernel(self.student, self.student).value(own, own),
            self._kernel(self.student, self.teacher).value(own, taught),
            self._kernel(self.teacher, self.teacher).value(taught, taught),
        )

    def loss(self, weights: Weights) -> Float[Array, ""]:
        gram, out, wanted = self.gram(weights), weights.second, self.target.second
        pairs = (out @ out.T) * gram.students, (wanted @ wanted.T) * gram.teachers, (out @ wanted.T) * gram.cross
        return 0.5 * jnp.sum(pairs[0]) + 0.5 * jnp.sum(pairs[1]) - jnp.sum(pairs[2])

    def gradient(self, weights: Weights) -> Weights:
        own, out = units(weights.first), weights.second
        pulls, slopes = [], []
        for kernel, met, second in self._partners(weights):
            pulls.append(jnp.concatenate(kernel.pull(out @ second.T, own, met)))
            slopes.append(kernel.value(own, met) @ second)
        return Weights(_tangential(sum(pulls, jnp.zeros(())), weights.first), sum(slopes, jnp.zeros(())))

    def _partners(self, weights: Weights) -> list[tuple[GatedKernel, Units, Float[Array, "unit output"]]]:
        """(kernel, units, signed output weights) of all that a student meets; one group if the units are of a kind."""
        own, taught = units(weights.first), units(self.target.first)
        if self.student == self.teacher:
            second = jnp.concatenate([weights.second, -self.target.second])
            return [(self._kernel(self.student, self.student), _together(own, taught), second)]
        return [
            (self._kernel(self.student, self.student), own, weights.second),
            (self._kernel(self.student, self.teacher), taught, -self.target.second),
        ]

    def hessian(self, weights: Weights) -> Float[Array, "parameters parameters"]:
        # The gradient is a finite sum of products, which forward differentiation goes through without loss; by Price
        # each derivative is a moment of the next order again.
        curvature: Array = jax.jacfwd(lambda y: flatten(self.gradient(unflatten(y, weights))))(flatten(weights))
        return curvature


def _tangential(pull: Float[Array, "row frame"], first: Float[Array, "row frame"]) -> Float[Array, "row frame"]:
    """From derivatives in unit vectors to those in vectors of any length (Eq. 10 of the soft-routed paper)."""
    norm: Array = jnp.linalg.norm(first, axis=1, keepdims=True)
    axis = first / norm
    return (pull - jnp.sum(pull * axis, axis=1, keepdims=True) * axis) / norm


class EmpiricalMixture(AbstractOracle):
    """`L = 1/(2N) sum_i |f(x_i) - y_i|^2` of a mixture of experts."""

    student: GatedHidden = eqx.field(static=True)
    x: Float[Array, "sample frame"]
    y: Float[Array, "sample output"]
    accuracy: str = eqx.field(static=True)

    def __init__(self, student: GatedHidden, x: Float[Array, "sample frame"], y: Float[Array, "sample output"]):
        self.student, self.x, self.y = student, x, y
        self.accuracy = "exact on its data set, to rounding"

    def loss(self, weights: Weights) -> Float[Array, ""]:
        hidden = self.student(weights.first, weights.first @ self.x.T)
        return 0.5 * jnp.sum((hidden.T @ weights.second - self.y) ** 2) / len(self.x)

    def gradient(self, weights: Weights) -> Weights:
        gradient: Weights = jax.grad(self.loss)(weights)
        return gradient

    def hessian(self, weights: Weights) -> Float[Array, "parameters parameters"]:
        curvature: Array = jax.hessian(lambda y: self.loss(unflatten(y, weights)))(flatten(weights))
        return curvature
