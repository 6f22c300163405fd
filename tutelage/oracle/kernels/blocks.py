"""The kernel of layers whose units have activations of their own: a block for each pair of kinds."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from tutelage.oracle.kernels.base import AbstractKernel
from tutelage.problem.assorted import Assorted, LayerUnits

Part = Callable[[AbstractKernel, NDArray[np.intp] | slice, NDArray[np.intp] | slice], Array]


class BlockKernel(AbstractKernel):
    """`E[s_i(a_i.x) t_j(b_j.x)]`; row `i` is that of unit `i`. `parts[g][h]` is of kind g of `s` and h of `t`."""

    s: LayerUnits = eqx.field(static=True)
    t: LayerUnits = eqx.field(static=True)
    parts: tuple[tuple[AbstractKernel, ...], ...]

    @property
    def accuracy(self) -> str:
        return "; ".join(dict.fromkeys(part.accuracy for line in self.parts for part in line))

    def _check(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> None:
        for units, rows in ((self.s, a), (self.t, b)):
            if isinstance(units, Assorted):
                units.check_rows(len(rows))

    def _pairs(self, part: Part) -> Array:
        """Of all pairs of rows, whatever comes after these two axes."""
        lines = [
            jnp.concatenate([part(k, i, j) for k, j in zip(line, _groups(self.t), strict=True)], axis=1)
            for line, i in zip(self.parts, _groups(self.s), strict=True)
        ]
        return _ordered(self.s, lines)[:, _order(self.t)]

    def _sums(self, part: Part) -> Array:
        """Of the rows of the first layer, summed over those of the second."""
        lines = [
            functools.reduce(jnp.add, [part(k, i, j) for k, j in zip(line, _groups(self.t), strict=True)])
            for line, i in zip(self.parts, _groups(self.s), strict=True)
        ]
        return _ordered(self.s, lines)

    def value(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q"]:
        self._check(a, b)
        return self._pairs(lambda k, i, j: k.value(a[i], b[j]))

    def gradient(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q n"]:
        self._check(a, b)
        return self._pairs(lambda k, i, j: k.gradient(a[i], b[j]))

    def mixed(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q n n"]:
        return self._pairs(lambda k, i, j: k.mixed(a[i], b[j]))

    def pull(self, c: Float[Array, "p q"], a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p n"]:
        self._check(a, b)
        return self._sums(lambda k, i, j: k.pull(c[i][:, j], a[i], b[j]))

    def curvature(
        self, c: Float[Array, "p q"], a: Float[Array, "p n"], b: Float[Array, "q n"]
    ) -> Float[Array, "p n n"]:
        return self._sums(lambda k, i, j: k.curvature(c[i][:, j], a[i], b[j]))


def _groups(units: LayerUnits) -> tuple[NDArray[np.intp] | slice, ...]:
    return tuple(chosen for _, chosen in units.groups()) if isinstance(units, Assorted) else (slice(None),)


def _order(units: LayerUnits) -> NDArray[np.intp] | slice:
    return units.order() if isinstance(units, Assorted) else slice(None)


def _ordered(units: LayerUnits, lines: list[Array]) -> Array:
    return jnp.concatenate(lines)[_order(units)]
