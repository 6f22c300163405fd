"""Where the alignment of a neuron settles, against the step."""

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Sheet, line
from tutelage.papers.cluster_moe.passages import CASES, NEURONS, STEPS, Case, balance_of, settled
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.study import Figure, Size


def compute(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    """For each case: what the chain measured and what the balance of drift and noise says, step by step."""
    parts = STEPS[size]
    found = [[settled(case, part * case.step) for part in parts] for case in CASES]
    kappa = np.linspace(0.1, 0.999, 90)
    steps = np.stack([balance_of(case).step_at(kappa[:, None])[:, 0] for case in CASES])
    return xr.Dataset(
        {
            "measured": (("case", "part"), [[each.measured for each in row] for row in found]),
            "error": (("case", "part"), [[each.error for each in row] for row in found]),
            "foretold": (("case", "part"), [[each.foretold for each in row] for row in found]),
            "slope": ("case", [_slope(case) for case in CASES]),
            "limit": ("case", [float(balance_of(case).largest_start()[0]) for case in CASES]),
            "balance": (("case", "kappa"), steps),
        },
        {"case": [case.name for case in CASES], "part": list(parts), "kappa": kappa},
    )


def _slope(case: Case) -> float:
    """`(1 - kappa)/step` near full alignment."""
    return float(1 - balance_of(case).near_one(1.0)[0])


def sheet(dataset: xr.Dataset) -> Sheet:
    panels = tuple(_panel(dataset, case) for case in CASES)
    return Sheet("Where the alignment settles, against the step", panels, columns=2, caption=_caption(dataset))


def _panel(dataset: xr.Dataset, case: Case) -> Panel:
    about = dataset.sel(case=case.name)
    steps = about["part"].values * case.step
    kappa, balance = about["kappa"].values, about["balance"].values
    near = np.geomspace(steps.min() / 2, steps.max(), 40)
    measured, error = about["measured"].values, about["error"].values
    return Panel(
        case.name,
        "effective step",
        r"alignment $\kappa$",
        (
            line(balance, kappa, "drift and noise cancel", colour=1),
            line(near, 1 - float(about["slope"]) * near, "near 1, linear", dash="dashed", colour=2),
            line(
                steps,
                measured,
                "chain: mean and two standard errors",
                kind="points",
                colour=0,
                low=measured - 2 * error,
                high=measured + 2 * error,
            ),
        ),
        marks=(Mark("largest step that starts", at=float(about["limit"])),),
        xscale="log",
        xlim=(float(steps.min()) / 2, 2 * max(float(balance.max()), float(about["limit"]))),
        ylim=(0.1, 1.02),
    )


def _caption(dataset: xr.Dataset) -> str:
    told = "; ".join(
        f"{case.name}: "
        + ", ".join(
            f"{m:.3f} for {f:.3f}"
            for m, f in zip(
                dataset["measured"].sel(case=case.name).values,
                dataset["foretold"].sel(case=case.name).values,
                strict=True,
            )
        )
        for case in CASES
    )
    return (
        f"{NEURONS} independent neurons from full alignment with a local task, unit-size tasks of the paper's orders, "
        f"rho = 3, SGD by the chain of overlaps, exact in law; mean over the second half of 8 relaxation times, with "
        "two "
        f"standard errors over neurons. On the solid curve drift and noise cancel: neurons go to its upper branch, and "
        f"away from its lower one; dashed: its linear law near 1. A neuron that starts with 2/sqrt(d) climbs with a "
        "step "
        f"left of the vertical line only. Measured for foretold alignments, largest step first: {told}."
    )


FIGURE = Figure("stationary", "Stationary alignment against the step", compute, sheet, ours=True)
