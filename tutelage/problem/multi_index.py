"""Polynomials of several directions as two-layer networks: every product is a sum of powers of linear forms."""

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from tutelage._checks import mapping, real, whole
from tutelage._errors import BadInput
from tutelage.problem.activations import Activation, constant, linear, polynomial
from tutelage.problem.frame import Matrix
from tutelage.problem.networks import TwoLayer, given_matrix

Exponents = tuple[int, ...]
MOST_UNITS, HIGHEST = 2000, 12


def multi_index(terms: Mapping[Exponents, float], directions: ArrayLike | None = None) -> TwoLayer:
    """A teacher that is a polynomial of a few directions, `sum_a terms[a] z_1^a_1 z_2^a_2 ...` with `z_i = u_i.x`.

    - `terms`: coefficients by exponents, such as `{(1,): 1.0, (1, 1): 1.0}` for `z_1 + z_1 z_2`.
    - `directions`: the rows `u_i`, any vectors; the first axes of input space if they are not given.

    A product of degree n is a sum of n-th powers of linear forms (Kan 2008), so that this is an ordinary `TwoLayer`,
    exact like any other. Its first units are the directions themselves, so that overlaps with them come first; their
    outgoing weights are the linear terms.

    ```python
    >>> import numpy as np, tutelage as tt
    >>> staircase = tt.multi_index({(1,): 1.0, (1, 1): 1.0, (1, 1, 1): 1.0})
    >>> x = np.array([2.0, 3.0, 5.0])
    >>> round(float(staircase.output(x[None])[0, 0]), 12)  # 2 + 2 * 3 + 2 * 3 * 5
    38.0

    ```
    """
    given = {_exponents(key): real("multi_index: a coefficient", c) for key, c in _items(terms)}
    count = max(map(len, given))
    rows = np.eye(count) if directions is None else given_matrix("multi_index", "directions", directions)
    if len(rows) < count:
        raise BadInput(
            f"multi_index: the terms need {count} directions, but {len(rows)} were given; give one for each."
        )
    axes = np.eye(len(rows))
    forms: defaultdict[tuple[int, tuple[float, ...]], float] = defaultdict(float)
    forms |= {(1, tuple(axis)): 0.0 for axis in axes}
    for exponents, coefficient in given.items():
        for degree, form, weight in _powers(exponents + (0,) * (len(rows) - len(exponents))):
            forms[degree, form] += coefficient * weight
    if len(forms) > MOST_UNITS:
        raise BadInput(
            f"multi_index: the polynomial needs {len(forms)} units, but {MOST_UNITS} are the most; use less."
        )
    units = [_power(degree) for degree, _ in forms]
    first: Matrix = np.array([form for _, form in forms]) @ rows
    return TwoLayer(units, first=first, second=list(forms.values()))


def _items(terms: object) -> list[tuple[object, object]]:
    found = list(mapping("multi_index: terms", terms, "a dictionary such as {(1, 1): 1.0}").items())
    if not found:
        raise BadInput("multi_index: there are no terms; give at least one, such as {(1, 1): 1.0}.")
    return found


def _exponents(key: object) -> Exponents:
    if not isinstance(key, tuple):
        raise BadInput(f"multi_index: the key {key!r} is no tuple of exponents; write (1, 1) for z_1 z_2.")
    exponents = tuple(whole("multi_index: an exponent", each) for each in key)
    if sum(exponents) > HIGHEST:
        raise BadInput(f"multi_index: the term {exponents} has degree {sum(exponents)}, but {HIGHEST} is the highest.")
    return exponents


def _powers(exponents: Exponents) -> list[tuple[int, tuple[float, ...], float]]:
    """`z^a = sum_v (-1)^|v| prod_i binom(a_i, v_i) / n! (h_v.z)^n` with `h_v = a/2 - v`: (degree, form, weight).

    `v` and `a - v` have opposite forms and the same power, so that half of them do, twice as large. With a single
    variable, or none, the product is a power itself.
    """
    degree = sum(exponents)
    if sum(each > 0 for each in exponents) <= 1:
        return [(degree, tuple(float(each > 0) for each in exponents), 1.0)]
    found = []
    for v in itertools.product(*(range(each + 1) for each in exponents)):
        form = tuple(a / 2 - k for a, k in zip(exponents, v, strict=True))
        if form > tuple(-each for each in form):
            size = math.prod(math.comb(a, k) for a, k in zip(exponents, v, strict=True))
            found.append((degree, form, 2 * (-1) ** sum(v) * size / math.factorial(degree)))
    return found


def _power(degree: int) -> Activation:
    if degree < 2:
        return linear if degree else constant
    return polynomial([0.0] * degree + [1.0], name=f"z^{degree}")
