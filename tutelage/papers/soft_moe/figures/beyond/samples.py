"""How many examples online SGD takes, over dimensions and over its noise dial."""

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Panel, Sheet, binomial_interval, line
from tutelage.papers.soft_moe.samples import (
    CHOSEN,
    DIALS,
    DIMS,
    LONGEST,
    OTHERS,
    STARTS,
    begins,
    exponent,
    foretold,
    learning,
    reached,
    variance,
)
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.study import Figure, Size


def compute(settings: SoftMoeSettings, size: Size) -> xr.DataTree:
    """One student and one teacher: examples until recovery at one dial in many dims, and at many dials in one dim."""
    starts, dims, dials = STARTS[size], DIMS[size], DIALS[size]
    first = begins(OTHERS, starts)
    slope = exponent(size)
    law = [foretold(dial, first) for dial in dials]
    grown = xr.Dataset(
        {"examples": (("dim", "seed"), [learning(dim, CHOSEN, starts).examples for dim in dims])},
        {"dim": list(dims)},
        {"slope": slope.value, "low": slope.interval.low, "high": slope.interval.high},
    )
    dialled = xr.Dataset(
        {
            "scaled": (("dial", "seed"), [learning(OTHERS, dial, starts).scaled for dial in dials]),
            "law": ("dial", [float(reached(one)) for one in law]),
            "share": ("dial", [float(np.isfinite(one).mean()) for one in law]),
        },
        {"dial": list(dials)},
    )
    return xr.DataTree.from_dict({"grown": grown, "dialled": dialled})


def sheet(tree: xr.DataTree) -> Sheet:
    grown, dialled = tree["grown"].to_dataset(), tree["dialled"].to_dataset()
    dims, dials = grown["dim"].values.astype(float), dialled["dial"].values
    level = float(dialled["law"].sel(dial=CHOSEN))
    shares = np.isfinite(dialled["scaled"].values)
    ends = [binomial_interval(int(row.sum()), row.size, 0.95) for row in shares]
    low, high = (np.array([getattr(end, side) for end in ends]) for side in ("low", "high"))
    panels = (
        Panel(
            f"eta/B = {CHOSEN:g} d^(-3/2)",
            "dimension d",
            "examples until a quarter recovered",
            (
                line(dims, reached(grown["examples"].values), "SGD", kind="points", colour=0),
                line(dims, level * dims**2, "foretold", dash="dashed", colour=GREY),
            ),
            xscale="log",
            yscale="log",
        ),
        Panel(
            f"d = {OTHERS}",
            "kappa = (eta/B) d^(3/2)",
            "examples / d^2 until a quarter recovered",
            (
                line(dials, reached(dialled["scaled"].values), "SGD", kind="points", colour=0),
                line(dials, dialled["law"], "foretold", dash="dashed", colour=GREY),
            ),
            xscale="log",
            yscale="log",
        ),
        Panel(
            f"d = {OTHERS}",
            "kappa = (eta/B) d^(3/2)",
            f"share recovered by {LONGEST:g} sqrt(d)",
            (
                line(dials, shares.mean(1), "SGD", low=low, high=high, kind="points", colour=0),
                line(dials, dialled["share"], "foretold", dash="dashed", colour=GREY),
            ),
            xscale="log",
            ylim=(0, 1.05),
        ),
    )
    title = "Beyond the paper: how many examples online SGD takes"
    return Sheet(title, panels, columns=3, caption=_caption(grown, dialled))


def _caption(grown: xr.Dataset, dialled: xr.Dataset) -> str:
    about, parts = grown.attrs, []
    for dial in dialled["dial"].values:
        one = dialled.sel(dial=dial)
        found, share = float(reached(one["scaled"].values)), float(np.isfinite(one["scaled"]).mean())
        law = float(one["law"])
        parts.append(
            f"kappa = {dial:g}: {_told(found)} d^2 examples (foretold {_told(law)}), {share:.2f} recovered "
            f"({float(one['share']):.2f})"
        )
    return (
        f"One student, one teacher, {grown.sizes['seed']} starts on the teacher's side, online SGD exact in law. Left: "
        f"examples with which a quarter of the starts have recovered; exponent {about['slope']:.2f} "
        f"[{about['low']:.2f}, {about['high']:.2f}] (95 %). Middle and right: another dial eta/B. Dashed: the limit of "
        f"many dimensions, in which noise of variance V = {variance():.0f} per entry makes the norm grow, "
        f"b^4 = 1 + 2 kappa V t/sqrt(d), and moves the overlap; from the same starts. Bars on the right: 95 % "
        f"intervals. {'; '.join(parts)}."
    )


def _told(value: float) -> str:
    return f"{value:.0f}" if np.isfinite(value) else "more than can be told"


FIGURE = Figure("beyond_samples", "How many examples online SGD takes", compute, sheet, ours=True)
