"""Gradient flow of single units on the sphere, in their overlaps with the frame alone: exact for any dimension.

`do/dt = S p - o (o.p)` (`ClusterOracle.turning`) is a system of 2C + 1 numbers a unit, and units do not see each
other. They leave their starts at times that differ by many decades, so that each has a step and a clock of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from numpy.typing import ArrayLike, NDArray

from tutelage._errors import BadInput
from tutelage.oracle.clustered import ClusterOracle
from tutelage.problem.clusters import Clustered
from tutelage.problem.units import Experts, Units

Numbers = NDArray[np.float64]

STILL = 100.0
"""A unit is at rest when the part of its force along the sphere is below this many `rtol` of the whole.

The ratio is 1 at any start with small overlaps, however slow, and falls exponentially near an end point, until steps
at the edge of stability wander by some `rtol`.
"""

LIMIT = 5_000
"""The most steps of a unit; a race over twenty decades of time takes some hundreds."""

_ERROR = np.asarray(diffrax.Tsit5.tableau.b_error)
_STAGES = len(_ERROR)
# The last row of the tableau is the new place itself, so that the last stage is the first one of the next step.
_LOWER = np.array([np.pad(row, (0, _STAGES - len(row))) for row in diffrax.Tsit5.tableau.a_lower])
_SAFETY, _SHRINK, _GROW, _ORDER = 0.9, 0.2, 5.0, 5


@dataclass(frozen=True)
class OverlapFlow:
    """What became of units. Arrays have the units' own axes where the notes below say `...`.

    - `times` (record, ...): when it was recorded; `overlaps` (record, ..., row): what. `final` (..., row): the last.
    - `largest` (..., row): the supremum over time of `|o_i|`, over the steps made.
    - `crossed` (..., row): when `|o_i|` first crossed the threshold; inf if it did not, 0 if it started above.
    - `flipped` (..., cluster, order): when the sign of `alpha_i(bias + radius nu_c)` first changed; inf if it did not.
    - `settled` (...): when the unit came to rest; inf if it was still moving at the end.
    - `steps` (...): how many steps it took.
    """

    times: Numbers
    overlaps: Numbers
    final: Numbers
    largest: Numbers
    crossed: Numbers
    flipped: Numbers
    settled: Numbers
    steps: NDArray[np.int64]


def initial(problem: Clustered, law: Experts, draw: np.random.Generator) -> tuple[Units, Numbers]:
    """Units as the law draws them, and their overlaps with the frame, in law: any dimension costs the same.

    ```python
    >>> import numpy as np, tutelage as tt
    >>> from tutelage.dynamics.neuron_flow import initial
    >>> from tutelage.problem.clusters import antipodal
    >>> tasks = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
    >>> problem = tt.Clustered(antipodal(10**9, 3.0), tasks)
    >>> units, overlaps = initial(problem, tt.Experts(1, 8, "relu"), np.random.default_rng(0))
    >>> overlaps.shape
    (1, 8, 5)

    ```
    """
    frame = problem.frame
    units = law.units(draw)
    return units, law.overlaps(draw, problem.inputs.dim, frame.shape[1]) @ frame.T


def flow_overlaps(
    problem: Clustered | ClusterOracle,
    units: Units,
    overlaps: ArrayLike,
    until: float,
    *,
    times: ArrayLike = (),
    threshold: float = 0.5,
    halt: ArrayLike = False,
    rtol: float = 1e-7,
) -> OverlapFlow:
    """Gradient flow of each unit's correlation with the label, on the sphere, from time 0 to `until`.

    - `problem`: a `ClusterOracle` with other weights (`served`) gives the flow of an expert that sees some clusters.
    - `times`: when to record, ascending, for all units, or with the units' axes behind for each its own.
    - `halt`: which overlaps (..., row) end their unit with the step in which they cross the threshold. What follows is
      then best run from there with a new clock: after a long wait, times say little about what is quick.
    - `rtol`: relative error of a step; the absolute one is `rtol` times the unit's largest overlap at the start.

    Time has no rate in it: a network of width J with learning rate eta is at time `eta t/J` after t steps.

    ```python
    >>> import numpy as np, tutelage as tt
    >>> from tutelage.dynamics.neuron_flow import flow_overlaps, initial
    >>> from tutelage.problem.clusters import antipodal
    >>> tasks = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
    >>> problem = tt.Clustered(antipodal(10**9, 3.0), tasks)
    >>> units, start = initial(problem, tt.Experts(1, 8, (4, 4)), np.random.default_rng(0))
    >>> flow = flow_overlaps(problem, units, start, until=1e15)
    >>> bool((np.abs(flow.final[..., :2]).max(-1) > 0.99).all())  # all units have learnt a local task
    True

    ```
    """
    oracle = problem if isinstance(problem, ClusterOracle) else ClusterOracle(problem)
    start = np.asarray(overlaps, float)
    _check(oracle, units, start, until, rtol)
    lead = start.shape[:-1]
    clocks = _clocks(times, lead, until)
    flat = start.reshape(-1, start.shape[-1])
    count = len(flat)
    alike = jax.tree.map(lambda leaf: jnp.reshape(leaf, (count, *leaf.shape[len(lead) :])), units)
    stops = jnp.asarray(np.broadcast_to(np.asarray(halt, bool), start.shape).reshape(flat.shape))
    # Numbers go in as arrays, so that others do not compile again.
    limits = jnp.asarray(float(threshold)), jnp.asarray(float(rtol))
    state = _run(oracle, alike, jnp.asarray(flat), jnp.asarray(clocks.reshape(-1, count)), *limits, stops)
    if not bool(np.all(state.done)):
        raise BadInput(f"flow_overlaps: some unit took {LIMIT} steps before time {until:g}; try a larger rtol.")
    late = np.arange(len(clocks))[:, None] >= np.asarray(state.next)
    recorded = np.where(late[..., None], np.asarray(state.overlaps), np.asarray(state.recorded))[:-1]

    def shaped(table: Array) -> NDArray[Any]:
        return np.asarray(table).reshape(*lead, *table.shape[1:])

    return OverlapFlow(
        clocks[:-1],
        recorded.reshape(-1, *start.shape),
        shaped(state.overlaps),
        *(shaped(table) for table in (state.largest, state.crossed, state.flipped, state.settled, state.steps)),
    )


class _State(NamedTuple):
    overlaps: Float[Array, "unit row"]
    velocity: Float[Array, "unit row"]
    clock: Float[Array, " unit"]
    width: Float[Array, " unit"]
    next: Int[Array, " unit"]
    recorded: Float[Array, "record unit row"]
    largest: Float[Array, "unit row"]
    crossed: Float[Array, "unit row"]
    flipped: Float[Array, "unit cluster order"]
    settled: Float[Array, " unit"]
    steps: Int[Array, " unit"]
    done: Bool[Array, " unit"]


@eqx.filter_jit
def _run(
    oracle: ClusterOracle,
    units: Units,
    start: Float[Array, "unit row"],
    clocks: Float[Array, "record unit"],
    threshold: Float[Array, ""],
    rtol: Float[Array, ""],
    halt: Bool[Array, "unit row"],
) -> _State:
    atol = rtol * jnp.max(jnp.abs(start), axis=-1, keepdims=True)
    orders, each = oracle.local.shape[1], jnp.arange(len(start))
    signs = jnp.sign(oracle.coefficients(units, start, orders))

    def velocity(y: Array) -> Array:
        return oracle.turning(units, y)

    def rests(y: Array, v: Array) -> Array:
        force = oracle.field(units, y).force @ oracle.gram
        return jnp.max(jnp.abs(v), axis=-1) <= STILL * rtol * jnp.max(jnp.abs(force), axis=-1)

    def body(state: _State) -> _State:
        y = state.overlaps
        # The flow is autonomous. Late in a race a step is below the rounding of the clock, and must not be cut by it.
        left = clocks[state.next, each] - state.clock
        h = jnp.minimum(state.width, left)
        new, v, error = _step(velocity, y, state.velocity, h)
        scale = atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(new))
        worst = jnp.max(jnp.where(error == 0, 0.0, jnp.abs(error) / scale), axis=-1)
        keep = (worst <= 1) & ~state.done
        reached = keep & (left <= state.width)
        growth = jnp.clip(_SAFETY * jnp.maximum(worst, 1e-30) ** (-1 / _ORDER), _SHRINK, _GROW)
        width = h * jnp.where(jnp.isfinite(worst), growth, _SHRINK)
        # A step cut short by a recording time says nothing against the longer one that was planned.
        width = jnp.where(reached, jnp.maximum(width, state.width), width)
        clock = jnp.where(reached, clocks[state.next, each], state.clock + h)
        crossed = jnp.minimum(state.crossed, _crossing(threshold, state.clock, h, y, state.velocity, new, v))
        turned = signs * jnp.sign(oracle.coefficients(units, new, orders)) < 0
        flipped = jnp.minimum(state.flipped, jnp.where(turned, clock[:, None, None], jnp.inf))
        at_rest = rests(new, v)
        over = at_rest | jnp.any(halt & jnp.isfinite(crossed), axis=-1) | (state.next + reached == len(clocks))
        place = jnp.where(reached, state.next, len(clocks))  # one beyond the end: dropped
        later = _State(
            new,
            v,
            clock,
            width,
            state.next + reached,
            state.recorded.at[place, each].set(new, mode="drop"),
            jnp.maximum(state.largest, jnp.abs(new)),
            crossed,
            flipped,
            jnp.where(at_rest, state.clock, jnp.inf),
            state.steps + 1,
            over,
        )
        kept: _State = jax.tree.map(lambda a, b: jnp.where(_like(keep, a), a, b), later, state._replace(width=width))
        tried = state.steps + ~state.done
        return kept._replace(recorded=later.recorded, steps=tried)

    v = velocity(start)
    first = 0.01 * jnp.max(jnp.abs(start), axis=-1) / jnp.max(jnp.abs(v), axis=-1)
    zeros = jnp.zeros(len(start))
    state = _State(
        start,
        v,
        zeros,
        jnp.where(jnp.isfinite(first), first, 1.0),
        jnp.zeros(len(start), int),
        jnp.zeros((*clocks.shape, start.shape[1])),
        jnp.abs(start),
        jnp.where(jnp.abs(start) >= threshold, 0.0, jnp.inf),
        jnp.full(signs.shape, jnp.inf),
        jnp.full(len(start), jnp.inf),
        jnp.zeros(len(start), int),
        jnp.any(halt & (jnp.abs(start) >= threshold), axis=-1),
    )
    end: _State = jax.lax.while_loop(lambda s: ~jnp.all(s.done | (s.steps >= LIMIT)), body, state)
    return end


def _like(flags: Array, leaf: Array) -> Array:
    """Flags by unit, shaped to choose in an array whose first axis is the unit; records are chosen elsewhere."""
    return flags.reshape(-1, *([1] * (leaf.ndim - 1))) if leaf.shape[0] == len(flags) else flags[None, :, None]


def _step(velocity: Callable[[Array], Array], y: Array, first: Array, h: Array) -> tuple[Array, Array, Array]:
    """One step of Tsit5 whose width is each unit's own: the new place, its velocity, and the error.

    A scan over the stages, because it compiles the velocity once and not six times.
    """

    def stage(carry: tuple[Array, Array], row: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
        number, weights = row
        place = y + h[:, None] * jnp.tensordot(weights, carry[0], 1)
        return (carry[0].at[number].set(velocity(place)), place), None

    rows = (jnp.arange(1, _STAGES), jnp.asarray(_LOWER))
    stages = jnp.zeros((_STAGES, *y.shape)).at[0].set(first)
    (stages, place), _ = jax.lax.scan(stage, (stages, y), rows)
    return place, stages[-1], h[:, None] * jnp.tensordot(jnp.asarray(_ERROR), stages, 1)


def _crossing(level: Array, clock: Array, h: Array, y: Array, v: Array, new: Array, late: Array) -> Array:
    """When `|o|` crossed `level` in a step, inf if it did not: time as a cubic of the overlap, from both ends."""
    low, high = jnp.abs(y), jnp.abs(new)
    up, late_up = jnp.sign(y) * v, jnp.sign(new) * late
    gap = jnp.where(high > low, high - low, 1.0)
    s = (level - low) / gap
    begin, end = (gap / jnp.where(slope > 0, slope, 1.0) / h[:, None] for slope in (up, late_up))
    cubic = s**2 * (3 - 2 * s) + s * (1 - s) * ((1 - s) * begin - s * end)
    smooth = (up > 0) & (late_up > 0) & (cubic >= 0) & (cubic <= 1)
    when = clock[:, None] + h[:, None] * jnp.where(smooth, cubic, s)
    return jnp.where((low < level) & (high >= level), when, jnp.inf)


def _clocks(times: ArrayLike, lead: tuple[int, ...], until: float) -> Numbers:
    """Recording times of each unit, the end behind them."""
    table = np.asarray(times, float)
    table = np.broadcast_to(
        table.reshape(*table.shape, *([1] * len(lead))) if table.ndim == 1 else table, (len(table), *lead)
    )
    table = np.concatenate([table, np.full((1, *lead), float(until))])
    if np.any(table[0] < 0) or np.any(np.diff(table, axis=0) < 0):
        raise BadInput(f"flow_overlaps: times must ascend from 0 to until = {until:g}, for every unit.")
    return table


def _check(oracle: ClusterOracle, units: Units, start: Numbers, until: float, rtol: float) -> None:
    rows = 2 * oracle.count + 1
    if start.shape != (*units.outgoing.shape, rows):
        raise BadInput(
            f"flow_overlaps: overlaps have shape {start.shape}, but {(*units.outgoing.shape, rows)} was expected: "
            "for each unit its overlaps with the rows of the frame."
        )
    if not (np.isfinite(until) and until > 0):
        raise BadInput(f"flow_overlaps: until is {until}, but a finite time above 0 was expected.")
    if not 1e-13 <= rtol <= 1e-6:
        raise BadInput(f"flow_overlaps: rtol is {rtol}, but a number from 1e-13 to 1e-6 was expected.")
    inverse = np.linalg.pinv(np.asarray(oracle.gram), hermitian=True)
    squares = np.einsum("...i,ij,...j->...", start, inverse, start)
    off = np.abs(start - start @ inverse @ np.asarray(oracle.gram))
    if not (np.all(squares <= 1 + 1e-9) and np.all(off <= 1e-9)):
        raise BadInput(
            f"flow_overlaps: no unit vector has such overlaps (squared norm {np.max(squares):.3g}, at most 1 was "
            "expected, and equal rows of the frame need equal overlaps); take those of weights, weights @ frame.T."
        )
