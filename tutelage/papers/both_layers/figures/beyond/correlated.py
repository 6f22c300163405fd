"""Correlated inputs: what small starts align with, and which of them succeed."""

import numpy as np
import xarray as xr

from tutelage import descend
from tutelage.analysis import Mark, Panel, Sheet, binomial_interval, line
from tutelage.dynamics import Record
from tutelage.papers.both_layers.laws import success_law
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.papers.both_layers.start import both_signs
from tutelage.problem import Gaussian, GaussianEntries, GaussianRows, Problem, TwoLayer
from tutelage.study import Figure, Size

COVARIANCE = np.array([[2.125, 1.875], [1.875, 2.125]])
"""Of the first two inputs: variances 4 and 1/4 along the diagonals."""
PULL = COVARIANCE[:, 0]
"""C a for a = e_1, towards which weights grow; 41 degrees away from a."""
STEP, SCALE, UPDATES = 0.05, 1e-8, 3000
WIDTHS: dict[Size, tuple[int, ...]] = {"quick": (2,), "full": (2, 3, 4, 6)}
TRIALS: dict[Size, int] = {"quick": 60, "full": 600}


def correlated(dim: int, width: int) -> Problem:
    """The paper's problem with inputs of covariance COVARIANCE in the first two coordinates, Xavier start."""
    student = TwoLayer(
        "relu",
        first=GaussianRows(SCALE * np.sqrt(2 / (width + dim))),
        second=GaussianEntries(SCALE * np.sqrt(2 / (1 + width))),
        width=width,
    )
    teacher = TwoLayer("linear", first=[[1.0]], second=[[1.0]])
    return Problem(inputs=Gaussian(dim, covariance=COVARIANCE), teacher=teacher, student=student)


def compute(settings: BothLayersSettings, size: Size, *, trials: int | None = None) -> xr.DataTree:
    """The angles of two units in time, and the outcome of many starts."""
    outcomes, rules = [], []
    widths, count = WIDTHS[size], trials or TRIALS[size]
    for width in widths:
        record = Record([0, UPDATES], observables=("loss",))
        run = descend(correlated(settings.dim, width), step=STEP, steps=UPDATES, seeds=count, record=record)
        pull = np.asarray(run.start.first)[..., :2] @ PULL / np.linalg.norm(PULL)
        modes = np.asarray(run.start.second)[..., 0] + pull
        outcomes.append(run.last("loss").values < 1e-6)
        rules.append(both_signs(modes))
    dims = ("width", "trial")
    ends = xr.Dataset({"success": (dims, np.array(outcomes)), "rule": (dims, np.array(rules))}, {"width": list(widths)})
    seed = int(np.argmax(outcomes[0]))
    record = Record(np.arange(0, UPDATES + 1, 4), weights=True, observables=("loss",))
    one = descend(correlated(settings.dim, 2), step=STEP, steps=UPDATES, seeds=[seed], record=record)
    return xr.DataTree.from_dict({"ends": ends, "one": one.dataset.isel(seed=0, drop=True)})


def angles_to(rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Angles of rows (..., n) to the line of a direction of the first two coordinates, in degrees."""
    unit = direction / np.linalg.norm(direction)
    along = rows[..., :2] @ unit
    across = np.sqrt(np.maximum(np.sum(rows**2, axis=-1) - along**2, 0.0))
    return np.degrees(np.arctan2(across, np.abs(along)))


def sheet(tree: xr.DataTree) -> Sheet:
    one, ends = tree["one"].to_dataset(), tree["ends"].to_dataset()
    time, rows, loss = one["time"].values, one["weights_first"].values, one["loss"].values
    half = int(np.argmax(loss < 0.9 * loss[0]))
    apart = float(angles_to(np.eye(1, 2), PULL)[0])
    angles = Panel(
        "what two units align with",
        "time (step x updates)",
        "angle of $w_1$, $w_2$ to the line (degrees)",
        (
            line(time, angles_to(rows[:, 0], np.array([1.0, 0.0])), "of a", colour=0),
            line(time, angles_to(rows[:, 1], np.array([1.0, 0.0])), colour=0, dash="dotted"),
            line(time, angles_to(rows[:, 0], PULL), "of C a", colour=1),
            line(time, angles_to(rows[:, 1], PULL), colour=1, dash="dotted"),
        ),
        marks=(Mark("loss down by a tenth", at=float(time[half])), Mark("between a and C a", level=apart)),
        xlim=(0, 60),
        ylim=(0, 95),
    )
    widths, counts, trials = ends["width"].values, ends["success"].values.sum(1), ends.sizes["trial"]
    intervals = [binomial_interval(int(count), trials) for count in counts]
    fine = np.linspace(2, max(widths[-1], 3), 100)
    chances = Panel(
        "small random starts",
        "number of units k",
        "probability of reaching zero loss",
        (
            line(
                widths,
                counts / trials,
                f"measured, {trials} starts per point",
                kind="points",
                colour=0,
                low=np.array([i.low for i in intervals]),
                high=np.array([i.high for i in intervals]),
            ),
            line(fine, [success_law(k) for k in fine], "law 1 - 2^(1-k)", dash="dashed", colour=1),
        ),
        ylim=(0.3, 1.05),
    )
    right = int((ends["rule"] == ends["success"]).sum())
    closest, last = float(angles_to(rows[half], PULL).max()), float(angles_to(rows[-1], np.eye(1, 2)[0]).max())
    return Sheet(
        "Beyond the paper: correlated inputs",
        (angles, chances),
        caption="Inputs of variance 4 and 1/4 along the diagonals of the first two coordinates, a = e_1, so that a and "
        f"C a are {apart:.1f} degrees apart; population gradient descent, d = 100, both layers, Xavier starts of scale "
        f"1e-8, step {STEP:g}. Left: one seed, $w_1$ solid, $w_2$ dotted; when the loss has fallen by a tenth both are "
        f"within {closest:.2f} degrees of the line of C a, and at the end within {last:.1g} of that of a. Right: bars "
        "are exact 99% binomial intervals; the signs of v_i(0) + (C a).w_i(0)/|C a| foretell "
        f"{right} of {ends['success'].size} outcomes.",
    )


FIGURE = Figure("beyond_correlated", "Correlated inputs", compute, sheet, ours=True)
