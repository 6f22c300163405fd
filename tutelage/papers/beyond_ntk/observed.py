"""What is recorded of a run besides the usual: tensor losses, units on teacher directions, units that stand still."""

from dataclasses import dataclass

import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, Int

from tutelage.dynamics import Snapshot
from tutelage.oracle import rows
from tutelage.papers.beyond_ntk.constants import coefficient
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.problem import Problem
from tutelage.trajectory import Observable, loss_orders, population_loss

BASIS_LIKE = 0.95
"""A unit is on a teacher direction if its cosine with it is at least this."""


@dataclass(frozen=True)
class _Frozen:
    caps: tuple[float, ...]

    def __call__(self, view: Snapshot) -> Int[Array, " stage"]:
        return jnp.sum(jnp.sum(view.weights.first**2, axis=1)[None] > jnp.asarray(self.caps)[:, None], axis=1)


def _cosines(view: Snapshot) -> Float[Array, "student teacher"]:
    return jnp.abs(rows(view.weights.first).unit @ rows(view.teacher.first).unit.T)


def _power(view: Snapshot) -> Float[Array, " teacher"]:
    """`E w_i^2`, the mean over units of the squared coordinate along each teacher."""
    return jnp.mean((view.weights.first @ rows(view.teacher.first).unit.T) ** 2, axis=0)


def _caught(view: Snapshot) -> Float[Array, " teacher"]:
    """The part of it that units on that direction hold, `gamma_i`."""
    seen = (view.weights.first @ rows(view.teacher.first).unit.T) ** 2
    return jnp.mean(jnp.where(_cosines(view) >= BASIS_LIKE, seen, 0.0), axis=0)


def _size(view: Snapshot) -> Float[Array, ""]:
    return jnp.mean(jnp.sum(view.weights.first**2, axis=1))


def observed(problem: Problem, settings: BeyondNtkSettings) -> tuple[Observable, ...]:
    """The paper's own observables; `frozen` counts, for each stage, the units above its cap."""
    caps = (Observable("frozen", _Frozen(settings.caps), ("stage",), "units above the cap of a stage"),)
    return (
        *loss_orders(problem),
        *((population_loss(problem),) if settings.samples else ()),
        Observable("power", _power, ("teacher",), "mean square of the units along a teacher direction", "weight^2"),
        Observable("caught", _caught, ("teacher",), "the part of it held by units on that direction", "weight^2"),
        Observable("size", _size, (), "mean squared norm of the units", "weight^2"),
        *(caps if settings.caps else ()),
    )


def tensor_norms(dataset: xr.Dataset, orders: tuple[int, ...] = (0, 2, 4, 6, 8)) -> xr.DataArray:
    """`|T_k|`, the error of the k-th moment tensor itself, for even orders: what the paper's figures show."""
    scale = xr.DataArray([coefficient(k) for k in orders], {"tensor_order": list(orders)}, ("tensor_order",))
    return (2 * dataset["loss_order"].sel(tensor_order=list(orders)).clip(0) / scale) ** 0.5


def paper_loss(dataset: xr.Dataset) -> xr.DataArray:
    """`L = E(f - f*)^2`: the population loss without the factor 1/2, also of a student that descends on samples."""
    return 2 * dataset["population_loss" if "population_loss" in dataset else "loss"]
