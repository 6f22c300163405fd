"""Beyond the paper: what other teachers, dimensions, experts, gates and noise do."""

from tutelage.papers.soft_moe.figures.beyond import alphas, dimension, even, gates, noise, samples, softmax

FIGURES = (alphas.FIGURE, dimension.FIGURE, even.FIGURE, gates.FIGURE, noise.FIGURE, samples.FIGURE, softmax.FIGURE)
