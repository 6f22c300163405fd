"""All checkable statements of the paper in its order, and those new here."""

from tutelage.analysis import Claim
from tutelage.papers.relu_teachers.checks import (
    balance,
    identities,
    late,
    lemmas,
    local,
    phase1,
    phase2,
    recursions,
    saddle,
    section4,
    starts,
)

PARTS = (identities, starts, phase1, phase2, late, lemmas, local, balance, section4, saddle, recursions)
CLAIMS: tuple[Claim, ...] = tuple(claim for part in PARTS for claim in part.CLAIMS)
