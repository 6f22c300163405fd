"""Soft-routed mixtures of experts: `f(x) = sum_i second_i gate(v_i.x / |v_i|) He_p(w_i.x / |w_i|)`."""

from collections.abc import Hashable, Mapping

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from tutelage._checks import one_of, real, whole
from tutelage._errors import BadInput
from tutelage.problem.activations import Activation, Spec, activation
from tutelage.problem.frame import Matrix
from tutelage.problem.hidden import GatedHidden
from tutelage.problem.initial import AbstractEntries, AbstractRows, MixtureRows
from tutelage.problem.networks import (
    Network,
    Rates,
    chosen_layers,
    given_matrix,
    given_outgoing,
    rates_given,
)

PARTS = ("routers", "experts", "second")


class Mixture(Network):
    """A mixture of experts `f(x) = sum_i second_i gate(v_i.x / |v_i|) He_p(w_i.x / |w_i|)`.

    Only directions matter: the flow leaves the norms of routers and experts as they are, and they set its pace.

    - `gate`: a name ("sigmoid", "probit", "erf", "tanh", "softplus", "constant"), an `Activation`, or any smooth
      function that JAX can trace; `degree`: of the experts' Hermite polynomial.
    - `routers`, `experts`: the vectors `v_i` and `w_i`, one row each (missing columns are zero).
    - `start`: in their place a law of rows, of all routers, then of all experts (default `MixtureRows()`); with
      `width` units.
    - `second`: output weights, as for `TwoLayer`; `trains`: what learns, of "routers", "experts" and "second".

    Its weights are `Weights(first, second)`, where `first` has the routers' rows and then the experts'.

    ```python
    >>> import numpy as np, tutelage as tt
    >>> teacher = tt.Mixture(routers=np.eye(2, 4), experts=np.eye(4)[2:])
    >>> student = tt.Mixture(start=tt.MixtureRows("orthonormal"), width=6)
    >>> problem = tt.Problem(tt.Gaussian(10**6), teacher, student)
    >>> problem.begin(seed=0).student.first.shape  # 12 vectors in a frame of 4 + 12 coordinates
    (12, 16)

    ```
    """

    hidden: GatedHidden

    def __init__(
        self,
        gate: Spec = "sigmoid",
        *,
        degree: int = 3,
        routers: ArrayLike | None = None,
        experts: ArrayLike | None = None,
        start: AbstractRows | None = None,
        width: int | None = None,
        second: "ArrayLike | AbstractEntries" = "ones",
        outputs: int = 1,
        trains: tuple[str, ...] = ("routers", "experts"),
    ):
        self.hidden = GatedHidden(_gate(gate), whole("Mixture: degree", degree, most=20))
        outputs = whole("Mixture: outputs", outputs, least=1)
        self.first, self.width = _vectors(routers, experts, start, width)
        self.second = given_outgoing("Mixture", second, self.width, outputs)
        self.outputs = outputs if isinstance(self.second, AbstractEntries) else self.second.shape[1]
        self.trains = chosen_layers("Mixture: trains", trains, PARTS)

    @property
    def rows(self) -> int:
        """How many vectors in input space it has."""
        return 2 * self.width

    def _units(self) -> tuple[Hashable, ...]:
        return (self.hidden,)

    def _shown(self) -> tuple[str, ...]:
        return repr(self.hidden.gate.name), f"degree={self.hidden.degree}"

    @property
    def layers(self) -> tuple[str, ...]:
        """The fields of its `Weights` that move."""
        inner = ("first",) if {"routers", "experts"} & set(self.trains) else ()
        return inner + (("second",) if "second" in self.trains else ())

    def rates(self, given: Mapping[str, float | ArrayLike] | None = None) -> Rates:
        """Factors of the parts' velocities, 0 for a part that does not train."""
        factors = {part: float(part in self.trains) for part in PARTS}
        for part, value in rates_given(given).items():
            factors[one_of("part of a mixture", part, PARTS)] *= real(f"Mixture: the rate of {part}", value)
        first = np.repeat([factors["routers"], factors["experts"]], self.width)[:, None]
        return Rates(jnp.asarray(first), jnp.asarray(factors["second"]))

    def check_samples(self) -> None:
        """Gates are smooth: samples can teach all of it."""


def _gate(gate: Spec) -> Activation:
    found = activation(gate)
    if found.kinks:
        raise BadInput(
            f"Mixture: the gate {found.name!r} has a kink, but a smooth one was expected, such as 'sigmoid'."
        )
    return found


def _vectors(
    routers: ArrayLike | None, experts: ArrayLike | None, start: AbstractRows | None, width: int | None
) -> tuple[Matrix | AbstractRows, int]:
    given = [part for part in (routers, experts) if part is not None]
    if given and (len(given) < 2 or start is not None):
        raise BadInput("Mixture: pass both routers and experts, or a law of rows as start with width.")
    width = None if width is None else whole("Mixture: width", width, least=1)
    if not given:
        if width is None:
            raise BadInput("Mixture: width is None, but without routers a number of units was expected.")
        law = MixtureRows() if start is None else start
        if not isinstance(law, AbstractRows):
            raise BadInput(f"Mixture: start is {start!r}, but a law of rows was expected, such as MixtureRows('iid').")
        return law, width
    parts = [given_matrix("Mixture", name, part) for name, part in zip(PARTS[:2], given, strict=True)]
    if len(parts[0]) != len(parts[1]):
        raise BadInput(
            f"Mixture: there are {len(parts[0])} routers and {len(parts[1])} experts; give one of each per unit."
        )
    if width is not None and width != len(parts[0]):
        raise BadInput(f"Mixture: width is {width} but there are {len(parts[0])} routers; leave width out.")
    if not all(np.all(np.any(part, axis=1)) for part in parts):
        raise BadInput("Mixture: a router or expert is the zero vector, which has no direction; give it some length.")
    columns = max(part.shape[1] for part in parts)
    stacked = np.concatenate([np.pad(part, ((0, 0), (0, columns - part.shape[1]))) for part in parts])
    return stacked, len(parts[0])
