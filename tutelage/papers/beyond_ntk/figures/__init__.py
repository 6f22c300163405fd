"""Figures 1 and 2 of the paper, and those that our findings deserve."""

from tutelage.papers.beyond_ntk.figures import (
    beyond,
    kernels,
    lottery,
    masses,
    narrow,
    orders,
    plateau,
    stagewise,
    tail,
    truncation,
    warmup,
    width,
)

FIGURES = (
    stagewise.FIGURE,
    narrow.FIGURE,
    kernels.FIGURE,
    warmup.FIGURE,
    lottery.FIGURE,
    plateau.FIGURE,
    masses.FIGURE,
    tail.FIGURE,
    truncation.FIGURE,
    width.FIGURE,
    orders.FIGURE,
    *beyond.FIGURES,
)
