"""All checkable statements of the paper in its order, and those new here."""

from tutelage.analysis import Claim
from tutelage.papers.soft_moe.checks import kernel, local, pruning, recovery, starts

CLAIMS: tuple[Claim, ...] = kernel.CLAIMS + starts.CLAIMS + recovery.CLAIMS + pruning.CLAIMS + local.CLAIMS
