"""Hermite coefficients of a unit whose argument is shifted: `a s(z + m) = sum_i alpha_i(m) h_i(z)`.

A bias and the mean of a cluster both shift the argument, so that these numbers hold all that a clustered problem needs
of an activation. They obey `alpha_i'(m) = sqrt(i + 1) alpha_{i+1}(m)`.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from tutelage.problem.activations import Activation
from tutelage.problem.atoms import Atom, PiecewiseLinear, Polynomial, Sign, along_last
from tutelage.problem.hermite import moved, normalised, tabulated
from tutelage.problem.units import Units

_REACH, _PANELS, _NODES = 18.0, 24, 16


def shifted(units: Units, shift: Float[Array, "*#batch #unit"], count: int) -> Float[Array, "*#batch #unit count"]:
    """`alpha_i(bias + shift)` for `i < count`, outgoing weight included; a shift may be the same for several units.

    Piecewise linear units, steps and polynomials in closed form; others by quadrature, for arguments up to 8.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> from tutelage.oracle.kernels.shifted import shifted
    >>> from tutelage.problem.units import Units
    >>> relu = Units(jnp.ones(1), jnp.zeros(1), kind=tt.activation("relu"))
    >>> [round(float(v), 4) for v in shifted(relu, jnp.zeros(1), 5)[0]]
    [0.3989, 0.5, 0.2821, -0.0, -0.0814]

    ```
    """
    m = along_last(units.bias, shift.ndim) + shift
    if units.kind is not None:
        table = shifted_coefficients(units.kind, m, count)
    else:
        assert units.signs is not None
        size = units.lowest + units.signs.shape[-1]
        turn = moved(m, max(count, size))[..., :count, units.lowest : size]
        table = jnp.einsum("...li,...i->...l", turn, units.signs)
    return along_last(units.outgoing, shift.ndim)[..., None] * table


def shifted_coefficients(kind: Activation, shift: Float[Array, "..."], count: int) -> Float[Array, "... count"]:
    """`E[s(Z + shift) h_i(Z)]` for `i < count`."""
    return functools.reduce(jnp.add, [_atom(atom, kind.kinks, shift, count) for atom in kind.atoms])


def _atom(atom: Atom, kinks: tuple[float, ...], m: Array, count: int) -> Array:
    if isinstance(atom, PiecewiseLinear):
        return _piecewise(atom, m, count)
    if isinstance(atom, Sign):  # the slope of |z|, and alpha_i' = sqrt(i + 1) alpha_{i+1}
        bent = _piecewise(PiecewiseLinear(0.0, atom.size), m, count + 1)
        slope: Array = bent[..., 1:] * along_last(np.sqrt(np.arange(1.0, count + 1)), bent.ndim)
        return slope
    if isinstance(atom, Polynomial):
        herme = np.polynomial.hermite_e.poly2herme(np.asarray(atom.coefficients))
        row = herme * normalised(len(herme))
        size = max(count, len(row))
        return moved(m, size)[..., :count, : len(row)] @ jnp.asarray(row)
    return _quadrature(atom, kinks, m, count)


def _piecewise(atom: PiecewiseLinear, m: Array, count: int) -> Array:
    """`linear z + kink |z|`, with `|z| = 2 ReLU(z) - z`; those of ReLU are `(-1)^i He_{i-2}(m) phi(m)/sqrt(i!)`."""
    bell, below = jax.scipy.stats.norm.pdf(m), jax.scipy.stats.norm.cdf(m)
    straight = atom.linear - atom.kink
    low = [straight * m + 2 * atom.kink * (m * below + bell), straight + 2 * atom.kink * below]
    high = tabulated(-m, max(count - 2, 2)) * bell[..., None]
    i = np.arange(2, max(count, 4))
    high = 2 * atom.kink * high * along_last(1 / np.sqrt(i * (i - 1.0)), high.ndim)
    return jnp.concatenate([jnp.stack(low, axis=-1), high], axis=-1)[..., :count]


def _quadrature(atom: Atom, kinks: tuple[float, ...], m: Array, count: int) -> Array:
    """Gauss-Legendre on panels that end at the kinks, in the argument of the activation."""
    points, weights = panels(kinks)
    z = jnp.asarray(along_last(points, m.ndim + 1)) - m[..., None]
    density = jnp.exp(-(z**2) / 2) * along_last(weights, z.ndim) / math.sqrt(2 * math.pi)
    return jnp.einsum("...q,q,...qi->...i", density, atom(jnp.asarray(points)), tabulated(z, count))


@functools.cache
def panels(kinks: tuple[float, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    ends = np.union1d(np.linspace(-_REACH, _REACH, _PANELS + 1), [k for k in kinks if abs(k) < _REACH])
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    middle, half = (ends[1:] + ends[:-1]) / 2, (ends[1:] - ends[:-1]) / 2
    return (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()
