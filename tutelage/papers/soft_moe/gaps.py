"""How clearly a start decides who learns whom: the gaps of Lemma 2, and the matching in the limit of large dim."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from tutelage.papers.soft_moe.matching import removals
from tutelage.problem import Numbers


class Gaps(NamedTuple):
    """What Lemma 2 bounds, for each draw and each step l of the greedy matching (6).

    A gap is the largest `x` with `w_i*[j*] >= (1 + x) w`, infinite if every such `w` is negative or there is none:

    - `row`: `w` the same student's entries at teachers that are left; `column`: the same teacher's at students left;
    - `threshold`: `w` the entry taken next (so that it has a step less).
    - `chosen`: the entries `w_i*[j*]` themselves.
    """

    row: Numbers
    column: Numbers
    threshold: Numbers
    chosen: Numbers

    def worst(self, name: str) -> Numbers:
        """The smallest over the steps of the gap of this name, or of all three if it is "all", by draw."""
        parts = (self.row, self.column, self.threshold) if name == "all" else (getattr(self, name),)
        return np.min(np.concatenate(parts, axis=1), axis=1, initial=np.inf)


def gaps(tables: ArrayLike) -> Gaps:
    """Gaps of tables (draw, m, m*) of inner products `w_i(0).w*_j`, in one compiled call.

    ```python
    >>> from tutelage.papers.soft_moe.gaps import gaps
    >>> found = gaps([[[4.0, 2.0], [1.0, 1.0], [-1.0, 0.5]]])
    >>> found.row.tolist(), found.column.tolist(), found.threshold.tolist()
    ([[1.0, inf]], [[3.0, 1.0]], [[3.0]])

    ```
    """
    return Gaps(*map(np.asarray, _gaps(jnp.asarray(tables, float))))


@jax.jit
@jax.vmap
def _gaps(table: Float[jax.Array, "student teacher"]) -> tuple[jax.Array, ...]:
    students, teachers = table.shape
    i, j, _ = removals(-table, teachers)
    step = jnp.arange(len(i))
    # The step at which each row and column goes; one that stays to the end goes after the last.
    row_goes = jnp.full(students, len(i)).at[i].set(step)
    column_goes = jnp.full(teachers, len(i)).at[j].set(step)
    chosen = table[i, j]
    others_in_row = jnp.where(column_goes > step[:, None], table[i], -jnp.inf)
    others_in_column = jnp.where(row_goes > step[:, None], table[:, j].T, -jnp.inf)
    gap = functools.partial(_gap, chosen)
    return gap(others_in_row.max(1)), gap(others_in_column.max(1)), _gap(chosen[:-1], chosen[1:]), chosen


def _gap(chosen: jax.Array, other: jax.Array) -> jax.Array:
    return jnp.where(other > 0, chosen / jnp.where(other > 0, other, 1.0) - 1, jnp.inf)


def quantiles(values: ArrayLike, levels: ArrayLike) -> Numbers:
    """Values of the sample at these levels, not interpolated: some gaps are infinite."""
    return np.quantile(np.asarray(values, float), np.asarray(levels, float), method="inverted_cdf")
