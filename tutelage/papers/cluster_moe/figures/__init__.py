"""Figures 1 and 2 of the paper, and those that our findings deserve."""

from tutelage.papers.cluster_moe.figures import (
    beyond,
    collapse,
    errors,
    escape_fraction,
    hitting,
    paper_size,
    protected,
    recovered,
    router_error,
    specialisation,
    stationary,
    training,
)

FIGURES = (
    *specialisation.FIGURES,
    recovered.FIGURE,
    paper_size.FIGURE,
    training.FIGURE,
    errors.FIGURE,
    escape_fraction.FIGURE,
    protected.FIGURE,
    hitting.FIGURE,
    stationary.FIGURE,
    router_error.FIGURE,
    collapse.FIGURE,
    *beyond.FIGURES,
)
