"""The parameters of the paper's experiments, with its symbols and values."""

import math
from typing import Literal

import numpy as np
import pydantic
from pydantic import Field

from tutelage.papers.fields import Positive, check_cosine
from tutelage.study import Settings

PAPER_STEP = 5e-4


class ReluTeachersSettings(Settings):
    """Settings of `relu_teachers`: m ReLU students, k orthogonal ReLU teachers. The defaults are those of Figure 2."""

    dim: int = Field(100, ge=1, le=10**12, description="the input dimension d.")
    teachers: int = Field(4, ge=1, le=200, description="the number of teachers k.")
    students: int = Field(20, ge=1, le=2000, description="the number of students m; fewer than k are allowed.")
    norm: Positive = Field(5.0, description="the common norm of the teachers, |v|.")
    norms: tuple[Positive, ...] | None = Field(
        None, description="the norms of the teachers, one each, instead of `norm` for all."
    )
    cosine: float = Field(
        0.0, gt=-1, lt=1, description="the cosine of any two teachers; the paper's are orthogonal, 0."
    )
    activation: str = Field("relu", description="the activation of students and teachers; the paper's is relu.")
    init: Literal["gaussian", "weak"] = Field(
        "gaussian",
        description="the law of the initial weights: N(0, scale^2), or weak recovery (Assumptions 1 to 3).",
    )
    scale: Positive = Field(1e-6, description="the initialisation scale sigma (a standard deviation).")
    angle: float = Field(
        math.pi / 4, ge=0, lt=math.pi / 2, description="weak recovery: the angle of a student to its teacher."
    )
    zeta: float = Field(
        0.01, ge=0, lt=math.pi / 2, description="weak recovery: the largest deviation from pi/2 of its other angles."
    )
    counts: tuple[int, ...] | None = Field(
        None, description="weak recovery: how many students lean to each teacher; equally many if not given."
    )
    first: tuple[tuple[float, ...], ...] | None = Field(
        None,
        description="the initial weights, one row per student, instead of a random draw; the teachers are on axes.",
    )
    trains: Literal["first", "both"] = Field(
        "first", description="the layers that learn; the paper fixes the outer weights at 1."
    )
    step: Positive | None = Field(
        None,
        description="the step size eta; if not given, the paper's 5e-4, in SGD at most batch/(students dim).",
    )
    steps: int = Field(5000, ge=1, le=10**9, description="the number of updates; a flow runs to time step x steps.")
    batch: int = Field(512, ge=1, le=10**6, description="the number of fresh examples per update of SGD.")
    samples: int = Field(
        0,
        ge=0,
        le=10**8,
        description="descent and flow on this many examples, used again; 0 is the exact population loss.",
    )
    noise: float = Field(0.0, ge=0, description="the standard deviation of the label noise (sgd and samples).")

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "ReluTeachersSettings":
        if self.teachers > self.dim:
            raise ValueError(f"teachers is {self.teachers} but dim is {self.dim}; independent teachers need dim >= k")
        if self.norms is not None and len(self.norms) != self.teachers:
            raise ValueError(f"norms has {len(self.norms)} entries but teachers is {self.teachers}; give one each")
        check_cosine(self.cosine, self.teachers)
        if self.counts is not None and (len(self.counts) != self.teachers or sum(self.counts) != self.students):
            raise ValueError(
                f"counts has {len(self.counts)} numbers that add up to {sum(self.counts)}, but {self.teachers} that "
                f"add up to students = {self.students} were expected"
            )
        if self.first is not None and len(self.first) != self.students:
            raise ValueError(f"first has {len(self.first)} rows but students is {self.students}; give one row each")
        if self.init == "weak" and self.first is None and self.dim <= self.teachers:
            raise ValueError(
                f"dim is {self.dim}; weak recovery needs more dimensions than the {self.teachers} teachers"
            )
        return self

    def pace(self, dynamics: str) -> float:
        """The step size: the one asked for, or the paper's, kept where SGD is stable.

        SGD diverges above some multiple of batch/(students dim), because the noise of a batch grows with the dimension;
        at 20 students that multiple was seen to lie between 2 and 4.
        """
        if self.step is not None:
            return self.step
        return min(PAPER_STEP, self.batch / (self.students * self.dim)) if dynamics == "sgd" else PAPER_STEP

    @property
    def teacher_norms(self) -> np.ndarray:
        """One a teacher."""
        return np.asarray(self.norms) if self.norms is not None else np.full(self.teachers, self.norm)

    @property
    def plain(self) -> bool:
        """Assumption 2 and the paper's network: equal orthogonal ReLU teachers, outer weights fixed at 1."""
        equal = self.norms is None or len(set(self.norms)) == 1
        return equal and self.cosine == 0 and self.activation == "relu" and self.trains == "first"
