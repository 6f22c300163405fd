"""Runs of sign-symmetric populations in stage 1, made once for claims and figures: the warm-up, and the lottery.

The warm-up has no neuron near an axis: power sums are enough, whose orders up to 8 are those of infinite width. In the
lottery every order counts; a group of signs has them all, those from 4 on with the error of its strength. A network of
finite width runs beside it.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tutelage.papers.beyond_ntk import lottery, powers
from tutelage.papers.beyond_ntk.directions import LEVEL, Hits, hits
from tutelage.papers.beyond_ntk.orbits import gaussian_base, hadamard_group, simulate
from tutelage.papers.beyond_ntk.warmup import spaced
from tutelage.problem import Numbers
from tutelage.study import Size

STEP = 0.3
"""eta_inf: below the limit 0.38 of stability; the slow directions do not notice it."""
EVERY = 20  # steps from record to record


@dataclass(frozen=True)
class Warmup:
    """A population with unequal teacher weights through stage 1.1: base neurons (time, M, d)."""

    times: Numbers
    base: Numbers
    weights: Numbers

    @property
    def moments(self) -> Numbers:
        """`q_i = E w_i^2` (time, d)."""
        return np.mean(self.base**2, axis=1)


@cache
def warmup(dim: int = 64, ratio: float = 2.0, count: int = 128, until: float = 192.0) -> Warmup:
    """`ratio` is the largest over the smallest teacher weight; `until` a time; `E w_i^2 = 1/d` at the start."""
    a = spaced(dim, ratio)
    times = _times(until)
    base = jnp.asarray(_whitened(count, dim, seed=1))
    path = powers.simulate(base, jnp.full(count, 1 / count), jnp.asarray(a), step=STEP, times=list(times))
    return Warmup(times, path, a)


class Plan(NamedTuple):
    """The sizes of a lottery: horizon and end are the paper's T_2' and T_2, over d^2."""

    dim: int = 32
    width: int = 64
    tracers: int = 12
    """Neurons without mass of each kind of start, so that the rare kinds are seen too."""
    horizon: float = 0.25
    end: float = 0.3
    ratio: float = 1.0
    """The largest over the smallest teacher weight."""
    exact: int = -2
    """The orders up to this one are those of infinite width, by power sums, which takes twice as long."""

    @property
    def weights(self) -> Numbers:
        """The teacher's."""
        return spaced(self.dim, self.ratio)

    def warmed(self, start: Numbers) -> Numbers:
        """What stage 1.1 makes of starts (n, d): `v_i = sqrt(a_i d) v_i(0)`."""
        return np.sqrt(self.weights * self.dim) * start


@dataclass(frozen=True)
class Race:
    """A population on the plateau, with orders 0 and 2 learned, and tracers in it: both (time, neuron, d)."""

    plan: Plan
    times: Numbers
    base: Numbers
    tracers: Numbers

    @property
    def weights(self) -> Numbers:
        return self.plan.weights

    @property
    def neurons(self) -> Numbers:
        """The base neurons, then the tracers."""
        return np.concatenate([self.base, self.tracers], axis=1)

    @cached_property
    def kind(self) -> NDArray[np.int64]:
        """Of every neuron, by its start, in `lottery.KINDS`."""
        return kinds(self.neurons[0] / np.sqrt(self.weights * self.plan.dim), self.plan)

    @cached_property
    def hits(self) -> Hits:
        """When and where each neuron has `vbar_i^2 >= 1/2`, between records by interpolation."""
        square = self.neurons**2
        square /= square.sum(2, keepdims=True)
        top = square.max(2)
        after = np.argmax(top >= LEVEL, axis=0)
        reached, rows, before = top.max(0) >= LEVEL, np.arange(top.shape[1]), np.maximum(after - 1, 0)
        rise = np.maximum(top[after, rows] - top[before, rows], 1e-300)
        part = np.clip((LEVEL - top[before, rows]) / rise, 0, 1)
        time = self.times[before] + part * (self.times[after] - self.times[before])
        return Hits(np.where(reached, time, np.inf), np.where(reached, square[after, rows].argmax(1), -1))

    @cached_property
    def foretold(self) -> Hits:
        """The same by the direction equation, run three times as long."""
        return hits(self.neurons[0], self.weights, 3 * float(self.times[-1]))


@cache
def race(plan: Plan) -> Race:
    """The run of a plan, to its end, from where stage 1.1 has left the neurons."""
    draws = np.random.default_rng(2).standard_normal((40_000, plan.dim)) / np.sqrt(plan.dim)
    kind = kinds(draws, plan)
    chosen = np.concatenate([np.flatnonzero(kind == k)[: plan.tracers] for k in range(len(lottery.KINDS))])
    times = _times(plan.end * plan.dim**2)
    first, others = (plan.warmed(v) for v in (_whitened(plan.width, plan.dim, seed=0), draws[chosen]))
    return _run(plan, times, first, others, hadamard_group(plan.dim))


@cache
def network(plan: Plan, width: int = 200) -> Race:
    """A network of finite width from N(0, I/d), with units |z|: its only symmetry is that of w and -w."""
    start = np.random.default_rng(7).standard_normal((width, plan.dim)) / np.sqrt(plan.dim)
    both = np.stack([np.ones(plan.dim), -np.ones(plan.dim)])
    return _run(plan, _times(plan.end * plan.dim**2), plan.warmed(start), np.zeros((0, plan.dim)), both)


def _run(plan: Plan, times: Numbers, first: Numbers, others: Numbers, signs: Numbers) -> Race:
    base, tracers = simulate(
        jnp.asarray(first), jnp.full(len(first), 1 / len(first)), signs, jnp.asarray(plan.weights), step=STEP,
        times=list(times), tracers=jnp.asarray(others), exact=plan.exact if len(signs) > 2 else -2,
    )  # fmt: skip
    return Race(plan, times, base, tracers)


PLANS: dict[Size, Plan] = {"quick": Plan(), "full": Plan(width=128, tracers=24, exact=4)}
COUNTS: dict[Size, int] = {"quick": 6000, "full": 20000}
"""Neurons whose fate is told by the direction equation alone."""


def kinds(start: Numbers, plan: Plan) -> NDArray[np.int64]:
    """The kinds of starts (n, d), in `lottery.KINDS`."""
    bars = lottery.bars(plan.weights, plan.horizon * plan.dim**2)
    return lottery.tickets(start, bars, lottery.typical(start, plan.weights)).kind


@cache
def by_direction_equation(dim: int, count: int) -> tuple[Numbers, NDArray[np.int64], Hits]:
    """Gaussian starts in S_g, their kinds, and what they win by the direction equation, to the end of the plan."""
    plan, a = Plan(dim=dim), np.full(dim, 1 / dim)
    start = np.random.default_rng([2026, 15, dim]).standard_normal((count, dim)) / np.sqrt(dim)
    start = start[lottery.typical(start, a)]
    return start, kinds(start, plan), hits(start, a, plan.end * dim**2)


def tables(size: Size) -> dict[str, NDArray[np.int64]]:
    """Kinds against fates: by the direction equation, of the neurons of the population, and of those of a network."""
    plan = PLANS[size]
    start, kind, found = by_direction_equation(plan.dim, COUNTS[size])
    seen = {"law": lottery.confusion(kind, lottery.fates(start, found.winner))}
    for name, run in (("population", race(plan)), ("network", network(plan))):
        seen[name] = lottery.confusion(run.kind, lottery.fates(run.neurons[0], run.hits.winner))
    return seen


def _times(until: float) -> Numbers:
    return STEP * np.arange(0, round(until / STEP) + EVERY, EVERY)


def _whitened(count: int, dim: int, seed: int) -> Numbers:
    """Gaussian neurons with `E w_i^2 = 1/d` exactly, as at infinite width."""
    base = np.asarray(gaussian_base(count, dim, seed))
    return base / np.sqrt(dim * np.mean(base**2, axis=0))
