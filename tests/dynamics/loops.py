"""Loops built by hand, for tests of what happens between two chunks."""

import numpy as np

from tutelage.dynamics.base import Prepared
from tutelage.dynamics.driver import Loop
from tutelage.dynamics.record import Record


def make_loop(step, oracle, *, teacher, start, keys=None, batched=False, events=(), crossings=(), identity="", **rest):
    keys = np.zeros(len(start.first), np.uint64) if keys is None else keys
    record = Record(events=tuple(events), crossings=tuple(crossings))
    return Loop(Prepared(step, oracle, batched, teacher, start, keys), record=record, identity=identity, **rest)
