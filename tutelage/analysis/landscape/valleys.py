"""Descent around a degenerate stationary point, searched for on small spheres."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float
from numpy.typing import NDArray

from tutelage.analysis import lines
from tutelage.analysis.landscape.local import Chart, Free, heights, loss

RADII, PROBES = np.array([0.01, 0.02, 0.04, 0.08]), 24


@dataclass(frozen=True)
class Descent:
    """The lowest loss found on small spheres around a point; radii are relative to the norms of the units' rows.

    `fall[i]` is how far below the point's own loss the search got at `radii[i]`; only a fall above `noise[i]`
    counts, which is what rounding and the remaining gradient could make. `exponent` is the slope of ln fall
    against ln radius, `nan` unless every fall counts.
    """

    radii: NDArray[np.floating]
    fall: NDArray[np.floating]
    noise: NDArray[np.floating]

    @property
    def everywhere(self) -> bool:
        """Whether the loss falls on every sphere, so that the descent starts at the point itself."""
        return bool(np.all(self.fall > self.noise))

    @property
    def exponent(self) -> float:
        return float(lines.exponent(self.radii, self.fall)) if self.everywhere else float("nan")

    @property
    def sentence(self) -> str:
        best = int(np.argmax(self.fall))
        spheres = f"{len(self.radii)} spheres of radius {self.radii[0]:.3g} to {self.radii[-1]:.3g}"
        if self.everywhere:
            fall = f"by up to {self.fall[best]:.3g}, as radius^{self.exponent:.2f}"
            return f"Numerical evidence: the loss falls on each of {spheres}, {fall}."
        if self.fall[best] > self.noise[best]:
            later = f"a lower loss ({self.fall[best]:.3g} below) begins only by radius {self.radii[best]:.3g}"
            return f"Numerical evidence: no descent at radius {self.radii[0]:.3g}; {later}."
        return f"Numerical evidence: no descent on {spheres}; the largest fall, {self.fall[best]:.1e}, is rounding."


@dataclass(frozen=True)
class Search:
    """The search from a point with gradient norm `slope`, at `RADII`, from `PROBES` directions each."""

    chart: Chart
    slope: float

    def descent(self, kernel: NDArray[np.floating], lowest: float) -> Descent:
        """Half of the directions are in the span of the columns of `kernel`, half anywhere.

        `lowest` is the negative part of the least eigenvalue.
        """
        generator = np.random.default_rng(0)
        inside = generator.standard_normal((PROBES // 2, kernel.shape[1])) @ kernel.T
        outside = generator.standard_normal((PROBES // 2, kernel.shape[0]))
        scales = np.asarray(self.chart.scales())
        directions = np.concatenate([inside / scales, outside])
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        radii = jnp.asarray(RADII)
        first, best = _lowest_on_spheres(self.chart, radii, jnp.asarray(directions))
        # Once more, where the best way down at each radius is tried at all the others.
        directions[: len(best)] = np.asarray(best)
        second, _ = _lowest_on_spheres(self.chart, radii, jnp.asarray(directions))
        # The most that a gradient and a negative eigenvalue too small to count could give, twice over.
        reach = RADII * np.max(scales)
        leftover = 2 * (self.slope * reach - lowest * reach**2 / 2)
        rounding = [self.rounding(r * scales * z) for r, z in zip(RADII, np.asarray(best), strict=True)]
        return Descent(RADII, -np.asarray(jnp.minimum(first, second)), np.array(rounding) + leftover)

    def rounding(self, move: NDArray[np.floating] | float) -> float:
        """What changes of the weights in their last digits do to the loss after a move, with a margin."""
        point = np.asarray(self.chart.vector())
        shake = 4e-16 * np.random.default_rng(0).standard_normal((32, len(point)))
        level = float(loss(self.chart.vector(), self.chart))
        return 16 * float(jnp.ptp(heights(self.chart, jnp.asarray(move + (point + move) * shake)))) + 1e-15 * abs(level)

    def confirms(self, value: float, vector: NDArray[np.floating]) -> bool:
        """Whether the loss falls along an eigenvector by at least half of what its negative eigenvalue promises."""
        # So short a way that a cubic term cannot hide the square one, unless it is steeper than 1 / length.
        length = min(1e-3, -float(value)) * float(self.chart.scale())
        promised = -float(value) * length**2 / 2
        fall = -float(jnp.min(heights(self.chart, jnp.asarray([length * vector, -length * vector]))))
        return fall > promised / 2 or promised < 10 * self.rounding(0.0)


@eqx.filter_jit
def _lowest_on_spheres(
    chart: Chart, radii: Float[Array, " radii"], directions: Float[Array, "probes free"]
) -> tuple[Float[Array, " radii"], Float[Array, "radii free"]]:
    """The lowest loss (less the point's own) on each sphere and where it is, by BFGS from every given direction."""
    point, scales = chart.vector(), chart.scales()
    own = loss(point, chart)

    def height(direction: Free, radius: Float[Array, ""]) -> Float[Array, ""]:
        return loss(point + radius * scales * direction / jnp.linalg.norm(direction), chart) - own

    def one(radius: Float[Array, ""], direction: Free) -> tuple[Float[Array, ""], Free]:
        scaled = lambda z, r: height(z, r) / r**2  # noqa: E731
        solver: Any = optx.BFGS(1e-9, 1e-12)
        end = optx.minimise(scaled, solver, direction, radius, max_steps=200, throw=False).value
        end = jnp.where(height(end, radius) < height(direction, radius), end, direction)
        low = height(end, radius)
        return jnp.where(jnp.isfinite(low), low, jnp.inf), end / jnp.linalg.norm(end)

    def lowest(radius: Float[Array, ""]) -> tuple[Float[Array, ""], Free]:
        lows, ends = jax.vmap(lambda z: one(radius, z))(directions)
        return jnp.min(lows), ends[jnp.argmin(lows)]

    return jax.vmap(lowest)(radii)
