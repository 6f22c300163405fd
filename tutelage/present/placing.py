"""Where a label can stand: the candidate box that covers least of what is drawn. Everything is in pixels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Box = tuple[float, float, float, float]  # left, bottom, right, top


@dataclass
class Crowd:
    """What is already on the canvas: points of curves, and boxes of text."""

    points: list[NDArray[np.floating]] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)

    def add_curve(self, points: NDArray[np.floating], spacing: float = 3.0) -> None:
        """Add a polyline, filled up so that no gap is longer than `spacing`."""
        points = points[np.isfinite(points).all(axis=1)]
        if len(points) > 1:
            gaps = np.hypot(*np.diff(points, axis=0).T)
            along = np.concatenate([[0.0], np.cumsum(gaps)])
            count = int(min(along[-1] / spacing, 20_000)) + 1
            places = np.linspace(0.0, along[-1], count)
            points = np.stack([np.interp(places, along, column) for column in points.T], axis=1)
        self.points.append(points)

    def add_points(self, points: NDArray[np.floating]) -> None:
        """Add separate points."""
        self.points.append(points[np.isfinite(points).all(axis=1)])

    def cost(self, box: Box) -> float:
        """How much of the crowd a box covers; a box of text counts far more than a point of a curve."""
        left, bottom, right, top = box
        covered = sum(
            int(((p[:, 0] > left) & (p[:, 0] < right) & (p[:, 1] > bottom) & (p[:, 1] < top)).sum())
            for p in self.points
        )
        return covered + sum(1000.0 * _overlap(box, other) for other in self.boxes)


def _overlap(one: Box, two: Box) -> float:
    """1 for boxes that touch, plus the shared part of the smaller."""
    width = min(one[2], two[2]) - max(one[0], two[0])
    height = min(one[3], two[3]) - max(one[1], two[1])
    if width <= 0 or height <= 0:
        return 0.0
    area = min((b[2] - b[0]) * (b[3] - b[1]) for b in (one, two))
    return 1.0 + width * height / max(area, 1e-9)


def best(candidates: Sequence[Box], crowd: Crowd, inside: Box | None = None) -> tuple[int, float]:
    """The number of the cheapest candidate and its cost; on a tie the earlier wins, and leaving `inside` is dear.

    ```python
    >>> import numpy as np
    >>> from tutelage.present.placing import Crowd, best
    >>> crowd = Crowd(points=[np.array([[5.0, 5.0]])])
    >>> best([(0, 0, 10, 10), (20, 0, 30, 10)], crowd)
    (1, 0.0)

    ```
    """
    costs = [crowd.cost(box) + _outside(box, inside) for box in candidates]
    chosen = int(np.argmin(costs))
    return chosen, float(costs[chosen])


def _outside(box: Box, inside: Box | None) -> float:
    if inside is None:
        return 0.0
    beyond: Iterable[float] = (inside[0] - box[0], inside[1] - box[1], box[2] - inside[2], box[3] - inside[3])
    return 50.0 * sum(max(0.0, b) for b in beyond)
