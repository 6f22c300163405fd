"""Over-parametrised two-layer ReLU networks beyond the neural tangent kernel."""

from pathlib import Path

from tutelage.papers.beyond_ntk.recipe import RECIPE
from tutelage.papers.cards import CARDS
from tutelage.study import Deferred, Study, contents

PAPER = Study(
    **CARDS["beyond_ntk"].words,
    recipe=RECIPE,
    **contents(__name__),
    telling="fig1",
    proofs=Deferred(f"{__name__}.proofs", "PROOFS"),
    shipped=Path(__file__).parent / "shipped",
    aliases={"m": "width", "d": "dim", "eta_inf": "step"},
    own="fig1",
    takes={"fig1": 80.0, "fig2": 30.0, "theorem": 10.0},
    presets={
        "short": {"dim": 10, "width": 40, "until": 150.0},
        "fig1": {"scale": 30**0.5, "step": 0.02},
        "fig2": {"width": 60, "samples": 10_000},
        "theorem": {
            **{"dim": 16, "width": 64, "variant": "relu", "samples": 4096, "step": 0.5, "truncate": (4.0, 16.0)},
            **{"stage": 738.7, "until": 1076.5},
        },
        "samples": {"samples": 10_000, "until": 4000.0},
        "truncated": {"truncate": (2.0, 50.0), "stage": 600.0, "until": 4000.0},
        "unequal": {"kappa": 2.0},
        "literal": {"variant": "relu"},
    },
)
