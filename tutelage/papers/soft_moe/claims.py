"""All checkable statements of the paper in its order, and those new here."""

from tutelage.analysis import Claim
from tutelage.papers.soft_moe.checks import kernel, limits, local, pruning, recovery, starts, theorem

CLAIMS: tuple[Claim, ...] = (
    *kernel.CLAIMS,
    *starts.CLAIMS,
    *theorem.CLAIMS,
    *limits.CLAIMS,
    *recovery.CLAIMS,
    *pruning.CLAIMS,
    *local.CLAIMS,
)
