"""What every paper must do: settings that hold together, a run by each of its dynamics, claims that can fail."""

import ast
import re

import numpy as np
import pytest
from tables import PAPERS, pieces_of, strings

import tutelage as tt
from tutelage.analysis.claims import Kind, Verdict
from tutelage.trajectory.measures import foreseen

pytestmark = pytest.mark.usefixtures("quickly_compiled")
EVERY = pytest.mark.parametrize("name", PAPERS)
RUNS = [(name, dynamics) for name in PAPERS for dynamics in tt.papers.get(name).dynamics]


def test_every_paper_is_in_the_table():
    assert set(PAPERS) == set(tt.papers.names())


@EVERY
def test_settings_are_read_back_and_bad_ones_are_refused(name):
    paper = tt.papers.get(name)
    for values in ({}, PAPERS[name].settings, *paper.presets.values()):
        settings = paper.configure(values)
        assert paper.settings.model_validate_json(settings.model_dump_json()) == settings
    assert all(field.description for field in paper.settings.model_fields.values())
    assert set(paper.aliases.values()) <= set(paper.settings.model_fields)
    for bad in ({"no such setting": 1}, {"dim": -1}, {"dim": "many"}):
        with pytest.raises(tt.BadInput) as refusal:
            paper.configure(bad)
        assert str(refusal.value).endswith(".") and "\n" not in str(refusal.value)


@EVERY
def test_presets_are_told(name):
    """The paper's own sizes are a preset where a command takes others, and times are those of presets."""
    paper = tt.papers.get(name)
    assert set(paper.takes) <= set(paper.presets) and all(seconds > 0 for seconds in paper.takes.values())
    if "short" in paper.presets:
        assert paper.own in paper.takes and paper.configure(paper.presets["short"]) != paper.settings()


@pytest.mark.parametrize(("name", "dynamics"), RUNS)
def test_a_small_run_by_each_dynamics(name, dynamics):
    paper = tt.papers.get(name)
    settings = paper.configure(PAPERS[name].settings)
    done = paper.run(settings, dynamics=dynamics, seeds=2, record=6)
    assert done.dataset.sizes["seed"] == 2 and done.dataset.attrs["paper"] == name
    assert paper.settings.model_validate_json(done.dataset.attrs["paper_settings"]) == settings
    # Times of what has not happened are not numbers; nothing is infinite.
    numbers = [values.values for values in done.dataset.data_vars.values() if values.dtype.kind == "f" and values.size]
    assert any(np.isfinite(values).all() for values in numbers) and not any(
        np.isinf(values).any() for values in numbers
    )
    if "loss" in done.dataset:
        assert done.dataset["loss"].dtype == np.float64 and np.all(np.isfinite(done.dataset["loss"].values))
        assert set(done.stopped) <= {tt.StopReason.HORIZON, tt.StopReason.CONVERGED}
    assert done.summary()
    foretold = foreseen(done.asked)
    assert foretold is not None or done.stages
    if foretold is not None:
        assert dims(done).items() <= dims(foretold).items()  # and what might be asked for besides


def dims(run):
    return {name: values.dims for name, values in run.dataset.data_vars.items()}


@EVERY
def test_another_dynamics_is_refused(name):
    paper = tt.papers.get(name)
    with pytest.raises(tt.BadInput, match="knows the dynamics"):
        paper.run(paper.configure(PAPERS[name].settings), dynamics="no such dynamics")


@EVERY
def test_claims_say_what_and_where(name):
    claims = tt.papers.get(name).claims
    assert claims and len({claim.id for claim in claims}) == len(claims)
    for claim in claims:
        assert claim.where and claim.setting and callable(claim.check), claim.id
        assert claim.statement.endswith("."), claim.id
        assert claim.kind is Kind.OURS or not claim.where.startswith("new"), claim.id
        assert claim.expected is Verdict.HOLDS or (claim.explanation and not claim.must_hold), claim.id


@EVERY
def test_claims_say_whose_statement_they_are(name):
    """A reading says what was chosen; a slip names the claim of the corrected statement; neither is an alarm."""
    claims = {claim.id: claim for claim in tt.papers.get(name).claims}
    for claim in claims.values():
        assert bool(claim.reading) == (claim.kind is Kind.READING), claim.id
        assert bool(claim.mended) == (claim.kind is Kind.SLIP), claim.id
        assert not claim.mended or claims[claim.mended].kind is not Kind.SLIP, claim.id
        assert not claim.must_hold or claim.kind in (Kind.PAPER, Kind.OURS), claim.id
        assert not claim.unconditional or re.match("Theorem|Corollary", claim.where), claim.id


def planted(name) -> set[str]:
    """Claims of a paper that some test has seen to change their verdict."""
    row, ids = PAPERS[name], {claim.id for claim in tt.papers.get(name).claims}
    found = set(row.besides)
    for file, places in row.planted.items():
        for place in places:
            here = strings(pieces_of(file)[place]) & ids
            assert here, f"{file}::{place} names no claim of {name}"
            found |= here
    return found


@EVERY
def test_every_claim_can_fail(name):
    """It has a planted error, or is in the list of those that have none; and nobody is in that list who has one."""
    ids, found, without = {claim.id for claim in tt.papers.get(name).claims}, planted(name), PAPERS[name].unplanted
    assert found | set(without) == ids and not found & set(without)
    assert all(without.values())


@EVERY
def test_plants_are_where_they_are_said_to_be(name):
    """Tests exist, tables are gone through by a test, and each speaks of a verdict."""
    row = PAPERS[name]
    places = [(file, place) for file, named in row.planted.items() for place in named]
    places += [tuple(where.split("::")) for where in row.besides.values()]
    for file, place in places:
        nodes = pieces_of(file)
        assert place in nodes, f"{file} has no {place}"
        if not place.lower().startswith("test"):
            users = [node for other, node in nodes.items() if other.startswith("test") and place in names(node)]
            assert users and any("verdict" in names(node) for node in users), f"nobody goes through {place} of {file}"
        else:
            assert names(nodes[place]) & {"verdict", "Verdict"}, f"{file}::{place} speaks of no verdict"


def names(node) -> set[str]:
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return found | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
