"""The kernel of units that see a mean: `E[s(a.x) t(b.x)]` over inputs `x` whose first entry always is 1.

Rows then have their means in front. A derivative in the mean is the same kernel with the derivative of the activation
in its place, and all others are those of the rows behind, at fixed means.
"""

import functools
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from tutelage._errors import BadInput
from tutelage.oracle.kernels.base import AbstractKernel, PolarKernel
from tutelage.oracle.kernels.edges import SHARP, Edge, EdgeKernel
from tutelage.oracle.kernels.offset import Offset, Piece, degree
from tutelage.oracle.kernels.series import SeriesKernel
from tutelage.problem.activations import Activation
from tutelage.problem.atoms import ErfMixture, PiecewiseLinear, Polynomial, Sign, Smooth

Means = Float[Array, " _"]


class MeanKernel(AbstractKernel):
    """Two activations; rows have their means in front.

    ```python
    >>> import tutelage, jax.numpy as jnp
    >>> from tutelage.oracle.kernels.means import MeanKernel
    >>> from tutelage.problem.activations import activation
    >>> k = MeanKernel(activation("relu"), activation("linear"))
    >>> row = jnp.array([[3.0, 0.0, 0.0]])  # a unit that sees nothing but its bias
    >>> float(k.value(row, row)[0, 0])
    9.0

    ```
    """

    s: Activation
    t: Activation
    terms: int = eqx.field(static=True, default=128)

    def __check_init__(self) -> None:
        pieces(self.s), pieces(self.t)  # refused here if there are none

    @property
    def accuracy(self) -> str:
        nowhere = jnp.zeros(0)
        found = self._parts(nowhere, nowhere)
        sampled = any(isinstance(piece, Smooth) for piece in (*pieces(self.s), *pieces(self.t)))
        told = [part.accuracy for part in found]
        rule = "its coefficients by quadrature, about 1e-14 of the root mean square for rows of norm up to 3"
        return "; ".join(dict.fromkeys([*told, rule] if sampled else told))

    def error(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q"]:
        """A bound on what the truncated series among the parts leave out of the values (closed forms leave nothing)."""
        parts = [part for part in self._parts(a[:, 0], b[:, 0]) if isinstance(part, SeriesKernel)]
        bounds = [part.error(a[:, 1:], b[:, 1:]) for part in parts]
        return functools.reduce(jnp.add, bounds, jnp.zeros((len(a), len(b))))

    def value(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q"]:
        return self._sum(a, b, lambda part, x, y: part.value(x, y))

    def gradient(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q n"]:
        by_mean = self._sum(a, b, lambda part, x, y: part.value(x, y), (1, 0))
        by_row = self._sum(a, b, lambda part, x, y: part.gradient(x, y))
        full = jnp.concatenate([by_mean[..., None], by_row], axis=-1)
        return jnp.where(self._kinked(a)[:, None, None], jnp.nan, full)

    def pull(self, c: Float[Array, "p q"], a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p n"]:
        by_mean = self._sum(a, b, lambda part, x, y: jnp.sum(c * part.value(x, y), axis=1), (1, 0))
        by_row = self._sum(a, b, lambda part, x, y: part.pull(c, x, y))
        full = jnp.concatenate([by_mean[:, None], by_row], axis=-1)
        return jnp.where((self._kinked(a) & jnp.any(c != 0, axis=1))[:, None], jnp.nan, full)

    def mixed(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q n n"]:
        self._check_hessian()
        means = self._sum(a, b, lambda part, x, y: part.value(x, y), (1, 1))[..., None, None]
        # `d/da d/dn` and `d/dm d/db` are the same vector.
        between = self._sum(a, b, lambda part, x, y: part.gradient(x, y), (0, 1))
        by_rows = self._sum(a, b, lambda part, x, y: part.mixed(x, y))
        full = jnp.block([[means, between[..., None, :]], [between[..., None], by_rows]])
        missing = self._kinked(a)[:, None] | _kinked(self.t, b)[None, :]
        return jnp.where(missing[..., None, None], jnp.nan, full)

    def curvature(
        self, c: Float[Array, "p q"], a: Float[Array, "p n"], b: Float[Array, "q n"]
    ) -> Float[Array, "p n n"]:
        self._check_hessian()
        means = self._sum(a, b, lambda part, x, y: jnp.sum(c * part.value(x, y), axis=1), (2, 0))[:, None, None]
        between = self._sum(a, b, lambda part, x, y: part.pull(c, x, y), (1, 0))
        by_rows = self._sum(a, b, lambda part, x, y: part.curvature(c, x, y))
        full = jnp.block([[means, between[:, None, :]], [between[:, :, None], by_rows]])
        return jnp.where((self._kinked(a) & jnp.any(c != 0, axis=1))[:, None, None], jnp.nan, full)

    def _sum(
        self,
        a: Float[Array, "p n"],
        b: Float[Array, "q n"],
        part: Callable[[PolarKernel, Array, Array], Array],
        orders: tuple[int, int] = (0, 0),
    ) -> Array:
        """Of all pairs of pieces, differentiated so often in their means."""
        found = [part(each, a[:, 1:], b[:, 1:]) for each in self._parts(a[:, 0], b[:, 0], orders)]
        return functools.reduce(jnp.add, found)

    def _parts(
        self, m: Float[Array, " p"], n: Float[Array, " q"], orders: tuple[int, int] = (0, 0)
    ) -> list[PolarKernel]:
        return [_pair(u, v, m, n, orders, self.terms) for u in pieces(self.s) for v in pieces(self.t)]

    def _kinked(self, a: Float[Array, "p n"]) -> Bool[Array, " p"]:
        """Where there is no derivative in a row."""
        return _kinked(self.s, a)

    def _check_hessian(self) -> None:
        if self.t.jumps and self.s.kinks:
            raise BadInput(
                f"A Hessian was asked for units of {self.s.name} and {self.t.name} with biases, or on inputs with a "
                "mean; of a kink and a jump there is none."
            )


def _kinked(s: Activation, a: Float[Array, "p n"]) -> Bool[Array, " p"]:
    """Rows that see nothing at all, where the slope jumps."""
    return jnp.all(a == 0, axis=1) & bool(s.kinks)


@functools.cache
def pieces(s: Activation) -> tuple[Piece, ...]:
    """The sum that an activation is: edges with their smoothing, polynomials, smooth functions."""
    found: list[Piece] = []
    for atom in s.atoms:
        if isinstance(atom, PiecewiseLinear):
            found += [Polynomial((0.0, atom.linear))] if atom.linear else []
            found += [Edge(1, (atom.kink,), (SHARP,))] if atom.kink else []
        elif isinstance(atom, Sign):
            found.append(Edge(0, (atom.size,), (SHARP,)))
        elif isinstance(atom, ErfMixture):
            weights, slopes = np.array(atom.weights) * np.sign(atom.slopes), np.array(atom.slopes)
            found.append(Edge(0, tuple(weights.tolist()), tuple((0.5 / slopes**2).tolist())))
        elif isinstance(atom, Polynomial):
            found.append(atom)
        elif isinstance(atom, Smooth) and not s.kinks:
            found.append(atom)
        else:
            raise BadInput(
                f"The activation {s.name!r} has a kink; with biases, or a mean of the inputs, only piecewise linear "
                "ones may have one. Use one of these, or samples (data=)."
            )
    return tuple(found)


def _pair(u: Piece, v: Piece, m: Means, n: Means, orders: tuple[int, int], terms: int) -> PolarKernel:
    if isinstance(u, Edge) and isinstance(v, Edge):
        return EdgeKernel(u.derivative(orders[0]), v.derivative(orders[1]), m, n)
    count = int(min(degree(u) + 1, degree(v) + 1, terms))
    return SeriesKernel(Offset(u, m, orders[0]), Offset(v, n, orders[1]), count)
