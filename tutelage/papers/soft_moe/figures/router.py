"""Figures 3a and 3b: what the paper's proofs use of the router's function, exactly and by sampling as the paper did."""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Series, Sheet, line
from tutelage.papers.soft_moe.constants import NEEDED, Constants
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.problem import Numbers
from tutelage.study import Figure, Size

SAMPLES_3A, SAMPLES_3B = 10**5, 10**6  # the paper's numbers
SEED = 3
WIDTH = 0.3


def compute_3a(settings: SoftMoeSettings, size: Size) -> xr.Dataset:
    constants = Constants.of(settings.gate, settings.degree)
    rho, sampled = np.linspace(-1, 1, 201), np.linspace(-1, 1, 21)
    mean, error = np.array([_product(constants, value) for value in sampled]).T
    return xr.Dataset(
        {
            "exact": ("rho", constants.correlation(1, 3, rho), {"long_name": "E[pi'(z1) pi'''(z2)], exact series"}),
            "mean": ("rho_sampled", mean, {"long_name": f"the same from {SAMPLES_3A} samples"}),
            "error": ("rho_sampled", error, {"long_name": "standard error"}),
        },
        {"rho": rho, "rho_sampled": sampled},
        {"gate": settings.gate, "samples": SAMPLES_3A, "at_zero": float(constants.correlation(1, 3, 0.0))},
    )


def _product(constants: Constants, rho: float) -> tuple[float, float]:
    """Mean and standard error of pi'(z1) pi'''(z2) over fresh samples."""
    z, other = np.random.default_rng([SEED, round(1e6 * (rho + 1))]).standard_normal((2, SAMPLES_3A))
    third = jax.vmap(jax.grad(constants.gate.second_derivative))
    values = np.asarray(constants.gate.derivative(z) * third(jnp.asarray(rho * z + np.sqrt(1 - rho**2) * other)))
    return _mean(values)


def _mean(values: Numbers) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def sheet_3a(dataset: xr.Dataset) -> Sheet:
    rho, exact = dataset["rho"].values, dataset["exact"].values
    mean, error = dataset["mean"].values, 2 * dataset["error"].values
    panel = Panel(
        "",
        r"correlation $\rho$ of $z_1, z_2$",
        r"$G_{13}(\rho) = E[\pi'(z_1)\,\pi'''(z_2)]$",
        (
            line(rho, exact, "exact series", colour=0),
            line(
                dataset["rho_sampled"].values, mean, _samples(dataset), kind="points", colour=1,
                low=mean - error, high=mean + error,
            ),
        ),
        marks=(Mark(rf"$c_1 c_3$ = {dataset.attrs['at_zero']:.5f}", level=dataset.attrs["at_zero"]),),
    )  # fmt: skip
    sign = "negative everywhere" if exact.max() < 0 else "not negative everywhere"
    return Sheet(
        f"Figure 3a: Assumption 3 for the router's function {dataset.attrs['gate']}",
        (panel,),
        columns=1,
        caption=f"The exact curve is {sign}: between {exact.min():.6f} and {exact.max():.6f}. For the sigmoid this "
        "follows from the alternating signs of its Hermite coefficients. Points: the paper's simulation, with two "
        "standard errors.",
    )


def _samples(dataset: xr.Dataset) -> str:
    return f"$10^{round(np.log10(dataset.attrs['samples']))}$ samples"


def compute_3b(settings: SoftMoeSettings, size: Size) -> xr.Dataset:
    constants = Constants.of(settings.gate, settings.degree)
    z = np.random.default_rng(SEED).standard_normal(SAMPLES_3B)
    sampled = [_mean(np.asarray(f(z)) ** 2) for f in (constants.gate, constants.gate.derivative)]
    mean, error = np.array(sampled).T
    return xr.Dataset(
        {
            "exact": ("moment", [constants.square, constants.slope_square], {"long_name": "second moments"}),
            "mean": ("moment", mean, {"long_name": f"the same from {SAMPLES_3B} samples"}),
            "error": ("moment", error, {"long_name": "standard error"}),
        },
        {"moment": ["E[pi^2]", "E[pi'^2]"]},
        # C_S0 >= 1.1 C_S1 with C_S0 = (p-1)! E[pi^2] and C_S1 = p! E[pi'^2].
        {"gate": settings.gate, "samples": SAMPLES_3B, "needed": NEEDED * settings.degree, "caption": NEEDED},
    )


def sheet_3b(dataset: xr.Dataset) -> Sheet:
    square, slope = map(float, dataset["exact"].values)
    needed, printed = dataset.attrs["needed"], dataset.attrs["caption"]
    ratio = square / slope if slope else np.inf
    mean, error = dataset["mean"].values, 2 * dataset["error"].values
    points = line(
        np.arange(2.0), mean, _samples(dataset), kind="points", colour=GREY, low=mean - error,
        high=mean + error,
    )  # fmt: skip
    bars = (
        _bar(0, square, rf"$E[\pi^2]$ = {square:.5f}", 0),
        _bar(1, slope, rf"$E[\pi'^2]$ = {slope:.5f}", 1),
        points,
    )
    panel = Panel(
        "",
        "",
        "second moment",
        bars,
        marks=(Mark(rf"needed: {needed:.1f} $E[\pi'^2]$ = {needed * slope:.4f}", level=needed * slope),),
        names=(r"$E[\pi(z)^2]$", r"$E[\pi'(z)^2]$"),
        xlim=(-0.7, 1.7),
        ylim=(0, 1.2 * max(square, needed * slope)),
        note=f"ratio of the two: {ratio:.4f}",
    )
    verdict = "holds" if square >= needed * slope else "fails"
    return Sheet(
        f"Figure 3b: the condition of Theorem 3 for {dataset.attrs['gate']}",
        (panel,),
        columns=1,
        caption=f"Theorem 3 asks for C_S0 >= {printed} C_S1, that is for a ratio of these moments of at least "
        f"{needed:.1f} (the paper's caption compares them with {printed}). It is {ratio:.4f}: the condition "
        f"{verdict}. Bars: exact. Points: the paper's simulation, with two standard errors.",
    )


def _bar(at: float, height: float, label: str, colour: int) -> Series:
    """A bar from 0: the band under a short line."""
    x, y = np.array([at - WIDTH, at + WIDTH]), np.full(2, height)
    return line(x, y, label, colour=colour, low=np.zeros(2), high=y)


fig3a = Figure("fig3a", "The sign of E[pi' pi''']", compute_3a, sheet_3a)
fig3b = Figure("fig3b", "The moments in Theorem 3", compute_3b, sheet_3b)
