"""How many experts should see a sample? Levels of the threshold, and fixed numbers, on the same experts."""

import jax.numpy as jnp
import numpy as np
import xarray as xr

from tutelage.papers.cluster_moe.beyond.bench import Bench, Tried, benches
from tutelage.papers.cluster_moe.runs import configured, laboratory
from tutelage.problem import Threshold, TopK
from tutelage.study import Size

LEVELS: dict[Size, tuple[float, ...]] = {
    "quick": tuple(np.linspace(-3, 3, 7).tolist()),
    "full": tuple(np.linspace(-4, 4, 33).tolist()),
}


def adapted(size: Size) -> xr.Dataset:
    """Errors, active experts and idle samples of the default laboratory, by level and by k.

    A level is in units of `|theta_m|`, so that it is the same for all experts: `h_m >= level |theta_m|`.
    """
    settings, run = configured("lab_b", size), laboratory("lab_b", size)
    parts = [_one(bench, LEVELS[size]) for bench in benches(size)]
    data = xr.concat(parts, "seed").assign_coords(seed=run["seed"])
    data = data.assign(vanilla=run["error"].sel(network="vanilla", drop=True))
    return data.assign_attrs(settings.about())


def _one(bench: Bench, levels: tuple[float, ...]) -> xr.Dataset:
    fixed = np.arange(1, bench.shape[0] + 1)
    by_level = [bench.tried(Threshold(jnp.asarray(level * bench.scale))) for level in levels]
    by_number = [bench.tried(TopK(int(k))) for k in fixed]
    return xr.Dataset(
        _columns("level", by_level) | _columns("k", by_number), coords={"level": list(levels), "k": fixed}
    )


def _columns(axis: str, tried: list[Tried]) -> dict[str, tuple[str, list[float]]]:
    return {
        f"{axis}_error": (axis, [float(each.errors[0]) for each in tried]),
        f"{axis}_active": (axis, [each.active for each in tried]),
        f"{axis}_idle": (axis, [each.idle for each in tried]),
    }
