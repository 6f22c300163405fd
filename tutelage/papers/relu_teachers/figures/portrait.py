"""The exact plane of symmetric states: why the students go to the mean direction first."""

import math

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Field, Mark, Panel, Series, Sheet, line
from tutelage.papers.relu_teachers.hessian import hessian
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.papers.relu_teachers.symmetric import FixedPoint, Symmetric
from tutelage.study import Figure, Size

TEACHERS = (2, 4)
COPIES = 3
# Lengths are in units of |v|/n, the component of a student at the minimum.
ALPHAS, BETAS = (-0.7, 1.7), (-0.3, 1.1)
SMALL = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)  # starts on the own teacher
OUTER = ((1.4, 0.45), (1.4, 0.15), (1.4, -0.2), (0.9, -0.25), (0.4, -0.25), (-0.2, -0.25), (0.8, 0.65), (-0.4, 0.05))
BEYOND = (0.3, 1.2)  # a start on the other side of the mean direction
RECORDS = 400
LEVELS = (0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
MARKERS = {"origin": "o", "plateau": "s", "minimum": "*", "far": "X"}


def compute(settings: ReluTeachersSettings, size: Size) -> xr.DataTree:
    """Loss and flow on a grid, trajectories from small and from outer starts, fixed points."""
    points = 81 if size == "quick" else 201
    planes = {f"k{k}": _plane(Symmetric(k, COPIES), points) for k in TEACHERS}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"copies": COPIES}), **planes})


def _plane(plane: Symmetric, points: int) -> xr.Dataset:
    unit = plane.norm / plane.copies
    # The loss has a kink at the origin, which the grid must not hit.
    alphas, betas = (unit * np.linspace(*ends, points) + 1e-9 for ends in (ALPHAS, BETAS))
    times = np.concatenate([[0.0], np.geomspace(1e-4, 60.0, RECORDS - 1)])
    paths = np.array([plane.flow(*start, times, rtol=1e-7) for start in _starts(plane)])
    fixed = [*plane.fixed_points, _far(plane)]
    return xr.Dataset(
        {
            "loss": (
                ("beta", "alpha"),
                plane.loss(*np.meshgrid(alphas, betas)),
                {"long_name": "population loss / |v|^2"},
            ),
            "path_alpha": (("path", "time"), paths[:, 0]),
            "path_beta": (("path", "time"), paths[:, 1]),
            "path_loss": (("path", "time"), plane.loss(paths[:, 0], paths[:, 1])),
            "fixed_alpha": ("fixed", [point.alpha for point in fixed]),
            "fixed_beta": ("fixed", [point.beta for point in fixed]),
            "fixed_loss": ("fixed", [point.loss for point in fixed]),
            "fixed_least": ("fixed", [point.rates[0] for point in fixed]),
            "fixed_most": ("fixed", [point.rates[-1] for point in fixed]),
            "fixed_curvature": ("fixed", [_least_curvature(plane, point) for point in fixed]),
        },
        {"alpha": alphas, "beta": betas, "time": times, "fixed": [f"{p.name} ({p.kind})" for p in fixed]},
    )


def _far(plane: Symmetric) -> FixedPoint:
    """Where beta > alpha leads: with two teachers the minimum with the teachers exchanged, with more a point above it.

    The latter attracts within this plane only (see `_least_curvature`).
    """
    unit = plane.norm / plane.copies
    alphas, betas = plane.flow(unit * BEYOND[0], unit * BEYOND[1], [0.0, 100.0], rtol=1e-7)
    alpha, beta = float(alphas[-1]), float(betas[-1])
    rates = np.sort(np.linalg.eigvals(plane.jacobian(alpha, beta)).real)
    return FixedPoint("far", alpha, beta, float(plane.loss(alpha, beta)), tuple(float(rate) for rate in rates))


def _least_curvature(plane: Symmetric, point: FixedPoint) -> float:
    """The least eigenvalue of the Hessian in the whole space, where students of a group may part; nan at the origin."""
    if point.name == "origin":
        return math.nan
    students = plane.weights(point.alpha, point.beta)
    return float(np.linalg.eigvalsh(hessian(students, plane.norm * np.eye(plane.teachers)))[0])


def _starts(plane: Symmetric) -> list[tuple[float, float]]:
    """Starts on the own teacher, ever smaller, then the outer ones."""
    unit = plane.norm / plane.copies
    return [(unit * alpha, unit * beta) for alpha, beta in (*((size, 0.0) for size in SMALL), *OUTER)]


def sheet(tree: xr.DataTree) -> Sheet:
    planes = {k: tree[f"k{k}"].to_dataset() for k in TEACHERS}
    return Sheet(
        "The plane of symmetric states: smaller starts pass nearer to the plateau",
        tuple(_panel(k, plane) for k, plane in planes.items()),
        caption=f"Groups of {tree.attrs['copies']} equal students: component alpha on their own teacher, beta on "
        "every other one. Flow and descent never leave this plane, and the reduction to it is exact. "
        + " ".join(_sentence(k, plane) for k, plane in planes.items()),
    )


def _sentence(k: int, plane: xr.Dataset) -> str:
    names = [str(name) for name in plane["fixed"].values]
    saddle, far = (plane.isel(fixed=_index(names, wanted)) for wanted in ("plateau", "far"))
    gaps = [plane[f"path_{name}"].values - float(saddle[f"fixed_{name}"]) for name in ("alpha", "beta")]
    nearest = np.hypot(gaps[0], gaps[1]).min(1)
    text = (
        f"k = {k}: the plateau has loss {float(saddle['fixed_loss']):.4f} |v|^2 and rates "
        f"{float(saddle['fixed_least']):+.3f} and {float(saddle['fixed_most']):+.3f}; starts on the own teacher of "
        f"norm {SMALL[0]:g} to {SMALL[-1]:g} |v|/n pass it at a distance of {nearest[0]:.3f} to "
        f"{nearest[len(SMALL) - 1]:.4f} |v|."
    )
    if _exchanged(plane):
        text += " The far sink is the minimum with the two teachers exchanged."
    elif far["fixed_curvature"] < 0:
        text += (
            f" The far end, of loss {float(far['fixed_loss']):.3f} |v|^2, attracts within this plane only: the least "
            f"eigenvalue of the whole Hessian there is {float(far['fixed_curvature']):.3f}."
        )
    return text


def _index(names: list[str], wanted: str) -> int:
    return next(index for index, name in enumerate(names) if name.startswith(wanted))


def _panel(k: int, plane: xr.Dataset) -> Panel:
    paths = [plane.isel(path=index) for index in range(plane.sizes["path"])]
    names = {0: "small starts", len(SMALL): "other starts"}
    series = [
        line(path["path_alpha"], path["path_beta"], names.get(index, ""), colour=GREY if index >= len(SMALL) else 1)
        for index, path in enumerate(paths)
    ]
    alphas, betas = plane["alpha"].values, plane["beta"].values
    return Panel(
        f"k = {k}",
        "on the own teacher, alpha / |v|",
        "on each other teacher, beta / |v|",
        (*series, *_points(plane)),
        fields=(Field(alphas, betas, plane["loss"].values, "loss / $|v|^2$", LEVELS),),
        marks=tuple(arrow for path in paths for arrow in _arrows(path)),
        xlim=(alphas[0], alphas[-1]),
        ylim=(betas[0], betas[-1]),
    )


def _points(plane: xr.Dataset) -> list[Series]:
    """The fixed points that lie in the window."""
    found = []
    for index, name in enumerate(plane["fixed"].values):
        alpha, beta = float(plane["fixed_alpha"][index]), float(plane["fixed_beta"][index])
        if beta < plane["beta"].values[-1]:
            marker = MARKERS[str(name).split()[0]]
            label = _far_label(plane) if str(name).startswith("far") else str(name)
            found.append(line([alpha], [beta], label, kind="points", marker=marker, colour=3))
    return found


def _exchanged(plane: xr.Dataset) -> bool:
    """That the far end is the minimum with two teachers exchanged."""
    return bool(plane.isel(fixed=_index([str(name) for name in plane["fixed"].values], "far"))["fixed_loss"] < 1e-6)


def _far_label(plane: xr.Dataset) -> str:
    return "teachers exchanged (sink)" if _exchanged(plane) else "sink of this plane only"


def _arrows(path: xr.Dataset) -> tuple[Mark, ...]:
    """The sense of a path, shown in the middle of it."""
    alpha, beta = path["path_alpha"].values, path["path_beta"].values
    way = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(alpha), np.diff(beta)))])
    middle = int(np.searchsorted(way, 0.4 * way[-1]))
    return (Mark("", arrow=(alpha[middle - 1], beta[middle - 1], alpha[middle], beta[middle])),)


FIGURE = Figure("portrait", "The plane of symmetric states", compute, sheet, ours=True)
