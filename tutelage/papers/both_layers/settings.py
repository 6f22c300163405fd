"""The parameters of the paper's experiments, with its symbols and values."""

from typing import Literal

import pydantic
from pydantic import Field

from tutelage.papers.fields import Positive
from tutelage.study import Settings


class BothLayersSettings(Settings):
    """Settings of `both_layers`: a ReLU network learning a linear target, both layers trained."""

    dim: int = Field(100, ge=1, le=10**12, description="the input dimension d.")
    width: int = Field(2, ge=1, le=2000, description="the number of hidden units k.")
    outputs: int = Field(1, ge=1, le=200, description="the number of outputs r.")
    target: Positive = Field(1.0, description="the norm of the target a (one output), or the scale of A.")
    singular_values: tuple[Positive, ...] | None = Field(
        None, description="the singular values of A, one per output; all equal to `target` if not given."
    )
    init: Literal["paper_chi", "xavier", "gauss_half"] = Field(
        "paper_chi",
        description="the law of the initial weights: Theorem 2's, Section 4's, or that of the remark after Theorem 2.",
    )
    scale: Positive = Field(1e-4, description="the initialisation scale sigma.")
    offset: float = Field(0.0, description="the multiple of a around which all units start (1.5 in Figure 1b).")
    trains: Literal["both", "first"] = Field(
        "both", description="the layers that learn; with 'first' the outgoing weights stay at +1, -1, +1, ..."
    )
    step: Positive = Field(0.1, description="the step size mu.")
    steps: int = Field(600, ge=1, le=10**9, description="the number of updates; a flow runs to time step x steps.")
    samples: int = Field(
        0, ge=0, le=10**8, description="the number of training examples n; 0 is the exact population loss."
    )
    noise: float = Field(0.0, ge=0, description="the standard deviation of the label noise (samples only).")
    activation: str = Field("relu", description="the student's activation; the paper's is relu.")
    first: tuple[tuple[float, ...], ...] | None = Field(
        None, description="the initial incoming weights, one row per unit, instead of a random draw."
    )
    second: tuple[float, ...] | None = Field(
        None, description="the initial outgoing weights of a one-output network, instead of a random draw."
    )

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "BothLayersSettings":
        if self.outputs > self.dim:
            raise ValueError(
                f"outputs is {self.outputs} but dim is {self.dim}; a target of full rank needs dim >= outputs"
            )
        if self.singular_values is not None and len(self.singular_values) != self.outputs:
            raise ValueError(
                f"singular_values has {len(self.singular_values)} entries but outputs is {self.outputs}; give one each"
            )
        if self.first is not None and len(self.first) != self.width:
            raise ValueError(f"first has {len(self.first)} rows but width is {self.width}; give one row per unit")
        if self.second is not None and (len(self.second) != self.width or self.outputs != 1):
            raise ValueError(
                f"second has {len(self.second)} entries but width is {self.width} and outputs {self.outputs}; "
                "give one weight per unit of a one-output network"
            )
        return self
