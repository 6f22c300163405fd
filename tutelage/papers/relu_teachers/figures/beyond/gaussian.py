"""No weak recovery: Gaussian starts collapse onto the mean direction, escape, and divide the teachers among them."""

import math
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from tutelage.analysis import GREY, Mark, Panel, Series, Sheet, band, binomial_interval, line, seed_lines
from tutelage.papers.relu_teachers import measures
from tutelage.papers.relu_teachers.figures.beyond.common import (
    RECOVERED,
    STUDENTS,
    TEACHERS,
    histogram,
    last,
    trained,
)
from tutelage.papers.relu_teachers.lasting import crowding
from tutelage.papers.relu_teachers.plateau import Plateau
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.study import Figure, Size
from tutelage.trajectory import Run

SCALES = (1e-5, 1e-8, 1e-11)


Hard = tuple[int, int]
"""Teachers and students of a case with little room: as many dimensions as teachers, hardly more students."""
HARD: dict[Size, tuple[Hard, ...]] = {"quick": ((8, 8),), "full": ((8, 8), (8, 9), (12, 12))}


def compute(settings: ReluTeachersSettings, size: Size, *, hard: tuple[Hard, ...] | None = None) -> xr.DataTree:
    """The escape at three scales in small steps; the end of long runs; and whether hard cases reach a zero loss."""
    escapes = [_escape(trained(size, 1500, pace=0.05, dim=settings.dim, scale=scale)) for scale in SCALES]
    end = _end(trained(size, 4000, dim=settings.dim).dataset)
    outcomes = [_hard(case, size) for case in (HARD[size] if hard is None else hard)]
    known = _outcome(end["loss"], TEACHERS, STUDENTS, settings.dim, end["gradient_norm"])
    escape = xr.concat(escapes, "scale").assign_coords(scale=list(SCALES))
    return xr.DataTree.from_dict({"escape": escape, "end": end, "hard": xr.concat([known, *outcomes], "case")})


def _escape(result: Run) -> xr.Dataset:
    """What the students do as one, and when they part: measured, and predicted where the plateau begins."""
    data = result.dataset
    found = {phase.seed: phase for phase in result.phases if phase.name == "escape"}
    times = [
        [getattr(found[s], name) if s in found else math.nan for s in data["seed"].values]
        for name in ("end", "predicted")
    ]
    return xr.Dataset(
        {
            "loss": data["loss"],
            "mean_cosine": measures.mean_cosines(data).min("student"),
            "nearest_cosine": measures.nearest_cosines(data).min("student"),
            "escape": ("seed", times[0]),
            "predicted": ("seed", times[1]),
        }
    )


def _end(data: xr.Dataset) -> xr.Dataset:
    nearest = last(data, "overlap_cos").argmax("teacher")
    teachers = xr.DataArray(np.arange(data.sizes["teacher"]), dims="teacher")
    counts = (nearest == teachers).sum("student")
    home = measures.home(data)
    return xr.Dataset(
        {
            "loss": last(data, "loss"),
            "gradient_norm": last(data, "gradient_norm"),
            "counts": counts,
            "share": last(data, "first_norm") * counts.isel(teacher=nearest),
            "stayed": (nearest == home).mean("student"),
        }
    )


def _hard(case: Hard, size: Size) -> xr.Dataset:
    teachers, students = case
    data = trained(size, 3000, pace=2.5, decided=True, dim=teachers, teachers=teachers, students=students).dataset
    return _outcome(last(data, "loss"), teachers, students, teachers, last(data, "gradient_norm"))


def _outcome(loss: xr.DataArray, teachers: int, students: int, dim: int, gradient: xr.DataArray) -> xr.Dataset:
    reached = int((loss < RECOVERED).sum())
    share = binomial_interval(reached, loss.size)
    stuck = loss.values[(loss.values >= RECOVERED) & (gradient.values < 1e-5)]
    numbers: dict[str, Any] = {
        "teachers": teachers,
        "students": students,
        "dim": dim,
        "reached": reached,
        "runs": loss.size,
    }
    numbers |= {"low": share.low, "high": share.high, "level": stuck.min() if stuck.size else math.nan}
    numbers |= {"level_spread": np.ptp(stuck) if stuck.size else math.nan, "stuck": stuck.size}
    return xr.Dataset({name: float(value) for name, value in numbers.items()})


def sheet(tree: xr.DataTree) -> Sheet:
    escape, end, hard = (tree[name].to_dataset() for name in ("escape", "end", "hard"))
    plateau = Plateau(TEACHERS, STUDENTS)
    smallest = escape.isel(scale=-1)
    panels = (
        Panel(
            f"loss, sigma = {SCALES[-1]:g}",
            "time",
            "population loss",
            tuple(seed_lines(escape["time"], smallest["loss"], "one line per seed", colour=0, most=16)),
            marks=(Mark(f"plateau {plateau.loss:.4f}", level=plateau.loss),),
            yscale="log",
            xlim=(0, 5),
        ),
        Panel(
            "together, then apart",
            "time",
            "least cosine over the students",
            (
                band(escape["time"], smallest["mean_cosine"], "to the mean direction", colour=1),
                band(escape["time"], smallest["nearest_cosine"], "to the nearest teacher", colour=2),
            ),
            marks=(Mark("1/sqrt k", level=1 / math.sqrt(TEACHERS)),),
            xscale="log",
            xlim=(1e-11, 6),
        ),
        Panel(
            "when they part",
            "predicted time of escape",
            "measured",
            tuple(_escapes(escape)),
            note=_late(escape),
        ),
        _sizes(end),
        Panel(
            "how a group divides its teacher",
            "|w_i| m_l / |v|",
            "share of the students",
            (histogram(end["share"].values.ravel(), np.arange(-0.05, 2.5, 0.1), "Gaussian starts", colour=0),),
            marks=(Mark("equal norms", at=1.0),),
        ),
        _success(hard),
    )
    return Sheet("Beyond the paper: Gaussian starts, no weak recovery", panels, columns=3, caption=_caption(tree))


def _late(escape: xr.Dataset) -> str:
    """By how much the prediction comes too early, and what of that the cubic term of the kernel explains."""
    level = Plateau(TEACHERS, STUDENTS)
    late = float(np.nanmedian(escape["escape"] - escape["predicted"]))
    apart = math.sqrt(1 - 1 / TEACHERS) / 2
    slower = -math.log(1 - crowding(TEACHERS) * apart) / level.gamma_inside
    return (
        "Predicted where the norms first add up to those of the plateau, from the spread there and gam_V. Escapes are "
        f"{late:.2f} later: growth slows down when the spread is not small, by {slower:.2f} from its cubic term alone."
    )


def _escapes(escape: xr.Dataset) -> list[Series]:
    points = [
        line(row["predicted"].values, row["escape"].values, f"sigma = {scale:g}", kind="points", colour=index)
        for index, (scale, row) in enumerate(zip(SCALES, (escape.isel(scale=i) for i in range(3)), strict=True))
    ]
    ends = np.array([0.9, 1.1]) * [np.nanmin(escape["predicted"]), np.nanmax(escape["predicted"])]
    return [*points, line(ends, ends, "measured = predicted", dash="dashed", colour=GREY)]


def _sizes(end: xr.Dataset) -> Panel:
    sizes = np.arange(0, 10)
    seen = np.bincount(end["counts"].values.astype(int).ravel(), minlength=len(sizes))[: len(sizes)]
    alone = stats.binom.pmf(sizes, STUDENTS, 1 / TEACHERS)
    return Panel(
        f"who shares a teacher: m = {STUDENTS}, k = {TEACHERS}",
        "m_l at the end",
        "share of the teachers",
        (
            line(sizes, seen / seen.sum(), "measured", kind="points", colour=0),
            line(sizes, alone, "if each chose alone (binomial)", dash="dashed", colour=GREY),
        ),
        ylim=(-0.03, 1.0),
    )


def _success(hard: xr.Dataset) -> Panel:
    spare = hard["students"] - hard["teachers"]
    series = []
    for colour, extra in enumerate(np.unique(spare.values)):
        rows = hard.isel(case=np.flatnonzero(spare.values == extra))
        size = "d = k" if (rows["dim"] == rows["teachers"]).all() else f"d = {float(rows['dim'][0]):.0f}"
        label = f"m = k + {extra:.0f}, {size}" if extra else f"m = k, {size}"
        share = (rows["reached"] / rows["runs"]).values
        low, high = rows["low"].values, rows["high"].values
        series.append(line(rows["teachers"].values, share, label, low=low, high=high, kind="points", colour=colour))
    return Panel(
        "runs that reach a zero loss",
        "teachers k",
        "share, with its 99 % interval",
        tuple(series),
        ylim=(0, 1.25),
        xlim=(2, 14),
    )


def _caption(tree: xr.DataTree) -> str:
    escape, end, hard = (tree[name].to_dataset() for name in ("escape", "end", "hard"))
    plateau = Plateau(TEACHERS, STUDENTS)
    later = np.nanmedian(escape["escape"].diff("scale").values, axis=1)
    alone = STUDENTS / TEACHERS * (1 - 1 / TEACHERS)
    text = (
        f"{end.sizes['seed']} seeds, k = {TEACHERS}, m = {STUDENTS}. A start a thousand times smaller escapes "
        f"{' and '.join(f'{gap:.3f}' for gap in later)} later ((p_V/gam_V) ln 1000 = {plateau.lengthening(1e3):.3f}). "
        f"Group sizes have variance {end['counts'].values.var():.2f} ({alone:.2f} if each student chose alone); "
        f"{100 * float(end['stayed'].mean()):.0f} % of the students end at the teacher that was nearest at the start. "
    )
    cases = []
    for row in (hard.isel(case=i) for i in range(hard.sizes["case"])):
        at = f"k = {float(row['teachers']):.0f}, m = {float(row['students']):.0f}, d = {float(row['dim']):.0f}"
        stuck = float(row["stuck"])
        level = f" ({stuck:.0f} at rest, lowest at the loss {float(row['level']):.6f})" if stuck else ""
        cases.append(f"{float(row['reached']):.0f} of {float(row['runs']):.0f} for {at}{level}")
    return f"{text}Loss below {RECOVERED:g}: {'; '.join(cases)}."


FIGURE = Figure("beyond_gaussian", "Gaussian starts: collapse, escape, and who gets whom", compute, sheet, ours=True)
