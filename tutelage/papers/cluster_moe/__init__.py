"""A mixture of experts that finds the clusters of its inputs, in four phases, and a vanilla network that does not."""

from tutelage.papers.cluster_moe.presets import PRESETS
from tutelage.papers.cluster_moe.recipe import RECIPE
from tutelage.papers.paper import Paper, contents

PAPER = Paper(
    name="cluster_moe",
    title="Mixture of Experts Provably Detect and Learn the Latent Cluster Structure in Gradient-Based Learning",
    authors="Ryotaro Kawata, Kohsei Matsutani, Yuri Kinoshita, Naoki Nishikawa, Taiji Suzuki",
    reference="International Conference on Machine Learning (ICML), 2025.",
    summary="Inputs in clusters, each with a task of its own and a global one that interferes. Experts explore, a "
    "router learns who knows which cluster, experts learn what they are sent, and a second layer is fitted. A vanilla "
    "network on the same samples learns the local tasks and misses the global one.",
    recipe=RECIPE,
    **contents(__name__),
    aliases={"d": "dim", "rho": "radius", "M": "experts", "J": "width", "C_b": "ridge_bias"},
    presets=PRESETS,
)
