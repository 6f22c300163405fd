"""What every figure must have."""

import numpy as np


def shown(figure, dataset):
    """The sheet of a figure, whose series all have something to show."""
    sheet = figure.sheet(dataset)
    assert sheet.caption and "nan" not in sheet.caption
    for panel in sheet.panels:
        assert panel.series and all(np.isfinite(series.y).any() for series in panel.series), panel.title
    return sheet
