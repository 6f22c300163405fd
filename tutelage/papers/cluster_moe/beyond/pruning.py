"""Which experts can go? Orders of removal, and the error of every set of experts that may be kept."""

from itertools import combinations

import numpy as np
import xarray as xr

from tutelage.papers.cluster_moe.beyond.bench import Tried, benches
from tutelage.papers.cluster_moe.runs import configured, laboratory
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Numbers, Threshold
from tutelage.study import Size

Kept = tuple[int, ...]

NEAR = 1.1
"""A mixture is as good as the whole one if its error is at most this many times that one's."""


def alike(knows: Numbers, sees: Numbers) -> Numbers:
    """How alike experts are, (expert, expert): the cosine of what they see times that of what they know.

    `knows` (expert, task) is the largest overlap of a neuron with each task, `sees` (expert, cluster) the probability
    that an expert sees a sample of each cluster.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.cluster_moe.beyond.pruning import alike
    >>> alike(np.ones((2, 3)), np.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]

    ```
    """
    return np.round(_cosines(knows) * _cosines(sees), 12)


def by_likeness(likeness: Numbers) -> list[int]:
    """All experts but the last, in the order in which they go: of the two most alike the one more like all others.

    Ties go by number.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.cluster_moe.beyond.pruning import by_likeness
    >>> by_likeness(np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.2], [0.1, 0.2, 1.0]]))
    [1, 0]

    ```
    """
    kept, gone = list(range(len(likeness))), []
    while len(kept) > 1:
        left = likeness[np.ix_(kept, kept)] - 2 * np.eye(len(kept))  # nobody is compared with itself
        pair = np.unravel_index(np.argmax(left), left.shape)
        worse = max(pair, key=lambda place: float(left[place].sum()))
        gone.append(kept.pop(int(worse)))
    return gone


def by_gain(gains: dict[Kept, float]) -> list[int]:
    """The same, but each time the expert goes whose absence costs the fit least."""
    kept, gone = max(gains, key=len), []
    while len(kept) > 1:
        kept, before = max((each for each in combinations(kept, len(kept) - 1)), key=lambda each: gains[each]), kept
        gone += [m for m in before if m not in kept]
    return gone


def path(order: list[int], errors: dict[Kept, float]) -> list[float]:
    """Errors with 1, 2, ... experts kept, when they go in this order."""
    kept = max(errors, key=len)
    result = [errors[kept]]
    for m in order:
        kept = tuple(each for each in kept if each != m)
        result.append(errors[kept])
    return result[::-1]


def enough(errors: Numbers) -> int:
    """The least number of experts from which on errors are near that of all: `errors` with 1, 2, ... of them."""
    far = np.flatnonzero(np.asarray(errors) > NEAR * errors[-1])
    return int(far[-1]) + 2 if len(far) else 1


def pruned(size: Size) -> xr.Dataset:
    """Errors (seed, kept) of the default laboratory, by order, and over all sets of as many experts."""
    settings, run = configured("lab_b", size), laboratory("lab_b", size)
    experts = range(settings.experts)
    sets = [each for count in experts for each in combinations(experts, count + 1)]
    parts = [
        _one(settings, bench.tried(Threshold(settings.threshold), sets), sets, run.sel(seed=seed))
        for seed, bench in zip(run["seed"].values, benches(size), strict=True)
    ]
    data = xr.concat(parts, "seed").assign_coords(seed=run["seed"], kept=np.arange(1, settings.experts + 1))
    vanilla = run["error"].sel(network="vanilla", drop=True)
    return data.assign(vanilla=vanilla).assign_attrs(settings.about())


def _one(settings: ClusterMoeSettings, tried: Tried, sets: list[Kept], run: xr.Dataset) -> xr.Dataset:
    errors = dict(zip(sets, map(float, tried.errors), strict=True))
    gains = dict(zip(sets, map(float, tried.gains), strict=True))
    tasks = list(settings.problem().tasks)
    knows = abs(run["overlap"].isel(expert_time=-1).sel(row=tasks)).max("unit").values
    likeness = alike(knows, run["routed"].transpose("expert", "cluster").values)
    by_count = [[errors[each] for each in sets if len(each) == count] for count in range(1, settings.experts + 1)]
    return xr.Dataset(
        {
            "likeness": (("expert", "other"), likeness),
            "served": ("expert", run["served"].values),
            "redundancy": ("kept", path(by_likeness(likeness), errors)),
            "fit": ("kept", path(by_gain(gains), errors)),
            "random": ("kept", [np.mean(each) for each in by_count]),
            "best": ("kept", [np.min(each) for each in by_count]),
            "worst": ("kept", [np.max(each) for each in by_count]),
        }
    )


def _cosines(rows: Numbers) -> Numbers:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit @ unit.T
