"""The population loss of a two-layer student and its derivatives, exactly, from kernels of overlaps."""

import copy
from functools import partial
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from tutelage._checks import flag, instance, one_of
from tutelage._errors import BadInput
from tutelage.oracle.base import AbstractOracle, assemble
from tutelage.oracle.batched_cond import compute_where
from tutelage.oracle.correlated import CorrelatedOracle, Mean, Root, whitened
from tutelage.oracle.kernels import layer_kernel
from tutelage.oracle.kernels.base import AbstractKernel
from tutelage.oracle.mixture import MixtureOracle
from tutelage.oracle.penalised import penalised
from tutelage.oracle.stable.linear_teacher import Lines
from tutelage.oracle.stable.shared_kink import Groups
from tutelage.oracle.tied import TiedOracle
from tutelage.problem.activations import Activation
from tutelage.problem.assorted import LayerSpec, LayerUnits, layer_units
from tutelage.problem.atoms import PiecewiseLinear
from tutelage.problem.hidden import PlainHidden
from tutelage.problem.mixture import Mixture
from tutelage.problem.networks import TwoLayer, Weights
from tutelage.problem.problem import Problem

Form = Literal["both", "plain", "grouped", "settled"]
FORMS = ("both", "plain", "grouped", "settled")


class PopulationOracle(AbstractOracle):
    """`L = 1/2 E|f - f*|^2` over Gaussian inputs, without samples.

    With units `u` (students `+`, teachers `-`) it is `1/2 sum_uu' S_u.S_u' K(w_u, w_u')`; a linear teacher with
    piecewise-linear students is evaluated by the cancellation-free form of `oracle.stable.linear_teacher`, so that a
    loss of 1e-25 is that and not rounding noise. So are, near an optimum, students and teachers with the same kinked
    activation (ReLU, |z|, leaky ReLU), by `oracle.stable.shared_kink`. For other pairs, such as erf, a loss below 1e-15
    times the squared outputs of all units is rounding noise, of either sign.

    `form`: "both", which asks the grouped form where the plain one has cancelled; "plain"; "grouped", whose gradient is
    always grouped; "settled", plain where nothing is to be gained: in a minimum with a loss the groups do not cancel.

    `means`: the first column of all rows, students' and teachers', is the mean of what a unit sees: the weight of an
    input that always is 1. A loss is then rounding noise below 1e-14 times the squared outputs of all units.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> target = tt.Weights(first=jnp.array([[1.0, 0.0]]), second=jnp.ones((1, 1)))
    >>> oracle = tt.PopulationOracle(student="relu", teacher="linear", target=target)
    >>> pair = tt.Weights(first=jnp.array([[1.0, 0.0], [-1.0, 0.0]]), second=jnp.array([[1.0], [-1.0]]))
    >>> float(oracle.loss(pair))  # relu(z) - relu(-z) = z
    0.0

    ```
    """

    student: LayerUnits = eqx.field(static=True)
    teacher: LayerUnits = eqx.field(static=True)
    target: Weights
    accuracy: str = eqx.field(static=True)
    form: Form = eqx.field(static=True)
    means: bool = eqx.field(static=True)

    def __init__(
        self,
        *,
        student: LayerSpec,
        teacher: LayerSpec,
        target: Weights,
        form: Form = "both",
        means: bool = False,
    ):
        instance("PopulationOracle: target", target, Weights, "tt.Weights of the teacher")
        one_of("PopulationOracle: form", form, FORMS)
        self.student, self.teacher = layer_units(student), layer_units(teacher)
        self.target, self.form, self.means = target, form, flag("PopulationOracle: means", means)
        if self.means and self.student.jumps:
            raise BadInput(
                f"A student of {self.student.name} has no population gradient here with biases, or a mean of the "
                "inputs; use a smooth activation or a piecewise linear one."
            )
        parts = {self.kernel(self.student, self.student).accuracy, self.kernel(self.student, self.teacher).accuracy}
        self.accuracy = "; ".join(sorted(parts))

    @property
    def sides(self) -> tuple[PlainHidden, PlainHidden]:
        """What the student's units and the teacher's compute on samples."""
        return PlainHidden(self.student), PlainHidden(self.teacher)

    def kernel(self, one: LayerUnits, other: LayerUnits) -> AbstractKernel:
        """That of two layers of such rows."""
        return layer_kernel(one, other, means=self.means)

    @property
    def on_lines(self) -> bool:
        """Whether the cancellation-free line form applies: a linear teacher, piecewise-linear students."""
        student, teacher = _piecewise_linear(self.student), _piecewise_linear(self.teacher)
        return not self.means and student is not None and teacher is not None and teacher.kink == 0

    @property
    def on_groups(self) -> bool:
        """Whether the cancellation-free grouped form applies: one piecewise-linear activation, with a kink, for all."""
        return self.form in ("both", "grouped") and self._shared_kink() is not None

    def _shared_kink(self) -> PiecewiseLinear | None:
        student, teacher = _piecewise_linear(self.student), _piecewise_linear(self.teacher)
        shared = student is not None and student == teacher and student.kink != 0 and not self.means
        return student if shared else None

    def _lines(self, weights: Weights) -> Lines:
        student, teacher = _piecewise_linear(self.student), _piecewise_linear(self.teacher)
        assert student is not None and teacher is not None
        return Lines(weights, student, self.target, teacher.linear)

    def _partners(
        self, weights: Weights
    ) -> list[tuple[AbstractKernel, Float[Array, "unit frame"], Float[Array, "unit output"]]]:
        """(kernel, rows, signed outgoing weights) of all units a student meets; one group if activations agree."""
        if isinstance(self.student, Activation) and self.student == self.teacher:
            rows = jnp.concatenate([weights.first, self.target.first])
            return [
                (self.kernel(self.student, self.student), rows, jnp.concatenate([weights.second, -self.target.second]))
            ]
        return [
            (self.kernel(self.student, self.student), weights.first, weights.second),
            (self.kernel(self.student, self.teacher), self.target.first, -self.target.second),
        ]

    def loss(self, weights: Weights) -> Float[Array, ""]:
        if self.on_lines:
            return self._lines(weights).loss()
        plain = self.floor() - self.drop(weights)
        unit = self._shared_kink()
        if unit is None or not self.on_groups:
            return plain
        return compute_where(
            self._lost_loss(unit, weights, plain), partial(_grouped_loss, unit), plain, weights, self.target
        )

    def forms(self) -> tuple["PopulationOracle", ...]:
        if self._shared_kink() is None:
            return (self,)
        return self._in("plain"), self._in("grouped"), self._in("settled")

    def _in(self, form: Form) -> "PopulationOracle":
        other = copy.copy(self)  # a new one would be checked again, in every run
        object.__setattr__(other, "form", form)
        return other

    def strained(
        self, weights: Weights, *, loss: Float[Array, ""] | None = None, gradient: Weights | None = None
    ) -> Bool[Array, ""]:
        unit = self._shared_kink()
        if unit is None or self.form == "both":
            return jnp.array(False)
        missing, found = jnp.array(False), jnp.array(True)
        lost_loss = missing if loss is None else self._lost_loss(unit, weights, loss)
        if self.form == "grouped":
            clear = found if loss is None else ~self._lost_loss(unit, weights, loss / REGAINED)
            return missing if gradient is None else clear & ~self._lost_gradient(unit, weights, gradient)
        if gradient is None:
            return lost_loss
        if self.form == "settled":
            return lost_loss | ~self._lost_gradient(unit, weights, gradient)
        return lost_loss | self._lost_gradient(unit, weights, gradient, 1 / REGAINED)

    def held(self, weights: Weights, loss: Float[Array, ""]) -> Bool[Array, ""]:
        unit = self._shared_kink()
        if unit is None or self.form != "grouped":
            return jnp.array(False)
        return self._lost_loss(unit, weights, loss / REGAINED)

    def lost(self, weights: Weights, loss: Float[Array, ""], gradient: Weights) -> Bool[Array, ""]:
        unit = self._shared_kink()
        if unit is None or self.form in ("both", "grouped"):  # these ask the groups where digits are lost
            return jnp.array(False)
        return self._lost_loss(unit, weights, loss) | self._lost_gradient(unit, weights, gradient)

    def instead(self, weights: Weights) -> Int[Array, ""]:
        unit = self._shared_kink()
        if unit is None or self.form != "plain":
            return jnp.array(0)
        settled = self.loss(weights) >= SETTLED * 0.5 * _height(unit) * self._size(weights) ** 2
        return jnp.where(settled, 2, 1)

    def _lost_loss(self, unit: PiecewiseLinear, weights: Weights, loss: Float[Array, ""]) -> Bool[Array, ""]:
        return loss < LOST_LOSS * 0.5 * _height(unit) * self._size(weights) ** 2

    def _lost_gradient(
        self, unit: PiecewiseLinear, weights: Weights, gradient: Weights, margin: float = 1.0
    ) -> Bool[Array, ""]:
        size = _height(unit) * _length(weights.second) * self._size(weights)
        return _length(gradient.first) < margin * LOST_GRADIENT * size

    def floor(self) -> Float[Array, ""]:
        """The loss of the zero network, `1/2 E|f*|^2`."""
        rows, out = self.target.first, self.target.second
        return 0.5 * jnp.sum((out @ out.T) * self.kernel(self.teacher, self.teacher).value(rows, rows))

    def drop(self, weights: Weights) -> Float[Array, ""]:
        """How far the loss lies below that of the zero network, without forming the difference."""
        first, out = weights.first, weights.second
        own = self.kernel(self.student, self.student).value(first, first)
        met = self.kernel(self.student, self.teacher).value(first, self.target.first)
        return jnp.sum((out @ self.target.second.T) * met) - 0.5 * jnp.sum((out @ out.T) * own)

    def _size(self, weights: Weights) -> Float[Array, ""]:
        """A bound on `sum_u |S_u||w_u|` over students and teachers: no sum over units has larger terms."""
        pairs = ((layer.first, layer.second) for layer in (weights, self.target))
        return sum((_length(first) * _length(second) for first, second in pairs), jnp.zeros(()))

    def gradient(self, weights: Weights) -> Weights:
        if self.on_lines:
            return self._lines(weights).gradient()
        unit = self._shared_kink()
        if unit is not None and self.form == "grouped":
            return _grouped_gradient(unit, weights, self.target)
        plain = self._plain_gradient(weights)
        if unit is None or self.form != "both":
            return plain
        lost = self._lost_gradient(unit, weights, plain)
        return compute_where(lost, partial(_grouped_gradient, unit), plain, weights, self.target)

    def _plain_gradient(self, weights: Weights) -> Weights:
        first, out = weights.first, weights.second
        pulls = [
            k.pulls(out, first, rows, s, own=not place) for place, (k, rows, s) in enumerate(self._partners(weights))
        ]
        return Weights(*(sum(parts, jnp.zeros(())) for parts in zip(*pulls, strict=True)))

    def hessian(self, weights: Weights) -> Float[Array, "parameters parameters"]:
        first, out = weights.first, weights.second
        partners, zero = self._partners(weights), jnp.zeros(())
        pulls = (_times(s.T[None, :, :, None], k.gradient(first, rows)[:, None]).sum(2) for k, rows, s in partners)
        meets = sum(pulls, zero)  # G_l
        diagonal = jnp.eye(len(out))
        outer, between, inner = self._products(weights)
        between = between + _times(diagonal[:, None, :, None], meets[:, :, None, :])
        bend = sum((k.curvature(out @ s.T, first, rows) for k, rows, s in partners), zero)
        inner = inner + _times(diagonal[:, None, :, None], bend[:, :, None, :])
        return assemble(outer, between, inner)

    def metric(self, weights: Weights) -> Float[Array, "parameters parameters"]:
        """`E[df^T df]` of the network's derivative in its weights: the Hessian without what the error adds to it."""
        return assemble(*self._products(weights))

    def _products(self, weights: Weights) -> tuple[Float[Array, "..."], Float[Array, "..."], Float[Array, "..."]]:
        """Its blocks: `K I` for V_l and V_m, `V_m dK(w_m, w_l)^T` for V_l and w_m, and the one for w_l and w_m."""
        first, out = weights.first, weights.second
        own = self.kernel(self.student, self.student)
        slope = own.gradient(first, first)  # d K(w_m, w_l) / d w_m at [m, l]
        outer = jnp.einsum("lm,rs->lrms", own.value(first, first), jnp.eye(out.shape[1]))
        between = _times(out.T[None, :, :, None], jnp.swapaxes(slope, 0, 1)[:, None])
        inner = jnp.swapaxes(_times((out @ out.T)[:, :, None, None], own.mixed(first, first)), 1, 2)
        return outer, between, inner


LOST_LOSS, LOST_GRADIENT = 1e-5, 1e-6
"""Where cancellation leaves less than this of the terms of a plain sum (11 digits of a loss, 10 of a gradient), the
grouped form takes over, which costs more."""

REGAINED = 100.0
"""A step may do with fewer digits than a record, eight of its gradient: with this much less left of its terms. Between
the two the form that takes the steps is not changed, so that it is not to and fro."""

SETTLED = 1e-4
"""A loss, as a part of the terms of its sum, from which on the residuals of groups are too large to gain two digits."""


def _grouped_loss(unit: PiecewiseLinear, weights: Weights, target: Weights) -> Float[Array, ""]:
    return Groups(weights, target, unit).loss()


def _grouped_gradient(unit: PiecewiseLinear, weights: Weights, target: Weights) -> Weights:
    return Groups(weights, target, unit).gradient()


def _height(unit: PiecewiseLinear) -> float:
    """`E s(z)^2`: the kernel is at most that times the norms."""
    return unit.linear**2 + unit.kink**2


def _length(x: Float[Array, "..."]) -> Float[Array, ""]:
    return jnp.sqrt(jnp.sum(x**2))


def _times(factor: Float[Array, "..."], value: Float[Array, "..."]) -> Float[Array, "..."]:
    """A product that is 0 where the factor is: a derivative that does not exist does no harm where nobody uses it."""
    return jnp.where(factor == 0, 0.0, factor * value)


def _piecewise_linear(units: LayerUnits) -> PiecewiseLinear | None:
    """The activation of all units as `linear z + kink |z|`, if that is all it is."""
    atom = units.atoms[0] if isinstance(units, Activation) and len(units.atoms) == 1 else None
    return atom if isinstance(atom, PiecewiseLinear) else None


def population_oracle(problem: Problem, target: Weights) -> AbstractOracle:
    """The exact oracle of a problem, for teacher weights in frame coordinates, with the problem's penalty if any."""
    return penalised(_without_penalty(problem, target), problem.penalty)


def _without_penalty(problem: Problem, target: Weights) -> AbstractOracle:
    student, teacher = problem.student, problem.teacher
    if isinstance(student, Mixture) and isinstance(teacher, Mixture):
        return MixtureOracle(student.hidden, teacher.hidden, target)
    assert isinstance(student, TwoLayer) and isinstance(teacher, TwoLayer)
    law, target = problem.law, teacher.plain(target)
    root = None if law.standard else jnp.asarray(law.root)
    mean = None if law.mean is None else jnp.asarray(law.centre)
    return exact(student.activation, teacher.activation, target, tied=student.tied, root=root, mean=mean)


def exact(
    student: LayerUnits,
    teacher: LayerUnits,
    target: Weights,
    *,
    tied: bool,
    root: Root | None = None,
    mean: Mean | None = None,
) -> PopulationOracle | CorrelatedOracle | TiedOracle:
    """The exact oracle of a student, plain or tied, of a plain teacher; `root`: of the covariance of the inputs; with
    it they may have a `mean`."""
    means = mean is not None
    teacher, target = (teacher, target) if means else _translated(student, teacher, target)
    seen = target if root is None else whitened(target, root, mean)
    plain = PopulationOracle(student=student, teacher=teacher, target=seen, means=means)
    oracle = plain if root is None else CorrelatedOracle(plain, root, mean, target)
    return TiedOracle(oracle) if tied else oracle


def _translated(student: LayerUnits, teacher: LayerUnits, target: Weights) -> tuple[LayerUnits, Weights]:
    """A piecewise-linear teacher in the student's own units, where it has some with both a slope and a kink.

    `l' z + k' |z| = a s(z) + b s(-z)` with `(a + b) k = k'` and `(a - b) l = l'`, for `s(z) = l z + k |z|`. So |z| is
    two ReLU, and the form without cancellation (`oracle.stable.shared_kink`) serves ReLU students of it.
    """
    own, other = _piecewise_linear(student), _piecewise_linear(teacher)
    if own is None or other is None or own == other or own.linear == 0 or own.kink == 0 or other.kink == 0:
        return teacher, target
    even, odd = other.kink / own.kink / 2, other.linear / own.linear / 2
    sides = [(sign * target.first, (even + sign * odd) * target.second) for sign in (1, -1) if even + sign * odd]
    first, second = (jnp.concatenate(layer) for layer in zip(*sides, strict=True))
    return student, Weights(first, second)
