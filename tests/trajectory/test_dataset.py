"""The Dataset of a run: its schema, and that writing and reading it back changes nothing."""

import json
from dataclasses import replace

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import xarray as xr
from hypothesis import given

import tutelage as tt
from tutelage.trajectory.dataset import load, save, to_dataset
from tutelage.trajectory.observables import STANDARD, WEIGHTS, Observable

FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(
    values=hnp.arrays(np.float64, (2, 3, 2), elements=FLOATS),
    times=st.lists(st.floats(0, 1e8), min_size=3, max_size=3, unique=True).map(sorted),
    seeds=st.lists(st.integers(0, 2**31), min_size=2, max_size=2, unique=True),
    note=st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20),
)
def test_round_trip_is_the_identity(tmp_path_factory, values, times, seeds, note):
    dataset = to_dataset(
        {"thing": values, "_reached": np.ones((2, 3), bool)},
        (Observable("thing", lambda view: view, ("student",), "a thing", "weight"),),
        seeds=np.array(seeds),
        clock=np.arange(3.0),
        time=np.array(times),
        extra={"stopped": xr.Variable("seed", ["horizon", "converged"])},
        settings={"note": note},
        asked={"note": note},
    )
    path = tmp_path_factory.mktemp("nc") / "run.nc"
    save(dataset, path)
    xr.testing.assert_identical(load(path), dataset)


def test_groups_survive_the_disk_and_are_asked_for(run, tmp_path):
    path, short = tmp_path / "two.nc", run.dataset.isel(time=slice(3))
    tree = xr.DataTree.from_dict({"/": xr.Dataset(attrs={"title": "two"}), "long": run.dataset, "short": short})
    save(tree, path)
    assert tt.load(path, tree=True).identical(tree)
    with pytest.raises(tt.BadInput, match="the groups long, short; read it with"):
        load(path)
    save(short, path)
    assert tt.load(path, tree=True).to_dataset().identical(short)


@pytest.fixture(scope="module")
def run():
    problem = tt.Problem(
        inputs=tt.Gaussian(10**6),
        teacher=tt.TwoLayer("linear", first=[[1.0]]),
        student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-3), width=1, trains=("first",)),
    )
    return tt.descend(problem, step=0.5, steps=60, seeds=3, record=tt.Record(weights=True), stop=tt.Stop(loss=1e-6))


def test_a_real_run_survives_the_disk(run, tmp_path):
    run.save(tmp_path / "run.nc")
    xr.testing.assert_equal(load(tmp_path / "run.nc"), run.dataset)


def test_schema(run):
    data = run.dataset
    for observable in STANDARD + WEIGHTS:
        variable = data[observable.name]
        assert variable.dims == ("seed", "time", *observable.dims)
        assert variable.attrs["long_name"] and variable.attrs["units"]
    assert list(data["seed"].values) == [0, 1, 2]
    assert set(data["stopped"].values) == {"converged"}
    settings = json.loads(data.attrs["settings"])
    assert settings["dim"] == 10**6 and settings["step"] == 0.5
    for key in ("schema", "created_at", "tutelage_version", "jax_version", "dtype", "device", "settings_hash"):
        assert data.attrs[key]


def test_standard_observables_are_what_they_say():
    """Of a start with numbers in which no two answers agree, worked out by hand."""
    problem = tt.Problem(
        inputs=tt.Gaussian(3),
        teacher=tt.TwoLayer("linear", first=[[2.0, 0.0]], second=[[1.0, 0.0]]),
        student=tt.TwoLayer("linear", first=[[3.0, 4.0], [0.0, -1.0]], second=[[1.0, 2.0], [3.0, 0.0]]),
    )
    data = tt.descend(problem, step=1e-3, steps=1).dataset.isel(seed=0, time=0)
    angle = np.arccos(0.6)
    expected = {
        # The student computes (3 x + 4 y - 3 y, 6 x + 8 y), the teacher (2 x, 0).
        "loss": 0.5 * (1 + 1 + 36 + 64),
        "first_norm": [5, 1],
        "second": [[1, 2], [3, 0]],
        "overlap": [[6], [0]],
        "overlap_cos": [[0.6], [0]],
        "overlap_angle": [[angle], [np.pi / 2]],
        "overlap_ss": [[25, -4], [-4, 1]],
        "overlap_ss_angle": [[0, np.pi / 2 + angle], [np.pi / 2 + angle, 0]],
        "imbalance": [20, -8],
        # In w: V_i^T M with M = [[1, 1], [6, 8]]; in V: w_i^T M^T.
        "gradient_norm": np.sqrt(13**2 + 17**2 + 3**2 + 3**2 + 7**2 + 50**2 + 1 + 8**2),
    }
    assert set(expected) == {observable.name for observable in STANDARD}
    for name, value in expected.items():
        np.testing.assert_allclose(data[name], value, rtol=1e-14, atol=1e-14, err_msg=name)


def test_nothing_is_recorded_after_the_end(run):
    """Each seed's records end where it stopped; the time axis ends with the last seed."""
    reached = np.isfinite(run.loss.values)
    assert reached[:, -1].any()
    np.testing.assert_array_equal(reached.sum(1), run.recorded)
    np.testing.assert_allclose(run.last("loss").values, [run.loss.values[s, n - 1] for s, n in enumerate(run.recorded)])
    assert (run.last("loss") <= 1e-6).all()


def test_every_variable_of_the_schema_page_exists(run):
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "schema.md").read_text()
    for name in run.dataset.variables:
        assert f"`{name}`" in page, f"docs/schema.md does not mention {name}"


def test_attributes_are_variables(run):
    assert run.loss.identical(run.dataset["loss"])
    assert "overlap" in dir(run)
    with pytest.raises(AttributeError, match="no 'los'"):
        _ = run.los


def test_the_last_value_of_what_is_not_recorded_is_one_sentence(run):
    for name, words in {
        "lss": "Unknown variable over time 'lss': did you mean 'loss'",
        "nothing": "Unknown variable over time 'nothing': .*Known are first_norm",
        "stop_time": "'stop_time' was not recorded over time .* it is the attribute stop_time",
        "time": "'time' was not recorded over time",
        3: "variable over time is 3, but one of loss",
    }.items():
        with pytest.raises(tt.BadInput, match=words) as told:
            run.last(name)
        assert "\n" not in str(told.value) and str(told.value).endswith(".")
    with pytest.raises(tt.BadInput, match="Nothing here was recorded over time"):
        replace(run, dataset=run.dataset[["stop_time"]]).last("loss")


def test_summary_is_json(run):
    text = json.loads(json.dumps(run.summary()))
    assert text["seeds"] == 3 and text["stopped"] == {"converged": 3} and text["loss"]["count"] == 3


def test_bad_files(tmp_path):
    with pytest.raises(tt.BadInput, match="is not a file"):
        tt.load(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("hello")
    with pytest.raises(tt.BadInput, match="could not be read as NetCDF"):
        tt.load(tmp_path / "text.nc")
    assert (tmp_path / "text.nc").read_text() == "hello"


def test_wrong_dims_are_named():
    with pytest.raises(tt.BadInput, match="name one dim per axis"):
        to_dataset(
            {"x": np.zeros((1, 1, 2)), "_reached": np.ones((1, 1), bool)},
            (Observable("x", lambda view: view, ("a", "b")),),
            seeds=np.array([0]),
            clock=np.zeros(1),
            time=np.zeros(1),
            extra={},
            settings={},
            asked=None,
        )


def test_a_flipped_bit_among_the_numbers_is_noticed(tmp_path):
    values = np.random.default_rng(0).random((4, 50))
    path = tmp_path / "run.nc"
    save(xr.Dataset({"loss": (("seed", "time"), values)}), path)
    content = bytearray(path.read_bytes())
    place = content.find(values[2, 7].tobytes())
    assert place > 0
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(tt.BadInput, match="could not be read"):
        tt.load(path)
