"""All checkable statements of the paper in its order, and those new here."""

from tutelage.analysis import Claim
from tutelage.papers.relu_teachers.checks import identities, local, phase1, phase2, recursions, saddle, starts

CLAIMS: tuple[Claim, ...] = (
    identities.CLAIMS + starts.CLAIMS + phase1.CLAIMS + phase2.CLAIMS + local.CLAIMS + saddle.CLAIMS + recursions.CLAIMS
)
