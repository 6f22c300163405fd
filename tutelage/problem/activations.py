"""Activations: value, derivatives, kinks and Hermite coefficients. Each is a sum of the atoms in `atoms`."""

import dataclasses
import functools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from tutelage._checks import function, real, refused, table, whole
from tutelage._errors import BadInput, unknown
from tutelage.problem.atoms import Atom, ErfMixture, PiecewiseLinear, Polynomial, Sign, Smooth
from tutelage.problem.jumps import Function, jump, refuse_jumps

MOST_TERMS = 10_000
"""Of a Hermite series: those of |z| fall as k^-5/4, and a thousand times as many would add no digit."""


class HermiteCoefficients(NamedTuple):
    """`values[k] = E[s(scale z) He_k(z)] / sqrt(k!)`, each right to within `error`."""

    values: Float[Array, " count"]
    error: float


class Activation(eqx.Module):
    """A scalar function applied to each hidden unit. Hashable, and equal to another with the same atoms.

    ```python
    >>> from tutelage.problem.activations import activation
    >>> relu = activation("relu")
    >>> float(relu(-2.0)), float(relu.derivative(3.0)), relu.kinks
    (0.0, 1.0, (0.0,))

    ```
    """

    name: str = eqx.field(static=True)
    atoms: tuple[Atom, ...]
    kinks: tuple[float, ...] = eqx.field(static=True, default=())
    direct: Function | None = eqx.field(static=True, default=None)  # the same, quicker on samples

    def __call__(self, z: ArrayLike) -> Array:
        return self._sum(z, 0)

    @property
    def jumps(self) -> bool:
        """Whether the function itself jumps, so that its slope on samples is 0 and says nothing."""
        return any(isinstance(atom, Sign) for atom in self.atoms)

    def derivative(self, z: ArrayLike) -> Array:
        """The first derivative almost everywhere (at a kink, the mean of the two sides)."""
        return self._sum(z, 1)

    def second_derivative(self, z: ArrayLike) -> Array:
        """The second derivative almost everywhere; the point masses at kinks are not in it."""
        return self._sum(z, 2)

    def hermite(self, count: int, scale: float = 1.0) -> HermiteCoefficients:
        """The first `count` normalised Hermite coefficients of `s(scale z)`, with an error estimate.

        ```python
        >>> from tutelage.problem.activations import sigmoid
        >>> [round(float(v), 12) for v in sigmoid.hermite(4).values]
        [0.5, 0.206620964142, 0.0, -0.025473257907]

        ```
        """
        count, scale = whole("count", count, least=1, most=MOST_TERMS), real("scale", scale)
        values, error, at = np.zeros(count), 0.0, jax.device_put(float(scale))
        for atom in self.atoms:
            part, size = jax.device_get(_coefficients(atom, at, count))
            error += 8 * float(jnp.finfo(float).eps) * float(size)
            if isinstance(atom, Smooth):
                coarse, _ = jax.device_get(_coefficients(dataclasses.replace(atom, nodes=14), at, count))
                error += float(np.max(np.abs(coarse - part)))
            values += part
        return HermiteCoefficients(jax.device_put(values), error)

    def _sum(self, z: ArrayLike, order: int) -> Array:
        z = jnp.asarray(z)
        z = z if jnp.issubdtype(z.dtype, jnp.floating) else z.astype(float)
        if self.direct is not None:
            return _differentiated(self.direct, order)(z)
        parts = [atom.derivative(z, order) for atom in self.atoms]
        widest = max((part.dtype for part in parts), key=lambda dtype: dtype.itemsize)
        return functools.reduce(jnp.add, [part.astype(widest) for part in parts]).astype(z.dtype)


@functools.partial(jax.jit, static_argnames=("atom", "count"))
def _coefficients(atom: Atom, scale: Float[Array, ""], count: int) -> tuple[Float[Array, " count"], Float[Array, ""]]:
    """Of one atom, and the root of the sum of all their squares. Compiled: there are forty operations or more."""
    return atom.scale_jet(scale, count).value, jnp.sqrt(atom.second_moment(scale))


def _differentiated(fn: Function, order: int) -> Function:
    """The derivative of a function that acts entry by entry."""
    if order == 0:
        return fn
    lower = _differentiated(fn, order - 1)
    return lambda z: jax.jvp(lower, (z,), (jnp.ones_like(z),))[1]


HIGHEST_ORDER = 30
"""Of a Hermite polynomial. Sums of its coefficients cancel: kernels are right to 2e-10 at order 30, to 3e-7 at 40, and
have no digit left at 60."""


def hermite(order: int) -> Activation:
    """The Hermite polynomial `He_k` (the probabilists' one, leading coefficient 1).

    ```python
    >>> from tutelage.problem.activations import hermite
    >>> float(hermite(3)(2.0))
    2.0

    ```
    """
    order = whole("The order of a Hermite polynomial", order, most=HIGHEST_ORDER)
    values = np.polynomial.hermite_e.herme2poly([0.0] * order + [1.0])
    return polynomial(values.tolist(), name=f"he{order}")


def polynomial(coefficients: Sequence[float], name: str = "polynomial") -> Activation:
    """`sum_m coefficients[m] z^m`.

    ```python
    >>> from tutelage.problem.activations import polynomial
    >>> float(polynomial([1.0, 0.0, 2.0])(3.0))
    19.0

    ```
    """
    expected = "one or more finite numbers, constant first,"
    values = table("The list of a polynomial's coefficients", coefficients, expected, axes=(1,)).tolist()
    if not values:
        raise refused("The list of a polynomial's coefficients", coefficients, expected)
    return Activation(name=name, atoms=(Polynomial(tuple(values)),))


LEAK = 0.01
"""The slope of "leaky_relu" for negative numbers, where none is given."""


def leaky_relu(slope: float = LEAK) -> Activation:
    """`z` for positive `z`, `slope z` for negative; by name `"leaky_relu"`, or `"leaky_relu:0.25"` with its slope.

    ```python
    >>> from tutelage.problem.activations import activation, leaky_relu
    >>> float(leaky_relu(0.25)(-4.0)), activation("leaky_relu:0.25") == leaky_relu(0.25)
    (-1.0, True)

    ```
    """
    slope = real("leaky_relu: slope", slope)
    return Activation(f"leaky_relu:{slope!r}", (PiecewiseLinear((1 + slope) / 2, (1 - slope) / 2),), (0.0,))


def from_callable(fn: Function, name: str | None = None, kinks: Sequence[float] = ()) -> Activation:
    """An activation from a function of one number that JAX can trace; `kinks` are the points where its slope jumps.

    A kink at 0 goes into closed form, and so does a jump of the function itself. With kinks elsewhere values and
    gradients are offered, Hessians are not. A function that jumps elsewhere, or with a kink that was not stated, is
    refused.

    ```python
    >>> import jax
    >>> from tutelage.problem.activations import from_callable
    >>> softplus = from_callable(jax.nn.softplus)
    >>> round(float(softplus(0.0)), 6), softplus.hermite(8).error < 1e-13
    (0.693147, True)

    ```
    """
    name = str(name or getattr(function("An activation", fn, "one number"), "__name__", "callable"))
    kinks = tuple(sorted(table(f"kinks of {name!r}", kinks, "a list of finite numbers", axes=(1,)).tolist()))
    scalar = _as_scalar_function(fn, name)
    refuse_jumps(scalar, name, kinks)
    bends = {k: jump(jax.grad(scalar), k) for k in kinks}
    bend, step = bends.get(0.0, 0.0) / 2, jump(scalar, 0.0) / 2 if 0.0 in kinks else 0.0
    closed = (PiecewiseLinear(0.0, bend),) if bend else ()
    if abs(step) > STEP:
        scalar, closed = _without_step(scalar, step), (*closed, Sign(step))
    others = tuple(k for k in kinks if k != 0)
    smooth = Smooth(scalar, bend, others, tuple(bends[k] for k in others))
    return Activation(name, (smooth, *closed), kinks)


STEP = 1e-9
"""Of a function that is continuous at 0 extrapolation from both sides leaves less than this, by far."""


@functools.cache
def _without_step(fn: Function, step: float) -> Function:
    # Cached, as below.
    def rest(z: Array) -> Array:
        found = fn(z)
        return found - (step * jnp.sign(z)).astype(found.dtype)

    return rest


@functools.cache
def _as_scalar_function(fn: Function, name: str) -> Function:
    # Cached, so that the same function gives an equal activation and compiled code is reused.
    def scalar(z: Array) -> Array:
        return jnp.asarray(fn(z), dtype=float)

    try:
        jax.eval_shape(jax.grad(scalar), jnp.zeros(()))
    except Exception as error:
        raise BadInput(
            f"JAX cannot differentiate the activation {name!r} ({type(error).__name__}); write it with jax.numpy, "
            "as a function of one number."
        ) from error
    return scalar


def _kolmogorov_density(x: Float[np.ndarray, " node"]) -> Float[np.ndarray, " node"]:
    """The density of the Kolmogorov distribution, by whichever of its two series converges at once."""
    k = np.arange(1, 12)[:, None]
    far = 8 * x * np.sum((-1.0) ** (k - 1) * k**2 * np.exp(-2 * k**2 * x**2), axis=0)
    odd = ((2 * k - 1) * math.pi) ** 2
    near = math.sqrt(2 * math.pi) * np.sum((odd / (4 * x**4) - 1 / x**2) * np.exp(-odd / (8 * x**2)), axis=0)
    return np.asarray(np.where(x > 1, far, near))


def _logistic_mixture() -> tuple[Float[np.ndarray, " node"], Float[np.ndarray, " node"]]:
    """Weights and slopes with `sigmoid(x) = 1/2 + 1/2 sum_q w_q erf(b_q x)`, right to 2e-16 for every x.

    The logistic law is a normal law of random width: `sigmoid(x) = E[Phi(x / 2L)]` with `L` of the Kolmogorov
    distribution (Andrews and Mallows 1974). The trapezoid rule in `log L` converges faster than any power.
    """
    step = 0.11
    length = np.exp(step * (np.arange(-30, 30) + 0.5))
    weights = step * length * _kolmogorov_density(length)
    kept = weights > 1e-18
    return weights[kept], 1 / (2 * math.sqrt(2) * length[kept])


_W, _B = _logistic_mixture()

relu = Activation("relu", (PiecewiseLinear(0.5, 0.5),), (0.0,))
absolute = Activation("abs", (PiecewiseLinear(0.0, 1.0),), (0.0,))
# ReLU without its linear part.
half_absolute = Activation("half_abs", (PiecewiseLinear(0.0, 0.5),), (0.0,))
linear = Activation("linear", (PiecewiseLinear(1.0, 0.0),))
# The plain mathematical erf(z), not erf(z / sqrt(2)).
erf = Activation("erf", (ErfMixture((1.0,), (1.0,)),))
# That of soft committee machines: 2 Phi(z) - 1.
erf_over_sqrt2 = Activation("erf_over_sqrt2", (ErfMixture((1.0,), (math.sqrt(0.5),)),))
sigmoid = Activation(
    "sigmoid", (Polynomial((0.5,)), ErfMixture(tuple((_W / 2).tolist()), tuple(_B.tolist()))), direct=jax.nn.sigmoid
)
tanh = Activation("tanh", (ErfMixture(tuple(_W.tolist()), tuple((2 * _B).tolist())),), direct=jnp.tanh)
# The normal distribution function.
probit = Activation("probit", (Polynomial((0.5,)), ErfMixture((0.5,), (math.sqrt(0.5),))))
constant = Activation("constant", (Polynomial((1.0,)),))
sign = Activation("sign", (Sign(1.0),), (0.0,))
step = Activation("step", (Polynomial((0.5,)), Sign(0.5)), (0.0,))

_NAMED = {
    s.name: (s, formula)
    for s, formula in (
        (linear, "z"),
        (relu, "max(z, 0)"),
        (absolute, "|z|"),
        (half_absolute, "|z| / 2"),
        (erf, "erf(z)"),
        (erf_over_sqrt2, "erf(z / sqrt(2))"),
        (tanh, "tanh(z)"),
        (sigmoid, "1 / (1 + exp(-z))"),
        (probit, "(1 + erf(z / sqrt(2))) / 2"),
        (sign, "1 if z > 0, -1 if z < 0"),
        (step, "1 if z > 0, 0 if z < 0"),
        (constant, "1"),
    )
}
_MADE = {
    "softplus": "log(1 + exp(z))",
    "leaky_relu": f"max(z, {LEAK} z)",
    "leaky_relu:SLOPE": "z if z > 0, SLOPE z if z < 0",
    "heK": "He_K(z), the Hermite polynomial of order K with leading coefficient 1",
}
_HERMITE_NAMES = [f"he{k}" for k in range(13)]


Spec = str | Activation | Function
"""What an activation can be given as: see `activation`."""


def activation(spec: Spec, kinks: Sequence[float] = ()) -> Activation:
    """The activation of that name, or made from that function; an `Activation` is returned as it is.

    `tt.activations()` lists the names. `kinks`: the points where the slope of a function jumps.

    ```python
    >>> import jax, tutelage as tt
    >>> tt.activation("he2").atoms
    (Polynomial(coefficients=(-1.0, 0.0, 1.0)),)
    >>> tt.kernel(tt.activation(jax.nn.relu6, kinks=(0, 6)), "linear").accuracy.split(",")[0]
    'closed form (finite Hermite sum)'

    ```
    """
    if isinstance(spec, Activation):
        return spec
    if callable(spec):
        return from_callable(spec, kinks=kinks)
    if not isinstance(spec, str):
        raise refused("An activation", spec, "a name, an Activation or a function of one number")
    if spec in _NAMED:
        return _NAMED[spec][0]
    if spec == "softplus":
        return from_callable(jax.nn.softplus, name="softplus")
    if re.fullmatch(r"he\d{1,99}", spec):
        return hermite(int(spec[2:]))
    family, colon, number = spec.partition(":")
    if family == "leaky_relu":
        return leaky_relu(_slope(number)) if colon else leaky_relu()
    raise unknown("activation", spec, [*_NAMED, "softplus", "leaky_relu", *_HERMITE_NAMES])


def _slope(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(
            f"The slope of leaky_relu is {text!r}, but a number was expected, as in leaky_relu:0.1."
        ) from None


class Activations(tuple[tuple[str, str], ...]):
    """Names of activations, each with its formula; prints as a table."""

    def __repr__(self) -> str:
        wide = max(len(name) for name, _ in self)
        return "\n".join(f"{name:{wide}}  {formula}" for name, formula in self)


def activations() -> Activations:
    """The names that an activation can be given by, with their formulas; a function of one number does as well.

    ```python
    >>> import tutelage as tt
    >>> tt.activations()
    linear            z
    relu              max(z, 0)
    abs               |z|
    half_abs          |z| / 2
    erf               erf(z)
    erf_over_sqrt2    erf(z / sqrt(2))
    tanh              tanh(z)
    sigmoid           1 / (1 + exp(-z))
    probit            (1 + erf(z / sqrt(2))) / 2
    sign              1 if z > 0, -1 if z < 0
    step              1 if z > 0, 0 if z < 0
    constant          1
    softplus          log(1 + exp(z))
    leaky_relu        max(z, 0.01 z)
    leaky_relu:SLOPE  z if z > 0, SLOPE z if z < 0
    heK               He_K(z), the Hermite polynomial of order K with leading coefficient 1

    ```
    """
    return Activations([*((name, formula) for name, (_, formula) in _NAMED.items()), *_MADE.items()])
