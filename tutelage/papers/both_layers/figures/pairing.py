"""Figures 6 to 8: with r outputs and 2r units, units end in antiparallel pairs."""

import functools

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Series, Sheet, line
from tutelage.dynamics import Record
from tutelage.papers.both_layers.pairs import pair_up
from tutelage.papers.both_layers.recipe import run, target_matrix
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.study import Figure, Size


def compute(settings: BothLayersSettings, size: Size, *, outputs: int) -> xr.Dataset:
    chosen = BothLayersSettings(
        dim=settings.dim, outputs=outputs, width=2 * outputs, init="xavier", scale=1e-8, steps=4000
    )
    result = run(
        chosen, seeds=[0], record=Record(np.arange(0, 4001, 4), weights=True, observables=("loss", "gradient_norm"))
    )
    data = result.dataset.isel(seed=0, drop=True)
    first, second = data["weights_first"].values[-1], data["weights_second"].values[-1]
    target = np.pad(target_matrix(chosen), ((0, 0), (0, first.shape[1] - outputs)))
    found = pair_up(second, first, target)
    attrs = {
        "mutual": int(found.mutual),
        "largest_angle_defect": float(max(found.first_angle.max(), found.second_angle.max())),
        "largest_norm_gap": float(max(np.abs(found.first_gap).max(), np.abs(found.second_gap).max())),
        "residual": found.residual,
    }
    return data.assign(partner=("student", found.partner)).assign_attrs(attrs)


def _panel(title: str, paths: np.ndarray, partner: np.ndarray, note: str) -> Panel:
    series: list[Series] = []
    lead = [i for i in range(len(partner)) if i < partner[i]]
    few = len(lead) <= 5
    for colour, unit in enumerate(lead):
        for other in (unit, int(partner[unit])):
            x, y = paths[:, other, 0], paths[:, other, 1]
            label = f"pair {unit + 1}, {partner[unit] + 1}" if other == unit and few else ""
            series.append(line(x, y, label, colour=colour))
            series.append(line(x[-1:], y[-1:], kind="points", marker="*", colour=colour))
        ends = paths[-1, [unit, int(partner[unit])]]
        series.append(line(ends[:, 0], ends[:, 1], dash="dashed", colour=colour, faint=True))
    return Panel(title, "first coordinate", "second coordinate", tuple(series), note=note)


def sheet(dataset: xr.Dataset) -> Sheet:
    partner = dataset["partner"].values
    outputs = len(partner) // 2
    about = dataset.attrs
    loss = Panel(
        "loss",
        "time (step x updates)",
        "population loss",
        (line(dataset["time"].values[1:], np.maximum(dataset["loss"].values[1:], 1e-17), colour=0),),
        marks=(Mark("floor of rounding", level=1e-16),),
        xscale="log",
        yscale="log",
    )
    panels = (
        _panel(
            "(a) outgoing weights",
            dataset["weights_second"].values,
            partner,
            f"norm gap {about['largest_norm_gap']:.1e}",
        ),
        _panel(
            "(b) incoming weights",
            dataset["weights_first"].values,
            partner,
            f"angle defect {about['largest_angle_defect']:.1e}",
        ),
        loss,
    )
    number = {3: 6, 5: 7, 10: 8}[outputs]
    return Sheet(
        f"Figure {number}: pairing, r = {outputs}, k = {2 * outputs}",
        panels,
        columns=3,
        caption=f"Population gradient descent, both layers, Xavier start of scale 1e-8, d = 100, step 0.1, one seed. "
        "Two coordinates of every unit; one colour per pair (seven in turn), stars at the end, dashed lines through "
        "the two partners. Directions within a pair are opposite to rounding; norms agree up to an error of the order "
        f"of the step. |sum over pairs of V_i w_i^T - A| = {about['residual']:.1e}.",
    )


FIGURES = tuple(
    Figure(f"fig{number}", f"Pairing for r = {r} outputs", functools.partial(compute, outputs=r), sheet)
    for number, r in ((6, 3), (7, 5), (8, 10))
)
