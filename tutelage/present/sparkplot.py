"""A small plot in a terminal, in braille dots."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tutelage._plain import number

# The bit of each dot in a braille cell, by row and column.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def sparkplot(
    x: ArrayLike,
    y: ArrayLike,
    *,
    title: str = "",
    width: int = 60,
    height: int = 8,
    marks: Mapping[str, float] | None = None,
) -> str:
    """A curve as text; axes are logarithmic where the data are positive and span more than two decades.

    `marks` are letters that stand under the curve, at their x.

    ```python
    >>> from tutelage.present.sparkplot import sparkplot
    >>> print(sparkplot([0, 1, 2, 3], [0, 1, 2, 3], width=4, height=2))
    3 ┤  ⡠⠊
    0 ┤⡠⠊
      0   3

    ```
    """
    across, down = np.asarray(x, float), np.asarray(y, float)
    keep = np.isfinite(across) & np.isfinite(down)
    log_x, log_y = _logarithmic(across[keep & (across > 0)]), _logarithmic(down[keep & (down > 0)])
    keep &= (across > 0) if log_x else True
    keep &= (down > 0) if log_y else True
    if keep.sum() < 2:
        return f"{title}: too few values to plot".removeprefix(": ")
    across, down = across[keep], down[keep]
    grid = _grid(np.log10(across) if log_x else across, np.log10(down) if log_y else down, width, height)
    lines = _frame(grid, across, down, title + _axes(log_x, log_y) if title else "")
    row = _marked(marks or {}, across, log_x, width)
    return "\n".join([*lines[:-1], *([" " * lines[-2].index("┤") + row] if row else []), lines[-1]])


def _marked(marks: Mapping[str, float], x: NDArray[np.floating], log: bool, width: int) -> str:
    """A row of letters under their places; of two at one place the first stands, and the other beside it."""
    cells = [" "] * width
    low, high = np.log10([x.min(), x.max()]) if log else (x.min(), x.max())
    for letter, at in marks.items():
        if not x.min() <= at <= x.max():
            continue
        place = int((width - 1) * ((np.log10(at) if log else at) - low) / max(high - low, 1e-300))
        while place < width and cells[place] != " ":
            place += 1
        if place < width:
            cells[place] = letter
    return "".join([" ", *cells]).rstrip()


def _logarithmic(positive: NDArray[np.floating]) -> bool:
    return len(positive) > 2 and positive.max() > 100 * positive.min()


def _axes(log_x: bool, log_y: bool) -> str:
    return {(True, True): " (log-log)", (True, False): " (log time)", (False, True): " (log)"}.get((log_x, log_y), "")


def _grid(x: NDArray[np.floating], y: NDArray[np.floating], width: int, height: int) -> NDArray[np.integer]:
    """Braille bits of the curve, drawn dot by dot between neighbours."""
    columns, rows = 2 * width, 4 * height
    fine = np.linspace(x.min(), x.max(), 8 * columns)
    heights = np.interp(fine, x, y)
    spread = max(y.max() - y.min(), 1e-300)
    column = np.minimum((columns * (fine - x.min()) / max(x.max() - x.min(), 1e-300)).astype(int), columns - 1)
    row = rows - 1 - np.minimum((rows * (heights - y.min()) / spread).astype(int), rows - 1)
    grid = np.zeros((height, width), int)
    for c, r in zip(column, row, strict=True):
        grid[r // 4, c // 2] |= _DOTS[r % 4][c % 2]
    return grid


def _frame(grid: NDArray[np.integer], x: NDArray[np.floating], y: NDArray[np.floating], title: str) -> list[str]:
    top, bottom = number(float(y.max()), 3), number(float(y.min()), 3)
    margin = max(len(top), len(bottom))
    lines = [title] if title else []
    for index, row in enumerate(grid):
        label = top if index == 0 else bottom if index == len(grid) - 1 else ""
        cells = "".join(chr(0x2800 + bits) if bits else " " for bits in row)
        lines.append(f"{label:>{margin}} {'┤' if label else '│'}{cells}".rstrip())
    first, last = number(float(x.min()), 3), number(float(x.max()), 3)
    gap = max(1, grid.shape[1] - len(first) - len(last) + 1)
    return [*lines, " " * (margin + 1) + first + " " * gap + last]
