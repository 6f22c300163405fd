"""Contests: peers compute what tutelage computes, and what does not agree is not timed."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tutelage._errors import BadInput
from tutelage.bench import cases, machine, process, runner, timing, worker
from tutelage.bench.contest import Case, Contest, Entry, Limit, apart
from tutelage.bench.peers import plain_jax, plain_numpy

AGREE = [
    ("flow", "d=20, 20 records"),
    ("descent", "200 updates, d=30"),
    ("descent", "200 updates near the optimum, d=60, 4 seeds"),
    ("sgd", "batch 1, d=100"),
    ("sgd", "batch 64, d=10"),
    ("seeds", "4 seeds, k=m=d=8, 200 updates"),
    ("mixture", "25 experts of 5, d=100, to time 5"),
    ("samples", "d=10, m=20, 500 examples, 50 updates"),
    ("hessian", "k=m=4, d=12"),
    ("minima", "k=m=d=4, 6 starts to a gradient of 1e-12, in one call"),
    ("spherical", "30 units, d=20, float64"),
    ("normals", "float32, arrays of 24 by 512"),
]


def contest(case: str, name: str) -> Contest:
    return next(each for each in cases.get(case).contests(True) if each.name == name)


@pytest.mark.parametrize(("case", "name"), AGREE)
def test_peers_compute_what_tutelage_computes(case, name):
    chosen = contest(case, name)
    found = timing.checked(chosen)
    assert set(found) == {entry.name for entry in chosen.present[1:]} and found


@pytest.mark.parametrize("name", cases.NAMES)
@pytest.mark.parametrize("quick", [True, False])
def test_cases_are_built_without_computing(name, quick):
    contests = cases.get(name).contests(quick)
    names = [each.name for each in contests]
    assert len(set(names)) == len(names)
    assert not any(np.isnan(each.tolerance) for each in contests)


def test_every_goal_of_the_full_bench_is_there():
    goals = {
        (case, peer, goal)
        for case in cases.NAMES
        for each in cases.get(case).contests(False)
        for peer, goal in each.goals.items()
    }
    assert goals >= {
        ("flow", "diffrax Tsit5", 2.0), ("flow", "diffrax Tsit5", 10.0), ("flow", "torchdiffeq dopri5", 50.0),
        ("flow", "diffrax Kvaerno5", 20.0), ("descent", "plain JAX", 5.0), ("descent", "plain JAX", 3.0),
        ("sgd", "plain JAX", 1.0), ("mixture", "PyTorch, SGD", 100.0), ("samples", "plain JAX", 2.0),
        ("hessian", "jax.hessian", 3.0), ("hessian", "torch.autograd.functional.hessian", 10.0),
        ("minima", "NumPy", 30.0),
    }  # fmt: skip


def test_a_wrong_gradient_is_seen(monkeypatch):
    right = plain_numpy.gradient
    monkeypatch.setattr(plain_numpy, "gradient", lambda *rows: 1.001 * right(*rows))
    with pytest.raises(timing.Disagreement, match="tutelage and NumPy differ by .* at most 1e-05"):
        timing.checked(contest("seeds", "4 seeds, k=m=d=8, 200 updates"))


def test_a_wrong_step_is_seen_in_law(monkeypatch):
    right = plain_jax.sgd
    monkeypatch.setattr(plain_jax, "sgd", lambda key, w, t, step, *rest: right(key, w, t, 2 * step, *rest))
    with pytest.raises(timing.Disagreement, match="standard deviations"):
        timing.checked(contest("sgd", "batch 64, d=10"))


def toy(theirs: float = 1.0, **changes) -> tuple[Contest, list[str]]:
    """A contest, and who was called."""
    calls: list[str] = []

    def entry(name: str, value: float, **more) -> Entry:
        return Entry(name, lambda: calls.append(name) or np.array([value]), **more)

    entries = entry("tutelage", 1.0, work=4.0), entry("other", theirs), entry("absent", 0.0, needs=("no_such_package",))
    return Contest("toy", entries, 1e-3, **changes), calls


def test_what_agrees_is_timed_in_turn():
    chosen, calls = toy(1.0005, limit=Limit("nothing", lambda: 0.0), goals={"other": 2.0})
    found = worker.held("toys", chosen, timing.Plan(repeat=3))
    assert calls == ["tutelage", "other"] * 4
    assert found["apart"]["other"] == pytest.approx(5e-4, rel=1e-3)
    assert [found["times"][name]["count"] for name in ("tutelage", "other")] == [3, 3]
    assert found["left_out"] == {"absent": ("no_such_package",)} and found["goals"] == {"other": 2.0}


@pytest.mark.parametrize("value", [1.1, float("nan"), float("inf")])
def test_what_does_not_agree_is_not_timed(value, capsys):
    chosen, calls = toy(value)
    found = worker.held("toys", chosen, timing.Plan(repeat=3))
    assert "at most 0.001 was expected" in found["refused"] and "times" not in found
    assert calls == ["tutelage", "other"] and "not timed" in capsys.readouterr().out


def test_results_of_other_shapes_are_not_compared():
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\)"):
        apart(np.ones(2), np.ones(3))


def test_a_slow_entry_is_left_out_after_its_second_round(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock.now)

    def lasting(seconds: float):
        def wait():
            clock.now += seconds

        return wait

    entries = Entry("quick", lasting(0.01), work=2.0), Entry("slow", lasting(30.0))
    taken = timing.interleaved(entries, timing.Plan(repeat=5, patience=6.0))
    assert taken == {"quick": pytest.approx([0.005] * 5), "slow": [30.0] * 2}
    assert timing.spread([1.0, 2.0, 3.0, 4.0, 5.0]) == {"median": 3.0, "low": 2.0, "high": 4.0, "count": 5}


def test_a_contest_without_tutelage_is_a_mistake():
    with pytest.raises(AssertionError):
        Contest("none", (Entry("other", float),), 0.0)
    with pytest.raises(AssertionError):
        Contest("a goal against nobody", (Entry("tutelage", float),), 0.0, goals={"nobody": 2.0})


def test_a_case_in_a_process_of_its_own():
    """Compared, timed, and called first, in new processes."""
    lines: list[str] = []
    asked = {"case": "hessian", "quick": True, "repeat": 1, "patience": 0.1}
    found = process.ask("tutelage.bench.worker", asked, told=lines.append)
    (only,) = found["contests"]
    assert lines == ["hessian: k=m=4, d=12"]
    assert only["times"]["tutelage"]["median"] > 0 and only["apart"]["jax.hessian"] < 1e-8
    ours, theirs = (only["first"][name] for name in ("tutelage", "jax.hessian"))
    assert ours["cached"] > 0 and theirs["programs"] >= 1 and theirs["memory_mb"] >= theirs["memory_before_mb"] > 10


def test_a_process_that_says_nothing_is_told():
    with pytest.raises(process.Unfinished, match="platform ended with code 0 and no result"):
        process.ask("platform", {})


def test_a_process_that_takes_too_long_is_ended_with_all_that_it_has_begun(tmp_path, monkeypatch):
    """It answers, begins another process, which holds its output open, and waits."""
    (tmp_path / "lasting.py").write_text(
        "import subprocess, sys, time\n"
        "from tutelage.bench.process import answer\n"
        "answer({'so far': 1})\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "time.sleep(600)\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    with pytest.raises(process.Unfinished, match="code -9") as stopped:
        process.ask("lasting", {}, seconds=5.0)
    assert stopped.value.found in ({"so far": 1}, None)  # None where a machine takes five seconds to begin


def test_a_process_ends_with_the_one_that_asked(tmp_path, monkeypatch):
    """It has the standard error of both, which is at its end when both are gone."""
    (tmp_path / "lasting.py").write_text(
        "import time\nfrom tutelage.bench.process import answer, was_asked\nanswer(was_asked())\ntime.sleep(600)\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    asking = (
        "from tutelage.bench.process import ask; ask('lasting', {}, so_far=lambda found: print('there', flush=True))"
    )
    words = [sys.executable, "-c", asking]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "there\n"
        process.kill()
        assert process.stderr.read() == ""


@pytest.fixture
def answers(monkeypatch, found):
    """Every case is answered at once with the same contests."""
    asked: list[dict] = []

    def answer(module, what, *, told, so_far, seconds):
        asked.append(what)
        return {"title": "T", "contests": found["cases"]["flow"]["contests"]}

    monkeypatch.setattr(runner, "ask", answer)
    return asked


def test_a_stopped_bench_keeps_the_contests_that_were_over(monkeypatch, tmp_path):
    out = tmp_path / "bench.json"

    def stopped(module, asked, *, told, so_far, seconds):
        so_far({"title": "T", "contests": [asked["case"]]})
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "ask", stopped)
    with pytest.raises(KeyboardInterrupt):
        runner.bench(["flow", "sgd"], out=out)
    (kept,) = json.loads(out.read_text())["cases"].values()
    assert kept["contests"] == ["flow"] and kept["unfinished"] == "the bench was stopped"


def test_a_busy_machine_is_told(answers, monkeypatch):
    lines: list[str] = []
    for load in (0.1, 3.0):
        monkeypatch.setattr(machine.os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        runner.bench(["flow"], told=lines.append)
    assert lines == ["the machine is busy (a load of 3.0 before the bench): its figures will be off"]


def test_all_cases_are_measured_and_kept(answers, tmp_path):
    out = tmp_path / "bench.json"
    found = runner.bench(out=out)
    assert [asked["case"] for asked in answers] == list(cases.NAMES) == list(found["cases"])
    assert {asked["repeat"] for asked in answers} == {runner.REPEAT} and not answers[0]["quick"]
    kept = json.loads(out.read_text())
    assert kept["command"] == "tutelage bench --repeat 5" and kept["cases"].keys() == found["cases"].keys()
    assert {"date", "commit", "machine", "versions", "seconds"} <= kept.keys()


def test_named_cases_once_each_and_quickly(answers):
    found = runner.bench(["sgd", "flow", "sgd"], quick=True, repeat=1)
    asked = [(each["case"], each["quick"], each["repeat"]) for each in answers]
    assert asked == [("sgd", True, 1), ("flow", True, 1)]
    assert found["command"] == "tutelage bench sgd flow sgd --quick --repeat 1"


def test_a_case_that_crashes_keeps_what_it_had_and_hides_no_other(monkeypatch):
    def crash(module, asked, *, told, so_far, seconds):
        if asked["case"] == "flow":
            raise process.Unfinished("it ended with code 1", {"title": "Flow", "contests": [1]})
        if asked["case"] == "sgd":
            raise process.Unfinished("it ended with code 1 and no result", None)
        return {"title": "T", "contests": []}

    monkeypatch.setattr(runner, "ask", crash)
    lines: list[str] = []
    found = runner.bench(["flow", "sgd", "seeds"], told=lines.append)["cases"]
    assert found["flow"]["contests"] == [1] and "code 1" in found["flow"]["unfinished"]
    assert found["sgd"]["contests"] == [] and "unfinished" not in found["seeds"]
    assert [line.partition(":")[0] for line in lines[-2:]] == ["flow", "sgd"]


@pytest.mark.parametrize("wrong", [{"cases": ["flows"]}, {"repeat": 0}, {"out": "no/such/folder/bench.json"}])
def test_bad_input_is_refused_before_anything_is_measured(answers, wrong):
    with pytest.raises(BadInput):
        runner.bench(**wrong)
    assert not answers


def test_results_go_beside_earlier_ones_in_a_clone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert runner.usual_file().parent == runner.Path()
    (tmp_path / "benchmarks/results").mkdir(parents=True)
    assert runner.usual_file().parent == runner.Path("benchmarks/results")


def test_a_case_may_have_tables_only():
    assert Case("nothing").contests(True) == () and Case("nothing").tables(True) == {}
