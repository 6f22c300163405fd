"""The probability of success from a small random start, against the number of units."""

import numpy as np
import xarray as xr

from tutelage.analysis import Panel, Sheet, binomial_interval, line
from tutelage.dynamics import Record
from tutelage.papers.both_layers.evidence import QUICK, starts
from tutelage.papers.both_layers.laws import success_law
from tutelage.papers.both_layers.recipe import run
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.papers.both_layers.start import both_signs, growing_modes
from tutelage.study import Figure, Size
from tutelage.trajectory import Run

WIDTHS = {"quick": (2, 3, 4), "full": (2, 3, 4, 5, 6, 8)}
TRIALS = {"quick": QUICK.trials, "full": 2000}


def compute(settings: BothLayersSettings, size: Size) -> xr.Dataset:
    """Success, the sign rule and the rule of v_i(0) alone, for many starts of each width."""
    trials, widths = TRIALS[size], WIDTHS[size]
    reached, ours, theirs = [], [], []
    for width in widths:
        result = _run(settings.dim, width, size)
        second, first = np.asarray(result.start.second)[..., 0], np.asarray(result.start.first)
        reached.append(result.last("loss").values < 1e-6)
        ours.append(both_signs(growing_modes(second, first, np.asarray(result.teacher.first)[0])))
        theirs.append(both_signs(second))
    dims = ("width", "seed")
    return xr.Dataset(
        {
            "success": (dims, np.array(reached), {"long_name": "the run reached zero loss"}),
            "sign_rule": (dims, np.array(ours), {"long_name": "both signs occur in v_i(0) + a.w_i(0)/|a|"}),
            "plain_rule": (dims, np.array(theirs), {"long_name": "both signs occur in v_i(0)"}),
        },
        {"width": list(widths), "seed": np.arange(trials)},
    )


def _run(dim: int, width: int, size: Size) -> Run:
    if size == "quick":
        return starts(max(dim, width + 1), width, "xavier", TRIALS[size])  # of two widths the claims have them
    chosen = BothLayersSettings(dim=dim, width=width, init="xavier", scale=1e-8, steps=1500)
    return run(chosen, seeds=TRIALS[size], record=Record([0, 1500], observables=("loss",)))


def sheet(dataset: xr.Dataset) -> Sheet:
    widths, trials = dataset["width"].values, dataset.sizes["seed"]
    counts = dataset["success"].values.sum(1)
    intervals = [binomial_interval(int(count), trials) for count in counts]
    fine = np.linspace(widths[0], widths[-1], 100)
    probability = Panel(
        "small random starts",
        "number of units k",
        "probability of reaching zero loss",
        (
            line(
                widths,
                counts / trials,
                f"measured, {trials} starts per point",
                kind="points",
                colour=0,
                low=np.array([i.low for i in intervals]),
                high=np.array([i.high for i in intervals]),
            ),
            line(fine, [success_law(k) for k in fine], "law 1 - 2^(1-k)", dash="dashed", colour=1),
        ),
        xlim=(1, widths[-1] + 1),
        ylim=(0.3, 1.05),
    )
    agree = [
        line(widths, (dataset[rule] == dataset["success"]).mean("seed").values, label, kind="points", colour=colour)
        for rule, label, colour in (
            ("sign_rule", "signs of v(0) + a.w(0)/|a|", 2),
            ("plain_rule", "signs of v(0) alone", 3),
        )
    ]
    rules = Panel(
        "which sign decides",
        "number of units k",
        "fraction of starts predicted right",
        tuple(agree),
        xlim=(1, widths[-1] + 1),
        ylim=(0.85, 1.01),
    )
    return Sheet(
        "When a small start succeeds",
        (probability, rules),
        caption="Bars are exact 99% binomial intervals. A start succeeds exactly when both signs occur in "
        "v_i(0) + a.w_i(0)/|a|. The same rule with the signs of v_i(0) alone, of which the paper states one direction "
        "(stuck only when they are equal), is right most of the time only.",
    )


FIGURE = Figure("success", "Success probability against the number of units", compute, sheet, ours=True)
