"""The line on which a table of numbers has a given level."""

import numpy as np

from tutelage._types import Numbers


def contour(values: Numbers, level: float) -> tuple[Numbers, Numbers]:
    """Where `values[i, j]`, linear between its entries, has this level: x (along j) and y (along i), with nan between.

    Each square of four entries is cut into two triangles, on which the level is a straight piece. Squares with a nan
    have none.

    ```python
    >>> import numpy as np
    >>> x, y = contour(np.array([[0.0, 1.0], [0.0, 1.0]]), 0.25)
    >>> np.unique(x[np.isfinite(x)])
    array([0.25])

    ```
    """
    rows, columns = np.indices((values.shape[0] - 1, values.shape[1] - 1)).reshape(2, -1)
    halves = [[(0, 0), (0, 1), (1, 1)], [(0, 0), (1, 0), (1, 1)]]
    corners = np.concatenate(
        [[[rows + i, columns + j] for i, j in half] for half in halves], axis=2
    )  # (3, 2, triangles)
    corners = corners.transpose(2, 0, 1)
    heights = values[corners[..., 0], corners[..., 1]] - level
    pieces = [_piece(place, height) for place, height in zip(corners.astype(float), heights, strict=True)]
    found = [piece for piece in pieces if piece is not None]
    if not found:
        return np.zeros(0), np.zeros(0)
    joined = np.concatenate([np.concatenate([piece, [[np.nan, np.nan]]]) for piece in found])
    return joined[:, 1], joined[:, 0]


def _piece(corners: Numbers, heights: Numbers) -> Numbers | None:
    """The two ends of the level's piece in a triangle: where two of its sides change sign. Zero counts as above."""
    if np.isnan(heights).any() or len(set(above := heights >= 0)) == 1:
        return None
    ends = [(a, b) for a, b in ((0, 1), (1, 2), (2, 0)) if above[a] != above[b]]
    parts = [heights[a] / (heights[a] - heights[b]) for a, b in ends]
    return np.array([corners[a] + part * (corners[b] - corners[a]) for (a, b), part in zip(ends, parts, strict=True)])
