"""The plateau on the mean direction: its level, how long it lasts, and how directions come together and part."""

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Sheet, line, lines
from tutelage.dynamics import Record
from tutelage.papers.relu_teachers import measures
from tutelage.papers.relu_teachers.phases import SEPARATED
from tutelage.papers.relu_teachers.plateau import Plateau
from tutelage.papers.relu_teachers.recipe import run
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.study import Figure, Size

TEACHERS, STUDENTS, DIM = 2, 6, 40
SCALES = {"quick": (1e-6, 1e-9, 1e-12, 1e-15), "full": (1e-6, 1e-9, 1e-12, 1e-15, 1e-18)}
UNTIL = 12.0
RECORDS = 500
OBSERVED = ("loss", "first_norm", "overlap_cos", "overlap_angle")


def compute(settings: ReluTeachersSettings, size: Size) -> xr.Dataset:
    """The flow from weak recovery for several scales of the start; |v| is 1."""
    rows = [_flow(scale) for scale in SCALES[size]]
    level = Plateau(TEACHERS, STUDENTS)
    about = {"level": level.loss, "decay": level.decay_inside, "gamma": level.gamma_inside, "norms": level.sum_of_norms}
    about |= {"teachers": TEACHERS, "students": STUDENTS, "lengthening": level.lengthening(10.0)}
    return xr.concat(rows, "scale").assign_coords(scale=list(SCALES[size])).assign_attrs(about)


def _flow(scale: float) -> xr.Dataset:
    chosen = ReluTeachersSettings(
        dim=DIM, teachers=TEACHERS, students=STUDENTS, norm=1.0, init="weak", scale=scale, step=UNTIL, steps=1
    )
    # The same recorded times for all scales: dense where the small norms grow, and on the plateau.
    times = np.concatenate([np.geomspace(1e-18, 0.1, RECORDS // 2), np.linspace(0.1, UNTIL, RECORDS // 2)[1:]])
    data = run(chosen, dynamics="flow", solver="explicit", record=Record(times, observables=OBSERVED)).dataset.isel(
        seed=0, drop=True
    )
    return xr.Dataset(
        {
            "loss": data["loss"],
            "norm": data["first_norm"].mean("student"),
            "spread": measures.spread(data),
            "mean_cosine": measures.mean_cosines(data).min("student"),
            "angle": measures.home_angles(data).max("student"),
        }
    )


def escape_times(dataset: xr.Dataset) -> np.ndarray:
    """When all theta_i* fall below 20 degrees for good, scale by scale; between two records by interpolation."""
    time = dataset["time"].values
    found = []
    for angle in dataset["angle"].transpose("scale", "time").values:
        last = int(np.flatnonzero(angle > SEPARATED)[-1])
        pair = slice(last + 1, last - 1 if last else None, -1)
        found.append(float(np.interp(SEPARATED, angle[pair], time[pair])) if last + 1 < len(time) else math.nan)
    return np.array(found)


def escape_slope(dataset: xr.Dataset) -> float:
    """How much later the escape comes when the start is ten times smaller, by least squares."""
    times = escape_times(dataset)
    return float(lines.slope(-np.log10(dataset["scale"].values), times))


def sheet(dataset: xr.Dataset) -> Sheet:
    return Sheet(
        "The plateau on the mean direction: longer for smaller starts, at a predicted level and rate",
        tuple(panel(dataset) for panel in (_losses, _angles, _cosines, _together, _apart, _durations)),
        columns=3,
        caption=_caption(dataset),
    )


def _each(dataset: xr.Dataset) -> Iterator[tuple[int, str, xr.Dataset]]:
    """Index, label and Dataset of each scale."""
    for index, scale in enumerate(dataset["scale"].values):
        yield index, f"sigma = {scale:.0e}".replace("e-0", "e-"), dataset.sel(scale=scale)


def _losses(dataset: xr.Dataset) -> Panel:
    level = dataset.attrs["level"]
    return Panel(
        "loss",
        "flow time s",
        "population loss / $|v|^2$",
        tuple(line(one["time"], one["loss"], label, colour=index) for index, label, one in _each(dataset)),
        marks=(Mark(f"predicted level: {level:.5f}", level=level),),
        yscale="log",
        ylim=(1e-5, 1),
    )


def _angles(dataset: xr.Dataset) -> Panel:
    mean = math.degrees(math.acos(1 / math.sqrt(dataset.attrs["teachers"])))
    return Panel(
        "angle to the own teacher, largest",
        "flow time s",
        r"$\max_i \theta_i^*$ (deg)",
        tuple(line(one["time"], np.degrees(one["angle"]), colour=i) for i, _, one in _each(dataset)),
        marks=(Mark(f"mean direction: {mean:.3g} deg", level=mean),),
        ylim=(0, 60),
    )


def _cosines(dataset: xr.Dataset) -> Panel:
    return Panel(
        "distance from the mean direction",
        "flow time s",
        r"$1 - \min_i \cos(w_i, \bar v)$",
        tuple(line(one["time"][1:], 1 - one["mean_cosine"][1:], colour=i) for i, _, one in _each(dataset)),
        xscale="log",
        yscale="log",
    )


def _together(dataset: xr.Dataset) -> Panel:
    """Before the plateau: the spread falls as a power of the norm."""
    full = dataset.attrs["norms"] / dataset.attrs["students"]
    series = []
    for index, _, one in _each(dataset):
        rising = (one["norm"] < 0.9 * full).cumprod("time").astype(bool).values
        series.append(line(one["norm"].values[rising], one["spread"].values[rising], colour=index))
    reach = np.geomspace(float(dataset["norm"].min()), full, 30)
    # Through the middle of the curve of the smallest start, where the power law has set in.
    last = dataset.isel(scale=-1)
    at = int(np.argmin(np.abs(np.log(last["norm"].values) - np.log(reach).mean())))
    law = float(last["spread"][at]) * (reach / float(last["norm"][at])) ** -dataset.attrs["decay"]
    series.append(line(reach, law, rf"$|w|^{{-{dataset.attrs['decay']:.3f}}}$, predicted", dash="dashed", colour=GREY))
    return Panel(
        "directions come together in growth",
        "mean norm of the students / |v|",
        "spread of directions",
        tuple(series),
        xscale="log",
        yscale="log",
    )


def _apart(dataset: xr.Dataset) -> Panel:
    series = []
    for index, _, one in _each(dataset):
        series.append(line(one["time"].values[1:], one["spread"].values[1:], colour=index))
        lowest = int(np.argmin(one["spread"].values))
        time = one["time"].values
        # The prediction starts midway up the rise, where it is a pure exponential.
        half = int(np.argmin(np.abs(time - 0.5 * (time[lowest] + escape_times(dataset)[index]))))
        stretch = (time >= time[lowest]) & (one["spread"].values < 0.5)
        law = float(one["spread"][half]) * np.exp(dataset.attrs["gamma"] * (time[stretch] - time[half]))
        name = rf"$\exp({dataset.attrs['gamma']:.3f}\, s)$, predicted" if not index else ""
        series.append(line(time[stretch], law, name, dash="dashed", colour=GREY))
    return Panel("directions part on the plateau", "flow time s", "spread of directions", tuple(series), yscale="log")


def _durations(dataset: xr.Dataset) -> Panel:
    decades = -np.log10(dataset["scale"].values)
    times = escape_times(dataset)
    slope = dataset.attrs["lengthening"]
    law = times.mean() + slope * (decades - decades.mean())
    return Panel(
        "time of escape",
        r"$\log_{10}(1/\sigma)$",
        "s at which all angles are below 20 deg",
        (
            line(decades, times, "flow", kind="points", colour=0),
            line(decades, law, f"predicted slope {slope:.4f} per decade", dash="dashed", colour=GREY),
        ),
        note=f"fitted slope {escape_slope(dataset):.4f}",
    )


def _caption(dataset: xr.Dataset) -> str:
    about = dataset.attrs
    flat = shelf_loss(dataset.isel(scale=-1), about["level"])
    closest = float(dataset["mean_cosine"].max("time").min())
    return (
        f"Gradient flow from weak recovery, k = {about['teachers']}, m = {about['students']}, |v| = 1; colours as in "
        "the first panel. The shelf of "
        f"the smallest start lies at {flat:.6f} (predicted {about['level']:.6f}). Before it, directions come together "
        "as a power of the norm; on it they part exponentially. So each factor ten in sigma adds "
        f"{escape_slope(dataset):.4f} to the time of escape (predicted (p_V/gam_V) ln 10 = "
        f"{about['lengthening']:.4f}). The students come to the mean direction with cosines of at least {closest:.6f}."
    )


def shelf_loss(one: xr.Dataset, level: float) -> float:
    """The loss where it changes least, once it is near the level of the plateau."""
    time, loss = one["time"].values, one["loss"].values
    near = np.abs(loss - level) < level / 4
    slope = np.where(near, np.abs(np.gradient(np.log(loss), time)), np.inf)
    return float(loss[np.argmin(slope)])


FIGURE = Figure("plateau", "The plateau on the mean direction", compute, sheet, ours=True)
