"""Guided by the experts: a soft-routed mixture of experts learns from one."""

from pathlib import Path

from tutelage.papers.cards import CARDS
from tutelage.papers.soft_moe.recipe import RECIPE
from tutelage.study import Deferred, Study, contents

PAPER = Study(
    **CARDS["soft_moe"].words,
    recipe=RECIPE,
    **contents(__name__),
    telling="fig2",
    proofs=Deferred(f"{__name__}.proofs", "PROOFS"),
    shipped=Path(__file__).parent / "shipped",
    aliases={"experts": "students", "teacher_experts": "teachers"},
    own="fig1",
    takes={"fig1": 10.0},
    presets={
        "short": {"teachers": 3, "students": 6, "init": "orthonormal", "until": 40.0},
        "fig1": {},
        "orthonormal": {"init": "orthonormal"},
        "theorem": {"init": "orthonormal", "dim": 10**7},
        "one": {"teachers": 1, "students": 1},
        "small": {"teachers": 2, "students": 6, "dim": 100, "until": 30.0},
        "unequal": {"init": "orthonormal", "dim": 10**5, "alphas": [2.0, 1.5, 1.0, 0.75, 0.5]},
    },
)
