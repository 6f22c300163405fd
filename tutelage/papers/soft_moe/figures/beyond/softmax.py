"""A softmax router over the experts: do students still cancel, and who learns whom?"""

import numpy as np
import xarray as xr

from tutelage.analysis import BAND, Panel, Series, Sheet, band, line
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.papers.soft_moe.softmax import BATCH, DIM, GATES, STEP, STUDENTS, TEACHERS, forces, sampled
from tutelage.study import Figure, Size

MOST = 40
"""Students per teacher in the picture of the law."""


def compute(settings: SoftMoeSettings, size: Size) -> xr.Dataset:
    """Runs of both gates from the same starts, and the law of the first forces."""
    found = [sampled(gate, size) for gate in GATES]
    names = ("time", "seed")
    ratios = np.arange(2, MOST + 1)
    return xr.Dataset(
        {
            "pairs": (("gate", *names), [one.pairs for one in found]),
            "met": (("gate", *names), [one.met for one in found]),
            "holders": (("gate", *names), [one.holders for one in found]),
            "loss": (("gate", *names), [one.loss / one.loss[0] for one in found]),
            "law": ("ratio", [forces("softmax", int(r) * TEACHERS, TEACHERS).ratio for r in ratios]),
        },
        {"gate": list(GATES), "time": found[0].time, "ratio": ratios},
        {"paper": forces("softmax", 25, 5).ratio},
    )


def sheet(dataset: xr.Dataset) -> Sheet:
    time = dataset["time"].values

    def curves(name: str) -> tuple[Series, ...]:
        return tuple(
            band(time, dataset[name].sel(gate=gate).transpose("seed", "time"), gate, colour=n)
            for n, gate in enumerate(GATES)
        )

    law = (
        line(dataset["ratio"], np.full(dataset.sizes["ratio"], 2.0), "sigmoid", colour=0),
        line(dataset["ratio"], dataset["law"], "softmax", colour=1),
    )
    panels = (
        Panel(
            f"law of the first forces, m* = {TEACHERS}",
            "students per teacher m / m*",
            "pace of cancelling / of learning",
            law,
        ),
        Panel("pairs of opposite experts", "time", "number, median", curves("pairs")),
        Panel("teachers met by an expert", "time", f"number of {TEACHERS}, median", curves("met")),
        Panel("experts along a teacher's", "time", f"number of {STUDENTS}, median", curves("holders")),
    )
    title = "Beyond the paper: a softmax router over the experts"
    return Sheet(title, panels, columns=2, caption=_caption(dataset))


def _caption(dataset: xr.Dataset) -> str:
    end, parts = dataset.isel(time=-1), []
    for gate in GATES:
        one = end.sel(gate=gate)
        parts.append(
            f"{gate}: {float(one['pairs'].mean()):.2f} pairs, {float(one['met'].mean()):.2f} teachers met, "
            f"{float(one['holders'].mean()):.2f} experts along a teacher's, loss {float(one['loss'].mean()):.2f} of "
            "that at the start"
        )
    return (
        f"Top left: exact, for routers that are orthogonal at the start, from equal overlaps; at m = 25, m* = 5 the "
        f"ratio is {dataset.attrs['paper']:.3f}, with sigmoids 2. The others: SGD on fresh batches of {BATCH}, which "
        f"all seeds share, step {STEP:g}, {dataset.sizes['seed']} iid starts, the same for both gates, "
        f"m* = {TEACHERS}, m = {STUDENTS}, d = {DIM}; time in units in which a teacher pulls alike; bands {BAND}. "
        f"Means at the end: "
        f"{'; '.join(parts)}."
    )


FIGURE = Figure("beyond_softmax", "A softmax router over the experts", compute, sheet, ours=True)
