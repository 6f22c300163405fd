"""Figure 3: alignment, growth, refinement; and how the phase times depend on the scale of the start."""

import numpy as np
import xarray as xr

from tutelage.analysis import BAND, GREY, Mark, Panel, Sheet, band, line
from tutelage.dynamics import Record
from tutelage.papers.both_layers.recipe import run
from tutelage.papers.both_layers.reduced import paper_alignment_steps, paper_growth_steps
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.study import Figure, Size

SCALE, STEP = 1e-4, 0.1
SCALES_TRIED = tuple(10.0**-p for p in (2, 3, 4, 6, 8, 10, 12))


def compute_3(settings: BothLayersSettings, size: Size) -> xr.Dataset:
    chosen = BothLayersSettings(dim=settings.dim, scale=SCALE, step=STEP, steps=400)
    result = run(chosen, seeds=[0])
    times = {phase.name: phase.end for phase in result.phases}
    attrs = {f"end_of_{name}": value for name, value in times.items()}
    return result.dataset.isel(seed=0, drop=True).assign_attrs(attrs)


def sheet_3(dataset: xr.Dataset) -> Sheet:
    time = dataset["time"].values
    series = (
        line(time, dataset["loss"].values, "loss L", colour=0),
        line(time, dataset["second"].values[:, 0, 0], "$v_1$", colour=2),
        line(time, dataset["first_norm"].values[:, 0], "$|w_1|$", colour=1, dash="dashed"),
        line(time, dataset["overlap_ss_angle"].values[:, 0, 1], "angle of $w_1, w_2$", colour=3, right=True),
    )
    ends = [("alignment ends", "end_of_alignment"), ("growth ends", "end_of_growth")]
    marks = tuple(Mark(label, at=float(dataset.attrs[key])) for label, key in ends if key in dataset.attrs)
    panel = Panel(
        "alignment, growth, local refinement",
        "time (step x updates)",
        "loss, weights",
        series,
        marks=marks,
        right_label="angle (rad)",
    )
    decades = Panel(
        "the same in decades",
        "time (step x updates)",
        "loss, weights",
        series[:3],
        marks=marks,
        yscale="log",
        ylim=(1e-14, 3),
    )
    return Sheet(
        "Figure 3: the three phases",
        (panel, decades),
        caption=f"Population gradient descent from the start of Theorem 2 with scale {SCALE:g}, step {STEP:g}. The "
        f"paper's own times ({paper_alignment_steps(STEP)} updates for alignment, {paper_growth_steps(STEP, SCALE)} "
        "more for growth) are upper bounds far beyond these.",
    )


def compute_scales(settings: BothLayersSettings, size: Size) -> xr.Dataset:
    """Phase ends against the scale of the start, observed and predicted, at d = 1e9."""
    seeds = 10 if size == "quick" else 100
    rows = []
    for scale in SCALES_TRIED:
        chosen = BothLayersSettings(dim=10**9, scale=scale, step=STEP, steps=800)
        rows.append(run(chosen, seeds=seeds, record=Record(observables=("loss", "second", "overlap_angle"))).phases)
    columns = {}
    for name in ("alignment", "growth"):
        found = [[(p.end, p.predicted) for p in row if p.name == name] for row in rows]
        table = np.array([f + [(np.nan, np.nan)] * (seeds - len(f)) for f in found], float)
        columns[f"{name}_observed"] = (("scale", "seed"), table[:, :, 0])
        columns[f"{name}_predicted"] = (("scale", "seed"), table[:, :, 1])
    return xr.Dataset(columns, {"scale": np.array(SCALES_TRIED), "seed": np.arange(seeds)})


def sheet_scales(dataset: xr.Dataset) -> Sheet:
    """The phases' ends, and how far the paper's bound is from the later one."""
    scale = dataset["scale"].values
    series = []
    for colour, name in enumerate(("alignment", "growth")):
        seen = dataset[f"{name}_observed"]
        series.append(band(scale, seen, f"end of {name}, observed", kind="points", colour=colour))
        predicted = np.nanmedian(dataset[f"{name}_predicted"].values, axis=1)
        series.append(line(scale, predicted, f"end of {name}, predicted", dash="dashed", colour=colour))
    paper = [STEP * (paper_alignment_steps(STEP) + paper_growth_steps(STEP, s)) for s in scale]
    series.append(line(scale, paper, "the paper's bound T1 + T2", dash="dotted", colour=GREY))
    beyond = np.array(paper) / np.median(dataset["growth_observed"].values, axis=1)
    panel = Panel(
        "phase ends at d = 1e9",
        "scale sigma of the start",
        "time (step x updates)",
        tuple(series),
        xscale="log",
        yscale="log",
        ylim=(3, 3000),
    )
    return Sheet(
        "Phase times against the scale of the start",
        (panel,),
        columns=1,
        caption=f"{dataset.sizes['seed']} seeds per scale (bars: {BAND}). Alignment does not depend on the "
        "scale; growth ends logarithmically later. The linearised start predicts both; the paper's bound is "
        f"{beyond.min():.0f} to {beyond.max():.0f} times the end of growth.",
    )


FIGURE_3 = Figure("fig3", "Phases of the trajectory", compute_3, sheet_3)
SCALES = Figure("scales", "Phase times against the scale of the start", compute_scales, sheet_scales, ours=True)
