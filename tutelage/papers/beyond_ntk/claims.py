"""All checkable statements of the paper in its order, and those new here."""

from tutelage.analysis import Claim
from tutelage.papers.beyond_ntk.checks import (
    experiments,
    formulas,
    kernels,
    stage1,
    stage2,
    symmetry,
    theorem,
    training,
    width,
)

_THEMES = (formulas, symmetry, stage1, stage2, width, kernels, theorem, training, experiments)
CLAIMS: tuple[Claim, ...] = tuple(claim for theme in _THEMES for claim in theme.CLAIMS)
