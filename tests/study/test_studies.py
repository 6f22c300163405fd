"""A study of one's own: a function, a file, an installed package. It has all that a paper has."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from pydantic import Field
from typer.testing import CliRunner

import tutelage as tt
from benchmarks._loopback import loopback
from tutelage.present.cli import app
from tutelage.study import Settings, registry
from tutelage.study.functions import settings_of

FLOW = tt.Flow(until=8.0)


def line(
    dim: Annotated[int, Field(ge=2), "the input dimension"] = 100, size: float = 1.0, scale: float = 0.01
) -> tt.Problem:
    """A linear student of a linear teacher of this size."""
    student = tt.TwoLayer("linear", first=tt.GaussianRows(scale * dim**-0.5), width=1, trains=("first",))
    return tt.Problem(tt.Gaussian(dim), tt.TwoLayer("linear", first=[[size]]), student)


def halving(run):
    """The time at which half of the loss is left."""
    return run.time.where(run.loss < 0.5 * run.loss.isel(time=0)).min("time")


@tt.claim("At time 8 a millionth of the loss is left.", where="Lemma 1", hypotheses={
    "the start is small": lambda run: tt.at_most(run.first_norm.isel(time=0), 0.1),
})  # fmt: skip
def learns(run):
    return tt.at_most(run.last("loss") / run.loss.isel(time=0), 1e-6)


@tt.claim("How long it takes does not depend on the size.", over={"size": [1.0, 2.0, 4.0]}, measure=halving)
def alike(sweep):
    times = sweep.halving
    return tt.at_most(times.max() - times.min(), 0.2)


def study(**parts) -> tt.Study:
    return tt.Study.of(line, dynamics=FLOW, **{"claims": [learns, alike]} | parts)


def cli(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


# ---- functions


def test_arguments_are_the_settings():
    model, build = settings_of(line, "line")
    assert model().model_dump() == {"dim": 100, "size": 1.0, "scale": 0.01}
    assert model.model_fields["dim"].description == "the input dimension"
    assert build(model(dim=10**9)).inputs.dim == 10**9
    with pytest.raises(tt.BadInput, match=r"line: setting 'dim' got 1: input should be greater than or equal to 2"):
        study()(dim=1)


def test_a_model_of_settings_may_be_the_argument():
    class Sizes(Settings):
        dim: int = 7

    def problem(settings: Sizes) -> tt.Problem:
        return line(dim=settings.dim)

    assert tt.Study.of(problem)(dim=9).problem.inputs.dim == 9


def _without(dim): ...
def _many(*dims): ...
def _array(rows=np.eye(2)): ...  # noqa: B008
def _reserved(copy=1): ...


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (_without, "the argument 'dim' has no default"),
        (_many, "the argument 'dims' has no default"),
        (_array, "the default of rows is array"),
        (_reserved, "a setting cannot be called 'copy'"),
        (lambda dim=3: dim, None),
        (3, "problem is 3, but a function of settings was expected"),
    ],
)
def test_what_cannot_be_a_study_is_refused(function, said):
    with pytest.raises(tt.BadInput, match=said or "What <lambda> gives is 3, but a problem"):
        tt.Study.of(function)().run()


def test_unknown_parts_and_dynamics_are_refused():
    with pytest.raises(tt.BadInput, match="Unknown part of a study 'claim': did you mean 'claims'"):
        tt.Study.of(line, claim=[])
    with pytest.raises(tt.BadInput, match="dynamics is 3, but a dynamics such as"):
        tt.Study.of(line, dynamics=3)
    with pytest.raises(tt.BadInput, match="knows the dynamics flow and descent, but 'sgd' was asked for"):
        tt.Study.of(line)().run(dynamics="sgd")
    with pytest.raises(tt.BadInput, match="a run by flow has no option 'untill'"):
        study()().run(dynamics="flow:untill=3")


def test_dynamics_by_name_with_changes_by_settings_and_as_objects():
    by_settings = tt.Study.of(line, dynamics={"long": lambda settings: tt.Flow(until=settings.size)})
    assert float(by_settings(size=3.0).run().stop_time[0]) == 3.0
    assert float(study()().run(dynamics="flow:until=2").stop_time[0]) == 2.0
    assert float(study()().run(dynamics=tt.Flow(until=1.0)).stop_time[0]) == 1.0


# ---- runs, sweeps and claims


def test_a_run_is_stored_and_read_and_its_problem_counts(tmp_path):
    first = study()(size=2.0).run(seeds=2, store=tmp_path)
    assert first.computed and not study()(size=2.0).run(seeds=2, store=tmp_path).computed
    assert study()(size=2.5).run(seeds=2, store=tmp_path).computed
    assert [entry.spec["paper"] for entry in tt.Store(tmp_path).entries()] == ["line", "line"]
    own = tt.Store(tmp_path).run(line(), FLOW)
    assert own.computed and not tt.flow(line(), until=8.0, store=tmp_path).computed


def test_a_function_is_swept_in_workers_that_do_not_have_its_file(tmp_path):
    swept = tt.sweep(
        line, over={"size": [1.0, 2.0], "dim": [10, 10**9]}, dynamics=FLOW, measure=[halving, "final_loss"], seeds=2,
        store=tmp_path, processes=2,
    )  # fmt: skip
    direct = tt.flow(line(dim=10**9, size=2.0), until=8.0, seeds=2, record=tt.Record(observables=("loss",)))
    assert not swept.failed and dict(swept.final_loss.sizes) == {"size": 2, "dim": 2, "seed": 2}
    np.testing.assert_allclose(swept.final_loss.sel(size=2.0, dim=10**9), direct.last("loss"), rtol=1e-14)


def test_settings_that_change_together_are_one_axis(tmp_path):
    def sizes(dim: int = 4, width: int = 4) -> tt.Problem:
        return line(dim=dim, size=float(width))

    swept = tt.sweep(sizes, over={"dim=width": [3, 5]}, measure="final_loss", seeds=1, store=tmp_path, processes=1)
    assert swept.final_loss.dims == ("dim", "seed") and swept.dim.attrs["long_name"] == "dim = width"
    assert float(swept.final_loss.sel(dim=5)[0]) == float(tt.Study.of(sizes)(dim=5, width=5).run().last("loss")[0])
    with pytest.raises(tt.BadInput, match="A setting is swept twice"):
        tt.sweep(sizes, over={"dim=width": [3], "width": [4]}, measure="final_loss", store=tmp_path)


def test_a_problem_has_nothing_to_sweep():
    with pytest.raises(tt.BadInput, match="A problem has no settings to go over; write a function"):
        tt.sweep(line(), over={"dim": [1]}, measure="final_loss")
    with pytest.raises(tt.BadInput, match="The study is 3, but the name of a study"):
        tt.sweep(3, over={"dim": [1]}, measure="final_loss")


def test_claims_hold_fail_or_do_not_apply():
    table = study().check(seeds=2)
    assert [row.finding.verdict.value for row in table.rows] == ["holds", "holds"]
    assert table["learns"].finding.seeds == 2
    (small,) = table["learns"].finding.hypotheses
    assert small.met and "the start is small: met (" in small.sentence
    # Planted errors: a run that ends too soon, and a rate that depends on the size.
    early = study().moving_by(tt.Flow(until=1.0)).check(only=("learns",), seeds=2)
    assert early["learns"].finding.verdict is tt.Verdict.FAILS and early["learns"].broken
    unlike = study().moving_by(lambda settings: tt.Flow(until=8.0, rates={"first": settings.size}))
    assert unlike.check(only=("alike",), seeds=1)["alike"].finding.verdict is tt.Verdict.FAILS
    large = study()(scale=1.0).check(only=("learns",), seeds=2)["learns"]
    assert large.finding.verdict is tt.Verdict.NOT_APPLICABLE and "not met" in large.finding.detail


def test_a_claim_must_say_what_it_found():
    silent = tt.claim("Nothing is said.")(lambda run: True)
    with pytest.raises(tt.BadInput, match="What the claim <lambda> returns is True, but a finding"):
        study(claims=[silent]).check(seeds=1)
    with pytest.raises(tt.BadInput, match=r"A claim about a sweep needs over=... and measure=..."):
        tt.claim("A sweep without a measure.", over={"dim": [1]})


def test_a_claim_may_be_larger_at_full_size():
    seen = []

    def counted(about):
        seen.append((about.size.size if hasattr(about, "size") else 0, about.dataset.sizes["seed"]))
        return tt.at_most(0.0, 1.0)

    swept = tt.claim("Of a sweep.", id="swept", over={"size": [1.0]}, measure="final_loss", seeds=1,
                     full={"over": {"size": [1.0, 2.0]}, "seeds": 2})(counted)  # fmt: skip
    run = tt.claim("Of a run.", id="run", full={"seeds": 3})(counted)
    for size in ("quick", "full"):
        found = study(claims=[swept, run]).check(size=size, seeds=2)
    assert seen == [(1, 1), (0, 2), (2, 2), (0, 3)] and found["run"].finding.seeds == 3
    with pytest.raises(tt.BadInput, match="Unknown part of a claim at full size 'over'"):
        tt.claim("Of a run.", full={"over": {"size": [1.0]}})
    with pytest.raises(tt.BadInput, match="Unknown part of a claim at full size 'seed'"):
        tt.claim("Of a run.", full={"seed": 3})


# ---- files


FILE = '''
"""A line, learned."""

import tutelage as tt
from beside import line

flow = tt.Flow(until=8.0)
short = tt.Flow(until=1.0)


@tt.claim("A millionth of the loss is left.")
def learns(run):
    return tt.at_most(run.last("loss") / run.loss.isel(time=0), 1e-6)


def study(size: float = 1.0) -> tt.Problem:
    return line(size=size)
'''


@pytest.fixture
def file(tmp_path) -> Path:
    source = Path(__file__).read_text(encoding="utf-8")
    body = source[source.index("def line(") : source.index("def halving(")]
    imports = "from typing import Annotated\n\nfrom pydantic import Field\n\nimport tutelage as tt\n\n\n"
    (tmp_path / "beside.py").write_text(imports + body, encoding="utf-8")
    (tmp_path / "mine.py").write_text(FILE, encoding="utf-8")
    return tmp_path / "mine.py"


def test_a_file_is_run_checked_swept_and_reported(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    ran = cli("run", "mine.py", "--set", "size=2", "--dynamics", "flow:until=9", "--seeds", 2, "--json")
    assert ran.exit_code == 0 and json.loads(ran.stdout)["stop_time"]["max"] == 9.0
    swept = cli("sweep", "mine.py", "--over", "size=1,2", "--measure", "final_loss", "--seeds", 1, "--processes", 2)
    assert swept.exit_code == 0, swept.output
    assert cli("check", "mine.py", "--seeds", 2).exit_code == 0
    done = cli("reproduce", "mine.py", "--seeds", 2, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)["papers"][0]
    assert (
        told["paper"] == "study"
        and told["verdicts"]["holds"] == 1
        and [f["id"] for f in told["figures"]] == ["overview"]
    )
    entry = next(each for each in tt.Store().entries() if each.kind == "run")
    assert "name its file, --study" in cli("show", entry.id, "--check").stderr
    assert cli("show", entry.id, "--check", "--study", "mine.py").exit_code == 0
    assert "has no phase diagrams" in cli("diagram", "mine.py").stderr


def test_a_claim_that_fails_makes_the_exit_code(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    broken = file.read_text(encoding="utf-8").replace("1e-6)", "1e-60)")
    file.write_text(broken, encoding="utf-8")
    done = cli("check", "mine.py", "--seeds", 1)
    assert done.exit_code == 1 and "learns must hold and fails" in done.stdout


def test_a_file_says_which_study_is_meant(file):
    more = file.read_text(encoding="utf-8") + "\n\ndef other(dim: int = 3) -> tt.Problem:\n    return line(dim=dim)\n"
    file.write_text(more, encoding="utf-8")
    with pytest.raises(tt.BadInput, match=r"has several studies, study, other; write .*mine.py:study"):
        registry.get(str(file))
    found = registry.get(f"{file}:other")
    assert found.name == "other" and found.dynamics == ("flow", "short") and [c.id for c in found.claims] == ["learns"]
    with pytest.raises(tt.BadInput, match="Unknown study of .*mine.py 'others': did you mean 'other'"):
        registry.get(f"{file}:others")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("x = 1", "has no study; write `def my_study"),
        ("1 / 0", "cannot be loaded .ZeroDivisionError: division by zero"),
        (None, "is not a Python file that can be read"),
    ],
)
def test_a_file_without_a_study_is_refused(tmp_path, body, said):
    if body is not None:
        (tmp_path / "bad.py").write_text(body, encoding="utf-8")
    done = cli("run", tmp_path / "bad.py")
    assert done.exit_code == 2 and len(done.stderr.splitlines()) == 1
    with pytest.raises(tt.BadInput, match=said):
        registry.get(str(tmp_path / "bad.py"))


# ---- an installed package


PACKAGE = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "sixth"
version = "0.1.0"

[project.entry-points."tutelage.studies"]
sixth = "sixth:STUDY"
broken = "sixth:NOTHING"

[tool.hatch.build.targets.wheel]
include = ["sixth.py", "beside.py"]
"""


@pytest.fixture
def installed(file, tmp_path, monkeypatch) -> None:
    """A package with a study, built and installed into a folder of its own, where processes find it."""
    source = tmp_path / "source"
    source.mkdir()
    (tmp_path / "beside.py").rename(source / "beside.py")
    body = (
        file.read_text(encoding="utf-8")
        + "\n\nSTUDY = tt.Study.of(study, name='sixth', dynamics=flow, claims=[learns])\n"
    )
    (source / "sixth.py").write_text(body, encoding="utf-8")
    (source / "pyproject.toml").write_text(PACKAGE, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", tmp_path / "site", source], check=True, capture_output=True)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    )
    monkeypatch.chdir(tmp_path)
    return dict(os.environ)


def test_an_installed_study_is_found_run_swept_checked_and_reported(installed, tmp_path):
    def command(*words):
        done = subprocess.run(
            [sys.executable, "-m", "tutelage", *map(str, words)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    listed = {each["name"]: each for each in json.loads(command("papers", "--json"))}
    assert listed["sixth"]["claims"] == 1 and {"both_layers", "soft_moe"} <= set(listed)
    assert "cannot be loaded (AttributeError" in listed["broken"]["title"]  # and hides no other
    assert json.loads(command("run", "sixth", "--seeds", 1, "--json"))["seeds"] == 1
    (tmp_path / "cluster").mkdir()
    with loopback(tmp_path / "cluster") as cluster:
        swept = ("sweep", "sixth", "--over", "size=1,2,4", "--measure", "final_loss", "--seeds", 2)
        assert "final_loss" in command(*swept, "--scheduler", cluster.address)
    done = json.loads(command("reproduce", "sixth", "--seeds", 2, "--json"))
    assert done["papers"][0]["verdicts"]["holds"] == 1 and Path(done["report"]).is_file()
