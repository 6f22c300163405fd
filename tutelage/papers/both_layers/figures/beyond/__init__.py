"""Beyond the paper: more units than needed, momentum and noise at the saddle, correlated inputs."""

from tutelage.papers.both_layers.figures.beyond import correlated, momentum, wide

FIGURES = (wide.FIGURE, momentum.FIGURE, correlated.FIGURE)
