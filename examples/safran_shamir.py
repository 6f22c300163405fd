"""Spurious minima of ReLU students of orthonormal ReLU teachers.

Safran and Shamir, *Spurious Local Minima are Common in Two-Layer ReLU Neural Networks*, ICML 2018 (arXiv 1712.08968).
n students `sum_i relu(w_i.x)` learn k orthonormal teachers from Gaussian inputs. For n = k from 6 on descent may end in
minima that are not global, the more often the larger k; with one student more it hardly does.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Annotated

import numpy as np
import xarray as xr
from pydantic import Field
from scipy.stats import fisher_exact

import tutelage as tt
from tutelage.analysis import Atlas, Claim, Panel, Place, Series, Sheet, binomial_interval, line
from tutelage.analysis.claims import Interval

# ---- what is learned


def safran_shamir(
    units: Annotated[int, Field(ge=2), "k, the number of teachers and of input dimensions"] = 8,
    extra: Annotated[int, Field(ge=0), "n - k, students beyond the number of teachers"] = 0,
    scale: Annotated[float, Field(gt=0), "size of the start, over that of Xavier's"] = 1.0,
) -> tt.Problem:
    """Every entry of the start is Gaussian with the variance of Xavier's rule, 2 / (k + n): our reading of theirs."""
    students = units + extra
    start = tt.GaussianRows(scale * sqrt(2 / (units + students)))
    student = tt.TwoLayer("relu", first=start, second="ones", width=students, trains=("first",))
    return tt.Problem(tt.Gaussian(units), tt.TwoLayer("relu", first=np.eye(units), second="ones"), student)


# ---- how it moves: a flow, and descent as in the paper

LOW = tt.below(1e-3, "low", stop=True)
"""A loss far below those of the spurious minima that were found, of which the lowest is 0.011. With more students than
teachers global minima are valleys, which are approached too slowly to wait for the end."""
REST = tt.Event("rest", lambda view: 1e-7 - view.gradient_norm, stop=True)
MOVES = {"flow": tt.Flow(until=1e4, rtol=1e-6, solver="explicit"), "descent": tt.Descent(step=0.1, steps=100_000)}


def spurious(run: tt.Run) -> xr.DataArray:
    """0 where the loss gets below 1e-3, 1 where the gradient vanishes before, nan where neither has happened."""
    low, rest = (run.event_time.sel(event=event.name, drop=True) for event in (LOW, REST))
    return xr.where(low.notnull(), 0.0, xr.where(rest.notnull(), 1.0, np.nan))


MEASURES = [tt.Measure("spurious", "ends in a spurious minimum", spurious, kind="chance")]


# ---- the evidence: an atlas of stationary points for each number of units

PRINTED = {
    6: 0.003, 7: 0.055, 8: 0.126, 9: 0.218, 10: 0.346, 11: 0.455, 12: 0.585, 13: 0.73, 14: 0.736, 15: 0.803, 16: 0.851,
    17: 0.897, 18: 0.9, 19: 0.934, 20: 0.94,
}  # fmt: skip
"""The rates of their Table 1 for n = k, as we have them, of 1000 starts each."""
THEIR_STARTS = 1000
LEVEL = 0.05 / len(PRINTED)
"""Of each comparison, so that all of them together raise one false alarm in twenty at most."""


@dataclass(frozen=True)
class Sizes:
    """Numbers of teachers, those that are also given to one student more, and the starts of each."""

    units: tuple[int, ...]
    wider: tuple[int, ...]
    starts: int


SIZES = {"quick": Sizes((6, 8, 10), (10,), 64), "full": Sizes(tuple(PRINTED), (8, 12, 16), 500)}


class Atlases:
    """What the claims look at. How many starts there are is a matter of the size, not of `seeds`."""

    def __init__(self, settings, size="quick", seeds=0):
        self.settings, self.sizes, self.seeds = settings, SIZES[size], seeds
        self._known: dict[int, Atlas] = {}

    def of(self, units: int) -> Atlas:
        """All that random starts of a flow end in."""
        if units not in self._known:
            problem = safran_shamir(units, self.settings.extra, self.settings.scale)
            self._known[units] = tt.atlas(problem, self.sizes.starts)
        return self._known[units]

    def ends(self, units: int, extra: int = 0, dynamics: str = "flow") -> xr.DataArray:
        """Which starts end in spurious minima, told by the loss alone; with `extra` students more than set."""
        changed = {"units": units, "extra": self.settings.extra + extra}
        settings = self.settings.model_copy(update=changed)
        return spurious(STUDY.run(settings, dynamics=dynamics, seeds=self.sizes.starts))

    def minimum(self, units: int) -> Place | None:
        """A spurious one: the lowest that random starts found or, where they are rare, that beside students which are
        their teachers, but for one at the opposite of it."""
        atlas = self.of(units)
        if not count(atlas):
            mirrored = np.diag([*np.ones(units - 1), -1.0])
            student = tt.TwoLayer("relu", first=mirrored, second="ones", trains=("first",))
            teacher = tt.TwoLayer("relu", first=np.eye(units), second="ones")
            atlas = tt.atlas(tt.Problem(tt.Gaussian(units), teacher, student), 1)
        return next((place for place in atlas.places if place.spurious), None)


def count(atlas: Atlas) -> int:
    """How many starts ended in spurious minima."""
    return sum(place.count for place in atlas.places if place.spurious)


# ---- claims


def rates(atlases: Atlases) -> tt.Finding:
    """By Fisher's exact test for each k; the least of the chances against the level of one test."""
    chances, told = [], []
    for units in atlases.sizes.units:
        atlas, theirs = atlases.of(units), round(PRINTED[units] * THEIR_STARTS)
        ours = count(atlas)
        table = [[ours, atlas.starts - ours], [theirs, THEIR_STARTS - theirs]]
        chances.append(float(fisher_exact(table).pvalue))
        ends = atlas.spurious_interval
        told.append(
            f"k = {units}: {ours} of {atlas.starts} [{ends.low:.4f}, {ends.high:.4f}], printed {theirs} of "
            f"{THEIR_STARTS}, p = {chances[-1]:.2g}"
        )
    return tt.at_least(min(chances), LEVEL, seeds=atlases.sizes.starts, detail=f"{'; '.join(told)}.")


def exists(atlases: Atlases) -> tt.Finding:
    """By the smallest curvature, where the gradient is below 1e-13: computed in floating point, not proved."""
    found = {units: atlases.minimum(units) for units in atlases.sizes.units}
    losses = ", ".join(f"{units}: {place.loss:.6f}" for units, place in found.items() if place)
    least = min(place.least if place else -np.inf for place in found.values())
    return tt.at_least(least, 1e-6, detail=f"The smallest curvature; losses of the lowest by k: {losses}.")


def grows(atlases: Atlases) -> tt.Finding:
    """The least step from one k to the next, and which intervals no longer tell a k from the second one after it."""
    units, found = atlases.sizes.units, [atlases.of(units) for units in atlases.sizes.units]
    steps = np.diff([atlas.spurious for atlas in found])
    ends = [atlas.spurious_interval for atlas in found]
    alike = [k for k, here, later in zip(units, ends, ends[2:], strict=False) if later.low <= here.high]
    told = f"from k = {', '.join(map(str, alike))}" if alike else "nowhere"
    detail = f"The 95 % intervals of k and of the second k after it overlap {told}."
    return tt.at_least(steps.min(), 0.0, seeds=atlases.sizes.starts, detail=detail)


def wider(atlases: Atlases) -> tt.Finding:
    """The upper end of the rate with k + 1 students over the lower end of that with k."""
    parts, told = [], []
    for units in atlases.sizes.wider:
        same, more = atlases.ends(units), atlases.ends(units, 1)
        low, high = rate_interval(same).low, rate_interval(more.fillna(1.0)).high  # what is undecided speaks against it
        parts.append(high / low if low else np.inf)
        still = int(more.isnull().sum())
        told.append(f"k = {units}: {int(more.sum())} of {more.size} in place of {int(same.sum())}, {still} undecided")
    return tt.at_most(max(parts), 0.5, seeds=atlases.sizes.starts, detail=f"{'; '.join(told)}.")


def rate_interval(ends: xr.DataArray) -> Interval:
    return binomial_interval(int(ends.sum()), ends.size, 0.95)


def minima(atlases: Atlases) -> tt.Finding:
    found = [atlases.of(units) for units in atlases.sizes.units]
    other = sum(each.unresolved + sum(p.count for p in each.places if p.index or p.zero) for each in found)
    total = sum(each.starts for each in found)
    return tt.at_most(other, 0, seeds=total, detail=f"Starts of {total} that end anywhere else.")


def descent(atlases: Atlases) -> tt.Finding:
    """The same starts by the flow and by descent."""
    flow, steps = (atlases.ends(8, dynamics=name) for name in MOVES)
    other = int((flow != steps).sum())
    return tt.at_most(other / flow.size, 0.02, seeds=flow.size, detail=f"{other} of {flow.size} starts of 8 students.")


def symmetric(atlases: Atlases) -> tt.Finding:
    """By how many groups of students there are whose exchanges, each with its teacher, leave the point as it is;
    infinite where not all of them do."""
    found = [place for units in atlases.sizes.units for place in atlases.of(units).places if place.spurious]
    full = [place.isotropy.name.startswith("S") for place in found]
    groups = [len(place.isotropy.students) if whole else np.inf for place, whole in zip(found, full, strict=True)]
    return tt.at_most(max(groups, default=np.nan), 3, detail=f"The most groups of {len(found)} minima, over all k.")


def claim(check, where: str, statement: str, **more) -> Claim:
    return Claim(check.__name__, where, statement, "", check, **more)


CLAIMS = [
    claim(exists, "Theorem 1", "There are spurious minima for every k from 6 to 20."),
    claim(
        rates, "Table 1", "Gradient descent ends in spurious minima at the printed rates, k by k.", must_hold=False,
        explanation="The start is our reading of theirs, the printed rates are as we have them.",
    ),
    claim(grows, "Section 4", "The measured rate grows from each k to the next."),
    claim(wider, "Section 4", "One student more makes spurious minima at least twice as rare."),
    claim(
        symmetric, "Arjevani and Field 2020", "Spurious minima are symmetric: two or three groups of students alike.",
        kind=tt.Kind.OURS,
    ),
    claim(descent, "Section 4", "Descent with a step of 0.1 ends where the flow does, but for 2 %.", kind=tt.Kind.OURS),
    claim(minima, "Section 4", "Every start ends in a minimum with a positive Hessian.", kind=tt.Kind.OURS),
]  # fmt: skip


# ---- figure

SHOWN = 4
"""Symmetries with a colour of their own."""


def data(settings, size: str) -> xr.Dataset:
    """Rates of k and of k + 1 students with their intervals, and the spurious minima of k students one by one."""
    atlases = Atlases(settings, size)
    found = [atlases.of(units) for units in atlases.sizes.units]
    more = [atlases.ends(units, 1) for units in atlases.sizes.wider]
    intervals = [*(atlas.spurious_interval for atlas in found), *map(rate_interval, more)]
    places = [(units, place) for units in atlases.sizes.units for place in atlases.of(units).places if place.spurious]
    return xr.Dataset(
        {
            "rate": ("row", [*(atlas.spurious for atlas in found), *(float(ends.sum() / ends.size) for ends in more)]),
            "low": ("row", [each.low for each in intervals]),
            "high": ("row", [each.high for each in intervals]),
            "loss": ("place", [place.loss for _, place in places]),
            "starts": ("place", [place.count for _, place in places]),
            "symmetry": ("place", [symmetry(units, place.isotropy.name) for units, place in places]),
        },
        {
            "units": ("row", [*atlases.sizes.units, *atlases.sizes.wider]),
            "extra": ("row", [0] * len(found) + [1] * len(more)),
            "place_units": ("place", [units for units, _ in places]),
        },
    )


def symmetry(units: int, name: str) -> str:
    """A symmetry type with k in it: `S(k-1)` for S5 of six."""
    sizes = [int(part[1:]) for part in name.split(" x ")] if name.startswith("S") else []
    return " x ".join(f"S(k-{units - size})" if size > units / 2 else f"S{size}" for size in sizes) or "other"


def sheet(dataset: xr.Dataset) -> Sheet:
    theirs = [binomial_interval(round(rate * THEIR_STARTS), THEIR_STARTS, 0.95) for rate in PRINTED.values()]
    low, high = (np.array([getattr(each, end) for each in theirs]) for end in ("low", "high"))
    printed = line(
        np.array([*PRINTED]) + 0.2, [*PRINTED.values()], "printed, n = k", kind="points", marker="s", low=low, high=high
    )
    rates = (_rates(dataset, 0, "ours, n = k"), printed, _rates(dataset, 1, "ours, n = k + 1"))
    return Sheet(
        "ReLU students of k orthonormal ReLU teachers",
        (
            Panel("How often a start ends in a spurious minimum", "k", "part of the starts", rates),
            Panel("Spurious minima of n = k, by symmetry", "k", "loss", _minima(dataset)),
        ),
        caption="Bars are exact binomial intervals at 95 %, the printed ones those of 1000 starts. The symmetry of a "
        "minimum is the group of exchanges of units that leave it as it is.",
    )


def _rates(dataset: xr.Dataset, extra: int, label: str) -> Series:
    part = dataset.isel(row=np.flatnonzero(dataset.extra == extra))
    return line(part.units, part.rate, label, kind="points", low=part.low.values, high=part.high.values)


def _minima(dataset: xr.Dataset) -> tuple[Series, ...]:
    """Losses against k, a series for each of the commonest symmetries."""
    often = dataset.starts.groupby(dataset.symmetry.rename("kind")).sum()
    kinds = often.kind.values[np.argsort(-often.values)][:SHOWN].tolist()
    names = np.where(np.isin(dataset.symmetry, kinds), dataset.symmetry, "other")
    shown = [*(kind for kind in kinds if kind != "other"), "other"]
    parts = [(kind, np.flatnonzero(names == kind)) for kind in shown]
    return tuple(line(dataset.place_units[at], dataset.loss[at], kind, kind="points") for kind, at in parts if len(at))


STUDY = tt.Study.of(
    safran_shamir,
    dynamics=MOVES,
    record=tt.Record(60, observables=("loss", "gradient_norm", "overlap"), events=(LOW, REST)),
    title="Spurious minima of ReLU students",
    authors="Itay Safran, Ohad Shamir",
    reference="ICML 2018, arXiv 1712.08968",
    summary=(__doc__ or "").partition("\n\n")[2].strip(),
    measures=MEASURES,
    evidence=Atlases,
    claims=CLAIMS,
    figures=[tt.Figure("rates", "How often descent ends in a spurious minimum", data, sheet)],
    presets={"short": {"units": 6}},
)
