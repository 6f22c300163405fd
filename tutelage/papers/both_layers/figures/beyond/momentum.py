"""Momentum and noise at the saddle that is not strict."""

import numpy as np
import optax
import xarray as xr

from tutelage import run as trained
from tutelage.analysis import BAND, Mark, Panel, Sheet, band, line
from tutelage.dynamics import Optimised, Record, Sgd
from tutelage.papers.both_layers.figures.escape import LEFT, shift
from tutelage.papers.both_layers.recipe import problem
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.papers.both_layers.slices import escape_time
from tutelage.study import Figure, Size

STEP, SPREAD = 0.1, 0.1
BETAS = (0.0, 0.5, 0.9)
BATCH = 32
NOISES = (0.0, 0.03, 0.1, 0.3)
SEEDS: dict[Size, int] = {"quick": 3, "full": 24}
UPDATES = 12_000


def compute(settings: BothLayersSettings, size: Size, *, updates: int = UPDATES) -> xr.DataTree:
    """One start near 1.5 a with three momenta; many starts by SGD with noisy labels."""
    record = Record(800, weights=True, observables=("loss",))
    parts = {}
    for beta in BETAS:
        chosen = _problem(settings)
        result = trained(chosen, Optimised(optax.sgd(STEP, momentum=beta), steps=updates), seeds=[0], record=record)
        parts[f"beta{int(100 * beta)}"] = result.dataset.isel(seed=0, drop=True)
    for noise in NOISES:
        dynamics = Sgd(step=STEP, steps=updates, batch=BATCH)
        result = trained(
            _problem(settings, noise), dynamics, seeds=SEEDS[size], record=Record(800, observables=("loss",))
        )
        loss, number = result.dataset["loss"].values, result.dataset["step"].values
        away = loss < LEFT
        reached = np.where(away.any(1), number[np.argmax(away, axis=1)], np.inf)
        mean = np.asarray(result.start.first)[..., 1:].mean(axis=1)
        law = escape_time(np.linalg.norm(mean, axis=-1), 1.0) / STEP
        parts[f"noise{int(100 * noise)}"] = xr.Dataset({"left": ("seed", reached), "law": ("seed", law)})
    return xr.DataTree.from_dict(parts)


def _problem(settings: BothLayersSettings, noise: float = 0.0):
    return problem(BothLayersSettings(dim=settings.dim, trains="first", scale=SPREAD, offset=1.5, noise=noise))


def sheet(tree: xr.DataTree) -> Sheet:
    losses, marks, told = [], [], []
    for index, beta in enumerate(BETAS):
        data = tree[f"beta{int(100 * beta)}"].to_dataset()
        # The common shift does not take part in the quick fall to the saddle: its value at the start is that there.
        expected = float(escape_time(shift(data)[0], 1.0)) * (1 - beta) / STEP
        loss, number = data["loss"].values, data["step"].values
        seen = number[np.argmax(loss < LEFT)] if np.any(loss < LEFT) else np.nan
        losses.append(line(number[1:], loss[1:], f"momentum {beta:g}", colour=index))
        marks.append(Mark(f"predicted, {beta:g}", at=expected))
        told.append(f"{seen:.0f} ({expected:.0f})")
    left = np.array([tree[f"noise{int(100 * noise)}"]["left"].values for noise in NOISES])
    law = np.array([tree[f"noise{int(100 * noise)}"]["law"].values for noise in NOISES])
    medians = ", ".join(f"{np.median(row):.0f}" for row in left)
    panels = (
        Panel(
            "momentum shortens the plateau",
            "updates",
            "population loss",
            tuple(losses),
            marks=(Mark("saddle level 1/4", level=0.25), *marks),
            xscale="log",
            yscale="log",
            ylim=(1e-12, 10),
        ),
        Panel(
            "noisy labels end it",
            "standard deviation of the labels' noise",
            f"updates until the loss is below {LEFT:g}",
            (
                band(np.arange(len(NOISES)), left.T, f"SGD, batches of {BATCH}", kind="points", colour=0),
                band(np.arange(len(NOISES)) + 0.12, law.T, "law of exact descent", kind="points", colour=6),
            ),
            names=tuple(f"{noise:g}" for noise in NOISES),
            yscale="log",
        ),
    )
    return Sheet(
        "Beyond the paper: momentum and noise at the saddle",
        panels,
        caption=f"Starts around 1.5 a with a perturbation of {SPREAD:g}, d = 100, v = (1, -1) fixed, step {STEP:g}. "
        f"Left: one seed, exact gradient, momentum {', '.join(f'{b:g}' for b in BETAS)}: left after (predicted from "
        f"the start) {', '.join(told)} updates; the prediction is that without momentum times 1 - momentum. Right: "
        f"online SGD, {left.shape[1]} seeds (bars: {BAND}); medians {medians} updates, where exact descent takes "
        f"{np.median(law):.0f} by its law.",
    )


FIGURE = Figure("beyond_momentum", "Momentum and noise at the saddle", compute, sheet, ours=True)
