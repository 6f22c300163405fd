"""The one loop, compiled: any step on any oracle, from one recording time to the next, seeds in one batch.

A chunk is a pure function of the state before it; what happens between chunks is in `dynamics.driver`.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt64
from numpy.typing import ArrayLike

from tutelage._errors import StopReason
from tutelage.dynamics.base import AbstractStep, Moment
from tutelage.dynamics.batch import each_seed
from tutelage.dynamics.events import Crossings, End, Event, cross
from tutelage.dynamics.own import numbers_of
from tutelage.dynamics.snapshot import Snapshot
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.trees import finite, square_norm

Observables = tuple[tuple[str, Callable[[Snapshot], ArrayLike]], ...]
Watched = tuple[tuple[Event, ...], tuple[Crossings, ...]]
Row = dict[str, Array]


class Limits(NamedTuple):
    """When to call a run converged (checked at recording times; the gradient relative to the norm of the weights, so
    that a tiny start is not mistaken for an end), and the cap on steps. Where there is no loss, both are None."""

    loss: Float[Array, ""] | None
    gradient: Float[Array, ""] | None
    steps: Int[Array, ""]


class State(eqx.Module):
    """All that the next chunk needs, on the host for all seeds. `before` and `after` bracket the step in which each
    event happened; `crossed`: the times of crossings, an array for each."""

    moment: Moment
    steps: Int[Array, "*seed"]
    reason: Int[Array, "*seed"]
    fired: Bool[Array, "*seed event"]
    before: Moment
    after: Float[Array, "*seed event"]
    crossed: tuple[Array, ...] = ()


class Context(NamedTuple):
    """What stays fixed during a run, for one seed."""

    oracle: AbstractOracle
    teacher: PyTree
    start: PyTree

    def view(self, weights: PyTree) -> Snapshot:
        return Snapshot(weights, self.teacher, self.start, self.oracle)


def _event_values(events: tuple[Event, ...], view: Snapshot) -> Float[Array, " event"]:
    values = [numbers_of(f"The event {event.name!r}", event.when, view, one=True).astype(float) for event in events]
    return jnp.stack(values) if events else jnp.zeros(0)


def _crossing_values(crossing: Crossings, view: Snapshot) -> Float[Array, "..."]:
    return numbers_of(f"The crossing {crossing.name!r}", crossing.values, view).astype(float)


def _ends(move: AbstractStep, crossings: tuple[Crossings, ...], context: Context, moment: Moment) -> list[End]:
    """The watched arrays at a moment, with their rates of change if the step has a velocity."""
    velocity = move.velocity(context.oracle, moment)
    ends = []
    for crossing in crossings:
        values = lambda w, c=crossing: _crossing_values(c, context.view(w))  # noqa: E731
        if velocity is None:
            ends.append(End(moment.clock, values(moment.weights), None))
        else:
            ends.append(End(moment.clock, *jax.jvp(values, (moment.weights,), (velocity,))))
    return ends


def _begin(move: AbstractStep, watched: Watched, context: Context, key: UInt64[Array, ""]) -> State:
    events, crossings = watched
    moment = move.seeded(move.begin(context.oracle, context.start), key)
    fired = _event_values(events, context.view(context.start)) >= 0
    before = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], len(events), 0), moment)
    reason = jnp.where(finite(context.start), StopReason.RUNNING, StopReason.NONFINITE)
    crossed = tuple(
        jnp.where(end.values >= 0, 0.0, jnp.nan)
        for end in (_ends(move, crossings, context, moment) if crossings else ())
    )
    state = State(moment, jnp.array(0), reason, fired, before, jnp.where(fired, 0.0, jnp.nan), crossed)
    # Strong types throughout, so that the first chunk and the later ones share one compilation.
    strong: State = jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), state)
    return strong


def _step(
    move: AbstractStep,
    watched: Watched,
    context: Context,
    limit: Float[Array, ""],
    cap: Int[Array, ""],
    state: State,
) -> State:
    (events, crossings), old = watched, state.moment
    new, moved, stuck = move.step(context.oracle, old, limit)
    sound = finite(new.weights) & ~stuck
    moment = jax.tree.map(lambda a, b: jnp.where(sound, a, b), new, old)
    reason = jnp.where(sound, state.reason, StopReason.NONFINITE)
    steps = state.steps + 1
    fired, before, after = state.fired, state.before, state.after
    if events:
        happened = ~fired & moved & sound & (_event_values(events, context.view(moment.weights)) >= 0)
        before = jax.tree.map(lambda kept, now: jnp.where(_like(happened, kept), now, kept), before, old)
        after = jnp.where(happened, moment.clock, after)
        fired = fired | happened
        stops = jnp.any(happened & jnp.asarray([event.stop for event in events]))
        reason = jnp.where(stops, StopReason.EVENT, reason)
    reason = jnp.where((steps >= cap) & (reason == StopReason.RUNNING), StopReason.CAP, reason)
    crossed = state.crossed
    if crossings:
        olds, news = (_ends(move, crossings, context, at) for at in (old, moment))
        crossed = tuple(cross(*each, moment.time) for each in zip(crossed, olds, news, strict=True))
    return State(moment, steps, reason, fired, before, after, crossed)


def _like(mask: Bool[Array, " event"], leaf: Array) -> Array:
    return mask.reshape(mask.shape + (1,) * (leaf.ndim - 1))


def _record(
    observables: Observables, context: Context, limits: Limits, limit: Float[Array, ""], state: State
) -> tuple[State, Row]:
    view = context.view(state.moment.weights)
    running = state.reason == StopReason.RUNNING
    row = {name: numbers_of(f"The observable {name!r}", fn, view) for name, fn in observables}
    lost, done, strained = _judged(limits, view)
    row["_reached"] = running & ~lost & (state.moment.clock >= limit)
    row["_time"] = state.moment.time
    row["_strained"] = running & strained
    ended = jnp.where(done, StopReason.CONVERGED, state.reason)
    reason = jnp.where(running, jnp.where(lost, StopReason.NONFINITE, ended), state.reason)
    return eqx.tree_at(lambda s: s.reason, state, reason), row


def _judged(limits: Limits, view: Snapshot) -> tuple[Bool[Array, ""], Bool[Array, ""], Bool[Array, ""]]:
    """Whether the loss is lost, whether it is small enough, and whether the oracle's quick form is strained by it."""
    if limits.loss is None or limits.gradient is None:
        return jnp.array(False), jnp.array(False), jnp.array(False)
    small = (limits.loss > 0) & (view.loss <= limits.loss)
    still = view.gradient_norm <= limits.gradient * jnp.sqrt(square_norm(view.weights))
    # Weights may still be finite when their loss is not: a run that diverges ends at its last finite record.
    return ~jnp.isfinite(view.loss), small | still, view.oracle.strained(view.weights, view.loss, view.gradient)


class Fixed(NamedTuple):
    """What all chunks of a run share: where it is recorded and watched, and what stands still."""

    observables: Observables
    watched: Watched
    limits: Limits
    batched: bool
    teacher: PyTree


@eqx.filter_jit
def prepare(
    move: AbstractStep, fixed: Fixed, oracle: AbstractOracle, start: PyTree, keys: UInt64[Array, " seed"]
) -> State:
    """The state of all seeds before the first step."""

    def one(oracle: AbstractOracle, start: PyTree, key: UInt64[Array, ""]) -> State:
        return _begin(move, fixed.watched, Context(oracle, fixed.teacher, start), key)

    return each_seed(one, oracle, fixed.batched, start, keys)


@eqx.filter_jit
def advance(
    move: AbstractStep,
    fixed: Fixed,
    oracle: AbstractOracle,
    start: PyTree,
    state: State,
    stops: Float[Array, " record"],
) -> tuple[State, Row]:
    """One chunk for all seeds: to each of `stops` in turn, recording there."""

    def one(oracle: AbstractOracle, start: PyTree, state: State) -> tuple[State, Row]:
        context = Context(oracle, fixed.teacher, start)

        def to_stop(state: State, stop: Float[Array, ""]) -> tuple[State, Row]:
            def going(s: State) -> Bool[Array, ""]:
                return (s.reason == StopReason.RUNNING) & (s.moment.clock < stop)

            def once(s: State) -> State:
                return _step(move, fixed.watched, context, stop, fixed.limits.steps, s)

            return _record(fixed.observables, context, fixed.limits, stop, jax.lax.while_loop(going, once, state))

        return jax.lax.scan(to_stop, state, stops)

    return each_seed(one, oracle, fixed.batched, start, state)


@eqx.filter_jit
def note(
    fixed: Fixed, oracle: AbstractOracle, start: PyTree, state: State, stop: Float[Array, ""]
) -> tuple[State, Row]:
    """Record all seeds where they are."""

    def one(oracle: AbstractOracle, start: PyTree, state: State) -> tuple[State, Row]:
        context = Context(oracle, fixed.teacher, start)
        going = state.reason == StopReason.RUNNING
        sound = finite(state.moment.weights)
        reason = jnp.where(going & ~sound, StopReason.NONFINITE, state.reason)
        return _record(fixed.observables, context, fixed.limits, stop, eqx.tree_at(lambda s: s.reason, state, reason))

    return each_seed(one, oracle, fixed.batched, start, state)


@eqx.filter_jit
def locate(move: AbstractStep, fixed: Fixed, oracle: AbstractOracle, start: PyTree, state: State) -> Moment:
    """The moments at which events happened, by bisection with the steps of the run itself."""
    events = fixed.watched[0]

    def one(oracle: AbstractOracle, start: PyTree, state: State) -> Moment:
        context = Context(oracle, fixed.teacher, start)

        def find(index: Int[Array, ""], before: Moment, after: Float[Array, ""]) -> Moment:
            def halve(_: Array | int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
                middle = 0.5 * (ends[0] + ends[1])
                seen = move.within(oracle, before, middle)
                passed = _event_values(events, context.view(seen.weights))[index] >= 0
                return jnp.where(passed, ends[0], middle), jnp.where(passed, middle, ends[1])

            _, high = jax.lax.fori_loop(0, 52, halve, (before.clock, after))
            return move.within(oracle, before, high)

        return jax.vmap(find)(jnp.arange(len(events)), state.before, state.after)

    return each_seed(one, oracle, fixed.batched, start, state)


@eqx.filter_jit
def crossed_by(
    fixed: Fixed, oracle: AbstractOracle, start: PyTree, moment: Moment, crossed: tuple[Array, ...]
) -> tuple[Array, ...]:
    """Times of crossings up to a moment inside the last step: what was crossed later in it has not happened."""

    def one(oracle: AbstractOracle, start: PyTree, moment: Moment, crossed: tuple[Array, ...]) -> tuple[Array, ...]:
        view = Context(oracle, fixed.teacher, start).view(moment.weights)
        values = [_crossing_values(crossing, view) for crossing in fixed.watched[1]]
        there = [jnp.where(value >= 0, moment.time, jnp.nan) for value in values]
        return tuple(jnp.where(t <= moment.time, t, now) for t, now in zip(crossed, there, strict=True))

    return each_seed(one, oracle, fixed.batched, start, moment, crossed)
