"""A softmax router over the experts in place of one sigmoid each: its leading law, exactly, and sampled runs.

The paper takes sigmoids because each gate is then a function of one projection. A softmax is one of all of them, so
that no finite sum of overlaps is its loss. At the start, with independent logits, only means of products of two shares
are needed, and these are integrals in one variable; what comes after is run on samples.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.integrate import quad

from tutelage.papers.soft_moe import recipe
from tutelage.papers.soft_moe.events import ANNIHILATED, RECOVERED
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.problem import Numbers
from tutelage.study import Size

GATES = ("sigmoid", "softmax")
TEACHERS, STUDENTS, DIM = 2, 8, 100
SEEDS: dict[Size, int] = {"quick": 4, "full": 16}
UNTIL, STEP, BATCH, RECORDS = 15.0, 0.05, 2048, 30


class Shares(NamedTuple):
    """Means of products of two shares of a softmax over m independent standard logits, and the quadrature's error."""

    square: float
    cross: float
    error: float


@functools.cache
def shares(m: int) -> Shares:
    """`E[p_i^2] = int_0^inf t E[e^(2z - t e^z)] E[e^(-t e^z)]^(m-1) dt`, and `E[p_i p_k]` since shares add up to 1.

    ```python
    >>> from tutelage.papers.soft_moe.softmax import shares
    >>> round(shares(2).square + shares(2).cross, 12)  # half of E[(p_1 + p_2)^2] = 1
    0.5

    ```
    """
    places, weights = np.polynomial.hermite_e.hermegauss(160)
    weights = weights / weights.sum()

    def inner(log_t: float, power: int) -> float:
        return float(weights @ np.exp(power * places - np.exp(log_t + places)))

    def integrand(log_t: float) -> float:
        return math.exp(2 * log_t) * inner(log_t, 2) * inner(log_t, 0) ** (m - 1)

    square, error = quad(integrand, -30, 12, limit=400, epsabs=1e-13, epsrel=1e-11)
    return Shares(square, (1 - m * square) / (m * (m - 1)), error)


class Forces(NamedTuple):
    """Of the leading law: `18 teacher gamma2^2 / b_i^2`, and `-18 student (1/b_i^2 + 1/b_k^2) I2^2` of two students."""

    teacher: float
    student: float

    @property
    def ratio(self) -> float:
        """The pace at which two students cancel over that at which one finds a teacher, from equal overlaps."""
        return 2 * self.student / self.teacher


def forces(gate: str, students: int, teachers: int) -> Forces:
    """Means of products of two gates: of a student and a teacher, and of two students, all routers orthogonal."""
    if gate == "sigmoid":
        return Forces(0.25, 0.25)
    return Forces(1 / (students * teachers), shares(students).cross)


class Rows(NamedTuple):
    """Routers and experts, (unit, dim) each, not normalised."""

    routers: Float[Array, "unit dim"]
    experts: Float[Array, "unit dim"]


def output(gate: str, rows: Rows, x: Float[Array, "sample dim"]) -> Float[Array, " sample"]:
    """Eq. (1), with the gate of this name over all experts."""
    v, w = (part / jnp.linalg.norm(part, axis=1, keepdims=True) for part in rows)
    gates = jax.nn.softmax(x @ v.T, axis=1) if gate == "softmax" else jax.nn.sigmoid(x @ v.T)
    z = x @ w.T
    return jnp.sum(gates * (z**3 - 3 * z), axis=1)


def loss(gate: str, rows: Rows, teacher: Rows, x: Float[Array, "sample dim"]) -> Float[Array, ""]:
    """Eq. (3) on samples."""
    return 0.5 * jnp.mean((output(gate, rows, x) - output(gate, teacher, x)) ** 2)


class Seen(NamedTuple):
    """At each record (time, seed): pairs of opposite experts, teachers met, experts along a teacher's, loss."""

    time: Numbers
    pairs: Numbers
    met: Numbers
    holders: Numbers
    loss: Numbers


@functools.cache
def sampled(gate: str, size: Size) -> Seen:
    """SGD with fresh batches, which all seeds share, in all coordinates, from iid starts.

    Times and steps are counted in units in which a teacher pulls with the same force whatever the gate, that of the
    sigmoid.
    """
    settings = SoftMoeSettings(teachers=TEACHERS, students=STUDENTS, dim=DIM)
    unit = 0.25 / forces(gate, settings.students, settings.teachers).teacher
    begun = [recipe.problem(settings).begin(seed) for seed in range(SEEDS[size])]
    m, dim = settings.students, settings.dim
    first = jnp.stack([jnp.pad(one.student.first, ((0, 0), (0, dim - one.student.first.shape[1]))) for one in begun])
    teacher = Rows(*jnp.split(jnp.eye(2 * settings.teachers, dim), 2))
    slope = jax.vmap(jax.value_and_grad(lambda rows, x: loss(gate, rows, teacher, x)), in_axes=(0, None))
    each = round(UNTIL / STEP / RECORDS)

    @jax.jit
    def stretch(rows: Rows, key: Array) -> tuple[Rows, Array]:
        def update(rows: Rows, key: Array) -> tuple[Rows, Array]:
            value, down = slope(rows, jax.random.normal(key, (BATCH, dim)))
            return jax.tree.map(lambda part, change: part - unit * STEP * change, rows, down), value

        return jax.lax.scan(update, rows, jax.random.split(key, each))

    rows, found = Rows(first[:, :m], first[:, m:]), []
    for number in range(RECORDS + 1):
        experts = rows.experts
        rows, values = stretch(rows, jax.random.key(number))
        found.append((*_counts(np.asarray(experts), np.asarray(teacher.experts)), np.asarray(values[0])))
    time = np.linspace(0, UNTIL, RECORDS + 1)
    return Seen(time, *(np.array(part) for part in zip(*found, strict=True)))


def _counts(experts: Numbers, taught: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Of each seed: pairs of opposite experts, teachers that one has recovered, and experts that have recovered one."""
    w = experts / np.linalg.norm(experts, axis=2, keepdims=True)
    overlap, upper = w @ taught.T, np.triu(np.ones((w.shape[1],) * 2, bool), 1)
    opposite = (w @ w.swapaxes(1, 2))[:, upper] <= ANNIHILATED
    met = overlap >= RECOVERED
    return opposite.sum(1), met.any(1).sum(1), met.any(2).sum(1)
