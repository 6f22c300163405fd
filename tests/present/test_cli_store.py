"""The commands on the store: run, runs, show, export and rm, against a tiny paper."""

import dataclasses
import json
import subprocess
import sys
import webbrowser

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from typer.testing import CliRunner

from tutelage._files import SEALED, read_record, sealed
from tutelage._identity import digest
from tutelage._plain import duration, number
from tutelage.analysis.certificates import Certificate, Check
from tutelage.analysis.claims import Claim, Finding, Interval, Kind, Table, Verdict, at_most
from tutelage.present import export as exporting
from tutelage.present.cli import app
from tutelage.present.export import table
from tutelage.present.loss_overlay import curve, together
from tutelage.store.fetching import spec_of
from tutelage.store.store import Entry, Store
from tutelage.trajectory.dataset import load, save


@pytest.fixture
def cli(registered):
    def call(*words, **options):
        return CliRunner().invoke(app, [str(word) for word in words], **options)

    return call


@pytest.fixture
def store():
    return Store()


def bad(result) -> str:
    """The single sentence that bad input gives."""
    assert result.exit_code == 2, result.output
    assert result.stdout == "" and result.stderr.startswith("tutelage: ") and result.stderr.count("\n") == 1
    return result.stderr


def only(store):
    (entry,) = store.entries()
    return entry


def begun(store, paper, dim=7, **words):
    """The entry of a run that is not finished; `words` are what listings show."""
    asked = paper.recipe.asked(paper.configure({"dim": dim}), seeds=2)
    said = asked.description | {name: value for name, value in words.items() if name in asked.description}
    return store.prepare(digest(said), spec_of(asked) | words | {"asked": said})


# ---- run


def test_the_second_run_is_read(cli, performed, store):
    first, second = (json.loads(cli("run", "tiny", "--json").stdout) for _ in range(2))
    assert (first["read_from_store"], second["read_from_store"]) == (False, True) and performed == [tuple(range(8))]
    assert first["id"] == second["id"] == only(store).id and first["folder"] == str(only(store).folder)
    said = cli("run", "tiny").stdout
    assert f"Run {only(store).id[:8]}, read from the store" in said and "tiny" in said


def test_the_store_may_be_named(cli, tmp_path, store):
    assert cli("run", "tiny", "--store", tmp_path / "mine", "--quiet").exit_code == 0
    assert len(Store(tmp_path / "mine").entries()) == 1 and store.entries() == []


def test_files_of_a_stored_run(cli, performed, tmp_path):
    cli("run", "tiny")
    result = cli("run", "tiny", "--out", tmp_path / "a.nc", "--figure", tmp_path / "a.png")
    assert result.exit_code == 0 and len(performed) == 1
    assert load(tmp_path / "a.nc").sizes["seed"] == 8 and (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_fresh_agrees_or_is_exit_1_with_one_sentence(cli, performed, store):
    cli("run", "tiny")
    assert cli("run", "tiny", "--fresh").exit_code == 0 and len(performed) == 2
    path = only(store).result
    path.write_bytes(path.read_bytes()[:-SEALED])
    with h5py.File(path, "r+") as file:
        file["loss"][2, 3] = np.nextafter(file["loss"][2, 3], 1)
    path.write_bytes(sealed(path.read_bytes()))
    result = cli("run", "tiny", "--fresh", "--quiet")  # a slow machine would say how far it is
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("tutelage: The run") and "differs from the stored one in loss" in result.stderr
    assert result.stderr.count("\n") == 1


def test_fresh_is_the_way_out_of_damage(cli, performed, store):
    cli("run", "tiny")
    entry = only(store)
    entry.result.write_bytes(b"?")
    assert "with --fresh" in bad(cli("run", "tiny")) and len(performed) == 1
    result = cli("run", "tiny", "--fresh")
    assert result.exit_code == 0 and f".{entry.id}.damaged" in result.stderr and len(performed) == 2
    assert json.loads(cli("run", "tiny", "--json").stdout)["read_from_store"] and len(store.entries()) == 1


def test_check_keeps_the_claims(cli, store, registered, paper):
    result = cli("run", "tiny", "--check")
    assert result.exit_code == 0 and "5 claims. The paper's statements: 1 holds, 1 fails" in result.stdout
    kept = read_record(only(store).folder / "claims.json")["claims"]
    assert [record["id"] for record in kept] == ["T01", "T02", "T03", "T04", "T05"]
    told = json.loads(cli("run", "tiny", "--check", "--json").stdout)["claims"]
    assert told == kept
    wrong = Claim("T99", "", "loss <= 0", "", lambda e: at_most(e.loss, 0.0), must_hold=True)
    registered(dataclasses.replace(paper, claims=(wrong,)))
    assert "kept, but judged by other code" in cli("show", "last").stdout
    assert json.loads(cli("show", "last", "--json").stdout)["claims"] is None
    assert cli("run", "tiny", "--check").exit_code == 1  # those that were kept are of other code
    assert "T99" in cli("show", "last").stdout
    registered()
    result = cli("show", "last")
    assert "T99" in result.stdout and "'tiny' is not installed here" in result.stderr


def test_a_checked_table_is_read_back():
    finding = Finding(Verdict.HOLDS, 0.5, 1.0, "=", 10, 5, Interval(0.2, 0.8), "why")
    claim = Claim("A", "Thm 1", "x", "y", lambda e: finding, kind=Kind.OURS, expected=Verdict.FAILS)
    records = [{"seconds": 0.5, **_record(claim, finding)}]
    back = Table.read(json.loads(json.dumps(records)))
    assert back.records() == records and back["A"].finding == finding
    with pytest.raises(TypeError, match="holds no check"):
        back["A"].claim.check(None)


def _record(claim, finding):
    from tutelage.analysis.claims import Checked

    return Checked(claim, finding, 0.5).record()


def test_a_certificate_is_read_back():
    certificate = Certificate(
        (Check("loss", "sampling", 0.25, np.nan, np.nan, 1e-3), Check("x", "y", 1.0, 1.0, 0.0, 0.0))
    )
    back = Certificate.read(json.loads(json.dumps(certificate.records())))
    assert back.records() == certificate.records() and not back.ok and back.sentence == certificate.sentence


# ---- runs


def test_an_empty_store_says_what_to_do(cli):
    assert "tutelage run both_layers" in cli("runs").stdout
    assert json.loads(cli("runs", "--json").stdout) == []


@pytest.fixture
def three(cli, store):
    for dim in (10, 1000, 100000):
        cli("run", "tiny", "--set", f"dim={dim}", "--seeds", 2)
    assert len(store.entries()) == 3


def test_the_listing_shows_what_differs(cli, three, store):
    out = cli("runs").stdout
    head, *lines = [line for line in out.splitlines() if line.strip()]
    assert head.split() == ["run", "kind", "paper", "state", "dim", "seeds", "loss", "took", "age"]
    rows = [line.split() for line in lines if "tiny" in line]
    assert [row[4] for row in rows] == ["100000", "1000", "10"]  # the newest first
    assert {row[0] for row in rows} == {entry.id[:8] for entry in store.entries()}
    told = store.entries()[0].summary
    expected = ["2", number(told["loss"]["median"]), *duration(told["seconds"]).split()]
    assert rows[0][1:4] == ["run", "tiny", "finished"] and rows[0][5:9] == expected


def test_the_listing_is_filtered(cli, three):
    def listed(*words):
        return [record["spec"]["settings"]["dim"] for record in json.loads(cli("runs", *words, "--json").stdout)]

    assert listed("--where", "dim>1e2") == [100000, 1000]
    assert listed("--where", "dim>1e2", "--where", "dim<1e4") == [1000]
    assert listed("--paper", "tiny") == [100000, 1000, 10] and listed("--paper", "other") == []
    assert "No run" in cli("runs", "--where", "dim>1e9").stdout
    head, row = cli("runs", "--where", "dim>1e4", "--where", "seeds=2").stdout.splitlines()
    assert head.split()[4:6] == ["dim", "seeds"] and row.split()[4:6] == ["100000", "2"]  # what was asked is shown
    assert "is not a condition" in bad(cli("runs", "--where", "dim"))


def test_more_settings_than_fit_are_named(cli, paper, store):
    for value in (1, 2):
        begun(store, paper, value, settings={name: value for name in "abcdef"})
    out = cli("runs").stdout
    assert "They also differ in e, f; --json shows all." in out and out.count("unfinished") == 2


def test_what_is_damaged_is_listed_with_its_sentence(cli, three, store):
    entry = store.entries()[1]
    (entry.folder / "spec.json").write_text("{")
    result = cli("runs")
    assert result.exit_code == 0 and result.stdout.count("finished") == 2 and "damaged" in result.stdout
    assert f"{entry.id[:8]}: {entry.folder / 'spec.json'} cannot be read" in result.stdout.replace("\n", "")
    records = json.loads(cli("runs", "--json").stdout)
    assert [record["state"] for record in records].count("damaged") == 1
    assert "cannot be read" in bad(cli("show", entry.id)) and "with --fresh" in bad(cli("show", entry.id))
    assert (entry.folder / "spec.json").read_text() == "{"
    assert cli("rm", entry.id[:8], "--yes").exit_code == 0 and len(store.entries()) == 2


LISTING = """
import sys
from tutelage.present.cli import app
try:
    app(sys.argv[1:])
except SystemExit as end:
    assert not end.code
heavy = [name for name in ("jax", "xarray", "pandas", "scipy") if name in sys.modules]
print("heavy:", heavy)
"""


@pytest.mark.parametrize("words", [("runs",), ("runs", "--json"), ("runs", "--where", "dim>1", "--figure", "all.png")])
def test_a_listing_loads_nothing_heavy(three, store, words, tmp_path):
    done = subprocess.run([sys.executable, "-c", LISTING, *words], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "heavy: []"
    assert all(entry.id[:8] in done.stdout for entry in store.entries())


# ---- the picture of many


def test_the_losses_together(cli, three, tmp_path):
    result = cli("runs", "--figure", tmp_path / "all.png")
    assert result.exit_code == 0 and f"Written: {tmp_path / 'all.png'}" in result.stdout.replace("\n", "")
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")
    assert ".png" in bad(cli("runs", "--figure", tmp_path / "all.gif"))
    assert "nothing to draw" in bad(cli("runs", "--where", "dim>1e9", "--figure", tmp_path / "none.png"))


def test_the_curve_is_the_median_where_it_is_positive(tmp_path):
    loss = np.array([[4.0, 1.0, np.nan, np.nan], [2.0, 3.0, 5.0, np.nan], [9.0, 2.0, 0.0, np.nan]])
    data = xr.Dataset({"loss": (("seed", "time"), loss)}, coords={"time": [0.0, 1.0, 2.0, 3.0]})
    data.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    np.testing.assert_array_equal(curve(tmp_path / "a.nc"), [[1.0, 2.0], [2.0, 2.5]])
    (tmp_path / "b.nc").write_text("damaged")
    assert curve(tmp_path / "b.nc") is None and curve(tmp_path / "c.nc") is None


def _entries(tmp_path, settings, papers=("a",)):
    data = xr.Dataset({"loss": (("seed", "time"), [[1.0, 0.1]])}, coords={"time": [1.0, 2.0]})
    save(data, tmp_path / "trajectory.nc")
    return [
        Entry(str(i), tmp_path, {"paper": papers[i % len(papers)], "settings": each}, {"loss": 1})
        for i, each in enumerate(settings)
    ]


@pytest.mark.parametrize(
    ("settings", "papers", "bar", "legend"),
    [
        ([{"dim": d, "w": 2} for d in (10, 100, 1000)], ("a",), "dim", []),
        ([{"dim": d, "w": d} for d in (10, 100, 1000)], ("a",), None, ["a"]),
        ([{"init": i} for i in ("x", "y")], ("a",), None, ["a"]),
        ([{"on": i} for i in (True, False)], ("a",), None, ["a"]),
        ([{"dim": 1}, {"dim": 2}], ("b", "a"), None, ["a", "b"]),
    ],
)
def test_colours_are_a_setting_or_the_paper(tmp_path, monkeypatch, settings, papers, bar, legend):
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda self, path, **how: drawn.append(self) or path.write_bytes(b"png"))
    assert together(_entries(tmp_path, settings, papers), tmp_path / "x.png") == len(settings)
    axes = drawn[0].axes
    assert [each.get_ylabel() for each in axes[1:]] == ([bar] if bar else [])
    told = axes[0].get_legend()
    assert [text.get_text() for text in told.get_texts()] == legend if told else not legend
    assert len(axes[0].collections[0].get_segments()) == len(settings)


# ---- show


def test_show_a_run_by_its_beginning_or_as_the_last(cli, store):
    cli("run", "tiny")
    id = only(store).id
    for name in (id, id[:5], "last"):
        result = cli("show", name)
        assert result.exit_code == 0, result.output
        for part in (id, "descent", "horizon", "first_norm", "Loss, median over seeds", f"show {id[:8]} --check"):
            assert part in result.stdout
    told = json.loads(cli("show", "last", "--json").stdout)
    assert told["id"] == id and told["dims"]["seed"] == 8 and told["claims"] is None
    assert "has no run 'xyz'" in bad(cli("show", "xyz"))


def test_show_checks_claims_when_asked(cli, store):
    cli("run", "tiny")
    result = cli("show", "last", "--check")
    assert "T03" in result.stdout and "5 claims." in result.stdout and "not checked yet" not in result.stdout
    assert "5 claims." in cli("show", "last").stdout
    assert len(json.loads(cli("show", "last", "--json").stdout)["claims"]) == 5


def test_show_draws_and_opens(cli, store, tmp_path, monkeypatch, saved_run):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    cli("run", "tiny")
    result = cli("show", "last", "--open", "--figure", tmp_path / "a.png", "--json")
    assert json.loads(result.stdout)["id"] == only(store).id
    picture = only(store).folder / "overview.png"
    assert opened == [picture.resolve().as_uri()] and picture.read_bytes() == (tmp_path / "a.png").read_bytes()
    assert cli("show", saved_run, "--figure", tmp_path / "b.png").exit_code == 0 and (tmp_path / "b.png").is_file()
    assert "is a file" in bad(cli("show", saved_run, "--check"))
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    assert "no viewer was found" in cli("show", "last", "--open").stderr


def test_show_what_is_not_finished(cli, paper, store):
    entry = begun(store, paper)
    store.note(entry.id, "begun")
    result = cli("show", "last")
    assert result.exit_code == 0 and "unfinished" in result.stdout and "begun" in result.stdout
    assert "`tutelage run` with the same settings goes on" in result.stdout
    assert json.loads(cli("show", "last", "--json").stdout)["state"] == "unfinished"
    assert "is unfinished" in bad(cli("export", "last"))


# ---- export


def mixed() -> xr.Dataset:
    """A run with everything: further axes, with and without labels, values per seed, text, nan, and hard numbers."""
    rng = np.random.default_rng(0)
    data = xr.Dataset(coords={"seed": [3, 5], "time": [0.0, 0.1, 1 / 3], "step": ("time", [0.0, 1.0, 2.0])})
    data["loss"] = (("seed", "time"), [[1 / 3, np.pi, np.nan], [5e-324, 1.7976931348623157e308, 1e-16]])
    data["overlap"] = (("seed", "time", "student", "teacher"), rng.normal(size=(2, 3, 2, 2)))
    data["event_time"] = (("seed", "event"), [[0.5, np.nan], [0.1, 0.2]])
    data["event"] = ("event", ["growth", "end"])
    data["stopped"] = ("seed", ["horizon", "converged"])
    data["recorded"] = ("seed", [3, 2])
    return data


def read(path, to) -> pd.DataFrame:
    return pd.read_csv(path) if to == "csv" else pd.read_parquet(path)


@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_every_value_comes_back_from_the_table(tmp_path, to):
    data = mixed()
    exporting.export(data, tmp_path / "a", to)
    frame = read(tmp_path / "a", to)
    assert list(frame["seed"]) == [3, 3, 3, 5, 5, 5] and list(tmp_path.iterdir()) == [tmp_path / "a"]
    for _, row in frame.iterrows():
        at = {"seed": int(row["seed"]), "time": row["time"]}
        one = data.sel(at)
        np.testing.assert_array_equal(row["loss"], one["loss"])
        for i, j in np.ndindex(2, 2):
            assert row[f"overlap[student={i},teacher={j}]"] == one["overlap"].values[i, j]
        for event in ("growth", "end"):
            np.testing.assert_array_equal(row[f"event_time[event={event}]"], one["event_time"].sel(event=event))
        assert row["stopped"] == one["stopped"] and row["recorded"] == one["recorded"] and row["step"] == one["step"]
    assert len(frame.columns) == 3 + 1 + 4 + 2 + 2


@pytest.mark.parametrize("design", ["grid", "points"])
def test_a_sweep_has_a_row_for_each_setting_and_seed(design):
    values = np.arange(12.0).reshape(2, 3, 2)
    if design == "grid":
        data = xr.Dataset({"t": (("dim", "width", "seed"), values), "done": (("dim", "width"), values[..., 0] > 0)},
                          coords={"dim": [10, 100], "width": [1, 2, 4], "seed": [0, 1]})  # fmt: skip
    else:
        settings = {"dim": ("point", [10, 10, 10, 100, 100, 100]), "width": ("point", [1, 2, 4, 1, 2, 4])}
        measured = {"t": (("point", "seed"), values.reshape(6, 2)), "done": ("point", values[..., 0].ravel() > 0)}
        data = xr.Dataset(measured, coords={"seed": [0, 1], **settings})
    frame = table(data)
    assert len(frame) == 12 and {"dim", "width", "seed", "t", "done"} <= set(frame.columns)
    for (i, j, k), value in np.ndenumerate(values):
        (row,) = frame[(frame.dim == [10, 100][i]) & (frame.width == [1, 2, 4][j]) & (frame.seed == k)].itertuples()
        assert row.t == value and row.done == (values[i, j, 0] > 0)


@pytest.mark.parametrize(("to", "suffix"), [("csv", "csv"), ("parquet", "parquet"), ("netcdf", "nc")])
def test_export_names_its_file(cli, store, tmp_path, monkeypatch, to, suffix):
    monkeypatch.chdir(tmp_path)
    cli("run", "tiny", "--seeds", 2)
    result = cli("export", "last", "--to", to)
    path = tmp_path / f"{only(store).id[:8]}.{suffix}"
    assert result.exit_code == 0 and f"Written: {path.name}" in result.stdout
    if to == "netcdf":
        assert load(path).identical(load(only(store).result))
    else:
        assert len(read(path, to)) == 2 * 41
    assert cli("export", path, "--out", "b.csv").exit_code == (0 if to == "netcdf" else 2)
    assert "does not exist" in bad(cli("export", "last", "--out", "no/such/a.csv"))


def test_parquet_without_pyarrow_is_one_sentence(cli, monkeypatch, tmp_path):
    cli("run", "tiny")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = bad(cli("export", "last", "--to", "parquet", "--out", tmp_path / "a"))
    assert "tutelage[parquet]" in said and "--to csv" in said and not (tmp_path / "a").exists()


# ---- rm


def test_rm_asks_first(cli, three, store):
    ids = [entry.id for entry in store.entries()]
    result = cli("rm", ids[0][:8], input="n\n")
    assert result.exit_code == 1 and "Remove this for good?" in result.output and len(store.entries()) == 3
    result = cli("rm", ids[0][:8], input="\n")
    assert result.exit_code == 1 and len(store.entries()) == 3  # no answer is no
    result = cli("rm", ids[0], ids[0][:8], "last", input="y\n")
    assert result.exit_code == 0 and len(store.entries()) == 2
    assert cli("rm", ids[1], ids[2], "--yes").exit_code == 0 and store.entries() == []


def test_rm_refuses_what_is_at_work_or_not_there(cli, three, paper, store):
    entry = begun(store, paper)
    others = [each.id for each in store.entries() if each.id != entry.id]
    with store.locked(entry.id):
        assert "at work on" in bad(cli("rm", others[0], entry.id, "--yes"))
        assert "has no run" in bad(cli("rm", others[0], "xyz", "--yes"))
        assert len(store.entries()) == 4  # all or none
    assert cli("rm", entry.id, "--yes").exit_code == 0
