"""Runs of problems of one's own in a store: read with the same bits, stopped in any stage, outdated by a revision."""

import dataclasses
import json

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import tutelage as tt
from tutelage import _interrupt
from tutelage._errors import BadInput
from tutelage._interrupt import Interrupted
from tutelage._revisions import REVISIONS
from tutelage.dynamics.driver import Loop
from tutelage.present.cli import app
from tutelage.store import fetching
from tutelage.store.fetching import Disagreement, tree_differences
from tutelage.store.store import Store
from tutelage.trajectory.asked import Asked
from tutelage.trajectory.dataset import load_tree
from tutelage.verbs import ask

PROBLEM = tt.Problem(
    inputs=tt.Gaussian(1000),
    teacher=tt.TwoLayer("linear", first=[[1.0]]),
    student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-2), width=2, trains=("first",)),
)
DESCENT = tt.Descent(step=0.05, steps=30)


def halved(handover):
    teacher, students = handover.start
    return handover.changed(start=tt.Start(teacher, jax.tree.map(lambda leaf: leaf / 2, students)))


STAGES = (
    tt.Stage("slow", DESCENT, record=tt.Record(at="all")),
    tt.Stage("fast", tt.Descent(step=0.2, steps=40), halved, record=tt.Record(at="all")),
    tt.Stage("flow", tt.Flow(until=2.0), stop=tt.Stop(loss=1e-6)),
)


def staged(**options):
    return tt.run(PROBLEM, STAGES, seeds=2, **options)


def same(one, other) -> bool:
    """The same bits in every leaf of the weights."""
    leaves = [jax.tree.leaves(each) for each in (one, other)]
    assert jax.tree.structure(one) == jax.tree.structure(other)
    return all(np.array_equal(a, b) for a, b in zip(*leaves, strict=True))


@pytest.fixture
def computed(monkeypatch):
    """The runs that the store computed."""
    calls = []

    def counted(asked, real=fetching.perform, **options):
        calls.append(asked.label)
        return real(asked, **options)

    monkeypatch.setattr(fetching, "perform", counted)
    return calls


@pytest.fixture
def stoppable(monkeypatch):
    """A request to stop of this test's own."""
    monkeypatch.setattr(_interrupt, "_ASKED", type(_interrupt._ASKED)())
    return _interrupt._ASKED


def stopping_in(monkeypatch, stage, chunks):
    """Ask to stop when so many chunks of the stage with this number are done."""
    seen = []

    def advance(loop, real=Loop.advance):
        real(loop)
        seen.append(loop)
        if len({id(each) for each in seen}) == stage + 1 and sum(each is loop for each in seen) == chunks:
            _interrupt.ask_to_stop()

    monkeypatch.setattr(Loop, "advance", advance)


# ---- a problem of one's own


@pytest.mark.parametrize(
    "verb",
    [
        lambda **o: tt.flow(PROBLEM, until=3.0, **o),
        lambda **o: tt.descend(PROBLEM, step=0.1, steps=20, **o),
        lambda **o: tt.sgd(PROBLEM, step=1e-4, steps=20, batch=2, **o),
    ],
    ids=["flow", "descend", "sgd"],
)
def test_a_run_is_computed_once_and_read_with_the_same_bits(tmp_path, computed, verb):
    first, second = (verb(seeds=2, store=tmp_path) for _ in range(2))
    assert len(computed) == 1 and (first.computed, second.computed) == (True, False)
    assert first.dataset.identical(second.dataset)
    assert same(first.final, second.final) and same(first.start, second.start) and same(first.teacher, second.teacher)
    assert first.stopped == second.stopped and first.entry == second.entry
    (entry,) = Store(tmp_path).entries()
    assert entry.spec["paper"] == "" and entry.state == "finished"


def test_it_is_the_run_that_is_computed_without_a_store(tmp_path):
    kept, plain = tt.flow(PROBLEM, until=3.0, store=tmp_path), tt.flow(PROBLEM, until=3.0)
    assert (
        tree_differences(kept.tree(), plain.tree())
        == []
        == tree_differences(load_tree(kept.entry.result), plain.tree())
    )


def test_a_store_in_use_is_asked_by_every_verb(tmp_path, computed):
    with Store(tmp_path).in_use() as store:
        runs = [tt.run(PROBLEM, DESCENT), tt.descend(PROBLEM, step=0.05, steps=30)]
    assert len(computed) == 1 and runs[0].entry == runs[1].entry and len(store.entries()) == 1
    assert tt.run(PROBLEM, DESCENT).entry is None


def test_what_was_read_by_its_name_alone_has_no_oracle_but_all_numbers(tmp_path):
    made = tt.run(PROBLEM, DESCENT, store=tmp_path)
    read = Store(tmp_path).open(made.entry.id[:6])
    assert read.asked is None and read.dataset.identical(made.dataset)
    assert read.summary()["frame"] == made.summary()["frame"] == 3
    assert same(read.final, made.final)
    with pytest.raises(BadInput, match="ask for it with tt.run and its store"):
        read.oracle  # noqa: B018


def test_data_of_ones_own_are_told_apart(tmp_path, computed):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 1000)), rng.normal(size=5)
    other = y.copy()
    other[3] = np.nextafter(other[3], 1.0)
    for labels, count in ((y, 1), (y.copy(), 1), (other, 2)):
        tt.descend(PROBLEM, step=0.01, steps=5, data=(x, labels), store=tmp_path)
        assert len(computed) == count


def test_a_paper_s_run_is_not_that_of_its_bare_problem(tmp_path):
    """Asked for alike, they have the same numbers; but only the paper says phases of it."""
    experiment = tt.papers.both_layers(steps=40)
    asked = experiment.study.recipe.asked(experiment.settings, seeds=2)
    bare = tt.run(asked.problem, asked.plan, seeds=2, record=asked.record, store=tmp_path)
    own = experiment.descend(seeds=2, store=tmp_path)
    assert bare.entry.id != own.entry.id and own.entry.spec["paper"] == "both_layers"
    assert own.loss.equals(bare.loss) and json.loads(own.dataset.attrs["paper_settings"])["steps"] == 40


@pytest.mark.parametrize("name", ["phases", "complete"])
def test_code_of_ones_own_that_says_something_of_a_run_is_part_of_its_name(name):
    """A paper of this package has a revision; that of a user has none."""
    recipe = tt.papers.both_layers.recipe
    settings = recipe.settings(steps=40)
    one, same, other = (
        dataclasses.replace(recipe, **{name: lambda run, settings, factor=factor: factor}).asked(settings)
        for factor in (1, 1, 2)
    )
    assert "code" not in recipe.asked(settings).description
    assert one.identity == same.identity != other.identity != recipe.asked(settings).identity


# ---- what a run says of itself


def learner(student="relu", teachers=2):
    return tt.Problem(
        inputs=tt.Gaussian(50),
        teacher=tt.TwoLayer("relu", first=np.eye(teachers, 2)),
        student=tt.TwoLayer(student, first=tt.GaussianRows(0.1), width=2),
    )


@pytest.fixture(scope="module")
def own_run():
    return tt.descend(learner(), step=0.1, steps=3)


def test_a_run_says_the_whole_problem(own_run, tmp_path):
    own_run.save(tmp_path / "own.nc")
    attrs = tt.load(tmp_path / "own.nc").dataset.attrs
    asked = json.loads(attrs["asked"])
    problem = asked["problem"]
    assert problem["student"]["activation"]["name"] == problem["teacher"]["activation"]["name"] == "relu"
    assert problem["student"]["first"] == {
        "is": "tutelage.problem.initial.GaussianRows", "std": 0.1, "mean": []
    }  # fmt: skip
    assert problem["teacher"]["first"]["shape"] == [2, 2] and problem["student"]["width"] == 2
    assert asked["plan"]["steps"] == 3 and asked["seeds"] == [0]
    assert attrs["settings_hash"] == own_run.asked.identity


@pytest.mark.parametrize("other", [{"student": "erf", "teachers": 1}, {"student": "erf"}, {"teachers": 1}])
def test_runs_of_other_problems_have_another_hash(own_run, other):
    assert Asked(learner(**other), tt.Descent(0.1, 3), (0,)).identity != own_run.dataset.attrs["settings_hash"]


def test_a_run_that_cannot_be_described_says_so_by_leaving_it_out():
    run = tt.run(PROBLEM, tt.Descent(step=0.1, steps=5, schedule=Nameless(1.0)))
    assert not {"asked", "settings_hash"} & set(run.dataset.attrs)


# ---- what has no name


class Nameless:
    """Nobody can say what it will give."""

    def __init__(self, factor):
        self.factors = iter([factor])

    def __call__(self, number):
        return next(self.factors, 1.0) / (1 + number)


def test_what_cannot_be_described_is_refused_before_anything_is_written(tmp_path):
    dynamics = tt.Descent(step=0.1, steps=5, schedule=Nameless(1.0))
    with pytest.raises(BadInput, match="no run with it can be named") as told:
        tt.run(PROBLEM, dynamics, store=tmp_path / "store")
    assert "\n" not in str(told.value) and str(told.value).endswith(".")
    assert not (tmp_path / "store").exists()


def test_what_is_not_kept_needs_no_name():
    run = tt.run(PROBLEM, tt.Descent(step=0.1, steps=5, schedule=Nameless(1.0)), record=range(0, 5, 2))
    assert run.dataset["step"].values.tolist() == [0, 2, 4, 5]


# ---- stages


@pytest.fixture(scope="module")
def whole():
    """All stages, without a disturbance."""
    return staged()


def test_stages_are_computed_once_and_read_with_the_same_bits(tmp_path, computed, whole):
    first, second = (staged(store=tmp_path) for _ in range(2))
    assert computed == ["stages"] and not second.computed and list(second.stages) == ["slow", "fast", "flow"]
    for each in (first, second):
        assert tree_differences(each.tree() if each.computed else load_tree(each.entry.result), whole.tree()) == []
    assert all(second.stages[name].dataset.identical(run.dataset) for name, run in first.stages.items())
    assert same(second.final, whole.final) and second.stopped == whole.stopped
    assert second.summary()["seeds"] == 2


@pytest.mark.parametrize(("stage", "chunks"), [(0, 1), (1, 1), (1, 2), (2, 1)])
def test_stages_stopped_anywhere_go_on_and_end_with_the_same_bits(
    tmp_path, monkeypatch, stoppable, whole, stage, chunks
):
    store = Store(tmp_path)
    with monkeypatch.context() as patched, pytest.raises(Interrupted):
        stopping_in(patched, stage, chunks)
        staged(store=store)
    stoppable.clear()
    (entry,) = store.entries()
    assert entry.state == "unfinished" and (entry.folder / "checkpoint.npz").is_file()
    begun = []
    monkeypatch.setattr(Loop, "advance", lambda loop, real=Loop.advance: (begun.append(loop), real(loop)))
    done = staged(store=store)
    assert "goes on from" in (done.entry.folder / "log").read_text()
    assert len({id(loop) for loop in begun}) <= 3 - stage  # the stages before were not run again
    assert tree_differences(load_tree(done.entry.result), whole.tree()) == [] and same(done.final, whole.final)
    assert not list(done.entry.folder.glob("*.npz"))


def test_a_checkpoint_of_other_stages_is_refused(tmp_path, monkeypatch, stoppable):
    """As it is between a store's folders: here somebody has put it into the wrong one."""
    with monkeypatch.context() as patched, pytest.raises(Interrupted):
        stopping_in(patched, 1, 1)
        staged(checkpoint=tmp_path / "kept.npz")
    stoppable.clear()
    with pytest.raises(BadInput, match="different run"):
        tt.run(PROBLEM, STAGES[:2], seeds=2, checkpoint=tmp_path / "kept.npz")


def test_fresh_stages_that_differ_in_one_of_them_are_told(tmp_path, monkeypatch):
    staged(store=tmp_path)
    (entry,) = Store(tmp_path).entries()
    tree = load_tree(entry.result)
    tree["stages/slow"]["loss"].values[1, 3] *= 1 + 1e-15
    entry.result.write_bytes(fetching.packed(tree))
    with pytest.raises(Disagreement, match="differs from the stored one in stages/slow/loss .by up to"):
        ask(Asked(PROBLEM, STAGES, (0, 1)), store=tmp_path, fresh=True)


# ---- older revisions


def test_what_an_older_revision_computed_is_not_read_and_shown_as_such(tmp_path, computed, monkeypatch):
    store = Store(tmp_path)
    old = tt.papers.both_layers(steps=40).flow(seeds=1, store=store)
    assert (
        not old.entry.outdated and "(older)" not in CliRunner().invoke(app, ["runs", "--store", str(tmp_path)]).stdout
    )
    for name in ("loop", "TwoLayer", "both_layers"):
        with monkeypatch.context() as patched:
            patched.setitem(REVISIONS, name, REVISIONS[name] + 1)
            assert store.find(old.entry.id).outdated == {name: REVISIONS[name] - 1}
            new = tt.papers.both_layers(steps=40).flow(seeds=1, store=store)
            assert new.computed and new.entry.id != old.entry.id and not new.entry.outdated
            told = CliRunner().invoke(app, ["runs", "--store", str(tmp_path)]).stdout.splitlines()
        (line,) = [line for line in told if line.startswith(old.entry.id[:8])]
        assert "finished (older)" in line
        assert not any("(older)" in line for line in told if line.startswith(new.entry.id[:8]))
        store.remove(new.entry)
    assert len(computed) == 4
    assert store.open(old.entry.id).loss.equals(old.loss)  # by its name it can still be looked at
    assert not tt.papers.both_layers(steps=40).flow(seeds=1, store=store).computed


def test_a_dynamics_of_an_older_revision_is_outdated_too(tmp_path, monkeypatch):
    run = tt.run(PROBLEM, DESCENT, store=tmp_path)
    monkeypatch.setitem(REVISIONS, "descent", REVISIONS["descent"] + 1)
    monkeypatch.setattr(tt.Descent, "revision", REVISIONS["descent"])
    assert run.entry.outdated == {"descent": REVISIONS["descent"] - 1}
    assert tt.run(PROBLEM, DESCENT, store=tmp_path).entry.id != run.entry.id


def test_a_revision_of_ones_own_is_part_of_the_name(tmp_path, monkeypatch):
    """Of a dynamics that the package does not know: nobody can say that it is outdated, but it is told apart."""
    asked = Asked(PROBLEM, Own(step=0.1, steps=3), (0,))
    before = asked.identity
    monkeypatch.setattr(Own, "revision", 7)
    assert Asked(PROBLEM, Own(step=0.1, steps=3), (0,)).identity != before


class Own(tt.Descent):
    name = "own"
    revision = 3
