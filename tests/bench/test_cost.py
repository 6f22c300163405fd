"""A guard without a clock: what the compiled loop of each verb computes for a step, how often the host is asked, what
steps a solver takes and what a first call compiles.

Counts are the same on every machine; one that has grown by a tenth fails. When one has come down, write the new one
here.
"""

import json
import os
import re
import subprocess
import sys
from typing import NamedTuple

import jax
import pytest

from tutelage.bench.cases import descent, flow, sgd
from tutelage.dynamics import driver
from tutelage.dynamics.descent import DescentStep

ROOM = 1.1
IDLE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}
"""Instructions that do nothing when a program runs."""
FLOW = flow.Task(20, 20.0, 20, 1e-8)
CALLS = {
    "descent": lambda: descent.ours(descent.Task(30, 1, 200, 200)),
    "flow": lambda: flow.ours(FLOW),
    "sgd, batch 8": lambda: sgd.ours(sgd.Task(100, 8), 100),
    "sgd, batch 512": lambda: sgd.ours(sgd.Task(1000, 512), 100),
}


class Cost(NamedTuple):
    """Of the loop, with its body counted once: arithmetic, functions such as sines, and instructions in all bodies
    (what a step on small arrays costs); and how often the host calls it."""

    flops: float
    functions: float
    instructions: int
    calls: int


KNOWN = {
    "descent": Cost(337_989, 2985, 68, 2),
    "flow": Cost(65_904, 647, 105, 3),  # two calls, or three if the first had to be compiled
    # The random numbers of 4 updates at once, and a Gram matrix for a QR factorisation that was not counted.
    "sgd, batch 8": Cost(1_103_812, 3606, 94, 2),
    "sgd, batch 512": Cost(3_694_609, 8480, 122, 2),
}
STEPS = 131
"""Of the flow."""
PROGRAMS = {"descent": 6, "flow": 3, "sgd, batch 8": 5}
"""How many programs each verb compiles when it is called after those before it in a new process."""


def instructions(program: str) -> int:
    """In the bodies of all loops of a compiled program."""
    parts = re.split(r"\n(?=\S)", program)
    bodies = {name for name in re.findall(r"body=%?([\w.\-]+)", program)}
    found = [part for part in parts if (head := re.match(r"%?([\w.\-]+) ", part)) and head[1] in bodies]
    assert len(found) == len(bodies)
    kinds = (re.match(r"\s+.*? = .*?[\])}] ([\w\-]+)\(", line) for part in found for line in part.splitlines())
    return sum(kind is not None and kind[1] not in IDLE for kind in kinds)


def cost(call, monkeypatch) -> Cost:
    """Of the loop that a call runs first."""
    right, seen = driver.advance, []
    monkeypatch.setattr(driver, "advance", lambda *given: seen.append(given) or right(*given))
    call()
    monkeypatch.setattr(driver, "advance", right)
    program = right.lower(*seen[0]).compile()
    counted = program.cost_analysis()
    return Cost(counted["flops"], counted["transcendentals"], instructions(program.as_text()), len(seen))


@pytest.mark.parametrize("name", CALLS)
def test_a_step_costs_no_more_than_it_did(name, monkeypatch):
    found = cost(CALLS[name], monkeypatch)
    grown = {
        kind: (now, was) for kind, now, was in zip(Cost._fields, found, KNOWN[name], strict=True) if now > ROOM * was
    }
    assert not grown, f"(now, before): {grown}"


def test_a_step_that_costs_half_as_much_again_is_seen(monkeypatch):
    """A second gradient, at weights that the compiler cannot know to be the same; half of it would be seen."""
    right = DescentStep.step

    def twice(self, oracle, moment, limit):
        taken = right(self, oracle, moment, limit)
        more = oracle.gradient(jax.tree.map(lambda leaf: 1.001 * leaf, moment.weights))
        weights = jax.tree.map(lambda w, g: w + 1e-9 * g, taken.moment.weights, more)
        return taken._replace(moment=taken.moment._replace(weights=weights))

    monkeypatch.setattr(DescentStep, "step", twice)
    jax.clear_caches()  # or the program would be known; and again, so that nobody else is given the wrong one
    try:
        doubled = cost(CALLS["descent"], monkeypatch)
    finally:
        jax.clear_caches()
    for kind in ("flops", "functions", "instructions"):
        grown = getattr(doubled, kind) / getattr(KNOWN["descent"], kind)
        assert (1 + grown) / 2 > ROOM, kind


def test_a_flow_takes_no_more_steps_than_it_did():
    assert flow.followed(FLOW).dataset["solver_steps"].item() <= ROOM * STEPS


SCRIPT = """
import json, sys
from tests.bench.test_cost import CALLS, PROGRAMS
from tutelage._config import configure
from tutelage.bench.counting import compilations
configure()
found = {}
for name in PROGRAMS:
    with compilations() as compiled:
        CALLS[name]()
    found[name] = compiled.programs
print(json.dumps(found))
"""


def test_verbs_compile_no_more_programs_than_they_did():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=os.environ)
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: count for name, count in found.items() if count > ROOM * PROGRAMS[name]} == {}
