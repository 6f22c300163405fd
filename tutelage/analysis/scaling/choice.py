"""The law that describes a measure best, and what is to be said of another one that was asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from tutelage.analysis.scaling.fit import Comparison, Fit, compare, fit
from tutelage.analysis.scaling.laws import LAWS, Law, named

DIFFERENCE, SHARE = 10.0, 0.95
"""A law is rejected where Akaike's criterion is higher by this much, and the best law is best in this part of the
resamples: the first counts entries as if they were independent, the second takes whole seeds."""


@dataclass(frozen=True)
class Choice:
    """The law that is best by Akaike's criterion, and the one that was `asked` for, if it is another."""

    best: Fit
    asked: Fit | None
    comparison: Comparison

    @property
    def behind(self) -> float:
        """By how much Akaike's criterion of the law that was asked for is above the best."""
        return self.comparison.differences[self.asked.law.name] if self.asked else 0.0

    @property
    def rejected(self) -> bool:
        """Whether the data speak against the law that was asked for."""
        return self.behind >= DIFFERENCE and self.comparison.shares[self.comparison.best] >= SHARE

    @property
    def drawn(self) -> list[tuple[Fit, str]]:
        """What to draw, and what to say of it: nothing of the best law."""
        return [(self.best, "")] + ([(self.asked, self._said)] if self.asked else [])

    @property
    def _said(self) -> str:
        return f"{'rejected' if self.rejected else 'not rejected'} (AIC higher by {self.behind:.3g})"

    @property
    def sentences(self) -> list[str]:
        """The law with its parameters, what was asked for, and how sure that is."""
        asked = [f"Asked for: {self.asked.sentence}, {self._said}"] if self.asked else []
        return [self.best.sentence, *asked, self.comparison.sentence.removesuffix(".")]

    def record(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        asked = self.asked.record() | {"rejected": self.rejected} if self.asked else None
        return self.best.record() | {"asked": asked, "laws": self.comparison.records()}


def choose(
    x: ArrayLike,
    values: ArrayLike,
    limit: ArrayLike | None = None,
    asked: str | Law | None = None,
    laws: Sequence[str | Law] = tuple(LAWS),
    *,
    names: tuple[str, str] = ("y", "x"),
    **options: Any,
) -> Choice:
    """Fit the law that describes `values` (x, seed) best, and the one that was asked for; arguments are those of `fit`.

    ```python
    >>> import numpy as np
    >>> from tutelage.analysis.scaling import choose
    >>> scale = np.geomspace(1e-8, 1e-2, 4)
    >>> noise = np.exp(0.01 * np.random.default_rng(0).normal(size=(4, 8)))
    >>> found = choose(scale, (1 - 2 * np.log(scale[:, None])) * noise, asked="power", names=("time", "scale"))
    >>> found.best.law.name, found.rejected
    ('logarithmic', True)

    ```
    """
    others = [*laws, *([asked] if asked is not None and named(asked) not in map(named, laws) else [])]
    comparison = compare(x, values, limit, others, names=names, **options)
    wanted = None if asked is None or named(asked).name == comparison.best else named(asked)

    def fitted(law: Law) -> Fit:
        return fit(x, values, limit, law, names=names, **options)

    return Choice(fitted(comparison.laws[0]), fitted(wanted) if wanted else None, comparison)
