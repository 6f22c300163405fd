"""Figures 4 and 5: the functions whose sign proves Lemmas 8 and 13."""

import math

import numpy as np
import xarray as xr

from tutelage.analysis import Field, Mark, Panel, Sheet, line
from tutelage.papers.both_layers.inequalities import (
    loss_root,
    loss_slack,
    pl_root,
    pl_slack,
    sharp_loss_lower,
    sharp_pl,
)
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.study import Figure, Size

SHADED = Mark("claimed: theta >= pi/2", span=(math.pi / 2, math.pi))


def compute_4(settings: BothLayersSettings, size: Size) -> xr.Dataset:
    theta = np.linspace(0, math.pi, 401)
    upper = np.linspace(math.pi / 2, math.pi, 121)
    log_rho = np.linspace(-4, 4, 201)
    slack = pl_slack(upper[None, :], np.exp(log_rho)[:, None])
    # Divided by rho^2 + 1, its own growth, so that the map shows the sign at every ratio.
    relative = slack / (np.exp(2 * log_rho) + 1)[:, None]
    return xr.Dataset(
        {
            "slack": ("theta", pl_slack(theta), {"long_name": "min over a of (|grad|^2 - 0.05 L) / |w_2|^2"}),
            "sharp": ("theta", pl_slack(theta, 1.0, sharp_pl()), {"long_name": "the same with the sharp constant"}),
            "relative": (("log_rho", "theta_upper"), relative, {"long_name": "slack / (rho^2 + 1)"}),
        },
        {"theta": theta, "log_rho": log_rho, "theta_upper": upper},
        {"root": pl_root(), "sharp_constant": sharp_pl()},
    )


def sheet_4(dataset: xr.Dataset) -> Sheet:
    theta = dataset["theta"].values
    curve = Panel(
        "equal norms",
        "theta, angle of $w_1, w_2$ (rad)",
        "slack of the PL inequality / $|w_2|^2$",
        (
            line(theta, dataset["slack"].values, "constant 0.05 (paper)", colour=0),
            line(theta, dataset["sharp"].values, f"constant {dataset.attrs['sharp_constant']:.6f} (sharp)", colour=1),
        ),
        marks=(SHADED, Mark(f"root {dataset.attrs['root']:.5f}", at=dataset.attrs["root"]), Mark("", level=0.0)),
    )
    heat = Panel(
        "all ratios of norms",
        "theta (rad)",
        "ln rho, rho = $|w_1|/|w_2|$",
        fields=(
            Field(
                dataset["theta_upper"].values,
                dataset["log_rho"].values,
                dataset["relative"].values,
                "slack / (rho² + 1)",
                levels=(0.0, 0.001, 0.003, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2),
            ),
        ),
        note=f"smallest value {float(dataset['relative'].min()):.1e}",
    )
    return Sheet(
        "Figure 4: the PL inequality of Lemma 8",
        (curve, heat),
        caption="The claim is that the curve is not negative for theta >= pi/2. The constant 0.05 of the paper can be "
        f"raised to {dataset.attrs['sharp_constant']:.6f} and no further. (The "
        "paper's caption divides by |w_2|; it must be the square.)",
    )


def compute_5(settings: BothLayersSettings, size: Size) -> xr.Dataset:
    theta = np.linspace(0, math.pi, 401)
    upper = np.linspace(math.pi / 2, math.pi - 1e-3, 200)
    return xr.Dataset(
        {
            "slack": ("theta", loss_slack(theta), {"long_name": "(L - 0.05 |h|^2) / |w_2|^2 at equal norms"}),
            "sharp": ("theta_upper", sharp_loss_lower(upper), {"long_name": "largest constant c with L >= c |h|^2"}),
        },
        {"theta": theta, "theta_upper": upper},
        {"root": loss_root()},
    )


def sheet_5(dataset: xr.Dataset) -> Sheet:
    theta, upper = dataset["theta"].values, dataset["theta_upper"].values
    curve = Panel(
        "equal norms",
        "theta, angle of $w_1, w_2$ (rad)",
        "(L - 0.05 $|h|^2$) / $|w_2|^2$",
        (line(theta, dataset["slack"].values, "constant 0.05 (paper)", colour=0),),
        marks=(SHADED, Mark(f"root {dataset.attrs['root']:.5f}", at=dataset.attrs["root"]), Mark("", level=0.0)),
    )
    sandwich = Panel(
        "the sharp constant at each angle",
        "theta (rad)",
        "L / $|h|^2$",
        (line(upper, dataset["sharp"].values, "smallest possible ratio", colour=0),),
        marks=(Mark("always at most 1/4", level=0.25), Mark("paper: 0.05", level=0.05)),
        ylim=(0, 0.3),
    )
    return Sheet(
        "Figure 5: the loss controls the distance to the optimum (Lemma 13)",
        (curve, sandwich),
        caption=f"For theta >= pi/2 the loss lies between {float(dataset['sharp'].min()):.4f} |h|^2 (paper: 0.05) and "
        "0.25 |h|^2.",
    )


FIGURE_4 = Figure("fig4", "The PL inequality", compute_4, sheet_4)
FIGURE_5 = Figure("fig5", "The loss lower bound", compute_5, sheet_5)
