"""Stages that record the same, as one trajectory."""

from collections.abc import Sequence
from typing import Any

import xarray as xr

from tutelage.trajectory.dataset import provenance


def joined(stages: dict[str, xr.Dataset], asked: dict[str, Any] | None) -> xr.Dataset:
    """The Datasets of stages one after the other, with the name of the `stage` beside each time.

    Time and updates go on where the stage before ended, and what a stage records at its beginning is left out: it is
    the end of the one before. Stages that record different things, or of networks of different widths, cannot be
    joined; then the last one is returned.
    """
    parts = list(stages.values())
    if not _alike(parts):
        return parts[-1]
    moved, time, step, before = [], 0.0, 0.0, 0
    for number, (name, part) in enumerate(stages.items()):
        whole = part.isel(time=slice(1 if number else 0, None))
        shifted = whole.assign_coords(
            time=("time", time + whole["time"].values, part["time"].attrs),
            step=("time", step + whole["step"].values),
            stage=("time", [name] * whole.sizes["time"]),
        )
        moved.append(shifted)
        if number + 1 < len(parts):
            time, step = time + float(part["time"].values[-1]), step + float(part["step"].values[-1])
            before += whole.sizes["time"]
    timed = [name for name in parts[-1].data_vars if "time" in parts[-1][name].dims]
    records = xr.concat([part[timed] for part in moved], "time", combine_attrs="drop_conflicts")
    last = parts[-1].drop_vars(timed).drop_dims("time")
    ends = last.assign(stop_time=last["stop_time"] + time, recorded=last["recorded"] + before - (len(parts) > 1))
    whole = records.assign(ends.data_vars)
    for variable in timed:
        whole[variable].attrs = parts[-1][variable].attrs
    return whole.assign_attrs(provenance({"dynamics": "stages", "stages": list(stages)}, asked))


def _alike(parts: Sequence[xr.Dataset]) -> bool:
    """Whether all have the same variables, with the same sizes of all axes but time."""

    def shape(part: xr.Dataset) -> dict[str, tuple[tuple[str, int], ...]]:
        sizes = {str(dim): size for dim, size in part.sizes.items() if dim != "time"}
        return {str(name): tuple((str(d), sizes.get(str(d), 0)) for d in each.dims) for name, each in part.items()}

    return "event" not in parts[0].coords and all(shape(part) == shape(parts[0]) for part in parts)
