"""Beyond the paper: fewer experts, copied experts, other routers, more clusters, longer exploration."""

from tutelage.papers.cluster_moe.figures.beyond import adaptive, clusters, exploration, pruning, upcycling

FIGURES = (exploration.FIGURE, upcycling.FIGURE, pruning.FIGURE, adaptive.FIGURE, clusters.FIGURE)
