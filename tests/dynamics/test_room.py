"""What a run is said to take, before it begins, against what it takes: the compiler says it of its programs, without
running them, and Python of the arrays on the host."""

import os
import tracemalloc
from functools import partial

import jax
import numpy as np
import pytest

import tutelage as tt
from tutelage.bench.relu import problem
from tutelage.dynamics import driver
from tutelage.dynamics.driver import Loop
from tutelage.dynamics.loop import advance, note

FEW = 10
"""The most that a bound may be above what is taken."""
PLANS = {
    "descent": tt.Descent(0.01, 100),
    "flow": tt.Flow(until=10.0),
    "sgd": tt.Sgd(step=0.01, steps=100, batch=8),
}
SIZES = {"many students": (80, 20, 1), "many teachers": (24, 72, 2), "many seeds": (12, 4, 40)}


class Begun(Exception):
    """All that the first program of a run is given is known."""


@pytest.fixture
def begun(monkeypatch):
    """The loop of a run, and what its first program is given."""

    def of(problem, plan, seeds):
        seen = {}
        ready = Loop.__init__

        def begin(loop, *given, **named):
            ready(loop, *given, **named)
            seen["loop"] = loop

        def caught(*given):
            seen["given"] = given
            raise Begun

        with monkeypatch.context() as patched:
            patched.setattr(Loop, "__init__", begin)
            patched.setattr(driver, "advance", caught)
            with pytest.raises(Begun):
                tt.run(problem, plan, seeds=seeds)
        return seen["loop"], seen["given"]

    return of


def size(program, *given) -> int:
    found = program.lower(*given).compile().compiled.memory_analysis()
    return found.temp_size_in_bytes + found.argument_size_in_bytes + found.output_size_in_bytes


def compiled(loop, given) -> int:
    """The bytes of the largest program of a run: of its steps and of its records, in every form of the oracle."""
    move, fixed, _, start, state, *due = given
    records = jax.tree.map(lambda leaf: np.zeros((len(leaf), loop.chunk, *leaf.shape[1:])), start)
    steps = [size(advance, move, fixed, oracle, start, state, *due) for oracle in loop.forms[:2]]
    seen = [
        size(note, loop.observables, fixed, oracle, start, records, due[1]) for oracle in (loop.quick, loop.careful)
    ]
    return max(*steps, *seen)


@pytest.mark.parametrize("which", SIZES)
@pytest.mark.parametrize("name", PLANS)
def test_the_bound_is_one_and_not_far_off(name, which, begun):
    students, teachers, seeds = SIZES[which]
    task, plan = problem(teachers, students, 10**6, 0.01), PLANS[name]
    said = sum(plan.room(task, seeds).values())
    loop, given = begun(task, plan, seeds)
    lanes = min(-(-seeds // loop.lane), os.cpu_count() or 1)
    go = partial(tt.run, task, plan, seeds=seeds)
    go()  # what the compiler needs of Python is not counted
    tracemalloc.start()
    try:
        go()
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    taken = lanes * compiled(loop, given) + held
    assert taken <= said <= FEW * taken, (said / taken, compiled(loop, given), held, lanes, loop.lane, loop.chunk)
