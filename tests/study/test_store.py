"""The store of runs: names, reading in place of computing, and a clear outcome whatever happens to its files."""

import dataclasses
import errno
import functools
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections import Counter

import h5py
import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import tutelage as tt
from tutelage import _interrupt
from tutelage._errors import BadInput
from tutelage._files import SEALED, read_record, sealed, write_record
from tutelage._identity import digest
from tutelage._interrupt import Interrupted
from tutelage._revisions import REVISIONS
from tutelage.analysis.claims import Claim, Verdict, at_most
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.dynamics.driver import Loop
from tutelage.store import fetching
from tutelage.store.fetching import Disagreement, differences, spec_of
from tutelage.store.store import Store, condition
from tutelage.study import Study, deferred
from tutelage.study.checking import claims_of

EXPERIMENT = tt.papers.both_layers(steps=40)
PAPER = tt.papers.both_layers


def asked(experiment=EXPERIMENT, **options):
    """All that a run of the experiment is asked for."""
    return experiment.study.recipe.asked(experiment.settings, **{"seeds": 2} | options)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with one finished run, never changed."""
    store = Store(tmp_path_factory.mktemp("made"))
    EXPERIMENT.run(store=store, seeds=2)
    return store


@pytest.fixture
def store(made, tmp_path):
    """A copy of it."""
    shutil.copytree(made.root, tmp_path / "store")
    return Store(tmp_path / "store")


@pytest.fixture
def computed(monkeypatch):
    """The runs that the store computed."""
    calls = []

    def counted(asked, real=fetching.perform, **options):
        calls.append(asked.about.get("paper", ""))
        return real(asked, **options)

    monkeypatch.setattr(fetching, "perform", counted)
    return calls


@pytest.fixture
def computing_is_wrong(monkeypatch):
    monkeypatch.setattr(fetching, "perform", lambda *args, **options: pytest.fail("computed"))


def only(store):
    (entry,) = store.entries()
    return entry


def sentence(told) -> str:
    text = str(told.value)
    assert "\n" not in text and text.endswith(".")
    return text


# ---- names


def test_the_name_does_not_depend_on_the_order_of_keys():
    description = asked().description
    back = dict(reversed(description.items()))
    assert list(back) != list(description) and digest(back) == asked().identity
    settings = dict(reversed(EXPERIMENT.settings.model_dump().items()))
    assert asked(PAPER(**settings)).identity == asked().identity


@pytest.mark.parametrize(
    "other",
    [
        {"dynamics": "flow"},
        {"seeds": (1, 0)},
        {"seeds": (0, 1, 2)},
        {"record": 7},
        {"stop": tt.Stop(loss=1e-9)},
        {"experiment": PAPER(steps=40, dim=101)},
        {"experiment": PAPER(steps=40, init="xavier")},
        {"experiment": PAPER(steps=40, outputs=2, singular_values=(1.0, 2.0))},
        {"experiment": PAPER(steps=40, scale=np.nextafter(EXPERIMENT.settings.scale, 1.0))},
        {"step": 0.2},
    ],
)
def test_any_change_has_another_name(other):
    assert asked(**other).identity != asked().identity


def test_any_setting_of_a_paper_has_another_name():
    """Even one that the problem does not know: it may decide what the paper says of the run."""
    one = asked()
    other = dataclasses.replace(one, about=one.about | {"settings": one.about["settings"] | {"new": None}})
    plain = dataclasses.replace(one, about={})
    assert len({one.identity, other.identity, plain.identity}) == 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@hypothesis.given(JSON, JSON)
def test_names_tell_values_apart_and_survive_a_file(one, other):
    assert digest(json.loads(json.dumps(one))) == digest(one)
    assert (digest(one) == digest(other)) == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


def test_the_specification_is_written_as_it_is_named(made):
    entry = only(made)
    plain = json.loads((entry.folder / "spec.json").read_text())
    assert digest(plain["asked"]) == entry.id == asked().identity
    assert plain["asked"] == asked().description
    assert {"kind", "paper", "settings", "dynamics", "seeds", "revision", "asked", "checksum"} == set(plain)
    assert sorted(path.name for path in entry.folder.iterdir()) == ["log", "spec.json", "summary.json", "trajectory.nc"]


# ---- asking


def test_asking_twice_computes_once(tmp_path, computed):
    store = Store(tmp_path)
    first, second = (EXPERIMENT.run(store=store, seeds=2) for _ in range(2))
    assert computed == ["both_layers"] and (first.computed, second.computed) == (True, False)
    assert differences(first.dataset, second.dataset) == []
    assert first.entry == second.entry == only(store) and first.entry.state == "finished"
    summaries = [each.summary() for each in (first, second, store.open("last"))]
    assert [each.pop("read_from_store") for each in summaries] == [False, True, True]
    assert summaries[0] == summaries[1] == summaries[2] and summaries[0]["frame"] == 3


def test_the_stored_run_is_the_run(made):
    assert differences(made.open("last").dataset, EXPERIMENT.descend(seeds=2).dataset) == []


@pytest.mark.parametrize("options", [{"seeds": 3}, {"seeds": [1, 0]}, {"seeds": 2, "dynamics": "flow"}])
def test_another_run_is_another_folder(store, computed, options):
    EXPERIMENT.run(store=store, **options)
    assert len(computed) == 1 and len(store.entries()) == 2


def test_the_paper_s_own_dynamics_is_the_same_run_by_name(store, computing_is_wrong):
    assert EXPERIMENT.run(store=store, seeds=range(2), dynamics="descent").entry.id == only(store).id


def test_fresh_computes_again_and_agrees(store, computed):
    before = only(store).result.read_bytes()
    assert EXPERIMENT.run(store=store, seeds=2, fresh=True).computed
    assert len(computed) == 1 and only(store).result.read_bytes() == before
    assert not list(only(store).folder.glob("*.npz"))


def nudged(path, name="loss"):
    """One value of the file moved by one unit in its last place."""
    path.write_bytes(path.read_bytes()[:-SEALED])
    with h5py.File(path, "r+") as file:
        values = file[name][...]
        values.flat[-1] = np.nextafter(values.flat[-1], np.inf)
        file[name][...] = values
    path.write_bytes(sealed(path.read_bytes()))


@pytest.mark.parametrize("name", ["loss", "first_norm", "final/1"])
def test_fresh_sees_one_unit_in_the_last_place(store, name):
    nudged(only(store).result, name)
    before = only(store).result.read_bytes()
    for _ in range(2):  # and again: the second time must not take up the first
        with pytest.raises(Disagreement, match=f"differs from the stored one in {name} .by up to") as told:
            EXPERIMENT.run(store=store, seeds=2, fresh=True)
        assert "It was made by tutelage" in str(told.value)
    assert only(store).result.read_bytes() == before and not list(only(store).folder.glob("*.npz"))


def test_differences_of_what_is_missing_shaped_otherwise_or_not_finite(made):
    data = made.open("last").dataset
    assert differences(data, data.drop_vars("loss")) == ["loss (only in one of them)"]
    assert "shapes" in differences(data, data.isel(seed=[0]))[0]
    holed = data.assign(loss=data.loss.where(data.loss < 0))
    assert differences(data, holed) == ["loss (what is finite in one is not in the other)"]
    assert differences(data, data.assign(stopped=("seed", ["cap", "horizon"]))) == ["stopped"]


def test_a_run_with_a_certificate_is_one_of_its_own(store, made, computed):
    """It has its weights as well, so that it need not be run again to be checked."""
    plain = only(store)
    assert store.open(plain).certificate is None
    certified = EXPERIMENT.run(store=store, seeds=2, certify=True)
    assert certified.certificate.ok and len(computed) == 1
    assert certified.entry.id != plain.id and "weights_first" in certified.dataset
    assert certified.loss.equals(made.open("last").loss)
    again = EXPERIMENT.run(store=store, seeds=2, certify=True)
    assert not again.computed and again.certificate.rows == certified.certificate.rows and len(computed) == 1
    assert store.open(certified.entry).certificate.rows == certified.certificate.rows
    assert EXPERIMENT.run(store=store, seeds=2).certificate is None and len(computed) == 1
    assert EXPERIMENT.run(store=store, seeds=2, certify=True, fresh=True).certificate.ok and len(computed) == 2


def test_a_run_that_was_stopped_may_be_asked_for_with_a_certificate(tmp_path, made, monkeypatch):
    """It records more and is another run; what was stopped is left as it is, and goes on when it is asked for."""
    store = Store(tmp_path)
    monkeypatch.setattr(_interrupt, "_ASKED", type(_interrupt._ASKED)())
    _interrupt.ask_to_stop()
    with pytest.raises(Interrupted):
        EXPERIMENT.run(store=store, seeds=2)
    _interrupt._ASKED.clear()
    stopped = only(store)
    assert (stopped.folder / "checkpoint.npz").is_file()
    certified = EXPERIMENT.run(store=store, seeds=2, certify=True)
    assert certified.loss.equals(made.open("last").loss) and not list(certified.entry.folder.glob("*.npz"))
    assert store.find(stopped.id).state == "unfinished" and (stopped.folder / "checkpoint.npz").is_file()
    done = EXPERIMENT.run(store=store, seeds=2)
    assert done.entry.id == stopped.id and differences(done.dataset, made.open("last").dataset) == []
    assert not list(stopped.folder.glob("*.npz"))


@pytest.mark.parametrize("options", [{"dynamics": "sgd"}, {"seeds": []}])
def test_a_run_that_cannot_be_leaves_nothing_behind(tmp_path, options):
    with pytest.raises(BadInput):
        EXPERIMENT.run(store=tmp_path, **options)
    assert Store(tmp_path).entries() == []


def test_claims_are_checked_once_and_kept(store, monkeypatch):
    checks = []
    check = Study.check
    monkeypatch.setattr(Study, "check", lambda self, *a, **k: (checks.append(k["seeds"]), check(self, *a, **k))[1])
    paper = dataclasses.replace(PAPER, claims=PAPER.claims[:2])
    assert store.open("last").claims is None
    first, second = (claims_of(paper, store.open("last")) for _ in range(2))
    assert checks == [2] and first.records() == second.records() == store.open("last").claims.records()
    assert first.records() == read_record(only(store).folder / "claims.json")["claims"]
    assert [row.claim.id for row in first.rows] == [claim.id for claim in paper.claims]
    # The run that is asked for has them, too, if it is asked of the paper whose claims they are.
    assert paper(steps=40).run(store=store, seeds=2).claims.records() == first.records()
    assert EXPERIMENT.run(store=store, seeds=2).claims is None


class Evidence:
    """What the claims of a paper of one's own look at."""

    factor = 1.0

    def __init__(self, settings, size, seeds):
        self.seeds = seeds

    @functools.cached_property
    def loss(self):
        return self.factor


def worse(self):
    return 3.0


def claimed(bound):
    return Claim("OWN", "here", "loss <= bound", "", lambda evidence: at_most(evidence.loss, bound), must_hold=True)


def by_claim(paper, monkeypatch):
    return dataclasses.replace(paper, claims=(claimed(0.5),))


def by_value(paper, monkeypatch):
    monkeypatch.setattr(Evidence, "factor", 3.0)
    return paper


def by_method(paper, monkeypatch):
    changed = functools.cached_property(worse)
    changed.__set_name__(Evidence, "loss")
    monkeypatch.setattr(Evidence, "loss", changed)
    return paper


@pytest.mark.parametrize("change", [by_claim, by_value, by_method])
def test_claims_that_other_code_has_judged_are_checked_anew(store, monkeypatch, change):
    evidence = deferred(__name__, "Evidence")  # as a paper in a folder has it
    paper = dataclasses.replace(PAPER, claims=(claimed(2.0),), evidence=evidence)
    first = claims_of(paper, store.open("last"))
    assert first["OWN"].finding.verdict is Verdict.HOLDS
    same = dataclasses.replace(PAPER, claims=(claimed(2.0),), evidence=evidence)
    assert same(steps=40).run(store=store, seeds=2).claims.records() == first.records()
    later = change(paper, monkeypatch)
    assert later(steps=40).run(store=store, seeds=2).claims is None
    assert claims_of(later, store.open("last"))["OWN"].finding.verdict is Verdict.FAILS
    assert later(steps=40).run(store=store, seeds=2).claims["OWN"].broken  # and kept in place of the first


def test_claims_of_another_revision_or_kept_without_their_code_are_checked_anew(store, monkeypatch):
    paper = dataclasses.replace(PAPER, claims=(claimed(2.0),), evidence=Evidence)
    table = claims_of(paper, store.open("last"))
    with monkeypatch.context() as later:
        later.setitem(REVISIONS, PAPER.name, REVISIONS[PAPER.name] + 1)
        assert paper.judged(store.open("last")).claims is None
    assert paper.judged(store.open("last")).claims.records() == table.records()
    write_record({"claims": table.records()}, only(store).folder / "claims.json")  # as an earlier version did
    assert len(store.open("last").claims) == 1 and paper.judged(store.open("last")).claims is None
    assert claims_of(paper, store.open("last")).code == paper.code == store.open("last").claims.code


def test_claims_of_a_run_that_is_not_stored_are_not_kept(monkeypatch):
    run, paper = EXPERIMENT.run(seeds=2), dataclasses.replace(PAPER, claims=PAPER.claims[:1])
    assert run.entry is None and len(claims_of(paper, run)) == 1


# ---- damage: one sentence, and the file stays as it is


def garbage(path):
    path.write_bytes(b"\x00 what is this")


def empty(path):
    path.write_bytes(b"")


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def wrong_kind(path):
    path.write_text("[1, 2]")


def changed(change, name="asked"):
    """A record that somebody wrote anew, with its right checksum."""

    def damage(path):
        record = read_record(path)
        record[name] = change(record.get(name))
        write_record(record, path)

    return damage


def newer(path):
    changed(lambda asked: asked | {"schema": 99})(path)


def edited(path):
    changed(lambda asked: asked | {"seeds": [7]})(path)


def unasked(path):
    changed(lambda asked: None)(path)


def seedless(path):
    changed(lambda seeds: 3, "seeds")(path)


def better(path):
    """A number of a summary changed by hand."""
    path.write_text(path.read_text().replace('"frame":', '"frame": 1, "was":'))


def with_nan(path):
    path.write_text(path.read_text().replace("{", '{"bad": NaN, ', 1))


def deep(path):
    path.write_text("[" * 200_000)


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def folder(path):
    path.unlink()
    path.mkdir()


def dangling(path):
    path.unlink()
    path.symlink_to("nowhere")


def content(path):
    return path.read_bytes() if path.is_file() else path.lstat()


DAMAGES = (garbage, empty, cut, wrong_kind, with_nan, deep, pipe, device, folder, dangling)


@pytest.mark.parametrize(
    ("name", "damage"),
    [("spec.json", each) for each in (*DAMAGES, newer, edited, unasked, seedless)]
    + [("summary.json", each) for each in (*DAMAGES, better)]
    + [("trajectory.nc", each) for each in (garbage, empty, cut, wrong_kind)],
)
def test_what_is_damaged_is_told_and_left_alone(store, name, damage, computing_is_wrong):
    path = only(store).folder / name
    damage(path)
    before = content(path)
    for ask in (lambda: EXPERIMENT.run(store=store, seeds=2), lambda: store.open("last")):
        with pytest.raises(BadInput) as told:
            ask()
        assert name in sentence(told) and "not changed" in str(told.value)
        for way_out in ("with --fresh (fresh=True in Python)", f"`tutelage rm {path.parent.name}`"):
            assert way_out in str(told.value)
    assert before == content(path)
    entry = only(store)
    assert (entry.state == "damaged") == bool(entry.trouble) == (name != "trajectory.nc")
    store.remove(entry)
    assert store.entries() == []


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": 1}', '[{"id": "x"}]'])
def test_damaged_claims_are_told_and_left_alone(store, text):
    path = only(store).folder / "claims.json"
    path.write_text(text)
    with pytest.raises(BadInput) as told:
        store.open("last")
    assert "claims.json" in sentence(told) and "with --fresh" in str(told.value) and path.read_text() == text


@pytest.mark.parametrize("again", [False, True], ids=["another process", "the same store"])
@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("spec.json", garbage),
        ("spec.json", folder),
        ("spec.json", newer),
        ("summary.json", pipe),
        ("trajectory.nc", cut),
    ],
)
def test_fresh_puts_aside_what_is_damaged_and_computes_it(store, made, name, damage, again):
    id = only(store).id
    if again:  # it is at hand, as of a process that has read it before
        EXPERIMENT.run(store=store, seeds=2)
    damage(store.root / id / name)
    before, told = content(store.root / id / name), []
    run = EXPERIMENT.run(store=store, seeds=2, fresh=True, told=told.append)
    assert run.computed and differences(run.dataset, made.open("last").dataset) == []
    assert only(store).state == "finished" and not EXPERIMENT.run(store=store, seeds=2).computed
    aside = store.root / f".{id}.damaged"
    assert content(aside / name) == before
    assert str(aside) in told[0] and str(aside) in (run.entry.folder / "log").read_text()
    (store.root / id / "spec.json").write_text("{")
    EXPERIMENT.run(store=store, seeds=2, fresh=True)
    assert content(aside / name) == before and (store.root / f".{id}.damaged1" / "spec.json").read_text() == "{"


def test_fresh_puts_aside_damaged_claims_alone(store, computed):
    entry = only(store)
    before = entry.result.read_bytes()
    (entry.folder / "claims.json").write_text("{")
    assert EXPERIMENT.run(store=store, seeds=2, fresh=True).claims is None and len(computed) == 1
    assert entry.result.read_bytes() == before  # it was compared, and kept
    assert (entry.folder / ".claims.json.damaged").read_text() == "{" and len(list(store.root.glob(".*.damaged"))) == 0


def test_fresh_begins_anew_without_a_damaged_checkpoint(store, made):
    entry = only(store)
    entry.result.unlink()
    (entry.folder / "checkpoint.npz").write_bytes(b"?")
    with pytest.raises(BadInput, match="checkpoint.npz cannot be read .* with --fresh") as told:
        EXPERIMENT.run(store=store, seeds=2)
    assert "\n" not in str(told.value) and (entry.folder / "checkpoint.npz").read_bytes() == b"?"
    run = EXPERIMENT.run(store=store, seeds=2, fresh=True)
    assert differences(run.dataset, made.open("last").dataset) == []
    assert (entry.folder / ".checkpoint.npz.damaged").read_bytes() == b"?"


def test_fresh_of_a_verb(tmp_path, computed):
    ask = functools.partial(tt.descend, EXPERIMENT.problem, step=0.1, steps=20, store=tmp_path)
    whole, again = ask(), ask(fresh=True)
    assert len(computed) == 2 and again.computed and again.loss.equals(whole.loss)
    cut(whole.entry.result)
    with pytest.raises(BadInput, match="fresh=True in Python"):
        ask()
    assert ask(fresh=True).loss.equals(whole.loss) and not ask().computed
    with pytest.raises(BadInput, match="fresh is 'yes', but True or False was expected"):
        ask(fresh="yes")


@pytest.mark.parametrize("name", ["spec.json", "summary.json", "trajectory.nc"])
def test_every_flipped_bit_is_noticed(store, name):
    """Or makes no difference: `1e-05` may become `1E-05`."""
    path = only(store).folder / name
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    before = only(store).record()
    for at in rng.integers(0, 8 * len(whole), 300):
        data = bytearray(whole)
        data[at // 8] ^= 1 << at % 8
        path.write_bytes(data)
        try:
            store.open("last")
        except BadInput:
            continue
        assert name != "trajectory.nc" and only(store).record() == before


@pytest.mark.parametrize("text", ["1.5", "-0.25"])
def test_a_missing_chunk_of_numbers_is_damage_and_not_nan(store, text):
    """HDF5 reads what it does not find as the fill value: here a whole variable is not there."""
    path = only(store).result
    with h5py.File(path, "r+") as file:
        dims, shape = len(file["loss"].dims), file["loss"].shape
        del file["loss"]
        file.create_dataset("loss", shape, "f8", chunks=shape, fillvalue=float(text))
    assert dims == 2
    with pytest.raises(BadInput, match="changed or damaged|checksum"):
        store.open("last")


def test_one_bad_entry_hides_no_other(store):
    """Whatever is wrong with some, the rest is listed, found and read."""
    good = only(store).id
    for number, damage in enumerate((*DAMAGES, newer, unasked, seedless)):
        copy = store.root / f"{number:016x}"
        shutil.copytree(store.root / good, copy)
        damage(copy / "spec.json")
    entries = {entry.id: entry for entry in store.entries()}
    assert entries[good].state == "finished" and len(entries) == len(DAMAGES) + 4
    assert all(entry.state == "damaged" and entry.trouble for id, entry in entries.items() if id != good)
    assert store.open(good).loss.sizes["seed"] == 2
    assert [entry.id for entry in store.select("both_layers")] == [good]


def test_an_entry_that_may_not_be_looked_at_is_passed_over(store, monkeypatch):
    """Another user's: even whether a file is there is not told."""
    other = "f" * 16
    (store.root / other).mkdir()

    def denied(path, real=os.stat, **options):
        if other in str(path):
            raise PermissionError(13, "Permission denied")
        return real(path, **options)

    monkeypatch.setattr(os, "stat", denied)
    assert [entry.state for entry in store.entries()] == ["finished"]


def test_the_link_to_an_entry_is_removed_and_not_the_entry(store, tmp_path):
    entry = only(store)
    elsewhere = tmp_path / "elsewhere"
    entry.folder.rename(elsewhere)
    entry.folder.symlink_to(elsewhere)
    store.remove(only(store))
    assert store.entries() == [] and (elsewhere / "trajectory.nc").is_file()
    assert not list(store.root.glob(".*removed"))


def test_a_log_that_is_a_pipe_stops_nobody(store):
    entry = only(store)
    (entry.folder / "log").unlink()
    os.mkfifo(entry.folder / "log")
    store.note(entry.id, "nobody reads this")


def test_a_folder_that_is_just_being_made_is_not_seen(store, computed):
    """As a process leaves it that dies before the specification is written."""
    other = store.root / asked(seeds=7).identity
    other.mkdir()
    (other / ".spec.json.abc.part").write_text('{"ki')
    assert len(store.entries()) == 1
    for file in only(store).folder.iterdir():
        file.unlink()
    assert store.entries() == [] and EXPERIMENT.run(store=store, seeds=2).computed


def test_what_is_half_written_is_not_seen_and_tidied_up(store):
    entry = only(store)
    names = ("spec.json", "summary.json", "trajectory.nc", "checkpoint.npz", "again.npz")
    left = [entry.folder / f".{name}.abc.part" for name in names]
    for part in left:
        part.write_text("half")
    assert only(store) == entry and store.open(entry).entry == entry
    EXPERIMENT.run(store=store, seeds=2, fresh=True)
    assert not any(part.exists() for part in left)


def test_foreign_files_are_ignored(store):
    (store.root / "notes.txt").write_text("mine")
    (store.root / "figures").mkdir()
    assert len(store.entries()) == 1


# ---- finding


def test_find_by_the_beginning_or_as_the_last(store):
    entry = only(store)
    other = EXPERIMENT.run(store=store, seeds=1).entry
    assert store.find(entry.id[:6]) == store.find(entry.id.upper()) == entry and store.find("last") == other
    for id in ("", "zz", "nothing"):
        with pytest.raises(BadInput, match="`tutelage runs` lists"):
            store.find(id)


def test_a_beginning_of_several_is_refused(tmp_path):
    store = Store(tmp_path)
    for seeds in range(1, 40):
        each = asked(seeds=seeds)
        store.prepare(each.identity, spec_of(each))
    (first, _), *_ = Counter(entry.id[0] for entry in store.entries()).most_common()
    with pytest.raises(BadInput, match=rf"\d+ runs of .* begin with '{first}'"):
        store.find(first)


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("dim>1e4", False), ("dim>=100", True), ("dim=100", True), ("dim==1e2", True), ("dim != 100", False),
        ("init=paper_chi", True), ("init!=paper_chi", False), ("init>3", False), ("paper=both_layers", True),
        ("seeds=2", True), ("seeds<2", False), ("state=finished", True), ("dynamics=descent", True),
        ("loss<1", True), ("nothing=1", False), ("samples=0", True),
    ],
)  # fmt: skip
def test_conditions(made, text, met):
    assert condition(text)(only(made)) is met
    assert len(made.select(where=[text])) == met


@pytest.mark.parametrize("text", ["dim", ">3", "dim>", "", "dim ~ 3"])
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(BadInput, match="is not a condition"):
        condition(text)


def test_select_by_paper(made):
    assert len(made.select("both_layers")) == 1 and made.select("soft_moe") == []


def test_an_empty_store_has_nothing(tmp_path):
    assert Store(tmp_path / "none").entries() == [] and not (tmp_path / "none").exists()


def test_where_the_store_is(monkeypatch, tmp_path):
    monkeypatch.setenv("TUTELAGE_STORE", str(tmp_path))
    assert Store().root == tmp_path and str(Store("here").root) == "here"
    monkeypatch.delenv("TUTELAGE_STORE")
    assert str(Store().root) == "runs"


# ---- removing


def test_a_run_at_work_is_not_removed(store):
    entry = only(store)
    with store.locked(entry.id), pytest.raises(BadInput, match="Another process is at work"):
        store.remove(entry)
    store.remove(entry)
    assert store.entries() == [] and not entry.folder.exists()


def test_a_removal_that_was_cut_short_is_no_obstacle(store):
    entry = only(store)
    left = store.root / f".{entry.id}.removed"
    left.mkdir()
    (left / "trajectory.nc").write_text("half gone")
    assert len(store.entries()) == 1
    store.remove(entry)
    assert store.entries() == [] and not left.exists()


def test_a_run_that_is_removed_while_one_waits_for_it_is_made_anew(store, monkeypatch):
    """The folder is made when the lock is held, not before."""
    locked = Store.locked

    def removed_before(self, id, **options):
        shutil.rmtree(self.root / id, ignore_errors=True)
        return locked(self, id, **options)

    monkeypatch.setattr(Store, "locked", removed_before)
    assert EXPERIMENT.run(store=store, seeds=2, fresh=True).computed


# ---- a full disk, a store that can only be read


def no_room(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def checkpoints_at_once(monkeypatch):
    """Every run is long."""
    monkeypatch.setattr(fetching, "Checkpoint", lambda path, log: Checkpoint(path, every=0, log=log))


@pytest.mark.parametrize("where", ["write_record", "packed"])
def test_a_full_disk_at_the_end_loses_nothing(tmp_path, made, monkeypatch, checkpoints_at_once, where):
    store = Store(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(fetching, where, no_room)
        with pytest.raises(BadInput, match=r"cannot be written .No space left on device.; free some space") as told:
            EXPERIMENT.run(store=store, seeds=2)
    assert ".part" not in sentence(told)
    entry = only(store)
    assert entry.state == "unfinished" and (entry.folder / "checkpoint.npz").is_file()
    assert not list(entry.folder.glob(".*"))
    monkeypatch.setattr(Loop, "advance", lambda loop: pytest.fail("computed again"))
    assert differences(EXPERIMENT.run(store=store, seeds=2).dataset, made.open("last").dataset) == []
    assert not (entry.folder / "checkpoint.npz").exists()


REAL_LIMIT = """
import resource, signal, sys, warnings
import tutelage as tt
from tutelage._errors import BadInput
from tutelage._files import SEALED, read_record, sealed, write_record
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.store import fetching

fetching.Checkpoint = lambda path, log: Checkpoint(path, every=0, log=log)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit is then an error, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tt.papers.both_layers(steps=40).run(store=tt.Store(sys.argv[1]), seeds=2)
except BadInput as error:
    print("refused:", error)
print("warned:", *[str(each.message) for each in told])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_real_limit_on_the_size_of_files(tmp_path, made):
    """With 4 kB neither a checkpoint nor the result can be written; without the limit the same call finishes."""
    done = subprocess.run([sys.executable, "-c", REAL_LIMIT, str(tmp_path), "4096"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "warned: No checkpoint was written (File too large); the run goes on." in done.stdout
    refused = done.stdout.splitlines()[0]
    assert refused.startswith("refused: ") and "cannot be written (" in refused and ".part" not in refused
    assert "Traceback" not in done.stderr
    store = Store(tmp_path)
    assert only(store).state == "unfinished" and not list(only(store).folder.glob(".*"))
    assert differences(EXPERIMENT.run(store=store, seeds=2).dataset, made.open("last").dataset) == []


@pytest.mark.parametrize("target", ["tutelage.store.store.filelock.FileLock", "os.mkdir"])
def test_a_store_that_can_only_be_read(store, monkeypatch, computing_is_wrong, target):
    def forbidden(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    shutil.rmtree(store.root / ".locks")
    monkeypatch.setattr(target, forbidden)
    assert not EXPERIMENT.run(store=store, seeds=2).computed and len(store.select(where=["state=finished"])) == 1
    for ask in (lambda: EXPERIMENT.run(store=store, seeds=3), lambda: EXPERIMENT.run(store=store, seeds=2, fresh=True)):
        with pytest.raises(BadInput, match="cannot be written .Permission denied.") as told:
            ask()
        assert "--store or TUTELAGE_STORE" in sentence(told)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_folder_without_the_right_to_write(store, computing_is_wrong):
    store.root.chmod(0o555)
    try:
        assert not EXPERIMENT.run(store=store, seeds=2).computed
        with pytest.raises(BadInput, match="cannot be written .Permission denied."):
            EXPERIMENT.run(store=store, seeds=3)
    finally:
        store.root.chmod(0o755)


# ---- two at a time


ASKING = """
import sys, time
from pathlib import Path
import tutelage as tt
from tutelage.store import fetching

root, gate, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
perform = fetching.perform

def counted(*args, **options):
    (gate / f"computed-{name}").touch()
    time.sleep(1)  # long enough for the other to come
    return perform(*args, **options)

fetching.perform = counted
experiment = tt.papers.both_layers(steps=40)
(gate / f"ready-{name}").touch()
while len(list(gate.glob("ready-*"))) < 2:
    time.sleep(0.01)
run = experiment.run(store=tt.Store(root), seeds=2, told=lambda line: print(line, flush=True))
run.dataset.to_netcdf(gate / f"{name}.nc", engine="h5netcdf")
"""


def test_two_processes_ask_at_the_same_time(tmp_path, made):
    gate = tmp_path / "gate"
    gate.mkdir()
    both = [
        subprocess.Popen([sys.executable, "-c", ASKING, str(tmp_path / "store"), str(gate), name],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for name in "ab"
    ]  # fmt: skip
    told = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert len(list(gate.glob("computed-*"))) == 1
    assert sum("waiting for it" in out for out, _ in told) == 1
    results = [tt.load(gate / f"{name}.nc").dataset for name in "ab"]
    assert differences(*results) == [] == differences(results[0], made.open("last").dataset)


def test_one_that_is_computed_is_running_and_one_that_waits_can_be_stopped(tmp_path, monkeypatch):
    store = Store(tmp_path)
    entry = store.prepare(asked().identity, spec_of(asked()))
    assert only(store).state == "unfinished"
    monkeypatch.setattr(_interrupt, "_ASKED", type(_interrupt._ASKED)())
    holder = textwrap.dedent("""
        import sys, tutelage as tt
        with tt.Store(sys.argv[1]).locked(sys.argv[2]):
            print("held", flush=True)
            sys.stdin.read()
    """)
    words = [sys.executable, "-c", holder, str(tmp_path), entry.id]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        assert only(store).state == "running"
        with pytest.raises(BadInput, match="running"):
            store.open(only(store))
        with pytest.raises(BadInput, match="Another process is at work"):
            store.remove(entry)
        with pytest.raises(Interrupted):
            EXPERIMENT.run(store=store, seeds=2, told=lambda line: _interrupt.ask_to_stop())
        process.kill()
    _interrupt._ASKED.clear()
    assert only(store).state == "unfinished"  # the lock of a process that dies is free
    assert EXPERIMENT.run(store=store, seeds=2).computed
