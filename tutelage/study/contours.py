"""The line on which a table of numbers has a given level."""

import contourpy
import numpy as np

from tutelage._types import Numbers


def contour(values: Numbers, level: float) -> tuple[Numbers, Numbers]:
    """Where `values[i, j]`, linear between its entries, has this level: x (along j) and y (along i), with nan between.

    An entry at the level counts as above it. Squares of four entries with one that is not finite have no line.

    ```python
    >>> import numpy as np
    >>> x, y = contour(np.array([[0.0, 1.0], [0.0, 1.0]]), 0.25)
    >>> np.unique(x[np.isfinite(x)])
    array([0.25])

    ```
    """
    if min(values.shape) < 2:
        return np.zeros(0), np.zeros(0)
    # contourpy counts an entry at the level as below it, hence the signs.
    known = -np.ma.masked_invalid(values)
    (points,), *_ = contourpy.contour_generator(z=known, corner_mask=False, line_type="ChunkCombinedNan").lines(-level)
    return (np.zeros(0), np.zeros(0)) if points is None else (points[:, 0], points[:, 1])
