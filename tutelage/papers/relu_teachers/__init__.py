"""How do students become teachers: ReLU students of orthogonal ReLU teachers."""

from tutelage.papers.paper import Paper, contents
from tutelage.papers.relu_teachers.recipe import RECIPE

PAPER = Paper(
    name="relu_teachers",
    title="How do students become teachers: A dynamical analysis for two-layer neural networks",
    authors="Anonymous authors",
    reference="A submission without names or venue.",
    summary="m ReLU students learn from k orthogonal ReLU teachers. The paper's picture is align, grow, converge with "
    "loss ~ T^-3. With two teachers or more the students first collapse onto the mean direction of the teachers and "
    "wait on a saddle there; the end of the story holds, with an exact constant.",
    recipe=RECIPE,
    **contents(__name__),
    presets={
        "fig2": {},
        "fig3": {"scale": 1e-4},
        "weak": {"init": "weak"},
        "cubic": {"init": "weak", "step": 5e-3, "steps": 20_000},
        "plateau": {"teachers": 2, "students": 6, "norm": 1.0, "dim": 50, "init": "weak", "scale": 1e-12, "step": 0.01},
        "one_teacher": {"teachers": 1, "students": 3, "norm": 1.0, "scale": 1e-4, "step": 0.1, "steps": 20_000},
    },
)
