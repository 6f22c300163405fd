"""What several files of checks share: where a claim does not apply, and the paper's own units."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

from tutelage.analysis import Finding, Kind, Verdict
from tutelage.papers.soft_moe.constants import Constants
from tutelage.papers.soft_moe.evidence import Evidence

TEACHERS, FRAME = 2, 8
"""Of the states at which gradients are looked at, with two students: one shape, so one compilation."""

WRONG: dict[str, Any] = {"expected": Verdict.FAILS}
"""Of a claim that is known to be false."""


def slip(mended: str) -> dict[str, Any]:
    """Of a claim about the paper's words as printed, where the claim `mended` is about what was meant."""
    return {"kind": Kind.SLIP, "mended": mended, "expected": Verdict.FAILS}


Check = Callable[..., Finding]


def not_applicable(detail: str) -> Finding:
    """What is said of settings that a claim does not speak of."""
    return Finding(Verdict.NOT_APPLICABLE, detail=detail)


def except_for(*others: Callable[[Any], Finding | None]) -> Callable[[Check], Check]:
    """A check that is not made where one of `others` has something to say: that is the finding then."""

    def decorated(check: Check) -> Check:
        @functools.wraps(check)
        def checked(evidence: Evidence, *args: Any) -> Finding:
            for other in others:
                if found := other(evidence):
                    return found
            return check(evidence, *args)

        return checked

    return decorated


def _other_units(evidence: Evidence) -> Finding | None:
    gate, degree = evidence.settings.gate, evidence.settings.degree
    if (gate, degree) == ("sigmoid", 3):
        return None
    return not_applicable(
        f"The statement is about sigmoid routers and experts He_3; the settings have {gate} and He_{degree}."
    )


papers_units = except_for(_other_units)
"""A claim about the paper's own units, sigmoid routers and experts He_3, and about no others."""


@functools.cache
def paper() -> Constants:
    """The constants of these units."""
    return Constants.of("sigmoid", 3)


def _other_network(evidence: Evidence) -> Finding | None:
    return None if evidence.plain else not_applicable("The settings are not those of the paper's network.")


plain = except_for(_other_network)
"""A claim about the paper's problem: its gate and degree, equal orthogonal teachers, fixed output weights."""


def listed(values: Iterable[Any]) -> str:
    """Whole numbers in words."""
    return ", ".join(str(int(value)) for value in values)


def dims_of(dims: Iterable[int]) -> str:
    """Dimensions in words."""
    return ", ".join(f"{dim:.0e}" for dim in dims)
