"""Figures of `both_layers` at small sizes, each with a fact that it must show."""

import numpy as np
import pytest
from papers.figures import again, shown

from tutelage.papers.both_layers.figures import beyond, escape, neurons, pairing
from tutelage.papers.both_layers.figures.beyond import correlated, momentum, wide
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.papers.both_layers.slices import line_slice

SETTINGS = BothLayersSettings(dim=20)


def test_the_escape_comes_when_it_is_predicted(monkeypatch, tmp_path):
    monkeypatch.setattr(escape, "PERTURBATIONS", (0.3,))
    data = escape.compute(SETTINGS, "quick")
    predicted, seen = escape.predicted_and_seen(data["s300"].to_dataset())
    assert predicted == pytest.approx(seen, rel=0.05)
    sheet = shown(escape.FIGURE, again(data, tmp_path))
    assert (sheet.panels[1].xscale, sheet.panels[1].yscale) == ("linear", "linear")
    path, law = sheet.panels[1].series
    early = law.x < law.x[0] + 20
    np.testing.assert_allclose(np.interp(law.x[early], path.x, path.y), law.y[early], rtol=0.02)


def test_the_valley_is_drawn_where_the_gradient_vanishes():
    sheet = neurons.FIGURE_1.sheet(neurons.compute_1(SETTINGS, "quick"))
    for series in sheet.panels[2].series[:2]:
        inside = np.linspace(series.x, series.x[::-1], 9)[1:-1, 0]
        for x in inside:
            y, h = x - 1, 1e-6
            slopes = [line_slice(x + h, y) - line_slice(x - h, y), line_slice(x, y + h) - line_slice(x, y - h)]
            assert np.max(np.abs(slopes)) < 1e-11
    for panel in sheet.panels[:2]:
        assert panel.equal_axes


def test_pairs_are_drawn_smoothly(tmp_path):
    sheet = shown(pairing.FIGURES[0], again(pairing.compute(SETTINGS, "quick", outputs=3), tmp_path))
    for panel in sheet.panels[:2]:
        for series in (each for each in panel.series if len(each.x) > 2):
            assert np.max(np.hypot(np.diff(series.x), np.diff(series.y))) < 0.1


def test_more_units_take_longer_and_need_not_pair(tmp_path):
    data = wide.compute(SETTINGS, "quick", widths=(6, 8), steps=1500)
    assert np.all(data["paired"].sel(width=6) == 1.0) and data["paired"].sel(width=8).mean() < 1.0
    assert np.median(data["reached"].sel(width=6)) < np.median(data["reached"].sel(width=8))
    shown(wide.FIGURE, again(data, tmp_path))


def test_momentum_shortens_the_plateau_by_its_law(tmp_path, monkeypatch):
    monkeypatch.setattr(momentum, "SPREAD", 0.4)
    monkeypatch.setattr(momentum, "BETAS", (0.0, 0.9))
    monkeypatch.setattr(momentum, "NOISES", (0.3,))
    data = momentum.compute(SETTINGS, "quick", updates=2500)
    times = []
    for beta in momentum.BETAS:
        part = data[f"beta{int(100 * beta)}"].to_dataset()
        times.append(float(part["step"].values[np.argmax(part["loss"].values < escape.LEFT)]))
    np.testing.assert_allclose(np.array(times) / times[0], 1 - np.array(momentum.BETAS), rtol=0.1)
    assert np.median(data["noise30"]["left"]) < np.median(data["noise30"]["law"])
    shown(momentum.FIGURE, again(data, tmp_path))


def test_units_align_with_the_pull_and_not_with_the_target(tmp_path):
    data = correlated.compute(SETTINGS, "quick", trials=8)
    ends, one = data["ends"], data["one"]
    assert np.all(ends["rule"] == ends["success"])
    loss, rows = one["loss"].values, one["weights_first"].values
    half = int(np.argmax(loss < 0.9 * loss[0]))
    assert np.all(correlated.angles_to(rows[half], correlated.PULL) < 1.0)
    assert np.all(correlated.angles_to(rows[-1], np.array([1.0, 0.0])) < 1e-3)
    shown(correlated.FIGURE, again(data, tmp_path))


def test_every_entry_is_a_figure_of_its_own():
    names = [figure.id for figure in beyond.FIGURES]
    assert len(set(names)) == 3 and all(figure.ours for figure in beyond.FIGURES)
