"""Random numbers for compiled loops: a counter-based generator, so that a draw depends on its key and place only.

The bits are those of the Squares generator (Widynski, arXiv:2004.06278), which has no state: a key and a counter give
the same word on every machine and in every batch of seeds, however a run is cut into chunks. Normals are made by the
Box-Muller transformation with polynomials, all in one loop that the compiler can vectorise.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32, UInt64
from numpy.typing import NDArray

Key = UInt64[Array, ""]

MAX_STEPS = 2**30
PLACES = 2**32  # of one purpose in one step
_MANY = 2048  # words that are worth a loop of their own
_STREAM = 2  # of a seed: 0 is for starting weights, 1 for data (problem.frame.stream)


def key_of(seed: int, *parts: int) -> NDArray[np.uint64]:
    """The key of a seed: two times eight different hexadecimal digits, as the generator asks for, and odd.

    `parts`: numbers that tell further streams of the same seed apart, such as the phase of a training.
    """
    draw = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, _STREAM, *parts])))
    digits = [int(digit) for _ in range(2) for digit in draw.permutation(16)[:8]]
    return np.array(sum(digit << 4 * place for place, digit in enumerate(digits)) | 1, np.uint64)


def keys_of(seeds: Sequence[int]) -> NDArray[np.uint64]:
    """The keys of several seeds."""
    return np.stack([key_of(seed) for seed in seeds])


def random_bits(key: Key, step: Array, purpose: int, place: UInt64[Array, "..."]) -> UInt64[Array, "..."]:
    """64 random bits for each place; each step has room for 4 purposes and 2^32 places."""
    y, z, x = _rounds(key, step, purpose, place)
    return x ^ ((_turn(x) * _turn(x) + y) >> 32)


def short_random_bits(key: Key, step: Array, purpose: int, place: UInt64[Array, "..."]) -> UInt32[Array, "..."]:
    """32 random bits for each place, by one round less."""
    return (_rounds(key, step, purpose, place)[2] >> 32).astype(jnp.uint32)


def _rounds(key: Key, step: Array, purpose: int, place: Array) -> tuple[Array, Array, Array]:
    """The first four rounds of the generator: two terms for a further one, and the state."""
    counter = (step.astype(jnp.uint64) << 34) + np.uint64(purpose << 32) + place
    y = counter * key
    z = y + key
    x = _turn(y * y + y)
    x = _turn(x * x + z)
    x = _turn(x * x + y)
    return y, z, x * x + z


def _turn(x: Array) -> Array:
    return (x >> 32) | (x << 32)


def uniforms(key: Key, step: Array, purpose: int, place: UInt64[Array, "..."]) -> Float[Array, "..."]:
    """Independent uniforms on (0, 1], in double precision."""
    return _unit(random_bits(key, step, purpose, place), _DOUBLE)


def normals(
    key: Key, step: Array, purpose: int, shape: tuple[int, ...], dtype: Any = float, *, turn: Array | int = 0
) -> Float[Array, "..."]:
    """Independent standard normals; further ones of the same shape and purpose with `turn` 1, 2, ...

    ```python
    >>> import jax.numpy as jnp
    >>> from tutelage.dynamics.random import key_of, normals
    >>> z = normals(jnp.asarray(key_of(0)), jnp.array(0), 0, (1000,))
    >>> bool(abs(z.mean()) < 0.1), bool(abs(z.std() - 1) < 0.1)
    (True, True)

    ```
    """
    half = (-(-shape[0] // 2), *shape[1:])
    count = math.prod(half)
    pair = jnp.arange(count, dtype=jnp.uint64).reshape(half) + jnp.asarray(turn, jnp.uint64) * np.uint64(count)
    draw, form = (short_random_bits, _SINGLE) if jnp.dtype(dtype) == jnp.float32 else (random_bits, _DOUBLE)
    members = jnp.arange(2, dtype=jnp.uint64)

    def drawn(member: Array) -> Array:
        return draw(key, step, purpose, (pair << 1) + member)

    # Many words are made in a loop of two turns, and so stored: the compiler would make them again at every use.
    one, two = jax.lax.map(drawn, members) if count >= _MANY else jax.vmap(drawn)(members)
    return _box_muller(one, two, form).reshape(2 * half[0], *half[1:])[: shape[0]]


def normal_rows(
    key: Key, rows: UInt64[Array, " row"], purpose: int, columns: int, dtype: Any = float
) -> Float[Array, "row column"]:
    """Standard normals, a row for each number in `rows`, which a row's entries depend on alone."""
    half = -(-columns // 2)
    place = jnp.arange(half, dtype=jnp.uint64)[None]
    draw, form = (short_random_bits, _SINGLE) if jnp.dtype(dtype) == jnp.float32 else (random_bits, _DOUBLE)
    # In a loop of two turns, and so stored, as in `normals`.
    one, two = jax.lax.map(
        lambda member: draw(key, rows[:, None], purpose, (place << 1) + member), jnp.arange(2, dtype=jnp.uint64)
    )
    return jnp.concatenate(list(_box_muller(one, two, form)), axis=1)[:, :columns]


_Real = type[np.float32] | type[np.float64]
_Whole = type[np.uint32] | type[np.uint64]


class _Format:
    """How a floating-point number is built of bits, and how many terms its series need."""

    def __init__(self, real: _Real, whole: _Whole, mantissa: int, bias: int, terms: int, log_terms: int):
        self.real, self.whole, self.mantissa, self.bias = real, whole, mantissa, bias
        self.one = whole(bias << mantissa)
        # sin(2 pi x)/x and cos(2 pi x) in x^2 for |x| <= 1/8; log((1+s)/(1-s))/s in s^2 for s^2 <= 0.0295.
        turn = -((2 * math.pi) ** 2)
        self.sine = [2 * math.pi * turn**k / math.factorial(2 * k + 1) for k in range(terms)]
        self.cosine = [turn**k / math.factorial(2 * k) for k in range(terms + 1)]
        self.logarithm = [2 / (2 * k + 1) for k in range(log_terms)]


_SINGLE = _Format(np.float32, np.uint32, 23, 127, 5, 5)
_DOUBLE = _Format(np.float64, np.uint64, 52, 1023, 8, 11)


def _from_one_to_two(bits: Array, form: _Format) -> Array:
    """Uniform on [1, 2): the top bits as a mantissa."""
    spare = 8 * bits.dtype.itemsize - form.mantissa
    made: Array = jax.lax.bitcast_convert_type((bits >> spare) | form.one, form.real)
    return made


def _unit(bits: Array, form: _Format) -> Array:
    """Uniform on (0, 1]; in single precision from all bits, because 23 would end the normal law at 5.6."""
    if form is _DOUBLE:
        return 2 - _from_one_to_two(bits, form)
    return (bits >> 1).astype(jnp.int32).astype(form.real) * form.real(2**-31) + form.real(2**-32)


def _series(x: Array, coefficients: list[float]) -> Array:
    total = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + x.dtype.type(coefficient)
    return total


def _log(u: Array, form: _Format) -> Array:
    """log of numbers in (0, 1], from exponent and mantissa; the compiled library's is not vectorised."""
    bits = jax.lax.bitcast_convert_type(u, form.whole)
    power = (bits >> form.mantissa).astype(jnp.int32) - form.bias
    part = jax.lax.bitcast_convert_type((bits & form.whole((1 << form.mantissa) - 1)) | form.one, form.real)
    large = part > form.real(math.sqrt(2))
    part = jnp.where(large, part / 2, part)
    s = (part - 1) / (part + 1)
    logarithm: Array = s * _series(s * s, form.logarithm)
    return logarithm + (power + large.astype(jnp.int32)).astype(form.real) * form.real(math.log(2))


def _box_muller(one: Array, two: Array, form: _Format) -> Array:
    """A radius from one word; from the other an angle, at most an eighth of a turn from one of the four axes.

    Both members of each pair, along a new first axis.
    """
    radius = jnp.sqrt(-2 * _log(_unit(one, form), form))
    x = (_from_one_to_two(two, form) - form.real(1.5)) / 4
    sine = x * _series(x * x, form.sine)
    cosine = _series(x * x, form.cosine)
    cosine = jnp.where(two & form.whole(1) == 0, cosine, -cosine)
    # One loop that takes the sine or the cosine is quicker than joining the two.
    former = jnp.array([True, False]).reshape(2, *(1 for _ in one.shape))
    first = (two & form.whole(2) == 0)[None] == former
    return radius[None] * jnp.where(first, sine[None], cosine[None])
