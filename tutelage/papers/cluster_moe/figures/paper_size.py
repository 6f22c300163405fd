"""Figures 1 and 2 of the paper's own experiment on one sheet, as stated and mended: at its size, or a small one."""

import numpy as np
import xarray as xr

from tutelage.analysis import Sheet
from tutelage.papers.cluster_moe.figures import recovered, specialisation
from tutelage.papers.cluster_moe.presets import units_of
from tutelage.papers.cluster_moe.runs import configured, laboratory
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.study import Figure, Size


def compute(name: str, size: Size) -> xr.Dataset:
    """Both figures' data, of one seed."""
    data, chosen = laboratory(name, size), configured(name, size)
    one, two = specialisation.read_off(data, chosen), recovered.read_off(data, chosen)
    names = ("explore_step", "step", "late_step", "explore_samples", "router_steps", "average_ties", "vanilla_width")
    about = {key: getattr(chosen, key) for key in names} | {"average_ties": int(chosen.average_ties)}
    about |= {"units": units_of(chosen), "readers": chosen.ridge_activation or "the same units"}
    about |= {"mended": int(name.endswith("mended")), "size": size}
    error, zero = (float(np.mean(data[key].isel(network=0).values)) for key in ("error", "zero"))
    about |= {"error": error, "zero": zero}
    return xr.merge([one, two]).assign_attrs(one.attrs | two.attrs | about)


def as_stated(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    return compute("paper_fig1", size)


def mended(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    return compute("paper_fig1_mended", size)


def sheet(dataset: xr.Dataset) -> Sheet:
    about = dataset.attrs
    full, kind = about["size"] == "full", "mended" if about["mended"] else "as stated"
    title = f"The paper's experiment {kind}: Figures 1(a), 1(b) and 2"
    if not full:
        title = f"A small version of the paper's experiment {kind} (d = {about['dim']}): Figures 1(a), 1(b) and 2"
    clusters = range(dataset.sizes["cluster"])
    told = " ".join(recovered.in_words(dataset, c) for c in clusters)
    steps = f"{about['explore_step']:.2g} in Phase I, {about['step']:.2g} in Phase III"
    if about["late_step"] != about["step"]:
        steps += f", {about['late_step']:.2g} in its last {about['late_samples']:,} samples"
    rate = "not those of learning rate 1" if about["mended"] else "those of learning rate 1: 1/(M J) and 1/J"
    ties = "averaged" if about["average_ties"] else "drawn"
    number = about["router_steps"]
    caption = (
        f"SGD from random starts, one seed: d = {about['dim']}, {about['experts']} experts of {about['explore_width']} "
        f"neurons in Phases I and II and {about['width']} in III and IV, {about['explore_samples']:,} samples in Phase "
        f"I, {about['samples'] + about['late_samples']:,} in Phase III; f_1 = h_3 + h_5, f_2 = h_3 + h_4, g = h_3. "
        f"Effective steps {steps} ({rate}); {number} router step{'' if number == 1 else 's'} of "
        f"{about['router_samples']:,} samples with {ties} ties. Not stated in the paper and chosen here: "
        f"h_i = He_i/sqrt(i!), s = (1, -1), antipodal means at distance {about['radius']:g}, {about['units']}; Phase "
        f"IV with {about['readers']}. Above: neurons with a larger overlap with a task than the expert's largest with "
        "a local one at the start; cosines of the router and the means (a star on the larger); routing probabilities. "
        f"Below: overlaps of two experts, and how many neurons of each expert have one above 0.9. {told} The mixture's "
        f"mean absolute error is {about['error']:.2f}, that of predicting zero {about['zero']:.2f}."
    )
    panels = (
        specialisation.counts(dataset),
        specialisation.alignment(dataset),
        specialisation.probabilities(dataset),
        *(recovered.panel(dataset, c, False) for c in clusters),
        recovered.recovering(dataset),
    )
    return Sheet(title, panels, columns=3, caption=caption)


FIGURES = (
    Figure("paper", "The paper's experiment as stated: Figures 1 and 2", as_stated, sheet),
    Figure("paper_mended", "The paper's experiment, mended: Figures 1 and 2", mended, sheet),
)
