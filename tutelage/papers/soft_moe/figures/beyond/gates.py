"""Other gates: times go with 1/c_0^2, c_0 = E[gate]; a gate of mean 0 has no force at leading order."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from tutelage.analysis import BAND, GREY, Panel, Series, Sheet, band, line, lines
from tutelage.papers.soft_moe.figures.beyond.common import FIRST_MET, changed, diagonal, first_met, flows, predicted
from tutelage.papers.soft_moe.growth import Growth
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.study import Figure, Size

TEACHERS, STUDENTS = 2, 6
GATES: dict[Size, tuple[str, ...]] = {"quick": ("constant",), "full": ("constant", "softplus", "sigmoid", "probit")}
DIM: dict[Size, int] = {"quick": 10**4, "full": 10**5}
SWEPT: dict[Size, tuple[str, ...]] = {"quick": ("tanh",), "full": ("sigmoid", "tanh", "erf")}
DIMS: dict[Size, tuple[int, ...]] = {"quick": (100, 400), "full": (100, 300, 1000, 3000, 10000)}
SEEDS: dict[Size, int] = {"quick": 4, "full": 16}
MARKERS = ("o", "^", "o", "+")  # sigmoid and probit lie on top of each other
PATIENCE = 3.0  # over dim: the time at which a run that met no teacher ends


def compute(settings: SoftMoeSettings, size: Size) -> xr.DataTree:
    """The same orthonormal starts under every gate; those of mean 0, and the paper's, in several dimensions."""
    base = changed(
        settings, students=STUDENTS, teachers=TEACHERS, alphas=None, dim=DIM[size], init="orthonormal", until=None
    )
    rows = [_times(changed(base, gate=gate), SEEDS[size]) for gate in GATES[size]]
    grown = [[_first(changed(base, gate=gate, dim=dim), SEEDS[size]) for dim in DIMS[size]] for gate in SWEPT[size]]
    mean = xr.concat(rows, "gate").assign_coords(gate=list(GATES[size]))
    dims = xr.Dataset({"first": (("gate", "dim", "seed"), grown)}, {"gate": list(SWEPT[size]), "dim": list(DIMS[size])})
    return xr.DataTree.from_dict({"mean": mean, "dims": dims})


def _times(settings: SoftMoeSettings, seeds: int) -> xr.Dataset:
    expected = predicted(settings, seeds)
    until = 1.2 * float(np.nanmax(expected)) + 5
    run = flows(settings, seeds, until, [0.0, until])
    return xr.Dataset(
        {
            "predicted": (("seed", "teacher"), expected),
            "observed": (("seed", "teacher"), first_met(run)),
            "c0": Growth.of(settings).mean,
        }
    )


def _first(settings: SoftMoeSettings, seeds: int) -> np.ndarray:
    """When each seed first meets a teacher, with either sign; infinite if not in time."""
    until = PATIENCE * settings.dim
    ended = flows(settings, seeds, until, [0.0, until], events=(FIRST_MET,)).dataset["stop_time"].values
    return np.where(ended < until, ended, np.inf)


def slope(dims: np.ndarray, times: np.ndarray) -> tuple[float, float]:
    """The slope of log time in log dim of the seeds that came in time in every dim, and its standard error.

    Each seed has a level of its own, and a slope: the error is that of their mean.
    """
    slopes = lines.exponent(dims, times[:, np.isfinite(times).all(0)])
    return float(slopes.mean()), float(slopes.std(ddof=1) / np.sqrt(len(slopes)))


def sheet(tree: xr.DataTree) -> Sheet:
    mean, grown = tree["mean"].to_dataset(), tree["dims"].to_dataset()
    names = [str(name) for name in mean["gate"].values]
    labels = [f"{name}, c_0 = {float(mean['c0'].sel(gate=name)):.3f}" for name in names]
    panels = (
        Panel(
            "times of recovery",
            "predicted time",
            "observed time",
            (
                *(_points(mean.sel(gate=n), t, c) for c, (n, t) in enumerate(zip(names, labels, strict=True))),
                diagonal(mean["predicted"], mean["observed"]),
            ),
            xscale="log",
            yscale="log",
        ),
        Panel(
            "the mean of the gate sets the pace",
            "c_0 = E[gate]",
            "time / time predicted for c_0 = 1",
            tuple(_ratios(mean, names)),
            xscale="log",
            yscale="log",
        ),
        Panel(
            "first recovery against dimension",
            "d",
            "time",
            tuple(_growth(grown)),
            xscale="log",
            yscale="log",
        ),
    )
    return Sheet("Beyond the paper: other gates", panels, columns=3, caption=_caption(mean, grown, names))


def _points(data: xr.Dataset, label: str, colour: int) -> Series:
    x, y = (data[name].values.ravel() for name in ("predicted", "observed"))
    return line(x, y, label, kind="points", colour=colour, marker=MARKERS[colour])


def ratios(mean: xr.Dataset) -> xr.DataArray:
    """Observed times over those that the same starts would need with a gate of mean 1."""
    return mean["observed"] / (mean["predicted"] * mean["c0"] ** 2)


def _ratios(mean: xr.Dataset, names: list[str]) -> Iterator[Series]:
    found = ratios(mean)
    for colour, name in enumerate(names):
        x, each = [float(mean["c0"].sel(gate=name))], found.sel(gate=name).values.reshape(-1, 1)
        yield band(x, each, name, kind="points", colour=colour, marker=MARKERS[colour])
    c0 = np.geomspace(0.4, 1.2, 20)
    yield line(c0, c0**-2, "c_0^-2", dash="dashed", colour=GREY)


def _growth(grown: xr.Dataset) -> Iterator[Series]:
    dims = grown["dim"].values
    for colour, name in enumerate(grown["gate"].values):
        times = band(dims, grown["first"].sel(gate=name), f"{name}, median", colour=colour, kind="points")
        yield times
        power = 0.5 if name == "sigmoid" else 1.0
        law = f"d^{power:g}" if power != 1 else "d"
        yield line(dims, times.y[-1] * (dims / dims[-1]) ** power, law, dash="dashed", colour=colour)


def _caption(mean: xr.Dataset, grown: xr.Dataset, names: list[str]) -> str:
    found, texts = ratios(mean), []
    for name in names:
        one, c0 = mean.sel(gate=name), float(mean["c0"].sel(gate=name))
        off = np.nanmax(abs(one["observed"] / one["predicted"] - 1).values)
        texts.append(
            f"{name}: c_0 = {c0:.4f}, times {float(found.sel(gate=name).median()):.4f} of those for "
            f"c_0 = 1 ({c0**-2:.4f} predicted), within {100 * off:.1f} % of the prediction"
        )
    slopes = []
    for name in grown["gate"].values:
        times = grown["first"].sel(gate=name).values
        power, error = slope(grown["dim"].values, times)
        last, last_error = slope(grown["dim"].values[-2:], times[-2:])
        slopes.append(
            f"{name} {power:.2f} +- {2 * error:.2f}, between the last two {last:.2f} +- {2 * last_error:.2f} "
            f"({int(np.isfinite(times).sum())} of {times.size} runs in time)"
        )
    return (
        f"{mean.sizes['seed']} orthonormal starts, m* = {TEACHERS}, m = {STUDENTS}; bars: {BAND}. {'; '.join(texts)}. "
        f"Exponents of d (two standard errors): {'; '.join(slopes)}."
    )


FIGURE = Figure("beyond_gates", "Other gates, and gates of mean 0", compute, sheet, ours=True)
