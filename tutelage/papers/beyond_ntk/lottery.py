"""Lottery tickets: the sets of starts that the proof tells apart, and what becomes of the neurons in them (Lemma A.3).

A neuron whose coordinate i starts above `Gamma_i` blows up before the horizon, if all goes by the cubic law alone;
`rho` is the margin for what that law leaves out. The paper gives orders only: horizon, margin and powers of log d are
the caller's, with defaults that make sense where d is 30 or 100.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

from tutelage import BadInput
from tutelage.papers.beyond_ntk.directions import RATE4
from tutelage.problem import Numbers

Truth = NDArray[np.bool_]

MARGIN = 0.25
"""rho over Gamma; the paper has `rho = poly(kappa_1) log d/d`, of the order of Gamma itself."""
KINDS = ("good", "potential", "bad", "other")
"""A neuron's kind by its start: in S_good; in S_pot, but neither good nor bad; in S_bad; in none of them."""
FATES = ("its own", "another", "none")
"""What a neuron won: the coordinate that was largest at the start, another one, or none."""


def typical(start: ArrayLike, weights: ArrayLike) -> Truth:
    """Which starts (n, d) are in S_g (Definition A.1).

    The largest entry is at most `log(d)^1.5/sqrt d`; `|w|^2` is within `log(d)/sqrt d` of 1, and so is
    `sum_i a_i d w_i^2`; at most `1 + log d` coordinates have `w_i^2 >= log(d)/d`, where the paper's `log^0.01 d` is 1
    for every d there is.
    """
    square, a = np.atleast_2d(np.asarray(start, float)) ** 2, np.asarray(weights, float)
    dim = len(a)
    log = math.log(dim)
    near, few = log / math.sqrt(dim), np.sum(square >= log / dim, axis=1) <= 1 + log
    sized = (np.abs(square.sum(1) - 1) <= near) & (np.abs(square @ a * dim - 1) <= near)
    return (square.max(1) <= log**3 / dim) & sized & few


class Bars(NamedTuple):
    """`Gamma_i` and the margin `rho_i` of every coordinate."""

    level: Numbers
    margin: Numbers


def bars(weights: ArrayLike, horizon: float, margin: float = MARGIN) -> Bars:
    """`Gamma_i = 1/(2 B_14 a_i^2 d horizon)` for the time `horizon = eta T_2'`; `margin` is rho over Gamma.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.beyond_ntk.lottery import bars
    >>> bars(np.full(32, 1 / 32), horizon=256.0).level[0].round(4).item()
    0.2945

    ```
    """
    a = np.asarray(weights, float)
    if not (horizon > 0 and 0 <= margin < 1):
        raise BadInput(
            f"bars: horizon is {horizon} and margin {margin}; a positive time and a part below 1 are needed."
        )
    level = 1 / (2 * RATE4 * a**2 * len(a) * horizon)
    return Bars(level, margin * level)


class Tickets(NamedTuple):
    """For each neuron and coordinate i, whether the start is in S_i,pot, S_i,good, S_i,bad."""

    potential: Truth
    good: Truth
    bad: Truth

    @property
    def kind(self) -> NDArray[np.int64]:
        """The number in `KINDS` of each neuron."""
        sets = (self.good, self.bad, self.potential)
        return np.select([each.any(1) for each in sets], [0, 2, 1], default=3)


def tickets(start: ArrayLike, bars: Bars, within: ArrayLike | None = None) -> Tickets:
    """The sets of Lemma A.3 and Proposition A.4 for starts (n, d); `within` are those in S_g, all if None.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.beyond_ntk.lottery import KINDS, Bars, tickets
    >>> found = tickets([[0.9, 0.1], [0.6, 0.1], [0.8, 0.7], [0.2, 0.1]], Bars(np.full(2, 0.4), np.full(2, 0.1)))
    >>> [KINDS[kind] for kind in found.kind]
    ['good', 'potential', 'bad', 'other']

    ```
    """
    square = np.atleast_2d(np.asarray(start, float)) ** 2
    inside = np.ones(len(square), bool) if within is None else np.asarray(within, bool)
    potential = (square >= bars.level - bars.margin) & inside[:, None]
    count = potential.sum(1, keepdims=True)
    good = potential & (square >= bars.level + bars.margin) & (count == 1)
    return Tickets(potential, good, potential & (count > 1))


def fates(start: ArrayLike, winner: ArrayLike) -> NDArray[np.int64]:
    """The number in `FATES` of each neuron; `winner` is the coordinate that it won, -1 if none."""
    first, winner = np.argmax(np.abs(np.atleast_2d(np.asarray(start, float))), axis=1), np.asarray(winner)
    return np.where(winner < 0, 2, np.where(winner == first, 0, 1))


def confusion(kind: ArrayLike, fate: ArrayLike) -> NDArray[np.int64]:
    """How many neurons of each of `KINDS` (rows) had each of `FATES` (columns).

    ```python
    >>> from tutelage.papers.beyond_ntk.lottery import confusion
    >>> confusion([0, 0, 3], [0, 0, 2]).tolist()
    [[2, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]]

    ```
    """
    table = np.zeros((len(KINDS), len(FATES)), np.int64)
    np.add.at(table, (np.asarray(kind), np.asarray(fate)), 1)
    return table


class Measures(NamedTuple):
    """The probabilities of S_i,good and S_i,bad under N(0, I/d), any one i."""

    good: Numbers
    bad: Numbers


def measures(dim: ArrayLike, level: ArrayLike, margin: float = MARGIN) -> Measures:
    """Exact, for equal weights, without the restriction to S_g; `level` is `d Gamma`, of order log d in the paper.

    ```python
    >>> from tutelage.papers.beyond_ntk.lottery import measures
    >>> ["%.3e" % float(x) for x in measures(100, 20.0)]
    ['5.672e-07', '1.138e-06']

    ```
    """
    dim, level = np.asarray(dim, float), np.asarray(level, float)
    low, high = chi2.sf(level * (1 - margin), 1), chi2.sf(level * (1 + margin), 1)
    others = (dim - 1) * np.log1p(-low)  # log of the probability that no other coordinate is above Gamma - rho
    return Measures(high * np.exp(others), -low * np.expm1(others))
