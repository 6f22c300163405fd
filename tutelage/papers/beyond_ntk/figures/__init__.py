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
    theorem,
    truncation,
    warmup,
    width,
)

_OWN = (stagewise, narrow, theorem, kernels, warmup, lottery, plateau, masses, tail, truncation, width, orders)
FIGURES = (*(module.FIGURE for module in _OWN), *beyond.FIGURES)
