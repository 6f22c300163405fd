"""Guided by the experts: a soft-routed mixture of experts learns from one."""

from tutelage.papers.paper import Paper, contents
from tutelage.papers.soft_moe.recipe import RECIPE

PAPER = Paper(
    name="soft_moe",
    title="Guided by the Experts: Provable Feature Learning Dynamic of Soft-Routed Mixture-of-Experts",
    authors="Fangshuo Liao, Anastasios Kyrillidis",
    reference="AISTATS 2026, PMLR 300.",
    summary="Routers and experts of m students learn jointly from m* teacher experts. The paper's picture is recovery "
    "one teacher after another, in the order of a greedy matching, then pruning and fine-tuning. From its own random "
    "start students cancel each other in pairs and the order is another; from orthonormal starts the theorem holds.",
    recipe=RECIPE,
    **contents(__name__),
    aliases={"experts": "students", "teacher_experts": "teachers"},
    presets={
        "fig1": {},
        "orthonormal": {"init": "orthonormal"},
        "theorem": {"init": "orthonormal", "dim": 10**7},
        "one": {"teachers": 1, "students": 1},
        "small": {"teachers": 2, "students": 6, "dim": 100, "until": 30.0},
        "unequal": {"init": "orthonormal", "dim": 10**5, "alphas": [2.0, 1.5, 1.0, 0.75, 0.5]},
    },
)
