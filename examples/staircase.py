"""Staircases: a product of directions is learned soon if its factors can be learned one after another.

Abbe, Boix-Adsera, Misiakiewicz, *SGD learning on neural networks: leap complexity and saddle-to-saddle dynamics*, COLT
2023 (arXiv 2302.11055). SGD learns a polynomial of a few directions with about `d^max(leap - 1, 1)` samples, where the
leap is how many new directions have to be found at once. `z1 z2 z3` alone takes `d^2`; with `z1` and `z1 z2` as stairs
below it, it takes `d`.

Here one unit learns on the sphere, by the correlation of its output with the label. Its activation is
`He1 + He2/2 + He3/6`, so that the mean correlation is the teacher's polynomial itself, at the unit's overlaps with the
directions: `m1 m2 m3` for `z1 z2 z3`.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Annotated, Literal

import jax.numpy as jnp
import numpy as np
import xarray as xr
from pydantic import Field

import tutelage as tt
from tutelage.analysis import GREY, Claim, Panel, Sheet, band, line
from tutelage.analysis.scaling import Fit, fit
from tutelage.problem.activations import polynomial
from tutelage.study import Sweep

# ---- what is learned

TEACHERS = {
    "stairs": {(1, 0, 0): 1.0, (1, 1, 0): 2.0, (1, 1, 1): 4.0},
    "gap": {(1, 0, 0): 1.0, (1, 1, 1): 3.0},
    "pair": {(1, 1): 1.0},
    "product": {(1, 1, 1): 1.0},
}
"""Coefficients of products of directions; teachers are divided by their length."""
RATES = {"stairs": 0.01, "gap": 0.01, "pair": 0.01, "product": 0.05}
"""The step times `d^max(leap/2, 1)`: small enough that noise changes little."""
UNIT = polynomial([-1 / 2, 1 / 2, 1 / 2, 1 / 6], name="He1 + He2/2 + He3/6")
FOUND = 0.35
"""The overlap from which on a direction is known; the smallest of the last overlaps is 0.4."""


def staircase(
    dim: Annotated[int, Field(ge=4), "d, the input dimension"] = 1000,
    teacher: Annotated[Literal["stairs", "gap", "pair", "product"], "which polynomial"] = "stairs",
    slower: Annotated[float, Field(ge=0), "powers of d by which the step is smaller than theory asks for"] = 0.0,
) -> tt.Problem:
    """One unit of length 1, from anywhere on the sphere."""
    terms = TEACHERS[teacher]
    size = sqrt(sum(value**2 for value in terms.values()))
    taught = tt.multi_index({powers: value / size for powers, value in terms.items()})
    student = tt.TwoLayer(UNIT, first=tt.SphereRows(1.0), second="ones", width=1, trains=("first",))
    return tt.Problem(tt.Gaussian(dim), taught, student)


def step(teacher: str, dim: int, slower: float = 0.0) -> float:
    """As small as the theory asks for: like `1/d` up to a leap of 2, like `d^(-3/2)` for 3."""
    return RATES[teacher] * float(dim) ** -(max(tt.leap(TEACHERS[teacher]) / 2, 1.0) + slower)


def sphere(settings) -> tt.Sphere:
    """SGD until all is found, or for so long that nearly all seeds have found it."""
    teacher, dim, slower = settings.teacher, settings.dim, settings.slower
    samples = 20 * tt.recovery_samples(tt.leap(TEACHERS[teacher]), dim) * dim**slower / RATES[teacher]
    return tt.Sphere(samples=round(samples), step=step(teacher, dim, slower))


# ---- what is measured: when each direction is found


@dataclass(frozen=True)
class Above:
    """How far the overlaps with the directions, which are the first units of the teacher, are above `FOUND`."""

    directions: int

    def __call__(self, view) -> jnp.ndarray:
        overlaps = view.teacher.first[: self.directions] @ view.weights.first[0]
        return jnp.abs(overlaps) - FOUND


@dataclass(frozen=True)
class All:
    """All of them are."""

    directions: int

    def __call__(self, view) -> jnp.ndarray:
        return Above(self.directions)(view).min()


def record(settings, dynamics: str) -> tt.Record:
    count = len(next(reversed(TEACHERS[settings.teacher])))
    found = tt.Crossings("found", Above(count), ("direction",), "samples until a direction is found")
    return tt.Record(
        60, observables=("loss", "overlap"), crossings=(found,), events=(tt.Event("all_found", All(count), stop=True),)
    )


@dataclass(frozen=True)
class Time:
    """Samples until one direction is found, seed by seed."""

    direction: int

    def __call__(self, run: tt.Run) -> xr.DataArray:
        return run.found.isel(direction=self.direction - 1)


MEASURES = [
    tt.Measure(
        f"time_{number}",
        f"samples until direction {number} is found",
        Time(number),
        kind="time",
        observables=(),
        records=2,
    )
    for number in (1, 2, 3)
]


# ---- the evidence: times over dimensions

DIMS = {
    "quick": {"stairs": (128, 400, 1200), "gap": (128, 400, 1200), "pair": (128, 400, 1200), "product": (32, 64, 128)},
    "full": {
        "stairs": (256, 1024, 4096, 16384),
        "gap": (256, 1024, 4096, 16384),
        "pair": (256, 1024, 4096, 16384),
        "product": (64, 128, 256, 512),
    },
}
SEEDS = {"quick": 8, "full": 32}


class Times:
    """What the claims look at: sweeps over the dimension, one for each teacher."""

    def __init__(self, settings, size="quick", seeds=0):
        self.settings, self.size, self.seeds = settings, size, SEEDS[size]
        self._known: dict[str, Sweep] = {}

    def of(self, teacher: str) -> Sweep:
        if teacher not in self._known:
            experiment = STUDY(teacher=teacher, slower=self.settings.slower)
            names = [measure.name for measure in MEASURES[: len(next(reversed(TEACHERS[teacher])))]]
            self._known[teacher] = tt.sweep(
                experiment, over={"dim": list(DIMS[self.size][teacher])}, measure=names, seeds=self.seeds, processes=1
            )
        return self._known[teacher]

    def power(self, teacher: str, direction: int) -> Fit:
        """How the samples until a direction is found grow with d."""
        return self.of(teacher).fits(f"time_{direction}")[None]

    def logarithm(self, teacher: str, direction: int) -> Fit:
        """How they grow with log d, when they are counted in steps over the step size."""
        name, swept = f"time_{direction}", self.of(teacher)
        sizes = np.array([step(teacher, int(dim), self.settings.slower) for dim in swept.dim])
        values, limit = (
            swept.dataset[each].transpose("dim", "seed").values * sizes[:, None] for each in (name, f"{name}_limit")
        )
        return fit(swept.dim, values, limit, "logarithmic", names=(f"{name} * step", "dim"))


# ---- claims


def stair_1(times: Times) -> tt.Finding:
    return tt.exponent_is(times.power("stairs", 1), 1.0)


def stair_2(times: Times) -> tt.Finding:
    return tt.exponent_is(times.power("stairs", 2), 1.0)


def stair_3(times: Times) -> tt.Finding:
    return tt.exponent_is(times.power("stairs", 3), 1.0)


def in_order(times: Times) -> tt.Finding:
    swept = times.of("stairs")
    waits = xr.concat([swept.time_2 / swept.time_1, swept.time_3 / swept.time_2], "stair")
    return tt.at_least(waits, 1.0, detail="The least ratio of a time to that of the stair below, over seeds and d.")


def product(times: Times) -> tt.Finding:
    return tt.exponent_is(times.power("product", 3), 2.0)


def pair(times: Times) -> tt.Finding:
    return tt.exponent_is(times.logarithm("pair", 2), 0.5)


def gap_1(times: Times) -> tt.Finding:
    return tt.exponent_is(times.power("gap", 1), 1.0)


def gap_2(times: Times) -> tt.Finding:
    found = times.logarithm("gap", 2)
    return tt.at_least(found.intervals["b"].low, 0.0, detail=f"{found.sentence}. {times.power('gap', 2).sentence}.")


def claim(check, where: str, statement: str, **more) -> Claim:
    return Claim(check.__name__, where, statement, "", check, **more)


CLAIMS = [
    claim(stair_1, "leap 1", "z1 of z1 + 2 z1 z2 + 4 z1 z2 z3 takes samples like d."),
    claim(stair_2, "leap 1", "So does z2, which has z1 as a stair below it."),
    claim(stair_3, "leap 1", "So does z3, which has z1 z2 below it."),
    claim(in_order, "saddle to saddle", "Directions are found one after another, from the lowest stair on."),
    claim(product, "leap 3", "Without stairs z1 z2 z3 takes samples like d^2."),
    claim(
        pair, "leap 2", "z1 z2 takes samples like d log d: (log d) / 2 over the step.", kind=tt.Kind.OURS,
        explanation="Overlaps grow by a factor e in 1 / step samples, from about d^(-1/2): the constant is ours.",
    ),
    claim(gap_1, "leap 2", "z1 of z1 + 3 z1 z2 z3 takes samples like d."),
    claim(gap_2, "leap 2", "z2 of it takes more, by a factor that grows with log d."),
]  # fmt: skip


# ---- figure

TITLES = {
    "stairs": "z1 + 2 z1 z2 + 4 z1 z2 z3: leap 1",
    "gap": "z1 + 3 z1 z2 z3: leap 2",
    "pair": "z1 z2: leap 2",
    "product": "z1 z2 z3: leap 3",
}


def data(settings, size: str) -> xr.DataTree:
    times = Times(settings, size)
    return xr.DataTree.from_dict({teacher: times.of(teacher).dataset for teacher in TEACHERS})


def sheet(tree: xr.DataTree) -> Sheet:
    return Sheet(
        "Samples until a direction is found",
        tuple(_panel(tree[teacher].to_dataset(), teacher) for teacher in TITLES),
        caption="Medians over seeds, bars from the 10 % to the 90 % quantile; directions beside each other. Dashed: "
        "the order that the leap predicts, with the constant that suits the last direction best.",
    )


def _panel(swept: xr.Dataset, teacher: str) -> Panel:
    leap, names = tt.leap(TEACHERS[teacher]), [each.name for each in MEASURES if each.name in swept]
    curves = []
    for place, name in enumerate(names):
        beside = 1.05 ** (place - (len(names) - 1) / 2)
        label = f"direction {place + 1}"
        curves.append(band(swept.dim * beside, swept[name].fillna(np.inf), label, kind="points", colour=place))
    law = np.array([tt.recovery_samples(leap, int(dim)) for dim in swept.dim])
    constant = np.exp(np.mean(np.log(swept[names[-1]].median("seed").values / law)))
    words = {1: "d", 2: "d log d", 3: "d^2"}[leap]
    curves.append(line(swept.dim, constant * law, words, dash="dashed", colour=GREY))
    return Panel(TITLES[teacher], "d", "samples", tuple(curves), xscale="log", yscale="log")


STUDY = tt.Study.of(
    staircase,
    dynamics={"sphere": sphere},
    record=record,
    title="Staircases and leaps",
    authors="Emmanuel Abbe, Enric Boix-Adsera, Theodor Misiakiewicz",
    reference="COLT 2023, arXiv 2302.11055",
    summary=(__doc__ or "").partition("\n\n")[2].strip(),
    measures=MEASURES,
    evidence=Times,
    claims=CLAIMS,
    figures=[tt.Figure("times", "Samples until a direction is found", data, sheet)],
    presets={"short": {"dim": 256}},
)
