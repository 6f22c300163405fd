"""Many starts of the paper's problem: inner products and norms of the first weights, no run."""

from functools import cached_property
from typing import Any

import numpy as np

from tutelage.papers.soft_moe import recipe
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.problem import Numbers
from tutelage.study import Size

COUNTS: dict[Size, int] = {"quick": 2000, "full": 5000}
MOST = 4 * 10**7  # numbers held at a time: a large problem gets fewer draws


class Draws:
    """The starts of seeds 0, 1, ..., `count - 1`, made when first asked for; arrays (draw, student, ...).

    ```python
    >>> from tutelage.papers.soft_moe.draws import Draws
    >>> from tutelage.papers.soft_moe.settings import SoftMoeSettings
    >>> draws = Draws(SoftMoeSettings(dim=10**6), count=3)
    >>> draws.products.shape, draws.norm_expert.shape
    ((3, 25, 5), (3, 25))

    ```
    """

    def __init__(self, settings: SoftMoeSettings, count: int):
        vectors = 2 * (settings.students + settings.teachers)
        self.settings = settings
        self.count = min(count, max(10, MOST // (2 * settings.students * min(vectors, settings.dim))))

    def varied(self, count: int, **values: Any) -> "Draws":
        """Draws of the same problem with some settings changed."""
        return Draws(SoftMoeSettings(**self.settings.model_dump() | values), count)

    @cached_property
    def _starts(self) -> tuple[Numbers, Numbers]:
        problem = recipe.problem(self.settings)
        starts = [problem.begin(seed) for seed in range(self.count)]
        return np.stack([start.student.first for start in starts]), np.asarray(starts[0].teacher.first)

    @property
    def teacher(self) -> Numbers:
        """The teacher's rows, routers then experts: the same in all draws."""
        return self._starts[1]

    @cached_property
    def onto(self) -> Numbers:
        """Inner products (draw, 2m, 2m*) of the students' rows with the teacher's, routers then experts."""
        return self._starts[0] @ self.teacher.T

    @cached_property
    def gram(self) -> Numbers:
        """Inner products (draw, 2m, 2m) of the students' rows, routers then experts."""
        return self._starts[0] @ self._starts[0].swapaxes(1, 2)

    @property
    def products(self) -> Numbers:
        """`w_i(0).w*_j`, the table of Eq. (6)."""
        return self.onto[:, self.settings.students :, self.settings.teachers :]

    @property
    def norm_router(self) -> Numbers:
        """`a_i = ||v_i||`."""
        return np.linalg.norm(self._starts[0][:, : self.settings.students], axis=-1)

    @property
    def norm_expert(self) -> Numbers:
        """`b_i = ||w_i||`."""
        return np.linalg.norm(self._starts[0][:, self.settings.students :], axis=-1)

    @property
    def overlap_expert(self) -> Numbers:
        """The cosines gamma2."""
        lengths = np.linalg.norm(self.teacher[self.settings.teachers :], axis=1)
        return self.products / (self.norm_expert[..., None] * lengths)

    @property
    def overlap_ss_expert(self) -> Numbers:
        """The cosines I2 of the students' experts."""
        m, lengths = self.settings.students, self.norm_expert
        return self.gram[:, m:, m:] / (lengths[:, :, None] * lengths[:, None, :])


def in_all_coordinates(settings: SoftMoeSettings, count: int, seed: int) -> tuple[Numbers, Numbers]:
    """Assumption 2 word for word, with vectors of length dim: `onto` and `gram` of as many draws.

    A second route to the law of `Draws`, for small problems.
    """
    m, k, dim = settings.students, settings.teachers, settings.dim
    experts, routers = np.random.default_rng(seed).standard_normal((2, count, m, dim)) / np.sqrt(dim)
    axes = experts / np.linalg.norm(experts, axis=-1, keepdims=True)
    routers = routers - np.sum(routers * axes, axis=-1, keepdims=True) * axes
    rows = np.concatenate([routers, experts], axis=1)
    return rows[..., : 2 * k], rows @ rows.swapaxes(1, 2)
