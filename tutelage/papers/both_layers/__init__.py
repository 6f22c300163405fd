"""When Both Layers Learn: a ReLU network with both layers trained on a linear target."""

from pathlib import Path

from tutelage.papers.both_layers.recipe import RECIPE
from tutelage.papers.cards import CARDS
from tutelage.study import Deferred, Study, contents

PAPER = Study(
    **CARDS["both_layers"].words,
    recipe=RECIPE,
    **contents(__name__),
    telling="fig3",
    proofs=Deferred(f"{__name__}.proofs", "PROOFS"),
    shipped=Path(__file__).parent / "shipped",
    own="fig3",
    takes={"fig3": 2.0},
    presets={
        "fig1a": {"trains": "first", "scale": 0.2, "steps": 400},
        "fig1b": {"trains": "first", "scale": 0.1, "offset": 1.5, "steps": 10_000},
        "fig3": {"scale": 1e-4, "steps": 400},
        "fig6": {"outputs": 3, "width": 6, "init": "xavier", "scale": 1e-8, "steps": 2000},
        "empirical": {"dim": 20, "samples": 200, "scale": 1e-3, "steps": 6000},
    },
)
