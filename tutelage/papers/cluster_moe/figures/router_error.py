"""Phase II: how far one step of the router is from its expectation, and what that does to routing, against n."""

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Sheet, line
from tutelage.oracle import passing
from tutelage.papers.cluster_moe.phase_two import COUNTS, DIM, KAPPA, expected, misses, one_step
from tutelage.papers.cluster_moe.planted import planted
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.study import Figure, Size

KINDS = ("drawn", "averaged")


def compute(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    """Errors by number of samples, and for one step of each the probability that an expert takes cluster 1."""
    lab, counts = planted(DIM, KAPPA), COUNTS[size]
    inputs = lab.problem.inputs

    def routed(kind: str) -> np.ndarray:
        thetas = [one_step(count, kind == "averaged", seed) for seed, count in enumerate(counts)]
        return np.array([passing(theta, inputs)[0] for theta in thetas])

    found = [misses(size, kind == "averaged") for kind in KINDS]
    return xr.Dataset(
        {
            "error": (("ties", "samples"), np.stack([each.value for each in found])),
            "error_spread": (("ties", "samples"), np.stack([each.error for each in found])),
            "runs": ("samples", found[0].runs),
            "passing": (("ties", "samples", "expert"), np.stack([routed(kind) for kind in KINDS])),
            "expected_passing": ("expert", passing(expected(), inputs)[0]),
            "cluster": ("expert", lab.cluster + 1),
        },
        {"ties": list(KINDS), "samples": list(counts)},
        {"dim": DIM, "kappa": KAPPA, "norm": float(np.linalg.norm(expected()))}
        | {"experts": len(lab.first), "width": lab.first.shape[1], "radius": inputs.radius},
    )


def sheet(dataset: xr.Dataset) -> Sheet:
    about = dataset.attrs
    names = {"drawn": "ties drawn", "averaged": "ties averaged"}
    ratio = float(np.mean(dataset["error"].sel(ties="drawn") / dataset["error"].sel(ties="averaged")))
    caption = (
        f"One step of the router from zero with n samples, d = {about['dim']}, rho = {about['radius']:g}, "
        f"two antipodal clusters, {about['experts']} ReLU experts of {about['width']} units, one unit of each "
        "planted with "
        f"overlap {about['kappa']:g} with a local task (seed 0). Left: distance from the expected step, root mean "
        f"square of {int(dataset['runs'].min())} to "
        f"{int(dataset['runs'].max())} steps with one standard error; coloured dashed lines have the exponent -1/2, "
        "the horizontal one is the norm of the expected step. At the start all experts are tied: averaging over them "
        f"instead of drawing makes the error {ratio:.1f} times smaller. Middle and "
        "right: the probability that an expert's score is positive on a sample of cluster 1, each expert a point, "
        "after one such step; dotted lines are those of the expected step."
    )
    return Sheet(
        "Phase II: what the router learns from n samples",
        (_error(dataset, names), *(_passing(dataset, kind, names[kind]) for kind in KINDS)),
        columns=3,
        caption=caption,
    )


def _error(dataset: xr.Dataset, names: dict[str, str]) -> Panel:
    count, series = dataset["samples"].values.astype(float), []
    for colour, kind in enumerate(KINDS):
        error, spread = dataset["error"].sel(ties=kind).values, dataset["error_spread"].sel(ties=kind).values
        ends = {"low": error - spread, "high": error + spread}
        series.append(line(count, error, names[kind], kind="points", colour=colour, **ends))
        label = r"$n^{-1/2}$" if colour == 0 else ""
        law = np.exp(np.mean(np.log(error * np.sqrt(count)))) / np.sqrt(count)
        series.append(line(count, law, label, dash="dashed", colour=colour))
    return Panel(
        "Error of the step",
        "samples n",
        r"$\|\theta - \theta_{\mathrm{pop}}\|$",
        tuple(series),
        marks=(Mark(r"$\|\theta_{\mathrm{pop}}\|$", level=dataset.attrs["norm"]),),
        xscale="log",
        yscale="log",
    )


def _passing(dataset: xr.Dataset, kind: str, name: str) -> Panel:
    count, series = dataset["samples"].values.astype(float), []
    for cluster in (1, 2):
        chosen = np.flatnonzero(dataset["cluster"].values == cluster)
        seen = dataset["passing"].sel(ties=kind).isel(expert=chosen).values
        beside = np.repeat(count * (0.95 if cluster == 1 else 1.05), len(chosen))  # so that no point hides another
        label = f"expert of cluster {cluster}" if kind == KINDS[0] else ""  # once for both panels
        series.append(line(beside, seen.ravel(), label, kind="points", colour=cluster + 1))
        level = float(dataset["expected_passing"].values[chosen].mean())
        series.append(line(count[[0, -1]], [level, level], "", dash="dotted", colour=cluster + 1))
    return Panel(
        f"Routing, {name}",
        "samples n",
        r"$P(\theta_m \cdot x \geq 0$ | cluster 1)",
        tuple(series),
        xscale="log",
        ylim=(-0.03, 1.3),  # room for the legend
    )


FIGURE = Figure("router_error", "What the router learns from n samples", compute, sheet, ours=True)
