"""Descent by optimisers: recurrences written out in NumPy, and few coordinates against all of them."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import tutelage as tt

pytestmark = pytest.mark.usefixtures("quickly_compiled")
DIM, TAUGHT = 5, np.array([1.0, 0.5, 0.0, -0.3, 0.0])
START, OUT = np.array([0.3, -0.2, 0.1, 0.0, 0.4]), 0.7


def linear(penalty=None):
    """One linear unit, `f = v w.x`: its loss is `1/2 |v w - w*|^2`."""
    networks = (tt.TwoLayer("linear", first=[w], second=[v]) for w, v in ((TAUGHT, 1.0), (START, OUT)))
    return tt.Problem(tt.Gaussian(DIM), *networks, penalty=penalty)


def relu(dim=12):
    teacher = tt.TwoLayer("relu", first=[[1.0, 0.0], [0.0, 1.0]])
    return tt.Problem(tt.Gaussian(dim), teacher, tt.TwoLayer("relu", first=tt.GaussianRows(dim**-0.5), width=3))


def slopes(w, v, strength=0.0):
    off = v * w - TAUGHT
    return np.append(v * off + strength * w, w @ off)


@pytest.mark.parametrize("strength", [0.0, 0.3])
def test_adam_is_adam(strength):
    """Kingma and Ba's recurrence in all coordinates, also with a penalty, which is a part of the gradient."""
    problem = linear(tt.Penalty(first=strength) if strength else None)
    run = tt.descend(problem, steps=25, optimiser=optax.adam(0.02), space="full")
    y, mean, square = np.append(START, OUT), np.zeros(DIM + 1), np.zeros(DIM + 1)
    for n in range(1, 26):
        slope = slopes(y[:-1], y[-1], strength)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        y = y - 0.02 * (mean / (1 - 0.9**n)) / (np.sqrt(square / (1 - 0.999**n)) + 1e-8)
    np.testing.assert_allclose(run.final.first[0, 0], y[:-1], rtol=1e-10)
    np.testing.assert_allclose(run.final.second[0, 0], y[-1:], rtol=1e-10)
    assert float(run.time[-1]) == 25 and run.stopped == (tt.StopReason.HORIZON,)


def test_nesterov_is_nesterov():
    run = tt.descend(linear(), steps=25, optimiser=optax.sgd(0.05, momentum=0.8, nesterov=True), rates={"second": 0.5})
    y, trace, rates = np.append(START, OUT), np.zeros(DIM + 1), np.append(np.ones(DIM), 0.5)
    for _ in range(25):
        slope = slopes(y[:-1], y[-1])
        trace = slope + 0.8 * trace
        y = y - 0.05 * rates * (slope + 0.8 * trace)
    loss = 0.5 * np.sum((y[-1] * y[:-1] - TAUGHT) ** 2)
    assert float(run.last("loss")[0]) == pytest.approx(loss, rel=1e-11)
    assert float(run.last("overlap_ss").squeeze()) == pytest.approx(y[:-1] @ y[:-1], rel=1e-11)


def test_momentum_is_that_of_the_heavy_ball():
    ball = tt.run(relu(10**6), tt.HeavyBall(0.1, 40, momentum=0.7), seeds=3)
    other = tt.descend(relu(10**6), steps=40, optimiser=optax.sgd(0.1, momentum=0.7), seeds=3)
    np.testing.assert_allclose(other.final.first, ball.final.first, rtol=0, atol=1e-13)


LAWFUL = {
    "nesterov": optax.sgd(0.1, momentum=0.8, nesterov=True),
    "clipped, decayed": optax.chain(
        optax.clip_by_global_norm(0.1), optax.add_decayed_weights(0.1), optax.sgd(optax.cosine_decay_schedule(0.3, 30))
    ),
    "trust": optax.chain(optax.scale_by_trust_ratio(), optax.sgd(0.05)),
}


@pytest.mark.parametrize("case", LAWFUL)
def test_few_coordinates_are_all_of_them(case):
    """From one and the same start: that in full space. Its units and teachers span 5 of 12 dimensions."""
    frame = tt.Optimised(LAWFUL[case], 30)
    few, all_of_them = (
        tt.run(relu(), dataclasses.replace(frame, space=space), record=5, seeds=2) for space in ("frame", "full")
    )
    assert few.final.first.shape[-1] == 5 and all_of_them.final.first.shape[-1] == 12
    start = tt.Start(few.teacher, few.start)
    wide = tt.Start(*(_widened(weights) for weights in start))
    again = tt.run(relu(), dataclasses.replace(frame, space="full"), record=5, seeds=2, start=wide)
    for name in ("loss", "overlap", "overlap_ss"):
        np.testing.assert_allclose(again.dataset[name], few.dataset[name], rtol=1e-11, atol=1e-13)


def _widened(weights):
    return tt.Weights(jnp.pad(weights.first, [(0, 0)] * (weights.first.ndim - 1) + [(0, 7)]), weights.second)


def test_an_optimiser_of_the_axes_would_differ():
    """What is refused in the frame: there Adam is another optimiser."""
    with pytest.raises(tt.BadInput, match='as Adam does.*use space="full"'):
        tt.descend(relu(), steps=5, optimiser=optax.adam(0.1))
    assert tt.descend(relu(), steps=5, optimiser=optax.adam(0.1), data=20).dataset.sizes["time"] > 1


def test_it_is_certified_and_kept(tmp_path):
    options = {"steps": 30, "optimiser": LAWFUL["nesterov"], "store": tmp_path}
    run = tt.descend(relu(), certify=True, **options)
    assert run.certificate.ok, run.certificate.sentence
    again = tt.descend(relu(), record=tt.Record(weights=True), **options)
    assert not again.computed and again.loss.identical(run.loss)
