"""What a saved run holds, in words and numbers."""

import json
from typing import Any

import numpy as np
import xarray as xr

from tutelage._errors import StopReason

_OWN = ("settings", "paper_settings", "asked", "phases", "certificate")  # attributes that hold JSON text


def describe(dataset: xr.Dataset) -> dict[str, Any]:
    """Settings, provenance, stop reasons, phases and final values of a Dataset, ready for JSON."""
    attrs = dict(dataset.attrs)
    told = {name: _parsed(attrs.pop(name)) for name in _OWN if name in attrs}
    return {
        "dims": {str(name): int(size) for name, size in dataset.sizes.items()},
        "settings": told.get("settings", {}),
        "paper_settings": told.get("paper_settings", {}),
        "asked": told.get("asked", {}),
        "provenance": attrs,
        "stopped": _reasons(dataset),
        "phases": told.get("phases", []),
        "certificate": told.get("certificate"),
        "final": {str(name): _spread(dataset[name]) for name in dataset.data_vars if "time" in dataset[name].dims},
    }


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return value


def _reasons(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """How many seeds stopped for which reason."""
    if "stopped" not in dataset:
        return []
    names, counts = np.unique(dataset["stopped"].values.astype(str), return_counts=True)
    known = {reason.name.lower(): reason.sentence for reason in StopReason}
    return [
        {"reason": str(name), "seeds": int(count), "sentence": known.get(str(name), "")}
        for name, count in zip(names, counts, strict=True)
    ]


def _spread(variable: xr.DataArray) -> dict[str, Any]:
    """The last recorded value: least, middle and largest over everything but time."""
    values = variable.transpose(..., "time").values.reshape(-1, variable.sizes["time"]).astype(float)
    last = np.array([row[np.isfinite(row)][-1] if np.isfinite(row).any() else np.nan for row in values])
    last = last[np.isfinite(last)]
    about = {"long_name": variable.attrs.get("long_name", ""), "units": variable.attrs.get("units", "")}
    if not len(last):
        return about | {"min": None, "median": None, "max": None}
    return about | {"min": float(last.min()), "median": float(np.median(last)), "max": float(last.max())}
