"""Gradient flow by SciPy, with the gradient in NumPy of `plain_numpy`."""

import numpy as np
from scipy.integrate import solve_ivp

from tutelage.bench.peers.plain_numpy import Rows, gradient


def flow(first: Rows, teacher: Rows, times: Rows, rtol: float, method: str) -> Rows:
    """The weights at these times, as (time, unit, dim)."""
    solved = solve_ivp(
        lambda t, w: -gradient(w.reshape(first.shape), teacher).ravel(),
        (0.0, times[-1]),
        first.ravel(),
        method=method,
        t_eval=times,
        rtol=rtol,
        atol=rtol,
    )
    weights: Rows = np.moveaxis(solved.y, -1, 0).reshape(-1, *first.shape)
    return weights
