"""Laws of online SGD: the few coordinates that the package keeps against SGD written out in NumPy.

Every case is run with thousands of seeds on both sides, and all inner products and outgoing weights after the last
update are compared by three tests that hold whatever their distribution is: Kolmogorov-Smirnov (shape), Mann-Whitney
(location) and Mood (spread). The smallest p-value times the number of tests must be above `LEVEL`, which then bounds
the rate of false alarms of the whole suite. Seeds are fixed: what passes goes on passing.

    python benchmarks/laws.py                all cases, then every planted fault, which must be seen
    python benchmarks/laws.py --plant NAME   one planted fault

Up to a dimension of 200 the loop in NumPy draws every input with all its entries. Beyond, it keeps the coordinates that
any weight has ever had, and of a new batch what is orthogonal to all of them by its Gram matrix, a Wishart matrix.
"""

import argparse
import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import special, stats

import tutelage as tt
from tutelage.dynamics import online
from tutelage.dynamics.online import OnlineStep
from tutelage.dynamics.random import keys_of

Numbers = Any
LEVEL = 1e-4
COUNT = 20_000
UNITS, TEACHERS = 2, 2
FRAME = UNITS + TEACHERS
DIRECT = 200
MOMENTUM = 0.8
AHEAD = 2  # updates before the spare columns are used up
FAR = 10**9

NUMPY: dict[str, tuple[Callable[[Numbers], Numbers], Callable[[Numbers], Numbers]]] = {
    "relu": (lambda z: np.maximum(z, 0), lambda z: (z > 0).astype(float)),
    "abs": (np.abs, np.sign),
    "erf": (special.erf, lambda z: 2 / np.sqrt(np.pi) * np.exp(-(z**2))),
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "he2": (lambda z: z**2 - 1, lambda z: 2 * z),
    "linear": (lambda z: z, np.ones_like),
}


def halving(n: Numbers) -> Numbers:
    """Factors 1, 1/2, 1/4: those of the next update are another matter."""
    return 0.5**n


@dataclass(frozen=True)
class Case:
    """One setting of online SGD, in `beyond` dimensions more than the frame.

    With `momentum` the optimiser is optax's, which keeps a vector for each unit; it has no schedule beside it here.
    """

    name: str
    batch: int
    beyond: int
    noise: float = 0.0
    momentum: bool = False
    schedule: bool = False
    outputs: int = 1
    dtype: str = "float64"
    steps: int = 3

    @property
    def title(self) -> str:
        parts = [self.name, f"batch {self.batch}", f"frame + {self.beyond:g}", f"{self.steps} updates"]
        parts += [word for word in ("momentum", "schedule") if getattr(self, word)]
        parts += [f"noise {self.noise:g}"] if self.noise else []
        return ", ".join(parts + ([self.dtype] if self.dtype != "float64" else []))

    @property
    def dim(self) -> int:
        return FRAME + (UNITS if self.momentum else 0) + self.beyond

    @property
    def step(self) -> float:
        """So that noise from outside the frame, which goes with the dimension, moves weights by a few tenths."""
        gentle = 0.25 if self.name == "he2" else 1.0
        return gentle * 0.3 * min(1.0, float(np.sqrt(2 * self.batch / self.dim)))

    @functools.cached_property
    def problem(self) -> tt.Problem:
        draw = np.random.default_rng(3)
        first = draw.standard_normal((UNITS, FRAME)) / 2
        return tt.Problem(
            inputs=tt.Gaussian(self.dim),
            teacher=tt.TwoLayer(self.name, first=[[1.0, 0.0], [0.6, 0.8]], second=np.ones((TEACHERS, self.outputs))),
            student=tt.TwoLayer(self.name, first=first, second=1.0 + 0.3 * draw.standard_normal((UNITS, self.outputs))),
            noise=self.noise,
        )

    def dynamics(self, fault: float = 1.0, momentum: float = MOMENTUM) -> tt.Sgd:
        if self.momentum:
            pace: dict[str, Any] = {"optimiser": optax.sgd(fault * self.step, momentum=momentum)}
        else:
            pace = {"step": fault * self.step, "schedule": halving if self.schedule else None}
        return tt.Sgd(steps=self.steps, batch=self.batch, dtype=self.dtype, **pace)  # type: ignore[arg-type]


def ours(case: Case, count: int = COUNT, **faults: Any) -> Numbers:
    """By the package: one seed is prepared as a run would be, and begun with as many keys as there are replicas."""
    with mock.patch.object(online, "frame_of", _narrow):
        prepared = case.dynamics(**faults).prepare(case.problem, [0])
    start = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), prepared.start)
    keys = jnp.asarray(np.asarray(keys_of(list(range(count)))))
    end = _replicas(prepared.step, prepared.oracle, start, keys, case.steps)
    return quantities(np.asarray(end.first), np.asarray(end.second), np.asarray(prepared.teacher.first))


@eqx.filter_jit
def _replicas(step: OnlineStep, oracle: Any, start: tt.Weights, keys: Any, steps: int) -> tt.Weights:
    def one(key: Any) -> tt.Weights:
        begin = step.seeded(step.begin(oracle, start), key)
        return jax.lax.fori_loop(0, steps, lambda _, now: _taken(step, oracle, now), begin).weights

    # In blocks: all at once would need gigabytes.
    return jax.lax.map(one, keys, batch_size=2000)


def _taken(step: OnlineStep, oracle: Any, moment: Any) -> Any:
    moment = jax.lax.cond(step.spent(moment), lambda now: step.supplied(now), lambda now: now, moment)
    return step.step(oracle, moment, moment.clock)[0]


def _narrow(dim: int, rows: int, columns: int, batch: int, *, learns: bool = True) -> online.Frame:
    """A frame wherever the space has more dimensions: where it has few more, it would be quicker to keep all."""
    spare = AHEAD * min(batch, rows) if learns and dim > columns else 0
    return online.Frame(columns + spare, dim - columns if spare else 0, AHEAD)


def written_out(case: Case, count: int = COUNT) -> Numbers:
    """By a loop in NumPy: inputs, labels, gradients, updates."""
    return np.concatenate([_written_out(case, 2000, seed) for seed in range(count // 2000)])


def _written_out(case: Case, count: int, seed: int) -> Numbers:
    draw = np.random.default_rng([11, seed])
    s, slope = NUMPY[case.name]
    teacher, student = case.problem.teacher, case.problem.student
    known = case.dim if case.dim <= DIRECT else FRAME
    target = np.pad(teacher.first, ((0, 0), (0, known - teacher.first.shape[1])))
    first = np.repeat(np.pad(student.first, ((0, 0), (0, known - FRAME)))[None], count, 0)
    second = np.repeat(student.second[None], count, 0)
    speeds = [np.zeros_like(first), np.zeros_like(second)]
    for n in range(case.steps):
        x = draw.standard_normal((count, case.batch, first.shape[2]))
        if case.dim > DIRECT:
            x = np.concatenate([x, _beyond(draw, count, case.batch, case.dim - first.shape[2])], axis=2)
            wider = [(0, 0), (0, 0), (0, case.batch)]
            first, speeds[0] = np.pad(first, wider), np.pad(speeds[0], wider)
            target = np.pad(target, wider[1:])
        pre = x @ first.transpose(0, 2, 1)
        labels = s(x @ target.T) @ teacher.second
        labels = labels + case.noise * draw.standard_normal(labels.shape)
        residual = s(pre) @ second - labels
        errors = slope(pre) * (residual @ second.transpose(0, 2, 1))
        slopes = [errors.transpose(0, 2, 1) @ x / case.batch, s(pre).transpose(0, 2, 1) @ residual / case.batch]
        kept = MOMENTUM if case.momentum else 0.0
        speeds = [kept * speed + each for speed, each in zip(speeds, slopes, strict=True)]
        size = case.step * (halving(n) if case.schedule else 1.0)
        first, second = first - size * speeds[0], second - size * speeds[1]
    return quantities(first, second, target)


def _beyond(draw: np.random.Generator, count: int, batch: int, degrees: int) -> Numbers:
    """Gaussian vectors of `degrees` entries in `batch` coordinates of their own: the triangular factor of their Gram
    matrix (Bartlett)."""
    factor = np.tril(draw.standard_normal((count, batch, batch)), -1)
    factor[:, np.arange(batch), np.arange(batch)] = np.sqrt(draw.chisquare(degrees - np.arange(batch), (count, batch)))
    return factor


def quantities(first: Numbers, second: Numbers, target: Numbers) -> Numbers:
    """Inner products with teachers, among units, and outgoing weights."""
    gram = first @ first.swapaxes(1, 2)
    parts = [first @ target.T, gram[:, *np.triu_indices(gram.shape[1])], second]
    return np.concatenate([part.reshape(len(first), -1) for part in parts], axis=1)


def p_values(left: Numbers, right: Numbers) -> list[float]:
    """Three for each quantity. Rounded: with one example a unit may be left as it was, and equal must be equal."""
    found = []
    for one, other in zip(left.round(12).T, right.round(12).T, strict=True):
        if np.ptp(np.concatenate([one, other])) == 0:
            continue
        found.append(stats.ks_2samp(one, other, method="asymp").pvalue)
        found.append(stats.mannwhitneyu(one, other, method="asymptotic").pvalue)
        found.append(stats.mood(one, other).pvalue)
    return [float(p) for p in found]


CASES = (
    # Every two levels of activation, batch, dimension, noise, momentum and schedule meet in one of these.
    Case("relu", 1, 0, noise=1.0),
    Case("relu", 8, 1, momentum=True),
    Case("relu", 64, FAR, schedule=True, noise=1.0),
    Case("relu", 8, FAR),
    Case("erf", 1, 1, schedule=True),
    Case("erf", 8, FAR, momentum=True, noise=1.0),
    Case("erf", 64, 0),
    Case("erf", 64, 1, noise=1.0, schedule=True),
    Case("abs", 1, FAR, momentum=True, noise=1.0),
    Case("abs", 8, 0, schedule=True, noise=1.0),
    Case("abs", 64, 1),
    Case("tanh", 1, FAR, schedule=True),
    Case("tanh", 8, 0),
    Case("tanh", 64, 1, momentum=True, noise=1.0),
    Case("he2", 1, 1, noise=1.0),
    Case("he2", 8, FAR, schedule=True),
    Case("he2", 64, 0, momentum=True),
    # Others: two outputs, single precision, and dimensions between.
    Case("relu", 8, 8, outputs=2, noise=1.0),
    Case("relu", 8, 8, dtype="float32"),
    Case("linear", 1, 60, noise=0.5),
    # Many examples, so that a step that is wrong by one hundredth is seen.
    Case("relu", 256, 1, steps=6),
    Case("erf", 256, 0, steps=6, noise=0.25),
)


@contextlib.contextmanager
def _none() -> Iterator[None]:
    yield


def _silent(original: Any) -> Any:
    """Labels without noise."""

    def sample(self: OnlineStep, *seen: Any) -> Any:
        return original(eqx.tree_at(lambda step: step.noise, self, None), *seen)

    return sample


@dataclass(frozen=True)
class Plant:
    """A fault: what it changes in the package, or in what it is asked, and the cases that must see it."""

    cases: tuple[Case, ...]
    patch: Callable[[], Any] = _none
    asked: tuple[tuple[str, Any], ...] = ()


def _where(**facts: Any) -> tuple[Case, ...]:
    return tuple(case for case in CASES if all(getattr(case, name) == value for name, value in facts.items()))


def _patched(name: str, make: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: mock.patch.object(OnlineStep, name, make(getattr(OnlineStep, name)))


PLANTS = {
    "a step that is 1 % too long": Plant(_where(batch=256), asked=(("fault", 1.01),)),
    "labels without noise": Plant(_where(noise=1.0, batch=8), _patched("_sample", _silent)),
    "a schedule that is one ahead": Plant(
        _where(schedule=True),
        lambda: mock.patch.object(
            online, "step_size", lambda size, schedule, clock: size * (schedule(clock + 1) if schedule else 1.0)
        ),
    ),
    "a momentum of 0.7 in place of 0.8": Plant(_where(momentum=True), asked=(("momentum", 0.7),)),
    "a part outside the frame that is 5 % too large": Plant(
        (Case("relu", 8, FAR), Case("erf", 8, FAR, momentum=True, noise=1.0)),
        _patched("_outside", lambda original: lambda self, *args: 1.05 * original(self, *args)),
    ),
    "units that are independent outside the frame": Plant(
        (Case("relu", 8, FAR), Case("relu", 64, FAR, schedule=True, noise=1.0)),
        lambda: mock.patch.object(
            online, "factor", lambda errors: jnp.diag(jnp.sqrt(jnp.sum(errors**2, axis=1)))
        ),
    ),
    "a dimension too many outside the frame": Plant(
        _where(beyond=1, name="relu"),
        lambda: mock.patch.object(
            online, "bartlett", lambda key, step, columns, count: _BARTLETT(key, step, columns + 1, count)
        ),
    ),
}  # fmt: skip
_BARTLETT = online.bartlett


@functools.cache
def reference(case: Case, count: int = COUNT) -> Numbers:
    return written_out(case, count)


def compared(case: Case, count: int = COUNT, **faults: Any) -> list[float]:
    return p_values(ours(case, count, **faults), reference(case, count))


def planted(name: str, tests: int, count: int = COUNT) -> dict[str, Any]:
    """Whether a fault is seen: p-values times the number of tests of the whole suite, as it would have to be seen."""
    plant, seen = PLANTS[name], {}
    for case in plant.cases:
        jax.clear_caches()  # what was compiled does not have the fault
        with plant.patch():
            seen[case.title] = min(compared(case, count, **dict(plant.asked))) * tests
    jax.clear_caches()
    shown = {title: float(f"{p:.3g}") for title, p in seen.items()}
    return {"seen": min(seen.values()) < LEVEL, "p_times_tests": shown}


def main(names: list[str]) -> int:
    begun, found = time.process_time(), {}
    if not names:
        for case in CASES:
            found[case.title] = compared(case)
            print(f"{case.title}: smallest p of {len(found[case.title])}: {min(found[case.title]):.3g}", flush=True)
    tests = sum(map(len, found.values())) or len(CASES) * 3 * 12
    lowest = min((p for each in found.values() for p in each), default=1.0) * tests
    plants = {}
    for name in names or PLANTS:
        plants[name] = planted(name, tests)
        print(f"{name}: {'seen' if plants[name]['seen'] else 'NOT SEEN'}", flush=True)
    good = lowest > LEVEL and all(each["seen"] for each in plants.values())
    if not names:
        from _measure import write

        write(
            "laws",
            {
                **{"replicas": COUNT, "cases": len(CASES), "tests": tests, "false_alarm_rate": LEVEL},
                **{"smallest_p_times_tests": lowest, "passed": lowest > LEVEL, "planted_faults": plants},
                **{"smallest_p": {title: float(f"{min(each):.3g}") for title, each in found.items()}},
                "cpu_minutes": round((time.process_time() - begun) / 60, 1),
            },
        )
    return int(not good)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Laws of online SGD against loops in NumPy.")
    parser.add_argument("--plant", choices=list(PLANTS), action="append", default=[])
    sys.exit(main(parser.parse_args().plant))
