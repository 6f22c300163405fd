"""Problem = Gaussian inputs + teacher + student + label noise + penalty."""

import abc
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import jax
import numpy as np
from jaxtyping import PyTree
from numpy.random import Generator

from tutelage._checks import instance, put, real, whole
from tutelage._errors import BadInput
from tutelage._identity import LATER
from tutelage.problem.activations import Activation
from tutelage.problem.assorted import LayerUnits
from tutelage.problem.frame import Matrix, anchor, stream
from tutelage.problem.initial import AbstractEntries, AbstractRows
from tutelage.problem.inputs import Gaussian
from tutelage.problem.mixture import Mixture
from tutelage.problem.networks import TwoLayer, host_weights
from tutelage.problem.penalty import Penalty


@runtime_checkable
class Inputs(Protocol):
    """What every law of inputs has."""

    @property
    def dim(self) -> int: ...


class AbstractProblem(abc.ABC):
    """Something to be learned: inputs, a teacher, a student, label noise. A dynamics says what it can make of it."""

    inputs: Inputs
    noise: float


Kind = TypeVar("Kind", bound=AbstractProblem)


def of_kind(problem: AbstractProblem, kind: type[Kind], whose: str) -> Kind:
    """The problem, if it is of the kind that `whose` dynamics can do something with; another is refused."""
    if not isinstance(problem, kind):
        came, wanted = type(problem).__name__, kind.__name__
        raise BadInput(f"{whose}: the problem is a {came}, but a {wanted} was expected; choose another dynamics.")
    return problem


def plain_networks(problem: "Problem", whose: str) -> tuple[TwoLayer, TwoLayer]:
    """Student and teacher, if all there is to know are inner products of units of one kind each; else refused."""
    student, teacher = problem.student, problem.teacher
    if not (isinstance(student, TwoLayer) and isinstance(teacher, TwoLayer)) or student.tied or teacher.tied:
        raise BadInput(f"{whose}: the student or its teacher is a mixture or tied; two-layer networks were expected.")
    if not all(isinstance(each.activation, Activation) for each in (student, teacher)):
        raise BadInput(f"{whose}: the units of a network have several activations; one for all was expected.")
    refuse_offsets(problem, whose)
    if problem.penalty is not None:
        raise BadInput(f"{whose}: the problem has a penalty on the weights; leave it out.")
    return student, teacher


def refuse_offsets(problem: "Problem", whose: str) -> None:
    """Refuse inputs that are not standard, and biases."""
    if not problem.law.standard:
        has = "units have biases" if problem.biased else "inputs have a mean or a covariance"
        raise BadInput(f"{whose}: the {has}; standard inputs and no biases were expected.")


def one_kind(units: LayerUnits) -> Activation:
    """The activation of all units; networks with several were refused."""
    assert isinstance(units, Activation)
    return units


class Start(NamedTuple):
    """Teacher and student parameters in common coordinates: trees such as `Weights`; students may have a seed axis."""

    teacher: PyTree
    student: PyTree


@dataclass(frozen=True)
class Problem(AbstractProblem):
    """A student that learns from a teacher on Gaussian inputs.

    - `inputs`: `Gaussian(dim)`, with a mean or a covariance if they are not standard.
    - `teacher`: a `TwoLayer` or a `Mixture` with given weights; they need be neither orthogonal nor of equal norm.
    - `student`: a network of the same kind, with given weights or laws.
    - `noise`: standard deviation of the label noise. It enters sampled labels; population losses are reported
      without its constant floor `noise^2 / 2` per output.
    - `penalty`: a `Penalty` on the size of the weights, which is descended with the loss; None for none.

    ```python
    >>> import tutelage as tt
    >>> problem = tt.Problem(
    ...     inputs=tt.Gaussian(10**9),
    ...     teacher=tt.TwoLayer("relu", first=[[1.0]]),
    ...     student=tt.TwoLayer("relu", first=tt.GaussianRows(1e-3), width=3),
    ... )
    >>> start = problem.begin(seed=0)
    >>> start.student.first.shape  # three students and one teacher: four coordinates, whatever dim is
    (3, 4)

    ```
    """

    inputs: Gaussian
    teacher: TwoLayer | Mixture
    student: TwoLayer | Mixture
    noise: float = 0.0
    penalty: Penalty | None = field(default=None, metadata=LATER)

    def __post_init__(self) -> None:
        instance("Problem: inputs", self.inputs, Gaussian, "tt.Gaussian(dim)")
        network = "a tt.TwoLayer or a tt.Mixture"
        teacher = instance("Problem: teacher", self.teacher, (TwoLayer, Mixture), network)
        instance("Problem: student", self.student, (TwoLayer, Mixture), network)
        put(self, noise=real("Problem: noise", self.noise, least=0))
        if self.penalty is not None:
            instance("Problem: penalty", self.penalty, Penalty, "a tt.Penalty such as tt.Penalty(second=0.1)")
        laws = (AbstractRows, AbstractEntries)
        if any(isinstance(each, laws) for each in (teacher.first, teacher.second, teacher.biases)):
            raise BadInput("Problem: the teacher's weights must be given as arrays; draw them first if random.")
        if type(teacher) is not type(self.student):
            raise BadInput(
                f"Problem: the teacher is a {type(teacher).__name__} and the student a {type(self.student).__name__}; "
                "both must be of one kind."
            )
        if isinstance(teacher, Mixture) and not self.inputs.standard:
            raise BadInput("Problem: a mixture is known for standard inputs only; leave out the mean or covariance.")
        if teacher.biases is not None and self.student.biases is None:
            raise BadInput("Problem: the teacher has biases and the student has none; pass biases=0.0 to begin with.")
        if teacher.outputs != self.student.outputs:
            raise BadInput(
                f"Problem: the teacher has {teacher.outputs} outputs and the student {self.student.outputs}; "
                "they must agree."
            )

    @property
    def biased(self) -> bool:
        """Whether units have biases; the first column of incoming weights then is theirs."""
        return self.student.biases is not None

    @cached_property
    def law(self) -> Gaussian:
        """What rows of incoming weights see: the inputs, with a constant 1 in front of them if there are biases."""
        return self.inputs.with_constant() if self.biased else self.inputs

    def begin(self, seed: int, *, full: bool = False) -> Start:
        """Initial weights in the frame (`full=True`: in all `dim` coordinates, for data that must exist)."""
        start: Start = jax.device_put(self.drawn(seed, full=full))
        return start

    def drawn(self, seed: int, *, full: bool = False) -> Start:
        """The same as arrays of NumPy: thousands of seeds are put on the device together, not one by one."""
        student, draw = self.student, stream(whole("seed", seed), 0)
        law = student.first if isinstance(student.first, AbstractRows) else None
        free, kept = student.rows if law else 0, self.inputs.kept
        frame, rows = anchor(self.inputs.dim, self._given_rows(), free, full=full, kept=kept)
        count, taught = self.teacher.rows, self.teacher.second
        assert not isinstance(taught, AbstractEntries)  # refused when the problem was made
        first = law.rows(frame.gaussian(draw), rows[count:], frame.dim) if law else rows[count:]
        second = student.second
        if isinstance(second, AbstractEntries):
            second = second.entries(draw, (student.width, student.outputs))
        target = rows[:count]
        if self.biased:
            target, first = _lifted(self.teacher.biases, target, draw), _lifted(student.biases, first, draw)
        return Start(host_weights(target, taught), host_weights(first, second))

    def _given_rows(self) -> Matrix:
        """The teacher's rows, then the student's given rows or means, padded to equal length."""
        student = self.student.first
        extra = np.array(student.mean, float) if isinstance(student, AbstractRows) else student
        parts = [self.teacher.first] + ([extra] if len(extra) else [])
        columns = max(part.shape[1] for part in parts)
        return np.concatenate([np.pad(part, ((0, 0), (0, columns - part.shape[1]))) for part in parts])


def _lifted(biases: Matrix | AbstractEntries | None, rows: Matrix, draw: Generator) -> Matrix:
    """Rows with their biases in front; 0 for none."""
    count = len(rows)
    if isinstance(biases, AbstractEntries):
        column = biases.entries(draw, (count, 1))
    else:
        column = np.zeros((count, 1)) if biases is None else biases[:, None]
    return np.concatenate([column, rows], axis=1)
