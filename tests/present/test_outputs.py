"""What is written and printed: refused before it is computed, written whole or not at all, and never a traceback."""

import dataclasses
import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

import tutelage._files as files
from tutelage import _config
from tutelage._errors import BadInput
from tutelage.present.cli import app, streams
from tutelage.store.store import Store
from tutelage.study.study import Study
from tutelage.trajectory.dataset import load, save


@pytest.fixture
def cli(registered):
    def call(*words):
        return CliRunner().invoke(app, [str(word) for word in words])

    return call


@pytest.fixture
def kept(cli):
    """A store with one run."""
    assert cli("run", "tiny", "--seeds", 1, "-q").exit_code == 0
    return Store()


def bad(result) -> str:
    """The single sentence that bad input gives."""
    assert result.exit_code == 2, result.output
    assert result.stdout == "" and "Traceback" not in result.stderr
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("tutelage: ")
    return line


WRITERS = {
    "run": ("run", "tiny", "--seeds", 2, "--out"),
    "run figure": ("run", "tiny", "--seeds", 2, "--figure"),
    "sweep": ("sweep", "tiny", "--over", "dim=2,3", "--measure", "final_loss", "--figure"),
    "runs": ("runs", "--figure"),
    "show": ("show", "last", "--figure"),
    "export": ("export", "last", "--out"),
}


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def read_only(monkeypatch):
    """No file can be made anywhere: whoever may do everything is not kept from it by permissions."""

    def refused(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(files.tempfile, "TemporaryFile", refused)


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_computed(cli, kept, performed, words, tmp_path):
    folder, fifo = tmp_path / "folder.png", tmp_path / "fifo.png"
    folder.mkdir()
    os.mkfifo(fifo)
    assert "is a folder" in bad(cli(*words, folder))
    assert "not a file that can be replaced" in bad(cli(*words, fifo))  # such as a device, which must stay one
    assert "does not exist" in bad(cli(*words, tmp_path / "none" / "x.png"))
    assert "cannot be written" in bad(cli(*words, "/proc/x.png"))
    assert cli(*words, "").exit_code == 2
    assert performed == [] and sorted(tmp_path.iterdir()) == [fifo, folder] and fifo.is_fifo()


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
def test_a_disk_that_takes_nothing_is_found_out_first(cli, kept, performed, words, tmp_path, read_only):
    assert "Read-only file system" in bad(cli(*words, tmp_path / "x.png"))
    assert performed == [] and not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["run", "run figure", "runs", "show", "export"])
def test_a_disk_that_fills_up_leaves_no_part_of_a_file(cli, kept, name, tmp_path, monkeypatch):
    words = [1 if word == 2 else word for word in WRITERS[name]]  # the run that is kept: only the output is written
    monkeypatch.setattr(files.os, "fsync", full)  # the last moment at which a disk can say so
    result = cli(*words, tmp_path / "x.png")
    assert result.exit_code == 2 and "No space left on device" in result.stderr
    assert "Traceback" not in result.stderr and not list(tmp_path.iterdir())


def test_an_old_file_stays_when_a_new_one_cannot_be_written(saved_run, monkeypatch):
    before, data = saved_run.read_bytes(), load(saved_run)

    def part(path, content):
        with open(path, "wb") as file:
            file.write(content[:1000])
        full()

    monkeypatch.setattr(Path, "write_bytes", part)
    with pytest.raises(BadInput, match="No space left"):
        save(data, saved_run)
    assert saved_run.read_bytes() == before and os.listdir(saved_run.parent) == [saved_run.name]


def test_a_picture_that_fails_leaves_nothing(cli, kept, tmp_path, monkeypatch):
    def half(self, path, **_):
        Path(path).write_bytes(b"half")
        full()

    monkeypatch.setattr(Figure, "savefig", half)
    assert "No space left" in cli("show", "last", "--figure", tmp_path / "x.png").stderr
    assert not list(tmp_path.iterdir())


def test_links_are_followed_and_protected_files_are_left(cli, kept, tmp_path, monkeypatch):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    assert cli("export", "last", "--out", link).exit_code == 0
    assert link.is_symlink() and target.read_text() != "old"
    monkeypatch.setattr(files.os, "access", lambda *_: False)
    assert "write-protected" in bad(cli("export", "last", "--out", link))


@pytest.mark.parametrize("words", [("runs", "--store"), ("reproduce", "tiny", "--out"), ("run", "tiny", "--out")])
def test_an_empty_name_is_not_the_folder_one_is_in(cli, performed, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = cli(*words, "")
    assert result.exit_code == 2 and "the name is empty" in result.stderr
    assert performed == [] and not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["file", "file/below", "none/below"])
def test_a_cache_that_cannot_be_is_done_without(place, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    kept = {"jax_compilation_cache_dir": None}
    monkeypatch.setattr(_config, "jax", SimpleNamespace(config=SimpleNamespace(update=kept.__setitem__)))
    monkeypatch.setenv("TUTELAGE_CACHE", str(tmp_path / place))
    _config.configure()
    assert kept["jax_compilation_cache_dir"] == (str(tmp_path / place) if place.startswith("none") else None)


def test_the_smallest_program_is_kept(tmp_path):
    code = "import jax, tutelage.problem; jax.jit(lambda x: x + 1.0)(1.0)"
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"TUTELAGE_CACHE": str(tmp_path)}, check=True)
    assert any(tmp_path.iterdir())


def test_a_program_that_was_half_written_is_compiled_without_a_word(tmp_path):
    code = "import jax, tutelage.problem; print(jax.jit(lambda x: x + 1.0)(1.0))"
    command, where = [sys.executable, "-c", code], os.environ | {"TUTELAGE_CACHE": str(tmp_path)}
    subprocess.run(command, env=where, check=True)
    kept = [path for path in tmp_path.iterdir() if path.name.endswith("-cache")]
    for path in kept:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    again = subprocess.run(command, env=where, check=True, capture_output=True, text=True)
    assert kept and again.stdout == "2.0\n" and again.stderr == ""


def test_two_outputs_need_two_names(cli, performed, tmp_path):
    same = tmp_path / "x.png"
    assert "both" in bad(cli("run", "tiny", "--out", same, "--figure", same)) and performed == []


def test_a_report_has_a_place_before_it_is_computed(cli, tmp_path, read_only):
    assert "Read-only" in bad(cli("reproduce", "tiny", "--out", tmp_path / "report"))
    assert not list(tmp_path.iterdir())


def test_claims_that_cannot_be_kept_are_not_checked(cli, kept, read_only, monkeypatch):
    def check(*_, **__):
        raise AssertionError("checked")

    monkeypatch.setattr(Study, "check", check)
    assert "Read-only" in bad(cli("show", "last", "--check"))


def test_a_store_that_is_a_file_is_refused(cli, tmp_path, performed):
    (tmp_path / "file").write_text("")
    assert "is a file" in bad(cli("run", "tiny", "--store", tmp_path / "file"))
    assert cli("run", "tiny", "--store", tmp_path / "file" / "below").exit_code == 2 and performed == []
    assert cli("run", "tiny", "--store", tmp_path / "new" / "below", "-q").exit_code == 0  # made when it is needed


# ---- errors of the machine


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MemoryError(), 1, "memory"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes."), 1, "memory"),
        (OSError(errno.ENOSPC, "No space left on device", "a/b"), 2, "a/b cannot be used (No space left on device)"),
        (KeyboardInterrupt(), 130, "stopped"),
    ],
)
def test_what_the_machine_cannot_is_one_sentence(cli, monkeypatch, error, code, said):
    def run(*_, **__):
        raise error

    monkeypatch.setattr(Store, "select", run)
    result = cli("runs")
    assert result.exit_code == code and said in result.stderr and result.stderr.count("\n") == 1


def test_other_errors_stay_loud(cli, monkeypatch):
    monkeypatch.setattr(Store, "select", lambda *_: 1 / 0)
    assert isinstance(cli("runs").exception, ZeroDivisionError)


# ---- standard output


class Pipe(io.RawIOBase):
    """Takes some bytes, then none."""

    def __init__(self, room: int, error: int):
        self.room, self.error, self.taken = room, error, b""

    def writable(self):
        return True

    def isatty(self):
        return False

    def write(self, data):
        if not self.room:
            raise OSError(self.error, os.strerror(self.error))
        part = bytes(data)[: self.room]
        self.room -= len(part)
        self.taken += part
        return len(part)


def printed(monkeypatch, pipe, encoding, text, code=0):
    """The exit code of a command that printed it."""
    stream = io.TextIOWrapper(io.BufferedWriter(pipe), encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), "utf-8"))
    sink = streams.begin()
    print(text)
    return streams.ended(sink, code)


@pytest.mark.parametrize(("error", "codes"), [(errno.EPIPE, {0: 0, 1: 1}), (errno.ENOSPC, {0: 2, 1: 1})])
def test_an_output_that_ends_early(monkeypatch, error, codes):
    for code, expected in codes.items():
        pipe = Pipe(3, error)
        assert printed(monkeypatch, pipe, "utf-8", "abc" * 10000, code) == expected
        assert pipe.taken == b"abc"


def test_letters_that_a_terminal_lacks_are_spelt_in_others(monkeypatch):
    text = "–━┤ 0.5 ± 0.1 ≤ é ⡠ 漢 " + "é" * 9000  # longer than a buffer: letters are cut in two
    plain = Pipe(10**6, 0)
    assert printed(monkeypatch, plain, "ascii", text) == 0
    assert plain.taken.decode("ascii") == "-=| 0.5 +/- 0.1 <= e * ? " + "e" * 9000 + "\n"
    rich = Pipe(10**6, 0)
    assert printed(monkeypatch, rich, "utf-8", text) == 0 and rich.taken.decode() == text + "\n"


def test_json_is_ascii(cli, registered, paper):
    registered(dataclasses.replace(paper, title="Über 漢"))
    result = cli("papers", "--json")
    assert result.stdout.isascii() and json.loads(result.stdout)[0]["title"] == "Über 漢"


def command(words: str, **options):
    line = f'"{sys.executable}" -m tutelage {words}'
    return subprocess.run(["sh", "-c", line], capture_output=True, **options)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("version >&-", 2, "tutelage: Standard output is closed"),
        ("version > /dev/full", 2, "tutelage: Standard output cannot be written (No space left on device)"),
        ("version 2>&-", 0, ""),
    ],
)
def test_standard_streams_of_a_command(words, code, said):
    done = command(words)
    assert done.returncode == code
    assert done.stderr.decode().startswith(said) and done.stderr.count(b"\n") == bool(said)


def test_a_reader_that_has_heard_enough_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "tutelage", "papers", "--help"], stdout=pipe, stderr=subprocess.PIPE
        )
    assert (done.returncode, done.stderr) == (0, b"")
