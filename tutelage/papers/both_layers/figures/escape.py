"""Figure 1(b) continued until the saddle is left: 1/eps falls linearly in time, and so the end can be foretold."""

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Sheet, line
from tutelage.dynamics import Record
from tutelage.papers.both_layers.recipe import run
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.papers.both_layers.slices import escape_time
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


SETTLED = 20.0
"""The time from which the fast directions have died out, at a rate of 1, and eps alone moves."""
LEFT = 0.2
"""The loss below which the saddle has been left."""


def predicted_and_seen(data: xr.Dataset) -> tuple[float, float]:
    """When the loss falls below LEFT: by the law from `SETTLED` on, and in the run."""
    time, eps, loss = data["time"].values, shift(data), data["loss"].values
    settled = int(np.argmin(np.abs(time - SETTLED)))
    along = float(data["weights_first"].values[settled, 1, 0])
    return float(time[settled] + escape_time(eps[settled], along)), float(
        np.interp(-LEFT, -loss[settled:], time[settled:])
    )


def sheet(tree: xr.DataTree) -> Sheet:
    losses, shifts, marks, errors = [], [], [], []
    for index, spread in enumerate(PERTURBATIONS):
        data = tree[f"s{int(1000 * spread)}"].to_dataset()
        time, eps = data["time"].values, shift(data)
        settled = int(np.argmin(np.abs(time - SETTLED)))
        predicted, seen = predicted_and_seen(data)
        errors.append(f"{predicted:.0f} for {seen:.0f}")
        losses.append(line(time[1:], data["loss"].values[1:], f"perturbation {spread:g}", colour=index))
        marks.append(Mark(f"predicted, {spread:g}", at=predicted))
        growing = slice(settled, settled + int(np.argmax(data["loss"].values[settled:] < LEFT)))
        shifts.append(line(time[growing], 1 / eps[growing], f"perturbation {spread:g}", colour=index))
        along = float(data["weights_first"].values[settled, 1, 0])
        reach = np.geomspace(eps[settled], 20.0, 200)
        law = time[settled] + escape_time(eps[settled], along) - escape_time(reach, along)
        shifts.append(line(law, 1 / reach, "law" if not index else "", dash="dashed", colour=GREY))
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
            "1 / (common orthogonal shift eps)",
            tuple(shifts),
            xlim=(0, 2700),
            ylim=(0, 55),
        ),
    )
    return Sheet(
        "The escape from the saddle of Figure 1(b)",
        panels,
        caption="Population gradient descent, d = 100, step 0.1, starts around 1.5 a with v = (1, -1) fixed, one seed "
        "each. The saddle is not strict, so nothing grows exponentially: the common orthogonal shift eps obeys d "
        "eps/dt = K eps^2 (1 + kappa eps), K = 1/(16 pi), kappa = 9/(8 pi). So 1/eps falls with slope -K, up to a "
        "logarithm (dashed: the law, from time 20), and is gone after (1/eps - kappa ln(1 + 1/(kappa eps)))/K "
        "(vertical lines). "
        f"Predicted from time 20, and seen as a loss below {LEFT:g}: {', '.join(errors)}.",
    )


FIGURE = Figure("escape", "The escape from the non-strict saddle, and its law", compute, sheet, ours=True)
