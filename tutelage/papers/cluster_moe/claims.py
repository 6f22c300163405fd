"""All checkable statements of the paper, by theme, and those new here."""

from tutelage.analysis import Claim
from tutelage.papers.cluster_moe.checks import (
    approximation,
    blocking,
    experiment,
    experts,
    formulas,
    growth,
    pipeline,
    rates,
    router,
    starts,
    vanilla,
    variants,
)

_THEMES = (
    *(formulas, growth, vanilla, blocking, starts, router, experts, approximation),
    *(pipeline, rates, variants, experiment),
)
CLAIMS: tuple[Claim, ...] = sum((theme.CLAIMS for theme in _THEMES), ())
