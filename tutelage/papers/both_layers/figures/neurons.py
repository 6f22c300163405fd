"""Figures 1 and 2: neurons moving in the plane of the target and one orthogonal direction."""

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Field, Mark, Panel, Series, Sheet, line
from tutelage.dynamics import Record
from tutelage.papers.both_layers.figures.common import path, plane
from tutelage.papers.both_layers.recipe import run
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.papers.both_layers.slices import line_slice
from tutelage.study import Figure, Size

ARROWS = (Mark("a", arrow=(0, 0, 1, 0)), Mark("-a", arrow=(0, 0, -1, 0)))
OBSERVED = ("loss", "gradient_norm", "second")


def _trajectory(settings: BothLayersSettings, seed: int = 0, record: int = 300) -> xr.Dataset:
    result = run(settings, seeds=[seed], record=Record(record, weights=True, observables=OBSERVED))
    return result.dataset.isel(seed=0, drop=True)


def compute_1(settings: BothLayersSettings, size: Size) -> xr.DataTree:
    """(a) a small start, (b) a start around 1.5 a, both with v = (1, -1) fixed; (c) the slice w_i = alpha_i a."""
    base = {"dim": settings.dim, "trains": "first", "width": 2}
    small = _trajectory(BothLayersSettings(**base, scale=0.2, steps=400))
    saddle = _trajectory(BothLayersSettings(**base, scale=0.1, offset=1.5, steps=10_000))
    alpha = np.linspace(-2, 3, 201)
    surface = xr.DataArray(
        line_slice(alpha[None, :], alpha[:, None]),
        coords={"alpha_2": alpha, "alpha_1": alpha},
        dims=("alpha_2", "alpha_1"),
        attrs={"long_name": "population loss over |a|^2", "units": "1"},
    )
    return xr.DataTree.from_dict({"small": small, "saddle": saddle, "slice": xr.Dataset({"loss": surface})})


def _colour(sign: float) -> int:
    """The paper's colours: red for positive and blue for negative outgoing weights, as far as the palette has them."""
    return 1 if sign > 0 else 0


def _plane_panel(title: str, data: xr.Dataset, note: str, xlim: tuple[float, float], stop: float = np.inf) -> Panel:
    data = data.sel(time=slice(None, stop))
    x, y = plane(data["weights_first"].values)
    signs = np.sign(data["second"].values[-1, :, 0])
    series: list[Series] = []
    for unit, sign in enumerate(signs):
        name = "+" if sign > 0 else "-"
        series += path(x[:, unit], y[:, unit], f"$w_{unit + 1}$ (v {name})", _colour(sign))
    half = (xlim[1] - xlim[0]) / 2
    return Panel(
        title, ALONG, ACROSS, tuple(series), marks=ARROWS, note=note, xlim=xlim, ylim=(-half, half), equal_axes=True
    )


def sheet_1(tree: xr.DataTree) -> Sheet:
    small, saddle = tree["small"].to_dataset(), tree["saddle"].to_dataset()
    surface = tree["slice"].to_dataset()["loss"]
    alpha = surface["alpha_1"].values
    first = float(saddle["time"].values[np.searchsorted(saddle["step"].values, 1000)])
    stalled, final = saddle["loss"].sel(time=first, method="nearest"), saddle["loss"].values[-1]
    valleys = [np.array([0.0, 2.0]), np.array([-2.0, -1.0])]  # c > 0 and c < -1; between them there is a slope
    landscape = Panel(
        "(c) slice of the loss, w = alpha a",
        "$\\alpha_1$",
        "$\\alpha_2$",
        (
            line(valleys[0] + 1, valleys[0], "saddles, c > 0", dash="dashed", colour=GREY),
            line(valleys[1] + 1, valleys[1], "saddles, c < -1", dash="dotted", colour=GREY),
            line([1], [-1], "global minimum", kind="points", marker="*", colour=3),
            line([2], [1], "saddle (2a, a)", kind="points", marker="s", colour=1),
        ),
        fields=(Field(alpha, alpha, surface.values, "loss / $|a|^2$"),),
        xlim=(-2, 3),
        ylim=(-2, 3),
    )
    panels = (
        _plane_panel("(a) small start", small, f"ends at loss {small['loss'].values[-1]:.1e}", (-1.3, 1.3)),
        _plane_panel(
            "(b) start near 1.5 a",
            saddle,
            f"loss {float(stalled):.6f} after 1000 updates, {final:.1e} after 10 000",
            (-1.3, 2.3),
            stop=first,
        ),
        landscape,
    )
    return Sheet(
        "Figure 1: where two neurons go, v = (1, -1) fixed",
        panels,
        columns=3,
        caption="Population gradient descent, d = 100, step 0.1, one seed each; crosses are starts, stars are ends, "
        "arrows are a and -a. (a) starts at the scale 0.2, (b) around 1.5 a with a perturbation of 0.1; its first "
        "1000 updates are shown. It stalls at the saddle (2a, a), not at (a, 2a) as the paper's caption says, and "
        "leaves later (see the figure on the escape). (c): the gradient vanishes on the part of the line alpha_1 - "
        "alpha_2 = 1 with c = alpha_2 > 0 (dashed) or c < -1 (dotted), and not between them.",
    )


ALONG, ACROSS = "component along a", "component along an orthogonal direction"
WIDTHS = (3, 6, 8)


def compute_2(settings: BothLayersSettings, size: Size) -> xr.DataTree:
    """Four units in the three regimes the text could mean, and other numbers of units from a small start."""
    common = {"dim": settings.dim, "init": "xavier"}
    fixed = _trajectory(BothLayersSettings(**common, width=4, scale=1.0, trains="first", steps=3000), seed=1)
    large = _trajectory(BothLayersSettings(**common, width=4, scale=1.0, steps=30_000), seed=1)
    small = {
        f"k{k}": _trajectory(
            BothLayersSettings(**common, width=k, scale=1e-8, steps=1500), seed=_mixed(settings.dim, k)
        )
        for k in (4, *WIDTHS)
    }
    return xr.DataTree.from_dict({"fixed": fixed, "large": large, **small})


def _mixed(dim: int, width: int) -> int:
    """The first seed whose small start has half of its units on each side, so that group sums say something."""
    from tutelage.papers.both_layers.recipe import problem
    from tutelage.papers.both_layers.start import growing_modes

    for seed in range(1000):
        start = problem(BothLayersSettings(dim=dim, init="xavier", width=width, scale=1e-8)).begin(seed)
        modes = growing_modes(start.student.second[:, 0], start.student.first, start.teacher.first[0])
        if np.sum(modes > 0) == width // 2:
            return seed
    raise AssertionError("no seed among 1000 has half of its units on each side")


def _group_panel(title: str, data: xr.Dataset, *, weighted: bool) -> Panel:
    x, y = plane(data["weights_first"].values)
    second = data["second"].values[:, :, 0]
    signs = np.sign(second[-1])
    series: list[Series] = []
    for unit, sign in enumerate(signs):
        label = ("v > 0" if sign > 0 else "v < 0") if unit in (signs.argmax(), signs.argmin()) else ""
        series += path(x[:, unit], y[:, unit], label, _colour(sign))
    size = np.abs(second[-1]) if weighted else np.ones_like(second[-1])
    for sign, marker, colour in ((1, "D", 3), (-1, "D", 2)):
        inside = signs == sign
        point = [(size * inside) @ x[-1]], [(size * inside) @ y[-1]]
        name = f"sum over v {'>' if sign > 0 else '<'} 0" + (", times |v|" if weighted else "")
        series.append(line(*point, name, kind="points", marker=marker, colour=colour))
    half = 1.15 * max(1.0, float(np.max(np.abs([x, y]))))
    return Panel(
        title,
        ALONG,
        ACROSS,
        tuple(series),
        marks=ARROWS,
        note=f"final loss {_shown(float(data['loss'].values[-1]), several_lines=not weighted)}",
        xlim=(-half, half),
        ylim=(-half, half),
        equal_axes=True,
    )


def _shown(loss: float, *, several_lines: bool) -> str:
    """With units on several lines the loss is known to about 1e-16 only (see `oracle.stable.linear_teacher`)."""
    return "below 1e-16" if several_lines and loss < 1e-16 else f"{loss:.1e}"


def sheet_2(tree: xr.DataTree) -> Sheet:
    panels = (
        _group_panel("k = 4, v fixed at +1, -1, scale 1", tree["fixed"].to_dataset(), weighted=False),
        _group_panel("k = 4, both layers, scale 1", tree["large"].to_dataset(), weighted=True),
        *(
            _group_panel(f"k = {k}, both layers, scale 1e-8", tree[f"k{k}"].to_dataset(), weighted=True)
            for k in (4, *WIDTHS)
        ),
    )
    return Sheet(
        "Figure 2: more than two hidden units",
        panels,
        columns=3,
        caption="Population gradient descent from Xavier starts, d = 100, step 0.1, one seed each; crosses are "
        "starts, stars are ends. Orange and blue: positive and negative outgoing weights; diamonds, pink and "
        "green: sums of their groups at the end. With v fixed, units of this seed stay off the axis and plain group "
        "sums are a and -a, as the text says. With both layers trained from a small start every unit ends on the line "
        "of a, for every k, and sums must be weighted by |v|; from a start of scale 1 two units take part and others "
        "lose their outgoing weights.",
    )


FIGURE_1 = Figure("fig1", "Trajectories and landscape for two units", compute_1, sheet_1)
FIGURE_2 = Figure("fig2", "Trajectories for more than two units", compute_2, sheet_2)
