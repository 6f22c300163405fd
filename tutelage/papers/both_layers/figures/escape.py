"""Figure 1(b) continued on a logarithmic time axis: the saddle is left, by the law 1/eps = 1/eps0 - K t."""

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Sheet, line
from tutelage.dynamics import Record
from tutelage.papers.both_layers.recipe import run
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.papers.both_layers.slices import escape_rate
from tutelage.study import Figure, Size

PERTURBATIONS = (0.3, 0.1, 0.03)


def compute(settings: BothLayersSettings, size: Size) -> xr.DataTree:
    """Starts around 1.5 a with three perturbations, long enough for each to escape."""
    parts = {}
    for spread in PERTURBATIONS:
        chosen = BothLayersSettings(dim=settings.dim, trains="first", scale=spread, offset=1.5, steps=60_000)
        result = run(
            chosen, seeds=[0], record=Record(600, weights=True, observables=("loss", "gradient_norm", "second"))
        )
        parts[f"s{int(1000 * spread)}"] = result.dataset.isel(seed=0, drop=True)
    return xr.DataTree.from_dict(parts)


def shift(data: xr.Dataset) -> np.ndarray:
    """eps: the length of the common orthogonal shift of the two units, their mean component across a."""
    return np.linalg.norm(data["weights_first"].values[:, :, 1:].mean(1), axis=-1)


def sheet(tree: xr.DataTree) -> Sheet:
    losses, shifts, marks = [], [], []
    for index, spread in enumerate(PERTURBATIONS):
        data = tree[f"s{int(1000 * spread)}"].to_dataset()
        time, eps = data["time"].values, shift(data)
        stalled = int(np.argmin(np.abs(time - 20.0)))
        blow_up = time[stalled] + 1 / (escape_rate(1.0) * eps[stalled])
        losses.append(line(time[1:], data["loss"].values[1:], f"perturbation {spread:g}", colour=index))
        marks.append(Mark(f"predicted, {spread:g}", at=float(blow_up)))
        growing = slice(stalled, stalled + int(np.argmax(eps[stalled:] > 0.3)))
        shifts.append(line(time[growing], 1 / eps[growing], f"perturbation {spread:g}", colour=index))
        law = 1 / eps[stalled] - escape_rate(1.0) * (time[growing] - time[stalled])
        shifts.append(
            line(time[growing], law, "1/eps0 - K t, K = 1/(16 pi)" if not index else "", dash="dashed", colour=GREY)
        )
    panels = (
        Panel(
            "loss: a long plateau, then escape",
            "time (step x updates)",
            "population loss",
            tuple(losses),
            marks=(Mark("saddle level 1/4", level=0.25), *marks),
            xscale="log",
            yscale="log",
            ylim=(1e-12, 10),
        ),
        Panel(
            "1/eps falls linearly in time",
            "time (step x updates)",
            "1 / (common orthogonal shift)",
            tuple(shifts),
            xscale="log",
            yscale="log",
        ),
    )
    return Sheet(
        "The escape from the saddle of Figure 1(b)",
        panels,
        caption="Starts around 1.5 a with v = (1, -1) fixed. The saddle is not strict, so nothing grows exponentially: "
        "the common orthogonal shift obeys d eps/dt = K eps^2 and blows up at the predicted times (vertical lines).",
    )


FIGURE = Figure("escape", "The escape from the non-strict saddle, in log time", compute, sheet, ours=True)
