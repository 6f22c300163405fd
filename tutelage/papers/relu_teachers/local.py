"""The local phase: the exact constant of the T^-3 law.

Once the students of a group add up to their teacher, the loss is a cubic form in the slopes `y_i = z_i/h_i` (components
across and along the teacher). Its flow is self-similar, `y = Y/s`, so `L s^3 / nv^2 -> sum_l C_l`. A group of one
student has no such motion: `C = 0`, and its convergence is exponential.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from tutelage import BadInput
from tutelage.papers.relu_teachers.assumptions import nearest
from tutelage.papers.relu_teachers.kernel import rows
from tutelage.papers.relu_teachers.slow import shares_of, slow_state
from tutelage.problem import Numbers


def simplex_energy(students: int) -> float:
    """A(n) = [((n-1)/n) (2n/(n-1))^{3/2} - 2]/(12 pi): the energy of n equal students on a regular simplex."""
    if students < 2:
        raise BadInput(f"A group of {students} students has no slow motion; pass at least 2.")
    n = students
    return ((n - 1) / n * (2 * n / (n - 1)) ** 1.5 - 2) / (12 * math.pi)


def simplex_constant(students: int) -> float:
    """C(n) = 1/(27 n^3 A(n)^2) of n equal students on a regular simplex; needs dim >= n.

    The simplex attracts for n <= 5 only; from n = 6 on the flow leaves it, slowly.

    ```python
    >>> from tutelage.papers.relu_teachers.local import simplex_constant
    >>> [round(simplex_constant(n), 6) for n in (1, 2, 3, 10)]
    [0.0, 1.644934, 0.909478, 0.054649]

    ```
    """
    if students == 1:
        return 0.0
    return 1 / (27 * students**3 * simplex_energy(students) ** 2)


def pair_constant(share: float) -> float:
    """C = (8 pi^2/3) a^2 (1-a)^2 of two students that split their teacher as a : 1-a."""
    return 8 * math.pi**2 / 3 * share**2 * (1 - share) ** 2


def group_constant(shares: ArrayLike, start: ArrayLike) -> float:
    """C_l of one group: closed form for one and two students, else `slow_state`.

    Three students and more can have several attractors; `start` (rows across the teacher) says which one is meant.
    """
    shares = shares_of(shares)
    if len(shares) == 1:
        return 0.0
    if len(shares) == 2:
        return pair_constant(float(shares[0]))
    return slow_state(shares, start).constant


def groups_of(first: ArrayLike, teacher: ArrayLike) -> list[Numbers]:
    """The components h_i of the students along their (currently) nearest teacher, group by group; may be empty."""
    first, teacher = rows("first", first), rows("teacher", teacher)
    tau = nearest(first, teacher)
    along = np.sum(first * teacher[tau], axis=1) / np.linalg.norm(teacher[tau], axis=1)
    return [along[tau == label] for label in range(len(teacher))]


def slopes_of(first: ArrayLike, teacher: ArrayLike) -> list[tuple[Numbers, Numbers]]:
    """Group by group the shares h_i/sum h (n,) and the rows across the teacher, in units of sum h (n, columns)."""
    first, teacher = rows("first", first), rows("teacher", teacher)
    tau = nearest(first, teacher)
    found = []
    for label, along in enumerate(groups_of(first, teacher)):
        if not len(along):
            raise BadInput(f"Teacher {label} has no student near it, so the loss cannot vanish; train on.")
        axis = teacher[label] / np.linalg.norm(teacher[label])
        across = first[tau == label] - np.outer(along, axis)
        found.append((shares_of(along), across / along.sum()))
    return found


def measured_constant(first: ArrayLike, teacher: ArrayLike) -> float:
    """sum_l C_l of students near the minimum, from their shares and their slopes; teachers of one norm.

    The slow flow is continued from where the students are, so that the right attractor is taken.
    """
    return sum(group_constant(shares, across) for shares, across in slopes_of(first, teacher))


def rate(total: float, norm: float = 1.0) -> float:
    """c_hat = (sum_l C_l)^{-1/3} nv^{-2/3}: the slope of L^{-1/3} in flow time (Eq. 10); infinite for m = k."""
    return total ** (-1 / 3) * norm ** (-2 / 3) if total > 0 else math.inf


def lojasiewicz(total: float, norm: float = 1.0) -> float:
    """|grad|_F / L^{2/3} -> sqrt(3) (sum_l C_l)^{-1/6} nv^{-1/3} (Theorem 8); infinite for m = k.

    For k equal groups of n it is 3 A(n)^{1/3} sqrt(n) k^{-1/6} nv^{-1/3}.
    """
    return math.sqrt(3) * total ** (-1 / 6) * norm ** (-1 / 3) if total > 0 else math.inf


def rate_from(gradient_norm: ArrayLike, loss: ArrayLike) -> Numbers:
    """c_hat = |grad|_F^2 / (3 L^{4/3}), which is d(L^{-1/3})/ds of the flow without differencing."""
    with np.errstate(over="ignore", invalid="ignore"):  # of a run that diverges
        return np.asarray(gradient_norm, float) ** 2 / (3 * np.asarray(loss, float) ** (4 / 3))
