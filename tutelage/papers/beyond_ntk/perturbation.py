"""How a small error of each neuron changes the force on it (Section B.2): the first-order terms, and Claims B.1-B.3.

A law of pairs `(w, xi)` is two matrices with a row each, equally likely. Forces are those at infinite width, `G`.
"""

import numpy as np

from tutelage.papers.beyond_ntk.constants import B0, B2, coefficient
from tutelage.problem import Numbers


def _units(w: Numbers) -> tuple[Numbers, Numbers]:
    norm = np.linalg.norm(w, axis=1, keepdims=True)
    return norm, w / norm


def low_terms(w: Numbers, xi: Numbers, a: Numbers) -> Numbers:
    """Orders 0 and 2 (Eq. B.3), for each neuron."""
    count, axes = len(w), np.diag(a)
    mixed = w.T @ xi / count
    zero = 2 * B0 * np.mean(np.sum(w * xi, axis=1)) * w + B0 * (np.mean(np.sum(w**2, axis=1)) - np.sum(a)) * xi
    return zero + B2 * (xi @ (w.T @ w / count - axes) + w @ (mixed + mixed.T))


def mean_shift(w: Numbers, xi: Numbers) -> Numbers:
    """`E (|w| xi + w <wbar, xi>)`, the change of `E |w| w`."""
    norm, unit = _units(w)
    return np.mean(norm * xi + w * np.sum(unit * xi, axis=1, keepdims=True), axis=0)


def first_terms(w: Numbers, xi: Numbers) -> Numbers:
    """Order 1 of 2 ReLU at a symmetric law, where `E |w| w = 0` (before Claim B.2)."""
    norm, unit = _units(w)
    change = mean_shift(w, xi)
    return 2 * (norm * change + (unit @ change)[:, None] * w)


def high_terms(w: Numbers, xi: Numbers, a: Numbers, half: int) -> Numbers:
    """The 16 terms of order `2j` for each neuron, (16, n, d), with constants that add up to the derivative.

    The paper's `b + b'` is `4j c_2j` and its `b'` is `(4j - 4) c_2j`; teachers are the axes.
    """
    j, count = half, len(w)
    both, radial = 4 * j * coefficient(2 * j), (4 * j - 4) * coefficient(2 * j)
    norm, unit = _units(w)
    cosine, inner = unit @ unit.T, w @ w.T  # [v, w]
    power = cosine ** (2 * j - 2) / count
    own = np.sum(xi * unit, axis=1, keepdims=True)  # <xi_v, vbar>
    moved_w, moved_v = w @ xi.T, xi @ w.T  # <xi_w, v>, <w, xi_v>
    reach = unit @ w.T  # <w, vbar>

    def sums(pairs: Numbers) -> Numbers:
        return np.sum(pairs, axis=1, keepdims=True)

    fourth = sums(reach**2 * power)
    teacher = sums(a * unit ** (2 * j))
    return np.stack(
        [
            (2 * j - 1) * both * ((moved_w + moved_v) * power) @ w,
            both * (inner * power) @ xi,
            -(2 * j - 2) * both * (inner / norm.T * power * own.T) @ w,
            -(2 * j - 2) * both * own * ((reach * power) @ w),
            -2 * j * radial * sums(moved_w * power * reach) * unit,
            -2 * j * radial * sums(moved_v * power * reach) * unit,
            (2 * j - 2) * radial * sums(own.T * power * cosine * inner) * unit,
            (2 * j - 1) * radial * own * fourth * unit,
            -radial * fourth * xi,
            radial * fourth * own * unit,
            -(2 * j - 1) * both * a * xi * unit ** (2 * j - 2),
            (2 * j - 2) * both * own * a * unit ** (2 * j - 1),
            2 * j * radial * sums(a * xi * unit ** (2 * j - 1)) * unit,
            -(2 * j - 1) * radial * own * teacher * unit,
            radial * teacher * xi,
            -radial * teacher * own * unit,
        ]
    )


def pairing(force: Numbers, xi: Numbers) -> float:
    """`E <force, xi>`: how fast the force makes the mean of `|xi|^2` fall, halved."""
    return float(np.mean(np.sum(force * xi, axis=1)))


def claim_b1(w: Numbers, xi: Numbers) -> tuple[float, float]:
    """Claim B.1: `E <(E w xi^T + E xi w^T) v, xi_v>`, and the square that it equals."""
    mixed = w.T @ xi / len(w)
    whole = mixed + mixed.T
    return pairing(w @ whole, xi), float(np.sum(whole**2) / 2)


def claim_b2(w: Numbers, xi: Numbers) -> tuple[float, float]:
    """Claim B.2, with the mean over v that it lacks in print: order 1 paired with xi, and the square (b_1 = 2)."""
    return pairing(first_terms(w, xi), xi), 2 * float(np.sum(mean_shift(w, xi) ** 2))


def claim_b3(w: Numbers, xi: Numbers, half: int) -> tuple[float, float]:
    """Claim B.3: `E <wbar, vbar>^(2j-2) <w, xi_v> (<v, xi_w> + <w, xi_v>)`, and the mean of squares that it equals."""
    _, unit = _units(w)
    power = (unit @ unit.T) ** (2 * half - 2)
    here = xi @ w.T
    return float(np.mean(power * here * (here.T + here))), float(np.mean(power * (here + here.T) ** 2) / 2)


def claim_b8(w: Numbers, xi: Numbers, a: Numbers, half: int) -> tuple[Numbers, Numbers]:
    """Claim B.8: terms 15 and 16 paired with xi, neuron by neuron, and what they equal, which is not negative."""
    _, unit = _units(w)
    terms = high_terms(w, xi, a, half)
    across = np.sum(xi**2, axis=1) - np.sum(xi * unit, axis=1) ** 2
    rate = (4 * half - 4) * coefficient(2 * half)
    return np.sum((terms[14] + terms[15]) * xi, axis=1), rate * (unit ** (2 * half) @ a) * across
