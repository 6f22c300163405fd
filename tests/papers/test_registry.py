"""The registry of papers: what is not asked for is not imported."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import tutelage as tt
from tutelage.papers.both_layers.claims import CLAIMS
from tutelage.papers.both_layers.evidence import Evidence
from tutelage.study import Study

MOST = 174  # modules of the 347 that a run imported when every paper, claim and figure came along
COMMAND = "from tutelage.present.cli import app\napp(standalone_mode=False)"
COMPUTING = {"jax", "xarray", "pandas", "scipy", "matplotlib"}
SELDOM = {"scipy.stats", "scipy.optimize", "scipy.integrate", "mpmath", "optax", "matplotlib", "loky"}
"""What no run needs, apart from those of `ROUTED`."""
ROUTED = "cluster_moe"
"""Its routers' probabilities are those of Gaussians in several dimensions, which `scipy.stats` has."""


def modules_after(code: str, *arguments: str) -> set[str]:
    """The modules that a process has imported when it ends."""
    end = "\nfinally:\n    print(json.dumps(list(sys.modules)))"
    source = "import json, sys\ntry:\n    " + code.replace("\n", "\n    ") + end
    done = subprocess.run([sys.executable, "-c", source, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_every_folder_is_a_paper_of_its_name():
    folders = {path.parent.name for path in Path(tt.papers.__file__).parent.glob("*/__init__.py")}
    assert set(tt.papers.names()) == set(tt.papers.subjects()) == folders
    for name in folders:
        paper = getattr(tt.papers, name)
        assert (
            isinstance(paper, Study) and paper.name == name and paper is tt.papers.get(name) and name in dir(tt.papers)
        )


def test_a_paper_stays_itself_when_its_folder_is_imported():
    """Python would put the folder in its place; `CLAIMS` above has imported it."""
    assert isinstance(sys.modules["tutelage.papers.both_layers"], type(sys))
    assert isinstance(tt.papers.both_layers, Study)


def test_an_unknown_paper_is_told():
    with pytest.raises(tt.BadInput, match="both_layers"):
        tt.papers.get("both_layer")
    with pytest.raises(AttributeError, match="tutelage.papers has no 'nothing'; it has beyond_ntk, both_layers"):
        _ = tt.papers.nothing


def test_what_is_deferred_is_what_its_module_holds():
    paper = tt.papers.both_layers
    assert tuple(paper.claims) == CLAIMS and paper.claims[:2] == CLAIMS[:2] and len(paper.claims) == len(CLAIMS)
    assert isinstance(paper.evidence(None, "quick", 2), Evidence)
    assert tuple(pickle.loads(pickle.dumps(paper.figures)))[0].id == paper.figures[0].id


def test_names_import_no_paper_and_a_paper_no_other():
    assert not any("both_layers" in module for module in modules_after("import tutelage\ntutelage.papers.subjects()"))
    for name in tt.papers.names():
        found = modules_after(f"import tutelage\ntutelage.papers.{name}()")
        own = {module for module in found if module.startswith("tutelage.papers.")}
        assert f"tutelage.papers.{name}.recipe" in own
        unwanted = [*set(tt.papers.names()) - {name}, "figures", "claims", "checks", "sweeps", "evidence"]
        assert not any(part in module.split(".") for module in own for part in unwanted)
        assert name == ROUTED or not SELDOM & found


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_papers_are_listed_without_what_computes(options):
    found = modules_after(COMMAND, "papers", *options)
    assert "tutelage.papers.cards" in found and not COMPUTING & found


def test_a_card_counts_what_there_is():
    for card in tt.papers.cards():
        paper = tt.papers.get(card.name)
        assert (card.figures, card.claims) == (len(paper.figures), len(paper.claims))


def test_a_run_imports_what_it_needs(tmp_path):
    run = ("run", "both_layers", "--seeds", "2", "--set", "steps=20", "--quiet", "--store", str(tmp_path))
    found = modules_after(COMMAND, *run)
    assert "tutelage.store.fetching" in found and not SELDOM & found
    assert sum(module.startswith("tutelage") for module in found) <= MOST


@pytest.mark.parametrize("name", tt.papers.names())
def test_the_most_telling_figure_is_one_of_the_papers(name):
    paper = tt.papers.get(name)
    assert paper.telling in [figure.id for figure in paper.figures]
