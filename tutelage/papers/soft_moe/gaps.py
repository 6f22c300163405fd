"""How clearly a start decides who learns whom: the gaps of Lemma 2, and the matching in the limit of large dim."""

from typing import NamedTuple

import numpy as np
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
    """Gaps of tables (draw, m, m*) of inner products `w_i(0).w*_j`.

    ```python
    >>> from tutelage.papers.soft_moe.gaps import gaps
    >>> found = gaps([[[4.0, 2.0], [1.0, 1.0], [-1.0, 0.5]]])
    >>> found.row.tolist(), found.column.tolist(), found.threshold.tolist()
    ([[1.0, inf]], [[3.0, 1.0]], [[3.0]])

    ```
    """
    tables = np.asarray(tables, float)
    draws, students, teachers = tables.shape
    i, j, _ = removals(-tables, teachers)
    draw, step = np.arange(draws)[:, None], np.arange(i.shape[1])
    # The step at which each row and column goes; one that stays to the end goes after the last.
    row_goes, column_goes = (np.full((draws, count), len(step)) for count in (students, teachers))
    row_goes[draw, i], column_goes[draw, j] = step, step
    chosen = tables[draw, i, j]
    in_row = np.where(column_goes[:, None] > step[:, None], tables[draw, i], -np.inf)
    in_column = np.where(row_goes[:, None] > step[:, None], tables[draw, :, j], -np.inf)
    row, column = (_gap(chosen, others.max(2)) for others in (in_row, in_column))
    return Gaps(row, column, _gap(chosen[:, :-1], chosen[:, 1:]), chosen)


def _gap(chosen: Numbers, other: Numbers) -> Numbers:
    return np.where(other > 0, chosen / np.where(other > 0, other, 1.0) - 1, np.inf)


def quantiles(values: ArrayLike, levels: ArrayLike) -> Numbers:
    """Values of the sample at these levels, not interpolated: some gaps are infinite."""
    return np.quantile(np.asarray(values, float), np.asarray(levels, float), method="inverted_cdf")
