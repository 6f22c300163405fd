"""Online SGD on the sphere, one sample at a time, exact in law at any input dimension.

A unit moves by `g (x - u w)`, `u = w.x`, and is divided by its new length. A sample enters through its projection on
the frame (teachers, and what units have outside their span) and through the length `l` of all else, a chi-square
variable: outside the frame it adds `g_i l` of one new direction to unit i. A rotation brings the units back to as many
directions as there are units. For one unit that is the length of two parts, and all is a chain of a few numbers.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt64
from numpy.typing import NDArray

from tutelage._checks import one_of, put, real, whole
from tutelage._errors import BadInput
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics, AbstractStep, Moment, Prepared, Taken
from tutelage.dynamics.neuron_sgd import chi_squares
from tutelage.dynamics.random import MAX_STEPS, keys_of, normal_rows
from tutelage.dynamics.record import Record
from tutelage.dynamics.room import columns_of, of_network
from tutelage.dynamics.staging import begun, unstacked
from tutelage.oracle.base import AbstractOracle, Population
from tutelage.oracle.population import population_oracle
from tutelage.problem.frame import settle
from tutelage.problem.networks import TwoLayer, Weights, host_weights
from tutelage.problem.problem import AbstractProblem, Problem, Start, of_kind, refuse_offsets

_PLANE = 0  # what random numbers are for; `chi_squares` takes the last two purposes
BLOCK = 64  # samples of a step of the loop; results do not depend on it


@dataclass(frozen=True)
class Sphere(AbstractDynamics):
    """Online SGD with incoming weights of length 1: a step along the sphere's tangent, then division by the length.

    - `samples`: how many, one for each update; `step`: what multiplies the gradient. Time is in samples.
    - `loss`: "correlation", `-y f(x)`, or "squared", `1/2 (f(x) - y)^2`. Labels have the problem's noise. What is
      recorded as `loss` is the exact population loss `1/2 E(f - f*)^2` along the way.

    The student must have rows of length 1, such as `tt.SphereRows(1.0)`, and train its first layer only. Coordinates
    outside the teachers turn: compare inner products. Events are looked for after every 64 samples, and then found to
    the sample.

    ```python
    >>> import tutelage as tt
    >>> problem = tt.Problem(
    ...     inputs=tt.Gaussian(1000),
    ...     teacher=tt.TwoLayer("he3", first=[[1.0]]),
    ...     student=tt.TwoLayer("he3", first=tt.SphereRows(1.0), second="ones", width=1, trains=("first",)),
    ... )
    >>> run = tt.run(problem, tt.Sphere(samples=1000, step=1e-5), seeds=4)
    >>> bool(abs(run.last("first_norm") - 1).max() < 1e-12)
    True

    ```
    """

    name: ClassVar[str] = "sphere"
    revision: ClassVar[int] = REVISIONS["sphere"]
    still: ClassVar[float] = 0.0

    samples: int
    step: float
    loss: Literal["correlation", "squared"] = "correlation"

    def __post_init__(self) -> None:
        put(
            self, samples=whole("samples", self.samples, least=1, most=MAX_STEPS - 1),
            step=real("step", self.step, above=0),
        )  # fmt: skip
        one_of("loss", self.loss, ["correlation", "squared"])

    def room(self, problem: AbstractProblem, seeds: int) -> dict[str, float]:
        problem = of_kind(problem, Problem, self.name)
        return of_network(problem, seeds, columns_of(problem) + BLOCK)

    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        problem = of_kind(problem, Problem, self.name)
        _check_student(problem)
        starts = [problem.drawn(seed) for seed in seeds]
        if start is not None:
            starts = [Start(start.teacher, student) for student in unstacked(start.student, len(seeds))]
        begin = begun([_settled(problem, each) for each in starts])
        columns = begin.student.first.shape[-1]
        step = SphereStep(
            jnp.asarray(float(self.step)),
            jnp.asarray(float(problem.noise)) if problem.noise else None,
            jnp.asarray(float(problem.inputs.dim - columns)) if problem.inputs.dim > columns else None,
            self.loss,
            problem.student.rows == 1,
        )
        return Prepared(step, population_oracle(problem, begin.teacher), False, *begin, keys_of(seeds))

    def stops(self, record: Record) -> NDArray[np.float64]:
        return record.updates(int(self.samples))

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        return {"samples": int(self.samples), "step": float(self.step), "objective": self.loss}


def _check_student(problem: Problem) -> None:
    student = problem.student
    if not isinstance(student, TwoLayer) or student.tied:
        raise BadInput("sphere: the student is a mixture or tied, but a plain tt.TwoLayer was expected.")
    refuse_offsets(problem, "sphere")
    if student.layers != ("first",):
        raise BadInput(
            f"sphere: the student trains {student.layers}, but on the sphere only incoming weights move; "
            "pass trains=('first',)."
        )


def _settled(problem: Problem, start: Start) -> Start:
    """The start with the teachers' directions first, then one column for each unit."""
    rows = np.asarray(start.student.first)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if np.max(np.abs(norms - 1)) > 1e-9:
        worst = float(norms.flat[np.argmax(np.abs(norms - 1))])
        raise BadInput(
            f"sphere: a unit has the norm {worst:.6g}, but rows of length 1 were expected, such as tt.SphereRows(1.0)."
        )
    teacher, student = settle(problem.inputs.dim, np.asarray(start.teacher.first), rows / norms)
    return Start(host_weights(teacher, start.teacher.second), host_weights(student, start.student.second))


class SphereStep(AbstractStep):
    """Up to `BLOCK` samples.

    - `size`: the step size; `noise`: of the labels, None for none.
    - `outside`: how many dimensions are outside the frame; None if it has all that there are.
    - `single`: whether there is one unit, for which nothing need be factorised.
    """

    size: Float[Array, ""]
    noise: Float[Array, ""] | None
    outside: Float[Array, ""] | None
    loss: Literal["correlation", "squared"] = eqx.field(static=True)
    single: bool = eqx.field(static=True)

    def begin(self, oracle: AbstractOracle, weights: Weights) -> Moment:
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), jnp.zeros((), jnp.uint64))

    def seeded(self, moment: Moment, key: UInt64[Array, ""]) -> Moment:
        return moment._replace(carry=key)

    @property
    def factorises(self) -> bool:
        return not self.single and self.outside is not None

    @property
    def tells_strain(self) -> bool:
        return True  # never: it asks the oracle for no gradient

    def within(self, oracle: AbstractOracle, moment: Moment, clock: Float[Array, ""]) -> Moment:
        return self.step(oracle, moment, clock)[0]

    def step(self, oracle: AbstractOracle, moment: Moment, limit: Float[Array, ""]) -> Taken:
        assert isinstance(oracle, Population)
        first, second = moment.weights.first, moment.weights.second
        units, columns = first.shape
        outputs = second.shape[1]
        count = jnp.clip(jnp.ceil(limit - moment.clock), 0, BLOCK)
        numbers = moment.clock.astype(jnp.uint64) + jnp.arange(BLOCK, dtype=jnp.uint64)
        noisy = 0 if self.noise is None else outputs
        drawn = normal_rows(moment.carry, numbers, _PLANE, columns + noisy)
        z, errors = drawn[:, :columns], drawn[:, columns:]
        far = jnp.zeros(BLOCK) if self.outside is None else chi_squares(moment.carry, numbers, 1, self.outside)[:, 0]
        taught = oracle.sides[1](oracle.target.first, oracle.target.first @ z.T).T @ oracle.target.second
        labels = taught if self.noise is None else taught + self.noise * errors
        # A sample beyond the last has no effect.
        sizes = jnp.where(jnp.arange(float(BLOCK)) < count, self.size, 0.0)
        # Where there are dimensions outside the frame, its last columns are one for each unit.
        unit, teachers = oracle.sides[0], columns - units

        def sample(first: Array, given: tuple[Array, ...]) -> tuple[Array, None]:
            x, length, label, size = given
            u = first @ x
            pull = label
            if self.loss == "squared":
                pull = pull - unit(first, u[:, None])[:, 0] @ second
            g = size * unit.back(first, u[:, None], (second @ pull)[:, None])[0][:, 0]
            moved = first + g[:, None] * (x[None] - u[:, None] * first)
            new = jnp.sqrt(1 + g**2 * (jnp.sum(x**2) + length - u**2))
            return self._turned(moved, g * jnp.sqrt(length), teachers) / new[:, None], None

        first = jax.lax.scan(sample, first, (z, far, labels, sizes))[0]
        clock = moment.clock + count
        return Taken(
            Moment(Weights(first, second), clock, clock, moment.carry), count > 0, jnp.array(False), jnp.array(False)
        )

    def _turned(
        self, rows: Float[Array, "unit column"], new: Float[Array, " unit"], teachers: int
    ) -> Float[Array, "unit column"]:
        """The rows, of which each has so much of one new direction, in the columns that there were."""
        if self.outside is None:
            return rows
        inside, rest = rows[:, :teachers], jnp.concatenate([rows[:, teachers:], new[:, None]], axis=1)
        if self.single:
            return jnp.concatenate([inside, jnp.linalg.norm(rest, axis=1, keepdims=True)], axis=1)
        return jnp.concatenate([inside, jnp.linalg.qr(rest.T, mode="r").T], axis=1)
