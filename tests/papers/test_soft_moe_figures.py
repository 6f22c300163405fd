"""The figures of `soft_moe`, computed small: panels and labels, and facts that a wrong curve would not have."""

import numpy as np
import pytest
from papers.figures import again

from tutelage.papers.soft_moe import races
from tutelage.papers.soft_moe.figures import FIGURES, findings, training
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.present.figures import draw

SMALL = SoftMoeSettings(students=8, teachers=2, dim=1000, until=40.0)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setitem(training.SGD, "quick", {"step": 0.01, "batch": 256, "until": 1.0})
    monkeypatch.setitem(races.SEEDS, "quick", 2)
    monkeypatch.setattr(races, "LARGE", 10**6)
    monkeypatch.setitem(races.LARGE_SEEDS, "quick", {"iid": 2, "orthonormal": 2})
    monkeypatch.setitem(races.SWEEPS, "quick", ((10**4, 10**6), 2))


def test_ids_are_unique_and_the_papers_own_figures_are_marked_as_such():
    assert len({figure.id for figure in FIGURES}) == len(FIGURES)
    assert [figure.id for figure in FIGURES if not figure.ours] == ["fig1", "fig2", "fig3a", "fig3b"]


def test_tables_and_curves_of_the_same_two_runs(tmp_path):
    dataset = again(training.compute(SMALL, "quick"), tmp_path)
    tables, curves = training.tables(dataset), training.curves(dataset)
    assert [panel.title.split(",")[0] for panel in tables.panels] == ["Routers", "Experts"] * 2
    flow = dataset["flow"].to_dataset()
    experts = tables.panels[1].fields[0]
    assert experts.cells and experts.values.shape == (8, 2)
    np.testing.assert_array_equal(experts.values, flow["overlap_expert"].values[-1])
    dashed = [series for series in curves.panels[0].series if series.dash == "dashed"]
    winners = training._winners(flow)
    np.testing.assert_array_equal(dashed[1].y, flow["overlap_expert"].values[:, winners[1], 1])
    assert curves.panels[0].series[-1].right and "256" in curves.caption
    draw(tables)
    draw(curves)


def test_both_runs_start_alike():
    dataset = training.compute(SMALL, "quick")
    first = [dataset[name].to_dataset()["overlap_expert"].values[0] for name in ("flow", "sgd")]
    np.testing.assert_allclose(*first, atol=1e-14)


def test_pairs_that_cancel(tmp_path):
    dataset = again(findings.annihilation(SMALL, "quick"), tmp_path)
    sheet = findings.pairs_sheet(dataset)
    early = dataset.sel(time=slice(0, 12))
    assert (early["experts"].min("time") < -0.9).all() and (np.abs(dataset["experts"][:, 0]) < 0.2).all()
    seen = np.isfinite(dataset["observed"].values)
    # Leading-order times at d = 1000: right to tens of per cent, and most come.
    assert seen.mean() > 0.5
    ratio = (dataset["observed"] / dataset["predicted"]).values[seen]
    assert 0.8 < np.median(ratio) < 1.4
    draw(sheet)


def test_order_and_plateaus_share_their_runs(tmp_path):
    dataset = again(findings.order(SMALL, "quick"), tmp_path)
    right = {init: dataset[init].to_dataset()["right"].values for init in ("iid", "orthonormal")}
    assert right["orthonormal"].all() and not right["iid"].all()
    one = dataset["orthonormal"].to_dataset()
    np.testing.assert_allclose(one["observed"], one["predicted"], rtol=0.02)
    sheet = findings.order_sheet(dataset)
    assert "4 of 4" in sheet.caption
    draw(sheet)
    level = again(findings.plateaus(SMALL, "quick"), tmp_path)
    # Ten units that know nothing of each other, each worth a quantum: overlaps at d = 1e6 are 1e-3.
    np.testing.assert_allclose(level["level"][:, 0], 10.0, atol=1e-4)
    draw(findings.plateau_sheet(level))


def test_time_against_dimension(tmp_path):
    dataset = again(findings.dimension(SMALL, "quick"), tmp_path)
    assert 0.48 < dataset.attrs["exponent"] < 0.5 and dataset.attrs["low"] <= dataset.attrs["exponent"]
    sheet = findings.dimension_sheet(dataset)
    fitted = next(series for series in sheet.panels[0].series if "fitted" in series.label)
    slope = np.polyfit(np.log(fitted.x), np.log(fitted.y), 1)[0]
    assert slope == pytest.approx(dataset.attrs["exponent"])
    draw(sheet)
