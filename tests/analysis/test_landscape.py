"""Stationary points and their kinds: toys known by hand, and the landscape table of `both_layers`."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from analysis.toys import Toy, at, plane, ray

import tutelage as tt
from tutelage.analysis import landscape
from tutelage.analysis.landscape import Kind, local, stationary

# The kind of the origin, and the dimension of the Hessian's kernel there.
TOYS = {
    "bowl": (plane(x2=1, y2=3), Kind.MINIMUM, 0),
    "pass": (plane(x2=1, y2=-3), Kind.STRICT_SADDLE, 0),
    "hill": (plane(x2=-1, y2=-1), Kind.STRICT_SADDLE, 0),
    "trough": (plane(x2=1), Kind.MINIMUM, 1),
    "monkey saddle": (plane(x3=1, x1y2=-3), Kind.NON_STRICT_SADDLE, 2),
    "quartic bowl": (plane(x4=1, y4=1), Kind.MINIMUM, 2),
    "quartic pass": (plane(x2=1, y4=-1), Kind.NON_STRICT_SADDLE, 1),
    "cubic valley": (plane(y2=1, x2y1=-2, x4=1, x3=1), Kind.NON_STRICT_SADDLE, 1),
    # (y - x^2)^2 - x^5: straight along the kernel the loss rises as x^4; it falls only along the bottom y = x^2.
    "curved valley": (plane(y2=1, x2y1=-2, x4=1, x5=-1), Kind.NON_STRICT_SADDLE, 1),
    "curved trough": (plane(y2=1, x2y1=-2, x4=1, x6=1), Kind.MINIMUM, 1),
}
EXPONENTS = {"monkey saddle": 3, "quartic pass": 4, "cubic valley": 3, "curved valley": 5}


@pytest.mark.parametrize("name", TOYS)
def test_kind_of_the_origin(name):
    oracle, kind, nullity = TOYS[name]
    seen = landscape.classify(oracle, at(0, 0))
    assert seen.kind is kind and seen.spectrum.nullity == nullity
    if name in EXPONENTS:
        # The next order, relative to the leading one, is at most the largest radius 0.08.
        assert abs(seen.descent.exponent - EXPONENTS[name]) < 0.1
        assert "Numerical evidence" in seen.sentence


def test_a_lower_loss_beyond_a_barrier_does_not_make_a_saddle():
    # x^4 - 400 x^6 falls below zero only past x = 0.05.
    seen = landscape.classify(plane(x4=1, x6=-400, y2=1), at(0, 0))
    assert seen.kind is Kind.MINIMUM
    assert "begins only" in seen.sentence


def test_away_from_a_stationary_point():
    seen = landscape.classify(plane(x2=1, y2=1), at(1, 0), polish=False)
    assert seen.kind is Kind.NOT_STATIONARY and seen.gradient_norm == 2.0


def test_polish_brings_an_approximate_point_home():
    oracle = TOYS["monkey saddle"][0]
    rough = at(3e-5, 2e-5)
    # Its gradient is 1e-9, below the tolerance, but its Hessian has the eigenvalue -2e-4.
    assert np.linalg.eigvalsh(oracle.hessian(rough))[0] < -1e-4
    seen = landscape.classify(oracle, rough)
    assert seen.kind is Kind.NON_STRICT_SADDLE and 0 < seen.moved < 1e-4
    # Left where it is, the eigenvalue is no larger than so small a gradient allows, and the verdict is the same.
    assert landscape.classify(oracle, rough, polish=False).kind is Kind.NON_STRICT_SADDLE


def test_no_second_derivative():
    seen = landscape.classify(Toy(lambda z: z[0] * jnp.linalg.norm(z[1:]) + jnp.sum(z**2)), at(0, 0, 0))
    assert seen.kind is Kind.NOT_SMOOTH and not seen.spectrum.smooth


@pytest.mark.parametrize("trains", [("first", "second"), ("first",), ("second",)])
def test_solvers_are_given_the_oracles_own_derivatives(trains):
    here = local.chart(TOYS["curved valley"][0], at(0.3, 0.4), trains)
    point = here.vector()
    assert np.allclose(jax.grad(local.loss)(point, here), local.slope(point, here), rtol=1e-15)
    assert np.allclose(jax.jacfwd(local.slope)(point, here), here.hessian(point), rtol=1e-15)
    # (y - x^2)^2 - x^5 at (0.3, 0.4), by hand: x is the outgoing weight, y the incoming one.
    by_hand = {"second": -4 * 0.3 * (0.4 - 0.09) - 5 * 0.3**4, "first": 2 * (0.4 - 0.09)}
    assert np.allclose(local.slope(point, here), [by_hand[layer] for layer in ("second", "first") if layer in trains])


def solved(oracle, start):
    """Where the solver ends from one start, and how large the gradient is there."""
    ends, _, sizes = stationary.solve(oracle, stationary.batch_of_one(start), ("first", "second"))
    return stationary.member(ends, 0), float(sizes[0])


def test_stationary_point_of_a_quadratic():
    # (x - 1)^2 - 3 (y + 2)(x - 1), a pass at (1, -2).
    end, size = solved(plane(x2=1, x1=-8, x1y1=-3, y1=3), at(0.3, 0.4))
    assert size < 1e-10 and np.allclose(end.second, 1) and np.allclose(end.first, -2)


def test_stationary_point_in_a_degenerate_valley():
    end, size = solved(TOYS["curved trough"][0], at(0.5, 0.4))
    assert size < 1e-10 and abs(float(end.second[0, 0])) < 0.05


def test_where_there_is_no_stationary_point_the_gradient_stays():
    assert solved(plane(x1=1, y2=1), at(0.5, 0.4))[1] >= 1


def test_bad_input():
    oracle = plane(x2=1, y2=1)
    with pytest.raises(tt.BadInput, match="first"):
        landscape.classify(oracle, at(0, 0), trains=("frist",))
    with pytest.raises(tt.BadInput, match="tolerance"):
        landscape.classify(oracle, at(0, 0), tolerance=0)
    with pytest.raises(tt.BadInput, match="starts"):
        landscape.search(oracle, at(0, 0))


# The both-layers problem: ReLU students, one linear teacher a = e_1, d = 3.


def both_layers(size: float = 1.0) -> tt.PopulationOracle:
    target = tt.Weights(first=size * jnp.eye(3)[:1], second=jnp.ones((1, 1)))
    return tt.PopulationOracle(student="relu", teacher="linear", target=target)


GROUND = both_layers()
POINTS = {
    "origin": (ray([0, 0], [0, 0]), Kind.STRICT_SADDLE, 0.5, [-0.5, -0.5, 0, 0, 0, 0, 0.5, 0.5]),
    "global": (ray([1, -1], [1, -1]), Kind.MINIMUM, 0.0, [0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1]),
    # v_1 w_1 = (c+1) a, v_2 w_2 = c a with signs (+,-): c = 1 and c = 1/2.
    "saddle c=1": (ray([1, -1], [2, 1]), Kind.NON_STRICT_SADDLE, 0.25, [0, 0, 0, 0, 0, 1, 1, 3.5]),
    "saddle c=1/2": (ray([1, -0.5], [1.5, 1]), Kind.NON_STRICT_SADDLE, 0.25, [0, 0, 0, 0, 0, 0.625, 0.625, 2.25]),
    "spurious": (ray([0.5, 1], [1, 0.5]), Kind.MINIMUM, 0.25, [0, 0, 0, 0, 0, 0.625, 0.625, 1.25]),
}


@pytest.mark.parametrize("name", POINTS)
def test_landscape_table(name):
    weights, kind, level, eigenvalues = POINTS[name]
    seen = landscape.classify(GROUND, weights)
    assert seen.kind is kind and abs(seen.loss - level) < 1e-14
    # By formula they are right to rounding; at the origin (zero rows) by differences, to their step squared times
    # the fourth derivatives: (1e-4)^2 and a constant below ten.
    assert np.allclose(seen.spectrum.eigenvalues, eigenvalues, atol=1e-7 if name == "origin" else 1e-13)
    if kind is Kind.NON_STRICT_SADDLE:
        assert abs(seen.descent.exponent - 3) < 0.1


@pytest.mark.parametrize("outputs", [2, 3])
def test_paired_minimum_of_many_outputs(outputs):
    eye = jnp.eye(outputs, outputs + 1)
    oracle = tt.PopulationOracle(student="relu", teacher="linear", target=tt.Weights(eye, jnp.eye(outputs)))
    pairs = tt.Weights(jnp.concatenate([eye, -eye]), jnp.concatenate([jnp.eye(outputs), -jnp.eye(outputs)]))
    seen = landscape.classify(oracle, pairs)
    # With several lines the closed form rounds at 1e-16, also below zero: that is no descent.
    assert seen.kind is Kind.MINIMUM and seen.spectrum.nullity == outputs**2 + outputs


def test_units_at_the_origin_are_not_smooth():
    neuron = landscape.classify(GROUND, ray([1, 0], [1, 0]))
    assert neuron.kind is Kind.NOT_SMOOTH
    # A term v f(-a, w) of degree two lets the loss fall there.
    assert neuron.descent.everywhere and abs(neuron.descent.exponent - 2) < 0.05
    assert landscape.classify(GROUND, ray([1, 1], [1, 0])).kind is Kind.NOT_SMOOTH


def test_a_unit_of_length_1e_16_is_not_taken_for_a_strict_saddle():
    # A third unit with v = -1 and |w| = 1e-16 beside a global minimum that is missed by 1e-15: its Hessian has
    # eigenvalues of order one that hold only within 1e-16 of the point, one of them negative although the loss is zero.
    first = jnp.array([[1, 1e-15, 0], [-1, 0, 0], [0, 0, 1e-16]])
    weights = tt.Weights(first, jnp.array([[1.0], [-1.0], [-1.0]]))
    assert np.linalg.eigvalsh(GROUND.hessian(weights))[0] < -1
    assert landscape.classify(GROUND, weights, polish=False).kind is Kind.NOT_SMOOTH


def test_units_with_unequal_layers():
    # The same products v w, with incoming weights a hundred times the outgoing ones or more.
    saddle = landscape.classify(GROUND, ray([0.1, -0.01], [20, 100]))
    assert saddle.kind is Kind.NON_STRICT_SADDLE and abs(saddle.descent.exponent - 3) < 0.2
    assert landscape.classify(GROUND, ray([0.05, 0.01], [10, 50])).kind is Kind.MINIMUM


def test_kinds_do_not_depend_on_the_size_of_the_target():
    big = both_layers(100.0)
    for name in ("global", "saddle c=1", "spurious"):
        weights, kind, level, _ = POINTS[name]
        scaled = tt.Weights(10 * weights.first, 10 * weights.second)
        seen = landscape.classify(big, scaled)
        assert seen.kind is kind and abs(seen.loss - 1e4 * level) < 1e-10


def test_frozen_second_layer():
    weights, kind, _, _ = POINTS["saddle c=1"]
    seen = landscape.classify(GROUND, weights, trains=("first",))
    # v = (1,-1) fixed: eigenvalues (v_1^2 + v_2^2)/2 = 1 three times, and three zeros.
    assert seen.kind is kind and np.allclose(seen.spectrum.eigenvalues, [0, 0, 0, 1, 1, 1], atol=1e-13)


@pytest.mark.parametrize("width", [2, 3])
def test_search_finds_only_the_known_levels(width):
    def start(key):
        """Half of the starts are Gaussian; half are spread around the line of the teacher, where the minima are."""
        one, two, three, four = jr.split(key, 4)
        sides = jr.rademacher(three, (width,), float)
        near, far = jnp.outer(sides, jnp.eye(3)[0]), jnp.zeros((width, 3))
        mean = jnp.where(jr.bernoulli(four), near, far)
        return tt.Weights(mean + 0.5 * jr.normal(one, (width, 3)), sides[:, None] * jnp.abs(jr.normal(two, (width, 1))))

    found = landscape.search(GROUND, jax.vmap(start)(jr.split(jr.key(width), 40)))
    assert found.starts == 40 and found.found >= 32 and sum(row.count for row in found.rows) == found.found
    losses = np.array([point.loss for point in found.points])
    gaps = np.abs(losses[:, None] - np.array([0, 0.25, 0.5]))
    # A point with gradient below 1e-10 on a cubic saddle is off by at most 1e-5, its loss by less than 1e-12.
    assert gaps.min(1).max() < 1e-10 and set(gaps.argmin(1)) == {0, 1, 2}
    kinds = {(round(row.level, 6), row.kind) for row in found.rows}
    assert {(0.25, Kind.NON_STRICT_SADDLE), (0.25, Kind.MINIMUM), (0.5, Kind.STRICT_SADDLE)} <= kinds
    assert {kind for level, kind in kinds if level == 0} <= {Kind.MINIMUM, Kind.NOT_SMOOTH}
    spectra = [point.spectrum for point in found.points if point.kind is Kind.NON_STRICT_SADDLE]
    assert {each.nullity for each in spectra} == {width * 3 + width - 3}
    assert min(each.eigenvalues[0] for each in spectra) > -1e-4
