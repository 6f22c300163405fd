"""Everything exact against `values.json`: 60 digits, made by `make.py` from expectations alone.

Double precision may lose what rounding does to the terms of a sum, and no more: errors are counted in roundings (2^-52)
of the sizes of these terms, which stand beside each value. Of kinks, where the package promises more near an optimum,
errors are also counted relative to the answer. Code is compiled as runs have it, since that is what is promised.
"""

import functools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage.oracle.kernels.shifted import shifted_coefficients
from tutelage.oracle.mixture import MixtureOracle
from tutelage.oracle.orders import order_losses
from tutelage.oracle.population import exact
from tutelage.problem import activations as act
from tutelage.problem.activations import Activation
from tutelage.problem.atoms import ErfMixture
from tutelage.problem.hidden import GatedHidden

EPS = 2.0**-52
VALUES = json.loads((Path(__file__).parent / "values.json").read_text(encoding="utf-8"))

# Roundings of the terms that are allowed: a kernel takes some ten operations, and a sum has up to fifteen terms. The
# monomials of a Hermite polynomial cancel the more the higher its order, in its derivatives most.
ALLOWED = {
    "kinked": 16,
    "erf": 8,
    "polynomials": 16,
    "mixed": 16,
    "integrals": 8,
    "one dimension": 8,
    "tied": 16,
    "orders": 8,
    "mixtures": 64,
    "clusters": 16,
    "shifted": 32,
}
HESSIAN = 64
RELATIVE = 2e-14
"""Of losses of one kink, relative to themselves, at whatever optimum: 90 roundings."""


def _sum(name, *parts):
    return Activation(name, tuple(atom for part in parts for atom in part.atoms), (0.0,))


MADE = {
    "leaky_relu": act.leaky_relu(0.2),
    "polynomial": act.polynomial([0.5, -1.0, 0.25, 0.125]),
    "two_erf": Activation("two_erf", (ErfMixture((0.75, -0.25), (0.5, 2.0)),)),
    "gelu": act.from_callable(functools.partial(jax.nn.gelu, approximate=False), name="gelu"),
    "sin": act.from_callable(jnp.sin, name="sin"),
    "softplus": tt.activation("softplus"),
    "relu_and_erf": _sum("relu_and_erf", act.relu, act.erf),
    "abs_and_he3": _sum("abs_and_he3", act.absolute, act.hermite(3)),
}


def activation(name):
    return MADE.get(name) or tt.activation(name)


def numbers(values):
    """Strings of 30 digits as the nearest doubles; None, where there is no derivative, as nan."""
    if isinstance(values, list):
        return np.array([numbers(each) for each in values])
    return np.nan if values is None else float(values)


def rows(case, key, columns):
    return np.array([[np.nan] * columns if row is None else [float(x) for x in row] for row in case[key]])


def weights_of(cases, first="first", second="second"):
    """All cases of a pair, one after the other, so that they are compiled once."""
    stacked = (np.array([case[first] for case in cases]), np.array([case[second] for case in cases])[..., None])
    return tt.Weights(*map(jnp.asarray, stacked))


@functools.partial(jax.jit, static_argnames=("names", "tied", "bent"))
def told(names, tied, bent, weights, targets):
    def one(pair):
        place, target = pair
        oracle = exact(activation(names[0]), activation(names[1]), target, tied=tied)
        hessian = oracle.hessian(place) if bent else jnp.zeros((0, 0))
        return oracle.loss(place), oracle.gradient(place), hessian

    return jax.lax.map(one, (weights, targets))


@functools.cache
def found(group, number):
    """The errors of one pair in roundings, by quantity and case."""
    row = VALUES[group][number]
    cases = row["cases"]
    weights, targets = weights_of(cases), weights_of(cases, "target", "outer")
    bent = "hessian" in cases[0]
    loss, slope, hessian = jax.tree.map(
        np.asarray, told((row["student"], row["teacher"]), group == "tied", bent, weights, targets)
    )
    errors = {"loss": {}, "gradient": {}, "outgoing": {}, "hessian": {}, "relative": {}}
    for n, case in enumerate(cases):
        name = case["case"]
        truth = float(case["loss"])
        errors["loss"][name] = abs(loss[n] - truth) / (EPS * case["loss_terms"])
        errors["relative"][name] = abs(loss[n] - truth) / max(abs(truth), 1e-40)
        truth = rows(case, "gradient", weights.first.shape[-1])
        known = ~np.isnan(truth[:, 0])
        off = np.linalg.norm(slope.first[n] - truth, axis=1)[known]
        errors["gradient"][name] = np.max(roundings(off, numbers(case["gradient_terms"])[known]))
        off = np.abs(slope.second[n][:, 0] - numbers(case["outgoing"]))
        errors["outgoing"][name] = np.max(roundings(off, numbers(case["outgoing_terms"])))
        bends, usual = case.get("hessian", []), usual_sizes(case)
        off = np.array([abs(hessian[n][i, j] - float(x)) for i, j, x, _ in bends])
        sizes = np.array([max(size, usual[i] * usual[j]) for i, j, _, size in bends])
        errors["hessian"][name] = np.max(roundings(off, sizes), initial=0.0)
    return errors


def roundings(off, sizes):
    """Errors in roundings of sizes; where there are no terms there may be no error."""
    return off / np.where(sizes > 0, EPS * sizes, 1e-300)


def usual_sizes(case):
    """How an entry of a Hessian goes with the weights: in an outgoing weight with its row, and the other way round.

    Entries that vanish where rows are parallel or orthogonal are left with roundings of these.
    """
    rows, outs = np.linalg.norm(case["first"], axis=1), np.abs(case["second"])
    return np.concatenate([rows, np.repeat(outs, len(case["first"][0]))])


NETWORKS = [
    (group, number)
    for group in ("kinked", "erf", "polynomials", "mixed", "integrals", "one dimension", "tied")
    for number in range(len(VALUES[group]))
]
EVERY = pytest.mark.parametrize(("group", "number"), NETWORKS)


def worst(errors):
    name = max(errors, key=errors.get)
    return f"{errors[name]:.3g} roundings of the terms at '{name}'"


@EVERY
def test_losses_and_gradients(group, number):
    errors = found(group, number)
    for quantity in ("loss", "gradient", "outgoing"):
        assert max(errors[quantity].values()) <= ALLOWED[group], f"{quantity}: {worst(errors[quantity])}"
    assert max(errors["hessian"].values()) <= HESSIAN, f"hessian: {worst(errors['hessian'])}"


@pytest.mark.parametrize("number", range(len(VALUES["kinked"])))
def test_losses_near_an_optimum_have_their_digits(number):
    relative = found("kinked", number)["relative"]
    assert max(relative.values()) <= RELATIVE, max(relative.items(), key=lambda pair: pair[1])


@pytest.mark.parametrize("number", range(len(VALUES["orders"])))
def test_losses_by_tensor_order(number):
    row = VALUES["orders"][number]
    cases, names = row["cases"], (activation(row["student"]), activation(row["teacher"]))
    count = len(cases[0]["orders"])
    ask = jax.jit(lambda pair: jax.lax.map(lambda each: order_losses(*names, *each, count), pair))
    losses = np.asarray(ask((weights_of(cases), weights_of(cases, "target", "outer"))))
    off = np.abs(losses - numbers([case["orders"] for case in cases]))
    sizes = EPS * numbers([case["orders_terms"] for case in cases])
    assert np.all(off <= ALLOWED["orders"] * sizes), np.max(off[sizes > 0] / sizes[sizes > 0])


@pytest.mark.parametrize("number", range(len(VALUES["mixtures"])))
def test_mixtures_of_gated_experts(number):
    cases = VALUES["mixtures"][number]["cases"]
    sides = [GatedHidden(tt.activation(gate), degree) for gate, degree in (cases[0]["student"], cases[0]["teacher"])]

    def weights(name):
        first = np.array([[*case[name][0], *case[name][1]] for case in cases])
        return tt.Weights(jnp.asarray(first), jnp.asarray([case[name][2] for case in cases])[..., None])

    def one(pair):
        oracle = MixtureOracle(*sides, pair[1])
        return oracle.loss(pair[0]), oracle.gradient(pair[0])

    loss, slope = jax.jit(lambda pair: jax.lax.map(one, pair))((weights("rows"), weights("taught")))
    for n, case in enumerate(cases):
        terms, allowed = case["loss_terms"], ALLOWED["mixtures"] * EPS
        assert abs(loss[n] - float(case["loss"])) <= allowed * terms, case["case"]
        assert np.all(np.abs(slope.second[n][:, 0] - numbers(case["outgoing"])) <= allowed * terms), case["case"]
        off = np.linalg.norm(np.asarray(slope.first[n]) - numbers(case["gradient"]), axis=1)
        norms = np.linalg.norm(np.concatenate(case["rows"][:2]), axis=1)
        # Terms of all units, since a kernel's parts are summed over them all before a row's are taken out.
        assert np.all(off * norms <= allowed * max(case["gradient_terms"])), case["case"]


@pytest.mark.parametrize("number", range(len(VALUES["clusters"][0]["cases"])))
def test_correlation_and_forces_over_clusters(number):
    given, case = VALUES["clusters"][0]["problem"], VALUES["clusters"][0]["cases"][number]
    inputs = tt.Clusters(given["dim"], given["means"], given["radius"], given["weights"])
    local = [dict(enumerate(row)) for row in given["local"]]
    tasks = tt.Tasks(local, dict(enumerate(given["shared"])), given["interference"], given["directions"])
    problem = tt.Clustered(inputs, tasks)
    frame, w = problem.frame, np.array(case["row"])
    units = tt.Units(jnp.array([case["outgoing"]]), jnp.array([case["bias"]]), kind=tt.activation(case["kind"]))
    oracle = tt.ClusterOracle(problem)
    field = jax.jit(lambda overlaps: oracle.field(units, overlaps))(jnp.asarray(frame @ w)[None])
    force, router = np.asarray(field.force)[0] @ frame, np.asarray(field.router)[0]
    along = {
        "correlation": field.correlation[0],
        "turning": force - (force @ w) * w,
        "router": router[:-1] @ frame + router[-1] * w,
    }
    # Terms: sums of coefficients times powers, of the size of the largest of these answers and some.
    size = 4 * max(np.max(np.abs(numbers(case[name]))) for name in along)
    for name, value in along.items():
        off = np.max(np.abs(value - numbers(case[name])))
        assert off <= ALLOWED["clusters"] * EPS * size, (name, off / (EPS * size))


@pytest.mark.parametrize("number", range(len(VALUES["shifted"])))
def test_shifted_coefficients(number):
    row = VALUES["shifted"][number]
    truth = numbers(row["coefficients"])
    value = jax.jit(lambda m: shifted_coefficients(tt.activation(row["kind"]), m, truth.shape[1]))
    off = np.abs(np.asarray(value(jnp.array(row["shifts"]))) - truth)
    assert np.all(off <= ALLOWED["shifted"] * EPS * np.max(np.abs(truth), axis=1, keepdims=True)), off.max()


def test_every_group_is_compared():
    assert set(VALUES) == set(ALLOWED)
