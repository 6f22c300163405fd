"""The one loop, compiled: any step on any oracle, from one recording time to the next, some seeds in one batch.

A chunk is a pure function of the state before it; what happens between chunks is in `dynamics.driver`. What is measured
at the records is a program of its own (`note`), which knows nothing of the step: both are small, and compile soon.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt64
from numpy.typing import ArrayLike

from tutelage._errors import StopReason
from tutelage.dynamics.base import AbstractStep, Moment, Taken
from tutelage.dynamics.batch import each_seed
from tutelage.dynamics.compiled import compiled
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
    that a tiny start is not mistaken for an end), and the cap on steps. None for a loss that nobody asks for, and for a
    gradient where the oracle has none."""

    loss: Float[Array, ""] | None
    gradient: Float[Array, ""] | None
    steps: Int[Array, ""]


class State(NamedTuple):
    """All that the next chunk needs, on the host for all seeds.

    - `form`: which form of the oracle the seed goes on with; `strained`: it has just been changed.
    - `made`: how many records of this chunk it has made.
    - `before` and `after` bracket the step in which each event happened; `crossed`: the times of crossings, an array
      for each.
    """

    moment: Moment
    steps: Int[Array, "*seed"]
    reason: Int[Array, "*seed"]
    form: Int[Array, "*seed"]
    strained: Bool[Array, "*seed"]
    made: Int[Array, "*seed"]
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
    none, no = jnp.array(0), jnp.array(False)
    state = State(moment, none, reason, none, no, none, fired, before, jnp.where(fired, 0.0, jnp.nan), crossed)
    # Strong types throughout, so that the first chunk and the later ones share one compilation.
    strong: State = jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), state)
    return strong


def _step(
    move: AbstractStep,
    fixed: "Fixed",
    context: Context,
    limit: Float[Array, ""],
    state: State,
) -> State:
    (events, crossings), old = fixed.watched, state.moment
    new, moved, stuck, strained = Taken(*move.step(context.oracle, old, limit))
    strained = jnp.asarray(strained)
    view = context.view(new.weights)
    if (events or crossings) and fixed.limits.gradient is not None:  # they may look at the loss after every step
        # A form that the loss needs is not given up for the gradient's sake: the next would be strained at once.
        strained = strained & ~context.oracle.held(new.weights, view.loss)
        strained = strained | context.oracle.strained(new.weights, loss=view.loss)
    good = ~(stuck | strained)
    moment = jax.tree.map(lambda a, b: jnp.where(good, a, b), new, old)
    reason = jnp.where(stuck & ~strained, StopReason.NONFINITE, state.reason)
    steps = state.steps + jnp.where(strained, 0, 1)
    fired, before, after = state.fired, state.before, state.after
    if events:
        happened = ~fired & moved & good & (_event_values(events, view) >= 0)
        before = jax.tree.map(lambda kept, now: jnp.where(_like(happened, kept), now, kept), before, old)
        after = jnp.where(happened, moment.clock, after)
        fired = fired | happened
        stops = jnp.any(happened & jnp.asarray([event.stop for event in events]))
        reason = jnp.where(stops, StopReason.EVENT, reason)
    reason = jnp.where((steps >= fixed.limits.steps) & (reason == StopReason.RUNNING), StopReason.CAP, reason)
    crossed = state.crossed
    if crossings:
        olds, news = (_ends(move, crossings, context, at) for at in (old, moment))
        crossed = tuple(cross(*each, moment.time) for each in zip(crossed, olds, news, strict=True))
    return State(moment, steps, reason, state.form, strained, state.made, fired, before, after, crossed)


def _sound(before: State, after: State) -> State:
    """The state after some steps; or before them, at an end, if the weights are not finite any more."""
    sound = finite(after.moment.weights)
    # What a step takes along is of no use any more, and may be large.
    ended = after.moment._replace(weights=before.moment.weights, clock=before.moment.clock, time=before.moment.time)
    kept = jax.tree.map(lambda a, b: jnp.where(sound, a, b), after.moment, ended)
    reason = jnp.where(sound, after.reason, StopReason.NONFINITE)
    return after._replace(moment=kept, steps=jnp.where(sound, after.steps, before.steps), reason=reason)


def _supplied(move: AbstractStep, state: State) -> State:
    """The state with a fresh supply of random numbers, if the old one is used up; else nothing is drawn."""
    if not move.draws:
        return state
    # A loop of one turn at most: of seeds in a batch, a condition would draw always.
    return jax.lax.while_loop(
        lambda s: move.spent(s.moment), lambda s: s._replace(moment=move.supplied(s.moment)), state
    )


def _like(mask: Bool[Array, " event"], leaf: Array) -> Array:
    return mask.reshape(mask.shape + (1,) * (leaf.ndim - 1))


STRIDE = 32
"""Steps after which one looks whether the weights are still finite: at every step it would cost as much as some do."""
PAUSE = 320 * STRIDE
"""Steps after which the host is asked whether another step should go on: enough that asking costs nothing."""


class Noted(NamedTuple):
    """Where a seed was at a recording time, and whether it got there."""

    weights: PyTree
    time: Float[Array, ""]
    reached: Bool[Array, ""]


def _arrive(
    move: AbstractStep, context: Context, limits: Limits, index: Int[Array, ""], stop: Float[Array, ""], state: State
) -> tuple[State, Noted]:
    """The record that is due at `stop`, unless it has been made, and whether the run ends with it."""
    here = move.back(state.moment, stop)
    running = (state.reason == StopReason.RUNNING) & ~state.strained & (state.made <= index)
    running = running & (state.moment.clock >= stop)
    lost, done, strained = _judged(limits, context.view(here.weights))
    due = running & ~strained
    reached = due & ~lost
    reason = jnp.where(due & lost, StopReason.NONFINITE, jnp.where(due & done, StopReason.CONVERGED, state.reason))
    over = reason != state.reason
    moment = jax.tree.map(lambda then, now: jnp.where(over, then, now), here, state.moment)
    made = jnp.where(due, index + 1, state.made)
    strained = state.strained | (running & strained)
    state = state._replace(moment=moment, reason=reason, strained=strained, made=made)
    return state, Noted(here.weights, here.time, reached)


def _judged(limits: Limits, view: Snapshot) -> tuple[Bool[Array, ""], Bool[Array, ""], Bool[Array, ""]]:
    """Whether the weights are lost, whether they have converged, and whether too few digits are left to say so."""
    lost, done, strained = jnp.array(False), jnp.array(False), jnp.array(False)
    if limits.gradient is not None:
        lost = ~jnp.isfinite(view.gradient_norm)
        done = view.gradient_norm <= limits.gradient * jnp.sqrt(square_norm(view.weights))
    if limits.loss is not None:
        done = done | (view.loss <= limits.loss)
        # Only a loss near the limit, or one of which half of the digits are gone, is worth another form of the oracle.
        near = (view.loss <= 2 * limits.loss) & view.oracle.strained(view.weights, loss=view.loss)
        strained = near | view.oracle.strained(view.weights, loss=1e6 * view.loss)
    return lost, done, strained


_soon = compiled(xla_cpu_use_fusion_emitters=False)
"""For programs that run now and then: they compile in two thirds of the time, and take a tenth longer."""


_often = compiled()
"""For the program that takes the steps. Vectors of 512 bits would be quicker by a tenth, but give equal pairs unequal
roundings by their place, so that a student that equals its teacher has a gradient."""


class Fixed(NamedTuple):
    """What all chunks of a run share: how it is watched, when it ends, and what stands still."""

    watched: Watched
    limits: Limits
    end: Float[Array, ""]
    batched: bool
    teacher: PyTree


@_soon
def prepare(
    move: AbstractStep, fixed: Fixed, oracle: AbstractOracle, start: PyTree, keys: UInt64[Array, " seed"]
) -> State:
    """The state of all seeds before the first step."""

    def one(oracle: AbstractOracle, start: PyTree, key: UInt64[Array, ""]) -> State:
        return _begin(move, fixed.watched, Context(oracle, fixed.teacher, start), key)

    return each_seed(one, oracle, fixed.batched, start, keys)


S = TypeVar("S")
T = TypeVar("T")


def _each(
    function: Callable[[S, tuple[Array, PyTree]], tuple[S, T]], state: S, rows: PyTree, count: Int[Array, ""]
) -> tuple[S, T]:
    """`jax.lax.scan` of `function(state, (index, row))` over the first `count` rows; for the others there are zeros.

    One program thus serves any number of records, and no more is computed than is asked for.
    """

    function = jax.jit(function)  # so that it is traced once: for its shapes, and in the loop

    def put(index: Array | int, done: tuple[S, T]) -> tuple[S, T]:
        index = jnp.asarray(index)
        state, new = function(done[0], (index, jax.tree.map(lambda leaf: leaf[index], rows)))
        place = lambda whole, part: jax.lax.dynamic_update_index_in_dim(whole, part, index, 0)  # noqa: E731
        return state, jax.tree.map(place, done[1], new)

    length, first = len(jax.tree.leaves(rows)[0]), jax.tree.map(lambda leaf: leaf[0], rows)
    shapes = jax.eval_shape(function, state, (jnp.array(0), first))[1]
    empty = jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), shapes)
    done: tuple[S, T] = jax.lax.fori_loop(0, count, put, (state, empty))
    return done


@_often
def advance(
    move: AbstractStep,
    fixed: Fixed,
    oracle: AbstractOracle,
    start: PyTree,
    state: State,
    stops: Float[Array, " record"],
    count: Int[Array, ""],
) -> tuple[State, Noted]:
    """Some seeds, all with one form of the oracle, to each of the first `count` of `stops` in turn, as far as it serves
    or up to a pause."""
    # A run may have to end at an event, between two records: it must not go past the first of them.
    free = move.passes and not any(event.stop for event in fixed.watched[0])

    def one(oracle: AbstractOracle, start: PyTree, state: State) -> tuple[State, Noted]:
        context, pause = Context(oracle, fixed.teacher, start), (state.steps // PAUSE + 1) * PAUSE

        def to_stop(state: State, due: tuple[Array, Array]) -> tuple[State, Noted]:
            def going(s: State) -> Bool[Array, ""]:
                ready = (s.reason == StopReason.RUNNING) & ~s.strained & (s.steps < pause)
                return ready & (s.moment.clock < due[1])

            def once(s: State) -> State:
                limit = fixed.end if free else due[1]
                return _step(move, fixed, context, limit, s)

            def stride(s: State) -> State:
                s, end = _supplied(move, s), (s.steps // STRIDE + 1) * STRIDE
                on = lambda s: going(s) & (s.steps < end) & ~move.spent(s.moment)  # noqa: E731
                return _sound(s, jax.lax.while_loop(on, once, s))

            there = jax.lax.while_loop(going, stride, state)
            return _arrive(move, context, fixed.limits, *due, there)

        state, noted = _each(to_stop, state, stops, count)
        form = jnp.where(state.strained, oracle.instead(state.moment.weights), state.form)
        return state._replace(form=form), noted

    return each_seed(one, oracle, fixed.batched, start, state)


@_soon
def arrive(
    move: AbstractStep, fixed: Fixed, oracle: AbstractOracle, start: PyTree, state: State, stop: Float[Array, ""]
) -> tuple[State, Noted]:
    """The record of seeds that have gone there by themselves."""

    def one(oracle: AbstractOracle, start: PyTree, state: State) -> tuple[State, Noted]:
        context = Context(oracle, fixed.teacher, start)
        going = state.reason == StopReason.RUNNING
        reason = jnp.where(going & ~finite(state.moment.weights), StopReason.NONFINITE, state.reason)
        state = state._replace(reason=reason)
        state, noted = _arrive(move, context, fixed.limits, jnp.array(0), stop, state)
        return state, jax.tree.map(lambda leaf: leaf[None], noted)

    return each_seed(one, oracle, fixed.batched, start, state)


@_soon
def note(
    observables: Observables,
    fixed: Fixed,
    oracle: AbstractOracle,
    start: PyTree,
    weights: PyTree,
    count: Int[Array, ""],
) -> Row:
    """What is measured of weights with leading axes (seed, record), at the first `count` records; and whether this form
    of the oracle has `_lost` too many digits for it, and whether the loss is `_finite`: weights may be so when it is
    not."""
    scored = fixed.limits.gradient is not None

    def one(oracle: AbstractOracle, start: PyTree, weights: PyTree) -> Row:
        def row(weights: PyTree) -> Row:
            view = Context(oracle, fixed.teacher, start).view(weights)
            seen = {name: numbers_of(f"The observable {name!r}", fn, view) for name, fn in observables}
            if not scored:
                return seen | {"_lost": jnp.array(False), "_finite": jnp.array(True)}
            return seen | {
                "_lost": oracle.lost(weights, view.loss, view.gradient), "_finite": jnp.isfinite(view.loss)
            }  # fmt: skip

        rows: Row = _each(lambda nothing, due: (nothing, row(due[1])), (), weights, count)[1]
        return rows

    return each_seed(one, oracle, fixed.batched, start, weights)


@_soon
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


@_soon
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
