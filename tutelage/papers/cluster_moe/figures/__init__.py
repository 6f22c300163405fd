"""Figures 1 and 2 of the paper, and those that our findings deserve."""

from tutelage.papers.cluster_moe.figures import (
    beyond,
    collapse,
    errors,
    escape_fraction,
    hitting,
    paper_size,
    protected,
    rates,
    recovered,
    router_error,
    specialisation,
    stationary,
    training,
    variants,
)

_FOUND = (training, errors, rates, variants, escape_fraction, protected, hitting, stationary, router_error, collapse)
FIGURES = (
    *specialisation.FIGURES,
    recovered.FIGURE,
    *paper_size.FIGURES,
    *(module.FIGURE for module in _FOUND),
    *beyond.FIGURES,
)
