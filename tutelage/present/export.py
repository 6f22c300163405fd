"""Results as one tidy table, for other tools: CSV, Parquet, or the NetCDF file itself."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr

from tutelage._errors import BadInput
from tutelage._files import deliver
from tutelage.trajectory.dataset import packed

Format = Literal["csv", "parquet", "netcdf"]
SUFFIX: dict[Format, str] = {"csv": ".csv", "parquet": ".parquet", "netcdf": ".nc"}


def export(dataset: xr.Dataset, path: Path, to: Format) -> None:
    """Write a Dataset; the file is there whole, or not at all. All digits are kept."""
    if to == "parquet":
        _need_pyarrow()
    deliver(path, lambda part: _write(dataset, part, to))


def _write(dataset: xr.Dataset, path: Path, to: Format) -> None:
    if to == "netcdf":
        path.write_bytes(packed(dataset))
    elif to == "csv":
        table(dataset).to_csv(path, index=False)
    else:
        table(dataset).to_parquet(path, index=False)


def table(dataset: xr.Dataset) -> pd.DataFrame:
    """One row a (seed, time) for a run, or one a (settings, seed) for a sweep.

    Further axes are columns named like `overlap[student=0,teacher=1]`; what does not change along an axis is repeated.

    ```python
    >>> import xarray as xr
    >>> from tutelage.present.export import table
    >>> norm = (("seed", "time", "student"), [[[1.0, 2.0], [3.0, 4.0]]])
    >>> data = xr.Dataset({"norm": norm}, coords={"seed": [7], "time": [0.0, 0.5]})
    >>> print(table(data).to_string(index=False))
     seed  time  norm[student=0]  norm[student=1]
        7   0.0              1.0              2.0
        7   0.5              3.0              4.0

    ```
    """
    rows = _row_dims(dataset)
    columns: dict[str, np.ndarray] = {}
    for dim in rows:
        columns[dim] = _spread(_labels(dataset, dim), dataset, rows)
    for name in [*dataset.coords, *dataset.data_vars]:
        if name not in dataset.dims:
            columns.update(_columns(dataset[name], dataset, rows))
    return pd.DataFrame(columns)


def _row_dims(dataset: xr.Dataset) -> tuple[str, ...]:
    dims = [str(dim) for dim in dataset.sizes]
    if "time" in dims:
        return tuple(dim for dim in ("seed", "time") if dim in dims)
    return (*(dim for dim in dims if dim != "seed"), *(dim for dim in dims if dim == "seed"))


def _labels(dataset: xr.Dataset, dim: str) -> xr.DataArray:
    return dataset[dim] if dim in dataset.coords else xr.DataArray(np.arange(dataset.sizes[dim]), dims=dim)


def _spread(variable: xr.DataArray, dataset: xr.Dataset, rows: tuple[str, ...]) -> np.ndarray:
    """Values of a variable for each row of the table, repeated along the axes that it does not have."""
    missing = {dim: dataset.sizes[dim] for dim in rows if dim not in variable.dims}
    return variable.expand_dims(missing).transpose(*rows).values.reshape(-1)


def _columns(variable: xr.DataArray, dataset: xr.Dataset, rows: tuple[str, ...]) -> Iterator[tuple[str, np.ndarray]]:
    further = [str(dim) for dim in variable.dims if dim not in rows]
    labels = [_labels(dataset, dim).values for dim in further]
    for place in itertools.product(*(range(len(each)) for each in labels)):
        at = dict(zip(further, place, strict=True))
        named = ",".join(f"{dim}={each[i]}" for dim, each, i in zip(further, labels, place, strict=True))
        cut = variable.isel(at).reset_coords(drop=True)
        yield f"{variable.name}[{named}]" if named else str(variable.name), _spread(cut, dataset, rows)


def _need_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise BadInput(
            'Parquet needs pyarrow, which is not installed; try `pip install "tutelage[parquet]"` or --to csv.'
        ) from None
