"""Stage 2 as masses: the axes take over, the loss falls as a power of time, and the potential of Lemma A.6."""

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Sheet, line
from tutelage.papers.beyond_ntk import masses
from tutelage.papers.beyond_ntk.late import STEP, late, slope, tail
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size

RATIO = 3.0
DIMS = {"quick": 50, "full": 200}


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """The tail with equal weights, and the potential with unequal ones."""
    times, path, a = tail()
    later, loss = times[1:], masses.loss(path, a)[1:]
    dim = len(a)
    run, unequal = late(DIMS[size], RATIO)
    potentials = {name: masses.potential(run, unequal, net=name == "net") for name in ("printed", "net")}
    values = {
        "beta": dim * path.beta[1:, 0],
        "gamma": dim * path.gamma[1:, 0],
        "law": dim * masses.law(later),
        "loss": dim * loss,
        "loss_law": dim * masses.law_loss(later, dim),
        "slope": slope(later, loss),
    }
    return xr.Dataset(
        {name: ("time", value) for name, value in values.items()}
        | {name: ("late", value) for name, value in potentials.items()},
        {"time": later, "late": STEP * np.arange(len(potentials["net"]))},
        {"dim": dim, "late_dim": DIMS[size], "ratio": RATIO},
    )


def sheet(dataset: xr.Dataset) -> Sheet:
    about, time = dataset.attrs, dataset["time"].values
    seen = dataset["law"].values < 1.0
    caption = (
        "The mass equation of Claim A.10 with C_1 = 8/pi and C_2 = 8(1 - 3/pi). First three panels: d = "
        f"{about['dim']}, equal weights, 1/1000 of the mass on the axes at time 0. The dense mass tends to 1/(C_2 t) "
        "and the loss to a power of time with exponent -2, but late. Last panel: d = "
        f"{about['late_dim']}, weights of ratio {about['ratio']:g}, from T_3 on, C = 4. The potential of Lemma A.6 as "
        "printed does not always fall: it adds up what coordinates are ahead and behind. With the net sum it does."
    )
    return Sheet(
        "Stage 2: an algebraic end",
        (
            Panel(
                "Masses of a coordinate", "time", "mass x d",
                (
                    line(time, dataset["beta"].values, r"dense, $\beta$"),
                    line(time, dataset["gamma"].values, r"on the axis, $\gamma$"),
                    line(time[seen], dataset["law"].values[seen], "$1/(C_2 t)$", dash="dashed", colour=GREY),
                ),
                xscale="log", yscale="log",
            ),
            Panel(
                "Loss", "time", "L x d",
                (
                    line(time, dataset["loss"].values, "L, orders 0, 2 and from 4 on"),
                    line(time[seen], dataset["loss_law"].values[seen], r"$(1 - 3/\pi)\, d/(C_2 t)^2$", dash="dashed",
                         colour=GREY),
                ),
                xscale="log", yscale="log",
            ),
            Panel(
                "Local exponent of the loss", "time", r"$d \log L / d \log t$",
                (line(time, dataset["slope"].values),), marks=(Mark("-2", level=-2.0),), xscale="log",
            ),
            _potential(dataset),
        ),
        caption=caption,
    )  # fmt: skip


def _potential(dataset: xr.Dataset) -> Panel:
    late = dataset["late"].values
    return Panel(
        "The potential, unequal weights",
        "time after $T_3$",
        "potential",
        (
            line(late, dataset["printed"].values, r"$\Phi$ as printed"),
            line(late, dataset["net"].values, r"$\Phi$ with the net sum"),
        ),
        marks=(Mark("$1/d^2$", level=dataset.attrs["late_dim"] ** -2.0),),
        yscale="log",
    )


FIGURE = Figure("masses", "Stage 2: an algebraic end", compute, sheet, ours=True)
