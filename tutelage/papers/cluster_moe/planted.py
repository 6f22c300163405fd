"""Experts as exploration is meant to leave them: with units of a chosen overlap with a local task."""

from functools import cache
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tutelage.oracle import shifted
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Clustered, Units


class Planted(NamedTuple):
    """Experts (expert, unit, dim), and the task of each planted unit, (expert, planted unit)."""

    problem: Clustered
    units: Units
    first: NDArray[np.float64]
    tasks: NDArray[np.intp]

    @property
    def cluster(self) -> NDArray[np.intp]:
        """The cluster of each expert's first unit: the expert's own, if that is the only one planted."""
        return self.tasks[:, 0]


@cache
def planted(
    dim: int = 30,
    kappa: float = 0.5,
    *,
    each: int = 1,
    means: str = "antipodal",
    radius: float = 3.0,
    experts: int = 8,
    width: int = 4,
    seed: int = 0,
) -> Planted:
    """ReLU experts of the default laboratory, of which the first `each` units have overlap `kappa` with a task.

    Tasks are drawn, but the first units' come in turn, so that every cluster has experts. The rest of a planted unit
    is orthogonal to tasks and means, and its outgoing weight has the sign that lets it learn: `alpha_k beta_ck > 0`.
    Other units are as drawn.
    """
    settings = ClusterMoeSettings(dim=dim, means=means, radius=radius, experts=experts, explore_width=width)
    problem, draw = settings.problem(), np.random.default_rng([2027, seed])
    units, first = settings.law(explore=True).draw(draw, dim)
    tasks = draw.integers(0, problem.inputs.count, (experts, each))
    tasks[:, 0] = np.arange(experts) % problem.inputs.count
    rest = first[:, :each].copy()
    rest[..., : problem.frame.shape[1]] = 0.0  # the frame is on the first axes
    rest /= np.linalg.norm(rest, axis=-1, keepdims=True)
    first[:, :each] = kappa * np.eye(dim)[tasks] + np.sqrt(1 - kappa**2) * rest
    return Planted(problem, _able(problem, units, tasks), first, tasks)


def _able(problem: Clustered, units: Units, tasks: NDArray[np.intp]) -> Units:
    k = problem.teacher.exponent
    alpha = np.asarray(shifted(units, jnp.zeros(units.bias.shape), k + 1))[:, : tasks.shape[1], k]
    outgoing = np.array(units.outgoing)
    outgoing[:, : tasks.shape[1]] *= np.sign(alpha * np.asarray(problem.teacher.local)[tasks, k])
    return eqx.tree_at(lambda each: each.outgoing, units, jnp.asarray(outgoing))
