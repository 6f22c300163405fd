"""Detectors on synthetic trajectories whose answers are known, with noise from a fixed seed."""

import json

import numpy as np
import pytest
import xarray as xr

from tutelage.analysis import lines, phases

NOISE = 0.03


@pytest.fixture
def noise():
    generator = np.random.default_rng(0)
    return lambda shape, scale=NOISE: np.exp(scale * generator.standard_normal(shape))


def test_crossing_is_the_record_after_the_true_time():
    time = np.geomspace(1, 100, 50)
    true = 17.3
    at = phases.crossing(time, time >= true)
    # The detected time lies past the true one by less than its stated uncertainty.
    assert 0 <= at.time - true < at.uncertainty
    assert at.uncertainty == time[at.record] - time[at.record - 1]


def test_crossing_that_stays():
    time = np.arange(10.0)
    values = np.array([5, 1, 5, 5, 1, 1, 0, 1, 1, 1.0])
    assert phases.crossing(time, values < 2).time == 4
    assert phases.crossing(time, values < 2, stays=False).time == 1
    assert phases.crossing(time, values < 2, stays=False, after=2).time == 4
    assert phases.crossing(time, values > 10) is None
    # True at the end, and then false at the last record: it did not stay.
    assert phases.crossing(time, values < 1) is None


def test_crossing_at_the_first_record_and_with_records_missing_at_the_end():
    time = np.arange(6.0)
    values = np.array([1, 1, 1, 1, np.nan, np.nan])
    assert phases.crossing(time, values < 2) is None
    assert phases.crossing(time, values < 2, valid=np.isfinite(values)) == (0, 0.0, 0.0)
    assert phases.crossing(time + 3, values > 0, stays=False).uncertainty == 3.0


def step_down(time, at, low, high):
    """A loss near `high`, then near `low`, half way (in logarithm) at time `at`, over about a tenth of a decade."""
    return np.exp(np.log(high) + np.log(low / high) / (1 + (at / time) ** 20))


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("spaced", [np.geomspace(1, 1e4, 400), np.linspace(0, 1e4, 5001)])
def test_plateaus(noise, noisy, spaced):
    loss = step_down(np.maximum(spaced, 1e-9), 100, 0.01, 0.5)
    if noisy:
        loss = loss * noise(loss.shape, 0.005)
    first, second = phases.plateaus(spaced, loss)
    assert "near 0.5" in first.description or "near 0.49" in first.description
    # The slope is -20 ln(50) s(1-s), s = 1/(1+(at/t)^20): it passes 0.1 in size at s = 0.0013, that is at
    # t = 100 e^{-0.332} = 72 and, by symmetry, at 139; edges are known to their uncertainty (half a window).
    assert abs(first.end - 72) <= first.uncertainty
    assert abs(np.log10(second.start / 139)) <= 0.1 + NOISE
    assert second.end > 9e3
    assert first.uncertainty >= np.diff(spaced)[np.searchsorted(spaced, first.end) - 1] * 0.99


def test_no_plateau_in_a_power_law(noise):
    time = np.geomspace(1, 1e4, 300)
    assert phases.plateaus(time, time**-0.5 * noise(300)) == []


def test_plateau_shorter_than_asked_is_not_told():
    time = np.geomspace(1, 1e4, 400)
    loss = step_down(time, 100, 0.01, 0.5)
    # Both last log10(72) = 1.86 decades, less at most half a window of 0.1.
    assert len(phases.plateaus(time, loss, decades=1.9)) == 0
    assert len(phases.plateaus(time, loss, decades=1.7)) == 2


def test_growth_rate_of_an_exponential_between_two_plateaus(noise):
    time, rate = np.linspace(0, 120, 1200), 0.5
    values = 1 / (1 + 1e9 / (1 + np.exp(rate * time - 5)))
    # The values rise by a factor 1e9, all but some units of ln at both bends as exp(rate t). A bend may leave
    # the tolerance 0.02 (or the noise 0.03) over a rise of about 15, so the rate is known to a few per mille.
    for factor in (1.0, noise(1200)):
        phase = phases.growth(time, values * factor)
        assert abs(phase.fit.slope / rate - 1) < 0.01
        assert rate in phase.fit.interval
        assert 10 <= phase.start < 18 and 46 < phase.end < 54


def test_growth_interval_covers_the_rate(noise):
    time, rate = np.linspace(0, 10, 200), 0.7
    missed = 0
    for _ in range(200):
        fit = phases.growth(time, np.exp(rate * time) * noise(200)).fit
        missed += rate not in fit.interval
    # A 99% interval misses 2 of 200 on average; 10 or more happen with probability below 1e-4 (binomial tail).
    assert missed < 10


def test_no_growth_in_a_decaying_curve():
    time = np.linspace(0, 10, 100)
    assert phases.growth(time, np.exp(-time)) is None


def test_exponential_tail_after_a_plateau_and_before_the_rounding_floor(noise):
    time, rate = np.arange(0.0, 2000), 0.1
    loss = 0.5 / (1 + np.exp(rate * (time - 500)))
    for factor, within in ((1.0, 1e-4), (noise(2000), 1e-3)):
        tail = phases.exponential_tail(time, (loss + 1e-27) * factor)
        # The floor is at 1e-26 of the top: 59.9 / rate = 599 after the fall began at about 500.
        assert abs(tail.end - 1099) < 15 and 500 <= tail.start < 560
        assert abs(tail.fit.slope + rate) < within
        assert tail.uncertainty == 1.0


def test_a_bend_widens_the_interval_and_noise_does_not():
    generator = np.random.default_rng(1)
    x = np.linspace(0, 1, 400)
    white = 0.01 * generator.standard_normal(400)
    straight, bent = lines.fitted_line(x, x + white), lines.fitted_line(x, x + 0.1 * x**2 + white)
    # The slope of x + x^2/10 goes from 1 to 1.2; over thirds it is 1.033, 1.1 and 1.167.
    assert bent.error > 0.04 and straight.error < 0.005
    # The textbook standard error: 0.01 / sqrt(400 / 12), estimated to sqrt(1/800) = 3.5%; four of those allowed.
    assert abs(straight.error / (0.01 / np.sqrt(400 / 12)) - 1) < 0.15


@pytest.fixture
def batch():
    time = np.geomspace(0.1, 1e3, 300)
    start = np.array([10.0, 40.0, 1e9])[:, None]
    angle = 1 / (1 + (time / start) ** 4)
    size = np.minimum(1, np.exp((time - 2 * start) / 10))
    loss = 0.5 * np.exp(-np.maximum(time - 2 * start, 0) / 20)
    loss[0, -20:] = np.nan
    data = {"loss": (("seed", "time"), loss), "angle": (("seed", "time"), angle), "size": (("seed", "time"), size)}
    return xr.Dataset(data, {"time": time, "seed": [3, 4, 5]})


MARKS = (
    phases.Milestone("alignment", lambda one: one.angle < 0.5, predicted=lambda one: 10.0),
    phases.Milestone("growth", lambda one: one["size"] > 0.5, predicted=None),
)


def test_milestones_follow_each_other_per_seed(batch):
    found = phases.detect(batch, [phases.milestones(MARKS, last="refinement")])
    names = [(phase.seed, phase.name) for phase in found]
    # Seed 5 never aligns within the horizon, so nothing is said of it.
    assert names == [(s, n) for s in (3, 4) for n in ("alignment", "growth", "refinement")]
    by = {(phase.seed, phase.name): phase for phase in found}
    for seed, start in ((3, 10.0), (4, 40.0)):
        aligned, grown = by[seed, "alignment"], by[seed, "growth"]
        assert 0 <= aligned.end - start < aligned.uncertainty
        assert 0 <= grown.end - (2 * start + 10 * np.log(0.5)) < grown.uncertainty
        assert grown.start == aligned.end and by[seed, "refinement"].start == grown.end
    assert by[3, "refinement"].end == batch.time.values[-21]


def test_table_is_json_with_the_error_of_the_prediction(batch):
    rows = [phase.record() for phase in phases.detect(batch, [phases.milestones(MARKS)])]
    assert json.loads(json.dumps(rows)) == rows
    assert rows[0]["error"] == rows[0]["end"] - 10.0 and rows[1]["error"] is None


def test_two_milestones_at_one_record():
    time = np.arange(5.0)
    data = xr.Dataset({"loss": (("seed", "time"), np.ones((1, 5)))}, {"time": time, "seed": [0]})
    same = [phases.Milestone(name, lambda one: one.time >= 2) for name in "ab"]
    assert [(p.start, p.end) for p in phases.detect(data, [phases.milestones(same)])] == [(0, 2), (2, 2)]


def test_default_detectors_on_a_seed_that_ended_early(batch):
    found = phases.detect(batch)
    assert {(p.seed, p.name) for p in found} == {
        (3, "plateau"), (3, "linear convergence"), (4, "plateau"), (4, "linear convergence"), (5, "plateau"),
    }  # fmt: skip
    tail = next(p for p in found if p.seed == 4 and p.fit)
    assert abs(tail.fit.slope + 1 / 20) < 1e-3


# ---- a loss that stands still at the end

TIME = np.linspace(0.1, 60, 600)
FALLS = np.exp(-TIME)


@pytest.mark.parametrize(
    ("loss", "start"),
    [
        (FALLS + 6e-14, 35.0),  # where e^-t is 1 % of the rest
        (FALLS, None),
        (1 / TIME, None),
        (TIME**-0.05, 60 / np.exp(0.01 / 0.05)),
        (FALLS + 1e-28, None),  # rounding, not a stall
        (np.where(TIME < 58, FALLS, np.exp(-58.0)), None),  # less than a tenth of the time
        (np.where(TIME < 50, FALLS, np.nan), None),
    ],
)
def test_a_stall_is_where_the_loss_stands_still_at_the_end(loss, start):
    found = phases.stall(TIME, loss)
    assert found is None if start is None else abs(found.start - start) < 0.5 and found.end == TIME[-1]


def test_refinement_ends_where_the_loss_stands_still():
    data = xr.Dataset({"loss": (("seed", "time"), (FALLS + 6e-14)[None])}, {"time": TIME, "seed": [0]})
    mark = phases.Milestone("growth", lambda one: one["time"].values >= 10)
    found = phases.detect(data, [phases.milestones([mark], last="refinement")])
    assert [(p.name, round(p.start), round(p.end)) for p in found] == [
        ("growth", 0, 10), ("refinement", 10, 35), ("stall", 35, 60),
    ]  # fmt: skip
    assert [p.name for p in phases.detect(data)] == ["linear convergence", "stall"]
