"""Sets of settings by name: two laboratories, the paper's experiment as stated and mended, and its Example 4.1."""

from typing import Any

from tutelage.papers.cluster_moe.settings import ClusterMoeSettings

_ROOT = 0.5**0.5

# What the paper says about its experiment (Section 4.2): sizes, tasks, lengths, and "the learning rate was set to 1
# for all optimization schemes", which is 1/(M J) in an update of Phase I and 1/J in one of Phase III.
STATED: dict[str, Any] = {
    "dim": 200,
    "experts": 8,
    "explore_width": 500,
    "width": 500,
    "local": ({3: 1.0, 5: 1.0}, {3: 1.0, 4: 1.0}),
    "shared": {3: 1.0},
    "explore_step": 1 / (8 * 500),
    "explore_samples": 3_500_000,
    "router_steps": 300,
    "router_step": 1.0,
    "step": 1 / 500,
    "samples": 8_000_000,
    "late_step": 1 / 500,
    "late_samples": 2_000_000,
}

# What it does not, as used here. Of the readings of the activation and of He_i this is the one that keeps most of what
# is learned at these steps (CM-EXP:step).
CHOSEN: dict[str, Any] = {
    "monic": False,
    "interference": (1.0, -1.0),
    "noise": 0.0,
    "means": "antipodal",
    "radius": 3.0,
    "activation": "relu",
    "bias": 3.0,
    "router_samples": 2_000,
    "average_ties": False,
    "ridge_samples": 20_000,
    "ridge_bias": 3.0,
    "ridge": 1e-4,
    "vanilla_width": 0,
    "precision": "float32",
}

# With which it works: units of the lowest degree, whose drift beats their noise, at steps where it does; one large
# router step; and ReLU in Phase IV, as no combination of polynomials of degree 3 has h_4 or h_5 in it.
MENDED: dict[str, Any] = {
    "activation": "polynomial",
    "bias": 0.0,
    "explore_step": 4e-5,
    "router_steps": 1,
    "router_samples": 400_000,
    "step": 2e-5,
    "late_step": 2e-6,
    "ridge_activation": "relu",
    "vanilla_width": 500,
}

PRESETS: dict[str, dict[str, Any]] = {
    # In few dimensions neurons find their tasks soon. All phases have experts of one size, and there is no vanilla
    # network: those of another size compile all of it again.
    "short": {
        "dim": 8,
        "explore_width": 24,
        "explore_step": 3e-3,
        "explore_samples": 60_000,
        "router_samples": 20_000,
        "step": 2e-3,
        "samples": 60_000,
        "late_step": 4e-4,
        "late_samples": 20_000,
        "ridge_samples": 4_000,
        "vanilla_width": 0,
        "test_samples": 10_000,
    },
    "lab_a": {
        "dim": 50,
        "local": ({3: _ROOT, 5: _ROOT}, {3: _ROOT, 4: _ROOT}),
        "shared": {3: 1.0},
        "activation": "polynomial",
        "explore_step": 1.5e-4,
        "explore_samples": 2_000_000,
        "router_samples": 200_000,
        "ridge_activation": "relu",
        "step": 4e-5,
        "samples": 2_500_000,
        "late_step": 1e-5,
        "late_samples": 500_000,
    },
    "lab_b": {},
    "paper_fig1": STATED | CHOSEN,
    "paper_fig1_mended": STATED | CHOSEN | MENDED,
    "example_4_1": {
        "dim": 10_000,
        "local": ({6: 1.0}, {6: -1.0}),
        "shared": {6: 1.0},
        "activation": "polynomial",
        "vanilla_width": 800,
    },
}


def unstated(settings: ClusterMoeSettings) -> list[str]:
    """A warning for settings of the paper's experiment: what the paper does not state, and what differs from it."""
    mine = settings.model_dump()
    sizes = ("dim", "experts", "width", "local", "shared", "explore_samples")
    if any(mine[name] != STATED[name] for name in sizes):
        return []
    chosen = (
        f"The paper does not state all of its experiment. Used here: {'He_i' if settings.monic else 'He_i/sqrt(i!)'}, "
        f"s = {settings.interference}, noise {settings.noise:g}, {settings.means} means at distance "
        f"{settings.radius:g}, {units_of(settings)}, {settings.router_samples:,} samples of a router step with "
        f"{'averaged' if settings.average_ties else 'drawn'} ties, and all of Phase IV ({settings.ridge_samples:,} "
        f"samples, {settings.ridge_activation or 'the same activation'}, biases up to {settings.ridge_bias:g}). "
        "k = 3 is odd and E f^2 is not 1: the paper's own assumptions do not hold."
    )
    differing = [f"{name} {mine[name]:g} for {STATED[name]:g}" for name in changed(settings)]
    if not differing:
        return [f"{chosen} At these steps experts forget: see the preset paper_fig1_mended."]
    return [f"{chosen} Not as the paper states: {', '.join(differing)}."]


def changed(settings: ClusterMoeSettings) -> list[str]:
    """Names of settings that the paper states otherwise."""
    mine = settings.model_dump()
    return [name for name, value in STATED.items() if mine[name] != value]


def units_of(settings: ClusterMoeSettings) -> str:
    """The experts' units in words."""
    if settings.activation != "polynomial":
        return f"{settings.activation} with biases up to {settings.bias:g}"
    low, high = settings.kind
    return f"units a eps h_{low}" if low == high else f"random polynomials of orders {low} to {high}"
