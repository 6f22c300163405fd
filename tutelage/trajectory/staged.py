"""A finished run of several stages: its Dataset, and what became of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import xarray as xr

from tutelage.trajectory.result import Recorded


@dataclass(frozen=True)
class StagedRun(Recorded):
    """The result of a training in stages. The variables of its Dataset are attributes: `run.overlap`.

    `found` are a few plain numbers for its summary.
    """

    dataset: xr.Dataset
    seconds: float
    found: dict[str, Any] = field(default_factory=dict)
    phases: Any = None
    certificate: Any = None
    check: Callable[[], Any] | None = field(default=None, repr=False)

    @cached_property
    def claims(self) -> Any:
        """The claims of the paper this run belongs to, checked at its settings (when first asked for)."""
        return self.check() if self.check else None

    def summary(self) -> dict[str, Any]:
        """A few plain numbers, ready for JSON."""
        result = {"seeds": self.dataset.sizes["seed"], **self.found, "seconds": round(self.seconds, 3)}
        for name in ("phases", "certificate"):
            value = getattr(self, name)
            if value is not None:
                result[name] = value.records() if hasattr(value, "records") else value
        return result
