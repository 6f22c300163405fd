"""How do students become teachers: ReLU students of orthogonal ReLU teachers."""

from pathlib import Path

from tutelage.papers.cards import CARDS
from tutelage.papers.relu_teachers.recipe import RECIPE
from tutelage.study import Deferred, Study, contents

PAPER = Study(
    **CARDS["relu_teachers"].words,
    recipe=RECIPE,
    **contents(__name__),
    telling="fig2",
    proofs=Deferred(f"{__name__}.proofs", "PROOFS"),
    shipped=Path(__file__).parent / "shipped",
    own="fig2",
    takes={"fig2": 20.0},
    presets={
        "short": {"teachers": 2, "students": 6, "scale": 1e-4, "step": 5e-3, "steps": 2400},
        "fig2": {},
        "fig3": {"scale": 1e-4},
        "weak": {"init": "weak"},
        "cubic": {"init": "weak", "step": 5e-3, "steps": 20_000},
        "plateau": {"teachers": 2, "students": 6, "norm": 1.0, "dim": 50, "init": "weak", "scale": 1e-12, "step": 0.01},
        "one_teacher": {"teachers": 1, "students": 3, "norm": 1.0, "scale": 1e-4, "step": 0.1, "steps": 20_000},
    },
)
