"""Figures 1 to 8 of the paper, and those that our findings deserve."""

from tutelage.papers.both_layers.figures import (
    beyond,
    escape,
    incremental,
    inequalities,
    neurons,
    pairing,
    phases,
    samples,
)
from tutelage.papers.both_layers.figures import success as success_figure

FIGURES = (
    neurons.FIGURE_1,
    neurons.FIGURE_2,
    phases.FIGURE_3,
    inequalities.FIGURE_4,
    inequalities.FIGURE_5,
    *pairing.FIGURES,
    escape.FIGURE,
    success_figure.FIGURE,
    phases.SCALES,
    samples.FIGURE,
    incremental.FIGURE,
    *beyond.FIGURES,
)
