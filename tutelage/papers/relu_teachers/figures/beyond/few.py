"""Fewer students than teachers: do they copy or average?"""

import numpy as np
import xarray as xr
from scipy.optimize import minimize

from tutelage.analysis import GREY, Mark, Panel, Sheet, line, seed_lines
from tutelage.papers.relu_teachers.figures.beyond.common import TEACHERS, last, trained
from tutelage.papers.relu_teachers.kernel import gradient, loss
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.study import Figure, Size

PATTERNS: dict[int, dict[str, list[list[float]]]] = {
    1: {"average of four": [[0.5, 0.5, 0.5, 0.5]]},
    2: {
        "copy + average of three": [[1.0, 0.1, 0.1, 0.1], [0.0, 0.5, 0.5, 0.5]],
        "two averages of two": [[0.7, 0.7, 0.1, 0.1], [0.1, 0.1, 0.7, 0.7]],
    },
    3: {
        "two copies + average of two": [[1.0, 0.1, 0.2, 0.2], [0.1, 1.0, 0.2, 0.2], [0.0, 0.0, 0.7, 0.7]],
        "three copies share the fourth": [[1.0, 0.1, 0.1, 0.3], [0.1, 1.0, 0.1, 0.3], [0.1, 0.1, 1.0, 0.3]],
    },
}
"""Symmetric students, one row each: entries that are equal here stay equal. By symmetry, where the loss is least among
such students it is stationary among all."""
STUDENTS: dict[Size, tuple[int, ...]] = {"quick": (2, 3), "full": (1, 2, 3)}


def level(pattern: list[list[float]]) -> float:
    """The least loss of students with the symmetry of `pattern`, for orthogonal unit teachers along the axes.

    ```python
    >>> from tutelage.papers.relu_teachers.figures.beyond.few import level
    >>> round(level([[0.5, 0.5]]), 5)  # one student, two teachers: the plateau
    0.08851

    ```
    """
    start, entries = np.unique(pattern, return_inverse=True)
    entries = entries.reshape(np.shape(pattern))
    axes = np.eye(entries.shape[1])

    def value(numbers: np.ndarray) -> tuple[float, np.ndarray]:
        slopes = gradient(numbers[entries], axes)
        return loss(numbers[entries], axes), np.bincount(entries.ravel(), slopes.ravel(), minlength=len(numbers))

    return float(minimize(value, start, jac=True, tol=1e-12).fun)


def compute(settings: ReluTeachersSettings, size: Size, *, students: tuple[int, ...] | None = None) -> xr.DataTree:
    """Gaussian starts of one, two and three students for four teachers."""
    parts = {
        f"m{m}": _run(trained(size, 2500, pace=1.5, students=m, dim=settings.dim).dataset, m)
        for m in students or STUDENTS[size]
    }
    return xr.DataTree.from_dict(parts)


def _run(data: xr.Dataset, students: int) -> xr.Dataset:
    ordered = -np.sort(-last(data, "overlap_cos").transpose("seed", "student", "teacher").values, axis=-1)
    levels = {name: level(pattern) for name, pattern in PATTERNS[students].items()}
    return xr.Dataset(
        {
            "loss": data["loss"],
            "final": last(data, "loss"),
            "gradient": last(data, "gradient_norm"),
            "cosines": (("seed", "student", "rank"), ordered),
            "level": ("pattern", list(levels.values())),
            "pattern": list(levels),
        }
    )


def _parts(tree: xr.DataTree) -> dict[int, xr.Dataset]:
    return {m: tree[f"m{m}"].to_dataset() for m in PATTERNS if f"m{m}" in tree.children}


def sheet(tree: xr.DataTree) -> Sheet:
    parts = _parts(tree)
    panels = [_losses(data, m) for m, data in parts.items()]
    return Sheet(
        "Beyond the paper: fewer students than teachers",
        (*panels, _cosines(parts)),
        columns=min(len(panels) + 1, 3) if len(panels) != 3 else 2,
        caption=_caption(parts),
    )


def _losses(data: xr.Dataset, students: int) -> Panel:
    """The loss above the lowest known level, so that two close levels can be told apart."""
    levels = dict(zip(data["pattern"].values, data["level"].values, strict=True))
    name, lowest = min(levels.items(), key=lambda item: item[1])
    above = (data["loss"] - lowest).where(data["loss"] > lowest)
    higher = {n: value - lowest for n, value in levels.items() if value > lowest}
    return Panel(
        f"{students} student{'s' if students > 1 else ''}, {TEACHERS} teachers",
        "time",
        f"loss - {lowest:.5f}",
        tuple(seed_lines(data["time"], above, "one line per seed", colour=students - 1, most=16)),
        marks=tuple(Mark(f"{n}: + {value:.5f}", level=float(value)) for n, value in higher.items()),
        xscale="log",
        yscale="log",
        xlim=(1.0, float(data["time"][-1])),
        ylim=(1e-7, 3.0),
        note=f"Zero is the level of: {name}.",
    )


def _cosines(parts: dict[int, xr.Dataset]) -> Panel:
    series = []
    for m, data in parts.items():
        best, second = (data["cosines"].isel(rank=i).values.ravel() for i in (0, 1))
        series.append(line(best, second, f"m = {m}", kind="points", colour=m - 1))
    corners = (line([1.0], [0.0], "copy", kind="points", marker="*", colour=GREY),)
    averages = [1 / np.sqrt(n) for n in (2, 3, 4)]
    marks = line(averages, averages, "average of 2, 3, 4", kind="points", marker="x", colour=GREY)
    return Panel(
        "where the students end",
        "largest cosine to a teacher",
        "second largest",
        (*series, *corners, marks),
        xlim=(0.45, 1.03),
        ylim=(-0.05, 0.8),
    )


def ends(data: xr.Dataset) -> dict[str, int]:
    """How many seeds end within 1 % of the loss of each pattern and nearest to it."""
    gaps = np.abs(data["final"].values[:, None] / data["level"].values - 1)
    nearest = np.where(gaps.min(1) < 0.01, gaps.argmin(1), -1)
    return {str(name): int((nearest == i).sum()) for i, name in enumerate(data["pattern"].values)}


def _caption(parts: dict[int, xr.Dataset]) -> str:
    texts = []
    for m, data in parts.items():
        counts, values = ends(data), dict(zip(data["pattern"].values, data["level"].values, strict=True))
        found = ", ".join(f"{name} ({values[name]:.5f}): {counts[name]}" for name in counts)
        texts.append(
            f"m = {m}: {found} of {data.sizes['seed']} seeds; final losses from {float(data['final'].min()):.5f} to "
            f"{float(data['final'].max()):.5f}"
        )
    return (
        f"Gaussian starts, k = {TEACHERS} orthogonal teachers. Levels are stationary points with the symmetry named, "
        f"found by minimising the loss within it; seeds are counted to the nearest one. {'; '.join(texts)}."
    )


FIGURE = Figure("beyond_few", "Fewer students than teachers: copy or average", compute, sheet, ours=True)
