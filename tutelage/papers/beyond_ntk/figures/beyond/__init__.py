"""Beyond the paper: other teachers, any dimension, noise, and few units."""

from tutelage.papers.beyond_ntk.figures.beyond import dimension, kappa, noise, overlapping, relu_teacher, subset

FIGURES = (relu_teacher.FIGURE, overlapping.FIGURE, kappa.FIGURE, dimension.FIGURE, noise.FIGURE, subset.FIGURE)
