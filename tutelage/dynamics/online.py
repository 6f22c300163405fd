"""Online SGD: a fresh Gaussian batch at every update, exact in law at any input dimension.

A sample enters the update of unit i as `c_ib x_b`, and the coefficients `C` depend on `x_b` through its projection on
the frame only. So the projections `U` are drawn, and the update inside the frame is `-(step/batch) C U^T`. Outside it
is `-(step/batch) C G` with a Gaussian `G` of `dim - n` columns, independent of everything else. Only its Gram
matrix is ever seen: with `F F^T = C C^T` it has the law of `F T T^T F^T`, where `T` is the triangular factor of a
Gaussian matrix (Bartlett: chi-distributed diagonal, normals below). The units then span as many new directions as `T`
has columns: these are spare columns of the frame. When all are used, after `ahead` updates, a rotation of the space
outside the teachers brings the units back to the columns they began with. The random numbers of these updates are made
together: one by one they would cost several times as much.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import function, one_of, put, real, whole
from tutelage._errors import BadInput
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics, AbstractStep, Moment, Prepared, Taken
from tutelage.dynamics.descent import Schedule, step_size, ticked
from tutelage.dynamics.equivariance import Layers, check_lawful, check_optimiser, updated, vectors
from tutelage.dynamics.random import MAX_STEPS, PLACES, Key, keys_of, normals, uniforms
from tutelage.dynamics.record import Record
from tutelage.dynamics.room import NUMBER, columns_of, of_network
from tutelage.dynamics.staging import begun, unstacked
from tutelage.oracle.base import AbstractOracle, Population
from tutelage.oracle.penalised import PenalisedOracle
from tutelage.oracle.population import population_oracle
from tutelage.problem.frame import settle
from tutelage.problem.networks import Rates, Weights, host_weights, rates_given
from tutelage.problem.problem import AbstractProblem, Problem, Start, of_kind

if TYPE_CHECKING:
    from optax import GradientTransformation

# What the random numbers of one update are for.
_INPUTS, _LABELS, _BELOW, _DIAGONAL = range(4)


class Supply(NamedTuple):
    """The random numbers of the updates before `until`, along a first axis: the examples, the noise of their labels,
    and what they are outside the frame, if there are more of them than units: else it is an entry of each example."""

    inputs: Float[Array, "update column sample"]
    labels: Float[Array, "update output sample"] | None
    outside: Float[Array, "update rank column"] | None
    until: Float[Array, ""]


class Carry(NamedTuple):
    """What online SGD takes along: the key of the seed, its random numbers, and the state of an optimiser."""

    key: Key
    supply: Supply
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
      coordinates outside the teachers turn now and then: compare inner products, not coordinates (nor the start's).
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
        check_optimiser(self.optimiser)

    def room(self, problem: AbstractProblem, seeds: int) -> dict[str, float]:
        problem = of_kind(problem, Problem, self.name)
        columns = self._columns(problem)
        if columns * self.batch > PLACES:
            raise BadInput(
                f"batch is {self.batch}, but with {columns} coordinates there are random numbers for examples up to "
                f"{PLACES // columns}; use a smaller batch."
            )
        size = NUMBER if self.dtype == "float64" else NUMBER / 2
        # As the compiler says: of examples their bits too, and of each unit what it sees and what goes back.
        drawn = size * seeds * self.batch * (3 * columns + 2 * problem.student.rows + 1)
        return of_network(problem, seeds, columns) | {f"use a batch smaller than {self.batch}": drawn}

    def _columns(self, problem: Problem) -> int:
        dim = problem.law.dim
        if self.law == "direct":
            return dim
        rows, columns = problem.student.rows, min(columns_of(problem) + problem.law.kept, dim)
        return frame_of(dim, rows, columns, self.batch, learns="first" in problem.student.layers).columns

    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        problem = of_kind(problem, Problem, self.name)
        problem.student.check_samples()
        begin, frame = self._begun(problem, seeds, start)
        step = OnlineStep(
            # With an optimiser, which has a step size of its own, an update is one unit of time.
            step_size=jnp.asarray(1.0 if self.step is None else float(self.step)),
            rates=problem.student.rates(self.rates),
            noise=jnp.asarray(float(problem.noise)) if problem.noise else None,
            outside=jnp.asarray(float(frame.outside)) if frame.outside else None,
            trains=problem.student.layers,
            batch=int(self.batch),
            ahead=frame.ahead,
            schedule=self.schedule,
            precision=self.dtype,
            optimiser=self.optimiser,
            root=None if problem.law.standard else jnp.asarray(problem.law.root),
            mean=None if problem.law.mean is None else jnp.asarray(problem.law.centre),
        )
        return Prepared(step, population_oracle(problem, begin.teacher), False, *begin, keys_of(seeds))

    def _begun(self, problem: Problem, seeds: list[int], start: Start | None) -> tuple[Start, "Frame"]:
        direct = self.law == "direct"
        starts = [problem.drawn(seed, full=direct) for seed in seeds]
        if start is not None:
            starts = [Start(start.teacher, student) for student in unstacked(start.student, len(seeds))]
        if not direct:
            kept = self._kept(problem, starts[0])
            starts = [_settled(problem, start, kept) for start in starts]
        rows, columns = starts[0].student.first.shape
        frame = frame_of(problem.law.dim, rows, columns, self.batch, learns="first" in problem.student.layers)
        return begun([_padded(start, frame.columns) for start in starts]), frame

    def _kept(self, problem: Problem, start: Start) -> int:
        """How many vectors in input space the optimiser keeps for each unit, such as its momentum."""
        if self.optimiser is None:
            return 0
        layers = {layer: jnp.asarray(getattr(start.student, layer)) for layer in problem.student.layers}
        way_out = 'use law="direct", or an optimiser of norms and inner products'
        check_lawful(self.optimiser, {name: (leaf.shape[0], leaf.shape[1]) for name, leaf in layers.items()}, way_out)
        return sum(vectors(self.optimiser, layers))

    def stops(self, record: Record) -> NDArray[np.float64]:
        return record.updates(int(self.steps))

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        del problem
        how = {"optimiser": "optax"} if self.step is None else {"step": float(self.step)}
        return how | {"steps": int(self.steps), "batch": int(self.batch), "law": self.law, "dtype": self.dtype}


class Frame(NamedTuple):
    """The coordinates of a run: how many, how many dimensions are outside of them before the first update, and after
    how many updates the spare ones are used up, or fresh random numbers are due."""

    columns: int
    outside: int
    ahead: int


MOST = 32
"""Updates that random numbers are made for at once."""
SUPPLY = 4096
"""Random numbers at once: enough that their number is what they cost."""
TURNS = 1600
"""Random numbers that cost as much as a rotation."""


def frame_of(dim: int, rows: int, columns: int, batch: int, *, learns: bool = True) -> Frame:
    """The quickest coordinates of `columns` to begin with; the law is the same in all.

    A spare column costs random numbers for every example, and saves rotations.

    ```python
    >>> from tutelage.dynamics.online import frame_of
    >>> frame_of(1000, 20, 24, 1), frame_of(1000, 20, 24, 512)
    (Frame(columns=56, outside=976, ahead=32), Frame(columns=44, outside=976, ahead=1))
    >>> frame_of(30, 20, 24, 1)
    Frame(columns=30, outside=0, ahead=32)

    ```
    """
    rank = min(batch, rows)
    ahead = _power(math.sqrt(TURNS / (batch * rank)))
    wide = columns + ahead * rank
    if learns and batch * dim > batch * wide + TURNS / ahead:
        return Frame(wide, dim - columns, ahead)
    whole = dim if learns else columns
    return Frame(whole, 0, _power(SUPPLY / (batch * whole)))


def _power(number: float) -> int:
    """The power of two below, from 1 to `MOST`."""
    return 1 << min(max(int(number), 1), MOST).bit_length() - 1


def _padded(start: Start, columns: int) -> Start:
    """The start with more columns, all zero."""
    teacher, student = (
        host_weights(np.pad(each.first, ((0, 0), (0, columns - each.first.shape[1]))), each.second)
        for each in (start.teacher, start.student)
    )
    return Start(teacher, student)


def _settled(problem: Problem, start: Start, kept: int) -> Start:
    """The start in coordinates that online SGD does not leave, with room for `kept` further vectors per unit."""
    rows = np.asarray(start.student.first)
    room = np.concatenate([rows, np.zeros((kept * len(rows), rows.shape[1]))])
    law = problem.law
    teacher, student = settle(law.dim, np.asarray(start.teacher.first), room, kept=law.kept)
    return Start(host_weights(teacher, start.teacher.second), host_weights(student[: len(rows)], start.student.second))


class OnlineStep(AbstractStep):
    """`w <- w - step * rate * (gradient on a fresh batch)`, both layers at once.

    - `step_size`, `rates`, `trains`, `schedule`: as for `DescentStep`.
    - `batch`: samples per update. `noise`: standard deviation of the label noise, None for none.
    - `outside`: the number of dimensions outside the frame before the first update; None if it has all that there are.
      If not None, the frame has the coordinates of inputs that are not standard first, then the teachers' columns, then
      as many as there are units (and vectors in the optimiser's state), then the spare ones. From there on all turn:
      inner products with the teachers and between units have a meaning, single coordinates do not.
    - `ahead`: updates after which the spare columns are used up, and random numbers are made anew.
    - `precision`: of the samples and of what is computed from them; weights are kept in double precision.
    - `optimiser`: from optax, in place of `- step * gradient`; it gets a dictionary of the layers that train.
    - `root`, `mean`: of the first coordinates of the inputs, `root` times standard ones plus `mean`; None for standard.
    """

    step_size: Float[Array, ""]
    rates: Rates
    noise: Float[Array, ""] | None
    outside: Float[Array, ""] | None
    trains: tuple[str, ...] = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    ahead: int = eqx.field(static=True)
    schedule: Schedule | None = eqx.field(static=True, default=None)
    precision: str = eqx.field(static=True, default="float64")
    optimiser: "GradientTransformation | None" = eqx.field(static=True, default=None)
    root: Float[Array, "kept kept"] | None = None
    mean: Float[Array, " kept"] | None = None

    def begin(self, oracle: AbstractOracle, weights: Weights) -> Moment:
        state = None if self.optimiser is None else self.optimiser.init(self._layers(weights))
        key = jnp.zeros((), jnp.uint64)
        shapes = jax.eval_shape(self._drawn, key, jnp.zeros(()), weights)
        carry = Carry(key, jax.tree.map(jnp.zeros_like, shapes), state)
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), carry)

    def seeded(self, moment: Moment, key: Key) -> Moment:
        return moment._replace(carry=moment.carry._replace(key=key))

    @property
    def factorises(self) -> bool:
        return True

    @property
    def tells_strain(self) -> bool:
        return True  # never: it draws examples, and asks the oracle for no gradient

    @property
    def draws(self) -> bool:
        return True

    def spent(self, moment: Moment) -> Bool[Array, ""]:
        over: Array = moment.clock >= moment.carry.supply.until
        return over

    def supplied(self, moment: Moment) -> Moment:
        moment = moment if self.outside is None else self._turned(moment)
        return moment._replace(
            carry=moment.carry._replace(supply=self._drawn(moment.carry.key, moment.clock, moment.weights))
        )

    def _drawn(self, key: Key, clock: Array, weights: Weights) -> Supply:
        """The random numbers from the last multiple of `ahead` to the next: those of an update do not depend on where
        a run was interrupted."""
        begin, places = clock - clock % self.ahead, jnp.arange(self.ahead)
        return Supply(*jax.vmap(lambda place: self._draw(key, begin, place, weights))(places), begin + self.ahead)

    def _draw(self, key: Key, begin: Array, place: Array, weights: Weights) -> tuple[Array, Array | None, Array | None]:
        """The random numbers of one update."""
        clock, columns, labels = begin + place.astype(float), weights.first.shape[1], None
        if self.noise is not None:
            labels = normals(key, clock, _LABELS, (weights.second.shape[1], self.batch), self.precision)
        if self.outside is None:
            return self._coloured(normals(key, clock, _INPUTS, (columns, self.batch), self.precision)), labels, None
        rank, first = self._spare(weights)
        inputs = normals(key, clock, _INPUTS, (columns - rank, self.batch), self.precision)
        # No unit has been outside of the columns that are in use, and none is beyond the space itself.
        here, used = jnp.arange(columns, dtype=float), (first + place * rank).astype(float)
        inputs = jnp.where((here[:-rank] < jnp.minimum(used, first + self.outside))[:, None], inputs, 0)
        inputs = self._coloured(jnp.pad(inputs, ((0, rank), (0, 0))))
        outside = self._outside(key, clock, place * rank, weights)
        if self.batch > rank:
            return inputs, labels, outside
        return inputs + self._cast(outside.T), labels, None

    def _coloured(self, inputs: Float[Array, "column sample"]) -> Float[Array, "column sample"]:
        """Examples from standard ones."""
        if self.root is None:
            return inputs
        kept = len(self.root)
        inside = self._cast(self.root) @ inputs[:kept]
        if self.mean is not None:
            inside = inside + self._cast(self.mean)[:, None]
        return jnp.concatenate([inside, inputs[kept:]])

    def _outside(self, key: Key, clock: Array, used: Array, weights: Weights) -> Float[Array, "rank column"]:
        """What the examples of an update are outside the frame, in the spare columns after the `used` ones."""
        assert self.outside is not None
        rank, first = self._spare(weights)
        own = jnp.arange(weights.first.shape[1])[None] == first + used + jnp.arange(rank)[:, None]
        return bartlett(key, clock, self.outside - used.astype(float), rank) @ own.astype(float)

    def _spare(self, weights: Weights) -> tuple[int, int]:
        """How many spare columns an update uses, and where the first is."""
        rows, columns = weights.first.shape
        rank = min(self.batch, rows)
        return rank, columns - self.ahead * rank

    def step(self, oracle: AbstractOracle, moment: Moment, limit: Float[Array, ""]) -> Taken:
        del limit  # one update is one tick: limits are whole numbers of updates
        size = step_size(self.step_size, self.schedule, moment.clock)
        assert isinstance(oracle, Population)
        layers = self._layers(moment.weights)
        gradient = self._gradient(oracle, moment)
        if isinstance(oracle, PenalisedOracle):  # no sample has a part in it
            pull = oracle.pull(moment.weights)
            gradient = {name: leaf + getattr(pull, name) for name, leaf in gradient.items()}
        moves, state = self._moves(layers, gradient, moment.carry.state, size)
        moved = {name: leaf + getattr(self.rates, name) * moves[name] for name, leaf in layers.items()}
        weights = Weights(moved.get("first", moment.weights.first), moved.get("second", moment.weights.second))
        carry = moment.carry._replace(state=state)
        return Taken(Moment(weights, *ticked(self.schedule, moment, size), carry), jnp.array(True), jnp.array(False))

    def _layers(self, weights: Weights) -> Layers:
        return {name: getattr(weights, name) for name in ("first", "second") if name in self.trains}

    def _gradient(self, oracle: Population, moment: Moment) -> Layers:
        """The gradient on a fresh batch."""
        supply, weights = moment.carry.supply, moment.weights
        place = moment.clock.astype(int) % self.ahead
        inputs, labels, outside = jax.tree.map(lambda leaf: leaf[place], supply[:3])
        errors, along, slope = self._sample(oracle, weights, inputs, labels)
        gradient = {}
        if "first" in self.trains:
            first = (errors @ inputs.T).astype(float)
            if outside is not None:
                first = first + factor(errors).astype(float) @ outside
            if along is not None:
                first = first + along[:, None].astype(float) * weights.first
            gradient["first"] = first / self.batch
        if "second" in self.trains:
            gradient["second"] = slope / self.batch
        return gradient

    def _sample(
        self, oracle: Population, weights: Weights, inputs: Array, labels: Array | None
    ) -> tuple[Array, Array | None, Array]:
        """The coefficients (row, sample) of the samples in the incoming gradient, those of the rows themselves, and the
        outgoing gradient."""
        weights, target = jax.tree.map(self._cast, (weights, oracle.target))
        student, teacher = oracle.sides
        # Samples along the last axis: sums over units are then sums of long rows.
        seen = jnp.concatenate([weights.first, target.first]) @ inputs
        pre, taught = seen[: len(weights.first)], seen[len(weights.first) :]
        hidden = student(weights.first, pre)
        residual = weights.second.T @ hidden - target.second.T @ teacher(target.first, taught)
        if self.noise is not None:
            assert labels is not None
            residual = residual - self._cast(self.noise) * labels
        errors, along = student.back(weights.first, pre, weights.second @ residual)
        return errors, along, (hidden @ residual.T).astype(float)

    def _cast(self, leaf: Array) -> Array:
        # One operand in double precision would draw all that follows into it.
        return leaf.astype(self.precision)

    def _moves(self, layers: Layers, gradient: Layers, state: Any, size: Array) -> tuple[Layers, Any]:
        """What is added to the weights (before the rates of the layers), and the new state of the optimiser."""
        if self.optimiser is None:
            return {name: -size * leaf for name, leaf in gradient.items()}, None
        return updated(self.optimiser, gradient, state, layers)

    def _turned(self, moment: Moment) -> Moment:
        """Incoming weights and vectors of the optimiser's state together, turned so that the spare columns are empty,
        if all of them have been used."""
        leaves, structure = jax.tree.flatten(moment.carry.state)
        marks = () if self.optimiser is None else vectors(self.optimiser, self._layers(moment.weights))
        places = [place for place, mark in enumerate(marks) if mark]
        rows = jnp.concatenate([moment.weights.first, *(leaves[place] for place in places)])
        rank, _ = self._spare(moment.weights)
        rows = jnp.where(moment.clock % self.ahead == 0, turned(rows, self.ahead * rank), rows)
        first, *kept = jnp.split(rows, 1 + len(places))
        for place, leaf in zip(places, kept, strict=True):
            leaves[place] = leaf
        carry = moment.carry._replace(state=jax.tree.unflatten(structure, leaves))
        return moment._replace(weights=Weights(first, moment.weights.second), carry=carry)


LONG = 32  # samples per unit from which on the Gram matrix is quicker than QR: ten times at 4096 samples of 50 units
RIDGE = 1e-13  # of a Gram matrix with ones on its diagonal: more than its rounding errors


def factor(errors: Float[Array, "unit sample"]) -> Float[Array, "unit rank"]:
    """`F` with `F F^T = C C^T`, of the fewer columns; right also for dead and for equal units.

    By QR or, where that is slower, from the Gram matrix, which leaves 1e-8 of the noise where there should be none; for
    samples in single precision, which leave 1e-7 by themselves, by Cholesky with a ridge that leaves 3e-7. If units are
    dependent on a batch, rounding decides which of the factors is found; the law is the same with all.
    """
    units, samples = errors.shape
    if samples <= units:
        return errors
    if errors.dtype == jnp.float32:
        return _cholesky(errors.astype(float))
    if samples <= LONG * units:
        triangle: Array = jnp.linalg.qr(errors.T, mode="r")
        return triangle.T
    found = jnp.linalg.eigh(errors @ errors.T)
    axes: Array = found.eigenvectors
    return axes * jnp.sqrt(jnp.maximum(found.eigenvalues, 0.0))[None]


def _cholesky(errors: Float[Array, "unit sample"]) -> Float[Array, "unit unit"]:
    gram = errors @ errors.T
    sizes = jnp.sqrt(jnp.diagonal(gram))
    scales = 1 / jnp.where(sizes > 0, sizes, 1.0)
    ridge = RIDGE * jnp.eye(len(gram))
    lower: Array = jnp.linalg.cholesky(scales[:, None] * gram * scales[None] + ridge, symmetrize_input=False)
    return sizes[:, None] * lower


def turned(rows: Float[Array, "row column"], spare: int) -> Float[Array, "row column"]:
    """Rows with nothing in the last columns, by a rotation that leaves the teachers, who have the first, in place."""
    teachers = rows.shape[1] - spare - len(rows)
    rest = jnp.linalg.qr(rows[:, teachers:].T, mode="r").T
    return jnp.pad(jnp.concatenate([rows[:, :teachers], rest], axis=1), ((0, 0), (0, spare)))


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
