"""What the corrected theorem and the lemmas look at: Appendix A in long arithmetic, and states that are as said."""

import math

import mpmath
import numpy as np
import pytest

from tutelage.papers.relu_teachers import near
from tutelage.papers.relu_teachers.chain import second_phase_time
from tutelage.papers.relu_teachers.checks.late import largest_constant
from tutelage.papers.relu_teachers.hessian import hessian
from tutelage.papers.relu_teachers.late import HELD, Chain, parting_time, settled_time
from tutelage.papers.relu_teachers.plateau import Plateau


@pytest.mark.parametrize(("k", "m", "power"), [(2, 6, 0.0), (2, 6, 1.0), (4, 8, 1.0)])
def test_appendix_a_in_long_arithmetic(k, m, power):
    chain, level = Chain(k, m, power), Plateau(k, m)
    with mpmath.workdps(30):
        eps2 = mpmath.mpf(m) ** -60 * mpmath.mpf(k) ** -100
        eps1 = mpmath.sqrt((48 * mpmath.pi * eps2) ** (power * k) * eps2**2 / (64 * m))
        length = eps1 ** (16 * k + 2) / (10000 * m)
        waits = level.decay_inside / level.gamma_inside * mpmath.log(1 / length)
        second = eps1**2 / (100 * k * m) + mpmath.mpf(k) / (2 * m) * mpmath.log(1 / (48 * mpmath.pi * eps2))
        assert chain.log10_eps2 == pytest.approx(float(mpmath.log10(eps2)), rel=1e-12)
        assert chain.log10_length == pytest.approx(float(mpmath.log10(length)), rel=1e-12)
        assert chain.second == pytest.approx(float(second), rel=1e-12)
        assert chain.settled == pytest.approx(float(waits + 24 / mpmath.mpf(m)), rel=1e-12)
        assert chain.loss_allowed == pytest.approx(float(k**2 * eps2 ** mpmath.mpf("0.05") / 2), rel=1e-10)
    # What fits between L = level at T2 and HELD of it when the plateau ends.
    rise = (HELD * level.loss) ** (-1 / 3) - level.loss ** (-1 / 3)
    assert chain.largest_constant == pytest.approx(k**4 * rise / (chain.waits_until - chain.second), rel=1e-10)


def test_the_time_of_parting_is_that_by_which_the_plateau_lengthens():
    level = Plateau(3, 6)
    assert parting_time(level, -9.0) - parting_time(level, -4.0) == pytest.approx(level.lengthening(1e5))
    assert settled_time(Plateau(1, 3), -300.0) == 8.0
    # A chain with an eps2 that a double holds has the T2 of the clock.
    assert second_phase_time(0.1, 1e-30, 2, 6) > second_phase_time(0.1, 1e-11, 2, 6)


def test_the_largest_constant_of_a_law_is_its_own():
    class Run:
        time = np.linspace(0.0, 50.0, 501)
        loss = np.stack([(1 + 0.7 * time) ** -3.0, (2 + 0.9 * time) ** -3.0])

    assert largest_constant(Run(), 3.0) == pytest.approx(0.7)


def test_states_near_a_minimum_are_in_the_box_of_lemma_5():
    for step in near.states(np.random.default_rng(0), 1):
        share = step.lengths * step.member.sum(0)[step.tau]
        assert 1 / 3 <= share.min() and share.max() <= 3
        assert step.theta_own.max() <= 0.5 + 1e-9
        assert step.tau.tolist() == np.argmin(step.theta, axis=1).tolist()


def test_aligned_states_are_as_phase_2_is_said_to_have_them():
    for eps2, step in near.aligned(np.random.default_rng(0), 1, 1e-3):
        assert step.theta_own.max() <= eps2 * (1 + 1e-6)
        assert (step.h_own * step.member.sum(0)[step.tau] <= 2).all() and (step.h_own > 0).all()
        assert (step.H >= 24 * math.pi * eps2).all()


def test_boxes_are_boxes_and_the_bound_of_their_curvature_is_that_of_the_blocks():
    worst = 0.0
    for box in near.boxes(np.random.default_rng(0), 20):
        assert box.excess <= 1
        m, k, n = len(box.first), len(box.teacher), box.first.shape[1]
        blocks = hessian(box.first, box.teacher).reshape(m, n, m, n).swapaxes(1, 2)
        rows = np.linalg.norm(blocks, ord=2, axis=(2, 3)).sum(1).max()
        worst = max(worst, rows / ((m + 1) / 2 + 30 * k * max(box.counts) / math.pi))
    assert 0.2 < worst <= 1
