"""All checkable statements of the paper, by theme, and those new here."""

from tutelage.analysis import Claim
from tutelage.papers.cluster_moe.checks import experiment, formulas, growth, pipeline, rates, router, vanilla, variants

CLAIMS: tuple[Claim, ...] = (
    *formulas.CLAIMS,
    *growth.CLAIMS,
    *vanilla.CLAIMS,
    *router.CLAIMS,
    *pipeline.CLAIMS,
    *rates.CLAIMS,
    *variants.CLAIMS,
    *experiment.CLAIMS,
)
