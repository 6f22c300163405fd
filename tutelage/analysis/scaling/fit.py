"""How a measure scales with a parameter: fits of laws with intervals over seeds, and which law fits best.

Noise is log-normal. Runs that ended before the value came are censored: they count as "above the limit". Seeds may be
coupled over the values of the parameter (the same draws, scaled), so that intervals come from redrawing whole seeds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tutelage._errors import BadInput
from tutelage._plain import plain, some
from tutelage._types import Numbers
from tutelage.analysis.claims import Interval
from tutelage.analysis.scaling.bootstrap import percentile_ends
from tutelage.analysis.scaling.laws import LAWS, Law, named
from tutelage.analysis.scaling.likelihood import Maximum, maximise
from tutelage.analysis.scaling.table import Table


@dataclass(frozen=True)
class Fit:
    """A law fitted to a measure.

    - `y`, `x`: the names of the measure and of the variable, for sentences.
    - `estimates`, `intervals`: by parameter; an interval is nan where there is none, and `note` says why.
    - `sigma`: the standard deviation of the noise in the logarithm of the measure; `log_likelihood` is that of the
      logarithms, and `aic` Akaike's criterion (smaller is better).
    - `used`, `censored`, `missing`: how many entries were known, known to be above a limit, and neither.
    """

    law: Law
    y: str
    x: str
    estimates: dict[str, float]
    intervals: dict[str, Interval]
    sigma: float
    log_likelihood: float
    aic: float
    seeds: int
    used: int
    censored: int
    missing: int
    resamples: int
    note: str = ""

    def predict(self, x: ArrayLike) -> Numbers:
        """The fitted law at `x`."""
        x = np.asarray(x, float)
        with np.errstate(over="ignore"):
            return np.broadcast_to(np.asarray(self.law.predict(x, *self.estimates.values()), float), x.shape)

    @property
    def expression(self) -> str:
        """The fitted law in short, such as `recovery_time = 0.094 dim^0.497`."""
        texts = {name: _digits(value, self.intervals[name])[0] for name, value in self.estimates.items()}
        if self.law.form:
            return self.law.form.format(y=self.y, x=self.x, **texts).replace("+ -", "- ")
        values = ", ".join(f"{name} = {text}" for name, text in texts.items())
        return f"{self.y} = {self.law.formula} of x = {self.x} with {values}"

    @property
    def sentence(self) -> str:
        """The fitted law with its intervals and counts."""
        counts = f"{some(self.seeds, 'seed')}, {self.censored} of {self.used + self.censored} censored"
        counts += f", {self.missing} missing" if self.missing else ""
        return f"{self.expression} ({self._spread()}, {counts})"

    def _spread(self) -> str:
        if self.note:
            return f"no interval: {self.note}"
        shown = self.law.shown or self.law.parameters
        ranges = [" to ".join(_digits(self.estimates[name], self.intervals[name])[1:]) for name in shown]
        level = f"{100 * self.intervals[shown[0]].level:g} % interval"
        if len(shown) == 1:
            return f"{level} {ranges[0]}"
        return f"{level}s " + ", ".join(f"{name} {text}" for name, text in zip(shown, ranges, strict=True))

    def record(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        law = {"law": self.law.name, "formula": self.law.formula, "sentence": self.sentence}
        return law | plain({name: value for name, value in vars(self).items() if name != "law"})


@dataclass(frozen=True)
class Comparison:
    """Laws beside each other, the best by Akaike's criterion first.

    `differences` of the criterion from the best and its `weights` take all entries as independent. Seeds may not be, so
    `shares` says in what part of the resampled seeds each law was best. Of nested laws (sqrt is a power) both favour
    the larger when seeds are coupled: there look whether the interval of a fit of the larger holds the smaller.
    `left_out` says by name why a law could not be fitted.
    """

    y: str
    x: str
    laws: tuple[Law, ...]
    aic: dict[str, float]
    differences: dict[str, float]
    weights: dict[str, float]
    shares: dict[str, float]
    resamples: int
    left_out: dict[str, str]

    @property
    def best(self) -> str:
        """The name of the best law."""
        return self.laws[0].name

    @property
    def sentence(self) -> str:
        """Which law is best, and by how much."""
        without = f" Not fitted: {', '.join(self.left_out)}." if self.left_out else ""
        if len(self.laws) == 1:
            return f"{self.best} is the only law compared.{without}"
        second = self.laws[1].name
        text = f"{self.best} beats {second}: AIC lower by {self.differences[second]:.3g}"
        if not self.resamples:
            return f"{text}; the seeds could not be resampled.{without}"
        share = f"{100 * self.shares[self.best]:.3g} % of {self.resamples} resamples"
        return f"{text}, best of {len(self.laws)} laws in {share}.{without}"

    def records(self) -> list[dict[str, Any]]:
        """A plain dictionary for each law, ready for JSON."""
        columns = {"aic": self.aic, "difference": self.differences, "weight": self.weights, "share": self.shares}
        return [
            {"law": law.name, "formula": law.formula, **plain({key: of[law.name] for key, of in columns.items()})}
            for law in self.laws
        ]


def fit(
    x: ArrayLike,
    values: ArrayLike,
    limit: ArrayLike | None = None,
    law: str | Law = "power",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    *,
    names: tuple[str, str] = ("y", "x"),
) -> Fit:
    """Fit a law to `values` (x, seed) by maximum likelihood, with intervals by a bootstrap over seeds.

    A nan with a finite `limit` (x, seed) is censored, known to be above it; another nan is left out. `law` is power,
    exponential, logarithmic, constant, sqrt, linear or a `Law`. `names`, of measure and parameter, are for sentences.

    The interval is the percentile interval of the resampled seeds, stretched for their number (`percentile_ends`, which
    covers as stated in simulations with independent and coupled seeds, with and without censoring).

    ```python
    >>> import numpy as np
    >>> from tutelage.analysis.scaling import fit
    >>> dim = np.geomspace(1e3, 1e8, 6)
    >>> noise = np.exp(0.1 * np.random.default_rng(0).normal(size=(6, 32)))
    >>> found = fit(dim, 2.0 * dim[:, None] ** 0.5 * noise, names=("recovery_time", "dim"))
    >>> abs(found.estimates["b"] - 0.5) < 0.01 and 0.5 in found.intervals["b"]
    True

    ```
    """
    table = Table.of(x, values, limit)
    kind = named(law)
    if not 0 < level < 1:
        raise BadInput(f"The level of an interval lies between 0 and 1, but got {level:g}; try 0.95.")
    full = _whole(kind, table)
    parameters, likelihood = full.parameters[0], float(full.likelihood[0])
    drawn = _resampled(kind, table, parameters, resamples, seed)
    note = _no_interval(table, resamples, len(drawn), level)
    ends = np.full((2, parameters.size), np.nan) if note else _ends(kind, parameters, drawn, level, table.seeds)
    return Fit(
        law=kind,
        y=names[0],
        x=names[1],
        estimates=dict(zip(kind.parameters, map(float, parameters), strict=True)),
        intervals={
            name: Interval(float(low), float(high), level)
            for name, low, high in zip(kind.parameters, *ends, strict=True)
        },
        sigma=float(full.sigma[0]),
        log_likelihood=likelihood,
        aic=_aic(kind, likelihood),
        seeds=table.seeds,
        used=table.used,
        censored=table.censored,
        missing=table.missing,
        resamples=0 if note else len(drawn),
        note=note,
    )


def compare(
    x: ArrayLike,
    values: ArrayLike,
    limit: ArrayLike | None = None,
    laws: Sequence[str | Law] = tuple(LAWS),
    resamples: int = 1000,
    seed: int = 0,
    *,
    names: tuple[str, str] = ("y", "x"),
) -> Comparison:
    """Which of the laws describes `values` (x, seed) best; arguments are those of `fit`.

    ```python
    >>> import numpy as np
    >>> from tutelage.analysis.scaling import compare
    >>> dim = np.geomspace(1e3, 1e8, 6)
    >>> noise = np.exp(0.1 * np.random.default_rng(0).normal(size=(6, 16)))
    >>> compare(dim, (1 + np.log(dim[:, None])) * noise, laws=("sqrt", "logarithmic")).best
    'logarithmic'

    ```
    """
    table = Table.of(x, values, limit)
    given = [law if isinstance(law, str) else law.name for law in laws]
    if not given or len(set(given)) < len(given):
        raise BadInput(f"Laws to compare must differ in name, but got {given}; name each once.")
    kinds, fulls, left_out = _fitted(table, laws)
    aic = {kind.name: _aic(kind, float(full.likelihood[0])) for kind, full in zip(kinds, fulls, strict=True)}
    order = tuple(sorted(kinds, key=lambda kind: aic[kind.name]))
    least = aic[order[0].name]
    weights = {name: math.exp(-0.5 * (value - least)) for name, value in aic.items()}
    shares, drawn = _win_rates(table, kinds, fulls, resamples, seed)
    return Comparison(
        *names,
        laws=order,
        aic=aic,
        differences={name: value - least for name, value in aic.items()},
        weights={name: weight / sum(weights.values()) for name, weight in weights.items()},
        shares=shares,
        resamples=drawn,
        left_out=left_out,
    )


def _fitted(table: Table, laws: Sequence[str | Law]) -> tuple[tuple[Law, ...], list[Maximum], dict[str, str]]:
    """The laws that can be fitted, their fits, and why the others cannot; if none can, the first reason is raised."""
    kinds, fulls, errors = [], [], {}
    for law in laws:
        kind = named(law)
        try:
            fulls.append(_whole(kind, table))
            kinds.append(kind)
        except BadInput as error:
            errors[kind.name] = error
    if not kinds:
        raise next(iter(errors.values()))
    return tuple(kinds), fulls, {name: str(error) for name, error in errors.items()}


def _win_rates(
    table: Table, kinds: tuple[Law, ...], fulls: list[Maximum], resamples: int, seed: int
) -> tuple[dict[str, float], int]:
    """The part of the resamples in which each law is best, and how many resamples there were."""
    weights = _determined(table, table.draws(resamples, seed), kinds)
    if table.seeds < 2 or not len(weights):
        return {kind.name: math.nan for kind in kinds}, 0
    sample = table.sample(weights)
    starts = zip(kinds, (full.parameters[0] for full in fulls), strict=True)
    best = np.argmin([_aic(kind, maximise(kind, sample, start).likelihood) for kind, start in starts], axis=0)
    return {kind.name: float(np.mean(best == index)) for index, kind in enumerate(kinds)}, len(weights)


def _aic(law: Law, likelihood: Any) -> Any:
    """Akaike's criterion; the noise is one more parameter."""
    return 2 * (len(law.parameters) + 1) - 2 * likelihood


# ---- one law


def _whole(law: Law, table: Table) -> Maximum:
    """The fit to all seeds, refused when the data cannot determine the law."""
    if law.needs_positive and (table.x <= 0).any():
        raise BadInput(
            f"The law {law.name}, {law.formula}, needs x above 0, but got x = {table.x.min():g}; leave that point out "
            "or try the law exponential."
        )
    need = len(law.parameters)
    places = np.unique(table.x[np.isfinite(table.values).any(1)]).size
    if places < need or table.used <= need:
        raise BadInput(
            f"The law {law.name}, {law.formula}, needs known values at {some(need, 'value')} of x or more, over "
            f"{need} in all, but there are {table.used} at {places} ({table.censored} more are censored); sweep over "
            "more, or let the runs go on for longer."
        )
    found = maximise(law, table.sample(np.ones((1, table.seeds))), np.asarray(law.start(*table.typical()), float))
    if not found.converged[0]:
        raise BadInput(
            f"The fit of the law {law.name}, {law.formula}, did not converge (it ended at "
            f"{', '.join(f'{value:.4g}' for value in found.parameters[0])}); try other start values or a simpler law."
        )
    return found


def _resampled(law: Law, table: Table, parameters: Numbers, resamples: int, seed: int) -> Numbers:
    """Parameters of the resamples that determine them, (resample, parameter)."""
    weights = _determined(table, table.draws(resamples, seed), (law,))
    found = maximise(law, table.sample(weights), parameters)
    return found.parameters[found.converged]


def _determined(table: Table, weights: Numbers, laws: tuple[Law, ...]) -> Numbers:
    """The resamples that can determine every law: they have known values at enough x."""
    distinct, index = np.unique(table.x, return_inverse=True)
    at = (index[:, None] == np.arange(distinct.size)).astype(float)
    counts = weights @ np.isfinite(table.values).T.astype(float) @ at
    need = max(len(law.parameters) for law in laws)
    return weights[((counts > 0).sum(1) >= need) & (counts.sum(1) > need)]


# ---- intervals and words


def _ends(law: Law, parameters: Numbers, drawn: Numbers, level: float, seeds: int) -> Numbers:
    """Low and high end for each parameter, (2, parameter), from the resampled ones; positive ones stay positive."""
    return law.still(percentile_ends(law.moved(parameters), law.moved(drawn), level, seeds))


def _no_interval(table: Table, resamples: int, found: int, level: float) -> str:
    """Why there can be no interval, or nothing."""
    if table.seeds < 2:
        return "one seed has no spread"
    if resamples < 1:
        return "no resamples were asked for"
    # Percentiles further out than the lost resamples are not known.
    lost = resamples - found
    return f"{lost} of {resamples} resamples do not determine the law" if lost > resamples * (1 - level) / 2 else ""


def _digits(value: float, interval: Interval) -> tuple[str, str, str]:
    """Value and ends of the interval as text: three digits, or more if the interval is narrow."""
    half = 0.5 * (interval.high - interval.low)
    top = math.floor(math.log10(abs(value))) if value else 0
    narrow = math.floor(math.log10(half)) if half > 0 else top - 2
    after = min(max(2 - top, -narrow), 12)
    style = f".{max(after, 0)}f" if -4 <= top <= 5 else f".{max(top + after, 2)}e"
    return format(value, style), format(interval.low, style), format(interval.high, style)
