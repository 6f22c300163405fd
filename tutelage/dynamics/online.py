"""Online SGD: a fresh Gaussian batch at every update, exact in law at any input dimension.

A sample enters the update of unit i as `c_ib x_b`, and the coefficients `C` depend on `x_b` through its projection on
the frame only. So the projections `U` are drawn, and the update inside the frame is `-(step/batch) C U^T`. Outside it
is `-(step/batch) C G` with a Gaussian `G` of `dim - n` columns, independent of everything else. Only its Gram
matrix is ever seen: with `F F^T = C C^T` it has the law of `F T T^T F^T`, where `T` is the triangular factor of a
Gaussian matrix (Bartlett: chi-distributed diagonal, normals below). The units then span as many new directions as `T`
has columns, and a rotation of the space outside the teachers brings them back to the columns there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import function, one_of, put, real, whole
from tutelage._errors import BadInput
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics, AbstractStep, Moment, Prepared, Taken
from tutelage.dynamics.descent import Schedule, step_size, ticked
from tutelage.dynamics.equivariance import Layers, check_lawful, vectors, widen, widened
from tutelage.dynamics.random import MAX_STEPS, PLACES, Key, keys_of, normals, uniforms
from tutelage.dynamics.record import Record
from tutelage.dynamics.room import NUMBER, columns_of, of_network
from tutelage.dynamics.staging import begun
from tutelage.oracle.base import AbstractOracle, Population
from tutelage.oracle.population import population_oracle
from tutelage.problem.frame import settle
from tutelage.problem.networks import Rates, Weights, host_weights, rates_given
from tutelage.problem.problem import AbstractProblem, Problem, Start, of_kind

if TYPE_CHECKING:
    from optax import GradientTransformation

# What the random numbers of one update are for.
_INPUTS, _LABELS, _BELOW, _DIAGONAL = range(4)


class Carry(NamedTuple):
    """What online SGD takes along: the key of the seed, and the state of an optimiser."""

    key: Key
    state: Any


@dataclass(frozen=True)
class Sgd(AbstractDynamics):
    """Online SGD: a fresh batch of noisy examples at every update, exact in law, at a cost that does not grow with dim.

    - `steps`, `batch`: how many updates, and examples per update; labels have the problem's `noise`.
    - `step`: the step size of plain SGD; or, in its place,
    - `optimiser`: a whole optimiser of optax, with its own step size, such as
      `optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1))`; time then counts updates. With law="exact" it must
      depend neither on the axes of input space nor on their number. Schedules, weight decay, momentum and scaling or
      clipping by norms (of all, of a layer) are permitted; Adam, signs and clipping of single entries are not. What is
      given is tried on random gradients, and refused if it is not permitted; with law="direct" all may be used.
    - `law`: "exact" keeps the few coordinates that matter and draws the rest in law; "direct" draws every example
      with its `dim` entries. Inner products of students and teachers have the same law in both. With "exact" the
      coordinates outside the teachers turn at every update: compare inner products, not coordinates (nor the start's).
    - `dtype`: the precision of the examples and of what is computed from them; weights and records are float64.
    - `schedule`, `rates`: as for `Descent`.

    ```python
    >>> import tutelage as tt
    >>> tt.Sgd(steps=100, batch=16, step=0.1).law
    'exact'

    ```
    """

    name: ClassVar[str] = "sgd"
    revision: ClassVar[int] = REVISIONS["sgd"]
    still: ClassVar[float] = 0.0

    steps: int
    batch: int
    step: float | None = None
    optimiser: "GradientTransformation | None" = None
    law: Literal["exact", "direct"] = "exact"
    dtype: Literal["float64", "float32"] = "float64"
    schedule: Schedule | None = None
    rates: Mapping[str, float | ArrayLike] | None = None

    def __post_init__(self) -> None:
        put(
            self, steps=whole("steps", self.steps, least=1, most=MAX_STEPS),  # there are random numbers for no more
            batch=whole("batch", self.batch, least=1, most=PLACES),
        )  # fmt: skip
        one_of("law", self.law, ["exact", "direct"])
        one_of("dtype", self.dtype, ["float64", "float32"])
        rates_given(self.rates)
        if self.schedule is not None:
            function("schedule", self.schedule, "the number of the update")
        self._check_step()

    def _check_step(self) -> None:
        if self.optimiser is None:
            if self.step is None:
                raise BadInput("sgd got neither a step nor an optimiser; pass one of them, such as step=0.1.")
            put(self, step=real("step", self.step, above=0))
            return
        if self.step is not None or self.schedule is not None:
            raise BadInput("An optimiser has its own step and schedule; leave out step and schedule, or the optimiser.")
        if not (callable(getattr(self.optimiser, "init", None)) and callable(getattr(self.optimiser, "update", None))):
            raise BadInput(f"optimiser is {self.optimiser!r}, but one of optax was expected, such as optax.sgd(0.1).")

    def room(self, problem: AbstractProblem, seeds: int) -> dict[str, float]:
        problem, full = of_kind(problem, Problem, self.name), self.law == "direct"
        columns = columns_of(problem, full=full)
        if columns * self.batch > PLACES:
            raise BadInput(
                f"batch is {self.batch}, but with {columns} coordinates there are random numbers for examples up to "
                f"{PLACES // columns}; use a smaller batch."
            )
        size = NUMBER if self.dtype == "float64" else NUMBER / 2
        # As the compiler says: of examples their bits too, and of each unit what it sees and what goes back.
        drawn = size * seeds * self.batch * (3 * columns + 2 * problem.student.rows + 1)
        return of_network(problem, seeds, full=full) | {f"use a batch smaller than {self.batch}": drawn}

    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        problem = of_kind(problem, Problem, self.name)
        begin = self._begun(problem, seeds, start)
        outside = problem.inputs.dim - begin.student.first.shape[-1] if self.law == "exact" else 0
        step = OnlineStep(
            # With an optimiser, which has a step size of its own, an update is one unit of time.
            step_size=jnp.asarray(1.0 if self.step is None else float(self.step)),
            rates=problem.student.rates(self.rates),
            noise=jnp.asarray(float(problem.noise)) if problem.noise else None,
            outside=jnp.asarray(float(outside)) if outside else None,
            trains=problem.student.layers,
            batch=int(self.batch),
            schedule=self.schedule,
            precision=self.dtype,
            optimiser=self.optimiser,
        )
        return Prepared(step, population_oracle(problem, begin.teacher), False, *begin, keys_of(seeds))

    def _begun(self, problem: Problem, seeds: list[int], start: Start | None) -> Start:
        starts = [problem.drawn(seed, full=self.law == "direct") for seed in seeds]
        if start is not None:
            starts = [
                Start(start.teacher, jax.tree.map(lambda leaf, n=n: leaf[n], start.student)) for n in range(len(seeds))
            ]
        if self.law == "direct":
            return begun(starts)
        kept = self._kept(problem, starts[0])
        return begun([_settled(problem, start, kept) for start in starts])

    def _kept(self, problem: Problem, start: Start) -> int:
        """How many vectors in input space the optimiser keeps for each unit, such as its momentum."""
        if self.optimiser is None:
            return 0
        layers = {layer: jnp.asarray(getattr(start.student, layer)) for layer in problem.student.layers}
        check_lawful(self.optimiser, {name: (leaf.shape[0], leaf.shape[1]) for name, leaf in layers.items()})
        return sum(vectors(self.optimiser, layers))

    def stops(self, record: Record) -> NDArray[np.float64]:
        return record.updates(int(self.steps))

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        del problem
        how = {"optimiser": "optax"} if self.step is None else {"step": float(self.step)}
        return how | {"steps": int(self.steps), "batch": int(self.batch), "law": self.law, "dtype": self.dtype}


def _settled(problem: Problem, start: Start, kept: int) -> Start:
    """The start in coordinates that online SGD does not leave, with room for `kept` further vectors per unit."""
    rows = np.asarray(start.student.first)
    room = np.concatenate([rows, np.zeros((kept * len(rows), rows.shape[1]))])
    teacher, student = settle(problem.inputs.dim, np.asarray(start.teacher.first), room)
    return Start(host_weights(teacher, start.teacher.second), host_weights(student[: len(rows)], start.student.second))


class OnlineStep(AbstractStep):
    """`w <- w - step * rate * (gradient on a fresh batch)`, both layers at once.

    - `step_size`, `rates`, `trains`, `schedule`: as for `DescentStep`.
    - `batch`: samples per update. `noise`: standard deviation of the label noise, None for none.
    - `outside`: the number of dimensions outside the frame; None if the frame is the whole space. If not None, the
      frame has the teachers' columns first, then as many columns as there are units (and vectors in the optimiser's
      state), and the latter turn at every update: inner products with the teachers and between units have a meaning,
      single coordinates do not.
    - `precision`: of the samples and of what is computed from them; weights are kept in double precision.
    - `optimiser`: from optax, in place of `- step * gradient`; it gets a dictionary of the layers that train.
    """

    step_size: Float[Array, ""]
    rates: Rates
    noise: Float[Array, ""] | None
    outside: Float[Array, ""] | None
    trains: tuple[str, ...] = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    schedule: Schedule | None = eqx.field(static=True, default=None)
    precision: str = eqx.field(static=True, default="float64")
    optimiser: "GradientTransformation | None" = eqx.field(static=True, default=None)

    def begin(self, oracle: AbstractOracle, weights: Weights) -> Moment:
        state = None if self.optimiser is None else self.optimiser.init(self._layers(weights))
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), Carry(jnp.zeros((), jnp.uint64), state))

    def seeded(self, moment: Moment, key: Key) -> Moment:
        return moment._replace(carry=moment.carry._replace(key=key))

    @property
    def factorises(self) -> bool:
        return True

    @property
    def tells_strain(self) -> bool:
        return True  # never: it draws examples, and asks the oracle for no gradient

    def step(self, oracle: AbstractOracle, moment: Moment, limit: Float[Array, ""]) -> Taken:
        del limit  # one update is one tick: limits are whole numbers of updates
        size = step_size(self.step_size, self.schedule, moment.clock)
        assert isinstance(oracle, Population)
        gradient = self._gradient(oracle, moment)
        extra = gradient["first"].shape[1] - moment.weights.first.shape[1] if "first" in gradient else 0
        layers = widened(self._layers(moment.weights), extra)
        moves, state = self._moves(layers, gradient, moment.carry.state, size, extra)
        moved = {name: leaf + getattr(self.rates, name) * moves[name] for name, leaf in layers.items()}
        if extra:
            moved, state = self._turned(moved, state, extra)
        weights = Weights(moved.get("first", moment.weights.first), moved.get("second", moment.weights.second))
        carry = Carry(moment.carry.key, state)
        return Taken(Moment(weights, *ticked(self.schedule, moment, size), carry), jnp.array(True), jnp.array(False))

    def _layers(self, weights: Weights) -> Layers:
        return {name: getattr(weights, name) for name in ("first", "second") if name in self.trains}

    def _gradient(self, oracle: Population, moment: Moment) -> Layers:
        """The gradient on a fresh batch; that of the incoming weights in the frame's columns, then in new ones."""
        key, clock = moment.carry.key, moment.clock
        inputs = normals(key, clock, _INPUTS, (moment.weights.first.shape[1], self.batch), self.precision)
        errors, along, slope = self._sample(oracle, moment, inputs)
        gradient = {}
        if "first" in self.trains:
            inside = (errors @ inputs.T).astype(float) / self.batch
            if along is not None:
                inside = inside + along[:, None].astype(float) / self.batch * moment.weights.first
            beyond = [] if self.outside is None else [self._beyond(key, clock, errors)]
            gradient["first"] = jnp.concatenate([inside, *beyond], axis=1)
        if "second" in self.trains:
            gradient["second"] = slope / self.batch
        return gradient

    def _sample(self, oracle: Population, moment: Moment, inputs: Array) -> tuple[Array, Array | None, Array]:
        """The coefficients (row, sample) of the samples in the incoming gradient, those of the rows themselves, and the
        outgoing gradient."""
        weights, target = jax.tree.map(self._cast, (moment.weights, oracle.target))
        student, teacher = oracle.sides
        # Samples along the last axis: sums over units are then sums of long rows.
        seen = jnp.concatenate([weights.first, target.first]) @ inputs
        pre, taught = seen[: len(weights.first)], seen[len(weights.first) :]
        hidden = student(weights.first, pre)
        residual = weights.second.T @ hidden - target.second.T @ teacher(target.first, taught)
        if self.noise is not None:
            noise = normals(moment.carry.key, moment.clock, _LABELS, residual.shape, self.precision)
            residual = residual - self._cast(self.noise) * noise
        errors, along = student.back(weights.first, pre, weights.second @ residual)
        return errors, along, (hidden @ residual.T).astype(float)

    def _cast(self, leaf: Array) -> Array:
        # One operand in double precision would draw all that follows into it.
        return leaf.astype(self.precision)

    def _beyond(self, key: Key, clock: Array, errors: Array) -> Float[Array, "unit rank"]:
        """The gradient outside the frame."""
        assert self.outside is not None
        factor = _factor(errors).astype(float)
        return factor @ bartlett(key, clock, self.outside, factor.shape[1]) / self.batch

    def _moves(self, layers: Layers, gradient: Layers, state: Any, size: Array, extra: int) -> tuple[Layers, Any]:
        """What is added to the weights (before the rates of the layers), and the new state of the optimiser."""
        if self.optimiser is None:
            return {name: -size * leaf for name, leaf in gradient.items()}, None
        leaves, structure = jax.tree.flatten(state)
        marks = vectors(self.optimiser, layers) if extra else [False] * len(leaves)
        leaves = [widen(leaf, extra) if mark else leaf for leaf, mark in zip(leaves, marks, strict=True)]
        moves, state = self.optimiser.update(gradient, jax.tree.unflatten(structure, leaves), layers)
        return moves, state

    def _turned(self, layers: Layers, state: Any, extra: int) -> tuple[Layers, Any]:
        """Incoming weights and vectors of the state together, turned back into the columns of the frame."""
        leaves, structure = jax.tree.flatten(state)
        marks = () if self.optimiser is None else vectors(self.optimiser, layers)
        places = [place for place, mark in enumerate(marks) if mark]
        rows = jnp.concatenate([layers["first"], *(leaves[place] for place in places)])
        first, *kept = jnp.split(_turned(rows, extra), 1 + len(places))
        for place, leaf in zip(places, kept, strict=True):
            leaves[place] = leaf
        return layers | {"first": first}, jax.tree.unflatten(structure, leaves)


LONG = 32  # samples per unit from which on the Gram matrix is quicker than QR: ten times at 4096 samples of 50 units


def _factor(errors: Float[Array, "unit sample"]) -> Float[Array, "unit rank"]:
    """`F` with `F F^T = C C^T`, of the fewer columns; right also for dead and for equal units.

    By QR or, with many samples, from the Gram matrix, which leaves 1e-8 of the noise where there should be none. If
    units are dependent on a batch, rounding decides which of the factors is found; the law is the same with all.
    """
    units, samples = errors.shape
    if samples <= units:
        return errors
    if samples <= LONG * units:
        triangle: Array = jnp.linalg.qr(errors.T, mode="r")
        return triangle.T
    errors = errors.astype(float)
    found = jnp.linalg.eigh(errors @ errors.T)
    axes: Array = found.eigenvectors
    return axes * jnp.sqrt(jnp.maximum(found.eigenvalues, 0.0))[None]


def _turned(rows: Float[Array, "row wide"], extra: int) -> Float[Array, "row frame"]:
    """Rows without `extra` of their columns, by a rotation that leaves the teachers, who have the first, in place."""
    teachers = rows.shape[1] - extra - len(rows)
    rest = jnp.linalg.qr(rows[:, teachers:].T, mode="r").T
    return jnp.concatenate([rows[:, :teachers], rest], axis=1)


def bartlett(key: Key, step: Array, columns: Float[Array, ""], count: int) -> Float[Array, "count count"]:
    """The triangular factor of a Gaussian matrix of `count` rows and `columns` columns (zeros beyond these)."""
    degrees = jnp.maximum(columns - jnp.arange(count, dtype=float), 0.0)
    below = jnp.tril(normals(key, step, _BELOW, (count, count)), -1)
    return jnp.where((degrees > 0)[None], below, 0.0) + jnp.diag(chi(key, step, degrees))


def chi(key: Key, step: Array, degrees: Float[Array, " count"]) -> Float[Array, " count"]:
    """Independent chi variables, by the exact rejection method of Marsaglia and Tsang (2000); 0 for 0 degrees."""
    count = len(degrees)
    shape = degrees / 2
    centre = jnp.where(shape < 1, shape + 1, shape) - 1 / 3
    width = 1 / jnp.sqrt(9 * centre)
    own = jnp.arange(count, dtype=jnp.uint64) + np.uint64(1 << 31)

    def attempt(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        turn, kept, done = state
        x = normals(key, step, _DIAGONAL, (count,), turn=turn)
        u = uniforms(key, step, _DIAGONAL, own + turn * np.uint64(count))
        cube = (1 + width * x) ** 3
        bound = 0.5 * x**2 + centre * (1 - cube + jnp.log(jnp.where(cube > 0, cube, 1.0)))
        good = (cube > 0) & (jnp.log(u) < bound) & ~done
        return turn + np.uint64(1), jnp.where(good, cube, kept), done | good

    start = (jnp.zeros((), jnp.uint64), jnp.ones(count), degrees <= 0)
    cube = jax.lax.while_loop(lambda state: ~jnp.all(state[2]), attempt, start)[1]
    # Below two degrees of freedom: one more, and a power of a uniform.
    lift = uniforms(key, step, _DIAGONAL, own + np.uint64(1 << 30)) ** (1 / jnp.where(shape > 0, shape, 1.0))
    square = 2 * centre * cube * jnp.where(shape < 1, lift, 1.0)
    return jnp.where(degrees > 0, jnp.sqrt(square), 0.0)
