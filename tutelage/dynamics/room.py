"""How much memory a run takes, known from its sizes before anything of it is made: what cannot be held is refused.

The figures are bounds of what is held at the same time, by a run and by the programs that the compiler makes of it:
copies and tables were counted, and a test asks the compiler (`tests/dynamics/test_room.py`).
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from tutelage._limits import fits
from tutelage.dynamics.base import Prepared
from tutelage.dynamics.driver import chunk_size, lane_size
from tutelage.dynamics.own import numbers_of
from tutelage.dynamics.record import Observable
from tutelage.dynamics.snapshot import Snapshot
from tutelage.dynamics.staging import Data
from tutelage.problem.clusters import Clustered
from tutelage.problem.initial import AbstractRows
from tutelage.problem.problem import Problem

Room = dict[str, float]
"""Bytes, by what to do to need fewer."""

NUMBER = 8
SEED = 4096  # bytes of a seed's small objects, however small its weights are
COPIES = 12
"""Of a student's weights: its start, where it is, its gradient, the next place."""
TABLES = 60
"""Of pairs of units, students and teachers, in one evaluation; most in the careful form, near an optimum."""
NOTED = 6
"""Copies of a student's weights at every record of a chunk: as they came, with those before, padded, to be measured."""
DRAWN = 3  # copies of data: as drawn, stacked, and on the device
RECORDED = 3  # copies of records: as they came, joined, and masked
CLOSER = 2**28  # bytes that records may take, by a bound, without being counted


def weights_of(problem: Problem, columns: int) -> int:
    """How many weights a student has in so many coordinates."""
    student = problem.student
    return student.rows * columns + student.width * student.outputs


def columns_of(problem: Problem, *, full: bool = False) -> int:
    """How many coordinates there are."""
    law = problem.student.first
    means = len(law.mean) if isinstance(law, AbstractRows) else 0
    dim, given = problem.law.dim, problem.teacher.rows + means
    if kept := problem.inputs.kept:  # the frame then has all coordinates that were given
        own = np.array(law.mean) if isinstance(law, AbstractRows) else np.asarray(law)
        given = max(given, kept, np.asarray(problem.teacher.first).shape[-1], own.shape[-1])
    return dim if full else min(problem.student.rows + given + problem.biased, dim)


def of_network(problem: Problem, seeds: int, columns: int) -> Room:
    """Of a student's weights in so many coordinates, and what is made of them in a step."""
    weights, units = weights_of(problem, columns), problem.student.rows + problem.teacher.rows
    held = float(seeds) * NUMBER * weights
    evaluated = min(seeds, lane_size(weights, seeds) * (os.cpu_count() or 1)) * NUMBER * units * (units + columns)
    size = seeds * SEED + held * (COPIES + NOTED * chunk_size(held)) + TABLES * float(evaluated)
    return {f"ask for fewer than {seeds} seeds" if seeds > 1 else "use fewer units or dimensions": size}


def of_data(problem: Problem, seeds: int, data: Data) -> Room:
    """Of the samples that a student descends on."""
    if data is None:
        return {}
    columns = problem.law.dim + problem.student.outputs + problem.teacher.rows
    if isinstance(data, int):
        return {f"draw fewer than {data} samples": DRAWN * NUMBER * float(seeds) * data * columns}
    return {"use fewer samples": DRAWN * NUMBER * float(np.size(data[0]))}


def of_neurons(problem: Clustered, seeds: int, notes: int) -> Room:
    """Of single neurons as their overlaps with the frame, with so many tables of these."""
    student, rows = problem.student, len(problem.frame)
    units = student.count * student.width if student else 1
    table = float(units) * rows * (notes + problem.teacher.orders)
    return {"ask for fewer seeds, neurons or times": seeds * (SEED + COPIES * NUMBER * table)}


def of_records(prepared: Prepared, observables: Sequence[Observable], records: int) -> Room:
    """Of what is recorded. Few records of few weights are not looked at any closer: that takes some time."""
    seeds, weights = len(prepared.keys), sum(leaf.size for leaf in jax.tree.leaves(prepared.start))
    moments = RECORDED * NUMBER * float(records)
    if moments * len(observables) * weights < CLOSER:
        return {}
    cut = lambda tree: jax.tree.map(lambda leaf: np.asarray(leaf)[0], tree)  # noqa: E731
    oracle = cut(prepared.oracle) if prepared.batched else prepared.oracle
    view = Snapshot(cut(prepared.start), prepared.teacher, cut(prepared.start), oracle)
    sizes = _entries(observables, view)
    largest = max(sizes, key=lambda name: sizes[name], default="")
    return {f"ask for fewer records, or leave out {largest!r}": moments * seeds * sum(sizes.values())}


def _entries(observables: Sequence[Observable], view: Snapshot) -> dict[str, int]:
    """How many numbers each is, without computing one; what they share is looked at once."""
    arrays, rest = eqx.partition((view.weights, view.teacher, view.start, view.oracle), eqx.is_array)

    def seen(own: Any) -> dict[str, Any]:
        shared = Snapshot(*eqx.combine(own, rest))
        return {each.name: numbers_of(f"The observable {each.name!r}", each.measure, shared) for each in observables}

    return {name: int(np.prod(each.shape, dtype=float)) for name, each in jax.eval_shape(seen, arrays).items()}


def hold(room: Mapping[str, float]) -> None:
    """Refuse a run that this machine cannot hold.

    ```python
    >>> from tutelage.dynamics.room import hold
    >>> hold({"ask for fewer than 1000 seeds": 1e3, "draw fewer than 9 samples": 2e15})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tutelage._errors.BadInput: This run takes about 1.86e+06 GiB, but this machine has ... GiB; draw fewer than 9
    samples.

    ```
    """
    if room:
        fits("This run", sum(room.values()), max(room, key=lambda remedy: room[remedy]))
