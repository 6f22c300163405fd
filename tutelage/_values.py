"""`name=value` from a command line, turned into values for a paper's settings."""

import json
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

from tutelage._errors import BadInput, shown


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    """Values by name; the last one given wins.

    Whole numbers may be written in any way: `1e9` is 1000000000, exactly.

    ```python
    >>> from tutelage._values import assignments
    >>> assignments(["dim=1e9", "step=1e-3", "start=xavier", "scales=[1, 2.5]"])
    {'dim': 1000000000, 'step': 0.001, 'start': 'xavier', 'scales': [1, 2.5]}

    ```
    """
    values = {}
    for text in texts:
        name, equals, given = (part.strip() for part in text.partition("="))
        if not equals or not name or not given:
            raise BadInput(f"--set {shown(text)} is not of the form name=value; write for example --set dim=100.")
        values[name] = value(given)
    return values


def value(text: str) -> Any:
    """A number, a list, true, false or none if the text is one; otherwise the text."""
    if text[0] in "[{":
        try:
            return json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            reason = getattr(error, "msg", "too many brackets")
            raise BadInput(f"--set value {shown(text)} is not a list: {reason}; write for example [1, 2.5].") from None
    if text.lower() in ("none", "null"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        exact = Decimal(text)
    except InvalidOperation:
        return text
    # Beyond 40 digits a whole number is surely a slip, and writing it out would take the memory.
    if exact.is_finite() and exact.adjusted() < 40 and exact == exact.to_integral_value():
        return int(exact)
    return float(exact)
