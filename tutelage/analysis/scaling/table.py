"""The entries that a fit is made from: values over one parameter and seeds, some known, some censored, some missing."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tutelage._errors import BadInput
from tutelage._types import Numbers
from tutelage.analysis.scaling.likelihood import Sample


@dataclass(frozen=True)
class Table:
    """Checked entries: distinct `x`, `values` and `limit` (x, seed) with nan for none, seeds that know something."""

    x: Numbers
    values: Numbers
    limit: Numbers
    missing: int

    @classmethod
    def of(cls, x: ArrayLike, values: ArrayLike, limit: ArrayLike | None) -> "Table":
        places, entries, above = _arrays(x, values, limit)
        known = ~np.isnan(entries)
        if (bad := known & ~((entries > 0) & (entries < np.inf))).any():
            raise BadInput(
                f"A fit in logarithms needs positive finite values, but got {entries[bad][0]:g} at x = "
                f"{places[np.nonzero(bad)[0][0]]:g}; leave such entries out as nan, or fit another measure."
            )
        # That a positive value is above a limit of zero says nothing.
        above = np.where(~known & np.isfinite(above) & (above > 0), above, np.nan)
        told = known | np.isfinite(above)
        if not known.any():
            what = f"all {told.sum()} are censored" if told.any() else "all are missing"
            raise BadInput(f"No value is known, {what}: nothing can be fitted; let the runs go on for longer.")
        rows, seeds = told.any(1), told.any(0)
        if np.unique(places[rows]).size < 2:
            raise BadInput(
                f"A law over one parameter needs at least 2 of its values, but there is only x = {places[rows][0]:g}; "
                "sweep over more."
            )
        kept = np.ix_(rows, seeds)
        return cls(places[rows], entries[kept], above[kept], int((~told).sum()))

    @property
    def seeds(self) -> int:
        return self.values.shape[1]

    @property
    def used(self) -> int:
        return int(np.isfinite(self.values).sum())

    @property
    def censored(self) -> int:
        return int(np.isfinite(self.limit).sum())

    def sample(self, weights: Numbers) -> Sample:
        """The entries for each of the `weights` (weights, seed)."""
        return Sample.of(self.x, self.values, self.limit, weights)

    def draws(self, resamples: int, seed: int) -> Numbers:
        """How often each seed is in each resample, (resamples, seed): a draw of as many, with replacement."""
        rng = np.random.default_rng(seed)
        return rng.multinomial(self.seeds, np.full(self.seeds, 1 / self.seeds), size=resamples).astype(float)

    def typical(self) -> tuple[Numbers, Numbers]:
        """Distinct x with a typical value at each; a censored entry stands in by its limit."""
        entries = np.where(np.isnan(self.values), self.limit, self.values)
        logs = np.where(np.isnan(entries), 0.0, np.log(np.where(np.isnan(entries), 1.0, entries)))
        x, index = np.unique(self.x, return_inverse=True)
        counts = np.bincount(index, (~np.isnan(entries)).sum(1))
        return x, np.exp(np.bincount(index, logs.sum(1)) / counts)


def _arrays(x: ArrayLike, values: ArrayLike, limit: ArrayLike | None) -> tuple[Numbers, Numbers, Numbers]:
    places, entries = np.asarray(x, float), np.asarray(values, float)
    above = np.full(entries.shape, np.nan) if limit is None else np.asarray(limit, float)
    if places.ndim != 1 or entries.shape[:1] != places.shape or entries.ndim != 2 or above.shape != entries.shape:
        raise BadInput(
            f"A fit takes x of shape (x,) and values and limits of shape (x, seed), but got {places.shape}, "
            f"{entries.shape} and {above.shape}; put the seeds on the last axis."
        )
    if not np.isfinite(places).all():
        raise BadInput(f"A fit needs finite x, but got {places[~np.isfinite(places)][0]:g}; leave that point out.")
    return places, entries, above
