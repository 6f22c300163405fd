"""All checkable statements of the paper in its order, and those new here."""

from tutelage.analysis import Claim
from tutelage.papers.beyond_ntk.checks import (
    experiments,
    formulas,
    handover,
    kernels,
    propagation,
    stage1,
    stage2,
    symmetry,
    theorem,
    training,
    typical,
    width,
)

_THEMES = (
    formulas, symmetry, typical, stage1, handover, stage2, width, propagation, kernels, theorem, training, experiments,
)  # fmt: skip
CLAIMS: tuple[Claim, ...] = tuple(claim for theme in _THEMES for claim in theme.CLAIMS)
