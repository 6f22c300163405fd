"""Two-layer networks: what they compute, and where their weights come from."""

import abc
import functools
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from tutelage._checks import flag, mapping, one_of, put, several, table, whole
from tutelage._errors import BadInput
from tutelage._limits import fits
from tutelage.problem.assorted import LayerSpec, LayerUnits, count_of, each_unit, layer_units
from tutelage.problem.frame import Matrix
from tutelage.problem.hidden import PlainHidden, TiedHidden
from tutelage.problem.initial import AbstractEntries, AbstractRows


class Weights(eqx.Module):
    """The weights of a two-layer network `f(x) = sum_i second_i s(first_i . x)`; leading batch axes are allowed.

    `first` has one row for each unit, and two for each unit of a `Mixture`.
    """

    # In this order vectors of all parameters, and Hessians, have the outgoing weights first.
    second: Float[Array, "*batch unit output"]
    first: Float[Array, "*batch row frame"]

    def __init__(self, first: Float[Array, "*batch row frame"], second: Float[Array, "*batch unit output"]):
        self.first, self.second = _leaf("first", first), _leaf("second", second)


def _leaf(name: str, value: Any) -> Array:
    """Arrays are taken as they are, since a compiler may be tracing them."""
    if hasattr(value, "shape"):
        array: Array = value
        return array
    return jnp.asarray(table(f"Weights: {name}", value, "a matrix with one row per unit", axes=(2, 3)))


class Rates(eqx.Module):
    """Factors of the layers' velocities: a number for a layer, or one for each of its rows."""

    first: Float[Array, ""] | Float[Array, "row 1"]
    second: Float[Array, ""] | Float[Array, "row 1"]


def host_weights(first: ArrayLike, second: ArrayLike) -> Weights:
    """Weights from arrays that were made on the host, where starting points are drawn, and that stay there."""
    weights: Weights = jax.tree.unflatten(_layers(), [np.asarray(second, float), np.asarray(first, float)])
    return weights


@functools.cache
def _layers() -> Any:
    """The tree of weights, which are annotated as arrays of the device."""
    return jax.tree.structure(Weights(*jax.device_put((np.zeros((1, 1)), np.zeros((1, 1))))))


def untied(weights: Weights) -> Weights:
    """The plain network that computes what a tied one does: its outgoing weights are `second_i |first_i|`."""
    return Weights(weights.first, weights.second * jnp.linalg.norm(weights.first, axis=-1, keepdims=True))


class Network(abc.ABC):
    """Where a network's weights come from, and which of them learn. Networks with the same content are equal."""

    first: Matrix | AbstractRows
    second: Matrix | AbstractEntries
    width: int
    outputs: int
    trains: tuple[str, ...]
    # Of the class, so that networks without biases are described as they always were.
    biases: ClassVar[Matrix | AbstractEntries | None] = None

    @abc.abstractmethod
    def _units(self) -> tuple[Hashable, ...]:
        """What its hidden units compute."""

    @abc.abstractmethod
    def _shown(self) -> tuple[str, ...]:
        """The arguments that say what its units compute, as written in Python."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network) or self._key() != other._key():
            return False
        return all(_same(getattr(self, name), getattr(other, name)) for name in ("first", "second", "biases"))

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Hashable, ...]:
        """All but the weights."""
        return type(self), self._units(), self.width, self.outputs, self.trains

    def __repr__(self) -> str:
        given = {"first": self.first, "second": self.second, "biases": self.biases}
        weights = (f"{name}={_brief(value)}" for name, value in given.items() if value is not None)
        arguments = (*self._shown(), f"width={self.width}", *weights, f"trains={self.trains}")
        return f"{type(self).__name__}({', '.join(arguments)})"


def _same(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return type(one) is type(other) and one == other


def _brief(weights: Matrix | AbstractRows | AbstractEntries) -> str:
    """A law as it is, if it is not long; of an array its shape."""
    if isinstance(weights, np.ndarray):
        return f"<array {weights.shape}>"
    text = repr(weights)
    return text if len(text) <= LONG else f"{text[: LONG - 3]}..."


LONG = 80


class TwoLayer(Network):
    """A two-layer network `f(x) = sum_i second_i s(first_i . x + bias_i)`; without biases unless they are given.

    - `activation`: a name ("relu", "erf", "he3", ...; `tt.activations()` lists them), an `Activation`, or any
      JAX-traceable function; or a list of these, one for each unit.
    - `first`: incoming weights, as an array (units, at most dim; missing columns are zero) or a law of rows.
    - `second`: outgoing weights, as an array (units,) or (units, outputs), "ones", "mean" (1/width each), or a
      law of entries.
    - `biases`: one for each unit, or one number for all; or a law of entries. A bias is the weight of an input that
      always is 1: it is learned, slowed and penalised with the incoming weights. None for no biases.
    - `width`, `outputs`: needed only where a law leaves them open.
    - `trains`: the layers that learn, when the network is a student.
    - `tied`: outgoing weights are tied to the norms, `f(x) = sum_i second_i |first_i| s(first_i . x)`. With
      `second="mean"` the units are then particles of equal mass, with given weights particles of these masses.

    ```python
    >>> import tutelage as tt
    >>> teacher = tt.TwoLayer("relu", first=[[1.0, 0.0], [0.0, 2.0]], second=[1.0, -1.0])
    >>> teacher.width, teacher.outputs
    (2, 1)
    >>> tt.TwoLayer("relu", first=tt.SphereRows(0.1), width=3)
    TwoLayer('relu', width=3, first=SphereRows(norm=0.1), second=<array (3, 1)>, trains=('first', 'second'))

    ```
    """

    activation: LayerUnits
    tied: bool

    def __init__(
        self,
        activation: LayerSpec,
        *,
        first: "ArrayLike | AbstractRows",
        second: "ArrayLike | AbstractEntries" = "ones",
        width: int | None = None,
        outputs: int = 1,
        trains: tuple[str, ...] = ("first", "second"),
        tied: bool = False,
        biases: "ArrayLike | AbstractEntries | None" = None,
    ):
        self.activation, outputs = layer_units(activation), whole("TwoLayer: outputs", outputs, least=1)
        self.first = first if isinstance(first, AbstractRows) else given_matrix("TwoLayer", "first", first)
        known = None if isinstance(self.first, AbstractRows) else len(self.first)
        self.width = _width(None if width is None else whole("TwoLayer: width", width, least=1), known)
        _check_list(count_of(activation), self.width)
        self.second = given_outgoing("TwoLayer", second, self.width, outputs)
        self.outputs = outputs if isinstance(self.second, AbstractEntries) else self.second.shape[1]
        self.trains = chosen_layers("TwoLayer: trains", trains, ("first", "second"))
        self.tied = flag("TwoLayer: tied", tied)
        if biases is not None:
            put(self, biases=_given_biases(biases, self.width))
            if self.tied:
                raise BadInput("TwoLayer: a tied network has no biases; leave out biases, or tied.")
        self._check_rows()

    @property
    def rows(self) -> int:
        """How many vectors in input space it has."""
        return self.width

    def _units(self) -> tuple[Hashable, ...]:
        return self.activation, self.tied

    def _shown(self) -> tuple[str, ...]:
        return (repr(self.activation.name), *(("tied=True",) if self.tied else ()))

    @property
    def hidden(self) -> PlainHidden | TiedHidden:
        """What its hidden units compute."""
        return TiedHidden(self.activation) if self.tied else PlainHidden(self.activation)

    def plain(self, weights: Weights) -> Weights:
        """Weights of the plain network that computes the same."""
        return untied(weights) if self.tied else weights

    @property
    def layers(self) -> tuple[str, ...]:
        """The fields of its `Weights` that move."""
        return self.trains

    def rates(self, given: Mapping[str, float | ArrayLike] | None = None) -> Rates:
        """Factors of the layers' velocities: a number for a layer, or one per unit."""
        factors = {"first": jnp.asarray(1.0), "second": jnp.asarray(1.0)}
        for layer, value in rates_given(given).items():
            factors[one_of("layer", layer, factors)] = self._factor(layer, value)
        return Rates(factors["first"], factors["second"])

    def _factor(self, layer: str, value: float | ArrayLike) -> Array:
        array = table(f"The rate of {layer}", value, "a finite number, or one for each unit,", axes=(0, 1))
        if array.shape not in ((), (self.width,)):
            raise BadInput(
                f"TwoLayer: the rate of {layer} has shape {array.shape}; pass one number, or one for each of the "
                f"{self.width} units."
            )
        return jnp.asarray(array[:, None] if array.ndim else array)

    def output(self, x: ArrayLike) -> Matrix:
        """What a network with given weights says about inputs (sample, dim or fewer): (sample, output)."""
        laws = (AbstractRows, AbstractEntries)
        if isinstance(self.first, laws) or isinstance(self.second, laws) or isinstance(self.biases, laws):
            raise BadInput("TwoLayer: a network whose weights are laws has no outputs; give them as arrays.")
        inputs = table("TwoLayer: x", x, "a matrix of finite numbers (samples, dim)", axes=(2,))
        if inputs.shape[1] < self.first.shape[1]:
            raise BadInput(f"TwoLayer: x has {inputs.shape[1]} columns, but first has {self.first.shape[1]}.")
        seen = self.first @ inputs[:, : self.first.shape[1]].T
        seen = seen if self.biases is None else seen + self.biases[:, None]
        hidden = np.asarray(self.hidden(jnp.asarray(self.first), jnp.asarray(seen)))
        return np.asarray(hidden.T @ self.second)

    def check_samples(self) -> None:
        """Refuse a student that gradients on samples cannot teach; the population's can, since it is smooth."""
        if self.activation.jumps and "first" in self.trains:
            raise BadInput(
                f"On samples a {self.activation.name} has a slope of 0 almost everywhere, so that its incoming weights "
                "would not move; use population dynamics, train the second layer alone, or a smooth activation."
            )

    def _lifted(self, place: int) -> bool:
        """Whether a unit has, or may have, a bias."""
        return isinstance(self.biases, AbstractEntries) or (self.biases is not None and bool(self.biases[place]))

    def _check_rows(self) -> None:
        if isinstance(self.first, AbstractRows):
            return
        for place, (row, unit) in enumerate(zip(self.first, each_unit(self.activation, self.width), strict=True)):
            if 0.0 in unit.kinks and not row.any() and not self._lifted(place):
                raise BadInput(
                    f"TwoLayer: row {place} of first is zero, where {unit.name} has no derivative; "
                    "remove that unit or give it a small non-zero vector."
                )


def _given_biases(given: "ArrayLike | AbstractEntries", width: int) -> Matrix | AbstractEntries:
    """One for each unit, or their law."""
    if isinstance(given, AbstractEntries):
        return given
    found = table("TwoLayer: biases", given, "a number for each unit, one for all, or a law of entries", axes=(0, 1))
    if found.ndim and len(found) != width:
        raise BadInput(f"TwoLayer: there are {len(found)} biases and {width} units; give one for each, or one for all.")
    return np.full(width, found)


def given_matrix(owner: str, name: str, value: ArrayLike) -> Matrix:
    """A matrix with one row per unit, or a sentence about what is wrong with it."""
    try:
        array = np.array(value)
    except (TypeError, ValueError):  # rows of different lengths
        array = np.array(None)
    if array.size and array.dtype.kind not in "iuf":
        raise BadInput(f"{owner}: {name} could not be read as numbers; pass a matrix with one row per unit.")
    if array.ndim != 2 or not array.size:
        raise BadInput(f"{owner}: {name} has shape {array.shape}, but a matrix with one row per unit was expected.")
    if not np.all(np.isfinite(array)):
        raise BadInput(f"{owner}: {name} holds a value that is not finite; pass finite numbers only.")
    return np.asarray(array, float)


def _width(width: int | None, known: int | None) -> int:
    if width is None and known is None:
        raise BadInput("TwoLayer: the number of units is open; pass width=, or first as a matrix.")
    if width is not None and known is not None and width != known:
        raise BadInput(f"TwoLayer: width is {width} but first has {known} rows; leave width out or make them agree.")
    result = known if width is None else width
    assert result is not None
    return result


def _check_list(listed: int | None, width: int) -> None:
    if listed is not None and listed != width:
        raise BadInput(f"TwoLayer: there are {listed} activations and {width} units; give one for each unit.")


def given_outgoing(
    owner: str, second: ArrayLike | AbstractEntries, width: int, outputs: int
) -> Matrix | AbstractEntries:
    """Outgoing weights (width, outputs), or their law, or a sentence about what is wrong with them."""
    if isinstance(second, AbstractEntries):
        return second
    if isinstance(second, str):
        if second not in ("ones", "mean"):
            raise BadInput(f"{owner}: second is {second!r}; pass an array, a law of entries, 'ones' or 'mean'.")
        fits(f"{owner}: a network of {width} units with {outputs} outputs", 8 * width * outputs, "use fewer units")
        return np.full((width, outputs), 1.0 if second == "ones" else 1 / width)
    flat = np.ndim(second) == 1 if _regular(second) else False
    matrix = given_matrix(owner, "second", np.asarray(second)[:, None] if flat else second)
    if len(matrix) != width:
        raise BadInput(
            f"{owner}: second has shape {np.shape(second)} but width is {width}. Pass one weight per hidden unit, "
            "or second='ones' to fix them all at 1."
        )
    return matrix


def _regular(value: ArrayLike) -> bool:
    """Whether rows have equal lengths."""
    try:
        return np.ndim(value) >= 0
    except ValueError:
        return False


def chosen_layers(name: str, trains: object, known: tuple[str, ...]) -> tuple[str, ...]:
    """The parts of a network that learn."""
    wanted = several(name, trains, str, f"a tuple of some of {', '.join(known)}, such as ({known[0]!r},),")
    if wrong := set(wanted) - set(known):
        raise BadInput(f"{name} names {sorted(wrong)}, but the parts are {', '.join(map(repr, known))}.")
    return wanted


def rates_given(given: object) -> Mapping[str, float | ArrayLike]:
    """Rates by the names of layers; None for none."""
    return {} if given is None else mapping("rates", given, "a dictionary such as {'second': 0.1}")
