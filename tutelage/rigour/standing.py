"""What a proof says of a claim: it stands above what was measured."""

import enum
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple


class Standing(enum.StrEnum):
    """What is known of a statement by proof."""

    PROVED = "proved"
    REFUTED = "refuted"
    PARTLY = "proved in part"


class Settles(NamedTuple):
    """Which claim a proof is about, by its id, and what it shows of it; `note`: of which part, or by which step."""

    claim: str
    standing: Standing
    note: str = ""


@dataclass(frozen=True)
class Settled:
    """A claim's standing by one proof: its id and statement; `note`: the part that it is about, or the step to it."""

    standing: Standing
    proof: str
    says: str
    note: str = ""

    @property
    def sentence(self) -> str:
        """What is known, by which proof."""
        note = f" ({self.note})" if self.note else ""
        return f"{self.standing.value.capitalize()}{note}, by {self.proof}: {self.says}"

    def record(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        return asdict(self) | {"standing": self.standing.value}

    @classmethod
    def read(cls, record: dict[str, Any]) -> "Settled":
        """From its record."""
        parts = {each.name: record[each.name] for each in fields(cls)}
        return cls(**parts | {"standing": Standing(record["standing"])})


def standing(settled: tuple[Settled, ...]) -> Standing | None:
    """What several proofs about one claim say together: one counterexample is enough.

    ```python
    >>> from tutelage.rigour.standing import Settled, Standing, standing
    >>> one = Settled(Standing.PARTLY, "A:1", "x > 1 for x > 2.", note="x > 2")
    >>> standing((one,)).value, standing(()) is None
    ('proved in part', True)

    ```
    """
    seen = {each.standing for each in settled}
    return next((each for each in (Standing.REFUTED, Standing.PROVED, Standing.PARTLY) if each in seen), None)
