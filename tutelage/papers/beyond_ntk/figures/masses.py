"""Stage 2 as masses: the axes take over, the loss falls as a power of time, and the potential of Lemma A.6."""

import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Sheet, line
from tutelage.papers.beyond_ntk import masses
from tutelage.papers.beyond_ntk.late import GROWTH, afterwards, slope, tail
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size

DIMS: dict[Size, tuple[int, ...]] = {"quick": GROWTH[:3], "full": GROWTH}


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """The tail with equal weights, and the potential with unequal ones over d."""
    times, path, a = tail()
    later, loss = times[1:], masses.loss(path, a)[1:]
    dim = len(a)
    potentials = {name: [_first(each, name == "net") for each in DIMS[size]] for name in ("printed", "net")}
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
        | {name: ("wide", value) for name, value in potentials.items()},
        {"time": later, "wide": list(DIMS[size])},
        {"dim": dim},
    )


def _first(dim: int, net: bool) -> float:
    """`Phi d^2` at T_3, with C = 1."""
    _, path, a = afterwards(dim)
    return dim**2 * float(masses.potential(path, a, share=1.0, net=net)[0])


def sheet(dataset: xr.Dataset) -> Sheet:
    about, time = dataset.attrs, dataset["time"].values
    seen = dataset["law"].values < 1.0
    caption = (
        "The mass equation of Claim A.10 with C_1 = 8/pi and C_2 = 8(1 - 3/pi). First three panels: d = "
        f"{about['dim']}, equal weights, 1/1000 of the mass on the axes at time 0. The dense mass tends to 1/(C_2 t) "
        "and the loss to a power of time with exponent -2, but late. Last panel: weights of ratio 2 and C = 1, at T_3 "
        "= T_2 + 6 d log d. Lemma A.6 says that Phi falls where Phi d^2 is above a power of kappa and log d. As "
        "printed, Phi adds up what coordinates are ahead and behind, and does not fall at the upper points, which "
        "rise like d^2: no constant saves it. With the net sum, which is what Lemma A.5 bounds, it falls everywhere "
        "(C19:growth)."
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
    dims = dataset["wide"].values
    high, low = dataset["printed"].values, dataset["net"].values
    return Panel(
        "The potential at $T_3$, unequal weights",
        "d",
        r"$\Phi\, d^2$",
        (
            line(dims, high, r"$\Phi$ as printed: does not fall", kind="points"),
            line(dims, low, r"$\Phi$ with the net sum: falls", kind="points", marker="^"),
            line(dims, high[-1] * (dims / dims[-1]) ** 2, "$d^2$", dash="dashed", colour=GREY),
        ),
        xscale="log",
        yscale="log",
    )


FIGURE = Figure("masses", "Stage 2: an algebraic end", compute, sheet, ours=True)
