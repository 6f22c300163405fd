"""Beyond the paper: what other starts, activations, teachers and students do."""

from tutelage.papers.relu_teachers.figures.beyond import absolute, balance, few, gaussian, outer, teachers

FIGURES = (gaussian.FIGURE, absolute.FIGURE, teachers.FIGURE, balance.FIGURE, outer.FIGURE, few.FIGURE)
