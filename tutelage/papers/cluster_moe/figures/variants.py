"""Mixture against vanilla network where one assumption of the laboratory is changed."""

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Sheet, line
from tutelage.papers.cluster_moe import variants
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.papers.cluster_moe.variants import RADII, VARIANTS
from tutelage.study import Figure, Size

NAMES = {"moe": "mixture of experts", "vanilla": "without a router"}


def compute(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    """Errors of both networks, sharp experts and vanilla neurons with the global task, by variant and seed."""
    found = []
    for name in VARIANTS:
        data = variants.trained(name, size)
        parts = {
            "error": data["error"],
            "zero": data["zero"].isel(network=0),
            "sharp": ("seed", variants.sharp_shares(data)),
            "learnt": ("seed", variants.global_shares(data)),
        }
        found.append(xr.Dataset(parts).assign_coords(variant=name))
    radius = (("dim", "radius"), variants.by_radius(size).mean(-1)[:, : len(RADII)])
    small = variants.settings_of("plain", size)
    about = {name: getattr(small, name) for name in ("dim", "experts", "width", "explore_width", "vanilla_width")}
    about |= {"samples": small.explore_samples + small.samples + small.late_samples}
    both = xr.concat(found, "variant", join="outer").assign(by_radius=radius)
    return both.assign_coords(dim=list(variants.RADIUS_DIMS[size]), radius=list(RADII)).assign_attrs(about)


def sheet(dataset: xr.Dataset) -> Sheet:
    about, root = dataset.attrs, dataset.attrs["dim"] ** -0.5
    seeds = dataset["sharp"].notnull().sum("seed").values
    caption = (
        f"Laboratory B at d = {about['dim']} by SGD from random starts, {about['experts']} experts of "
        f"{about['explore_width']} neurons that explore and {about['width']} that are hired, and a network of "
        f"{about['vanilla_width']} without a router, both on {about['samples']:,} samples; {seeds.min()} to "
        f"{seeds.max()} seeds. Each case changes one thing: biases of ReLU in Phases I and III, or means that are "
        "orthogonal and not antipodal, after which nothing protects the vanilla network from the global task; label "
        f"noise zeta = 1; products w_i.w_j = 1/sqrt(d) = {root:.2f} of all tasks; products v_c.w_i = {root:.2f} of "
        "means and tasks. Above, left: mean absolute errors by seed (points) and their means (bars), a cross for "
        "predicting zero. Above, right: experts that are routed sharply, and vanilla neurons that end with an overlap "
        f"above {variants.LEARNT:g} with the global task; means over seeds. Below: sharply routed experts in "
        "expectation against the distance of the means, at several dimensions (the lines lie on each other); left of "
        "the dashed line no router can do it, as P(h >= 0 | c) is at most Phi(rho)."
    )
    panels = (_errors(dataset), _shares(dataset), _radius(dataset))
    return Sheet("One assumption changed: mixture and vanilla network", panels, columns=2, caption=caption)


def _labels() -> tuple[str, ...]:
    return tuple(VARIANTS)


def _errors(dataset: xr.Dataset) -> Panel:
    series, at = [], np.arange(dataset.sizes["variant"], dtype=float)
    for colour, (name, label) in enumerate(NAMES.items()):
        error = dataset["error"].sel(network=name).transpose("variant", "seed").values
        places = np.repeat(at + 0.24 * colour - 0.12, error.shape[1])
        seen = np.isfinite(error.ravel())
        series.append(line(places[seen], error.ravel()[seen], label, kind="points", colour=colour))
        mean = np.nanmean(error, axis=1)
        series.append(line(at + 0.24 * colour - 0.12, mean, "", kind="points", colour=colour, marker="_"))
    zero = np.nanmean(dataset["zero"].transpose("variant", "seed").values, axis=1)
    series.append(line(at, zero, "predicting zero", kind="points", colour=3, marker="x"))
    top = 1.3 * float(max(zero.max(), dataset["error"].max()))
    return Panel("Errors", "", "mean absolute error", tuple(series), ylim=(0.0, top), names=_labels())


def _shares(dataset: xr.Dataset) -> Panel:
    at = np.arange(dataset.sizes["variant"], dtype=float)
    sharp, learnt = (100 * dataset[name].mean("seed").values for name in ("sharp", "learnt"))
    series = (
        line(at - 0.08, sharp, "experts routed sharply", kind="points", colour=0),
        line(at + 0.08, learnt, "vanilla neurons on $w_g^*$", kind="points", colour=1, marker="s"),
    )
    return Panel("Who learns what", "", "%", series, ylim=(-4.0, 130.0), names=_labels())


def _radius(dataset: xr.Dataset) -> Panel:
    series = tuple(
        line(dataset["radius"].values, 100 * dataset["by_radius"].sel(dim=dim).values, f"d = {dim:,}", colour=colour)
        for colour, dim in enumerate(dataset["dim"].values.tolist())
    )
    marks = (Mark(r"$\Phi(\rho) = 0.9$", at=1.2816),)
    return Panel(
        "Distance of the means", r"$\rho$", "experts routed sharply, %", series, marks=marks, ylim=(-4.0, 130.0)
    )


FIGURE = Figure("variants", "Mixture and vanilla network with one assumption changed", compute, sheet, ours=True)
