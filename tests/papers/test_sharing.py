"""What claims and figures share is computed once: they ask the store that is in use, and keep nothing themselves."""

import pytest

import tutelage as tt
from tutelage.papers.beyond_ntk import stops
from tutelage.papers.soft_moe import races
from tutelage.papers.soft_moe.figures import training
from tutelage.store import fetching
from tutelage.store.store import Store

SMALL_MIXTURE = {"students": 6, "teachers": 2, "dim": 1000, "until": 20.0, "init": "orthonormal"}


@pytest.fixture
def performed(monkeypatch) -> list[str]:
    """The names of all runs that are computed, and not only read."""
    names = []

    def perform(asked, real=fetching.perform, **options):
        names.append(asked.identity)
        return real(asked, **options)

    monkeypatch.setattr(fetching, "perform", perform)
    return names


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setitem(stops.PLANS, "quick", stops.Plan(6, 12, 8.0, 16.0, 1))
    monkeypatch.setitem(races.SEEDS, "quick", 2)
    monkeypatch.setitem(training.SGD, "quick", {"step": 0.01, "batch": 16, "until": 0.1})


@pytest.mark.parametrize(
    ("paper", "values", "claims"),
    [
        ("both_layers", {}, ("BL18", "BL47")),
        ("relu_teachers", {}, ("P2-ANGLE:k=1", "P2-ANGLE:k=2")),
        ("soft_moe", SMALL_MIXTURE, ("SM-T1a", "SM-T1b")),
        ("beyond_ntk", {}, ("E6", "E6:stages")),
    ],
)
def test_claims_that_share_runs_compute_them_once(performed, tmp_path, paper, values, claims):
    chosen = getattr(tt.papers, paper)
    settings = chosen.configure(values)
    with Store(tmp_path).in_use():
        together = chosen.check(settings, seeds=2, only=claims)
        computed = list(performed)
        assert computed and len(set(computed)) == len(computed)
        # Another check of either finds all of its runs, with the same numbers.
        for claim in claims:
            again = chosen.check(settings, seeds=2, only=(claim,))
            assert again[claim].finding == together[claim].finding
    assert performed == computed


def test_without_a_store_they_share_one_for_as_long_as_the_check_lasts(performed):
    chosen = tt.papers.beyond_ntk
    for _ in range(2):
        chosen.check(only=("E6", "E6:stages"))
    assert len(performed) == 2 * len(set(performed)) > 0  # nothing is kept in the process


def test_figures_and_claims_share_too(performed, tmp_path):
    paper = tt.papers.soft_moe
    settings = paper.configure(SMALL_MIXTURE | {"init": "iid"})
    with Store(tmp_path).in_use():
        paper.figure("fig1").compute(settings, "quick")
        computed = list(performed)
        for id in ("fig2", "annihilation"):
            paper.figure(id).compute(settings, "quick")
        paper.check(settings, seeds=2, only=("SM-PAIRS",))
    assert len(computed) == 2 and performed == computed  # a flow and SGD
