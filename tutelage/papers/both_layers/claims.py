"""All checkable statements of the paper, and those new here, in order."""

from tutelage.analysis import Claim
from tutelage.papers.both_layers.checks import identities, inequalities, landscape, phases, samples, success

CLAIMS: tuple[Claim, ...] = tuple(
    sorted(
        identities.CLAIMS + landscape.CLAIMS + success.CLAIMS + inequalities.CLAIMS + phases.CLAIMS + samples.CLAIMS,
        key=lambda claim: claim.id,
    )
)
