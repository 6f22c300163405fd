"""Theorem 1.1 as it stands, by one recipe for all d: ReLU units, samples, and Algorithm 1 with both of its stages.

The theorem leaves open powers and constants. Here they are: `m = d^(3/2)` units, `N = d^3` samples, the caps
`1/lambda_0 = d^(1/2)` and `1/lambda_1 = d`, `8 d^2/log d` of time for stage 1 and `16 d^(1 + 10 Q)` for stage 2.

- A unit alone on its direction needs `|w|^2 = m/d = d^(1/2)`, so that the first cap acts and the second does not.
- A network of m units needs more than `m d = d^(5/2)` samples; with as many (`FEW`) it should not learn.
- Without sampling noise the plateau of a ReLU network ends at about `3.2 d^2/log d`, twice the time of |z| units (E4).
"""

import math
from typing import NamedTuple

import numpy as np
import xarray as xr

from tutelage.analysis import lines
from tutelage.papers.beyond_ntk.runs import traces
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Size

Q = 0.01
"""The theorem's exponent is -1 - Q, for some positive Q below this."""
WIDTH, ENOUGH, FEW = 1.5, 3.0, 2.5
"""Powers of d: of the width, and of the number of samples."""
CAPS = (0.5, 1.0)
"""Powers of d: of the caps `1/lambda_0` and `1/lambda_1`."""
FIRST, SECOND = 8.0, 16.0
STEP = 0.5
"""Below the limit of stability of ReLU units, `4/(2 b_0 + 2 b_2/d)`, which is 0.73 at d = 8 and grows with d."""
RECORDS = 120


class Plan(NamedTuple):
    """Dimensions in which the network is trained, on samples and with the population gradient, and how many seeds.

    `fine`: where it is trained with steps below `lambda_0^2` as well.
    """

    dims: tuple[int, ...]
    exact: tuple[int, ...]
    seeds: int
    fine: int


PLANS: dict[Size, Plan] = {
    "quick": Plan((8, 12), (8, 12), 3, 8),
    "full": Plan((8, 12, 16, 20, 24), (8, 12, 16, 24, 32), 5, 12),
}


def unit_of_time(dim: int) -> float:
    """`d^2/log d`, the order of the length of stage 1."""
    return dim**2 / math.log(dim)


def samples(dim: int, power: float = ENOUGH) -> int:
    """The number of samples of the recipe."""
    return round(dim**power)


def algorithm(dim: int, count: int, step: float = STEP) -> BeyondNtkSettings:
    """Algorithm 1 in this dimension on `count` samples; none is the population gradient, as in Theorem 3.1."""
    first = FIRST * unit_of_time(dim)
    return BeyondNtkSettings(
        dim=dim,
        width=round(dim**WIDTH),
        variant="relu",
        samples=count,
        step=step,
        truncate=tuple(dim**power for power in CAPS),
        stage=first,
        until=first + SECOND * dim ** (1 + 10 * Q),
    )


def trained(dim: int, count: int, seeds: int, step: float = STEP) -> xr.Dataset:
    """The runs, each from its own start and on its own samples."""
    return traces(algorithm(dim, count, step), seeds, RECORDS)


def ends(dims: tuple[int, ...], power: float | None, seeds: int) -> xr.DataArray:
    """The final L by dimension and seed, on `d^power` samples, or with the population gradient."""
    counts = [0 if power is None else samples(dim, power) for dim in dims]
    found = [trained(dim, count, seeds)["L"].isel(time=-1).values for dim, count in zip(dims, counts, strict=True)]
    return xr.DataArray(np.array(found), {"dim": list(dims), "seed": np.arange(seeds)}, ("dim", "seed"))


def power(found: xr.DataArray) -> lines.Estimate:
    """The power of d as which the final loss goes, with its interval over seeds; nan if a run has no loss."""
    logs = np.log(found.transpose("dim", "seed").values)
    return lines.exponent_over_seeds(found["dim"].values, lambda drawn: np.exp(logs[:, drawn].mean(1)), logs.shape[1])


def step_error(dim: int, seeds: int) -> float:
    """By what part of itself the final mean loss differs where steps are below `lambda_0^2`, as the theorem asks."""
    count, small = samples(dim), 0.9 * dim ** (-2 * CAPS[0])
    coarse, fine = (float(trained(dim, count, seeds, step)["L"].isel(time=-1).mean()) for step in (STEP, small))
    return fine / coarse - 1
