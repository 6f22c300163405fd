"""All checkable statements of the paper in its order, and those new here."""

from tutelage.analysis import Claim
from tutelage.papers.beyond_ntk.checks import (
    experiments,
    formulas,
    kernels,
    stage1,
    stage2,
    symmetry,
    training,
    width,
)

CLAIMS: tuple[Claim, ...] = (
    formulas.CLAIMS
    + symmetry.CLAIMS
    + stage1.CLAIMS
    + stage2.CLAIMS
    + width.CLAIMS
    + kernels.CLAIMS
    + training.CLAIMS
    + experiments.CLAIMS
)
