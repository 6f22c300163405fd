"""Exploration with a record of all weights, so that Phase II may be tried at any time of it."""

from collections.abc import Callable
from functools import cache

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage.dynamics import Learner
from tutelage.oracle import passing
from tutelage.papers.cluster_moe import stages
from tutelage.papers.cluster_moe.result import sharply
from tutelage.papers.cluster_moe.runs import SEEDS, configured
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Numbers, Units
from tutelage.study import Size

BATCHES: dict[Size, tuple[int, ...]] = {"quick": (100_000,), "full": (20_000, 100_000, 400_000)}
"""Samples of the router's one step, besides the step in expectation."""
RECORDS: dict[Size, int] = {"quick": 12, "full": 32}
FIRST = 1 / 60
"""The first record, as a part of the samples."""


@cache
def scratch(size: Size) -> xr.Dataset:
    """Phase I of the default laboratory, and at every record Phase II, were it done then (`tried`)."""
    settings = configured("lab_b", size, average_ties=False)
    learners = [stages.explorers(settings, seed) for seed in range(SEEDS[size])]
    times, first = followed(settings, learners, settings.explore_samples, RECORDS[size])
    data = by_record(lambda seed, units, at: tried(settings, seed, units, at, BATCHES[size]), learners, first)
    return data.assign_coords(time=times).assign_attrs(settings.about())


def by_record(look: Callable[[int, Units, Numbers], xr.Dataset], learners: list[Learner], first: Numbers) -> xr.Dataset:
    """What `look(seed, units, first)` sees at every record (seed, time) of what learners were `followed` to."""
    rows = [
        xr.concat([look(seed, learner.units, at) for at in row], "time")
        for seed, (learner, row) in enumerate(zip(learners, first, strict=True))
    ]
    return xr.concat(rows, "seed")


def followed(
    settings: ClusterMoeSettings, learners: list[Learner], samples: int, records: int, phase: int = stages.EXPLORE
) -> tuple[NDArray, Numbers]:
    """Learners with the step of Phase I: times of records, and weights (seed, time, expert, unit, dim)."""
    stops, seeds = np.geomspace(FIRST * samples, samples, records), list(range(len(learners)))
    data = stages.trained(settings, seeds, learners, settings.explore_step, samples, phase, stops).dataset
    return data["time"].values.astype(int), data["weights"].values


def tried(
    settings: ClusterMoeSettings, seed: int, units: Units, first: Numbers, batches: tuple[int, ...] = ()
) -> xr.Dataset:
    """Phase II with these experts, by the samples of the router's one step; 0 samples stand for the expectation.

    `seen` (batch, cluster, expert) are routing probabilities, `sharp` the part of the experts that are sharp, `aim` how
    well they are `aimed`, mean over experts. `size` is the length of the exact router, `miss` how far the others are
    from it, both as root mean squares over experts.
    """
    exact = stages.expected(settings, units, first)
    steps = [
        stages.routed(settings.model_copy(update={"router_samples": count}), seed, units, first).theta
        for count in batches
    ]
    seen = np.stack([passing(theta, settings.problem().inputs) for theta in (exact, *steps)])
    aim = aimed(seen, known(settings, first))
    return xr.Dataset(
        {
            "seen": (("batch", "cluster", "expert"), seen),
            "sharp": ("batch", sharply(seen).mean(axis=-1)),
            "aim": ("batch", aim.mean(axis=-1)),
            "size": np.sqrt(np.mean(np.sum(exact**2, axis=1))),
            "miss": ("batch", [np.sqrt(np.mean(np.sum((each - exact) ** 2, axis=1))) for each in (exact, *steps)]),
        },
        {"batch": [0, *batches]},
    )


def known(settings: ClusterMoeSettings, first: Numbers) -> Numbers:
    """How much of each local task experts know: `1/J sum_j kappa_c^k`, (cluster, expert)."""
    directions = np.asarray(settings.problem().teacher.directions)[:-1]
    overlaps = first[..., : directions.shape[1]] @ directions.T
    return np.mean(np.abs(overlaps) ** settings.exponent, axis=-2).T


def aimed(seen: Numbers, knows: Numbers) -> Numbers:
    """How well experts are routed to the cluster they know more of than others do (Definition 4.7), (..., expert).

    The probability of seeing that cluster minus the mean one of the others: 1 at best, 0 by chance. More than others:
    the router is `V_m` minus its mean over experts, so that what all know counts for nothing.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.cluster_moe.beyond.exploring import aimed
    >>> knows = np.array([[0.9, 0.8, 0.0], [0.0, 0.7, 0.1]])
    >>> aimed(np.array([[1.0, 0.0, 0.75], [0.0, 1.0, 0.25]]), knows).tolist()
    [1.0, 1.0, -0.5]

    ```
    """
    better = np.argmax(knows - knows.mean(axis=-1, keepdims=True), axis=-2)
    own = np.take_along_axis(seen, np.broadcast_to(better, (*seen.shape[:-2], 1, seen.shape[-1])), axis=-2)[..., 0, :]
    return own - (seen.sum(axis=-2) - own) / (seen.shape[-2] - 1)
