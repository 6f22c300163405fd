"""Averages of four units against samples and quadrature, also where units are equal or opposite."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import tutelage as tt
from tutelage.oracle.kernels.fourth import fourth, positive, slopes
from tutelage.problem.activations import leaky_relu, polynomial

pytestmark = pytest.mark.usefixtures("quickly_compiled")
PAIRS = {
    "erf": ("erf", "erf"),
    "relu": ("relu", "relu"),
    "relu of a line": ("relu", "linear"),
    "leaky": (leaky_relu(0.2), leaky_relu(-0.5)),
    "he2 of he3": ("he2", "he3"),
    "cubes of a line": (polynomial([0.0, 1.0, 0.0, 0.3]), "linear"),
}
STUDENTS, SAMPLES = 2, 400_000


@functools.cache
def averages(name):
    return jax.jit(fourth(*map(tt.activation, PAIRS[name]), STUDENTS, 2))


def rows(how):
    """Two students and two teachers; with nothing special, a teacher that a student has found, or opposite students."""
    first = 0.6 * np.random.default_rng(1).standard_normal((4, 5))
    if how == "found":
        first[3] = first[1]
    if how == "opposite":
        first[1] = -2 * first[0]
    return first


@pytest.mark.parametrize("how", ["plain", "found", "opposite"])
@pytest.mark.parametrize("name", PAIRS)
def test_averages_are_those_of_samples(name, how):
    """Forty averages of 4e5 samples, within 5 standard errors: false alarms 3e-5 for a row. Where all samples agree
    (opposite numbers) the average is exact."""
    student, teacher = map(tt.activation, PAIRS[name])
    first = rows(how)
    found = np.asarray(averages(name)(jnp.asarray(first @ first.T)))
    x = first @ np.random.default_rng(2).standard_normal((5, SAMPLES))
    slope = [np.asarray(student.derivative(x[i])) for i in range(STUDENTS)]
    height = [np.asarray((student if a < STUDENTS else teacher)(x[a])) for a in range(4)]
    for i, k, a, b in itertools.product(range(STUDENTS), range(STUDENTS), range(4), range(4)):
        drawn = slope[i] * slope[k] * height[a] * height[b]
        assert abs(found[i, k, a, b] - drawn.mean()) <= 5 * drawn.std() / SAMPLES**0.5 + 1e-7
    assert np.allclose(found, found.transpose(1, 0, 2, 3), atol=1e-8)
    two = np.asarray(slopes(student, jnp.asarray(first[:STUDENTS])))
    for i, k in itertools.product(range(STUDENTS), repeat=2):
        drawn = slope[i] * slope[k]
        assert abs(two[i, k] - drawn.mean()) <= 5 * drawn.std() / SAMPLES**0.5 + 1e-12


def test_a_student_that_is_its_teacher_makes_no_noise():
    """At the teacher the error is zero for every sample, and so is the sum of averages."""
    for student in ("erf", "he3"):
        first = np.random.default_rng(0).standard_normal((2, 3))
        both = np.concatenate([first, first])
        found = np.asarray(fourth(tt.activation(student), tt.activation(student), 2, 2)(jnp.asarray(both @ both.T)))
        signs = np.array([1.0, 1.0, -1.0, -1.0])
        size = np.abs(found).max()
        assert np.max(np.abs(np.einsum("a,b,ikab->ik", signs, signs, found))) < 1e-12 * size


@pytest.mark.parametrize("seed", range(4))
def test_four_positive_numbers(seed):
    """Against SciPy's multivariate normal distribution, to its own tolerance of 1e-6."""
    first = np.random.default_rng(seed).standard_normal((4, 4))
    cosine = first @ first.T / np.outer(*[np.linalg.norm(first, axis=1)] * 2)
    law = stats.multivariate_normal(np.zeros(4), cosine, abseps=1e-7, releps=1e-7, maxpts=2_000_000, seed=0)
    assert abs(float(positive(jnp.asarray(cosine))) - law.cdf(np.zeros(4))) < 1e-5


def test_what_has_no_exact_noise_is_refused():
    with pytest.raises(tt.BadInput, match="no exact form for 'tanh' learning from 'relu'"):
        fourth(tt.activation("tanh"), tt.activation("relu"), 1, 1)
