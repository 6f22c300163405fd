"""Infinite width by symmetry: base neurons and all their images under a group of sign changes (Claim 3.1).

The teacher's directions are the axes, so its loss does not change when coordinates change sign. A population that is
invariant under a group of sign changes stays so under descent, and only one neuron of each orbit need be moved. In the
full group {+-1}^d every order is as at infinite width; smaller groups are as good up to their strength: any `strength`
columns of the signs take all values equally often, and orders up to that have no error.
"""

import itertools
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray
from scipy.linalg import hadamard
from scipy.stats import norm, qmc

from tutelage import BadInput
from tutelage.oracle import rows
from tutelage.papers.beyond_ntk import powers
from tutelage.papers.beyond_ntk.constants import coefficient, kernel_from_four
from tutelage.papers.beyond_ntk.field import PerRow, Vectors, pull

Signs = NDArray[np.floating]

_LARGEST = 256  # dimension of a group of signs


def full_group(dim: int) -> Signs:
    """All of {+-1}^d, for d <= 10.

    ```python
    >>> from tutelage.papers.beyond_ntk.orbits import full_group
    >>> full_group(2).tolist()
    [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]

    ```
    """
    if not 1 <= dim <= 10:
        raise BadInput(f"The group {{+-1}}^d was asked for d = {dim}; it has 2^d elements: take d from 1 to 10.")
    return np.array(list(itertools.product((1.0, -1.0), repeat=dim)))


def hadamard_group(dim: int) -> Signs:
    """The rows of +-Sylvester's matrix of size n, the power of two from d on, cut to d columns: 2n signs of strength 3.

    ```python
    >>> from tutelage.papers.beyond_ntk.orbits import hadamard_group
    >>> hadamard_group(30).shape
    (64, 30)

    ```
    """
    if not 2 <= dim <= _LARGEST:
        raise BadInput(f"A group of signs was asked for d = {dim}; take d from 2 to {_LARGEST}.")
    # Distinct columns (1, x): any three are independent over GF(2).
    rows = hadamard(2 ** (dim - 1).bit_length(), float)[:, :dim]
    return np.stack([rows, -rows], axis=1).reshape(-1, dim)


def halves(signs: Signs) -> Signs:
    """One of each pair `+-g`: a unit |z| cannot tell them apart, and terms of odd order cancel in pairs."""
    kept = signs[signs[:, 0] > 0]
    if 2 * len(kept) != len(signs):
        raise BadInput("The group of signs does not hold -g with every g; add the negatives.")
    return kept


def gaussian_base(count: int, dim: int, seed: int, scale: float = 1.0) -> Vectors:
    """Base neurons of N(0, scale^2 I/d), all coordinates positive, by quasi-random numbers.

    Their averages are nearer to those of the law than random draws would be. `count` is best a power of two.
    """
    uniform = qmc.Sobol(dim, rng=np.random.default_rng(seed)).random(count)
    return jnp.asarray(scale / np.sqrt(dim) * norm.ppf((uniform + 1) / 2))


def orbit(base: Vectors, signs: Signs) -> Vectors:
    """Every image of every base neuron, (|G| M, d): that of neuron j by element g is row `g M + j`."""
    return (jnp.asarray(signs)[:, None, :] * base[None, :, :]).reshape(-1, base.shape[1])


@partial(jax.jit, static_argnames="exact")
def _orbit_field(v, base, masses, signs, a, exact):
    weights = masses * rows(base).norm ** 2 / len(signs)
    taught = pull(v, jnp.eye(len(a), v.shape[1]), a, snap=True, above=exact)
    low = sum(powers.order_field(v, base, masses, a, order) for order in range(0, exact + 1, 2))

    def add(total: Vectors, sign: Float[Array, " dim"]) -> tuple[Vectors, None]:
        return total + pull(v, sign[None] * base, weights, snap=True, above=exact), None

    # One element of the group at a time: memory is for rows of v x base neurons.
    return low + 2 * jax.lax.scan(add, -taught, signs)[0]


def orbit_field(
    v: Vectors, base: Vectors, masses: PerRow, signs: Signs, teacher_weights: PerRow, exact: int = -2
) -> Vectors:
    """`G(v; P)` of the symmetrised population, for units |z| or 2 ReLU, which it cannot tell apart.

    `exact`: orders up to this one are those of the full group, by power sums (see `powers`).

    ```python
    >>> import jax.numpy as jnp
    >>> from tutelage.papers.beyond_ntk.orbits import full_group, orbit_field
    >>> half = jnp.full(2, 0.5)
    >>> orbit_field(jnp.eye(2), jnp.eye(2), half, full_group(2), half).round(12).tolist()  # learned
    [[0.0, 0.0], [0.0, 0.0]]

    ```
    """
    return _orbit_field(v, base, masses, jnp.asarray(halves(signs)), teacher_weights, exact)


@partial(jax.jit, static_argnames="exact")
def _orbit_loss(base, masses, signs, a, exact):
    w = rows(base)
    unit = jnp.concatenate([w.unit, jnp.eye(len(a), base.shape[1])])
    signed = jnp.concatenate([masses * w.norm**2, -a])
    orders = range(4, exact + 1, 2)

    def add(total: Float[Array, ""], sign: Float[Array, " dim"]) -> tuple[Float[Array, ""], None]:
        cosine = unit @ (sign[None] * unit).T
        high = kernel_from_four(cosine) - sum(coefficient(order) * cosine**order for order in orders)
        return total + signed @ high @ signed, None

    low = sum(coefficient(order) * powers.order_loss(base, masses, a, order) for order in (0, 2, *orders))
    return low + jax.lax.scan(add, jnp.zeros(()), signs)[0] / len(signs)


def orbit_loss(base: Vectors, masses: PerRow, signs: Signs, teacher_weights: PerRow, exact: int = 2) -> float:
    """The paper's `L` of the symmetrised population; orders up to `exact`, at least 2, are those of the full group."""
    return float(_orbit_loss(base, masses, jnp.asarray(halves(signs)), teacher_weights, exact))


@partial(jax.jit, static_argnames="exact")
def _advance(v, base, masses, signs, a, step, count, exact):
    """`count` steps of descent of the base neurons, and of `v` in their field."""

    def once(_, state):
        v, base = state
        everyone = jnp.concatenate([base, v])
        moved = everyone - step * _orbit_field(everyone, base, masses, signs, a, exact)
        return moved[len(base) :], moved[: len(base)]

    return jax.lax.fori_loop(0, count, once, (v, base))


def simulate(
    base: Vectors,
    masses: PerRow,
    signs: Signs,
    teacher_weights: PerRow,
    *,
    step: float,
    times: Sequence[float],
    tracers: Vectors | None = None,
    exact: int = -2,
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Descent with the step `eta_inf` of infinite width: base neurons (time, M, d) and tracers (time, n, d) at `times`.

    Tracers are neurons without mass: they move in the field of the population. A time is a number of steps x `step`.
    """
    half = jnp.asarray(halves(signs))
    v = jnp.zeros((0, base.shape[1])) if tracers is None else tracers
    bases, others = [], []
    for count in powers.segments(times, step):
        v, base = _advance(v, base, masses, half, teacher_weights, step, count, exact)
        bases.append(np.asarray(base))
        others.append(np.asarray(v))
    return np.stack(bases), np.stack(others)
