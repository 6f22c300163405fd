"""Ten lines of JAX each: the loss as it stands in the paper, `jax.grad`, `jit` and `scan`."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Rows = Float[Array, "unit dim"]
Scalar = Float[Array, ""]


def kernel(a: Rows, b: Rows) -> Float[Array, "a b"]:
    """`E relu(a.x) relu(b.x)` for all pairs of rows; the cosine is clipped where `arccos` has no derivative."""
    norms = jnp.linalg.norm(a, axis=1)[:, None] * jnp.linalg.norm(b, axis=1)
    cosine = jnp.clip(a @ b.T / norms, -1 + 1e-12, 1 - 1e-12)
    angle = jnp.arccos(cosine)
    return norms * (jnp.sin(angle) + (jnp.pi - angle) * cosine) / (2 * jnp.pi)


def loss(first: Rows, teacher: Rows) -> Scalar:
    """`1/2 E (sum relu(w.x) - sum relu(t.x))^2`."""
    return 0.5 * kernel(first, first).sum() - kernel(first, teacher).sum() + 0.5 * kernel(teacher, teacher).sum()


@partial(jax.jit, static_argnames="steps")
def descend(first: Rows, teacher: Rows, step: float, steps: int) -> Rows:
    """Gradient descent on the population loss."""

    def update(w: Rows, _: None) -> tuple[Rows, None]:
        return w - step * jax.grad(loss)(w, teacher), None

    return jax.lax.scan(update, first, length=steps)[0]


@partial(jax.jit, static_argnames="steps")
def descend_all(first: Float[Array, "seed unit dim"], teacher: Rows, step: float, steps: int) -> Array:
    """The same for a batch of seeds."""
    return jax.vmap(lambda w: descend(w, teacher, step, steps))(first)


@partial(jax.jit, static_argnames=("steps", "batch"))
def sgd(key: Array, first: Rows, teacher: Rows, step: float, steps: int, batch: int) -> Rows:
    """Online SGD: a fresh batch of whole examples at every update."""

    def update(w: Rows, key: Array) -> tuple[Rows, None]:
        x = jax.random.normal(key, (batch, w.shape[1]), w.dtype)
        y = jax.nn.relu(x @ teacher.T).sum(1)
        slope = jax.grad(lambda w: 0.5 * jnp.mean((jax.nn.relu(x @ w.T).sum(1) - y) ** 2))(w)
        return w - step * slope, None

    return jax.lax.scan(update, first, jax.random.split(key, steps))[0]


@jax.jit
def spectrum(first: Rows, teacher: Rows) -> Float[Array, " weight"]:
    """All eigenvalues of the Hessian of the loss."""
    matrix = jax.hessian(loss)(first, teacher)
    return jnp.linalg.eigvalsh(matrix.reshape(first.size, first.size))


@partial(jax.jit, static_argnames="steps")
def on_samples(first: Rows, x: Array, y: Float[Array, " sample"], step: float, steps: int) -> Rows:
    """Full-batch descent of `1/m sum |w| |w.x|` on examples."""

    def error(w: Rows) -> Scalar:
        said = (jnp.linalg.norm(w, axis=1) * jnp.abs(x @ w.T)).mean(1)
        return 0.5 * jnp.mean((said - y) ** 2)

    def update(w: Rows, _: None) -> tuple[Rows, None]:
        return w - step * jax.grad(error)(w), None

    return jax.lax.scan(update, first, length=steps)[0]


def mixture(weights: tuple[Rows, Rows], x: Array) -> Float[Array, " sample"]:
    """`sum sigmoid(v.x) He3(u.x)` with unit vectors `v` and `u`."""
    routers, experts = weights
    gate = jax.nn.sigmoid(x @ (routers / jnp.linalg.norm(routers, axis=1, keepdims=True)).T)
    z = x @ (experts / jnp.linalg.norm(experts, axis=1, keepdims=True)).T
    return (gate * (z**3 - 3 * z)).sum(1)


@partial(jax.jit, static_argnames=("steps", "batch"))
def mixture_sgd(
    key: Array, student: tuple[Rows, Rows], teacher: tuple[Rows, Rows], step: float, steps: int, batch: int
) -> tuple[Rows, Rows]:
    """Online SGD of a mixture of experts."""

    def update(weights: tuple[Rows, Rows], key: Array) -> tuple[tuple[Rows, Rows], None]:
        x = jax.random.normal(key, (batch, weights[0].shape[1]), weights[0].dtype)
        y = mixture(teacher, x)
        slopes = jax.grad(lambda weights: 0.5 * jnp.mean((mixture(weights, x) - y) ** 2))(weights)
        return jax.tree.map(lambda w, slope: w - step * slope, weights, slopes), None

    return jax.lax.scan(update, student, jax.random.split(key, steps))[0]


@jax.jit
def on_sphere(first: Rows, out: Array, bias: Array, x: Array, y: Float[Array, " sample"], step: float) -> Rows:
    """Normalised SGD of the correlation loss, one sample at a time."""

    def update(w: Rows, sample: tuple[Array, Scalar]) -> tuple[Rows, None]:
        x, y = sample
        slope = jax.grad(lambda w: (out * jax.nn.relu(w @ x + bias)).sum())(w)
        slope = slope - (slope * w).sum(1, keepdims=True) * w
        w = w + step * y * slope
        return w / jnp.linalg.norm(w, axis=1, keepdims=True), None

    return jax.lax.scan(update, first, (x, y))[0]
