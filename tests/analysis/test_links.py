"""Hermite expansions against integrals, exponents and leaps against all orders in which terms may be learned."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate

import tutelage as tt
from tutelage.problem.activations import polynomial

LINKS = {
    "relu": (lambda z: max(z, 0.0), 1),
    "abs": (abs, 2),
    "erf": (math.erf, 1),
    "he3": (lambda z: z**3 - 3 * z, 3),
    "he4": (lambda z: z**4 - 6 * z**2 + 3, 4),
}


def by_hand(function, order):
    """`E[s(z) He_k(z)] / sqrt(k!)` by adaptive quadrature on each side of 0."""
    he = np.polynomial.hermite_e.HermiteE.basis(order)
    density = lambda z: function(z) * he(z) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)  # noqa: E731
    parts = [integrate.quad(density, *ends, epsabs=1e-12, epsrel=1e-12)[0] for ends in ((-12, 0), (0, 12))]
    return sum(parts) / math.sqrt(math.factorial(order))


@pytest.mark.parametrize("name", LINKS)
def test_expansion_and_exponent(name):
    function, exponent = LINKS[name]
    found = tt.hermite(name, 7)
    np.testing.assert_allclose(found.values, [by_hand(function, k) for k in range(7)], atol=1e-10)
    assert abs(found.square - by_hand(lambda z: function(z) ** 2, 0)) < 1e-10
    assert tt.information_exponent(name) == exponent
    assert np.all(np.diff(found.tail) <= 0) and found.tail[-1] >= 0


def test_parity_and_tail():
    assert [tt.hermite(name).parity for name in ("abs", "erf", "relu")] == ["even", "odd", "neither"]
    ended = tt.hermite("he3", 6)
    assert ended.tail[2] == pytest.approx(6.0) and ended.tail[3] < 1e-12


def test_a_square_of_the_next_order_is_not_hidden_by_a_constant():
    assert tt.information_exponent(polynomial([5.0, 0.0, 0.0, 0.0, 1.0])) == 2  # z^4 has a part of He_2
    assert tt.information_exponent(polynomial([0.0, -3.0, 0.0, 1.0 + 1e-6])) == 1  # nearly He_3


def test_the_figure_has_every_coefficient():
    found = tt.hermite("relu", 9)
    sizes, rest = found.sheet().panels
    assert sum(len(series.x) for series in sizes.series) == int(np.sum(found.present)) == 6
    assert len(rest.series[0].x) == 9 and len(found.plot().axes) == 2


def all_orders(terms):
    """The least, over all orders of the terms, of the largest degree in directions that are new."""
    best = math.inf
    for order in itertools.permutations(terms):
        known, largest = set(), 0
        for term in order:
            largest = max(largest, sum(d for place, d in enumerate(term) if place not in known))
            known |= {place for place, d in enumerate(term) if d}
        best = min(best, largest)
    return best


@pytest.mark.parametrize("seed", range(40))
def test_leap_is_that_of_the_best_order(seed):
    draw = np.random.default_rng(seed)
    terms = {tuple(int(d) for d in draw.integers(0, 3, 4)) for _ in range(5)} - {(0, 0, 0, 0)}
    assert tt.leap(dict.fromkeys(terms, 1.0)) == all_orders(terms)


def test_leap_leaves_out_what_is_not_there():
    assert tt.leap({(1, 0): 0.0, (2, 1): 1.0, (0, 0): 3.0}) == 3


def test_samples():
    assert [tt.recovery_samples(k, 100) for k in (1, 3, 4)] == [100.0, 1e4, 1e6]
    assert tt.recovery_samples(2, 100) == pytest.approx(100 * math.log(100))


def test_drift_takes_as_many_samples_as_the_equation_says():
    """For He_k the drift is `step k k! m^(k-1) (1 - m^2)`; of others the equation is solved by other means."""
    for order, whole in ((1, math.atanh), (3, lambda m: math.atanh(m) - 1 / m)):
        starts = np.array([1e-6, 1e-3, 0.1, 0.49])
        by_hand = np.array([(whole(0.5) - whole(m)) / (order * math.factorial(order)) for m in starts]) / 1e-3
        found = tt.drift_samples(f"he{order}", start=starts, step=1e-3)
        # A kernel's gradient is right to rounding of its largest terms, which at a small overlap are not the drift.
        assert np.all(np.abs(found / by_hand - 1) < 1e-13 + 1e-15 / starts)
    # K'(m) of relu is (pi - arccos m) / (2 pi)
    speed = lambda m: 2 * math.pi / ((math.pi - math.acos(m)) * (1 - m * m))  # noqa: E731
    expected = integrate.quad(speed, 1e-3, 0.9, epsabs=1e-13, epsrel=1e-13)[0]
    assert float(tt.drift_samples("relu", start=1e-3, step=1.0, level=0.9)) == pytest.approx(expected, rel=1e-11)
    assert float(tt.drift_samples("he3", start=0.7, step=1.0)) == 0.0  # it is there already


def test_spherical_sgd_with_a_small_step_takes_as_many_samples_as_its_drift():
    """A step of a thousandth of dim^(-3/2) from an overlap of 3/sqrt(dim). The noise of a sample along the teacher has
    the second moment 1378 there (by quadrature), so that times spread by 8 %: the median of 33 seeds has a standard
    error of 1.7 %, and is off by more than 10 % in one case of 1e8. Without the factor k it would be three times as
    long."""
    dim = 100
    start, step = 3 / math.sqrt(dim), dim**-1.5 / 1000
    student = tt.TwoLayer("he3", first=[[start, math.sqrt(1 - start**2)]], second="ones", trains=("first",))
    problem = tt.Problem(tt.Gaussian(dim), tt.TwoLayer("he3", first=[[1.0]]), student)
    known = tt.Event("known", lambda view: view.weights.first[0] @ view.teacher.first[0] - 0.5, stop=True)
    predicted = float(tt.drift_samples("he3", start=start, step=step))
    run = tt.spherical(problem, samples=int(3 * predicted), step=step, seeds=33, record=tt.Record(2, events=(known,)))
    assert float(run.event_time.median()) == pytest.approx(predicted, rel=0.1)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: tt.information_exponent("constant"),
        lambda: tt.information_exponent("relu", tolerance=0.0),
        lambda: tt.hermite("relu", 0),
        lambda: tt.hermite("nothing"),
        lambda: tt.leap({}),
        lambda: tt.leap({(1, 0): 1.0, (1,): 1.0}),
        lambda: tt.leap({(-1, 0): 1.0}),
        lambda: tt.leap({1: 1.0}),
        lambda: tt.leap(3),
        lambda: tt.recovery_samples(0, 100),
        lambda: tt.recovery_samples(2, 1),
        lambda: tt.drift_samples("he3", start=0.0, step=1.0),
        lambda: tt.drift_samples("he3", start=0.1, step=0.0),
        lambda: tt.drift_samples("he3", start=0.1, step=1.0, level=1.0),
        lambda: tt.drift_samples("he3", start="a", step=1.0),
        lambda: tt.drift_samples("constant", start=0.1, step=1.0),
    ],
)
def test_wrong_input_is_refused(wrong):
    with pytest.raises(tt.BadInput):
        wrong()
