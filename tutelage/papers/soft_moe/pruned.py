"""What pruning leaves: of states made to satisfy Assumption 4, and of what runs had learned at recorded times."""

import functools
import math
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.optimize import brentq

from tutelage import BadInput
from tutelage.analysis import Pruning, gram_of, prune, prune_run
from tutelage.oracle import population_oracle
from tutelage.papers.soft_moe import recipe
from tutelage.papers.soft_moe.constants import Constants
from tutelage.papers.soft_moe.races import Race, large
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.papers.soft_moe.tuning import Tuning, tune
from tutelage.problem import Mixture, Numbers, Problem, Weights, of_kind
from tutelage.study import Size
from tutelage.trajectory import Run

DIMS = (200, 1000)
EPSILONS = (0.01, 0.02, 0.05, 0.1)
BEYOND = 0.2
"""`1 / sqrt(m)` of the paper's m = 25, where "epsilon = o(m^-1/2)" has ended."""
DRAWS = 20
TOLERANCE = 1e-3
"""Of removals of pairs, in units of the risk: pairs that cancel each other do so to about 1e-6 at the end of a run."""
LEAST_SEEDS = 4
"""With fewer, seeing a window in none of them proves nothing."""
SMALL = 0.1
"""Of the risk of a lone expert, `p! E[gate^2]`: what pruning may leave where it is called exact."""
LEARNED: dict[str, Any] = {"dim": 10**6, "init": "orthonormal", "until": 180.0}
"""A start of orthonormal students; at that time every teacher has its expert, and routers are still on their way."""
RECORDS = 76


def synthetic(settings: SoftMoeSettings, epsilon: float, seed: int) -> Weights:
    """A state as Assumption 4 describes it, at its edge.

    Student i <= m* has learned teacher i with both cosines equal to `1 - epsilon`; each cosine of an unused student's
    vectors with any other vector is at most epsilon, and the largest equals it if random vectors in `dim` dimensions
    have any as large.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.soft_moe.pruned import synthetic
    >>> from tutelage.papers.soft_moe.settings import SoftMoeSettings
    >>> state = synthetic(SoftMoeSettings(students=3, teachers=2, dim=50), epsilon=0.1, seed=0)
    >>> state.first[[0, 1, 3, 4], :4].diagonal().round(9).tolist()  # two routers, two experts
    [0.9, 0.9, 0.9, 0.9]

    ```
    """
    m, k = settings.students, settings.teachers
    if m < k:
        raise BadInput(f"synthetic: there are {m} students for {k} teachers, but at least one each was expected.")
    drawn, apart = _drawn(settings, seed)

    def state(logarithm: float) -> Numbers:
        return _learned(apart + math.exp(logarithm) * drawn, k, epsilon)

    # How much of the drawn vectors may be mixed into orthogonal ones; with nearly none the cosines are nearly 0.
    low, high = math.log(1e-6), math.log(1e3)
    if _largest(state(high), m, k) > epsilon:
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if _largest(state(middle), m, k) <= epsilon else (low, middle)
        high = low
    return Weights(jnp.asarray(state(high)), jnp.ones((m, 1)))


@functools.lru_cache(maxsize=2 * DRAWS)
def _drawn(settings: SoftMoeSettings, seed: int) -> tuple[Numbers, Numbers]:
    """Random unit vectors, and the orthonormal ones nearest to their parts beyond the teachers."""
    drawn = _unit(np.asarray(recipe.problem(settings).begin(seed).student.first))
    taught = 2 * settings.teachers
    left, _, right = np.linalg.svd(drawn[:, taught:], full_matrices=False)
    return drawn, np.pad(left @ right, ((0, 0), (taught, 0)))


def _unit(rows: Numbers) -> Numbers:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _learned(rows: Numbers, teachers: int, epsilon: float) -> Numbers:
    """Unit rows, with those of the first students at the cosine `1 - epsilon` to their teacher's."""
    rows, axes = _unit(rows), np.arange(2 * teachers)
    own = np.concatenate([np.arange(teachers), len(rows) // 2 + np.arange(teachers)])
    beyond = rows[own]
    beyond[:, axes] = 0.0
    rows[own] = math.sqrt(1 - (1 - epsilon) ** 2) * _unit(beyond)
    rows[own, axes] = 1 - epsilon
    return rows


def _largest(rows: Numbers, students: int, teachers: int) -> float:
    """The largest cosine of an unused student's vector with any other vector, students' or teachers'."""
    unused = np.concatenate([np.arange(teachers, students), students + np.arange(teachers, students)])
    others = np.concatenate([rows, np.eye(2 * teachers, rows.shape[1])])
    cosines = np.abs(rows[unused] @ others.T)
    cosines[np.arange(len(unused)), unused] = 0.0
    return float(cosines.max(initial=0.0))


def edge(constants: Constants) -> float:
    """The epsilon at which a lone expert with both cosines `1 - epsilon` is no longer worth keeping.

    Removing it changes the risk by `p! (2 g^p G_00(g) - E[gate^2])`, with `g = 1 - epsilon`.

    ```python
    >>> from tutelage.papers.soft_moe.constants import Constants
    >>> from tutelage.papers.soft_moe.pruned import edge
    >>> round(edge(Constants.of()), 4)
    0.1982

    ```
    """

    def worth(epsilon: float) -> float:
        g = 1 - epsilon
        return float(2 * g**constants.degree * constants.correlation(0, 0, g)) - constants.square

    return float(brentq(worth, 0.0, 1.0))


class Outcome(NamedTuple):
    """Pruning of synthetic states: how many of the draws kept exactly the first m*, and each draw's `Pruning`."""

    exact: int
    prunings: tuple[Pruning, ...]


def along(run: Run, *, order: int = 1, tolerance: float = 0.0, times: int | None = None) -> xr.Dataset:
    """Prune at recorded times of every seed: all of them, or about as many as `times`, evenly spaced.

    `kept`: the number of experts left; `exact`: whether they are the experts that first recovered the teachers, one
    each, and leave a small risk; `risk`: what is left of `E(f - f*)^2`.
    """
    recorded = run.time.values
    if times is not None:
        even = np.linspace(recorded[0], recorded[-1], times)
        recorded = np.unique(recorded[np.argmin(np.abs(recorded[:, None] - even), axis=0)])
    rows = [[_judged(run, seed, float(time), order, tolerance) for time in recorded] for seed in run.seed.values]
    names = ("kept", "exact", "risk")
    parts = {name: (("seed", "time"), [[cell[n] for cell in row] for row in rows]) for n, name in enumerate(names)}
    return xr.Dataset(parts, {"seed": run.seed.values, "time": recorded})


def _judged(run: Run, seed: int, time: float, order: int, tolerance: float) -> tuple[int, bool, float]:
    found = prune_run(run, at=time, seed=int(seed), order=order, tolerance=tolerance)
    risk = float(found.risk[-1])
    # The risk of one lone teacher: what the first removal adds when nothing else is left.
    right = found.kept == winners(run, int(seed), time) and risk <= SMALL * 2 * quantum(run)
    return len(found.kept), right, risk


def quantum(run: Run) -> float:
    """The loss of one unit of the run's student that overlaps with nothing."""
    student = of_kind(run.problem, Problem, "along").student
    assert isinstance(student, Mixture)
    return Constants.of(student.hidden.gate, student.hidden.degree).quantum


def winners(run: Run, seed: int, time: float) -> tuple[int, ...] | None:
    """The experts that were the first to recover a teacher's, in rising order; None before each teacher has its own."""
    times = run.expert_time.sel(seed=seed).transpose("student", "teacher").values
    times = np.where(times <= time, times, np.inf)
    found = sorted({int(student) for student in np.argmin(times, axis=0)})
    return tuple(found) if np.isfinite(times.min(0)).all() and len(found) == times.shape[1] else None


def longest(time: Numbers, flags: NDArray[np.bool_]) -> tuple[float, float] | None:
    """The longest stretch of records at which a flag is up, if it ever is."""
    if not flags.any():
        return None
    padded = np.concatenate([[False], flags, [False]])
    begins, ends = np.flatnonzero(padded[1:] & ~padded[:-1]), np.flatnonzero(~padded[1:] & padded[:-1]) - 1
    best = int(np.argmax(time[ends] - time[begins]))
    return float(time[begins[best]]), float(time[ends[best]])


def tuned_orthonormal(settings: SoftMoeSettings) -> Tuning | None:
    """Fine-tuning of what the paper's rule keeps in a run from orthonormal students; None if that is not one each."""
    learned = recipe.run(SoftMoeSettings(**settings.model_dump() | LEARNED), seeds=1, record=[0.0])
    kept = prune_run(learned).kept
    return tune(learned, kept) if kept == winners(learned, 0, math.inf) else None


def tuned_iid(run: Run) -> Tuning | None:
    """The same of the first seed of a run in which removal of pairs leaves one expert for each teacher in the end."""
    for seed in run.seed.values:
        kept = prune_run(run, seed=int(seed), order=2, tolerance=TOLERANCE).kept
        if kept == winners(run, int(seed), math.inf):
            return tune(run, kept, seed=int(seed))
    return None


class Pruned:
    """All that the claims on pruning and fine-tuning look at, each made when first asked for."""

    def __init__(self, settings: SoftMoeSettings, size: Size, seeds: int):
        self.settings, self.size = settings, size
        self.seeds = max(seeds, LEAST_SEEDS)

    def _varied(self, **values: Any) -> SoftMoeSettings:
        """The paper's teacher, with the sizes, gate and degree of the settings."""
        kept = self.settings.model_dump(include={"teachers", "students", "gate", "degree", "dim", "until"})
        return SoftMoeSettings(**kept | values)

    @cached_property
    def constants(self) -> Constants:
        return Constants.of(self.settings.gate, self.settings.degree)

    @cached_property
    def made(self) -> dict[tuple[int, float], Outcome]:
        """Outcomes of pruning synthetic states, by dim and epsilon."""
        least = 2 * (self.settings.students + self.settings.teachers)
        return {(dim, e): self._outcome(max(dim, least), e) for dim in DIMS for e in (*EPSILONS, BEYOND)}

    def near_edge(self, factor: float) -> Outcome:
        """Outcomes at a multiple of the epsilon from which a learned expert is not worth keeping."""
        return self._outcome(DIMS[-1], factor * edge(self.constants))

    def _outcome(self, dim: int, epsilon: float) -> Outcome:
        settings = self._varied(dim=dim)
        problem = recipe.problem(settings)
        oracle = population_oracle(problem, jax.tree.map(jnp.asarray, problem.begin(0).teacher))
        found = []
        for seed in range(DRAWS):
            gram, target = gram_of(oracle, synthetic(settings, epsilon, seed))
            found.append(prune(gram, target=target))
        expected = tuple(range(settings.teachers))
        return Outcome(sum(pruning.kept == expected for pruning in found), tuple(found))

    @cached_property
    def iid(self) -> Run:
        """The flow from the paper's start, at the size of the settings."""
        settings = self._varied(init="iid")
        return Race(settings, self.seeds, settings.horizon, records=300).run

    @cached_property
    def orthonormal(self) -> Run:
        """The flow from orthonormal students in many dimensions, the one in which Theorem 1 is looked at."""
        return large(self._varied(), self.size, "orthonormal").run

    @cached_property
    def iid_single(self) -> xr.Dataset:
        """The paper's rule along the flow from its start."""
        return along(self.iid, times=RECORDS)

    @cached_property
    def far_single(self) -> xr.Dataset:
        """The same from the paper's start in many dimensions, where Theorem 1 is looked at."""
        return along(large(self._varied(), self.size, "iid").run)

    @cached_property
    def iid_pairs(self) -> xr.Dataset:
        """The same when pairs may go as well, with a tolerance."""
        return along(self.iid, order=2, tolerance=TOLERANCE, times=RECORDS)

    @cached_property
    def orthonormal_single(self) -> xr.Dataset:
        """The paper's rule along the flow from orthonormal students."""
        return along(self.orthonormal)

    @cached_property
    def tunings(self) -> dict[str, Tuning]:
        """Fine-tuning, from wherever one expert for each teacher was kept."""
        found = {"orthonormal": tuned_orthonormal(self._varied()), "iid": tuned_iid(self.iid)}
        return {name: tuning for name, tuning in found.items() if tuning}
