"""Reproduction writes every file, and one crash loses nothing else."""

import dataclasses
import json
from functools import partial

import numpy as np
import pytest
import xarray as xr

from tutelage import _interrupt
from tutelage._errors import BadInput
from tutelage.analysis.claims import Claim
from tutelage.present import reproduce as reproduce_module
from tutelage.present.reproduce import plan, reproduce
from tutelage.study import Figure


def boom(*_):
    raise RuntimeError("kaboom")


def test_it_writes_figures_data_claims_and_report(registered, tmp_path):
    told = []
    made = reproduce(out=tmp_path, seeds=4, progress=lambda *step: told.append(step))
    assert made.ok and made.report == tmp_path / "report.html"
    data = xr.load_dataset(tmp_path / "tiny/fig1.nc", engine="h5netcdf")
    np.testing.assert_array_equal(data.loss, [1.0, 0.5, 0.1])
    assert data.attrs["paper"] == "tiny" and json.loads(data.attrs["settings"])["dim"] == 100
    assert data.attrs["dim"] == 100  # what the figure itself recorded stays
    assert (tmp_path / "tiny/fig1.png").read_bytes().startswith(b"\x89PNG")
    claims = json.loads((tmp_path / "claims.json").read_text())
    assert [c["id"] for c in claims["papers"]["tiny"]] == ["T01", "T02", "T03", "T04", "T05"]
    assert claims["papers"]["tiny"][0]["seeds"] == 4 and claims["size"] == "quick"
    # Figures and claims are made side by side, each in its order.
    assert [(done, total) for _, done, total in told] == [(number, 6) for number in range(6)]
    assert [label for label, *_ in told if "claim" in label] == [f"tiny: claim T0{n}" for n in range(1, 6)]
    assert "tiny: figure fig1" in [label for label, *_ in told]


def test_single_figures_come_without_claims(registered, tmp_path):
    (result,) = reproduce(["tiny/fig1"], out=tmp_path).results
    assert len(result.figures) == 1 and len(result.table) == 0


def test_a_crash_is_kept_and_the_rest_goes_on(registered, paper, tmp_path):
    figures = (Figure("fig0", "Crashes", boom, boom), *paper.figures)
    claims = (Claim("T00", "", "crashes", "", boom), *paper.claims)
    registered(dataclasses.replace(paper, figures=figures, claims=claims))
    made = reproduce(out=tmp_path)
    (result,) = made.results
    assert not made.ok and made.report.is_file()
    assert [f.figure.id for f in result.figures] == ["fig1"] and len(result.table) == 6
    assert [c.what for c in result.crashes] == ["figure fig0", "claim T00"]
    assert "kaboom" in made.report.read_text()


def test_evidence_that_crashes_is_one_crash(registered, paper, tmp_path):
    registered(dataclasses.replace(paper, evidence=boom))
    (result,) = reproduce(out=tmp_path).results
    assert [c.what for c in result.crashes] == ["claims"] and len(result.figures) == 1


def test_a_crashing_certificate_is_kept_too(registered, paper, tmp_path):
    registered(dataclasses.replace(paper, recipe=dataclasses.replace(paper.recipe, problem=boom)))
    (result,) = reproduce(out=tmp_path, certify=True).results
    assert [c.what for c in result.crashes] == ["certificate"]


def test_plan(registered, paper):
    other = dataclasses.replace(paper, name="other")
    registered(paper, other)
    assert [(p.name, f) for p, f in plan(())] == [("tiny", None), ("other", None)]
    assert plan(["tiny/fig1", "tiny"]) == plan(["tiny", "tiny/fig1"]) == [(paper, None)]
    assert plan(["other/fig1"]) == [(other, paper.figures)]
    with pytest.raises(BadInput, match="did you mean 'other'"):
        plan(["othr"])


def test_a_paper_of_ones_own_need_not_be_registered(registered, paper, tmp_path):
    own = dataclasses.replace(paper, name="own")
    assert plan([own, "tiny"]) == [(own, None), (paper, None)] and plan([own, "own/fig1"]) == [(own, None)]
    made = reproduce([own], out=tmp_path)
    (result,) = made.results
    assert made.ok and result.paper is own and len(result.table) == 5 and (tmp_path / "own/fig1.png").is_file()
    with pytest.raises(BadInput, match="Two papers of targets have the name 'tiny'"):
        plan(["tiny", dataclasses.replace(paper)])
    with pytest.raises(BadInput, match=r"targets is .* but a list of papers, or of names such as 'both_layers'"):
        reproduce([1], out=tmp_path)
    with pytest.raises(BadInput, match="targets is Study.'tiny'., but a list of papers"):
        reproduce(paper, out=tmp_path)


def test_a_folder_that_cannot_be_made(registered, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="choose another"):
        reproduce(out=tmp_path / "file" / "report")


def test_a_stop_is_obeyed_before_the_next_part(registered, paper, tmp_path):
    (figure,), begun = paper.figures, []

    def stops(settings, size):
        begun.append(size)
        _interrupt.ask_to_stop()
        return figure.compute(settings, size)

    registered(dataclasses.replace(paper, figures=(dataclasses.replace(figure, compute=stops),), claims=()))
    with _interrupt.gentle_signals():
        assert reproduce(["tiny/fig1"], out=tmp_path).ok
        with pytest.raises(_interrupt.Interrupted):
            reproduce(["tiny/fig1"], out=tmp_path)
    assert begun == ["quick"]


def named(paper, name, compute):
    """A paper with two figures, of which the second says more."""
    (figure,) = paper.figures
    figures = tuple(dataclasses.replace(figure, id=id, compute=partial(compute, name, id)) for id in ("one", "two"))
    return dataclasses.replace(paper, name=name, figures=figures, telling="two")


def test_the_most_telling_figure_of_every_paper_comes_first(registered, paper, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce_module, "AT_ONCE", 1)
    order = []

    def compute(name, id, settings, size):
        order.append(f"{name}/{id}")
        return paper.figures[0].compute(settings, size)

    registered(named(paper, "a", compute), named(paper, "b", compute))
    made = reproduce(out=tmp_path)
    assert order == ["a/two", "b/two", "a/one", "b/one"]
    assert [drawn.figure.id for drawn in made.results[0].figures] == ["two", "one"]


def test_the_report_is_there_from_the_first_part_on(registered, paper, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce_module, "AT_ONCE", 1)
    monkeypatch.setattr(reproduce_module._Page, "OFTEN", 0.0)
    pages = []

    def compute(name, id, settings, size):
        if (tmp_path / "report.html").exists():
            pages.append((tmp_path / "report.html").read_text())
        return paper.figures[0].compute(settings, size)

    registered(named(paper, "a", compute))
    made = reproduce(out=tmp_path)
    (early,), late = pages, made.report.read_text()  # all but figure "one", which is being made
    assert 'id="two"' in early and "T05" in early and 'id="one"' not in early
    assert "1 part still to come" in early and "Still to come: figure one." in early
    assert "to come" not in late and 'id="one"' in late and made.ok


def test_a_stopped_reproduction_leaves_a_report_of_what_was_made(registered, paper, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce_module, "AT_ONCE", 1)

    def compute(name, id, settings, size):
        if id == "one":
            _interrupt.ask_to_stop()
        return paper.figures[0].compute(settings, size)

    two = named(paper, "a", compute)
    registered(dataclasses.replace(two, claims=()), dataclasses.replace(two, name="b", claims=()))
    with _interrupt.gentle_signals(), pytest.raises(_interrupt.Interrupted):
        reproduce(out=tmp_path)
    text = (tmp_path / "report.html").read_text()
    assert text.count('id="two"') == 2 and text.count('id="one"') == 1 and text.count("to come: figure one.") == 1
    assert not (tmp_path / "claims.json").exists()
