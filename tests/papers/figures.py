"""What every figure must have."""

import numpy as np
import xarray as xr

from tutelage.trajectory.dataset import load, load_tree, save


def shown(figure, dataset):
    """The sheet of a figure, whose series all have something to show."""
    sheet = figure.sheet(dataset)
    assert sheet.caption and "nan" not in sheet.caption
    for panel in sheet.panels:
        assert panel.series and all(np.isfinite(series.y).any() for series in panel.series), panel.title
    return sheet


def again(data, folder):
    """As the report reads it: from a file."""
    path = folder / "figure.nc"
    save(data, path)
    return load_tree(path) if isinstance(data, xr.DataTree) else load(path)
