"""Figures 1 to 3 of the paper, and those that our findings deserve."""

from tutelage.papers.soft_moe.figures import beyond, findings, induction, pruning, router, samples, training

FIGURES = (*training.FIGURES, router.fig3a, router.fig3b, *findings.FIGURES, *pruning.FIGURES, *beyond.FIGURES)
FIGURES += (induction.FIGURE, samples.FIGURE)
