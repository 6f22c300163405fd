"""The parameters of the paper's experiments, with its symbols."""

from typing import Literal

import numpy as np
import pydantic
from pydantic import Field

from tutelage.papers.fields import Positive, check_cosine, updates
from tutelage.study import Settings

SLOPES = {"abs": (1.0, 0.0), "relu": (0.5, 0.5), "relu2": (1.0, 1.0)}
"""Units `alpha |z| + beta z`, by name."""


class BeyondNtkSettings(Settings):
    """Settings of `beyond_ntk`: a student `1/m sum |w_i| s(w_i.x)` of `sum a_i |z_i|`. The defaults are Figure 1's.

    Time is the number of steps times `step`, which is that of infinite width: Algorithm 1 as it is printed has the step
    `width x step` (`algorithm_step`).
    """

    dim: int = Field(30, ge=2, le=10**12, description="the input dimension d.")
    teachers: int | None = Field(
        None, ge=1, le=1000, description="the number of teacher directions; the paper's is d, which is the default."
    )
    width: int = Field(100, ge=1, le=10**5, description="the number of student units m.")
    variant: Literal["abs", "relu", "relu2"] = Field(
        "abs",
        description="the student's units: |z| as in the simulations, ReLU as in Eq. (1.2), or 2 ReLU, which is what "
        "the analysis is about.",
    )
    teacher: Literal["abs", "relu"] = Field("abs", description="the teacher's units; the paper's are |z|.")
    kappa: float = Field(
        1.0, ge=1, description="the largest over the smallest teacher weight; the weights are evenly spaced between."
    )
    weights: tuple[Positive, ...] | None = Field(
        None, description="the teacher's weights, one per direction; they are scaled to add up to 1."
    )
    cosine: float = Field(0.0, gt=-1, lt=1, description="the cosine of any two teacher directions; the paper's is 0.")
    scale: Positive = Field(1.0, description="the start is N(0, scale^2 I/d); sqrt(d) gives the N(0, I) of Section 3.")
    step: Positive = Field(0.2, description="the step size eta_inf.")
    until: Positive = Field(2000.0, description="the time at which the run ends.")
    samples: int = Field(
        0, ge=0, le=10**8, description="descent on this many examples, used again; 0 is the exact population loss."
    )
    noise: float = Field(0.0, ge=0, description="the standard deviation of the label noise (samples).")
    truncate: tuple[Positive, ...] = Field(
        (), max_length=2, description="1/lambda of each stage of Algorithm 1: units with |w|^2 above it stand still."
    )
    stage: Positive | None = Field(None, description="the time at which the second of two stages begins.")
    half_threshold: bool = Field(
        False, description="truncate at 1/(2 lambda), as in Eq. (2.6), not at 1/lambda as in Algorithm 1."
    )

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "BeyondNtkSettings":
        if self.count > 1000:
            raise ValueError(f"dim is {self.dim}, which would be the number of teachers; set teachers, to at most 1000")
        if self.count > self.dim:
            raise ValueError(f"teachers is {self.count} but dim is {self.dim}; independent ones need dim >= teachers")
        if self.weights is not None and len(self.weights) != self.count:
            raise ValueError(f"weights has {len(self.weights)} entries but there are {self.count} teacher directions")
        check_cosine(self.cosine, self.count)
        if (len(self.truncate) == 2) != (self.stage is not None):
            raise ValueError(
                f"truncate has {len(self.truncate)} entries and stage is {self.stage}; two stages need both, one "
                "stage or none needs no stage time"
            )
        return self

    @property
    def count(self) -> int:
        """The number of teacher directions."""
        return self.dim if self.teachers is None else self.teachers

    @property
    def teacher_weights(self) -> np.ndarray:
        """`a`, which adds up to 1."""
        raw = np.linspace(1.0, self.kappa, self.count) if self.weights is None else np.asarray(self.weights)
        return raw / raw.sum()

    @property
    def mass(self) -> float:
        """The outgoing weight of a unit, its norm apart: 1/m, and twice that for 2 ReLU."""
        return (2 if self.variant == "relu2" else 1) / self.width

    @property
    def caps(self) -> tuple[float, ...]:
        """The largest squared norm of a unit that moves, in each stage."""
        return tuple(cap / 2 if self.half_threshold else cap for cap in self.truncate)

    @property
    def steps(self) -> int:
        """The number of updates."""
        return updates(self.until, self.step)

    @property
    def algorithm_step(self) -> float:
        """The step of Algorithm 1, a multiple of the gradient of the paper's loss: m eta_inf."""
        return self.width * self.step
