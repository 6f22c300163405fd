"""What Figures 1 and 2 say, on the runs that draw them."""

import math
from typing import Any

import numpy as np
import xarray as xr

from tutelage.analysis import Claim, Finding, Kind, Verdict, all_of, at_least, at_most
from tutelage.papers.beyond_ntk.evidence import Evidence
from tutelage.papers.beyond_ntk.figures.narrow import CASES, LITERAL, TOLD, at, escape_times, narrow, on_samples
from tutelage.papers.beyond_ntk.figures.stagewise import population, sampled

LEVEL, LITTLE = 0.1, 1e-2
"""The text's numbers: orders that are stuck are above the first, and order 0 falls below the second."""


def _both(evidence: Evidence) -> dict[str, xr.Dataset]:
    """Figure 1's network on its samples, and with the population gradient."""
    return {"samples": sampled(evidence.settings, evidence.size), "population": population(evidence.settings)}


def _norm(run: xr.Dataset, order: int) -> xr.DataArray:
    return run["norm"].sel(tensor_order=order).isel(seed=0)


def _at(run: xr.Dataset, order: int, time: float) -> float:
    return float(_norm(run, order).sel(time=time, method="nearest"))


def low_orders_at_once(evidence: Evidence) -> Finding:
    findings = []
    for name, run in _both(evidence).items():
        values = [_at(run, order, 2.0) for order in (0, 2)]
        text = f"At time 2 ({name}) |T_0| is {values[0]:.1e} and |T_2| {values[1]:.3f}; after one step "
        text += f"{_first(run, 0):.1f} and {_first(run, 2):.1f}."
        findings.append(at_most(values, 0.1, detail=text))
    return all_of(findings)


def _first(run: xr.Dataset, order: int) -> float:
    return float(_norm(run, order)[1])


def zeroth_below_second(evidence: Evidence) -> Finding:
    findings = []
    for name, run in _both(evidence).items():
        late = run["time"].values >= 0.5
        ratio = (_norm(run, 0) / _norm(run, 2)).values[late]
        text = f"The largest |T_0|/|T_2| from time 0.5 on ({name}) is {np.max(ratio):.2f}."
        findings.append(at_most(ratio, 1.0, detail=text))
    return all_of(findings)


def fourth_waits(evidence: Evidence) -> Finding:
    return all_of([_waits(run, name) for name, run in _both(evidence).items()])


def _waits(run: xr.Dataset, name: str) -> Finding:
    fourth, time = _norm(run, 4).values, run["time"].values
    level = float(np.median(fourth[(time > 5) & (time < 50)]))
    start, end = _stretch(time, (np.abs(fourth - level) <= 0.1 * level) & (time > 0))
    text = f"|T_4| ({name}) is within 10 % of {level:.3f} without a break from time {start:.2g} to {end:.3g}."
    return at_least(end / start, 10.0, detail=text)


def _stretch(time: np.ndarray, near: np.ndarray) -> tuple[float, float]:
    """First and last time of the longest row of records that are all `near`, long as a ratio; nan if none is."""
    places = np.flatnonzero(near)
    rows = np.split(time[places], np.flatnonzero(np.diff(places) > 1) + 1)
    ends = ((float(row[0]), float(row[-1])) for row in rows if len(row))
    return max(ends, key=lambda pair: pair[1] / pair[0], default=(math.nan, math.nan))


def high_orders_learned(evidence: Evidence) -> Finding:
    run = population(evidence.settings)
    values = [_at(run, order, TOLD) for order in (4, 6)]
    text = f"At time {TOLD:g} with the population gradient |T_4| is {values[0]:.1e} and |T_6| {values[1]:.1e}."
    findings = [at_most(values, 1e-2, detail=text)]
    if evidence.full:
        ends = sampled(evidence.settings, "full")["norm"].sel(tensor_order=[4, 6]).isel(time=-1).values
        told = ", ".join(f"{value:.1e}" for value in ends.max(1))
        findings.append(at_most(ends, LEVEL, seeds=len(ends), detail=f"On samples the larger ends at {told}."))
    return all_of(findings)


def samples_wait_longer(evidence: Evidence) -> Finding:
    if not evidence.full:
        return _minutes("4000")
    runs, exact = sampled(evidence.settings, "full"), population(evidence.settings)
    ends = [_below(runs["norm"].sel(tensor_order=4).isel(seed=seed), 0.1) for seed in range(runs.sizes["seed"])]
    without = _below(_norm(exact, 4), 0.1)
    text = f"|T_4| falls below 0.1 at times {', '.join(f'{end:.0f}' for end in ends)}; with the population gradient "
    return at_least(min(ends) / without, 1.5, seeds=len(ends), detail=f"{text}at {without:.0f}.")


def _minutes(time: str) -> Finding:
    return Finding(Verdict.NOT_REACHED, detail=f"10^4 samples to time {time} take minutes; use the full size.")


def _below(norm: xr.DataArray, level: float) -> float:
    under = norm.values < level
    return float(norm["time"].values[np.argmax(under)]) if under.any() else np.inf


def _told_orders(norm: xr.DataArray, time: float) -> str:
    values = {order: at(norm, order, time) for order in (0, 2, 4, 6)}
    return ", ".join(f"|T_{order}| {each.min():.2g} to {each.max():.2g}" for order, each in values.items())


def _in_its_setting(evidence: Evidence) -> tuple[xr.DataArray, str]:
    """The errors of Figure 2's network on the figure's samples, and what they are at its time."""
    cases = CASES["full"]
    norm = on_samples(evidence.settings, cases, cases.widths[0], cases.samples[0])["norm"]
    text = f"At time {TOLD:g}, {norm.sizes['seed']} seeds: {_told_orders(norm, TOLD)}."
    return norm, text


def high_orders_stay(evidence: Evidence) -> Finding:
    if not evidence.full:
        return _minutes(f"{TOLD:g}")
    norm, text = _in_its_setting(evidence)
    high = np.concatenate([at(norm, order, TOLD) for order in (4, 6)])
    parts = [at_least(high, LEVEL, seeds=norm.sizes["seed"], detail=text), at_most(at(norm, 0, TOLD), LITTLE)]
    return all_of(parts)


def second_stays(evidence: Evidence) -> Finding:
    if not evidence.full:
        return _minutes(f"{TOLD:g}")
    norm, text = _in_its_setting(evidence)
    return at_least(at(norm, 2, TOLD), LEVEL, seeds=norm.sizes["seed"], detail=text)


def learned_without_noise(evidence: Evidence) -> Finding:
    run = narrow(evidence.settings)
    high = np.concatenate([at(run["norm"], order, TOLD) for order in (2, 4, 6)])
    text = f"At time {TOLD:g}: {_told_orders(run['norm'], TOLD)}; L ends at {float(run['L'][:, -1].max()):.1e} at most."
    return at_most(high, LEVEL, seeds=run.sizes["seed"], detail=text)


def as_described_early(evidence: Evidence) -> Finding:
    norm = narrow(evidence.settings)["norm"]
    others = np.concatenate([at(norm, order, LITERAL) for order in (2, 4, 6)])
    text = f"At time {LITERAL:g}: {_told_orders(norm, LITERAL)}."
    seeds = norm.sizes["seed"]
    return all_of([at_least(others, LEVEL, seeds=seeds, detail=text), at_most(at(norm, 0, LITERAL), LITTLE)])


def narrow_waits_longer(evidence: Evidence) -> Finding:
    cases = CASES[evidence.size]
    ends = escape_times(evidence.settings, cases).median("seed").values
    ratio = max(np.max(ends[:, 1:] / ends[:, :-1]), np.max(ends[1:] / ends[:-1]))
    text = "; ".join(f"N = {n}: {_told(cases.widths, row)}" for n, row in zip(cases.samples, ends, strict=True))
    text = f"Median times at which the plateau ends, {text}. Measured: the largest ratio of neighbours."
    return at_most(ratio, 0.95, seeds=cases.seeds, detail=text)


def _told(widths: tuple[int, ...], times: np.ndarray) -> str:
    return ", ".join(f"{time:.0f} (m = {width})" for time, width in zip(times, widths, strict=True))


def all_leave(evidence: Evidence) -> Finding:
    cases = CASES[evidence.size]
    ends = [float(on_samples(evidence.settings, cases, cases.widths[0], n)["norm"].sel(tensor_order=4)[:, -1].max())
            for n in cases.samples]  # fmt: skip
    text = f"m = 2d = {2 * cases.dim}, N = {cases.samples[0]} and {cases.samples[1]}, the largest |T_4| at the end."
    return at_most(max(ends), 0.1, seeds=cases.seeds, detail=text)


_READ: dict[str, Any] = {
    "kind": Kind.READING,
    "reading": "The paper gives neither step nor start. We take N(0, I), from which orders begin as the text says they "
    "do, and times and levels are read off its curves by us. On samples (to time 50 in quick, 4000 in full) and with "
    "the population gradient.",
}
_STEPS = "steps of 0.002 to time 0.4, of 0.02 to 4.4, then of 0.2"
_FIGURE_1 = f"d = 30, m = 100, |z|, equal weights, start N(0, I), 10^4 samples and the population gradient; {_STEPS}"
_SAMPLED_2 = f"d = 30, m = 2d = 60, |z|, equal weights, start N(0, I), 10^4 samples, five seeds; {_STEPS}"
_EXACT_2 = f"d = 30, m = 2d = 60, |z|, equal weights, start N(0, I), population gradient, five seeds; {_STEPS}"
_READ_2 = (
    "The figure's step is not stated. 10^5 iterations are read as time 2000: of 0.02, near the largest step that the "
    "start N(0, I) bears. With much smaller steps they end on the way to the plateau (F2:early)."
)
_SMALL = "d = 10, m = 2d and 6d, N = 1200 and 2400 (d = 30, m = 60 and 100, N = 10^4 and 2 10^4 in full), five seeds"
CLAIMS = (
    Claim("F1:a", "Figure 1", "Orders 0 and 2 fall below 0.1 by time 2.", _FIGURE_1, low_orders_at_once, **_READ),
    Claim("F1:b", "Figure 1", "Order 0 is learnt before order 2.", _FIGURE_1, zeroth_below_second, **_READ),
    Claim("F1:c", "Figure 1", "Order 4 stays on a plateau for a decade of time.", _FIGURE_1, fourth_waits, **_READ),
    Claim(
        "F1:d",
        "Figure 1",
        "Orders 4 and 6 converge after the plateau: below 0.01 by time 2000 with the population gradient, and below "
        "half of the plateau by time 4000 on samples (full).",
        _FIGURE_1,
        high_orders_learned,
        **_READ,
    ),
    Claim(
        "F1:samples",
        "Figure 1",
        "With 10^4 samples the plateau lasts at least half as long again as without sampling noise.",
        f"d = 30, m = 100, three seeds, start N(0, I); {_STEPS}",
        samples_wait_longer,
        kind=Kind.OURS,
    ),
    Claim(
        "F2",
        "Figure 2",
        "At width 2d order 0 falls below 0.01, while orders 4 and 6 are above 0.1 even after 10^5 iterations.",
        _SAMPLED_2,
        high_orders_stay,
        kind=Kind.READING,
        reading=_READ_2,
        explanation="On 10^4 samples the plateau is that long. It is no trap: see F2:leaves and F2:exact.",
    ),
    Claim(
        "F2:second",
        "Figure 2",
        "At width 2d order 2 is above 0.1 even after 10^5 iterations.",
        _SAMPLED_2,
        second_stays,
        kind=Kind.READING,
        reading=_READ_2,
        expected=Verdict.FAILS,
        explanation="Order 2 is learned before the plateau, down to what sampling noise leaves.",
    ),
    Claim(
        "F2:exact",
        "Figure 2",
        "Without sampling noise a network of width 2d has learned orders 2, 4 and 6 by the same time.",
        _EXACT_2,
        learned_without_noise,
        kind=Kind.OURS,
    ),
    Claim(
        "F2:early",
        "Figure 2",
        "At time 2 order 0 is below 0.01, and orders 2, 4 and 6 are above 0.1, as the text says.",
        _EXACT_2,
        as_described_early,
        kind=Kind.OURS,
        explanation="Time 2 is 10^5 steps of 2e-5: then the plateau has hardly begun.",
    ),
    Claim(
        "F2:width",
        "Figure 2",
        "The plateau ends earlier for wider networks and for more samples.",
        f"{_SMALL}, start N(0, I), full batches; {_STEPS}",
        narrow_waits_longer,
        kind=Kind.OURS,
    ),
    Claim(
        "F2:leaves",
        "Figure 2",
        "On samples too a network of width 2d leaves the plateau.",
        "as F2:width, to time 400 (8000 and 4000 in full)",
        all_leave,
        kind=Kind.OURS,
    ),
)
