"""Several findings of one claim made into one."""

import dataclasses
from collections.abc import Sequence

from tutelage.analysis.claims import Finding, Verdict


def all_of(findings: Sequence[Finding], detail: str = "") -> Finding:
    """The first that fails, otherwise the first; the details of all, and their trials together.

    ```python
    >>> from tutelage.analysis.claims import at_most
    >>> from tutelage.analysis.combine import all_of
    >>> all_of([at_most(0.1, 1.0), at_most(3.0, 2.0)]).measured
    3.0

    ```
    """
    chosen = next((found for found in findings if found.verdict is not Verdict.HOLDS), findings[0])
    text = " ".join(part for part in (*(found.detail for found in findings), detail) if part)
    return dataclasses.replace(chosen, detail=text, seeds=max(found.seeds for found in findings))


def unless(condition: bool, finding: Finding, verdict: Verdict, detail: str) -> Finding:
    """`finding` when `condition` holds; otherwise its numbers with another verdict and reason.

    A finding that fails keeps failing: an unmet hypothesis is no excuse for a wrong conclusion that was measured.
    """
    if condition or finding.verdict is Verdict.FAILS:
        return finding
    return dataclasses.replace(finding, verdict=verdict, detail=f"{detail} {finding.detail}".strip())
