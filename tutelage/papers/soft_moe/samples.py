"""How many examples it takes: for pruning by the sample loss, and for online SGD to recover a teacher."""

import functools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tutelage import run as run_with
from tutelage.analysis import gram_of, lines, prune
from tutelage.dynamics import Record, Sgd
from tutelage.oracle import AbstractOracle, draw, population_oracle
from tutelage.papers.soft_moe import recipe
from tutelage.papers.soft_moe.constants import Constants
from tutelage.papers.soft_moe.events import CROSSINGS
from tutelage.papers.soft_moe.growth import Growth
from tutelage.papers.soft_moe.pruned import synthetic
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.papers.soft_moe.sweeps import ONE
from tutelage.problem import Numbers
from tutelage.study import Size

# Pruning by the sample loss (Section 5.1).

EPSILON = 0.05
"""Of the states of Assumption 4 that are pruned."""
PRUNED_DIM, TEACHERS = 1000, 5
WIDTHS: dict[Size, tuple[int, ...]] = {"quick": (10, 25), "full": (10, 25, 50)}
COUNTS: dict[Size, tuple[int, ...]] = {
    "quick": (30, 100, 300, 1000, 3000),
    "full": (10, 30, 60, 100, 200, 300, 1000, 3000, 10000),
}
DRAWS: dict[Size, int] = {"quick": 12, "full": 40}


@functools.cache
def agreements(size: Size) -> NDArray[np.int64]:
    """In how many draws the sample loss keeps what the population loss keeps, (width, count)."""
    found = [[same_experts(m, seed, COUNTS[size]) for seed in range(DRAWS[size])] for m in WIDTHS[size]]
    return np.sum(found, axis=1)


def same_experts(students: int, seed: int, counts: tuple[int, ...]) -> list[bool]:
    """Whether pruning by so many fresh examples keeps the experts that pruning by the population loss keeps."""
    settings = SoftMoeSettings(students=students, teachers=TEACHERS, dim=PRUNED_DIM)
    state, problem = synthetic(settings, EPSILON, seed), recipe.problem(settings)
    target = jax.tree.map(jnp.asarray, problem.begin(0).teacher)

    def kept(oracle: AbstractOracle) -> tuple[int, ...]:
        gram, taught = gram_of(oracle, state)
        return prune(gram, target=taught).kept

    expected = kept(population_oracle(problem, target))
    return [kept(draw(problem, target, count, seed)) == expected for count in counts]


# Online SGD.

DIMS: dict[Size, tuple[int, ...]] = {"quick": (32, 64, 128), "full": (64, 128, 256, 512)}
DIALS: dict[Size, tuple[float, ...]] = {"quick": (0.01, 0.03), "full": (0.003, 0.01, 0.03, 0.1)}
"""kappa: step over batch is `kappa d^(-3/2)`."""
CHOSEN = 0.01
"""The one that is run in all dimensions; the others in `OTHERS` only."""
OTHERS = 128
STARTS: dict[Size, int] = {"quick": 10, "full": 16}
LONGEST = 2.0
"""Of sqrt(d): a start that has not recovered by then is censored."""
STEP = 0.02


@dataclass(frozen=True)
class Learning:
    """One student and one teacher under online SGD: examples until recovery (start), infinite if it did not come."""

    dim: int
    dial: float
    examples: Numbers

    @property
    def scaled(self) -> Numbers:
        """Examples over d^2."""
        return self.examples / self.dim**2


@functools.cache
def learning(dim: int, dial: float, starts: int) -> Learning:
    """From the first starts with a positive overlap; a negative one has no force to grow."""
    ratio = dial * dim**-1.5
    batch = max(1, round(STEP / ratio))
    step = batch * ratio
    settings = SoftMoeSettings(teachers=1, students=1, dim=dim)
    steps = math.ceil((LONGEST * math.sqrt(dim) + 10) / step)
    record = Record([0, steps], observables=(), crossings=CROSSINGS[:1], events=(ONE,))
    dynamics = Sgd(steps, batch, step, dtype="float32")
    found = run_with(recipe.problem(settings), dynamics, seeds=positive(settings, starts), record=record)
    times = np.nan_to_num(found.expert_time.values, nan=np.inf)[:, 0, 0]
    return Learning(dim, dial, times / ratio)


def positive(settings: SoftMoeSettings, count: int) -> tuple[int, ...]:
    """The first seeds whose student begins on the teacher's side."""
    return tuple(seed for seed in range(8 * count) if overlap(settings, seed) > 0)[:count]


def overlap(settings: SoftMoeSettings, seed: int) -> float:
    """`sqrt(d)` times the first overlap of the expert with the teacher's."""
    begun = recipe.problem(settings).begin(seed)
    expert, taught = np.asarray(begun.student.first)[1], np.asarray(begun.teacher.first)[1]
    return float(math.sqrt(settings.dim) * (expert @ taught) / np.linalg.norm(expert))


# What the law of the noise foretells, in the limit of many dimensions.


@functools.cache
def variance() -> float:
    """The variance of one entry of `w`'s gradient by one example, norm 1, student and teacher apart.

    `E[(h - h*)^2 (3 He_2 pi)^2]`: the student's own part, `9 E[He_3^2 He_2^2] E[pi^4]`, is fifty times the teacher's.
    """
    places, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    gate = np.asarray(Constants.of().gate(jnp.asarray(places)))
    he2, he3 = places**2 - 1, places**3 - 3 * places
    own = 9 * float(weights @ (he3**2 * he2**2)) * float(weights @ gate**4)
    square = float(weights @ gate**2)
    return own + 18 * square * 6 * square


def foretold(dial: float, begins: Numbers, *, copies: int = 40, steps: int = 4000) -> Numbers:
    """Examples over d^2 until recovery, from first overlaps `begins / sqrt(d)`, as d goes to infinity.

    With `s = t / sqrt(d)` and `x = sqrt(d) gamma2`: the squared norm grows by itself, `b^4 = 1 + 2 kappa V s`, and
    `dx = (4.5 x^2 / b^2 - kappa V x / (2 b^4)) ds + sqrt(kappa V) / b^2 dB`; recovery is where x runs away.
    """
    noise, step = dial * variance(), LONGEST / steps
    x = np.repeat(np.asarray(begins, float), copies)
    rng, when = np.random.default_rng(0), np.full(len(x), np.inf)
    for number in range(steps):
        fourth = 1 + 2 * noise * number * step
        drift = Growth().force * x**2 / math.sqrt(fourth) - noise * x / (2 * fourth)
        x = np.clip(x + step * drift + math.sqrt(noise * step / fourth) * rng.standard_normal(len(x)), -1e3, 1e3)
        when = np.where((x > 100) & np.isinf(when), number * step, when)
    return when / dial


PART = 0.25
"""Of the starts: the number of examples with which so many have recovered, which is known while few are censored."""


def reached(examples: Numbers) -> Numbers:
    """The number of examples with which a quarter of the starts (..., start) have recovered."""
    return np.quantile(examples, PART, axis=-1, method="inverted_cdf")


def exponent(size: Size) -> lines.Estimate:
    """Of the number of examples in d, with a bootstrap interval over starts, which all dims share."""
    dims, starts = DIMS[size], STARTS[size]
    examples = np.array([learning(dim, CHOSEN, starts).examples for dim in dims])
    return lines.exponent_over_seeds(dims, lambda chosen: reached(examples[:, chosen]), starts)


def begins(dim: int, starts: int) -> Numbers:
    """The first overlaps, times sqrt(d), of the starts that `learning` takes."""
    settings = SoftMoeSettings(teachers=1, students=1, dim=dim)
    return np.array([overlap(settings, seed) for seed in positive(settings, starts)])
