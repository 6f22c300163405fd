"""Activations against JAX's own functions, mpmath, and the definition of a Hermite coefficient."""

from pathlib import Path

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.problem import activations as act

Z = np.concatenate(
    [np.linspace(-40, 40, 400), np.linspace(-3, 3, 300)]
)  # 0 is not in it: there slopes differ by choice
EPS = np.finfo(float).eps

# name -> the same function written in JAX; derivatives of the reference are by automatic differentiation.
REFERENCES = {
    "relu": jax.nn.relu,
    "abs": jnp.abs,
    "half_abs": lambda z: jnp.abs(z) / 2,
    "linear": lambda z: z,
    "leaky_relu": lambda z: jnp.where(z > 0, z, 0.01 * z),
    "leaky_relu:-0.5": lambda z: jnp.where(z > 0, z, -0.5 * z),
    "sign": jnp.sign,
    "step": lambda z: jnp.where(z > 0, 1.0, 0.0),
    "erf": jax.scipy.special.erf,
    "erf_over_sqrt2": lambda z: jax.scipy.special.erf(z / jnp.sqrt(2.0)),
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "he0": lambda z: 1.0 + 0 * z,
    "he3": lambda z: z**3 - 3 * z,
    "he4": lambda z: z**4 - 6 * z**2 + 3,
}


@pytest.mark.parametrize("name", REFERENCES)
def test_value_and_derivatives(name):
    s, reference = act.activation(name), REFERENCES[name]
    orders = [s, s.derivative, s.second_derivative]
    for order, ours in enumerate(orders):
        theirs = reference
        for _ in range(order):
            theirs = jax.grad(theirs)
        expected = jax.vmap(theirs)(Z)
        # Thirty erf nodes are summed, or powers up to 40^4: a few roundings of the largest number.
        assert np.max(np.abs(ours(Z) - expected)) <= 16 * EPS * max(1.0, np.max(np.abs(expected)))


def test_logistic_mixture_against_mpmath():
    """The erf mixture is the logistic function to 1e-15, by mpmath's erf so that only the nodes are tested."""
    constant, mixture = act.sigmoid.atoms
    with mpmath.workdps(30):
        for x in [0.01, 0.3, 1, 2.5, 7, 20, 60]:
            total = constant.coefficients[0] + sum(
                mpmath.mpf(w) * mpmath.erf(mpmath.mpf(b) * x)
                for w, b in zip(mixture.weights, mixture.slopes, strict=True)
            )
            assert abs(total - 1 / (1 + mpmath.exp(-mpmath.mpf(x)))) < 1e-15


def test_sigmoid_hermite_coefficients():
    values, error = act.sigmoid.hermite(8)
    known = {1: 0.20662096414190704, 3: -0.025473257907323417, 5: 0.0058770606000134374, 7: -0.0017266562875681669}
    assert error < 2e-15
    for k, value in known.items():
        assert abs(values[k] - value) <= error
    assert np.all(values[2::2] == 0) and values[0] == 0.5


@pytest.mark.parametrize("scale", [1e-12, 0.7, 1e3])
@pytest.mark.parametrize("name", ["relu", "abs", "linear", "erf", "sigmoid", "tanh", "he3", "step"])
def test_hermite_coefficients_by_quadrature(name, scale):
    """The closed forms against the quadrature that serves any function, within the two stated errors."""
    s = act.activation(name)
    sampled = act.from_callable(REFERENCES[name], name="same", kinks=s.kinks)
    ours, theirs = s.hermite(10, scale), sampled.hermite(10, scale)
    size = np.sqrt(float(sum(atom.second_moment(jnp.asarray(scale)) for atom in s.atoms)))
    assert theirs.error < 1e-12 * size
    assert np.max(np.abs(ours.values - theirs.values)) <= ours.error + theirs.error


@pytest.mark.parametrize("spec", ["relu", "erf", "tanh", "he4", "poly", "softplus", "bent", "sign"])
def test_scale_jet_by_finite_differences(spec):
    """Derivatives in the scale: fourth-order differences, step 1e-3, are right to 1e-13 of the fifth derivative."""
    s = {"poly": act.polynomial([1.0, -2.0, 0.5, 3.0]), "softplus": act.from_callable(jax.nn.softplus)}.get(spec)
    s = s or (_bent() if spec == "bent" else act.activation(spec))
    r, h, count = 0.8, 1e-3, 6
    grid = jnp.asarray(r + h * np.arange(-2, 3))
    for atom in s.atoms:
        table = atom.scale_jet(grid, count)
        value = np.asarray(table.value)
        jet = type(table)(*(np.asarray(part[2]) for part in table))
        slope = (value[0] - 8 * value[1] + 8 * value[3] - value[4]) / (12 * h)
        second = (-value[0] + 16 * value[1] - 30 * value[2] + 16 * value[3] - value[4]) / (12 * h * h)
        k = np.arange(count)
        np.testing.assert_allclose(jet.slope, slope, atol=1e-10)
        np.testing.assert_allclose(jet.second, second, atol=1e-8)
        np.testing.assert_allclose(jet.over, np.where(k >= 1, jet.value / r, 0), atol=1e-13)
        np.testing.assert_allclose(jet.over_twice, np.where(k >= 2, jet.value / r**2, 0), atol=1e-13)
        np.testing.assert_allclose(jet.turn, np.where(k >= 1, (jet.slope - jet.value / r) / r, 0), atol=1e-12)
        np.testing.assert_allclose(jet.lift, (jet.slope - k * jet.value / r) / r, atol=1e-12)


def _bent():
    return act.from_callable(lambda z: jnp.maximum(z - 0.5, 0.0) + jnp.cos(z), name="bent", kinks=(0.5,))


def test_callable_with_kink_at_zero_goes_to_closed_form():
    s = act.from_callable(lambda z: jnp.where(z > 0, 2 * z, jnp.sin(z)), name="half sine", kinks=(0.0,))
    smooth, bend = s.atoms
    assert bend.kink == pytest.approx(0.5, abs=1e-12) and smooth.kinks == ()
    z = jnp.array([-2.0, 1.5])
    np.testing.assert_allclose(s(z), [np.sin(-2.0), 3.0], atol=1e-15)


def test_error_estimate_of_a_callable_is_honest():
    """A sharp function off the origin: the stated error must cover the true one, and must not be absurdly small."""
    s = act.from_callable(lambda z: jnp.tanh(20 * (z - 1.3)), name="sharp")
    values, error = s.hermite(4)
    with mpmath.workdps(20):
        exact = mpmath.quad(
            lambda z: mpmath.tanh(20 * (z - mpmath.mpf("1.3"))) * mpmath.npdf(z), [-13, 0, 1, 1.2, 1.3, 1.4, 1.6, 3, 13]
        )
    assert abs(float(values[0]) - float(exact)) <= error < 1e-3


@pytest.mark.parametrize(
    ("fn", "kinks", "words"),
    [
        (lambda z: jnp.where(z > 0.3, 1.0, 0.0) + z, (), "jumps near 0.3"),
        (jnp.sign, (), r"jumps near 0; say so, as tt.activation\(bad, kinks=\(0,\)\)"),
        (lambda z: jnp.where(z > 0.3, 1.0, 0.0), (0.3,), "continuous but at 0"),
        (jax.nn.relu, (), r"jumps near 0; .*kinks=\(0,\)\)"),
        (jax.nn.relu6, (0,), r"jumps near 6; .*kinks=\(0, 6\)\)"),
        (lambda z: jnp.maximum(z - 1.1, 0.0), (), r"kinks=\(1.1,\)"),
        (lambda z: jnp.stack([z, z]), (), "one number"),
        (lambda z: np.sin(float(z)), (), "jax.numpy"),
        (lambda z: 1 / (z - z), (), "jumps near"),
    ],
)
def test_refused_callables(fn, kinks, words):
    with pytest.raises(BadInput, match=words):
        act.from_callable(fn, name="bad", kinks=kinks)


def test_lookup():
    assert act.activation("he12").name == "he12"
    assert act.activation(act.relu) is act.relu
    assert act.activation(jnp.sin).name == "sin"
    with pytest.raises(BadInput, match="did you mean 'sigmoid'"):
        act.activation("sigmod")
    with pytest.raises(BadInput, match="The order of a Hermite polynomial is -1"):
        act.hermite(-1)
    with pytest.raises(BadInput, match="finite numbers"):
        act.polynomial([])


def test_a_jump_at_zero_goes_to_closed_form():
    """Extrapolation to 0 from both sides is right to 6e-14 of a fourth derivative."""
    s = act.activation(lambda z: jnp.where(z > 0, 2 + z, jnp.cos(z)), kinks=(0,))
    smooth, bend, step = s.atoms
    assert (bend.kink, step.size) == (pytest.approx(0.5, abs=1e-12), pytest.approx(0.5, abs=1e-12))
    assert s.jumps and not act.relu.jumps
    z = jnp.array([-1e-9, 1e-9, 3.0])
    np.testing.assert_allclose(s(z), [1, 2 + 1e-9, 5], atol=1e-14)
    np.testing.assert_allclose(smooth(z[:1]), smooth(z[1:2]), atol=1e-12)


def test_every_name_of_the_list_is_one_and_the_docs_have_the_list():
    text = (Path(tt.__file__).parent.parent / "docs" / "problems.md").read_text(encoding="utf-8")
    for name, formula in tt.activations():
        found = act.activation(name.replace("SLOPE", "0.3").replace("heK", "he3"))
        assert found.name.startswith(name.partition(":")[0].replace("heK", "he3"))
        assert f"| `{name}` | `{formula}` |".replace("|z|", "\\|z\\|") in text, name
    assert str(tt.activations()).splitlines()[0].split() == ["linear", "z"]


def test_names_with_a_number():
    assert act.activation("leaky_relu:0.1") == act.leaky_relu(0.1) and act.leaky_relu(0.1).name == "leaky_relu:0.1"
    for bad in ("leaky_relu:", "leaky_relu:steep"):
        with pytest.raises(BadInput, match="leaky_relu:0.1"):
            act.activation(bad)


def test_a_number_is_no_activation():
    with pytest.raises(BadInput, match="a name, an Activation or a function"):
        act.activation(3)


def test_activations_are_static_arguments():
    """Equal activations hash alike and do not compile twice."""
    traced = []

    def f(s, z):
        traced.append(s.name)
        return s(z)

    run = jax.jit(f, static_argnums=0)
    for s in (act.activation("he3"), act.hermite(3), act.activation(jnp.cos), act.activation(jnp.cos)):
        run(s, jnp.ones(2))
    assert traced == ["he3", "cos"]
    assert act.relu != act.absolute and hash(act.relu) == hash(act.activation("relu"))
