"""Over-parametrised two-layer ReLU networks beyond the neural tangent kernel."""

from tutelage.papers.beyond_ntk.recipe import RECIPE
from tutelage.papers.paper import Paper, contents

PAPER = Paper(
    name="beyond_ntk",
    title="Learning Over-Parametrized Two-Layer ReLU Neural Networks beyond NTK",
    authors="Yuanzhi Li, Tengyu Ma, Hongyang R. Zhang",
    reference="Conference on Learning Theory (COLT), 2020.",
    summary="A student 1/m sum |w| s(w.x) learns sum a_i |z_i| by truncated gradient descent. Orders 0 and 2 of the "
    "loss go first, order 4 waits on a plateau until lottery tickets win, and the network ends below what any kernel "
    "reaches with as many samples. Constants that the paper leaves open are derived and measured.",
    recipe=RECIPE,
    **contents(__name__),
    aliases={"m": "width", "d": "dim", "eta_inf": "step"},
    presets={
        "fig1": {"scale": 30**0.5, "step": 0.02},
        "fig2": {"width": 60, "until": 3000.0},
        "samples": {"samples": 10_000, "until": 4000.0},
        "truncated": {"truncate": (2.0, 50.0), "stage": 600.0, "until": 4000.0},
        "unequal": {"kappa": 2.0},
        "literal": {"variant": "relu"},
    },
)
