"""Runs of the mass equation in stage 2, made once for claims and figures: its start, and its algebraic tail."""

import math
from functools import cache

import numpy as np
from scipy.integrate import solve_ivp

from tutelage.papers.beyond_ntk import masses
from tutelage.papers.beyond_ntk.directions import signal
from tutelage.papers.beyond_ntk.masses import Masses
from tutelage.papers.beyond_ntk.warmup import spaced
from tutelage.problem import Numbers

STEP, STEPS = 0.2, 10_000
KINDS, RECORDS = 50, 401
GROWTH = (200, 500, 1000, 2000, 5000)
"""The dimensions over which the printed potential of Lemma A.6 is followed."""


@cache
def late(dim: int, ratio: float) -> tuple[Masses, Numbers]:
    """The recursion of Claim A.10 from T_3 = T_2 + 6 d log d on, and the weights."""
    a = spaced(dim, ratio)
    first = masses.flow(Masses(a * (1 - 1 / dim), a / dim), a, [0.0, 6 * dim * math.log(dim)])
    return masses.descent(Masses(*(part[-1] for part in first)), a, STEP, STEPS), a


@cache
def afterwards(dim: int, ratio: float = 2.0) -> tuple[Numbers, Masses, Numbers]:
    """Times from T_3 to 11 T_3, masses and weights of the mass equation.

    There are 50 weights, evenly spaced, and as many coordinates of each, so that d is a multiple of 50.
    """
    a = np.repeat(spaced(KINDS, ratio), dim // KINDS) * KINDS / dim
    warm = 6 * dim * math.log(dim)
    times = np.concatenate([[0.0], warm * np.linspace(1, 11, RECORDS)])
    path = masses.flow(Masses(a * (1 - 1 / dim), a / dim), a, times)
    return times[1:], Masses(path.beta[1:], path.gamma[1:]), a


def dense_growth(dim: int, square: float, until: float = 10.0) -> float:
    """By how much `vbar_1^2` of a dense neuron grows in a time `until d log d` from T_2, if `d vbar_1^2` is `square`.

    Its other coordinates are equal, and so are the weights: by Eq. (A.57) only `Q_1 - Q_2` tells them apart.
    """
    a, end = np.full(dim, 1 / dim), until * dim * math.log(dim)
    times = np.linspace(0.0, end, RECORDS)
    path = masses.flow(Masses(a * (1 - 1 / dim), a / dim), a, times)
    lacks = a[0] - path.gamma[:, 0]

    def share(odds: float) -> float:
        return float(np.exp(odds) / (np.exp(odds) + dim - 1))

    def change(time: float, odds: Numbers) -> Numbers:
        first = share(odds[0])
        unit = np.sqrt(np.r_[first, np.full(dim - 1, (1 - first) / (dim - 1))])
        own = signal(unit, np.full(dim, np.interp(time, times, lacks)))
        return np.array([2 * (own[0] - own[1])])

    begin = square / dim
    found = solve_ivp(change, (0.0, end), [math.log(begin / (1 - begin) * (dim - 1))], rtol=1e-6)
    return share(found.y[0, -1]) / begin


@cache
def tail(dim: int = 100) -> tuple[Numbers, Masses, Numbers]:
    """Times, masses and weights of stage 2 with equal weights, from 1/1000 of the mass on the axes."""
    a, times = np.full(dim, 1 / dim), np.concatenate([[0.0], np.geomspace(10, 1e6, 401)])
    return times, masses.flow(Masses(0.999 * a, 0.001 * a), a, times), a


def slope(times: Numbers, values: Numbers) -> Numbers:
    """The local slope of log values against log times."""
    return np.gradient(np.log(values), np.log(times))
