"""What a run is said to take, before it begins, against what it takes: the compiler says it of its programs, without
running them, and Python of the arrays on the host."""

import os
import tracemalloc

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
DESCENT = tt.Descent(0.01, 100)
RUNS = {
    "many students": (DESCENT, 80, 20, 1),
    "many teachers": (DESCENT, 24, 72, 2),
    "many seeds": (DESCENT, 12, 4, 40),
    "a flow": (tt.Flow(until=10.0), 40, 40, 2),
    "examples": (tt.Sgd(step=0.01, steps=100, batch=8), 40, 40, 2),
}


class Begun(Exception):
    """All that the first program of a run is given is known."""


def begun(task, plan, seeds, monkeypatch):
    """The loop of a run, and what its first program is given."""
    seen, ready = {}, Loop.__init__

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
            tt.run(task, plan, seeds=seeds)
    return seen["loop"], seen["given"]


def size(program, *given) -> int:
    found = program.lower(*given).compile().memory_analysis()
    return found.temp_size_in_bytes + found.argument_size_in_bytes + found.output_size_in_bytes


def compiled(loop, given) -> int:
    """The bytes of the larger program, of the steps or of the records, in the form of the oracle that takes most."""
    move, fixed, _, start, state, *due = given
    records = jax.tree.map(lambda leaf: np.zeros((len(leaf), loop.chunk, *leaf.shape[1:])), start)
    steps = size(advance, move, fixed, loop.forms[:2][-1], start, state, *due)
    return max(steps, size(note, loop.observables, fixed, loop.careful, start, records, due[1]))


@pytest.mark.parametrize("name", RUNS)
def test_the_bound_is_one_and_not_far_off(name, monkeypatch):
    plan, students, teachers, seeds = RUNS[name]
    task = problem(teachers, students, 10**6, 0.01)
    said = sum(plan.room(task, seeds).values())
    loop, given = begun(task, plan, seeds, monkeypatch)
    # As many lanes as there are cores have a program each; all seeds have their records on the host, twice at least.
    lanes = min(-(-seeds // loop.lane), os.cpu_count() or 1)
    noted = seeds * loop.chunk * sum(leaf.nbytes // len(leaf) for leaf in jax.tree.leaves(loop.start))
    taken = lanes * compiled(loop, given) + 2 * noted
    assert taken <= said <= FEW * taken, (said / taken, taken, noted, loop.lane, loop.chunk)


def test_the_host_holds_no_more_copies_of_records_than_are_counted():
    task, seeds = problem(4, 12, 10**6, 0.01), 40
    tt.run(task, DESCENT, seeds=seeds)  # what the compiler needs of Python is not counted
    tracemalloc.start()
    try:
        tt.run(task, DESCENT, seeds=seeds)
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert held <= sum(DESCENT.room(task, seeds).values()) <= FEW * held, held
