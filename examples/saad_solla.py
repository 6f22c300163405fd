"""Saad and Solla 1995: students of a soft committee machine are alike for long, and then each finds its teacher.

K students with the activation erf(z / sqrt 2) and outgoing weights 1 learn from K orthonormal teachers of the same
kind, by online SGD with the step eta / N in N dimensions. In the limit of many dimensions their overlaps follow
differential equations. The students rest on a plateau on which nothing tells them from each other, and leave it
because the start was not quite symmetric.

D. Saad and S. A. Solla, Phys. Rev. Lett. 74, 4337 and Phys. Rev. E 52, 4225 (1995). Their eta is `rate`; their time
alpha, samples over N, times eta is the time here. Their generalisation error is 1/2 E(error^2), as every loss here.
"""

# --8<-- [start:imports]
import math
from typing import Annotated, NamedTuple

import numpy as np
import xarray as xr
from pydantic import Field
from scipy.special import erf

import tutelage as tt
from tutelage.analysis import Mark, Panel, Sheet, band, line

# --8<-- [end:imports]


# --8<-- [start:problem]
def saad_solla(
    units: Annotated[int, Field(ge=2, le=8), "K, the number of students and of teachers"] = 2,
    dim: Annotated[int, Field(ge=16), "N, the input dimension"] = 1000,
    rate: Annotated[float, Field(gt=0), "eta, the step of SGD times the dimension"] = 0.5,
    asymmetry: Annotated[float, Field(ge=0), "size of the students' first overlaps with teachers"] = 1e-3,
    outside: Annotated[float, Field(ge=0), "length of students outside the teachers' span at the start"] = 0.0,
    until: Annotated[float, Field(gt=0), "how long: eta alpha"] = 300.0,
    activation: Annotated[str, "of students and teachers; the paper's is erf_over_sqrt2"] = "erf_over_sqrt2",
) -> tt.Problem:
    """K orthonormal teachers, and K students that begin nearly alike."""
    leaning = asymmetry * np.random.default_rng(units).standard_normal((units, units))
    start = np.concatenate([leaning, outside * np.eye(units)], axis=1)
    teacher = tt.TwoLayer(activation, first=np.eye(units), second="ones")
    student = tt.TwoLayer(activation, first=start, second="ones", trains=("first",))
    return tt.Problem(tt.Gaussian(dim), teacher, student)


# --8<-- [end:problem]


# --8<-- [start:theory]
class Plateau(NamedTuple):
    """What theory says of the symmetric plateau, in the limit of a small rate."""

    square: float  # Q = C: students with themselves and with each other
    overlap: float  # R: students with teachers
    loss: float
    growth: float  # the rate at which a small asymmetry grows there


def plateau(units: int) -> Plateau:
    """If all students are R times the sum of the teachers, Q = C = K R^2, and the loss has its minimum over R where
    (2K - 1) Q^2 + (2K - 2) Q = 1. There it falls along (K - 1)^2 directions in which students part, with one negative
    curvature. What students have outside the teachers' span, if it sums to zero, costs nothing to second order.
    """
    k = float(units)
    return Plateau(
        square=1 / (2 * k - 1),
        overlap=1 / math.sqrt(k * (2 * k - 1)),
        loss=k / math.pi * (math.pi / 6 - k * math.asin(1 / (2 * k))),
        growth=2 * k / math.pi * (2 * k - 1) ** -0.5 * (2 * k + 1) ** -1.5,
    )


# --8<-- [end:theory]


# --8<-- [start:dynamics]
def updates(settings) -> int:
    return round(settings.until * settings.dim / settings.rate)


MOVES = {
    "ode": lambda settings: tt.Ode(rate=settings.rate, until=settings.until),
    "flow": lambda settings: tt.Flow(until=settings.until),  # the limit of a small rate
    "sgd": lambda settings: tt.Sgd(steps=updates(settings), batch=1, step=settings.rate / settings.dim),
}


def record(settings, dynamics: str) -> tt.Record:
    """At 201 times, the same ones for all; and when half of the plateau's loss is left."""
    part = np.linspace(0, 1, 201)
    if dynamics == "sgd":
        return tt.Record(np.unique(np.round(part * updates(settings))))
    leaves = tt.below(plateau(settings.units).loss / 2, "leave_time")
    return tt.Record(part * settings.until, events=(leaves,))


# --8<-- [end:dynamics]


# --8<-- [start:measures]
def plateau_loss(run: tt.Run) -> xr.DataArray:
    """The loss where it falls slowest, before half of the plateau's is left."""
    before = run.loss > plateau(run.problem.teacher.width).loss / 2
    slope = abs(run.loss.differentiate("time")).where(before, np.inf)
    return run.loss.isel(time=slope.argmin("time"))


def distance(run: tt.Run) -> xr.DataArray:
    """How far the loss of SGD is at most from that of its limit of many dimensions, seed by seed."""
    move, dim = run.asked.plan, run.problem.inputs.dim
    until = move.step * move.steps
    at = tt.Record(np.linspace(0, until, run.dataset.sizes["time"]), observables=("loss",))
    limit = tt.run(run.problem, tt.Ode(rate=move.step * dim, until=until), record=at)
    return abs(run.loss - limit.loss.values[0]).max("time")


MEASURES = [
    tt.Measure("plateau_loss", "loss on the plateau", plateau_loss, observables=("loss",)),
    tt.Measure("distance", "largest distance of SGD's loss from its limit", distance, observables=("loss",)),
]
# --8<-- [end:measures]


# --8<-- [start:first-claim]
OVERLAPS = ["final_overlap_ss.min", "final_overlap_ss.max", "final_overlap.min", "final_overlap.max"]


@tt.claim(
    "At the symmetric point Q = C = 1/(2K - 1), R = 1/sqrt(K(2K - 1)); the error is K/pi (pi/6 - K arcsin(1/(2K))).",
    where="plateau for K = M, small eta",
    over={"units": [2, 3]},
    measure=[*OVERLAPS, "final_loss"],
    dynamics="flow",
    settings={"asymmetry": 0.0, "outside": 0.0, "until": 150.0},
    seeds=1,
    full={"over": {"units": [2, 3, 4, 5, 6]}},
)
def saddle(sweep) -> tt.Finding:
    """From the origin students stay alike, so that the flow ends where the gradient vanishes among those."""
    found = sweep.dataset[[*OVERLAPS, "final_loss"]].isel(seed=0)
    said = [plateau(int(units)) for units in sweep.units]
    printed = np.array([[each.square] * 2 + [each.overlap] * 2 + [each.loss] for each in said])
    measured = found.to_array().transpose("units", "variable").values
    words = "; ".join(
        f"K = {int(units)}: Q = C = {row[0]:.6f}, R = {row[2]:.6f}, error {row[4]:.6f}"
        for units, row in zip(sweep.units, measured, strict=True)
    )
    return tt.at_most(abs(measured - printed), 1e-8, detail=f"{words}.")


# --8<-- [end:first-claim]


# --8<-- [start:claims]
def beside(units, found, said) -> str:
    rows = zip(units, found, said, strict=True)
    return "; ".join(f"K = {int(k)}: {float(one):.6g}, theory {float(other):.6g}" for k, one, other in rows) + "."


@tt.claim(
    "A run from a nearly symmetric start rests there: the error of its plateau is the printed one.",
    where="plateau for K = M, small eta",
    over={"units": [2, 3]},
    measure="plateau_loss",
    dynamics="flow",
    settings={"asymmetry": 1e-6, "outside": 0.0, "until": 400.0},
    seeds=1,
    full={"over": {"units": [2, 3, 4, 5, 6]}, "settings": {"asymmetry": 1e-9, "until": 1000.0}},
)
def rests(sweep) -> tt.Finding:
    found, said = sweep.plateau_loss.isel(seed=0), [plateau(int(units)).loss for units in sweep.units]
    return tt.at_most(abs(found / np.array(said) - 1), 1e-6, detail=beside(sweep.units, found, said))


@tt.claim(
    "It leaves the plateau, and in the end each teacher has a student of its own.", where="end of learning", seeds=1
)
def specialises(run) -> tt.Finding:
    cosine = run.last("overlap_cos")
    matched = np.minimum(cosine.max("student").min(), cosine.max("teacher").min())
    return tt.at_least(matched, 0.999, detail=f"The error is {float(run.last('loss').max()):.1e} at the end.")


@tt.claim(
    "A start that is e times less asymmetric stays longer by pi/(2K) sqrt(2K - 1) (2K + 1)^(3/2).",
    where="escape from the symmetric subspace",
    over={"units": [2, 3], "asymmetry": [1e-3, 1e-5, 1e-7]},
    measure="leave_time",
    dynamics="flow",
    settings={"outside": 0.0, "until": 600.0},
    seeds=1,
    full={"over": {"units": [2, 3], "asymmetry": [1e-5, 1e-6, 1e-7, 1e-8, 1e-9]}},
)
def waits(sweep) -> tt.Finding:
    times = sweep.leave_time.isel(seed=0)
    slopes = [-np.polyfit(np.log(sweep.asymmetry), row, 1)[0] for row in times.transpose("units", "asymmetry")]
    said = [1 / plateau(int(units)).growth for units in sweep.units]
    return tt.at_most(abs(np.divide(slopes, said) - 1), 0.01, detail=beside(sweep.units, slopes, said))


@tt.claim(
    "The distance of SGD's error from that of the equations falls like N^(-1/2).",
    where="the limit of large N; the exponent is that of fluctuations",
    over={"dim": [100, 400, 1600]},
    measure="distance",
    dynamics="sgd",
    settings={"asymmetry": 0.5, "outside": 0.5, "until": 5.0, "rate": 0.5},
    seeds=32,
    full={"over": {"dim": [100, 1000, 10_000]}, "seeds": 128},
)
def limit(sweep) -> tt.Finding:
    return tt.exponent_is(sweep.fits("distance")[None], -0.5)


# --8<-- [end:claims]


# --8<-- [start:ours]
def noise(units: int) -> float:
    """E[error^2 s'(w.x)^2] where students are alike on the plateau, by Gauss-Hermite quadrature."""
    places, weights = np.polynomial.hermite_e.hermegauss(40)
    x = np.stack(np.meshgrid(*[places] * units), axis=-1)
    mass = np.prod(np.stack(np.meshgrid(*[weights / weights.sum()] * units), axis=-1), axis=-1)
    u = plateau(units).overlap * x.sum(-1)
    error = units * erf(u / math.sqrt(2)) - erf(x / math.sqrt(2)).sum(-1)
    return float(np.sum(mass * error**2 * 2 / math.pi * np.exp(-(u**2))))


@tt.claim(
    "A finite rate lifts the plateau: its error grows by eta K/4 E[error^2 s'^2], to first order.",
    where="derived here: students are pushed out of the teachers' span by eta E[error^2 s'^2] a unit of time",
    over={"units": [2, 3], "rate": [0.01, 0.02]},
    measure="final_loss",
    settings={"asymmetry": 0.0, "outside": 0.0, "until": 150.0},
    seeds=1,
    full={"over": {"units": [2, 3], "rate": [0.0025, 0.005, 0.01, 0.02]}},
    kind="ours",
)
def lifts(sweep) -> tt.Finding:
    counts = [int(units) for units in sweep.units]
    lifted = [sweep.final_loss.sel(units=k).isel(seed=0) - plateau(k).loss for k in counts]
    slopes = [np.polyfit(sweep.rate, each / sweep.rate, 1)[1] for each in lifted]  # at a rate of 0
    derived = [k * noise(k) / 4 for k in counts]
    return tt.at_most(abs(np.divide(slopes, derived) - 1), 1e-3, detail=beside(counts, slopes, derived))


# --8<-- [end:ours]


# --8<-- [start:figure]
def course(settings, size: str) -> xr.Dataset:
    """Loss and overlaps of the equations, and losses of SGD at growing dimensions."""
    limit = STUDY.run(settings, dynamics="ode")
    dims = [100, 1000, 10_000] if size == "full" else [100, 1000]
    runs = [STUDY.run(settings.model_copy(update={"dim": dim}), dynamics="sgd", seeds=8) for dim in dims]
    return limit.dataset[["loss", "overlap"]].isel(seed=0, drop=True).assign(
        sgd=(("dim", "seed", "time"), np.array([run.loss.values for run in runs])), dim=dims
    )  # fmt: skip


def sheet(dataset: xr.Dataset) -> Sheet:
    time, units = dataset["time"], dataset.sizes["teacher"]
    sgd = [
        band(time, dataset["sgd"].sel(dim=dim), f"SGD, N = {dim}", colour=number + 1)
        for number, dim in enumerate(dataset["dim"].values)
    ]
    losses = Panel(
        "Generalisation error",
        "time, eta alpha",
        "error",
        (*sgd, line(time, dataset["loss"], "equations", dash="dashed", colour=0)),
        marks=(Mark("plateau, small eta", level=plateau(units).loss),),
        yscale="log",
        ylim=(1e-6, 1.0),
    )
    overlaps = Panel(
        "Overlaps of students and teachers",
        "time, eta alpha",
        "R",
        tuple(
            line(time, dataset["overlap"][:, i, n], f"R{i + 1}{n + 1}", dash="dashed" if i else "solid")
            for i in range(units)
            for n in range(units)
        ),
        marks=(Mark("plateau, small eta", level=plateau(units).overlap),),
    )
    told = f"K = {units}. Bands: 10 % to 90 % of eight seeds. Noise does not part students that are alike."
    return Sheet("Alike for long, then each its own", (losses, overlaps), caption=told)


# --8<-- [end:figure]


# --8<-- [start:study]
STUDY = tt.Study.of(
    saad_solla,
    dynamics=MOVES,
    record=record,
    title="On-line learning in soft committee machines",
    authors="Saad, Solla",
    reference="Phys. Rev. Lett. 74, 4337 and Phys. Rev. E 52, 4225 (1995)",
    summary="Students rest on a plateau on which they are alike, and then each finds a teacher of its own.",
    measures=MEASURES,
    claims=[saddle, rests, specialises, waits, limit, lifts],
    figures=[tt.Figure("plateau", "The plateau and what comes after it", course, sheet)],
    presets={"short": {"asymmetry": 1e-2}},
)
# --8<-- [end:study]
