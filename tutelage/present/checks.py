"""Checking every claim even when one check crashes: the crash is kept, and the claim does not hold."""

import dataclasses
from collections.abc import Callable
from typing import Any

from tutelage._errors import BadInput
from tutelage.analysis.claims import Claim, Finding, Verdict
from tutelage.present.reproduction import Crash
from tutelage.study.study import Study


def guarded(paper: Study, crashes: list[Crash], *, refuse_bad_input: bool = False) -> Study:
    """The same paper, whose checks never raise; what they would have raised is added to `crashes`.

    With `refuse_bad_input`, settings that a check cannot use are still an error of the caller.
    """
    passing = (BadInput,) if refuse_bad_input else ()
    return dataclasses.replace(paper, claims=tuple(_guarded(claim, crashes, passing) for claim in paper.claims))


def _guarded(claim: Claim, crashes: list[Crash], passing: tuple[type[Exception], ...]) -> Claim:
    check: Callable[[Any], Finding] = claim.check

    def safe(evidence: Any) -> Finding:
        try:
            return check(evidence)
        except passing:
            raise
        except Exception as error:
            crash = Crash.of(f"claim {claim.id}", error)
            crashes.append(crash)
            return Finding(Verdict.FAILS, detail=f"The check itself crashed: {crash.message}")

    return dataclasses.replace(claim, check=safe)
