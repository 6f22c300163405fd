"""Certificates agree with right runs, and each kind of planted error makes one fail."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage.analysis.certificates import certify, checks
from tutelage.oracle.population import PopulationOracle
from tutelage.trajectory.running import again

FEW = {"times": 2, "samples": 20_000}


def problem(student="relu", teacher="linear", trains=("first", "second"), scale=1e-3):
    return tt.Problem(
        inputs=tt.Gaussian(20),
        teacher=tt.TwoLayer(teacher, first=[[1.0]]),
        student=tt.TwoLayer(student, first=tt.GaussianRows(scale), second=[scale, -scale], width=2, trains=trains),
    )


@pytest.fixture(scope="module")
def descent():
    return tt.descend(problem(), step=0.1, steps=600, seeds=2, record=tt.Record(weights=True))


@pytest.fixture(scope="module")
def flow():
    return tt.flow(problem(), until=60.0, seeds=2, record=tt.Record(60, weights=True))


def failing(certificate):
    return {(row.what.split(" at ")[0].split(" of ")[0], row.route) for row in certificate.rows if not row.agrees}


def test_descent_agrees_down_to_tiny_losses(descent):
    certificate = certify(descent, **FEW)
    assert certificate.ok, certificate.sentence
    assert {row.route for row in certificate.rows} == {"definition", "ball arithmetic", "20000 samples", "differences"}
    last = [row for row in certificate.rows if row.what.startswith("loss") and row.route == "ball arithmetic"][-1]
    # The cancellation-free loss is right to rounding, and the certificate asks for it.
    assert 0 < last.reported < 1e-20 and last.tolerance < 1e-9 * last.reported
    assert json.loads(json.dumps(certificate.records(), allow_nan=False))[0]["agrees"] is True
    assert certificate.sentence.startswith("All ") and any("1e-06" in note for note in certificate.notes)


def test_flow_agrees(flow):
    certificate = certify(flow, **FEW)
    assert certificate.ok, certificate.sentence
    assert "half the tolerance" in {row.route for row in certificate.rows}


def test_weights_are_made_when_they_were_not_recorded():
    run = tt.descend(problem(), step=0.1, steps=600, seeds=2)
    assert "weights_first" not in run.dataset and certify(run, **FEW).ok


def test_certify_flag():
    run = tt.descend(problem(), step=0.1, steps=600, seeds=1, certify=True)
    assert run.certificate.ok and run.summary()["certificate"]


@pytest.mark.parametrize("data", ["drawn", "given"])
def test_empirical_runs(data):
    generator = np.random.default_rng(0)
    x = generator.standard_normal((150, 20))
    run = tt.descend(problem(), step=0.1, steps=300, seeds=2, data=150 if data == "drawn" else (x, x[:, :1]))
    certificate = certify(run, **FEW)
    assert certificate.ok, certificate.sentence
    assert {row.route for row in certificate.rows} == {"definition", "plain loop", "differences"}


def test_frozen_layer_rates_and_schedule():
    run = tt.descend(
        problem(trains=("first",), scale=0.3),
        step=0.1,
        steps=50,
        rates={"first": 0.5},
        schedule=lambda n: 1 / (1 + n / 9),
    )
    certificate = certify(run, **FEW)
    assert certificate.ok and any(row.what.startswith("update") for row in certificate.rows)


@pytest.fixture(scope="module")
def smooth():
    return tt.descend(problem("tanh", "erf", scale=0.3), step=0.1, steps=50, record=tt.Record(weights=True))


def test_activations_without_a_closed_form_are_sampled(smooth):
    certificate = certify(smooth, **FEW)
    assert certificate.ok and "ball arithmetic" not in {row.route for row in certificate.rows}
    assert "sampling alone" in certificate.notes[0]


def test_a_seed_that_diverged_is_checked_where_it_was_finite():
    run = tt.descend(problem(scale=1.0), step=20.0, steps=600, seeds=2, record=tt.Record(weights=True))
    assert run.stopped[0] is tt.StopReason.NONFINITE
    certificate = certify(run, **FEW)
    assert all(np.isfinite(row.reported) for row in certificate.rows)


# Planted errors.


def with_loss(run, change):
    return dataclasses.replace(run, dataset=run.dataset.assign(loss=change(run.dataset.loss)))


def test_planted_a_millionth_of_the_loss(descent):
    certificate = certify(with_loss(descent, lambda loss: loss * (1 + 1e-6)), **FEW)
    # At the start the loss is 0.5 and at the end 1e-25: both are caught, by the digits and not by the samples.
    assert failing(certificate) == {("loss", "ball arithmetic")} and not certificate.ok
    assert sum(not row.agrees for row in certificate.rows) == 2
    assert "2 of" in certificate.sentence


class WrongFactor(PopulationOracle):
    """The student's own kernel is one per cent too large, in loss and gradient consistently."""

    def loss(self, weights):
        return PopulationOracle.loss(self, weights) + 0.01 * self._own(weights)

    def gradient(self, weights):
        right = PopulationOracle.gradient(self, weights)
        return jax.tree.map(lambda g, e: g + 0.01 * e, right, jax.grad(self._own)(weights))

    def _own(self, weights):
        gram = weights.first @ weights.first.T
        return jnp.sum((weights.second @ weights.second.T) * gram) / 4


def test_planted_wrong_factor_in_a_kernel(descent):
    wrong = WrongFactor(student="relu", teacher="linear", target=descent.oracle.target)
    at = [jax.vmap(wrong.loss)(tt.Weights(f, s)) for f, s in zip(*_weights(descent), strict=True)]
    run = with_oracle(with_loss(descent, lambda loss: loss.copy(data=np.stack(at))), wrong)
    failed = failing(certify(run, **FEW))
    # At the end the loss is wrong by 0.5%, the gradient by as much as the true one is small, the Hessian by 1%.
    assert {("loss", "ball arithmetic"), ("derivative", "ball arithmetic"), ("Hessian", "differences")} <= failed


def with_oracle(run, oracle):
    prepared, final = run.ends
    return dataclasses.replace(run, ends=(prepared._replace(oracle=oracle), final))


def _weights(run):
    return (jnp.asarray(run.dataset[f"weights_{layer}"].values) for layer in ("first", "second"))


class WrongHessian(PopulationOracle):
    def hessian(self, weights):
        return 1.001 * PopulationOracle.hessian(self, weights)


def test_planted_wrong_hessian(descent):
    wrong = WrongHessian(student="relu", teacher="linear", target=descent.oracle.target)
    assert failing(certify(with_oracle(descent, wrong), **FEW)) == {("Hessian", "differences")}


def test_planted_loose_solver():
    run = tt.flow(problem(), until=60.0, seeds=2, rtol=1e-2, record=tt.Record(60, weights=True))
    # Records are read from inside the steps, which a smaller tolerance makes shorter: both routes see it.
    failed = {row.route for row in certify(run, **FEW).rows if not row.agrees}
    assert failed == {"half the tolerance", "a hundredth of the tolerance"}


def test_planted_wrong_step(descent, monkeypatch):
    # A run that took steps a little longer than it was asked for.
    def longer(run, **changes):
        return again(run, step=1.0001 * run.asked.plan.step, **changes)

    monkeypatch.setattr("tutelage.analysis.certificates.again", longer)
    failed = failing(certify(descent, **FEW))
    assert failed and all(what.startswith("update") for what, _ in failed)


def test_planted_wrong_empirical_loss():
    run = tt.descend(problem(), step=0.1, steps=300, seeds=2, data=150)
    assert failing(certify(with_loss(run, lambda loss: loss * (1 + 1e-6)), **FEW)) == {("loss", "plain loop")}


def test_planted_error_that_only_sampling_can_see(smooth):
    assert failing(certify(with_loss(smooth, lambda loss: loss * 1.3), **FEW)) == {("loss", "20000 samples")}


def test_a_number_that_is_not_one_does_not_agree():
    assert not checks.check("loss", "", float("nan"), 0.0, 1.0).agrees


def test_sampling_intervals_keep_their_promise():
    # Means of 1000 fourth powers of normals (skewness 10) against their expectation 3. Intervals that should miss
    # once in 1000 miss 4 of 4000 times on average; 12 or more has probability 1e-3 (Poisson).
    draws = np.random.default_rng(0).standard_normal((4000, 1000)) ** 4
    missed = sum(abs(row.mean() - 3) > checks._half_width(row, 1e-3) for row in draws)
    assert missed <= 11
    # The normal law alone breaks it, which is why there are further terms.
    plain = 3.2905 * draws.std(1) / np.sqrt(1000)
    assert np.sum(np.abs(draws.mean(1) - 3) > plain) > 20


def test_bad_input(descent):
    with pytest.raises(tt.BadInput, match="times"):
        certify(descent, times=0)


def test_kinks_too_close_for_sampling_are_left_to_long_arithmetic():
    """Four units end 1e-9 apart in angle: most of the loss lies where no sample falls, and sampling must not judge."""
    problem = tt.Problem(
        inputs=tt.Gaussian(10**9),
        teacher=tt.TwoLayer("linear", first=[[1.0]]),
        student=tt.TwoLayer("relu", first=tt.GaussianRows(1e-13), second=tt.GaussianEntries(1e-8), width=4),
    )
    run = tt.descend(problem, step=0.1, steps=1500, seeds=[3], record=3, certify=True)
    assert run.certificate.ok, run.certificate.sentence
    last = [row for row in run.certificate.rows if "time 150" in row.what]
    assert {row.route for row in last} == {"ball arithmetic", "differences"}
    assert any("left out" in note for note in run.certificate.notes)


def test_the_grouped_form_is_held_to_its_digits():
    """ReLU teachers well apart: of a loss of 1e-20 six digits are asked for, and an error of 1e-4 is seen."""
    problem = tt.Problem(
        inputs=tt.Gaussian(20),
        teacher=tt.TwoLayer("relu", first=np.eye(2)),
        student=tt.TwoLayer("relu", first=[[1.0, 1e-8], [1e-9, 0.4], [-1e-8, 0.6]], trains=("first",)),
    )
    run = tt.descend(problem, step=1e-3, steps=3, record=tt.Record(weights=True))
    rows = [row for row in certify(run, **FEW).rows if row.route == "ball arithmetic"]
    assert rows and all(row.agrees for row in rows)
    last = [row for row in rows if row.what.startswith("loss")][-1]
    assert 0 < last.reported < 1e-15 and last.tolerance < 2e-6 * last.reported
    wrong = dataclasses.replace(run, dataset=run.dataset.assign(loss=run.dataset["loss"] * (1 + 1e-4)))
    assert ("loss", "ball arithmetic") in failing(certify(wrong, **FEW))
