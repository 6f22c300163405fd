"""A problem of the package as exact numbers: activations as forms, weights as fractions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tutelage._checks import instance, whole
from tutelage._errors import BadInput
from tutelage.problem.activations import Activation, hermite
from tutelage.problem.initial import AbstractEntries, AbstractRows
from tutelage.problem.mixture import Mixture
from tutelage.problem.networks import Network, TwoLayer, Weights
from tutelage.problem.problem import Problem, one_kind, refuse_offsets
from tutelage.rigour.balls import Number, Rows, exact_rows
from tutelage.rigour.forms import Form, form_of
from tutelage.rigour.gates import Gate, gate_of


@runtime_checkable
class Ended(Protocol):
    """What a run has: the last weights of each seed, and its teacher, in coordinates of their own."""

    @property
    def final(self) -> Weights: ...

    @property
    def teacher(self) -> Weights: ...


Matrix = Sequence[Sequence[Number]] | NDArray[Any]
Given = Weights | Mapping[str, Matrix | Sequence[Number]] | Matrix
"""Weights as they may be given: incoming ones, or those of both layers."""


class Layers(NamedTuple):
    """Exact weights: a row for each unit, and its outgoing weights."""

    first: Rows
    second: Rows


Gated = tuple[Gate, int]
"""The gate of experts, and the degree of their polynomial."""


@dataclass(frozen=True)
class Networks:
    """A student and a teacher in exact numbers; `dim` inputs, of which rows name the first.

    - `tied`: whether the outgoing weights of student and teacher are tied to the norms of their rows.
    - `gated`: of a mixture, whose rows are all routers and then all experts; the forms are those of the experts.
    - `parts`: what is trained, by the names that the student's network has for it.
    """

    student: Layers
    teacher: Layers
    student_form: Form
    teacher_form: Form
    trains: tuple[str, ...]
    dim: int
    tied: tuple[bool, bool] = (False, False)
    gated: tuple[Gated, Gated] | None = None
    parts: tuple[str, ...] = ()

    @property
    def columns(self) -> int:
        """How many coordinates rows have."""
        return len(self.student.first[0])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Students, teachers, outputs."""
        return len(self.student.first), len(self.teacher.first), len(self.student.second[0])


def networks_of(
    problem: Problem, whose: str, start: Given | Ended | None = None, teacher: Given | None = None, *, seed: int = 0
) -> Networks:
    """The networks of a problem in exact numbers.

    - `start`, `teacher`: weights in place of the problem's own: a matrix of incoming weights, `tt.Weights`, or a
      dictionary with "first" and "second". Entries may be fractions, decimals as text, or doubles. A `start` may be a
      run as well: its last weights and its teacher.
    - `seed`: of a run, or of the problem's own start where that is a law; the doubles are taken as they are.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.rigour.networks import networks_of
    >>> relu = tt.TwoLayer("relu", first=[[1.0, 0.0]])
    >>> networks_of(tt.Problem(tt.Gaussian(3), relu, relu), "example", start=[["1/3", "0.1"]]).student.first
    ((Fraction(1, 3), Fraction(1, 10)),)

    ```
    """
    problem = instance(f"{whose}: problem", problem, Problem, "a tt.Problem")
    student_net, teacher_net = problem.student, problem.teacher
    _refuse_others(problem, whose)
    seed, given = whole(f"{whose}: seed", seed), (student_net.first, student_net.second)
    if isinstance(start, Ended):  # a run, which has frame coordinates of its own
        teacher = _two(start.teacher) if teacher is None else teacher
        start = _of_run(start, seed, whose)
    elif start is None and any(isinstance(part, (AbstractRows, AbstractEntries)) for part in given):
        drawn = problem.drawn(seed)
        start, teacher = _two(drawn.student), _two(drawn.teacher) if teacher is None else teacher
    target = _layers(f"{whose}: teacher", teacher, (teacher_net.first, teacher_net.second))
    own = _layers(f"{whose}: start", start, given)
    for name, layers, net in (("start", own, student_net), ("teacher", target, teacher_net)):
        came = len(layers.first), len(layers.second), len(layers.second[0])
        if came != (net.rows, net.width, net.outputs):
            raise BadInput(f"{whose}: the {name} has {came[0]} rows and outgoing weights {came[1:]}, but the problem "
                           f"has {net.width} units, {net.rows} rows and {net.outputs} outputs.")  # fmt: skip
    own, target = _padded(own, target)
    if len(own.first[0]) > problem.inputs.dim:
        raise BadInput(f"{whose}: rows have {len(own.first[0])} entries, but inputs have {problem.inputs.dim}.")
    return Networks(
        own, target, _form(student_net), _form(teacher_net), student_net.layers, problem.inputs.dim,
        tied=(_tied(student_net), _tied(teacher_net)), gated=_gated(student_net, teacher_net), parts=student_net.trains,
    )  # fmt: skip


def _refuse_others(problem: Problem, whose: str) -> None:
    """Refuse what has no enclosed loss."""
    for net in (problem.student, problem.teacher):
        if isinstance(net, TwoLayer) and not isinstance(net.activation, Activation):
            raise BadInput(f"{whose}: the units of a network have several activations; one for all was expected.")
    refuse_offsets(problem, whose)
    if problem.penalty is not None:
        raise BadInput(f"{whose}: the problem has a penalty on the weights; leave it out.")


def _form(net: Network) -> Form:
    """The activation's; of a mixture that of its experts."""
    if isinstance(net, Mixture):
        return form_of(hermite(net.hidden.degree))
    assert isinstance(net, TwoLayer)
    return form_of(one_kind(net.activation))


def _tied(net: Network) -> bool:
    return isinstance(net, TwoLayer) and net.tied


def _gated(student: Network, teacher: Network) -> tuple[Gated, Gated] | None:
    if not (isinstance(student, Mixture) and isinstance(teacher, Mixture)):
        return None
    one, two = ((gate_of(net.hidden.gate), net.hidden.degree) for net in (student, teacher))
    return one, two


def _two(weights: Weights) -> dict[str, Any]:
    return {"first": weights.first, "second": weights.second}


def _of_run(run: Ended, seed: int, whose: str) -> dict[str, Any]:
    """The last weights of a seed, by its place among those of the run."""
    if not seed < len(run.final.first):
        raise BadInput(f"{whose}: the run has {len(run.final.first)} seeds, but seed is {seed}; it counts from 0.")
    return {"first": run.final.first[seed], "second": run.final.second[seed]}


def _layers(name: str, given: Any, own: tuple[Any, Any]) -> Layers:
    """Weights that are given, and for what is not given the problem's own."""
    first, second = own
    if isinstance(given, Weights):
        first, second = given.first, given.second
    elif isinstance(given, Mapping):
        given = _stacked(name, given)
        if wrong := set(given) - {"first", "second"}:
            raise BadInput(f"{name} has {sorted(map(str, wrong))}, but only first and second are weights.")
        first, second = given.get("first", first), given.get("second", second)
    elif given is not None:
        first = given
    if isinstance(first, AbstractRows) or isinstance(second, AbstractEntries):
        raise BadInput(f"{name}: weights of the problem are a law; give first and second, or neither and a seed.")
    return Layers(exact_rows(f"{name}: first", _listed(first)), exact_rows(f"{name}: second", _columns(second)))


def _stacked(name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Routers and experts as the incoming weights that they are."""
    if not {"routers", "experts"} & set(given):
        return given
    if "first" in given or not {"routers", "experts"} <= set(given):
        raise BadInput(f"{name}: routers and experts are given together, or first with the rows of both.")
    rest = {key: value for key, value in given.items() if key not in ("routers", "experts")}
    return rest | {"first": [*_listed(given["routers"]), *_listed(given["experts"])]}


def _listed(value: Any) -> Any:
    """Arrays of any kind as lists."""
    return np.asarray(value).tolist() if hasattr(value, "shape") else value


def _columns(value: Any) -> Any:
    """A list of outgoing weights is one output."""
    listed = _listed(value)
    flat = isinstance(listed, (list, tuple)) and not any(isinstance(row, (list, tuple)) for row in listed)
    return [[entry] for entry in listed] if flat else listed


def _padded(*several: Layers) -> tuple[Layers, ...]:
    """With rows of one length."""
    most = max(len(layers.first[0]) for layers in several)
    none = Fraction(0)
    return tuple(
        layers._replace(first=tuple((*row, *[none] * (most - len(row))) for row in layers.first)) for layers in several
    )
