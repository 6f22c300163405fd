"""Weights that were trained elsewhere, as a way to move: from one given place to the next."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import put, table
from tutelage._errors import BadInput
from tutelage._identity import LATER
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics, DrivenStep, Moment, Prepared
from tutelage.dynamics.record import Record
from tutelage.dynamics.staging import staged
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.initial import AbstractEntries
from tutelage.problem.networks import TwoLayer, Weights, host_weights
from tutelage.problem.problem import AbstractProblem, Problem, Start, of_kind


@dataclass(frozen=True)
class Given(AbstractDynamics):
    """Students that are at given places at given times, whoever trained them.

    - `first`: incoming weights (time, unit, dim) or, of several seeds, (seed, time, unit, dim).
    - `second`: outgoing weights (time, unit, output), with a seed axis if `first` has one; those of the problem's
      student, which then must be given there, if None.
    - `times`: increasing; 0, 1, 2, ... if None. All of them are recorded.
    - `biases`: with axes as of `first` without the last; of a problem whose units have them.

    `tutelage.observe` is the short way to it.
    """

    name: ClassVar[str] = "given"
    revision: ClassVar[int] = REVISIONS["given"]
    still: ClassVar[float] = 0.0  # where students stand still they are seen as well

    first: ArrayLike
    second: ArrayLike | None = None
    times: ArrayLike | None = None
    biases: ArrayLike | None = field(default=None, metadata=LATER)

    def __post_init__(self) -> None:
        first = table("Given: first", self.first, "numbers (time, unit, dim), or (seed, time, unit, dim)", axes=(3, 4))
        times = np.arange(first.shape[-3]) if self.times is None else self.times
        times = table("Given: times", times, "a list of numbers", axes=(1,))
        if len(times) != first.shape[-3] or not len(times) or np.any(np.diff(times) <= 0) or times[0] < 0:
            raise BadInput(
                f"Given: first has {first.shape[-3]} places and there are {len(times)} times; as many times were "
                "expected, increasing and none below 0."
            )
        put(self, first=first, times=times)
        if self.second is not None:
            wanted = f"numbers with axes as of first, whose shape is {first.shape}"
            second = table("Given: second", self.second, wanted, axes=(first.ndim,))
            if second.shape[:-1] != first.shape[:-1]:
                raise BadInput(f"Given: second has shape {second.shape}, but {wanted} were expected.")
            put(self, second=second)
        if self.biases is not None:
            wanted = f"numbers {first.shape[:-1]}, one for each row of first"
            biases = table("Given: biases", self.biases, wanted, axes=(first.ndim - 1,))
            if biases.shape != first.shape[:-1]:
                raise BadInput(f"Given: biases has shape {biases.shape}, but {wanted}, were expected.")
            put(self, biases=biases)

    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        problem = of_kind(problem, Problem, self.name)
        path = self._path(problem, len(seeds))
        begin = Start(problem.begin(seeds[0], full=True).teacher, _at(path, 0)) if start is None else start
        return staged(GivenStep(_Path(path, np.asarray(self.times))), problem, seeds, None, begin, full=True)

    def _path(self, problem: Problem, seeds: int) -> Weights:
        """Weights with axes (seed, time, ...)."""
        student, first = problem.student, np.asarray(self.first)
        if not isinstance(student, TwoLayer):
            raise BadInput("Given: the student is a mixture; a two-layer network was expected.")
        first = _with_seeds("first", first, (seeds, student.width, problem.inputs.dim))
        if problem.biased != (self.biases is not None):
            has = "have biases, which are not given" if problem.biased else "have no biases, but some are given"
            raise BadInput(f"Given: the units {has}; pass biases where the student has them, and only there.")
        if self.biases is not None:
            first = np.concatenate([np.reshape(np.asarray(self.biases), (*first.shape[:-1], 1)), first], axis=-1)
        if self.second is not None:
            wanted = (seeds, student.width, student.outputs)
            return host_weights(first, _with_seeds("second", np.asarray(self.second), wanted))
        if isinstance(student.second, AbstractEntries):
            raise BadInput("Given: outgoing weights are neither given nor those of the student; pass second.")
        return host_weights(first, np.broadcast_to(student.second, (*first.shape[:-1], student.outputs)))

    def stops(self, record: Record) -> NDArray[np.float64]:
        return np.asarray(self.times, float)

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        return {"places": len(np.asarray(self.times))}


def _with_seeds(name: str, values: NDArray[Any], wanted: tuple[int, int, int]) -> NDArray[Any]:
    """The weights with a seed axis; others than (seed, time, unit, ...) of these sizes are refused."""
    found = values if values.ndim == 4 else values[None]
    seeds, units, last = wanted
    if (len(found), *found.shape[2:]) != wanted:
        shape = f"({seeds}, {found.shape[1]}, {units}, {last})"
        raise BadInput(f"Given: {name} has shape {found.shape}, but {shape}, (seed, time, unit, ...), was expected.")
    return found


class _Path:
    """Places and times: not a part of any program, and equal to itself only."""

    def __init__(self, weights: Weights, times: NDArray[np.float64]) -> None:
        self.weights, self.times = weights, times


class GivenStep(DrivenStep):
    """From one place to the next."""

    path: _Path = eqx.field(static=True)

    def drive(self, oracle: AbstractOracle, moments: Moment, stop: float) -> Moment:
        weights = _at(self.path.weights, int(np.searchsorted(self.path.times, stop)))
        clock = jax.device_put(np.full(len(moments.clock), stop))
        return moments._replace(weights=weights, clock=clock, time=clock)


def _at(path: Weights, index: int) -> Weights:
    placed: Weights = jax.tree.map(lambda leaf: jax.device_put(np.asarray(leaf)[:, index]), path)
    return placed
