"""The full specification of a run, and the hash that names it. Nothing here needs JAX: listings must be quick."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

SCHEMA = 1
LENGTH = 16


def digest(plain: Any) -> str:
    """A name of sixteen hexadecimal digits for anything that is JSON; equal values have equal names."""
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


@dataclass(frozen=True)
class RunSpec:
    """What a run is: a paper, all its settings, how it moves, and its seeds.

    ```python
    >>> from tutelage.store.spec import RunSpec
    >>> RunSpec("both_layers", {"dim": 100}, "descent", (0, 1)).id
    '37b57ffcb5ddec5e'

    ```
    """

    paper: str
    settings: dict[str, Any]
    dynamics: str
    seeds: tuple[int, ...]

    def plain(self) -> dict[str, Any]:
        """As it is written in `spec.json`."""
        return {
            "kind": "run",
            "schema": SCHEMA,
            "paper": self.paper,
            "settings": self.settings,
            "dynamics": self.dynamics,
            "seeds": list(self.seeds),
        }

    @property
    def id(self) -> str:
        return digest(self.plain())

    @classmethod
    def read(cls, plain: dict[str, Any]) -> "RunSpec":
        return cls(plain["paper"], plain["settings"], plain["dynamics"], tuple(plain["seeds"]))
