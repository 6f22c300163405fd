"""Which settings a sweep visits: a grid, or a random or Sobol design over ranges."""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.stats import qmc

from tutelage._checks import mapping, one_of, real, text, whole
from tutelage._errors import BadInput, shown, unknown
from tutelage._limits import CELLS, few_cells
from tutelage._values import value
from tutelage.study.study import Study

Kind = Literal["grid", "random", "sobol"]
_RANGE = re.compile(r"([^.:,]\S*?)\.\.([^:]+?)(?::(\d+))?(?::(lin|log))?")


@dataclass(frozen=True)
class Range:
    """From `low` to `high`; `count` points on a grid; `log`: equal ratios in place of equal differences."""

    low: float
    high: float
    count: int | None = None
    log: bool = True

    def __post_init__(self) -> None:
        low, high = real("The low end of a range", self.low), real("The high end of a range", self.high)
        if self.log and (low <= 0 or high <= 0):
            raise BadInput(f"The range {low:g}..{high:g} is log-spaced, so that both ends must be above 0; try :lin.")
        span = high / low if self.log else high - low
        if not math.isfinite(span) or (self.log and span == 0):
            raise BadInput(f"The range {low:g}..{high:g} spans more than numbers can; bring its ends closer together.")
        if self.count is not None:
            whole("The number of points of a range", self.count, least=1, most=CELLS)

    def at(self, part: np.ndarray) -> np.ndarray:
        """The values at parts 0 to 1 of the way."""
        if self.log:
            return self.low * (self.high / self.low) ** part
        return self.low + (self.high - self.low) * part


@dataclass(frozen=True)
class Design:
    """The points of a sweep. A grid has the values of each axis; other designs have none.

    `linked`: settings that are equal to one of the `names` at every point.
    """

    kind: Kind
    names: tuple[str, ...]
    points: tuple[dict[str, Any], ...]
    axes: dict[str, tuple[Any, ...]]
    linked: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def dims(self) -> tuple[str, ...]:
        """The dims of a result: the settings of a grid; one for the points of another design."""
        return tuple(self.axes) or ("point",)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis) for axis in self.axes.values()) or (len(self.points),)


def parsed(text: str) -> tuple[Any, ...] | Range:
    """What `--over name=...` says: values with commas between, or a range `low..high:count`.

    A range is log-spaced if both ends are above 0; `:lin` after it makes it evenly spaced.

    ```python
    >>> from tutelage.study.design import parsed
    >>> parsed("10,25,50"), parsed("1e2..1e8:4")
    ((10, 25, 50), Range(low=100.0, high=100000000.0, count=4, log=True))

    ```
    """
    found = _RANGE.fullmatch(text.strip())
    if not found:
        if ".." in text:
            raise BadInput(f"--over {text!r} is not a range; write for example 1e2..1e8:13 or 0..1:5:lin.")
        return tuple(value(part.strip()) for part in text.split(",") if part.strip())
    low, high = (_number(part, text) for part in found.groups()[:2])
    log = low > 0 and high > 0 if found[4] is None else found[4] == "log"
    return Range(low, high, value(found[3]) if found[3] else None, log)


def _number(text: str, whole: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise BadInput(f"--over {whole!r}: {text!r} is not a number; write for example 1e2..1e8:13.") from None
    if not math.isfinite(number):
        raise BadInput(f"--over {whole!r}: {text!r} is not finite; write for example 1e2..1e8:13.")
    return number


def design(
    study: Study,
    over: Mapping[str, Any],
    *,
    kind: Kind = "grid",
    points: int | None = None,
    seed: int = 0,
) -> Design:
    """The design over some settings of a study; `over` has texts (see `parsed`), values or `Range`s.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.study.design import design
    >>> design(tt.papers.both_layers, {"dim": "1e2..1e8:3", "width": [2, 4]}).points[:3]
    ({'dim': 100, 'width': 2}, {'dim': 100, 'width': 4}, {'dim': 100000, 'width': 2})
    >>> design(tt.papers.both_layers, {"width=dim": [6, 8]}).points
    ({'width': 6, 'dim': 6}, {'width': 8, 'dim': 8})

    ```
    """
    one_of("design", kind, ["grid", "random", "sobol"])
    if not mapping("over", over, "a dictionary such as {'dim': '1e2..1e8:13'}"):
        raise BadInput("A sweep needs at least one setting to go over; write for example --over dim=1e2..1e8:13.")
    links = [_settings(study, names) for names in over]
    asked = {
        link[0]: parsed(what) if isinstance(what, str) else what
        for link, what in zip(links, over.values(), strict=True)
    }
    if len({name for link in links for name in link}) < sum(map(len, links)):
        raise BadInput(f"A setting is swept twice in {', '.join(map(repr, over))}; name each once.")
    linked = {link[0]: link[1:] for link in links if link[1:]}
    if kind == "grid":
        axes = {name: _axis(study, name, what) for name, what in asked.items()}
        few_cells("This grid", math.prod(map(len, axes.values())))
        return Design(kind, tuple(axes), _together(_product(axes), linked), axes, linked)
    if points is None:
        raise BadInput(f"A {kind} design needs the number of its points; write for example --points 64.")
    points, seed = whole("points", points, least=1, most=CELLS), whole("design_seed", seed)
    few_cells("This design", points)
    return Design(kind, tuple(asked), _together(_scattered(study, asked, kind, points, seed), linked), {}, linked)


def _settings(study: Study, names: str) -> tuple[str, ...]:
    """The settings of an axis: one, or several that are equal all along, `students=teachers`."""
    return tuple(_setting(study, name.strip()) for name in text("The name of a setting", names).split("="))


def _together(points: Sequence[dict[str, Any]], linked: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, Any], ...]:
    """The points with the settings that go along with others."""
    along = [(other, name) for name, others in linked.items() for other in others]
    return tuple(point | {other: point[name] for other, name in along} for point in points)


def _setting(study: Study, name: str) -> str:
    name = text("The name of a setting", name)
    name = study.aliases.get(name, name)
    if name not in study.settings.model_fields:
        raise unknown(f"setting of {study.name}", name, study.settings.model_fields)
    return name


def _axis(study: Study, name: str, what: Range | Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(what, Range):
        if what.count is None:
            raise BadInput(f"The range of {name} has no number of points; write for example {name}=1e2..1e8:13.")
        found = [_rounded(study, name, each) for each in what.at(np.linspace(0, 1, what.count))]
    else:
        listed = list(itertools.islice(what, CELLS + 1)) if np.iterable(what) else [what]
        few_cells(f"The list of values of {name}", len(listed))
        found = [_plain(each) for each in listed]
    try:
        values = tuple(dict.fromkeys(found))
    except TypeError:
        raise BadInput(
            f"{name} cannot be swept over values such as {shown(found[0])}; pass numbers or names."
        ) from None
    if not values:
        raise BadInput(f"--over {name} has no values; write for example {name}=1,2,3.")
    return values


def _rounded(study: Study, name: str, number: float) -> int | float:
    """A value of a range: whole where the setting is; 0.1, not 0.10000000000000002."""
    whole = study.settings.model_fields[name].annotation is int
    return round(number) if whole else float(f"{number:.12g}")


def _plain(each: Any) -> Any:
    """A value that was given: as it is, but a plain and hashable Python value; 1e3 is 1000."""
    each = each.item() if hasattr(each, "item") else each
    if isinstance(each, float) and each.is_integer():
        return int(each)
    return tuple(map(_plain, each)) if isinstance(each, (list, tuple)) else each


def _product(axes: Mapping[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def _scattered(study: Study, asked: Mapping[str, Any], kind: Kind, points: int, seed: int) -> list[dict[str, Any]]:
    """Points in the unit cube, each coordinate carried to its range or to one of its values."""
    if kind == "sobol":
        cube = qmc.Sobol(len(asked), rng=np.random.default_rng(seed)).random_base2(max(0, math.ceil(math.log2(points))))
        cube = cube[:points]
    else:
        cube = np.random.default_rng(seed).random((points, len(asked)))
    columns = [_column(study, name, what, part) for (name, what), part in zip(asked.items(), cube.T, strict=True)]
    return [dict(zip(asked, values, strict=True)) for values in zip(*columns, strict=True)]


def _column(study: Study, name: str, what: Range | Sequence[Any], part: np.ndarray) -> list[Any]:
    if isinstance(what, Range):
        return [_rounded(study, name, each) for each in what.at(part)]
    values = _axis(study, name, what)
    return [values[int(each * len(values))] for each in part]
