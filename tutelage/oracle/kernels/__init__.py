"""`kernel(s, t)`: the Gaussian kernel of a pair of activations, by closed form wherever there is one."""

import functools
from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage._checks import whole
from tutelage.oracle.kernels.arccosine import ArcKernel
from tutelage.oracle.kernels.arcsine import ArcsineKernel
from tutelage.oracle.kernels.base import AbstractKernel
from tutelage.oracle.kernels.blocks import BlockKernel
from tutelage.oracle.kernels.means import MeanKernel
from tutelage.oracle.kernels.series import SeriesKernel
from tutelage.oracle.kernels.sign import ErfSignKernel, SignErfKernel, SignKernel
from tutelage.problem.activations import MOST_TERMS, Activation, Spec, activation
from tutelage.problem.assorted import Assorted, LayerUnits
from tutelage.problem.atoms import Atom, ErfMixture, PiecewiseLinear, Polynomial, Sign


class SumKernel(AbstractKernel):
    """A kernel is bilinear in the two activations: the sum over the pairs of their atoms."""

    parts: tuple[AbstractKernel, ...]

    @property
    def accuracy(self) -> str:
        return "; ".join(dict.fromkeys(part.accuracy for part in self.parts))

    def error(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q"]:
        """A bound on what the truncated series among the parts leave out of the values (closed forms leave nothing)."""
        bounds = [part.error(a, b) for part in self.parts if isinstance(part, SeriesKernel)]
        return functools.reduce(jnp.add, bounds, jnp.zeros((len(a), len(b))))

    def value(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q"]:
        return functools.reduce(jnp.add, [part.value(a, b) for part in self.parts])

    def gradient(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q n"]:
        return functools.reduce(jnp.add, [part.gradient(a, b) for part in self.parts])

    def pull(self, c: Float[Array, "p q"], a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p n"]:
        return functools.reduce(jnp.add, [part.pull(c, a, b) for part in self.parts])

    def mixed(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q n n"]:
        return functools.reduce(jnp.add, [part.mixed(a, b) for part in self.parts])

    def curvature(
        self, c: Float[Array, "p q"], a: Float[Array, "p n"], b: Float[Array, "q n"]
    ) -> Float[Array, "p n n"]:
        return functools.reduce(jnp.add, [part.curvature(c, a, b) for part in self.parts])


def kernel(s: Spec, t: Spec, terms: int = 128, kinks: Sequence[float] = ()) -> AbstractKernel:
    """`K(a, b) = E[s(a.x) t(b.x)]` over rows `a` and `b`, `x ~ N(0, I)`; `accuracy` says how it is computed.

    Closed forms serve every pair of ReLU, |.|, linear, erf, sigmoid, tanh, steps and polynomials. A Python function
    goes through a Hermite series of `terms` terms, good for rows of norm up to about 3; `error(a, b)` bounds the rest.
    `kinks` are the points where the slope of such a function jumps.

    ```python
    >>> import tutelage, jax.numpy as jnp
    >>> from tutelage.oracle.kernels import kernel
    >>> k = kernel("relu", "linear")
    >>> float(k.value(jnp.eye(2)[:1], 2 * jnp.eye(2)[:1])[0, 0]), k.accuracy   # E[relu(x) 2x] = 1
    (1.0, 'closed form (arc-cosine), to rounding')

    ```
    """
    return _of(activation(s, kinks), activation(t, kinks), whole("kernel: terms", terms, least=1, most=MOST_TERMS))


@functools.lru_cache(maxsize=256)  # asked for several times in every run
def _of(s: Activation, t: Activation, terms: int) -> AbstractKernel:
    parts = tuple(_pair(u, v, terms) for u in s.atoms for v in t.atoms)
    return parts[0] if len(parts) == 1 else SumKernel(parts)


def layer_kernel(s: LayerUnits, t: LayerUnits, *, means: bool = False) -> AbstractKernel:
    """The kernel of two layers, whose units may have activations of their own: rows are then one for each unit.

    `means`: rows have in front the mean of what they see.

    ```python
    >>> import jax.numpy as jnp
    >>> from tutelage.oracle.kernels import layer_kernel
    >>> from tutelage.problem.assorted import layer_units
    >>> k = layer_kernel(layer_units("linear"), layer_units(["linear", "he3"]))
    >>> k.value(jnp.ones((1, 1)), jnp.array([[2.0], [1.0]])).tolist()
    [[2.0, 0.0]]

    ```
    """
    of = MeanKernel if means else kernel
    if not isinstance(s, Assorted) and not isinstance(t, Assorted):
        return of(s, t)
    return BlockKernel(s, t, tuple(tuple(of(u, v) for v in _kinds(t)) for u in _kinds(s)))


def _kinds(units: LayerUnits) -> tuple[Activation, ...]:
    return tuple(kind for kind, _ in units.groups()) if isinstance(units, Assorted) else (units,)


def _pair(u: Atom, v: Atom, terms: int) -> AbstractKernel:
    if isinstance(u, PiecewiseLinear) and isinstance(v, PiecewiseLinear):
        return ArcKernel(u, v)
    if isinstance(u, ErfMixture) and isinstance(v, ErfMixture):
        return ArcsineKernel(u, v)
    if isinstance(u, Sign) and isinstance(v, Sign):
        return SignKernel(u, v)
    if isinstance(u, Sign) and isinstance(v, ErfMixture):
        return SignErfKernel(u, v)
    if isinstance(u, ErfMixture) and isinstance(v, Sign):
        return ErfSignKernel(u, v)
    u, v = _meeting(u, v), _meeting(v, u)
    return SeriesKernel(u, v, int(min(u.degree + 1, v.degree + 1, terms)))


def _meeting(atom: Atom, other: Atom) -> Atom:
    """`|z|` is even, erf and the sign are odd: of a piecewise linear function only the linear part meets these."""
    if isinstance(atom, PiecewiseLinear) and isinstance(other, (ErfMixture, Sign)):
        return Polynomial((0.0, atom.linear))
    return atom
