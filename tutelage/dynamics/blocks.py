"""Normalised SGD in blocks: many single-sample updates on the sphere, each one exact, as a few matrix products.

One update with `u = w.x` and a factor `g` is `w' = ((1 - g u) w + g x)/n`: the step is orthogonal to `w`, so that
`n^2 = 1 + g^2 (|x|^2 - u^2)` needs no norm of a vector. After t updates of a block `w = A (w_0 + sum_s D_s x_s)`; the
next `u` is `A (S_t + sum_s G_ts D_s)` with the matrices `S = X W_0^T` and `G = X X^T`. So a block is two large products
and a recurrence in coefficients. Nothing is approximated; only the order of additions differs from a plain loop.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from tutelage._errors import BadInput
from tutelage.problem.units import Units

BLOCK = 64
PANEL, WIDE = 16, 256  # updates of a panel in wide networks, and from how many units on they are wide
_TINY, _FAINT = 1e-8, 1e-100

Rows = Float[Array, "unit dim"]


class Rule(eqx.Module):
    """How a unit moves on a sample: `g = step gate (y - f) a s'(u + b)`, with the output `f` for "squared" only.

    - `loss`: "correlation", which climbs `y f`, or "squared", which descends `(y - f)^2/2`.
    - `share`: the factor of a unit in the output `f = share sum_j gate_j a_j s(u_j + b_j)`.
    - `batch`: samples per update; `g` is then over their number.
    """

    step: Float[Array, ""]
    share: Float[Array, ""]
    loss: Literal["correlation", "squared"] = eqx.field(static=True, default="correlation")
    batch: int = eqx.field(static=True, default=1)

    def __check_init__(self) -> None:
        if self.loss not in ("correlation", "squared"):
            raise BadInput(f'loss is {self.loss!r}, but "correlation" or "squared" was expected.')
        if self.batch < 1 or BLOCK % self.batch:
            raise BadInput(f"batch is {self.batch}, but a divisor of {BLOCK} was expected: 1, 2, 4, ..., 64.")

    def factors(self, units: Units, pre: Array, labels: Array, gates: Array) -> Array:
        """`g` of each sample of one update and each unit."""
        signal = labels[:, None]
        outgoing = units.outgoing.astype(pre.dtype)[None]
        if self.loss == "squared":
            share = self.share.astype(pre.dtype)
            signal = signal - share * jnp.sum(gates * outgoing * units.value(pre), axis=1, keepdims=True)
        step = self.step.astype(pre.dtype) / self.batch
        return step * gates * signal * outgoing * units.slope(pre)


class Block(NamedTuple):
    """Samples that are met one after the other; `gates` (sample, unit or 1) are 0 where a unit does not see one."""

    inputs: Float[Array, "sample dim"]
    labels: Float[Array, " sample"]
    gates: Float[Array, "sample each"]


def quick(rule: Rule, units: Units, first: Rows, block: Block) -> tuple[Rows, Bool[Array, ""]]:
    """The rows after the block, and whether the result is good: it divides by `1 - g u`, which may vanish.

    A panel of updates at a time: what earlier panels add to its `u` is one more product.
    """
    dtype, size = first.dtype, len(block.labels)
    seen, gram = block.inputs @ first.T, block.inputs @ block.inputs.T
    ones = jnp.ones(len(first), dtype)
    state, terms = _Scales(ones, ones, ones), jnp.zeros((0, len(first)), dtype)
    panel = max(rule.batch, PANEL if len(first) >= WIDE else BLOCK // 2)
    for start in range(0, size, panel):
        part = slice(start, start + panel)
        ahead = seen[part] + gram[part, :start] @ terms if start else seen[part]
        state, own = _panel(rule, units, state, ahead, gram[part, part], block.labels[part], block.gates[part])
        terms = jnp.concatenate([terms, own])
    moved = state.scale[:, None] * (first + terms.T @ block.inputs)
    faint = max(_FAINT, float(jnp.finfo(dtype).tiny) * 1e8)
    return moved, (jnp.min(state.least) > _TINY) & (jnp.min(jnp.abs(state.scale)) > faint)


class _Scales(NamedTuple):
    """Of each unit: the factor `A`, its inverse, and the least `|1 - g u|` so far."""

    scale: Float[Array, " unit"]
    inverse: Float[Array, " unit"]
    least: Float[Array, " unit"]


def _panel(
    rule: Rule, units: Units, state: _Scales, seen: Array, gram: Array, labels: Array, gates: Array
) -> tuple[_Scales, Float[Array, "sample unit"]]:
    """The coefficients `D` of a panel's samples, one update after the other."""

    def update(carry: tuple[_Scales, Array], turn: Array) -> tuple[tuple[_Scales, Array], None]:
        (scale, inverse, least), terms = carry
        rows, own = _rows(turn, rule.batch, gram)
        label, gate, start = (_slice(each, turn * rule.batch, rule.batch) for each in (labels, gates, seen))
        pre = scale[None] * (start + rows @ terms)
        g = rule.factors(units, pre, label, gate)
        along, norm = _moved(g, pre, own)
        e = 1 - along
        # One division for 1/norm, 1/e and their products.
        over = 1 / (e * norm)
        terms = jax.lax.dynamic_update_slice(terms, g * (inverse * (norm * over))[None], (turn * rule.batch, 0))
        scales = _Scales(scale * (e * e * over), inverse * (norm * norm * over), jnp.minimum(least, jnp.abs(e)))
        return (scales, terms), None

    begin = (state, jnp.zeros_like(seen))
    (state, terms), _ = jax.lax.scan(update, begin, jnp.arange(len(labels) // rule.batch), unroll=2)
    return state, terms


def safe(rule: Rule, units: Units, first: Rows, block: Block) -> Rows:
    """The same with explicit coefficients of all samples, and no division by `1 - g u`."""
    size, dtype = len(block.labels), first.dtype
    seen, gram = block.inputs @ first.T, block.inputs @ block.inputs.T

    def update(carry: tuple[Array, Array], turn: Array) -> tuple[tuple[Array, Array], None]:
        scale, terms = carry
        rows, own = _rows(turn, rule.batch, gram)
        labels, gates, start = (
            _slice(each, turn * rule.batch, rule.batch) for each in (block.labels, block.gates, seen)
        )
        pre = scale[None] * start + rows @ terms
        g = rule.factors(units, pre, labels, gates)
        along, norm = _moved(g, pre, own)
        shrink = (1 - along) / norm
        terms = jax.lax.dynamic_update_slice(terms * shrink[None], g / norm[None], (turn * rule.batch, 0))
        return (scale * shrink, terms), None

    carry = (jnp.ones(len(first), dtype), jnp.zeros((size, len(first)), dtype))
    (scale, terms), _ = jax.lax.scan(update, carry, jnp.arange(size // rule.batch))
    return scale[:, None] * first + terms.T @ block.inputs


def _slice(array: Array, start: Array, count: int) -> Array:
    return jax.lax.dynamic_slice_in_dim(array, start, count)


def _rows(turn: Array, batch: int, gram: Array) -> tuple[Array, Array]:
    """The rows of the Gram matrix of one update's samples, and their own square of it."""
    rows = _slice(gram, turn * batch, batch)
    return rows, jax.lax.dynamic_slice_in_dim(rows, turn * batch, batch, axis=1)


def _moved(g: Array, pre: Array, own: Array) -> tuple[Array, Array]:
    """Of each unit: `sum g u`, and the length of `w + sum g (x - u w)`."""
    along = jnp.sum(g * pre, axis=0)
    # Not a matrix product, which for one sample would be a call of its own.
    square = jnp.sum(g * jnp.sum(own[:, :, None] * g[None], axis=1), axis=0)
    return along, jnp.sqrt(1 + (square - along**2))


def together(
    rule: Rule, units: Units, first: Float[Array, "expert unit dim"], blocks: Block, *, careful: bool = False
) -> tuple[Array, Bool[Array, " expert"]]:
    """One block for each of several independent experts (a leading axis everywhere), in lockstep.

    The rows, and for which experts they are good. With `careful` the safe form is taken, and all are.
    """
    if careful:
        return _each(safe, rule, units, first, blocks), jnp.ones(len(first), bool)
    moved, good = _each(quick, rule, units, first, blocks)
    return moved, good


def _each(form: Callable[..., Any], rule: Rule, units: Units, first: Array, blocks: Block) -> Any:
    """All experts at once; a single one without a batch axis, for which the compiler does better."""
    if len(first) > 1:
        return jax.vmap(form, (None, 0, 0, 0))(rule, units, first, blocks)
    done = form(rule, *jax.tree.map(lambda leaf: leaf[0], (units, first, blocks)))
    return jax.tree.map(lambda leaf: leaf[None], done)
