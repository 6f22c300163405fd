"""States made for the lemmas: near a minimum, aligned as phase 2 is said to have them, anywhere in a box of norms."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tutelage.papers.relu_teachers.steps import Step
from tutelage.problem import Numbers

SHAPES = ((1, 2), (1, 3), (1, 8), (2, 4), (2, 6), (3, 6), (3, 9), (4, 8), (4, 20))
"""Teachers and students, in groups of one size."""
ANGLES = (0.5, 0.1, 0.03, 0.01)
EPS2S = (1e-2, 1e-3, 1e-5)
BOXES = ((1, 1), (1, 2), (1, 20), (2, 4), (2, 20), (4, 8), (4, 40))


def states(random: np.random.Generator, draws: int) -> Iterator[Step]:
    """Angles up to theta; sums off by up to 0, theta^2, theta^1.5 and theta; norms in the box of Lemma 5."""
    for k, m in SHAPES:
        for theta in ANGLES:
            for power in (np.inf, 2.0, 1.5, 1.0):
                for _ in range(draws):
                    tau = np.arange(m) % k
                    share = np.exp(random.uniform(-0.35, 0.35, m))
                    height = share / np.bincount(tau, weights=share)[tau]
                    height *= (1 + theta**power * random.uniform(-0.6, 0.6, k))[tau]
                    yield Step(_leaning(random, tau, height, theta * random.uniform(0, 1, m)), np.eye(k, m + k), 1, tau)


def aligned(random: np.random.Generator, draws: int, eta: float) -> Iterator[tuple[float, Step]]:
    """With eps2: all angles up to it, heights up to 2 nv/m_l, and each group still short of its teacher (Eq. 33-35)."""
    for k, m in SHAPES:
        for eps2 in EPS2S:
            for _ in range(draws):
                tau = np.arange(m) % k
                share = random.uniform(0.5, 1, m)
                height = share / np.bincount(tau, weights=share)[tau] * random.uniform(0.01, 1 - 76 * eps2, k)[tau]
                angle = eps2 * random.choice((1.0, random.uniform()), m)
                yield eps2, Step(_leaning(random, tau, height, angle), np.eye(k, m + k), eta, tau)


def _leaning(
    random: np.random.Generator, tau: NDArray[np.intp], height: Numbers, angle: Numbers
) -> NDArray[np.floating]:
    """Students with these components along their teachers, and at these angles from them, in random directions."""
    count, teachers = len(tau), int(tau.max()) + 1
    own = np.eye(teachers, count + teachers)[tau]
    across = random.standard_normal(own.shape) * (1 - own)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return height[:, None] * (own + np.tan(angle)[:, None] * across)


@dataclass(frozen=True)
class Box:
    """A state with nv/(5 m_l) <= |w_i| <= 5 nv/m_l, and the sizes of its groups."""

    first: Numbers
    teacher: Numbers
    counts: NDArray[np.intp]

    @property
    def excess(self) -> float:
        """How far a norm leaves the box, as a factor; at most 1 within."""
        size = np.linalg.norm(self.first, axis=1) * self.counts
        return float(max(np.max(size) / 5, np.max(1 / (5 * size))))


def boxes(random: np.random.Generator, draws: int) -> Iterator[Box]:
    """Random directions with random norms, and the worst that we know: one shortest student, all others longest."""
    for k, m in BOXES:
        counts = np.full(m, m // k)
        for number in range(max(2, draws // 10)):
            unit = random.standard_normal((m, m + k))
            unit /= np.linalg.norm(unit, axis=1, keepdims=True)
            size = (1 - 1e-9) * 5.0 ** random.uniform(-1, 1, m)
            if number == 0:
                size = np.where(np.arange(m) == 0, 0.2 + 1e-9, 5 - 1e-9)
                unit = np.eye(m, m + k, k)
            yield Box((size / counts)[:, None] * unit, np.eye(k, m + k), counts)
