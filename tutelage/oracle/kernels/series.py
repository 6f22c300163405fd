"""The Hermite (Mehler) series `K(a, b) = sum_k A_k(|a|) B_k(|b|) cos^k`: finite for a polynomial, else truncated."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from tutelage._errors import BadInput
from tutelage.oracle.geometry import Angles, Rows, angles, rows
from tutelage.oracle.kernels.base import CurvatureParts, MixedParts, PolarKernel, Slopes
from tutelage.problem.atoms import Atom, Smooth, Table


class SeriesKernel(PolarKernel):
    """Any two atoms, by their first `terms` Hermite coefficients; `error(a, b)` bounds what is left out.

    ```python
    >>> import tutelage, jax.numpy as jnp
    >>> from tutelage.oracle.kernels.series import SeriesKernel
    >>> from tutelage.problem.activations import erf
    >>> series, row = SeriesKernel(*erf.atoms, *erf.atoms, terms=20), 0.5 * jnp.eye(2)[:1]
    >>> bool(series.error(row, row)[0, 0] < 1e-9)
    True

    ```
    """

    s: Atom
    t: Atom
    terms: int = eqx.field(static=True)

    @property
    def exact(self) -> bool:
        """Whether the series ends before `terms`."""
        return min(self.s.degree, self.t.degree) < self.terms

    @property
    def accuracy(self) -> str:
        sampled = isinstance(self.s, Smooth) or isinstance(self.t, Smooth)
        coefficients = "coefficients by quadrature, about 1e-14 of the root mean square" if sampled else "to rounding"
        if self.exact:
            return f"closed form (finite Hermite sum), {coefficients}"
        return f"Hermite series of {self.terms} terms, {coefficients}; error(a, b) bounds the remainder"

    def error(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q"]:
        """A bound on the values' error: Cauchy-Schwarz on the two Parseval tails, times `cos^terms`, plus rounding."""
        x, y = rows(a), rows(b)
        arc = angles(x, y)
        size_s, tail_s = self._tail(self.s, x)
        size_t, tail_t = self._tail(self.t, y)
        rounding = 16 * jnp.finfo(float).eps * size_s[:, None] * size_t[None, :]
        if self.exact:
            return rounding
        return tail_s[:, None] * tail_t[None, :] * arc.cos**self.terms + rounding

    def _tail(self, atom: Atom, x: Rows) -> tuple[Array, Array]:
        total = atom.second_moment(x.norm)
        kept = jnp.sum(atom.scale_jet(x.norm, self.terms).value ** 2, axis=-1)
        # The difference is only known to rounding: a tail below 1e-7 of the whole cannot be told from zero.
        unseen = 16 * jnp.finfo(float).eps * total
        return jnp.sqrt(total), jnp.sqrt(jnp.maximum(total - kept, 0.0) + unseen)

    def _value(self, x: Rows, y: Rows, arc: Angles) -> Float[Array, "p q"]:
        s, t = self.s.scale_jet(x.norm, self.terms), self.t.scale_jet(y.norm, self.terms)
        return mehler(s.value, t.value, _rho(arc))

    def _slopes(self, x: Rows, y: Rows, arc: Angles) -> Slopes:
        s, t = self.s.scale_jet(x.norm, self.terms), self.t.scale_jet(y.norm, self.terms)
        rho = _rho(arc)
        return Slopes(along=mehler(s.slope, t.value, rho), across=mehler(s.over, t.value, rho, 1))

    def _mixed_parts(self, x: Rows, y: Rows, arc: Angles) -> MixedParts:
        self._refuse_kinks()
        s, t = self.s.scale_jet(x.norm, self.terms), self.t.scale_jet(y.norm, self.terms)
        rho = _rho(arc)
        return MixedParts(
            lengths=mehler(s.slope, t.slope, rho),
            length_turn=mehler(s.slope, t.over, rho, 1),
            turn_length=mehler(s.over, t.slope, rho, 1),
            turns=mehler(s.over, t.over, rho, 2),
            flat=mehler(s.over, t.over, rho, 1),
        )

    def _curvature_parts(self, x: Rows, y: Rows, arc: Angles) -> CurvatureParts:
        self._refuse_kinks()
        s, t = self.s.scale_jet(x.norm, self.terms), self.t.scale_jet(y.norm, self.terms)
        rho = _rho(arc)
        return CurvatureParts(
            length=mehler(s.second, t.value, rho),
            shear=mehler(s.turn, t.value, rho, 1),
            turn=mehler(s.over_twice, t.value, rho, 2),
            flat=mehler(s.lift, t.value, rho),
        )

    def _refuse_kinks(self) -> None:
        for atom in (self.s, self.t):
            if isinstance(atom, Smooth) and atom.kinks:
                raise BadInput(
                    f"A Hessian was asked for an activation whose slope jumps at {atom.kinks}, for which the "
                    "series does not converge well enough; kinks at 0 are fine, and so are values and gradients."
                )

    def _no_gradient(self, x: Rows, y: Rows) -> Bool[Array, "p q"]:
        # Near a = 0 the kernel of a kink is |a| times a function of the direction, that of a jump is such a function.
        # It vanishes only with all of t's coefficients that meet theirs.
        others = self._meets(self.s, self.t.scale_jet(y.norm, self.terms).value)
        if others is None:
            return super()._no_gradient(x, y)
        return (x.norm == 0)[:, None] & others[None, :]

    def _no_mixed(self, x: Rows, y: Rows) -> Bool[Array, "p q"]:
        missing = super()._no_mixed(x, y)
        s, t = self.s.scale_jet(x.norm, self.terms), self.t.scale_jet(y.norm, self.terms)
        at_a = self._meets(self.s, jnp.abs(t.slope) + jnp.abs(t.over))
        at_b = self._meets(self.t, jnp.abs(s.slope) + jnp.abs(s.over))
        missing = missing if at_a is None else missing | ((x.norm == 0)[:, None] & at_a[None, :])
        return missing if at_b is None else missing | ((y.norm == 0)[None, :] & at_b[:, None])

    def _meets(self, atom: Atom, others: Table) -> Bool[Array, " rows"] | None:
        """Whether the part of an atom that is rough at 0 meets each of the others; None if it has none."""
        rough = atom.rough_at_zero(self.terms)
        return None if rough is None else jnp.any(rough[None] * others != 0, axis=-1)


def mehler(s: Float[Array, "p k"], t: Float[Array, "q k"], rho: Float[Array, "p q"], order: int = 0) -> Array:
    """`d^order/drho^order sum_k s_k t_k rho^k`; the powers are shared by all sums with the same `rho`."""
    count = s.shape[-1]
    k = np.arange(order, count)
    falling = np.prod([k - i for i in range(order)], axis=0) * np.ones(len(k))
    return jnp.einsum("pk,qk,pqk->pq", s[:, order:] * falling[None], t[:, order:], _powers(rho, count)[..., : len(k)])


def _powers(rho: Float[Array, "p q"], count: int) -> Float[Array, "p q k"]:
    """`1, rho, ..., rho^(count-1)`, doubling the list until it is long enough."""
    powers, last = jnp.ones((*rho.shape, 1)), rho[..., None]
    while powers.shape[-1] < count:
        powers, last = jnp.concatenate([powers, powers * last], axis=-1), last**2
    return powers[..., :count]


def _rho(arc: Angles) -> Float[Array, "p q"]:
    return arc.sign * arc.cos
