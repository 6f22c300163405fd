"""Definition 1 along any run of `soft_moe`: its errors as observables, and Condition 2 and T_c of (14) from them.

A level l has the pair of Eq. (6) that is the next to be learned after `l - 1` others. `Record(own=ERRORS)` records the
errors of all levels; what looks back over a run, the largest sums so far, T_c and Condition 2, is made of the records:
`induction(run)`. `papers/soft_moe/induction.py` has the same for the claims, word for word and by index sets.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from tutelage import BadInput
from tutelage.dynamics import Observable, Snapshot
from tutelage.oracle import units
from tutelage.papers.soft_moe.events import RECOVERED
from tutelage.papers.soft_moe.induction import BETA_6, DELTA, LOG
from tutelage.trajectory import Run

LEVEL = ("level",)


class _Level(NamedTuple):
    """Who is who at each level; `elsewhere` has the pairs up to it with teachers that are not theirs."""

    before: Bool[Array, "level student"]
    own: Bool[Array, "level student"]
    target: Bool[Array, "level teacher"]
    elsewhere: Bool[Array, "level student teacher"]

    @property
    def unused(self) -> Bool[Array, "level student"]:
        return ~(self.before | self.own)


def _levels(view: Snapshot) -> _Level:
    """The greedy matching of Eq. (6) of the start's inner products."""
    experts, taught = jnp.split(view.start.first, 2)[1], units(view.teacher.first).expert
    table = (experts @ taught.T) * view.teacher.second[:, 0]
    students, teachers = table.shape
    parts: list[tuple[Array, ...]] = []
    met, away = jnp.zeros(students, bool), jnp.zeros((students, teachers), bool)
    for _ in range(min(students, teachers)):
        cell = jnp.argmax(table)
        student, teacher = jnp.arange(students) == cell // teachers, jnp.arange(teachers) == cell % teachers
        away |= student[:, None] & ~teacher
        parts.append((met, student, teacher, away))
        met |= student
        table = jnp.where(student[:, None] | teacher, -jnp.inf, table)
    return _Level(*(jnp.stack(part) for part in zip(*parts, strict=True)))


def _top(table: Float[Array, "student other"], where: Bool[Array, "level student other"]) -> Float[Array, " level"]:
    """The largest size among the cells of each level; 0 of none."""
    return jnp.max(jnp.where(where, jnp.abs(table), 0.0), axis=(1, 2))


class _Seen(NamedTuple):
    """All overlaps, in the paper's letters (Eq. 9)."""

    gamma1: Array
    gamma2: Array
    zeta1: Array
    zeta2: Array
    i1: Array
    i2: Array
    i3: Array


def _seen(view: Snapshot) -> _Seen:
    (v, w), (taught_v, taught_w) = units(view.weights.first), units(view.teacher.first)
    return _Seen(v @ taught_v.T, w @ taught_w.T, v @ taught_w.T, w @ taught_v.T, v @ v.T, w @ w.T, v @ w.T)


def _of_unused(name: str, view: Snapshot) -> Float[Array, " level"]:
    """eps_1 and eps_3: students that are learned neither before nor now, with any teacher."""
    return _top(getattr(_seen(view), name), _levels(view).unused[:, :, None])


def _of_own(name: str, view: Snapshot) -> Float[Array, " level"]:
    """eps_2 and eps_4: the student of the level, with the other teachers."""
    at = _levels(view)
    return _top(getattr(_seen(view), name), at.own[:, :, None] & ~at.target[:, None])


def _with_itself(who: str, view: Snapshot) -> Float[Array, " level"]:
    """eps_5 and eps_(B,3): `|v_i.w_i|`."""
    return jnp.max(jnp.where(getattr(_levels(view), who), jnp.abs(jnp.diagonal(_seen(view).i3)), 0.0), axis=1)


def _forward(view: Snapshot) -> Float[Array, " level"]:
    seen, at = _seen(view), _levels(view)
    tables = [_top(table, at.elsewhere) for table in (seen.gamma1, seen.gamma2)]
    crosswise = [_top(table, at.before[:, :, None]) for table in (seen.zeta1, seen.zeta2)]
    return jnp.max(jnp.stack([*tables, *crosswise]), axis=0)


def _among(view: Snapshot) -> Float[Array, " level"]:
    seen, at = _seen(view), _levels(view)
    apart = ~jnp.eye(len(seen.i1), dtype=bool)
    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(table) * apart) for table in (seen.i1, seen.i2, seen.i3)]))
    return jnp.full(len(at.own), largest)


def _backward(view: Snapshot) -> Float[Array, " level"]:
    seen, at = _seen(view), _levels(view)
    crosswise = [_top(table, ~at.before[:, :, None]) for table in (seen.zeta1, seen.zeta2)]
    return jnp.max(jnp.stack([*crosswise, _among(view), _of_own("gamma1", view)]), axis=0)


def _pair(name: str, view: Snapshot) -> Float[Array, " level"]:
    at = _levels(view)
    return jnp.sum(jnp.where(at.own[:, :, None] & at.target[:, None], getattr(_seen(view), name), 0.0), axis=(1, 2))


def _observable(name: str, measure: Callable[[Snapshot], Array], words: str) -> Observable:
    return Observable(name, measure, LEVEL, words)


ERRORS: tuple[Observable, ...] = (
    _observable("eps_1", partial(_of_unused, "gamma1"), "largest |gamma1| of an unused student"),
    _observable("eps_2", partial(_of_own, "gamma1"), "largest |gamma1| of the student with other teachers"),
    _observable("eps_3", partial(_of_unused, "gamma2"), "largest |gamma2| of an unused student"),
    _observable("eps_4", partial(_of_own, "gamma2"), "largest |gamma2| of the student with other teachers"),
    _observable("eps_5", partial(_with_itself, "own"), "|v.w| of the student"),
    _observable("eps_forward", _forward, "largest forward error, of what is learned"),
    _observable("eps_among", _among, "largest overlap of two students"),
    _observable("eps_backward", _backward, "largest backward error, of what is not yet learned"),
    _observable("eps_idle", partial(_with_itself, "unused"), "largest |v.w| of an unused student"),
    _observable("gamma_router", partial(_pair, "gamma1"), "overlap of the pair's routers"),
    _observable("gamma_expert", partial(_pair, "gamma2"), "overlap of the pair's experts"),
)
"""Definition 1 at every level, and the overlaps of the level's own pair: `tt.Record(times, own=ERRORS)`."""


def induction(run: Run, *, delta: float = DELTA, beta: float = BETA_6) -> xr.Dataset:
    """T_c of (14) and Condition 2 at the records of a run that has `ERRORS`.

    - `bound`, an attribute: `m^2 / (delta_P sqrt(d))`.
    - `sum_1`, `sum_2` (seed, time, level): the sums of Definition 1, the largest errors so far.
    - `t_c` (seed, level): the first record at which an error of (14) is above `beta` times its bound, as the proofs
      use it; nan if there is none.
    - `condition_2` (seed, level): whether Condition 2 is met at the records: the pairs before are nearly perfect from
      `5 log d` after their recovery on, the others are small until the last of them is, and forward errors are small.
      It is empty, and so true, at level 1.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.papers.soft_moe.observed import ERRORS, induction
    >>> study = tt.papers.soft_moe(dim=10**8, teachers=2, students=4, init="orthonormal", until=2000.0)
    >>> run = study.flow(record=tt.Record(100, own=ERRORS))
    >>> found = induction(run)
    >>> run.eps_3.dims, found["t_c"].dims, bool(found["condition_2"].values[0, 0])
    (('seed', 'time', 'level'), ('seed', 'level'), True)

    ```
    """
    data = run.dataset
    missing = [one.name for one in ERRORS if one.name not in data]
    if missing:
        raise BadInput(
            f"The run has not recorded {missing[0]}; ask for record=tt.Record(times, own=ERRORS), with ERRORS of "
            "tutelage.papers.soft_moe.observed."
        )
    students, dim = np.asarray(run.start.first).shape[1] // 2, run.problem.inputs.dim
    bound, near = students**2 / (delta * math.sqrt(dim)), students**7 / (delta**3 * dim**1.5)
    sums = _sums(data)
    late = _too_large(data, sums["sum_2"], students, beta, bound)
    t_c = data["time"].where(late).min("time")
    met = _condition_2(data, sums["sum_1"], bound, near, beta * students**2 / math.sqrt(dim), LOG * math.log(dim))
    found = sums | {"t_c": t_c, "condition_2": (("seed", "level"), met)}
    return xr.Dataset(found, attrs={"bound": bound, "delta_P": delta, "beta_6": beta})


def _largest(data: xr.Dataset, *names: str) -> xr.DataArray:
    return xr.concat([abs(data[name]) for name in names], "error").max("error")


def _sums(data: xr.Dataset) -> dict[str, xr.DataArray]:
    """The largest so far, of the errors without and with those of unused students."""
    axis = data["eps_4"].get_axis_num("time")
    now = {"sum_1": _largest(data, "eps_4", "eps_backward", "eps_forward")}
    now["sum_2"] = _largest(data, "eps_4", "eps_backward", "eps_forward", "eps_1", "eps_3")
    return {name: part.copy(data=np.maximum.accumulate(part.values, axis)) for name, part in now.items()}


def _too_large(data: xr.Dataset, total: xr.DataArray, students: int, beta: float, bound: float) -> xr.DataArray:
    """Where any of the errors of (14) is."""
    cube = students * total**3
    plain = _largest(data, "eps_backward", "eps_1", "eps_3", "eps_4") > beta * bound
    own = data["eps_5"] >= beta * (cube + data["eps_backward"] * data["gamma_expert"] ** 2)
    return plain | (data["eps_idle"] >= beta * cube) | own


def _condition_2(
    data: xr.Dataset, total: xr.DataArray, bound: float, near: float, few: float, wait: float
) -> NDArray[np.bool_]:
    """(seed, level); arrays are (seed, level, time) here."""
    pick = {name: data[name].transpose("seed", "level", "time").values for name in [one.name for one in ERRORS]}
    time, small = data["time"].values, total.transpose("seed", "level", "time").values <= bound
    router, expert = pick["gamma_router"], pick["gamma_expert"]
    ends = _first(time, expert >= 1 - near)
    both = np.maximum(_first(time, router >= RECOVERED), _first(time, expert >= RECOVERED))
    settled = time >= np.maximum(ends, both + wait)[..., None]
    perfect = np.minimum(router, expert) >= 1 - near
    others = np.max([np.abs(pick[n]) for n in ("eps_1", "eps_2", "eps_3", "eps_4", "gamma_router", "gamma_expert")], 0)
    met = np.ones(ends.shape, bool)
    for level in range(1, ends.shape[1]):
        kept = perfect[:, :level] | ~(settled[:, :level] & small[:, level, None])
        before = (others[:, level] <= few) | (time > ends[:, level - 1, None])
        forward = (pick["eps_forward"][:, level] <= bound) | ~small[:, level]
        met[:, level] = kept.all((1, 2)) & before.all(1) & forward.all(1)
    return met


def _first(time: NDArray[np.float64], flags: NDArray[np.bool_]) -> NDArray[np.float64]:
    """When a flag is first up, along the last axis; infinite if never."""
    return np.where(flags.any(-1), time[flags.argmax(-1)], np.inf)
