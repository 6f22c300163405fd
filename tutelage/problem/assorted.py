"""A layer whose units have activations of their own."""

import functools
from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from tutelage._errors import BadInput
from tutelage.problem.activations import Activation, Spec, activation


class Assorted(eqx.Module):
    """One activation for each unit; it acts on arrays (unit, sample). Equal to another with the same members.

    ```python
    >>> import jax.numpy as jnp
    >>> from tutelage.problem.assorted import layer_units
    >>> units = layer_units(["relu", "he2"])
    >>> units(jnp.array([[-1.0, 2.0], [-1.0, 2.0]])).tolist(), units.name
    ([[0.0, 2.0], [0.0, 3.0]], 'relu, he2')

    ```
    """

    members: tuple[Activation, ...]

    @property
    def name(self) -> str:
        """The names of the members, in order."""
        return ", ".join(member.name for member in self.members)

    @property
    def kinks(self) -> tuple[float, ...]:
        """All points where some slope jumps."""
        return tuple(sorted({kink for member in self.members for kink in member.kinks}))

    @property
    def jumps(self) -> bool:
        """Whether some unit jumps itself."""
        return any(member.jumps for member in self.members)

    def groups(self) -> tuple[tuple[Activation, NDArray[np.intp]], ...]:
        """The activations that differ, and the units that have each."""
        kinds = tuple(dict.fromkeys(self.members))
        return tuple((kind, np.flatnonzero([bool(member == kind) for member in self.members])) for kind in kinds)

    def __call__(self, z: Float[Array, "unit sample"]) -> Float[Array, "unit sample"]:
        self.check_rows(len(z))
        return self.by_unit(lambda kind, units: kind(z[units]))

    def derivative(self, z: Float[Array, "unit sample"]) -> Float[Array, "unit sample"]:
        """The first derivative almost everywhere."""
        return self.by_unit(lambda kind, units: kind.derivative(z[units]))

    def second_derivative(self, z: Float[Array, "unit sample"]) -> Float[Array, "unit sample"]:
        """The second derivative almost everywhere."""
        return self.by_unit(lambda kind, units: kind.second_derivative(z[units]))

    def by_unit(self, part: Callable[[Activation, NDArray[np.intp]], Array]) -> Array:
        """What `part` gives for the units of each kind, in the order of the units."""
        return jnp.concatenate([part(kind, units) for kind, units in self.groups()])[self.order()]

    def check_rows(self, count: int) -> None:
        """Refuse so many rows, unless there is one for each unit: JAX would take any."""
        if count != len(self.members):
            raise BadInput(
                f"There are {len(self.members)} units with activations of their own, but {count} rows; units cannot be "
                "added or taken away without their activations."
            )

    def order(self) -> NDArray[np.intp]:
        """Where each unit is among the groups, one after the other."""
        return np.argsort(np.concatenate([units for _, units in self.groups()]))


LayerUnits = Activation | Assorted
"""What the units of a layer compute: all the same, or each its own."""

LayerSpec = Spec | Assorted | Sequence[Spec]
"""What they can be given as: see `tt.activation`, or a list with one for each unit."""


def layer_units(spec: LayerSpec) -> LayerUnits:
    """The units of a layer: one activation for all, or a list with one for each."""
    if isinstance(spec, Assorted):
        return spec
    if not isinstance(spec, (list, tuple)):
        return activation(spec)  # type: ignore[arg-type]  # what else a sequence may be is refused there
    members = tuple(activation(each) for each in spec)
    if not members:
        raise BadInput("The list of activations is empty; give one for each unit, or one for all.")
    return members[0] if len(set(members)) == 1 else Assorted(members)


def each_unit(units: LayerUnits, count: int) -> tuple[Activation, ...]:
    """The activation of each of `count` units."""
    return units.members if isinstance(units, Assorted) else (units,) * count


def count_of(spec: LayerSpec) -> int | None:
    """How many units a list says there are; None if it is one activation for all."""
    if isinstance(spec, Assorted):
        return len(spec.members)
    return len(spec) if isinstance(spec, (list, tuple)) else None


def coefficients(units: LayerUnits, scale: Float[Array, " unit"], count: int) -> Float[Array, "unit count"]:
    """Normalised Hermite coefficients of each unit at its own scale."""
    if isinstance(units, Assorted):
        return units.by_unit(lambda kind, chosen: coefficients(kind, scale[chosen], count))
    return functools.reduce(jnp.add, [atom.scale_jet(scale, count).value for atom in units.atoms])
