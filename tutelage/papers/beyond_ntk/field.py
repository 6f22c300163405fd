"""The force on a neuron in a population: `G(v; P)`, the first variation of the paper's loss, whole and order by order.

A population is a matrix of particles and their masses `p`; `f_P(x) = sum_j p_j |w_j| s(w_j.x)`. A network of m neurons
has masses 1/m, and the gradient of its loss in neuron i is `G(w_i; P)/m` (Eq. 2.4 and 2.6).
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage import BadInput
from tutelage.oracle import Angles, Rows, angles, from_chords, rows
from tutelage.papers.beyond_ntk.constants import B0, C0, C2, coefficient, gradient_rates, kernel_from_four
from tutelage.papers.beyond_ntk.settings import SLOPES

Vectors = Float[Array, "_ dim"]
PerRow = Float[Array, " _"]


def field(
    v: Vectors,
    particles: Vectors,
    masses: PerRow,
    teacher_weights: PerRow,
    teachers: Vectors | None = None,
    variant: str = "abs",
) -> Vectors:
    """`G(v; P)` for each row of `v`, in closed form.

    `teachers` are unit rows, the axes if None. A zero row of `v` has no direction; its force is 0, so it stands still.
    Where two rows are parallel the force is right to rounding. Memory is for `rows of v x particles` numbers.

    ```python
    >>> import jax.numpy as jnp
    >>> from tutelage.papers.beyond_ntk.field import field
    >>> field(jnp.eye(1, 2), jnp.eye(2), jnp.full(2, 0.5), jnp.full(2, 0.5)).round(12).tolist()  # learned
    [[0.0, 0.0]]

    ```
    """
    axes = _teachers(particles, teacher_weights, teachers)
    kink, slope = SLOPES[variant]
    return _field(v, particles, masses, teacher_weights, axes, kink, slope)


@partial(jax.jit, static_argnames=("kink", "slope"))
def _field(v, particles, masses, a, teachers, kink, slope):
    total = kink**2 * pull(v, particles, masses * rows(particles).norm ** 2) - kink * pull(v, teachers, a)
    if slope:
        total = total + slope**2 * _first_order(v, particles, masses)
    return 2 * total


@partial(jax.jit, static_argnames=("snap", "above"))
def pull(v: Vectors, directions: Vectors, weights: PerRow, *, snap: bool = False, above: int = -2) -> Vectors:
    """`grad_v sum_j c_j |v|^2 kap(cos(v, w_j))`; the lengths of the directions do not count.

    `snap`: rows that are parallel within 1e-7 count as parallel. That is three times as fast, and the error is at most
    1e-7 of the weights of such pairs. `above`: only orders above this one, which is even.
    """
    x, y = rows(v), rows(directions)
    arc = _snapped(x, y) if snap else angles(x, y)
    rise = math.pi / 2 - arc.near  # asin |rho|
    slope = arc.sign * C0 * rise  # kap'
    lift = C0 * (2 * arc.sin + arc.cos * rise)  # 2 kap - rho kap'
    cosine = arc.sign * arc.cos
    for order in range(0, above + 1, 2):
        power = coefficient(order) * cosine ** max(order - 1, 0)
        slope = slope - order * power
        lift = lift - (2 - order) * power * (cosine if order else 1.0)
    return (lift @ weights)[:, None] * v + x.norm[:, None] * ((slope * weights[None]) @ y.unit)


def _snapped(x: Rows, y: Rows) -> Angles:
    """Angles from cosines: one product of matrices, whose rounding leaves 1e-8 of parallel rows."""
    cosine = x.unit @ y.unit.T
    square = 2 - 2 * jnp.abs(cosine)
    return from_chords(jnp.where(cosine < 0, -1.0, 1.0), jnp.where(square < 1e-14, 0.0, square))


def order_field(
    v: Vectors,
    particles: Vectors,
    masses: PerRow,
    teacher_weights: PerRow,
    order: int,
    teachers: Vectors | None = None,
    variant: str = "abs",
) -> Vectors:
    """The part of `G(v; P)` from the tensor of one order (Eq. 2.5, with constants that add up to `G`).

    ```python
    >>> import jax.numpy as jnp
    >>> from tutelage.papers.beyond_ntk.field import order_field
    >>> found = order_field(jnp.eye(1, 2), jnp.eye(2), jnp.ones(2), jnp.full(2, 0.5), 0)
    >>> (jnp.pi / 8 * found).round(12).tolist()  # E|w|^2 - sum a = 1
    [[1.0, 0.0]]

    ```
    """
    if order < 0 or order % 2 and order != 1:
        raise BadInput(f"order is {order}, but |z| has even orders only, and z has order 1; ask for 0, 1, 2, 4, 6, ...")
    axes = _teachers(particles, teacher_weights, teachers)
    return _order_field(v, particles, masses, teacher_weights, axes, order, *SLOPES[variant])


@partial(jax.jit, static_argnames=("order", "kink", "slope"))
def _order_field(v, particles, masses, a, teachers, order, kink, slope):
    if order == 1:
        return 2 * slope**2 * _first_order(v, particles, masses)
    weights = kink**2 * masses * rows(particles).norm ** 2
    if order == 0:
        return B0 * (jnp.sum(weights) - kink * jnp.sum(a)) * v
    x = rows(v)
    mean = _power_pull(x.unit, particles, weights, order - 1) - _power_pull(x.unit, teachers, kink * a, order - 1)
    force = x.norm[:, None] * mean
    along, radial = gradient_rates(order)
    return along * force - radial * jnp.sum(force * x.unit, axis=1, keepdims=True) * x.unit


def _power_pull(unit: Vectors, directions: Vectors, weights: PerRow, power: int) -> Vectors:
    """`sum_j c_j rho_j^power wbar_j`."""
    other = rows(directions).unit
    return ((unit @ other.T) ** power * weights[None]) @ other


def _first_order(v: Vectors, particles: Vectors, masses: PerRow) -> Vectors:
    """`|v| M + <vbar, M> v` with `M = E |w| w`."""
    x = rows(v)
    mean = (masses * rows(particles).norm) @ particles
    return x.norm[:, None] * mean[None] + (x.unit @ mean)[:, None] * v


@partial(jax.jit, static_argnames="variant")
def loss(
    particles: Vectors,
    masses: PerRow,
    teacher_weights: PerRow,
    teachers: Vectors | None = None,
    variant: str = "abs",
) -> Float[Array, ""]:
    """The paper's `L = E (f - f*)^2` of a population: orders 0 and 2 as squares, and the rest in closed form (Eq. 2.1).

    ```python
    >>> import jax.numpy as jnp
    >>> from tutelage.papers.beyond_ntk.field import loss
    >>> round(float(loss(0 * jnp.eye(1, 2), jnp.ones(1), jnp.array([1.0, 0.0]))), 12)  # E z^2
    1.0

    ```
    """
    kink, slope = SLOPES[variant]
    w, axes = rows(particles), rows(_teachers(particles, teacher_weights, teachers))
    unit = jnp.concatenate([w.unit, axes.unit])
    signed = jnp.concatenate([kink * masses * w.norm**2, -teacher_weights])
    second = jnp.einsum("j,jp,jq->pq", signed, unit, unit)
    high = signed @ kernel_from_four(unit @ unit.T) @ signed
    first = slope * (masses * w.norm) @ particles
    return C0 * jnp.sum(signed) ** 2 + jnp.sum(first**2) + C2 * jnp.sum(second**2) + high


def _teachers(particles: Vectors, weights: PerRow, teachers: Vectors | None) -> Vectors:
    """The teacher's rows: given, or the first axes."""
    dim, count = particles.shape[-1], jnp.shape(weights)[0]
    found = jnp.eye(count, dim) if teachers is None else jnp.asarray(teachers)
    if found.shape != (count, dim):
        raise BadInput(
            f"There are {count} teacher weights and particles of dimension {dim}, but teachers of shape {found.shape}; "
            "give one unit row per weight."
        )
    return found
