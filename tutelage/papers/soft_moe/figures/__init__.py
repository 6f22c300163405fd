"""Figures 1 to 3 of the paper, and those that our findings deserve."""

from tutelage.papers.soft_moe.figures import (
    beyond,
    findings,
    induction,
    limit,
    pruning,
    router,
    samples,
    training,
)

FIGURES = (
    *training.FIGURES,
    router.fig3a,
    router.fig3b,
    *limit.FIGURES,
    *findings.FIGURES,
    induction.FIGURE,
    *pruning.FIGURES,
    samples.FIGURE,
    *beyond.FIGURES,
)
