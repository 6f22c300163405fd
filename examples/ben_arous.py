"""Ben Arous, Gheissari, Jagannath 2021: how many samples online SGD needs before it knows a direction.

One unit on the sphere learns a teacher with the same link, one sample at a time. The first Hermite coefficient of the
link that is not zero, of order k, the information exponent, decides: from a start with an overlap of the order of
d^(-1/2), of the order of d^(k-1) samples are needed for k > 2, up to logarithms. Here the link is He_3, so that k = 3.

G. Ben Arous, R. Gheissari and A. Jagannath, JMLR 22 (106), 2021; arXiv 2003.10409. Their step is delta / d with delta
of the order d^(-(k-2)/2), up to logarithms: here `scale d^(-k/2)`. Starts are uniform on the half of the sphere with
a positive overlap.
"""

import math
from dataclasses import replace
from typing import Annotated

import numpy as np
import xarray as xr
from pydantic import Field

import tutelage as tt
from tutelage.analysis import GREY, Panel, Sheet, band, binomial_interval, line
from tutelage.analysis.scaling import fit

KNOWN = 0.5
"""The overlap at which the direction counts as known."""


def ben_arous(
    dim: Annotated[int, Field(ge=4), "d, the input dimension"] = 64,
    link: Annotated[str, "of student and teacher"] = "he3",
    scale: Annotated[float, Field(gt=0), "the step is scale * d^-power"] = 0.05,
    power: Annotated[float, Field(gt=0), "k / 2 for an information exponent k"] = 1.5,
    budget: Annotated[float, Field(gt=0), "samples at most, over d^(k - 1)"] = 16.0,
) -> tt.Problem:
    """One unit of length 1, which leans a little to its teacher."""
    start = tt.HalfSphereRows(toward=((1.0,),))
    student = tt.TwoLayer(link, first=start, second="ones", width=1, trains=("first",))
    return tt.Problem(tt.Gaussian(dim), tt.TwoLayer(link, first=[[1.0]], second="ones"), student)


def sphere(settings) -> tt.Sphere:
    order = tt.recovery_samples(tt.information_exponent(settings.link), settings.dim)
    return tt.Sphere(samples=round(settings.budget * order), step=settings.scale * settings.dim**-settings.power)


# ---- what is measured: the time of weak recovery, and what theory says of it


def known(view):
    return view.weights.first[0] @ view.teacher.first[0] - KNOWN


RECORD = tt.Record(50, observables=("loss", "overlap"), events=(tt.Event("recovery_time", known, stop=True),))


def predicted(settings) -> float:
    """What the drift takes from the median of the starts; 0.6745 is that of the size of a normal number."""
    start = 0.6745 / math.sqrt(settings.dim)
    return float(tt.drift_samples(settings.link, start=start, step=sphere(settings).step, level=KNOWN))


def recovery_time(run: tt.Run) -> xr.DataArray:
    return run.event_time.sel(event="recovery_time", drop=True)


def over_predicted(run: tt.Run) -> xr.DataArray:
    """The time that was measured over the one that the drift takes from the very start of each seed."""
    start = run.overlap.isel(time=0, student=0, teacher=0)
    link, move = run.problem.student.activation, run.asked.plan
    return recovery_time(run) / tt.drift_samples(link, start=start.values, step=move.step, level=KNOWN)


READS = {"observables": ("overlap",), "records": 2}
MEASURES = [
    tt.Measure("recovery_time", "samples to an overlap of 1/2", recovery_time, "samples", "time", predicted, **READS),
    tt.Measure("over_predicted", "measured over predicted", over_predicted, **READS),
]


# ---- claims


RECOVERY = {
    "over": {"dim": [64, 128, 256]},
    "measure": "recovery_time",
    "seeds": 48,
    "full": {"over": {"dim": [64, 128, 256, 512, 1024]}, "seeds": 128},
}


def in_dims(values: xr.DataArray, form: str) -> str:
    return ", ".join(f"{float(value):{form}} at d = {int(dim)}" for dim, value in zip(values.dim, values, strict=True))


@tt.claim("Of the order of d^(k-1) samples are needed, d^2 here.", where="main theorem, k = 3", **RECOVERY)
def samples(sweep) -> tt.Finding:
    found = sweep.fits("recovery_time", over="dim")[None]
    late = sweep.recovery_time.isnull()
    middle = sweep.recovery_time.where(~late, np.inf).median("seed") / sweep.dim**2
    words = f"Median of samples over d^2: {in_dims(middle, '.2f')}; {int(late.sum())} of {late.size} did not get there."
    return tt.exponent_is(found, 2.0, detail=words)


@tt.claim("With far fewer, d^(3/2), the direction is not known.", where="main theorem, lower bound", **RECOVERY)
def too_few(sweep) -> tt.Finding:
    early = sweep.recovery_time <= sweep.dim**1.5
    count, trials = int(early.sum()), early.size
    interval = binomial_interval(count, trials, 0.95)
    return replace(tt.at_most(count / trials, 0.01, detail=f"{count} of {trials} runs."), interval=interval)


@tt.claim(
    "With a small step the time is that of the drift from each start, dm/dn = 18 step m^2 (1 - m^2) for He_3.",
    where="population dynamics",
    over={"dim": [64]},
    measure="over_predicted",
    settings={"scale": 0.005, "budget": 160.0},
    seeds=48,
    full={"over": {"dim": [64, 256]}, "settings": {"scale": 0.002, "budget": 400.0}, "seeds": 128},
)
def predicts(sweep) -> tt.Finding:
    ratio = sweep.over_predicted.fillna(np.inf).median("seed")
    return tt.at_most(abs(ratio - 1), 0.2, detail=f"Median of measured over predicted: {in_dims(ratio, '.3f')}.")


# ---- a figure


def data(settings, size: str) -> xr.Dataset:
    dims, seeds = ([64, 128, 256, 512, 1024], 128) if size == "full" else ([64, 128, 256], 48)
    runs = [STUDY.run(settings.model_copy(update={"dim": dim}), seeds=seeds, record=2) for dim in dims]
    times = xr.concat([recovery_time(run) for run in runs], xr.Variable("dim", dims))
    theory = [predicted(settings.model_copy(update={"dim": dim})) for dim in dims]
    return xr.Dataset(
        {
            "time": times,
            "limit": ("dim", [float(sphere(settings.model_copy(update={"dim": dim})).samples) for dim in dims]),
            "own": times / xr.concat([over_predicted(run) for run in runs], times.dim),
            "theory": ("dim", theory),
        }
    )


def sheet(dataset: xr.Dataset) -> Sheet:
    dims, times = dataset.dim.values, dataset["time"]
    limit = np.where(times.isnull(), dataset["limit"].values[:, None], np.inf)
    law = fit(dims, times.values, limit, names=("samples", "d"))
    middle = times.fillna(np.inf).transpose("seed", "dim").values
    scaling = Panel(
        "Samples until the direction is known",
        "input dimension d",
        "samples",
        (
            band(dims, middle, "measured: median, 10 % to 90 %", kind="points", colour=0),
            line(dims, law.law.predict(dims, *law.estimates.values()), f"fit, d^{law.estimates['b']:.2f}", colour=0),
            line(dims, dataset["theory"], "the drift, from the median start", dash="dashed", colour=1),
            line(dims, 3e-2 * dims**2.0 * np.log(dims) ** 2, "d^2 log^2 d, any constant", dash="dotted", colour=GREY),
        ),
        xscale="log",
        yscale="log",
    )
    ends = np.array([np.nanmin(dataset["own"]), np.nanmax(dataset["own"])])
    clouds = [
        line(dataset["own"].sel(dim=dim), times.sel(dim=dim), f"d = {dim}", kind="points", colour=number)
        for number, dim in enumerate((dims[0], dims[-1]))
    ]
    beside = Panel(
        "Seed by seed",
        "samples that the drift takes from the seed's start",
        "samples that were taken",
        (*clouds, line(ends, ends, "equal", dash="dashed", colour=GREY)),
        xscale="log",
        yscale="log",
    )
    told = "He_3, spherical online SGD with the step scale d^(-3/2), starts on the half sphere with a positive overlap."
    return Sheet("Weak recovery of a single index", (scaling, beside), caption=told)


STUDY = tt.Study.of(
    ben_arous,
    dynamics={"sphere": sphere},
    record=RECORD,
    title="How many samples until a direction is known",
    authors="Ben Arous, Gheissari, Jagannath",
    reference="JMLR 22 (106), 2021; arXiv 2003.10409",
    summary="Online SGD on the sphere needs of the order of d^(k-1) samples, k the information exponent of the link.",
    measures=MEASURES,
    claims=[samples, too_few, predicts],
    figures=[tt.Figure("recovery", "Samples until the direction is known", data, sheet)],
    presets={"short": {"dim": 64}},
)
