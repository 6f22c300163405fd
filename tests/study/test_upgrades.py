"""Stores and files of earlier versions: read, or refused with a sentence, and never read as if they were of today."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import tutelage as tt
from tutelage._errors import BadInput
from tutelage._revisions import SCHEMA

STORES = Path(__file__).parent / "stores"
"""One of each version, as that version wrote it: a run and a sweep of `both_layers`, and the file of a run."""
OLD = [f"schema-{number}" for number in range(1, SCHEMA)]


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_earlier_version_has_a_store_here():
    assert sorted(path.name for path in STORES.iterdir() if path.is_dir()) == OLD


@pytest.mark.parametrize("name", OLD)
def test_entries_of_an_earlier_version_are_listed_as_such_and_left_alone(name, tmp_path):
    shutil.copytree(STORES / name, tmp_path / "store")
    store, before = tt.Store(tmp_path / "store"), content(tmp_path / "store")
    entries = store.entries()
    assert len(entries) == 2
    for entry in entries:
        assert entry.state == "damaged" and "was written by an earlier version of tutelage" in entry.trouble
        with pytest.raises(BadInput, match="earlier version .* `tutelage rm"):
            store.open(entry)
    assert content(tmp_path / "store") == before


@pytest.mark.parametrize("name", OLD)
def test_asking_again_computes_anew_beside_them(name, tmp_path):
    """The old numbers are not read, and a sweep takes none of its cells."""
    shutil.copytree(STORES / name, tmp_path / "store")
    store, before = tt.Store(tmp_path / "store"), content(tmp_path / "store")
    run = tt.papers.both_layers(steps=40, width=1).run(seeds=2, store=store)
    swept = tt.sweep(
        tt.papers.both_layers(steps=40), over={"width": [1]}, measure="final_loss", seeds=2, store=store, processes=1
    )
    assert run.computed and len(store.entries()) == 4
    # A sweep measures less, and what is measured is compiled together: the last bit may be another.
    np.testing.assert_allclose(swept.final_loss.values[0], run.last("loss").values, rtol=1e-14)
    after = content(tmp_path / "store")
    assert {path: after[path] for path in before} == before


def test_a_file_of_a_run_of_an_earlier_version_is_read():
    dataset = tt.load(STORES / "schema-1.nc").dataset
    assert dataset.attrs["schema"] == 1 and np.isfinite(dataset.loss.values).all()
