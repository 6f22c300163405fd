"""Implicit bias: how a group of students divides its teacher's norm, and what the start has to do with it."""

import numpy as np
import xarray as xr

from tutelage.analysis import BAND, Mark, Panel, Sheet, band
from tutelage.papers.relu_teachers.figures.beyond.common import histogram, last, trained
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.study import Figure, Size

INITS = {"weak": "weak recovery", "gaussian": "Gaussian start"}
SCALES: dict[Size, tuple[float, ...]] = {
    "quick": (1e-6, 1e-3, 3e-2, 0.2),
    "full": (1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.2),
}


def compute(settings: ReluTeachersSettings, size: Size, *, scales: tuple[float, ...] | None = None) -> xr.Dataset:
    """Long runs from both kinds of start, at each scale sigma (a start has about the norm sigma sqrt d)."""
    chosen = scales or SCALES[size]
    rows = [[_end(trained(size, 3000, dim=settings.dim, init=i, scale=s).dataset) for s in chosen] for i in INITS]
    joined = xr.concat([xr.concat(row, "scale") for row in rows], "init")
    return joined.assign_coords(scale=list(chosen), init=list(INITS)).assign_attrs(dim=settings.dim)


def _end(data: xr.Dataset) -> xr.Dataset:
    """By teacher: m_l sum |w_i|^2 / |v|^2 over its students, 1 if they are equal; by student: |w_i| m_l/|v|."""
    norms, nearest = last(data, "first_norm"), last(data, "overlap_cos").argmax("teacher")
    teachers = xr.DataArray(np.arange(data.sizes["teacher"]), dims="teacher")
    belongs = nearest == teachers
    counts = belongs.sum("student")
    excess = counts * (norms**2 * belongs).sum("student")
    return xr.Dataset(
        {
            "excess": excess.where(counts > 0),
            "counts": counts,
            "share": norms * counts.isel(teacher=nearest),
            "loss": last(data, "loss"),
        }
    )


def sheet(dataset: xr.Dataset) -> Sheet:
    swept, shares = [], []
    for colour, (init, name) in enumerate(INITS.items()):
        excess = dataset["excess"].sel(init=init)
        each = excess.stack(each=["seed", "teacher"]).transpose("each", "scale").values
        swept.append(band(dataset["scale"].values, each, name, colour=colour))
        smallest = dataset["share"].sel(init=init).isel(scale=0).values.ravel()
        shares.append(histogram(smallest, np.arange(-0.025, 2.5, 0.05), name, colour=colour))
    reach = 1 / np.sqrt(dataset.attrs["dim"]) / dataset.sizes["student"] * dataset.sizes["teacher"]
    panels = (
        Panel(
            "squared norms of a group against equal ones",
            "scale of the start, sigma / |v|",
            "m_l sum |w_i|^2 / |v|^2",
            tuple(swept),
            marks=(Mark("equal norms", level=1.0), Mark("start as long as the end", at=float(reach))),
            xscale="log",
            note=f"Median over groups and seeds; band: {BAND}.",
        ),
        Panel(
            f"norms at the smallest scale, sigma = {float(dataset['scale'][0]):g}",
            "|w_i| m_l / |v|",
            "share of the students",
            tuple(shares),
            marks=(Mark("equal norms", at=1.0),),
        ),
    )
    return Sheet("Beyond the paper: is there a bias to balanced norms?", panels, caption=_caption(dataset))


def _caption(dataset: xr.Dataset) -> str:
    texts = []
    for init, name in INITS.items():
        data = dataset.sel(init=init)
        small, large = (float(data["excess"].isel(scale=i).median()) for i in (0, -1))
        extremes = data["share"].isel(scale=0)
        texts.append(
            f"{name}: median {small:.4f} at sigma = {float(dataset['scale'][0]):g} and {large:.4f} at "
            f"{float(dataset['scale'][-1]):g}, |w_i| m_l/|v| from {float(extremes.min()):.3f} to "
            f"{float(extremes.max()):.3f} at the smallest"
        )
    return (
        f"{dataset.sizes['seed']} seeds. sum |w_i|^2 within a group is |v|^2/m_l for equal norms, and more otherwise. "
        f"{'; '.join(texts)}. Largest final loss {float(dataset['loss'].max()):.1e}."
    )


FIGURE = Figure("beyond_balance", "How a group divides its teacher's norm", compute, sheet, ours=True)
