"""Figures 2 and 3 of the paper, and those that our findings deserve."""

from tutelage.papers.relu_teachers.figures import beyond, cubic, portrait, refutation, shelf, training

FIGURES = (*training.FIGURES, cubic.FIGURE, shelf.FIGURE, refutation.FIGURE, portrait.FIGURE, *beyond.FIGURES)
