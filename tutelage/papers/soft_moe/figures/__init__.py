"""Figures 1 to 3 of the paper, and those that our findings deserve."""

from tutelage.papers.soft_moe.figures import beyond, findings, limit, pruning, router, training

FIGURES = (
    *training.FIGURES,
    router.fig3a,
    router.fig3b,
    *limit.FIGURES,
    *findings.FIGURES,
    *pruning.FIGURES,
    *beyond.FIGURES,
)
