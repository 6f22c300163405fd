"""The formulas of `cluster_moe` and what a second layer can say: every claim, and a planted error for each."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from tutelage.analysis.claims import Verdict
from tutelage.oracle.clustered import ClusterOracle
from tutelage.oracle.kernels.shifted import shifted
from tutelage.papers.cluster_moe import assumptions
from tutelage.papers.cluster_moe.checks import approximation, formulas, quadrature
from tutelage.papers.cluster_moe.evidence import Evidence
from tutelage.problem.activations import activation
from tutelage.problem.units import Units

QUICK = Evidence()
CLAIMS = {claim.id: claim for claim in (*formulas.CLAIMS, *approximation.CLAIMS)}


@pytest.mark.parametrize("id", CLAIMS)
def test_verdicts(id):
    found = CLAIMS[id].check(QUICK)
    assert found.verdict is CLAIMS[id].expected, found.detail


def scaled(function, order, factor):
    """A function that returns a table by order, with one order wrong."""

    def wrong(*arguments):
        table = np.array(function(*arguments))
        table[..., order] *= factor
        return table

    return wrong


def wider(problem):
    oracle = ClusterOracle(problem)
    return eqx.tree_at(lambda each: each.radius, oracle, oracle.radius * 1.001)


def of_one_expert(problem):
    oracle = ClusterOracle(problem)
    return eqx.tree_at(lambda each: each.weights, oracle, 4 * oracle.weights)


def right_index(evidence, lift, truth=formulas._lemma_c7):
    return truth(evidence, 1)


def right_order(evidence, lift, truth=formulas._means_are_turned):
    return truth(evidence, 1)


def any_signs(alpha, task, exponent):
    return assumptions.compatible(alpha, np.where(np.arange(len(task)) == 4, 0.0, task), exponent)


def all_signs(evidence, patterns, reach):
    return formulas.probability_at_least(4000, 4000, 1 / 8)


def heavier(dim, count, draw, truth=formulas._drawn):
    *rest, gradients = truth(dim, count, draw)
    return *rest, dim * gradients


PLANTS = {
    "CM-01": (formulas, "tabulated", scaled(formulas.tabulated, 3, 1.001)),
    "CM-A3": (formulas, "hermite", scaled(quadrature.hermite, 3, 1.001)),
    "CM-03": (formulas, "relu", scaled(quadrature.relu, 4, -1)),
    "CM-04": (formulas, "compatible", any_signs),
    "CM-04:mixed": (formulas, "_with_signs", all_signs),
    "CM-A6": (formulas, "shifted", scaled(shifted, 4, -1)),
    "CM-ALPHA": (formulas, "shifted", scaled(shifted, 4, 1.001)),
    "CM-ALPHA:derivative": (formulas, "shifted", scaled(shifted, 4, 1.001)),
    "CM-ALPHA:slope": (formulas, "shifted", scaled(shifted, 4, 1.001)),
    "CM-ALPHA:printed": (formulas, "_lemma_c7", right_index),
    "CM-GRADIENT": (formulas, "ClusterOracle", wider),
    "CM-C7:step": (formulas, "ClusterOracle", of_one_expert),
    "CM-C7:noise": (formulas, "_drawn", heavier),
    "CM-C8:drift": (formulas, "shifted", scaled(shifted, 5, 1.001)),
    "CM-C8:printed": (formulas, "_means_are_turned", right_order),
    "CM-C10": (formulas, "shifted", scaled(shifted, 1, 1.01)),
    "CM-C27": (approximation, "built", approximation.as_printed),
    "CM-C27:printed": (approximation, "as_printed", approximation.built),
}


def test_every_claim_has_a_plant():
    assert set(PLANTS) == set(CLAIMS)


@pytest.mark.parametrize("id", PLANTS)
def test_planted_errors_flip_verdicts(monkeypatch, id):
    monkeypatch.setattr(*PLANTS[id])
    flipped = {Verdict.FAILS: Verdict.HOLDS, Verdict.HOLDS: Verdict.FAILS}[CLAIMS[id].expected]
    assert CLAIMS[id].check(QUICK).verdict is flipped


def test_coefficients_by_quadrature_have_all_digits():
    """Where those of large shifts are 1e-20, too."""
    shift = np.array([-9.0, -0.4, 0.7, 8.5])
    units = Units(jnp.ones(len(shift)), jnp.asarray(shift), kind=activation("relu"))
    closed = np.asarray(shifted(units, jnp.zeros(len(shift)), 9))
    np.testing.assert_allclose(quadrature.relu(shift)[:, 2:], closed[:, 2:], rtol=1e-9)


def test_a_second_layer_is_built_for_any_biases():
    """The construction is exact between its biases up to their gaps: more of them, and it is near."""
    bias = np.linspace(-6, 6, 4001)
    plus, minus = approximation.built(bias)
    u = np.linspace(-2.9, 2.9, 101)
    said = np.maximum(u[:, None] + bias, 0) @ plus + np.maximum(-u[:, None] + bias, 0) @ minus
    np.testing.assert_allclose(said / (2 * len(bias)), approximation.polynomial(u), atol=1e-3)
