"""A finished run: its Dataset, why each seed stopped, and where it began and ended."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tutelage._errors import StopReason
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.networks import Weights
from tutelage.trajectory import dataset as door


class Recorded:
    """What has a Dataset of records. Its variables are attributes: `run.loss`, `run.overlap`."""

    dataset: xr.Dataset

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "dataset" or name not in self.dataset.variables:
            raise AttributeError(
                f"This run has no {name!r}; its variables are {', '.join(map(str, self.dataset.data_vars))}."
            )
        return self.dataset[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *map(str, self.dataset.variables)]

    def last(self, name: str) -> xr.DataArray:
        """The last recorded value of a variable, seed by seed."""
        return self.dataset[name].isel(time=self.dataset["recorded"] - 1)

    def save(self, path: str | Path) -> None:
        """Write the Dataset as one NetCDF file; `tutelage.load` reads it back."""
        door.save(self.dataset, path)


@dataclass(frozen=True)
class Run(Recorded):
    """The result of a flow, a descent or SGD: a Dataset whose variables are attributes, and more.

    `start`, `final` and `teacher` are weights in frame coordinates (`start` and `final` with a leading seed axis);
    `final` is where each seed stopped. `oracle` is the loss that was descended (`batched` when each seed has its own
    data); `asked` holds the arguments that `verb` (`flow`, `descend` or `sgd`) was given.
    """

    dataset: xr.Dataset
    stopped: tuple[StopReason, ...]
    teacher: Weights
    start: Weights
    final: Weights
    oracle: AbstractOracle
    batched: bool
    seconds: float
    asked: dict[str, Any] = field(repr=False)
    verb: Callable[..., "Run"] = field(repr=False)
    phases: Any = None
    certificate: Any = None
    check: Callable[[], Any] | None = field(default=None, repr=False)

    @cached_property
    def claims(self) -> Any:
        """The claims of the paper this run belongs to, checked at its settings (when first asked for)."""
        return self.check() if self.check else None

    def rerun(self, **changes: Any) -> "Run":
        """The same run with some arguments of the verb changed."""
        return self.verb(**{**self.asked, "certify": False, "progress": None, "checkpoint": None, **changes})

    def summary(self) -> dict[str, Any]:
        """A few plain numbers, ready for JSON."""
        counts = {reason.name.lower(): self.stopped.count(reason) for reason in dict.fromkeys(self.stopped)}
        result: dict[str, Any] = {
            "seeds": len(self.stopped),
            "stopped": counts,
            "stopped_because": [reason.sentence for reason in dict.fromkeys(self.stopped)],
            "frame": int(self.start.first.shape[-1]),
            "stop_time": _spread(self.dataset["stop_time"].values),
            "loss": _spread(self.last("loss").values),
            "seconds": round(self.seconds, 3),
        }
        if "event_time" in self.dataset:
            events = self.dataset["event_time"]
            result["events"] = {str(e): _spread(events.sel(event=e).values) for e in events["event"].values}
        for name in ("phases", "certificate"):
            value = getattr(self, name)
            if value is not None:
                result[name] = value.records() if hasattr(value, "records") else value
        return result


def _spread(values: np.ndarray) -> dict[str, float | None]:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return {"median": None, "min": None, "max": None, "count": 0}
    low, middle, high = (float(value) for value in np.quantile(finite, [0.0, 0.5, 1.0]))
    return {"median": middle, "min": low, "max": high, "count": len(finite)}
