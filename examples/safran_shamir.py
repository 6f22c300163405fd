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

REST = tt.Event("rest", lambda view: 1e-7 - view.gradient_norm, stop=True)
MOVES = {"flow": tt.Flow(until=1e4), "descent": tt.Descent(step=0.1, steps=100_000)}
LEAST = 1e-3
"""A loss that tells a spurious minimum from a global one, where the gradient vanishes."""


def spurious(run: tt.Run) -> xr.DataArray:
    """1 where a run rests at a loss above 1e-3, 0 where its loss is below, nan where it still moves above."""
    loss, rests = run.last("loss"), run.last("gradient_norm") < 1e-6
    return xr.where(loss < LEAST, 0.0, xr.where(rests, 1.0, np.nan))


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


SIZES = {"quick": Sizes((6, 8, 10), (10,), 64), "full": Sizes(tuple(PRINTED), (8, 12), 500)}


class Atlases:
    """What the claims look at. How many starts there are is a matter of the size, not of `seeds`."""

    def __init__(self, settings, size="quick", seeds=0):
        self.settings, self.sizes, self.seeds = settings, SIZES[size], seeds
        self._known: dict[tuple[int, int], Atlas] = {}

    def of(self, units: int, extra: int = 0) -> Atlas:
        """From random starts; `extra` students beyond those of the settings."""
        if (units, extra) not in self._known:
            problem = safran_shamir(units, self.settings.extra + extra, self.settings.scale)
            self._known[units, extra] = tt.atlas(problem, self.sizes.starts)
        return self._known[units, extra]

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
    """From each k to the second one after it, beyond both intervals."""
    ends = [atlases.of(units).spurious_interval for units in atlases.sizes.units]
    gaps = [later.low - earlier.high for earlier, later in zip(ends, ends[2:], strict=False)]
    return tt.at_least(min(gaps), 0.0, seeds=atlases.sizes.starts, detail="The least gap between two intervals.")


def wider(atlases: Atlases) -> tt.Finding:
    """The upper end of the rate with k + 1 students over the lower end of that with k."""
    pairs = {units: (atlases.of(units), atlases.of(units, 1)) for units in atlases.sizes.wider}
    parts = [more.spurious_interval.high / max(same.spurious_interval.low, 1e-9) for same, more in pairs.values()]
    told = [
        f"k = {units}: {count(more)} of {more.starts} in place of {count(same)}, {more.unresolved} unresolved"
        for units, (same, more) in pairs.items()
    ]
    return tt.at_most(max(parts), 0.5, seeds=atlases.sizes.starts, detail=f"{'; '.join(told)}.")


def minima(atlases: Atlases) -> tt.Finding:
    found = [atlases.of(units) for units in atlases.sizes.units]
    other = sum(each.unresolved + sum(p.count for p in each.places if p.index or p.zero) for each in found)
    total = sum(each.starts for each in found)
    return tt.at_most(other, 0, seeds=total, detail=f"Starts of {total} that end anywhere else.")


def descent(atlases: Atlases) -> tt.Finding:
    """The same starts by the flow and by descent."""
    settings = atlases.settings.model_copy(update={"units": 8})
    flow, steps = (spurious(STUDY.run(settings, dynamics=name, seeds=atlases.sizes.starts)) for name in MOVES)
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
    claim(grows, "Section 4", "The chance of a spurious minimum grows with k."),
    claim(wider, "Section 4", "One student more makes spurious minima at least twice as rare."),
    claim(
        symmetric, "Arjevani and Field 2020", "Spurious minima are symmetric: two or three groups of students alike.",
        ours=True,
    ),
    claim(descent, "Section 4", "Descent with a step of 0.1 ends where the flow does, but for 2 %.", ours=True),
    claim(minima, "Section 4", "Every start ends in a minimum with a positive Hessian.", ours=True),
]  # fmt: skip


# ---- figure

SHOWN = 4
"""Symmetries with a colour of their own."""


def data(settings, size: str) -> xr.Dataset:
    """Rates of k and of k + 1 students with their intervals, and the spurious minima of k students one by one."""
    atlases = Atlases(settings, size)
    rows = [*((units, 0) for units in atlases.sizes.units), *((units, 1) for units in atlases.sizes.wider)]
    found = [atlases.of(*row) for row in rows]
    places = [(units, place) for units in atlases.sizes.units for place in atlases.of(units).places if place.spurious]
    return xr.Dataset(
        {
            "rate": ("row", [atlas.spurious for atlas in found]),
            "low": ("row", [atlas.spurious_interval.low for atlas in found]),
            "high": ("row", [atlas.spurious_interval.high for atlas in found]),
            "loss": ("place", [place.loss for _, place in places]),
            "starts": ("place", [place.count for _, place in places]),
            "symmetry": ("place", [symmetry(units, place.isotropy.name) for units, place in places]),
        },
        {
            "units": ("row", [units for units, _ in rows]),
            "extra": ("row", [extra for _, extra in rows]),
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
    record=tt.Record(60, observables=("loss", "gradient_norm", "overlap"), events=(REST,)),
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
