"""All checkable statements of the paper, by theme, and those new here."""

from tutelage.analysis import Claim
from tutelage.papers.cluster_moe.checks import (
    approximation,
    blocking,
    experts,
    formulas,
    growth,
    pipeline,
    router,
    vanilla,
)

_THEMES = (formulas, growth, vanilla, blocking, router, experts, approximation, pipeline)
CLAIMS: tuple[Claim, ...] = sum((theme.CLAIMS for theme in _THEMES), ())
