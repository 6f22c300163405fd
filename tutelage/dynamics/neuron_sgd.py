"""Single neurons on the sphere under single-sample SGD, exact in law, at a cost that does not know the dimension.

With the correlation loss a neuron moves by `g (x - u w)`, `u = w.x`, `g = step y a s'(u + b)`, and is divided by its
new length. A sample enters through its part in the frame's span, its part along what is left of `w`, and the length of
all else, a chi-square variable. So the overlaps `o` with an orthonormal basis of the span and the length `r` of the
rest are a Markov chain. Neurons here are independent; those of one expert see the same samples, and are not.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt64
from numpy.typing import NDArray

from tutelage._checks import put, real, table, whole
from tutelage._errors import BadInput
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics, AbstractStep, Moment, Prepared, Taken
from tutelage.dynamics.neurons import Neurons, begun, in_basis, inside
from tutelage.dynamics.online import chi
from tutelage.dynamics.random import MAX_STEPS, keys_of, normal_rows, uniforms
from tutelage.dynamics.record import Record
from tutelage.dynamics.room import of_neurons
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.clustered import ClusterOracle
from tutelage.problem.clusters import Clustered
from tutelage.problem.problem import AbstractProblem, Start, of_kind
from tutelage.problem.units import Units

# What the random numbers of one sample are for; `chi` takes a purpose of its own, the last.
_PLANE, _CLUSTER, _FAR = 0, 1, 2
_TRIES = 2
BLOCK = 64  # samples that are drawn together; results do not depend on it
NEVER = MAX_STEPS
"""The number of the sample of what has not happened."""


class WalkedNeurons(eqx.Module):
    """Neurons as their overlaps with an orthonormal basis of the frame's span, and where they have been.

    - `beyond`: the length of the part outside that span; `served`: how probable the clusters are for each expert.
    - `hits`: the number of samples after which an overlap with the frame first was at least a level in size.
    - `seen`: the number of samples so far. A further stage goes on with the next one.
    """

    inside: Float[Array, "*seed axis expert unit"]
    beyond: Float[Array, "*seed expert unit"]
    units: Units
    served: Float[Array, "*seed expert cluster"]
    hits: Int[Array, "*seed level expert unit row"]
    seen: Int[Array, "*seed"]


@dataclass(frozen=True)
class NeuronSgd(AbstractDynamics):
    """Independent neurons through `samples` samples each, in law as single-sample spherical SGD in `dim` dimensions.

    - `step`: what multiplies `y a s'(u + b) (x - u w)`.
    - `levels`: sizes of overlaps whose first passages are noted, as `hit_time`.
    - `until`: rows of the frame; once every neuron has passed the last of `levels` in one of them, nothing more is
      drawn, and time stands still.

    Neurons are those of the problem's student, or of `start=tt.neurons_at(...)`. Random numbers are functions of the
    seed, the sample and the neuron's place: a run may be cut anywhere.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.problem.clusters import antipodal
    >>> tasks = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
    >>> problem = tt.Clustered(antipodal(10**9, 3.0), tasks).taught_to(tt.Experts(1, 2))
    >>> run = tt.run(problem, tt.NeuronSgd(samples=100, step=1e-10))
    >>> squares = (run.overlap[..., :4] ** 2).sum("row") + run.beyond**2
    >>> bool(abs(squares - 1).max() < 1e-13)
    True

    ```
    """

    name: ClassVar[str] = "neuron_sgd"
    revision: ClassVar[int] = REVISIONS["neuron_sgd"]

    samples: int
    step: float
    levels: tuple[float, ...] = (0.5,)
    until: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        levels = table("neuron_sgd: levels", self.levels, "a tuple of sizes of overlaps", axes=(1,))
        until = table("neuron_sgd: until", self.until, "a tuple of rows of the frame", axes=(1,))
        put(
            self, step=real("neuron_sgd: step", self.step, above=0), levels=tuple(levels.tolist()),
            samples=whole("neuron_sgd: samples", self.samples, least=1, most=MAX_STEPS - 1),
            until=tuple(whole("neuron_sgd: a row in until", row) for row in until),
        )  # fmt: skip

    def room(self, problem: AbstractProblem, seeds: int) -> dict[str, float]:
        return of_neurons(of_kind(problem, Clustered, self.name), seeds, 1 + len(self.levels))

    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        problem = of_kind(problem, Clustered, self.name)
        rows, inputs, teacher = in_basis(problem.frame), problem.inputs, problem.teacher
        levels, room = jnp.asarray(self.levels, float), inputs.dim - rows.shape[1]
        if any(row >= len(rows) for row in self.until):
            raise BadInput(f"neuron_sgd: until is {self.until}, but the frame has the rows 0 to {len(rows) - 1}.")
        weights = start.student if start is not None else None
        if not isinstance(weights, WalkedNeurons) or weights.hits.shape[1] != len(levels):
            weights = _walked(problem, begun(problem, seeds, start), levels, room)
        if int(np.max(weights.seen)) + self.samples >= MAX_STEPS:
            raise BadInput(f"neuron_sgd: {self.samples} samples were asked for; the limit is {MAX_STEPS} in all.")
        step = NeuronSgdStep(
            jnp.asarray(inputs.radius * rows[inputs.count + 1 :]),
            jnp.asarray(teacher.local),
            jnp.asarray(np.asarray(teacher.interference)[:, None] * np.asarray(teacher.shared)),
            jnp.asarray(rows),
            jnp.asarray(float(problem.noise)),
            jnp.asarray(float(room)),
            jnp.asarray(float(self.step)),
            levels,
            tuple(self.until),
            BLOCK,
        )
        return Prepared(step, ClusterOracle(problem), False, step.rows, weights, keys_of(seeds), scored=False)

    def stops(self, record: Record) -> NDArray[np.float64]:
        return record.updates(int(self.samples))

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        return {"samples": self.samples, "step": self.step, "levels": list(self.levels), "until": list(self.until)}


def _walked(problem: Clustered, neurons: Neurons, levels: Float[Array, " level"], room: int) -> WalkedNeurons:
    """Neurons before their first sample; with no `room` outside the frame's span they must be within it."""
    if not np.all(jnp.sum(neurons.served, axis=-1) > 0):
        raise BadInput("neuron_sgd: an expert is served no cluster at all, so that there is nothing to draw for it.")
    place = inside(problem, neurons)
    square = np.sum(place**2, axis=0)
    if room == 0 and np.min(square) < 1 - 1e-9:
        raise BadInput(
            f"neuron_sgd: the frame spans all dimensions, and the squares of overlaps add up to {square.min():.6g}; "
            "neurons of length 1 were expected."
        )
    beyond = np.sqrt(np.maximum(1 - square, 0.0)) if room else np.zeros(square.shape)
    hits = jnp.where(jnp.abs(neurons.overlaps)[:, None] >= levels[None, :, None, None, None], 0, NEVER)
    start = np.moveaxis(place if room else place / np.sqrt(square), 1, 0)
    seen = jnp.zeros(len(start), int)
    return WalkedNeurons(jnp.asarray(start), jnp.asarray(beyond), neurons.units, neurons.served, hits, seen)


class _Draws(NamedTuple):
    """Of a block: sample parts in the basis, along the rest of the neuron, label, and the squared length of all."""

    plane: Float[Array, "sample axis neuron"]
    along: Float[Array, "sample neuron"]
    label: Float[Array, "sample neuron"]
    others: Float[Array, "sample neuron"]


class NeuronSgdStep(AbstractStep):
    """Up to `block` samples. All that their law needs is in the orthonormal basis: `rows` are those of the frame."""

    centres: Float[Array, "cluster axis"]
    local: Float[Array, "cluster order"]
    shared: Float[Array, "cluster order"]
    rows: Float[Array, "row axis"]
    noise: Float[Array, ""]
    outside: Float[Array, ""]
    size: Float[Array, ""]
    levels: Float[Array, " level"]
    until: tuple[int, ...] = eqx.field(static=True)
    block: int = eqx.field(static=True)

    @property
    def apart(self) -> bool:
        """In a batch a seed that is refused twice in `chi_squares` makes all ask again."""
        return True

    def begin(self, oracle: AbstractOracle, weights: WalkedNeurons) -> Moment:
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), jnp.zeros((), jnp.uint64))

    def seeded(self, moment: Moment, key: UInt64[Array, ""]) -> Moment:
        return moment._replace(carry=key)

    def within(self, oracle: AbstractOracle, moment: Moment, clock: Float[Array, ""]) -> Moment:
        return self.step(oracle, moment, clock)[0]

    def step(self, oracle: AbstractOracle, moment: Moment, limit: Float[Array, ""]) -> Taken:
        old = moment.weights
        # Neurons of all experts along one axis: a sixth quicker.
        units = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), old.units)
        begin = old.inside.reshape(len(old.inside), -1), old.beyond.ravel()
        count = jnp.where(self._ready(old.hits), 0, jnp.clip(jnp.ceil(limit - moment.clock), 0, self.block))
        numbers, seen = old.seen + jnp.arange(self.block), old.seen + count.astype(old.seen.dtype)
        draws = self._draw(old, moment.carry, numbers.astype(jnp.uint64))
        # A sample beyond the last has no effect.
        size = (self.size * units.outgoing)[None] * jnp.where((numbers < seen)[:, None], draws.label, 0.0)

        def sample(place: tuple[Array, Array], given: tuple[Array, ...]) -> tuple[tuple[Array, Array], Array]:
            o, r = place
            x, s, size, others = given
            u = jnp.sum(o * x, axis=0) + r * s
            g = size * units.slope(u)
            shrink = 1 - g * u
            length = jnp.sqrt(1 + g**2 * (jnp.sum(x**2, axis=0) + s**2 + others - u**2))
            o = (shrink[None] * o + g[None] * x) / length[None]
            # sqrt(1 - |o|^2) would cancel near full alignment.
            r = jnp.sqrt((shrink * r + g * s) ** 2 + g**2 * others) / length
            return (o, r), o

        given = (draws.plane, draws.along, size, draws.others)
        (place, beyond), path = jax.lax.scan(sample, begin, given)
        place, beyond = place.reshape(old.inside.shape), beyond.reshape(old.beyond.shape)
        weights = WalkedNeurons(place, beyond, old.units, old.served, self._hits(old, path), seen)
        clock, time = jnp.where(count > 0, moment.clock + count, limit), moment.time + count
        return Taken(Moment(weights, clock, time, moment.carry), count > 0, jnp.array(False))

    def _ready(self, hits: Int[Array, "level expert unit row"]) -> Bool[Array, ""]:
        """Whether every neuron has passed the last level in one of the rows that are waited for."""
        if not self.until:
            return jnp.array(False)
        return jnp.all(jnp.any(hits[-1][..., jnp.array(self.until)] < NEVER, axis=-1))

    def _hits(self, old: WalkedNeurons, path: Float[Array, "sample axis neuron"]) -> Array:
        size = jnp.abs(jnp.einsum("ra,san->snr", self.rows, path))
        passed = size[:, None] >= self.levels[None, :, None, None]
        # After the last sample nothing moves, so that what is passed there was passed before.
        when = jnp.where(jnp.any(passed, axis=0), old.seen + 1 + jnp.argmax(passed, axis=0), NEVER)
        return jnp.minimum(old.hits, when.reshape(old.hits.shape))

    def _draw(self, old: WalkedNeurons, key: Array, numbers: UInt64[Array, " sample"]) -> _Draws:
        axes, units = self.rows.shape[1], old.beyond.size
        plain = normal_rows(key, numbers, _PLANE, (axes + 2) * units).reshape(-1, axes + 2, units)
        drawn = uniforms(key, numbers[:, None], _CLUSTER, jnp.arange(units, dtype=jnp.uint64)[None])
        ends = jnp.cumsum(old.served / jnp.sum(old.served, axis=-1, keepdims=True), axis=-1)
        own = jnp.repeat(ends[:, :-1], old.beyond.shape[1], axis=0)
        cluster = jnp.sum(drawn[..., None] >= own[None], axis=-1)
        plane = plain[:, :axes] + jnp.moveaxis(self.centres[cluster], -1, 1)
        # Without any direction outside the span there is nothing along the rest.
        along = jnp.where(self.outside > 0, plain[:, axes], 0.0)
        label = self._labels(plane, cluster) + self.noise * plain[:, axes + 1]
        return _Draws(plane, along, label, chi_squares(key, numbers, units, jnp.maximum(self.outside - 1, 0.0)))

    def _labels(self, plane: Array, cluster: Array) -> Float[Array, "sample neuron"]:
        clusters = len(self.local)
        tasks = jnp.einsum("ra,san->rsn", self.rows[: clusters + 1], plane)
        own = sum(jnp.where(cluster == c, _series(self.local[c], tasks[c]), 0.0) for c in range(clusters))
        return own + _series(jnp.moveaxis(self.shared[cluster], -1, 0), tasks[-1])


def chi_squares(key: Array, numbers: Array, units: int, degrees: Array) -> Float[Array, "sample unit"]:
    """Chi-square variables by the method of `chi`: two tries for all together, which is three times as quick.

    Where both are refused, which is rare unless there are few degrees of freedom, `chi` itself is asked.
    """
    usual = degrees >= 2
    centre = jnp.maximum(degrees, 2.0) / 2 - 1 / 3
    x = normal_rows(key, numbers, _FAR, _TRIES * units).reshape(-1, _TRIES, units)
    place = jnp.arange(_TRIES * units, dtype=jnp.uint64).reshape(_TRIES, units) + np.uint64(1 << 31)
    u = uniforms(key, numbers[:, None, None], _FAR, place[None])
    cube = (1 + x / jnp.sqrt(9 * centre)) ** 3
    bound = 0.5 * x**2 + centre * (1 - cube + jnp.log(jnp.maximum(cube, 1e-300)))
    good = usual & (cube > 0) & (jnp.log(u) < bound)
    kept = 2 * centre * jnp.where(good[:, 0], cube[:, 0], cube[:, 1])
    found = jnp.any(good, axis=1)

    def asked(state: tuple[Array, Array]) -> tuple[Array, Array]:
        drawn = jax.vmap(chi, (None, 0, None))(key, numbers, jnp.full(units, degrees)) ** 2
        return jnp.array(True), jnp.where(found, kept, drawn)

    # A loop of one turn at most: of seeds in a batch, a condition would ask always.
    values: Array = jax.lax.while_loop(lambda state: ~state[0], asked, (jnp.all(found), kept))[1]
    return values


def _series(coefficients: Array, z: Array) -> Array:
    """`sum_i coefficients[i] h_i(z)`."""
    before, here, total = jnp.zeros_like(z), jnp.ones_like(z), jnp.zeros_like(z)
    for i in range(len(coefficients)):
        total = total + coefficients[i] * here
        before, here = here, (z * here - np.sqrt(i) * before) / np.sqrt(i + 1)
    return total
