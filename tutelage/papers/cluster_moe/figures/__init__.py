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

_FOUND = (training, errors, escape_fraction, protected, hitting, stationary, router_error, collapse)
FIGURES = (
    *specialisation.FIGURES,
    *(module.FIGURE for module in (recovered, paper_size, *_FOUND)),
    *beyond.FIGURES,
)
