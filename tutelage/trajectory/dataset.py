"""The one door to xarray: arrays of a run in, a Dataset with the written schema (docs/schema.md) out."""

import contextlib
import datetime
import json
import platform
import sys
from pathlib import Path
from typing import Any

import h5py
import jax
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage._checks import path as path_at
from tutelage._errors import BadInput
from tutelage._files import deliver, intact, sealed
from tutelage._identity import digest
from tutelage._version import __version__
from tutelage.trajectory.observables import Observable

SCHEMA = 2
"""Datasets of version 1 do not say all that was asked."""
WHOLE = "whole"
"""The group of a file that has the Dataset of a run of several stages; otherwise it is at the root."""


def provenance(settings: dict[str, Any], asked: dict[str, Any] | None) -> dict[str, Any]:
    """Attributes that say where a Dataset came from: its settings in short, and all that was `asked`.

    None if a part of that cannot be described, such as a function written in C.
    """
    told = {} if asked is None else {"settings_hash": digest(asked), "asked": json.dumps(asked, sort_keys=True)}
    return {
        "schema": SCHEMA,
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "tutelage_version": __version__,
        "jax_version": jax.__version__,
        "python_version": platform.python_version(),
        "dtype": "float64" if jax.dtypes.canonicalize_dtype(float) == np.float64 else "float32",
        "device": jax.default_backend(),
        "settings": json.dumps(settings, sort_keys=True, default=str),
        **told,
    }


def to_dataset(
    rows: dict[str, NDArray[Any]],
    observables: tuple[Observable, ...],
    *,
    seeds: NDArray[np.integer],
    clock: NDArray[np.floating],
    time: NDArray[np.floating],
    extra: dict[str, xr.Variable],
    settings: dict[str, Any],
    asked: dict[str, Any] | None,
) -> xr.Dataset:
    """Arrays (seed, time, ...) to a Dataset; what a seed did not reach is nan, what no seed reached is left out."""
    reached = rows["_reached"]
    last = int(np.flatnonzero(reached.any(0)).max(initial=0)) + 1
    about = {"long_name": "time", "units": "step size x updates"}
    coords: dict[str, Any] = {
        "seed": ("seed", seeds), "time": ("time", time[:last], about), "step": ("time", clock[:last])
    }  # fmt: skip
    measured: dict[str, xr.Variable] = {}
    for observable in observables:
        values = _masked(rows[observable.name][:, :last], reached[:, :last])
        told = {"long_name": observable.long_name or observable.name, "units": observable.units}
        measured[observable.name] = xr.Variable(("seed", "time", *_dims(observable, values.ndim - 2)), values, told)
        coords |= {name: (name, list(values)) for name, values in observable.coords}
    dataset = xr.Dataset(measured | extra, coords)  # all at once: xarray compares everything with every new one
    dataset.attrs = provenance(settings, asked)
    return dataset


def _dims(observable: Observable, count: int) -> tuple[str, ...]:
    if observable.dims:
        if len(observable.dims) != count:
            raise BadInput(
                f"Observable {observable.name!r} has {count} axes but names {observable.dims}; name one dim per axis."
            )
        return observable.dims
    return tuple(f"{observable.name}_{axis}" for axis in range(count))


def _masked(values: NDArray[Any], reached: NDArray[np.bool_]) -> NDArray[Any]:
    keep = reached.reshape(reached.shape + (1,) * (values.ndim - 2))
    return np.where(keep, values, np.nan)


def packed(data: xr.Dataset | xr.DataTree) -> bytes:
    """The content of its NetCDF file, made in memory: on a full disk HDF5 itself would crash.

    It is sealed, so that a bit that has flipped on the disk is noticed when it is read. HDF5's own checksums are of
    numbers only: a damaged index of them reads as nan.
    """
    with _no_cluster():
        if isinstance(data, xr.Dataset):
            return sealed(bytes(data.to_netcdf(engine="h5netcdf")))
        return sealed(bytes(data.to_netcdf(engine="h5netcdf", write_inherited_coords=False)))


def _no_cluster() -> contextlib.AbstractContextManager[Any]:
    """With a Dask client in this process xarray would ask its scheduler for leave to write, and be refused."""
    dask = sys.modules.get("dask")  # if nobody has imported it, there is no client
    return dask.config.set(scheduler="threads") if dask else contextlib.nullcontext()


def save(data: xr.Dataset | xr.DataTree, path: str | Path) -> None:
    """Write one NetCDF file, whole or not at all; the groups of a DataTree are groups of it."""
    place, content = path_at("The file to write", path), packed(data)
    deliver(place, lambda part: part.write_bytes(content))


def load(path: str | Path) -> xr.Dataset:
    """Read what `save` wrote; the round trip is the identity.

    ```python
    >>> import tempfile, pathlib, xarray as xr
    >>> from tutelage.trajectory.dataset import load, save
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.nc"
    >>> save(xr.Dataset({"loss": ("time", [0.5, 0.25])}), path)
    >>> load(path).loss.values
    array([0.5 , 0.25])

    ```
    """
    loaded = load_tree(path)
    found = whole(loaded)
    if loaded.children and not found.variables:
        groups = ", ".join(loaded.children)
        raise BadInput(f"{path} has the groups {groups}; read it with `tt.load(path, tree=True)`.")
    return found


def whole(tree: xr.DataTree) -> xr.Dataset:
    """The Dataset of a run, from all groups of its file."""
    return (tree.children[WHOLE] if WHOLE in tree.children else tree).to_dataset(inherit=False)


def load_tree(path: str | Path, *, sealed: bool = False) -> xr.DataTree:
    """All groups of a file. A seal that does not agree is refused, and with `sealed` one that is missing."""
    if not path_at("The file to read", path).is_file():
        raise BadInput(f"{path} is not a file; pass the path of a NetCDF file written by tutelage.")
    try:
        whole = intact(path)
        if whole is False or (sealed and whole is None):
            raise ValueError("it has been changed or damaged since it was written: its checksum does not agree")
        with h5py.File(path) as file:  # h5netcdf would leave a half-made object behind, whose end prints a traceback
            dict(file.attrs)
            file.visititems(_read_attributes)
        return xr.load_datatree(path, engine="h5netcdf")
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise BadInput(f"{path} could not be read as NetCDF ({error}); pass a file written by tutelage.") from None


def _read_attributes(name: str, part: h5py.Group | h5py.Dataset) -> None:
    """Raises what reading them raises."""
    dict(part.attrs)
