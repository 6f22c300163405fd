"""Teachers of unequal weight: who is recovered first, and what happens when the output weights learn too."""

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Series, Sheet, binomial_interval, line
from tutelage.papers.soft_moe.constants import Constants
from tutelage.papers.soft_moe.figures.beyond.common import (
    by_teacher,
    changed,
    diagonal,
    first_met,
    flows,
    predicted,
    starts,
)
from tutelage.papers.soft_moe.matching import race
from tutelage.papers.soft_moe.races import Race, Start
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.study import Figure, Size

LIGHTEST, HEAVIEST = 0.6, 1.6
DIM: dict[str, int] = {"fixed": 10**5, "learned": 10**3}
SEEDS: dict[Size, int] = {"quick": 3, "full": 24}
UNTIL: dict[Size, float] = {"quick": 1000.0, "full": 3000.0}  # of the runs whose output weights learn
RECORDS = 60


def compute(settings: SoftMoeSettings, size: Size) -> xr.DataTree:
    """Orthonormal starts; output weights that stay 1, and output weights that learn."""
    weights = settings.alphas or tuple(np.geomspace(LIGHTEST, HEAVIEST, settings.teachers).round(2).tolist())
    chosen = changed(settings, alphas=weights, init="orthonormal", until=None)
    seeds = SEEDS[size]
    fixed = _fixed(changed(chosen, dim=DIM["fixed"]), seeds)
    learned = _learned(changed(chosen, dim=DIM["learned"], trains="all"), seeds, UNTIL[size])
    return xr.DataTree.from_dict({"fixed": fixed, "learned": learned})


def _fixed(settings: SoftMoeSettings, seeds: int) -> xr.Dataset:
    begun = starts(settings, seeds)
    expected = predicted(settings, seeds)
    until = 1.1 * float(np.nanmax(expected)) + 5
    seen = Race(settings, seeds, until, records=2)
    students = np.array([start.race.winners(settings.teachers) for start in begun])
    plain = [race(s.cosines, s.norms) for s in begun]
    return xr.Dataset(
        {
            "predicted": (("seed", "teacher"), expected),
            "observed": (("seed", "teacher"), np.where(np.isfinite(seen.times), seen.times, np.nan)),
            "same": (("seed", "teacher"), (seen.winners == students).astype(int)),
            "plain": (("seed", "teacher"), [by_teacher(p, settings.teachers) for p in plain]),
        },
        {"alpha": ("teacher", settings.importance)},
        {"dim": settings.dim},
    )


def slow_times(start: Start, settings: SoftMoeSettings) -> np.ndarray:
    """Times (m, m*) in which a student with an output weight that learns finds a teacher, at leading order.

    The output weight follows `da/dt = alpha p! c_0^2 g^p - p! E[gate^2] a`. It falls from 1 at the rate
    `p! E[gate^2]`, in which time the overlap still moves a little; then it is slaved,
    `a = alpha c_0^2 g^p / E[gate^2]`, so that the overlap of either sign moves as `dg/dt = F g^(2p - 1)` with
    `F = p p! c_0^4 alpha^2 / (E[gate^2] b^2)`: a time of order `dim^(p - 1)`, in place of `dim^(p/2 - 1)`.
    """
    constants = Constants.of(settings.gate, settings.degree)
    p, alpha = settings.degree, settings.importance
    inverse = start.norms[:, None] ** -2
    pull = constants.force * constants.mean**2 * inverse
    decay = 2 * constants.quantum
    size = np.abs(start.cosines)
    early = size ** -(p - 2.0) - (p - 2) * np.sign(start.cosines) * pull * alpha / decay
    moved = np.maximum(early, 1.0) ** (-1 / (p - 2))
    force = pull * constants.mean**2 / constants.square * alpha**2
    return 1 / ((2 * p - 2) * force * moved ** (2 * p - 2))


def _learned(settings: SoftMoeSettings, seeds: int, until: float) -> xr.Dataset:
    expected = np.array([slow_times(start, settings).min(0) for start in starts(settings, seeds)])
    times = np.concatenate([[0.0], np.geomspace(0.05, until, RECORDS)])
    run = flows(settings, seeds, until, times)
    second = run.dataset["second"].isel(output=0, drop=True)
    return xr.Dataset(
        {
            "predicted": (("seed", "teacher"), expected),
            "observed": (("seed", "teacher"), first_met(run)),
            "second": second,
            "loss": run.dataset["loss"],
        },
        attrs={"dim": settings.dim},
    )


def grown(learned: xr.Dataset, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Output weights that are large in the end, and how far their sizes are from the nearest teacher's weight."""
    last = learned["second"].isel(time=-1).values
    large = last[np.abs(last) > alphas.min() / 2]
    return large, np.abs(np.abs(large)[:, None] - alphas).min(1)


def earliest(times: xr.DataArray) -> np.ndarray:
    """The first time of each seed; infinite if it has none."""
    return np.nan_to_num(times.values, nan=np.inf).min(1)


def in_order(predicted: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Whether the teachers of each seed are recovered in the order of the predicted times."""
    return np.all(np.argsort(predicted, axis=1) == np.argsort(observed, axis=1), axis=1)


def sheet(tree: xr.DataTree) -> Sheet:
    fixed, learned = tree["fixed"].to_dataset(), tree["learned"].to_dataset()
    panels = (
        Panel(
            "output weights fixed at 1",
            "predicted time",
            "time at which the teacher is recovered",
            (*_points(fixed, fixed["alpha"].values), diagonal(fixed["predicted"], fixed["observed"])),
            xscale="log",
            yscale="log",
        ),
        Panel(
            "output weights that learn: seed 0",
            "time",
            "|a_i|",
            tuple(_weights(learned)),
            marks=tuple(Mark("", level=float(a)) for a in fixed["alpha"].values),
            xscale="log",
            yscale="log",
            ylim=(1e-5, 3),
            note="One line per student; dashed levels are the weights alpha_j of the teachers.",
        ),
        Panel(
            "output weights that learn",
            "predicted time",
            "time at which the teacher is recovered",
            (*_points(learned, fixed["alpha"].values), diagonal(learned["observed"])),
            xscale="log",
            yscale="log",
        ),
    )
    return Sheet("Beyond the paper: teachers of unequal weight", panels, columns=3, caption=_caption(fixed, learned))


def _points(data: xr.Dataset, alphas: np.ndarray) -> list[Series]:
    return [
        line(data["predicted"][:, j], data["observed"][:, j], f"alpha = {a:g}", kind="points", colour=j)
        for j, a in enumerate(alphas)
    ]


def _weights(learned: xr.Dataset) -> list[Series]:
    time, rows = learned["time"].values[1:], np.abs(learned["second"].isel(seed=0).values[1:])
    used = [i for i in np.argsort(-rows[-1]) if rows[-1, i] > 1e-5]
    return [line(time, rows[:, i], colour=n % 6) for n, i in enumerate(used[:10])]


def _caption(fixed: xr.Dataset, learned: xr.Dataset) -> str:
    predicted, observed = fixed["predicted"].values, fixed["observed"].values
    seeds, good = len(observed), in_order(predicted, observed)
    plain = in_order(fixed["plain"].values, observed)
    interval = binomial_interval(int(good.sum()), seeds)
    off = np.nanmax(np.abs(observed / predicted - 1))
    slow = learned["observed"].values / learned["predicted"].values
    first = earliest(learned["observed"]) / earliest(learned["predicted"])
    met = np.isfinite(learned["observed"].values)
    end = float(learned["time"][-1])
    large, gap = grown(learned, fixed["alpha"].values)
    return (
        f"{seeds} orthonormal starts. Fixed output weights, d = {DIM['fixed']}: {int(np.isfinite(observed).sum())} of "
        f"{observed.size} teachers recovered, {int(fixed['same'].sum())} by the predicted student, times within "
        f"{100 * off:.1f} % of the prediction; the order is the predicted one in {int(good.sum())} of {seeds} seeds "
        f"(99 % interval {interval.low:.2f} to {interval.high:.2f}), and that of equal weights in {int(plain.sum())}. "
        f"Output weights that learn, d = {DIM['learned']}: {int(met.sum())} of {met.size} recovered by time {end:g}, "
        f"times over predicted ones {np.nanmedian(slow):.2f} in the median ({np.nanmin(slow):.2f} to "
        f"{np.nanmax(slow):.2f}), of each seed's first {np.median(first):.2f}. In the end {len(large)} output "
        f"weights are large, {int(np.sum(large < 0))} of them negative; {int(np.sum(gap < 0.01))} are within 0.01 of a "
        f"teacher's in size."
    )


FIGURE = Figure("beyond_alphas", "Teachers of unequal weight, and output weights that learn", compute, sheet, ours=True)
