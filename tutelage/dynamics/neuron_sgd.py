"""Single neurons on the sphere under single-sample SGD, exact in law, at a cost that does not know the dimension.

With the correlation loss a neuron moves by `g (x - u w)`, `u = w.x`, `g = step y a s'(u + b)`, and is divided by its
new length. A sample enters through its part in the frame's span, its part along what is left of `w`, and the length of
all else, a chi-square variable. So the overlaps `o` with an orthonormal basis of the span and the length `r` of the
rest are a Markov chain. Neurons here are independent; those of one expert see the same samples, and are not.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt64
from numpy.typing import ArrayLike, NDArray

from tutelage._errors import BadInput
from tutelage.dynamics.online import chi
from tutelage.dynamics.random import MAX_STEPS, key_of, normal_rows, uniforms
from tutelage.problem.clusters import Clustered
from tutelage.problem.units import Units

Matrix = NDArray[np.float64]

# What the random numbers of one sample are for; `chi` takes a purpose of its own, the last.
_PLANE, _CLUSTER, _FAR = 0, 1, 2
_TRIES = 2
BLOCK = 64  # samples that are drawn together; results do not depend on it
_NEVER = np.inf


class Walk(NamedTuple):
    """Where neurons have been.

    - `times`: numbers of samples seen; `overlaps`: with the frame's rows, at these times; `beyond`: the length `r` of
      the part of the neuron outside the frame's span.
    - `hits`: the number of samples after which an overlap first was at least a level in size; infinite if never.
    """

    times: Int[np.ndarray, " time"]
    overlaps: Float[np.ndarray, "time unit row"]
    beyond: Float[np.ndarray, "time unit"]
    hits: Float[np.ndarray, "level unit row"]


def walk(
    problem: Clustered,
    units: Units,
    overlaps: ArrayLike,
    *,
    step: float,
    samples: int,
    seed: int = 0,
    records: int = 1,
    levels: tuple[float, ...] = (0.5,),
    until: tuple[int, ...] = (),
    served: ArrayLike | None = None,
    beyond: ArrayLike | None = None,
    first: int = 0,
) -> Walk:
    """Independent neurons through `samples` samples each, in law as single-sample spherical SGD in `dim` dimensions.

    - `units`: of one flat axis; `overlaps` (unit, row): where they start.
    - `step`: what multiplies `y a s'(u + b) (x - u w)`. `records`: how often the state is recorded after the start.
    - `until`: rows of the frame; stop once every neuron has passed the last of `levels` in one of them.
    - `served`: how probable the clusters are among the samples that a neuron receives; those of the problem if None.
    - `beyond`, `first`: to go on from the end of another walk: its last `beyond`, and how many samples it had.

    Random numbers are functions of the seed, the sample and the neuron's place: a walk may be cut anywhere.

    ```python
    >>> import jax.numpy as jnp, numpy as np, tutelage as tt
    >>> from tutelage.dynamics.neuron_sgd import walk
    >>> from tutelage.problem.clusters import antipodal
    >>> tasks = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
    >>> problem = tt.Clustered(antipodal(10**9, 3.0), tasks)
    >>> unit = tt.Units(-jnp.ones(1), jnp.zeros(1), kind=tt.activation("relu"))
    >>> found = walk(problem, unit, [[0.9, 0.0, 0.0, 0.0, 0.0]], step=1e-10, samples=100)
    >>> bool(abs(np.sum(found.overlaps[-1, :, :4] ** 2, axis=1) + found.beyond[-1] ** 2 - 1).max() < 1e-13)
    True

    ```
    """
    setup = _Setup.of(problem, units, float(step), levels, until, served)
    if not 0 <= first <= first + samples < MAX_STEPS or records < 1:
        raise BadInput(f"A walk of {samples} samples from {first} on was asked for; the limit is {MAX_STEPS} samples.")
    state = _start(setup, np.asarray(overlaps, float), beyond, seed)._replace(time=jnp.asarray(first))
    ends = first + (np.arange(records + 1) * samples) // records
    states = [state]
    for end in ends[1:]:
        states.append(_advance(setup, states[-1], jnp.asarray(end)))
    rows = np.asarray(setup.rows)
    seen = np.stack([rows @ np.asarray(each.inside) for each in states])
    return Walk(
        np.array([int(each.time) for each in states]),
        seen.transpose(0, 2, 1),
        np.stack([np.asarray(each.beyond) for each in states]),
        np.asarray(states[-1].hits),
    )


class _State(NamedTuple):
    """`inside` are overlaps with the orthonormal basis."""

    inside: Float[Array, "axis unit"]
    beyond: Float[Array, " unit"]
    hits: Float[Array, "level unit row"]
    key: UInt64[Array, ""]
    time: Int[Array, ""]


class _Setup(eqx.Module):
    """All that a sample's law needs, in the orthonormal basis: `rows` are those of the frame in it."""

    rows: Float[Array, "row axis"]
    centres: Float[Array, "cluster axis"]
    ends: Float[Array, " cluster"]
    local: Float[Array, "cluster order"]
    shared: Float[Array, "cluster order"]
    noise: Float[Array, ""]
    outside: Float[Array, ""]
    step: Float[Array, ""]
    levels: Float[Array, " level"]
    units: Units
    until: tuple[int, ...] = eqx.field(static=True)
    block: int = eqx.field(static=True)

    @classmethod
    def of(
        cls,
        problem: Clustered,
        units: Units,
        step: float,
        levels: tuple[float, ...],
        until: tuple[int, ...],
        served: ArrayLike | None,
    ) -> "_Setup":
        if units.outgoing.ndim != 1:
            raise BadInput(f"walk: units have the shape {units.outgoing.shape}, but one flat axis was expected.")
        inputs, teacher = problem.inputs, problem.teacher
        weights = inputs.weights if served is None else np.asarray(served, float)
        if weights.shape != (inputs.count,) or not (np.all(weights >= 0) and weights.sum() > 0):
            raise BadInput(f"walk: served is {weights}, but {inputs.count} numbers from 0 up were expected, not all 0.")
        rows = in_basis(problem.frame)
        return cls(
            jnp.asarray(rows),
            jnp.asarray(inputs.radius * rows[inputs.count + 1 :]),
            jnp.asarray(np.cumsum(weights / weights.sum())),
            jnp.asarray(teacher.local),
            jnp.asarray(np.asarray(teacher.interference)[:, None] * np.asarray(teacher.shared)),
            jnp.asarray(problem.noise),
            jnp.asarray(float(inputs.dim - rows.shape[1])),
            jnp.asarray(step),
            jnp.asarray(np.asarray(levels, float)),
            units,
            tuple(until),
            BLOCK,
        )


def in_basis(frame: Matrix) -> Matrix:
    """The rows of a frame in an orthonormal basis of their span, by Gram-Schmidt: axes stay axes.

    ```python
    >>> import numpy as np
    >>> from tutelage.dynamics.neuron_sgd import in_basis
    >>> in_basis(np.array([[1.0, 0.0], [-1.0, 0.0]])).tolist()
    [[1.0], [-1.0]]

    ```
    """
    basis: list[Matrix] = []
    for row in frame:
        rest = row
        for _ in range(2):  # once more, for what rounding has left
            rest = rest - sum((np.dot(rest, axis) * axis for axis in basis), np.zeros_like(row))
        if np.linalg.norm(rest) > 1e-9 * np.linalg.norm(row):
            basis.append(rest / np.linalg.norm(rest))
    return frame @ np.stack(basis).T


def _start(setup: _Setup, overlaps: Matrix, beyond: ArrayLike | None, seed: int) -> _State:
    rows = np.asarray(setup.rows)
    count = setup.units.outgoing.size
    if overlaps.shape != (count, len(rows)):
        raise BadInput(f"walk: overlaps have the shape {overlaps.shape}, but {(count, len(rows))} was expected.")
    inside = np.linalg.lstsq(rows, overlaps.T, rcond=None)[0]
    if np.max(np.abs(rows @ inside - overlaps.T)) > 1e-9:
        raise BadInput(
            "walk: no neuron has these overlaps with the frame, whose rows are dependent; see problem.frame."
        )
    square = np.sum(inside**2, axis=0)
    if np.max(square) > 1 + 1e-9 or (setup.outside == 0 and np.min(square) < 1 - 1e-9):
        raise BadInput(
            f"walk: the squares of overlaps add up to {square.max():.6g}; neurons of length 1 were expected."
        )
    rest = np.sqrt(np.maximum(1 - square, 0.0)) if beyond is None else np.asarray(beyond, float)
    if setup.outside == 0:
        inside, rest = inside / np.sqrt(square), np.zeros(count)
    key = jnp.asarray(key_of(seed))
    shape = (len(setup.levels), count, len(rows))
    state = _State(jnp.asarray(inside), jnp.asarray(rest), jnp.full(shape, _NEVER), key, jnp.asarray(0))
    passed = jnp.abs(overlaps) >= setup.levels[:, None, None]
    return state._replace(hits=jnp.where(passed, 0.0, _NEVER))


@eqx.filter_jit
def _advance(setup: _Setup, state: _State, end: Array) -> _State:
    """On to the sample before number `end`."""

    def more(state: _State) -> Array:
        return (state.time < end) & ~_finished(setup, state.hits)

    def block(state: _State) -> _State:
        return _block(setup, state, end)

    return jax.lax.while_loop(more, block, state)


def _finished(setup: _Setup, hits: Array) -> Array:
    if not setup.until:
        return jnp.asarray(False)
    return jnp.all(jnp.any(jnp.isfinite(hits[-1][:, jnp.array(setup.until)]), axis=1))


class _Draws(NamedTuple):
    """Of a block: sample parts in the basis, along the rest of the neuron, label, and the squared length of all."""

    plane: Float[Array, "sample axis unit"]
    along: Float[Array, "sample unit"]
    label: Float[Array, "sample unit"]
    others: Float[Array, "sample unit"]


def _draw(setup: _Setup, key: Array, numbers: Array) -> _Draws:
    axes, units = setup.rows.shape[1], setup.units.outgoing.size
    plain = normal_rows(key, numbers, _PLANE, (axes + 2) * units).reshape(-1, axes + 2, units)
    drawn = uniforms(key, numbers[:, None], _CLUSTER, jnp.arange(units, dtype=jnp.uint64))
    cluster = jnp.searchsorted(setup.ends[:-1], drawn, side="right")
    plane = plain[:, :axes] + jnp.moveaxis(setup.centres[cluster], -1, 1)
    # Without any direction outside the span there is nothing along the rest.
    along = jnp.where(setup.outside > 0, plain[:, axes], 0.0)
    label = _labels(setup, plane, cluster) + setup.noise * plain[:, axes + 1]
    return _Draws(plane, along, label, _far(key, numbers, units, jnp.maximum(setup.outside - 1, 0.0)))


def _far(key: Array, numbers: Array, units: int, degrees: Array) -> Float[Array, "sample unit"]:
    """Chi-square variables by the method of `chi`: two tries for all together, which is three times as quick.

    Where both are refused, which is rare unless there are few degrees of freedom, `chi` itself is asked.
    """
    usual = degrees >= 2
    centre = jnp.maximum(degrees, 2.0) / 2 - 1 / 3
    x = normal_rows(key, numbers, _FAR, _TRIES * units).reshape(-1, _TRIES, units)
    place = jnp.arange(_TRIES * units, dtype=jnp.uint64).reshape(_TRIES, units) + np.uint64(1 << 31)
    u = uniforms(key, numbers[:, None, None], _FAR, place)
    cube = (1 + x / jnp.sqrt(9 * centre)) ** 3
    bound = 0.5 * x**2 + centre * (1 - cube + jnp.log(jnp.maximum(cube, 1e-300)))
    good = usual & (cube > 0) & (jnp.log(u) < bound)
    kept = 2 * centre * jnp.where(good[:, 0], cube[:, 0], cube[:, 1])
    found = jnp.any(good, axis=1)

    def asked() -> Array:
        return jax.vmap(chi, (None, 0, None))(key, numbers, jnp.full(units, degrees)) ** 2

    return jnp.where(found, kept, jax.lax.cond(jnp.all(found), lambda: kept, asked))


def _labels(setup: _Setup, plane: Array, cluster: Array) -> Array:
    tasks = jnp.einsum("ra,san->rsn", setup.rows[: len(setup.ends) + 1], plane)
    own = sum(jnp.where(cluster == c, _series(setup.local[c], tasks[c]), 0.0) for c in range(len(setup.ends)))
    return own + _series(jnp.moveaxis(setup.shared[cluster], -1, 0), tasks[-1])


def _series(coefficients: Array, z: Array) -> Array:
    """`sum_i coefficients[i] h_i(z)`."""
    before, here, total = jnp.zeros_like(z), jnp.ones_like(z), jnp.zeros_like(z)
    for i in range(len(coefficients)):
        total = total + coefficients[i] * here
        before, here = here, (z * here - np.sqrt(i) * before) / np.sqrt(i + 1)
    return total


def _block(setup: _Setup, state: _State, end: Array) -> _State:
    numbers = state.time + jnp.arange(setup.block)
    draws = _draw(setup, state.key, numbers.astype(jnp.uint64))
    size = setup.step * setup.units.outgoing * jnp.where((numbers < end)[:, None], draws.label, 0.0)

    def sample(carry: tuple[Array, Array], given: tuple[Array, ...]) -> tuple[tuple[Array, Array], Array]:
        o, r = carry
        x, s, size, others = given
        u = jnp.sum(o * x, axis=0) + r * s
        g = size * setup.units.slope(u)
        shrink = 1 - g * u
        length = jnp.sqrt(1 + g**2 * (jnp.sum(x**2, axis=0) + s**2 + others - u**2))
        o = (shrink * o + g * x) / length
        # sqrt(1 - |o|^2) would cancel near full alignment.
        r = jnp.sqrt((shrink * r + g * s) ** 2 + g**2 * others) / length
        return (o, r), o

    given = (draws.plane, draws.along, size, draws.others)
    (inside, beyond), path = jax.lax.scan(sample, (state.inside, state.beyond), given)
    hits = _hits(setup, state, path)
    return state._replace(inside=inside, beyond=beyond, hits=hits, time=jnp.minimum(state.time + setup.block, end))


def _hits(setup: _Setup, state: _State, path: Float[Array, "sample axis unit"]) -> Array:
    seen = jnp.abs(jnp.einsum("ra,san->snr", setup.rows, path))
    passed = seen[:, None] >= setup.levels[:, None, None]
    # A sample beyond the end has no effect, so that what is passed there was passed before.
    when = jnp.where(jnp.any(passed, axis=0), state.time + 1.0 + jnp.argmax(passed, axis=0), _NEVER)
    return jnp.minimum(state.hits, when)
