"""More than two clusters, with orthogonal means: threshold 0 against the highest scores.

The router of an expert is what it knows beyond the mean expert. Of antipodal means exactly one has a positive score;
of orthogonal ones an expert may be positive for several or for none. The highest score always picks one expert, and the
four highest may well be those of one cluster.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage import run
from tutelage.dynamics import Learner, NeuronFlow, neurons_at
from tutelage.papers.cluster_moe import stages
from tutelage.papers.cluster_moe.beyond.bench import Bench
from tutelage.papers.cluster_moe.expected import PATIENCE, drawn, ended, routed
from tutelage.papers.cluster_moe.result import sharply
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Clusters, Numbers, Router, Threshold, TopK
from tutelage.problem import stream as weights_of
from tutelage.study import Size

EACH = 4
"""Experts for each cluster; in expectation for each of the largest number of them."""
ROUTERS: dict[str, Router] = {"threshold 0": Threshold(), "top 1": TopK(1), f"top {EACH}": TopK(EACH)}
COUNTS = (2, 3, 4, 5, 6)
DIM = 10_000
SEEDS: dict[Size, int] = {"quick": 3, "full": 32}
NONE = 1e-15
"""The weight of a cluster that is not there."""
SAMPLES = 4_000
"""Scores drawn of each cluster: parts are known to 0.01."""
_EXPLORERS, _SCORES = 41, 42


PIPE = {
    "clusters": 3,
    "dim": 20,
    "seeds": 3,
    "explore_samples": 6_000_000,
    "samples": 1_500_000,
    "late_samples": 500_000,
    "width": 24,
    "ridge_samples": 20_000,
    "test_samples": 100_000,
}
"""Sizes of the phases with SGD."""


def of_clusters(count: int, dim: int, among: int | None = None, **changes: Any) -> ClusterMoeSettings:
    """The default laboratory with orthogonal means; local tasks and interference have signs in turn, adding up to 0.

    `among`: so many clusters are there in all, those beyond `count` with next to no samples, so that settings with
    different numbers of clusters share their shapes, and a compilation.
    """
    most = among or count
    signs = [(-1.0) ** c for c in range(most)]
    shares = [sign if c < count - count % 2 else 0.0 for c, sign in enumerate(signs)]
    values: dict[str, Any] = {
        "dim": dim,
        "means": "orthogonal",
        "local": tuple({4: sign} for sign in signs),
        "interference": tuple(shares),
        "cluster_weights": (1.0,) * count + (NONE,) * (most - count),
        "experts": EACH * most,
        "vanilla_width": 0,
    }
    return ClusterMoeSettings(**values | {"average_ties": False} | changes)


def dealt(theta: Numbers, inputs: Clusters, router: Router, draw: np.random.Generator) -> Numbers:
    """Which experts see samples of each cluster, (cluster, sample, expert)."""
    rows = np.asarray(theta, float)
    means = np.asarray(inputs.means)
    centres = inputs.radius * means @ rows[:, : means.shape[1]].T
    root = np.linalg.qr(rows.T, mode="r")  # its columns have the rows' inner products
    scores = centres[:, None] + draw.standard_normal((SAMPLES, len(root))) @ root
    uniforms = draw.uniform(size=scores.shape[1:])
    return np.stack([np.asarray(router.chosen(jnp.asarray(each), jnp.asarray(uniforms))) for each in scores])


def judged(chosen: Numbers) -> dict[str, float]:
    """`sharp` experts, as a part of all; `pure`: the part of what experts see that is of the cluster each sees most;
    `idle` samples; `active` experts per sample.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.cluster_moe.beyond.many_clusters import judged
    >>> both = np.array([[[1, 0]], [[1, 1]]])  # the first expert sees both clusters, the second one of them
    >>> {name: float(value) for name, value in judged(both).items()}
    {'sharp': 0.5, 'pure': 0.6666666666666666, 'idle': 0.0, 'active': 1.5}

    ```
    """
    seen = np.mean(chosen, axis=1)
    return {
        "sharp": float(sharply(seen).mean()),
        "pure": float(seen.max(axis=0).sum() / seen.sum()),
        "idle": float(1 - np.any(chosen, axis=-1).mean()),
        "active": float(chosen.sum(axis=-1).mean()),
    }


def flown(size: Size) -> xr.Dataset:
    """Exploration and router in expectation, at a large dimension, by the number of clusters and router."""
    parts = [xr.concat([_flown(count, max(COUNTS), seed) for seed in range(SEEDS[size])], "seed") for count in COUNTS]
    data = xr.concat(parts, "clusters").assign_coords(clusters=list(COUNTS))
    return data.assign_attrs(dim=DIM, experts=EACH * max(COUNTS))


def _flown(count: int, among: int, seed: int) -> xr.Dataset:
    settings = of_clusters(count, DIM, among)
    problem = settings.problem()
    until = PATIENCE * float(settings.dim) ** ((settings.exponent - 2) / 2)
    units, rows = drawn(problem, settings.law(explore=True), weights_of(seed, _EXPLORERS))
    start = rows[..., : problem.frame.shape[1]] @ problem.frame.T
    explored = run(problem, NeuronFlow(until), start=neurons_at(problem, units, start))
    final = ended(explored).last("overlap").values[0]
    small, theta = routed(settings, units, rows, final)
    shared = np.mean(np.abs(final[..., len(settings.local)]) > 0.5)
    return _judged_by(theta, small.inputs, seed, count).assign(shared=shared)


def _judged_by(theta: Numbers, inputs: Clusters, seed: int, count: int) -> xr.Dataset:
    found = [judged(dealt(theta, inputs, router, weights_of(seed, _SCORES))[:count]) for router in ROUTERS.values()]
    return xr.Dataset(
        {name: ("router", [each[name] for each in found]) for name in found[0]}, {"router": list(ROUTERS)}
    )


def learned() -> xr.Dataset:
    """All phases with SGD, Phases III and IV with each router: errors beside the parts of `judged`."""
    return xr.concat([_learned(seed) for seed in range(PIPE["seeds"])], "seed").assign_attrs(PIPE)


def _learned(seed: int) -> xr.Dataset:
    sizes = {name: value for name, value in PIPE.items() if name not in ("clusters", "dim", "seeds")}
    settings = of_clusters(PIPE["clusters"], PIPE["dim"], **sizes)
    explorer = stages.explorers(settings, seed)
    explorer = _after(explorer, settings, seed, settings.explore_step, settings.explore_samples, stages.EXPLORE)
    theta = stages.expected(settings, explorer.units, explorer.first)
    data = _judged_by(theta, settings.problem().inputs, seed, settings.clusters)
    errors, known = [], []
    for router in ROUTERS.values():
        hired = eqx.tree_at(lambda each: each.router, stages.hired(settings, seed, theta), router)
        early = _after(hired, settings, seed, settings.step, settings.samples, stages.EXPERTS)
        late = _after(early, settings, seed, settings.late_step, settings.late_samples, stages.LATE)
        bench = Bench(settings, seed, late)
        errors.append(float(bench.tried(router).errors[0]))
        known.append(float(np.mean(_both(settings, np.asarray(late.first)))))
    zero = float(np.abs(bench.test.clean).mean())
    return data.assign(error=("router", errors), known=("router", known), zero=zero)


def _after(learner: Learner, settings: ClusterMoeSettings, seed: int, step: float, samples: int, phase: int) -> Learner:
    moved = stages.trained(settings, [seed], [learner], step, samples, phase)
    return eqx.tree_at(lambda each: each.first, learner, moved.final.first[0])


def _both(settings: ClusterMoeSettings, first: Numbers) -> NDArray[np.bool_]:
    """Experts that know a local task and the global one: a neuron with overlap 0.9 on each."""
    directions = np.asarray(settings.problem().teacher.directions)
    best = np.abs(first[..., : directions.shape[1]] @ directions.T).max(axis=1) > 0.9
    return best[:, :-1].any(axis=1) & best[:, -1]
