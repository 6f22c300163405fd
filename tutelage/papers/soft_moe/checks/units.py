"""Claims about the paper's own units, sigmoid routers and experts He_3, and about no others."""

import functools
from collections.abc import Callable
from typing import Any

from tutelage.analysis import Finding, Verdict
from tutelage.papers.soft_moe.constants import Constants
from tutelage.papers.soft_moe.evidence import Evidence

TEACHERS, FRAME = 2, 8
"""Of the states at which gradients are looked at, with two students: one shape, so one compilation."""


def papers_units(check: Callable[[Any], Finding]) -> Callable[[Any], Finding]:
    """The check, answering *not applicable* for another gate or degree."""

    @functools.wraps(check)
    def checked(evidence: Evidence) -> Finding:
        gate, degree = evidence.settings.gate, evidence.settings.degree
        if (gate, degree) == ("sigmoid", 3):
            return check(evidence)
        text = f"The statement is about sigmoid routers and experts He_3; the settings have {gate} and He_{degree}."
        return Finding(Verdict.NOT_APPLICABLE, detail=text)

    return checked


@functools.cache
def paper() -> Constants:
    """The constants of these units."""
    return Constants.of("sigmoid", 3)
