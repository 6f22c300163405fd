"""A guard without a clock: what a first call compiles, what steps a solver takes, what a gradient counts.

Every bound is one that holds today, with a little room. Lower one when its cost has come down.
"""

import json
import subprocess
import sys

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage.bench.cases import flow
from tutelage.bench.peers import plain_jax
from tutelage.bench.relu import problem

PROGRAMS = {"descent": 0, "flow": 0, "sgd": 0}
"""The most programs that each verb compiles, one after the other in a new process, and all that is read with them."""

SCRIPT = """
import json, sys
from tutelage._config import configure
from tutelage.bench.cases import descent, flow, sgd
from tutelage.bench.counting import compilations
configure()
found = {}
for name, call in {
    "descent": lambda: descent.ours(descent.Task(30, 1, 200, 200)),
    "flow": lambda: flow.ours(flow.Task(20, 20.0, 20, 1e-8)),
    "sgd": lambda: sgd.ours(sgd.Task(100, 8), 100),
}.items():
    with compilations() as compiled:
        call()
    found[name] = compiled.programs
print(json.dumps(found))
"""
