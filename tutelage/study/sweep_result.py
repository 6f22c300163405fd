"""The result of a sweep: numbers by settings and seed, the laws fitted to them, and their pictures."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict, Unpack

import numpy as np
import xarray as xr

from tutelage._errors import BadInput
from tutelage._files import is_file
from tutelage.analysis.panels import Sheet
from tutelage.analysis.scaling import Choice, Comparison, Fit, choose, compare, fit
from tutelage.analysis.scaling.laws import LAWS, Law
from tutelage.store.store import Entry, way_out
from tutelage.study import charts
from tutelage.study.sweep_data import Curve, curves_of, trend_axes
from tutelage.trajectory.dataset import load_tree, whole
from tutelage.trajectory.result import Recorded


class Comparing(TypedDict, total=False):
    """Options of `analysis.scaling.compare`."""

    resamples: int
    seed: int


class Fitting(Comparing, total=False):
    """Options of `analysis.scaling.fit`."""

    level: float


class CellsFailed(UserWarning):
    """Some cells of a sweep have no numbers."""


@dataclass(frozen=True)
class Sweep(Recorded):
    """The result of a sweep: a Dataset whose dims are the settings and `seed`; its variables are attributes.

    `failed`: why cells have no result, by their settings.
    """

    entry: Entry
    dataset: xr.Dataset
    failed: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, entry: Entry) -> "Sweep":
        """From a store, finished or not."""
        if entry.trouble or entry.kind != "sweep":
            raise BadInput(entry.trouble or f"{entry.id} is a run, but a sweep was expected.")
        if not is_file(entry.result):
            raise BadInput(f"The sweep {entry.id} has no result yet; ask for it again with `tutelage sweep`.")
        try:
            return cls(entry, whole(load_tree(entry.result, sealed=True)))
        except BadInput as error:
            raise BadInput(f"{error} It was not changed. {way_out(entry.folder)}") from None

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of what was measured."""
        return tuple(self.entry.spec["measures"])

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of the settings that were swept."""
        return tuple(self.entry.spec["names"])

    def fits(
        self,
        measure: str | None = None,
        *,
        law: str | Law = "power",
        over: str | None = None,
        **options: Unpack[Fitting],
    ) -> dict[Hashable, Fit]:
        """A law fitted to a measure over one setting, for each value of a second one (None if there is none).

        Seeds that did not get there count as censored. `options` are those of `analysis.scaling.fit`.

        ```python
        >>> import tempfile, tutelage as tt
        >>> swept = tt.sweep("both_layers", over={"dim": "1e2..1e6:3"}, measure="stop_time", seeds=4,
        ...                  store=tempfile.mkdtemp(), processes=1)
        >>> round(swept.fits(law="power")[None].estimates["b"], 3)
        0.0

        ```
        """
        chosen = measure or self.measures[0]
        return {
            curve.value: fit(curve.x, curve.values, curve.limit, law, names=(chosen, axis), **options)
            for axis, curve in self._curves(chosen, over)
        }

    def comparisons(
        self,
        measure: str | None = None,
        *,
        laws: Sequence[str | Law] = tuple(LAWS),
        over: str | None = None,
        **options: Unpack[Comparing],
    ) -> dict[Hashable, Comparison]:
        """Which law describes a measure best, for each value of a second setting (None if there is none)."""
        chosen = measure or self.measures[0]
        return {
            curve.value: compare(curve.x, curve.values, curve.limit, laws, names=(chosen, axis), **options)
            for axis, curve in self._curves(chosen, over)
        }

    def choices(
        self,
        measure: str | None = None,
        *,
        law: str | Law | None = None,
        over: str | None = None,
        **options: Unpack[Comparing],
    ) -> dict[Hashable, Choice]:
        """The law that describes a measure best, beside the `law` that is asked about, for each value of a second
        setting (None if there is none)."""
        chosen = measure or self.measures[0]
        return {
            curve.value: choose(curve.x, curve.values, curve.limit, law, names=(chosen, axis), **options)
            for axis, curve in self._curves(chosen, over)
        }

    def _curves(self, measure: str, over: str | None) -> Iterator[tuple[str, Curve]]:
        axis, other = trend_axes(self.dataset, measure, over)
        yield from ((axis, curve) for curve in curves_of(self.dataset, measure, axis, other))

    def chart(
        self,
        measure: str | None = None,
        fits: Mapping[Hashable, Fit | Choice] | None = None,
        *,
        title: str | None = None,
    ) -> Sheet:
        """A picture of a measure: a phase diagram of a chance, or of a measure without fits, over two settings of a
        grid; otherwise a trend over the first setting with numbers. `present.figures.save` draws it."""
        chosen, fits = measure or self.measures[0], fits or {}
        if len(self.settings) == 2 and "point" not in self.dataset.dims and not fits:
            sheet = charts.diagram(self.dataset, chosen)
        else:
            sheet = charts.trend(self.dataset, chosen, [fits[None]] if None in fits else fits)
        return replace(sheet, title=title) if title else sheet

    def fitted(self) -> tuple[str, ...]:
        """The measures to which a law can be fitted: numbers and times, of which some are there and none is below 0."""
        kinds = {name: self.dataset[name].attrs.get("kind") for name in self.measures}
        return tuple(name for name, kind in kinds.items() if kind in ("number", "time") and self._positive(name))

    def _positive(self, measure: str) -> bool:
        values = self.dataset[measure].values
        return bool(np.isfinite(values).any() and np.nanmin(values) > 0)

    def drawable(self) -> tuple[str, ...]:
        """The measures of which there is something to draw."""
        numbers = [name for name in self.settings if np.issubdtype(self.dataset[name].dtype, np.number)]
        grid = "point" not in self.dataset.dims
        enough = len(self.settings) <= 2 if grid else bool(numbers)
        return self.measures if enough and (numbers or len(self.settings) == 2) else ()
