"""The parameters of the paper's experiments, with its symbols and values."""

import math
from typing import Literal

import numpy as np
import pydantic
from pydantic import Field

from tutelage.papers.fields import Positive, check_cosine, updates
from tutelage.study import Settings


class SoftMoeSettings(Settings):
    """Settings of `soft_moe`: m gated students, m* gated teachers. The defaults are those of Figures 1 and 2."""

    dim: int = Field(1000, ge=3, le=10**12, description="the input dimension d.")
    teachers: int = Field(5, ge=1, le=100, description="the number of teacher experts m*.")
    students: int = Field(25, ge=1, le=400, description="the number of student experts m.")
    gate: str = Field("sigmoid", description="the router's function: sigmoid, probit, erf, tanh, softplus, constant.")
    degree: int = Field(3, ge=0, le=8, description="the degree p of the experts' polynomial He_p; the paper's is 3.")
    init: Literal["iid", "orthonormal", "unit", "flipped"] = Field(
        "iid",
        description="the students' first weights: iid Gaussian (Assumption 2), orthonormal, iid of norm 1, or iid with "
        "the experts' signs flipped so that few of them point away from each other.",
    )
    alphas: tuple[float, ...] | None = Field(
        None, description="the weights alpha_j of the teacher experts, one each; all 1 if not given."
    )
    cosine: float = Field(
        0.0,
        gt=-1,
        lt=1,
        description="the cosine of any two teacher experts w*; the paper's are orthogonal, 0.",
    )
    trains: Literal["routers and experts", "experts", "all"] = Field(
        "routers and experts", description="what learns; 'all' adds the students' output weights, which start at 1."
    )
    until: Positive | None = Field(
        None, description="the time at which a run ends; if not given, 150 or, if that is more, 0.6 sqrt(dim)."
    )
    step: Positive = Field(0.01, description="the step size eta of sgd and descent.")
    batch: int = Field(4096, ge=1, le=10**6, description="the number of fresh examples per update of SGD.")
    noise: float = Field(0.0, ge=0, description="the standard deviation of the label noise (sgd).")

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "SoftMoeSettings":
        if 2 * self.teachers > self.dim:
            raise ValueError(
                f"teachers is {self.teachers} but dim is {self.dim}; orthonormal routers and experts need dim >= 2 m*"
            )
        if self.init == "orthonormal" and 2 * self.students > self.dim:
            raise ValueError(f"students is {self.students} but dim is {self.dim}; orthonormal students need dim >= 2 m")
        if self.alphas is not None and len(self.alphas) != self.teachers:
            raise ValueError(f"alphas has {len(self.alphas)} entries but teachers is {self.teachers}; give one each")
        check_cosine(self.cosine, self.teachers)
        return self

    @property
    def horizon(self) -> float:
        """The time at which a run ends."""
        return self.until if self.until is not None else max(150.0, 0.6 * math.sqrt(self.dim))

    @property
    def steps(self) -> int:
        """The number of updates of sgd and descent to the horizon."""
        return updates(self.horizon, self.step, math.ceil)

    @property
    def importance(self) -> np.ndarray:
        """The weights of the teacher experts."""
        return np.asarray(self.alphas) if self.alphas is not None else np.ones(self.teachers)
