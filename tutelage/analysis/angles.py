"""Angles of NumPy vectors, right also where vectors are nearly parallel or opposite."""

import numpy as np

from tutelage._types import Numbers


def angle_between(u: Numbers, v: Numbers) -> Numbers:
    """The angle of vectors along the last axis, exact also near 0 and pi.

    ```python
    >>> import numpy as np
    >>> from tutelage.analysis.angles import angle_between
    >>> float(angle_between(np.array([1.0, 0.0]), np.array([1.0, 1e-9])))
    1e-09

    ```
    """
    u, v = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (u, v))
    return 2 * np.arctan2(np.linalg.norm(u - v, axis=-1), np.linalg.norm(u + v, axis=-1))


def angles_between(rows: Numbers, others: Numbers) -> Numbers:
    """The angles of all pairs of rows: (p, n) and (q, n) to (p, q).

    ```python
    >>> import numpy as np
    >>> from tutelage.analysis.angles import angles_between
    >>> np.degrees(angles_between(np.eye(2), np.array([[1.0, 1.0], [-1.0, 0.0]]))).round(9).tolist()
    [[45.0, 180.0], [45.0, 90.0]]

    ```
    """
    return angle_between(rows[:, None, :], others[None, :, :])
