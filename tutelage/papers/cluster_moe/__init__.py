"""A mixture of experts that finds the clusters of its inputs, in four phases, and a vanilla network that does not."""

from tutelage.papers.cards import CARDS
from tutelage.papers.cluster_moe.presets import PRESETS
from tutelage.papers.cluster_moe.recipe import RECIPE
from tutelage.study import Study, contents

PAPER = Study(
    **CARDS["cluster_moe"].words,
    recipe=RECIPE,
    **contents(__name__),
    telling="fig2",
    aliases={"d": "dim", "rho": "radius", "M": "experts", "J": "width", "C_b": "ridge_bias"},
    own="paper_fig1",
    takes={"lab_a": 130.0, "paper_fig1": 1300.0},
    presets=PRESETS,
)
