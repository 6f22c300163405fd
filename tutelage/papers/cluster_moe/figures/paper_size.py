"""Figures 1 and 2 of the paper's own experiment on one sheet: at its size, or a small version of it."""

from typing import Any

import xarray as xr

from tutelage.analysis import Sheet
from tutelage.papers.cluster_moe.figures import recovered, specialisation
from tutelage.papers.cluster_moe.runs import configured, laboratory
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.study import Figure, Size

SMALL: dict[str, Any] = {
    "dim": 24,
    "width": 32,
    "explore_step": 3e-4,
    "explore_samples": 320_000,
    "router_samples": 80_000,
    "step": 1e-4,
    "samples": 130_000,
    "late_step": 2e-5,
    "late_samples": 32_000,
    "ridge_samples": 2_000,
    "test_samples": 2_000,
    "vanilla_width": 0,
}
CHANGES: dict[Size, dict[str, Any]] = {"quick": SMALL, "full": {}}


def compute(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    """Both figures' data, of one seed."""
    data = laboratory("paper_fig1", size, seeds=1, **CHANGES[size])
    chosen = configured("paper_fig1", size, **CHANGES[size])
    one, two = specialisation.read_off(data, chosen), recovered.read_off(data, chosen)
    both = xr.merge([one, two])
    steps = {name: getattr(chosen, name) for name in ("explore_step", "step", "late_step")}
    return both.assign_attrs(one.attrs | two.attrs | steps | {"explore_samples": chosen.explore_samples, "size": size})


def sheet(dataset: xr.Dataset) -> Sheet:
    about = dataset.attrs
    full = about["size"] == "full"
    title = "The paper's experiment: Figures 1(a), 1(b) and 2"
    if not full:
        title = f"A small version of the paper's experiment (d = {about['dim']}): Figures 1(a), 1(b) and 2"
    clusters = range(dataset.sizes["cluster"])
    told = " ".join(recovered.in_words(dataset, c) for c in clusters)
    caption = (
        f"{'The sizes of Section 5' if full else 'Tasks of Section 5 at a small size'}: d = {about['dim']}, "
        f"{about['experts']} experts of {about['width']} neurons ({about['explore_width']} in Phases I and II), "
        f"{about['explore_samples']:,} samples in Phase I, {about['samples']:,} and {about['late_samples']:,} in Phase "
        f"III; f_1 = h_3 + h_5, f_2 = h_3 + h_4, g = h_3. Not stated in the paper and chosen here: s = (1, -1), "
        f"antipodal means at distance {about['radius']:g}, units a eps h_3, effective steps {about['explore_step']:g}, "
        f"{about['step']:g} and {about['late_step']:g}, one router step on {about['router_samples']:,} samples. Above: "
        "neurons with a larger overlap with a task than the expert's largest with a local one at the start; cosines of "
        f"the router and the means; routing probabilities. Below: overlaps of two experts, "
        f"and how many neurons of each expert have one above 0.9. {told}"
    )
    panels = (
        specialisation.counts(dataset),
        specialisation.alignment(dataset),
        specialisation.probabilities(dataset),
        *(recovered.panel(dataset, c, False) for c in clusters),
        recovered.recovering(dataset),
    )
    return Sheet(title, panels, columns=3, caption=caption)


FIGURE = Figure("paper", "The paper's experiment: Figures 1 and 2", compute, sheet)
