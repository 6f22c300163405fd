"""Proofs as files: what is claimed in words, the exact data, and what was enclosed. `verify` checks them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import flint
from flint import arb

from tutelage._errors import BadInput
from tutelage._files import deliver
from tutelage._version import __version__
from tutelage.problem.problem import Problem
from tutelage.rigour import verify
from tutelage.rigour.balls import CannotEnclose, Number, Rows, known
from tutelage.rigour.networks import Ended, Given, networks_of
from tutelage.rigour.points import StationaryPoint, stationary
from tutelage.rigour.standing import Settled, Settles

PLACES = 12
"""Digits of the bounds that a proof gives of what it encloses."""
BITS = 192
"""What the checker works with, where nothing else is said."""


class RefusedProof(BadInput):
    """A file that proves nothing."""


@dataclass(frozen=True)
class Proof:
    """A proved statement; `save` writes it as a file that `tutelage verify` checks."""

    id: str
    kind: str
    data: Mapping[str, Any]
    enclosed: Mapping[str, tuple[str, str]]
    bits: int

    @property
    def says(self) -> str:
        """The statement in words, made from the data."""
        return verify.KINDS[self.kind].says(dict(self.data))

    def content(self) -> dict[str, Any]:
        """What its file holds."""
        found = {
            "format": verify.FORMAT,
            "id": self.id,
            "kind": self.kind,
            "says": self.says,
            "data": dict(self.data),
            "enclosed": {name: list(ends) for name, ends in self.enclosed.items()},
            "bits": self.bits,
            "versions": {"tutelage": __version__, "python-flint": flint.__version__, "FLINT": flint.__FLINT_VERSION__},
        }
        return found | {"sha256": verify.seal(found)}

    def save(self, path: str | Path) -> None:
        """Write it as JSON; its folder is made if it is not there."""
        text = json.dumps(self.content(), indent=1) + "\n"
        deliver(path, lambda part: part.write_text(text, encoding="utf-8"), parents=True)

    def __repr__(self) -> str:
        lines = [f"{name} is in [{least}, {most}]." for name, (least, most) in self.enclosed.items()]
        return "\n".join([self.says, *lines])


@dataclass(frozen=True)
class Provable:
    """A statement with a proof that can be made: `make()` takes about so many seconds.

    `settles`: the claims of its study that it proves or refutes.
    """

    id: str
    where: str
    words: str
    make: Callable[[], Proof]
    seconds: float
    settles: tuple[Settles, ...] = ()

    @property
    def file(self) -> str:
        """The name of its file.

        ```python
        >>> from tutelage.rigour import Provable
        >>> Provable("MINIMA:k=6", "Theorem 1", "There is a minimum.", make=None, seconds=2.0).file
        'MINIMA-k6.json'

        ```
        """
        return f"{self.id.replace(':', '-').replace('=', '')}.json"

    def settled(self, folder: Path, claim: str) -> tuple[Settled, ...]:
        """What its file in a folder says of a claim; nothing if there is no file.

        The file must be whole, and its words those of its data. It is not verified anew, which can take minutes:
        `tutelage verify` does that.
        """
        about = [each for each in self.settles if each.claim == claim]
        if not about or not (folder / self.file).is_file():
            return ()
        content = read(folder / self.file)
        try:
            verify.whole(content)
        except verify.Refused as refused:
            raise RefusedProof(f"The proof {str(folder / self.file)!r} is refused: {refused}.") from None
        return tuple(Settled(each.standing, self.id, content["says"], each.note) for each in about)


class Verified(NamedTuple):
    """A proof that was checked: its statement, and what was enclosed anew."""

    says: str
    enclosed: dict[str, arb]


def check(path: str | Path) -> Verified:
    """Check a proof file by the separate checker. A file that proves nothing is refused.

    ```python
    >>> import tutelage as tt
    >>> tt.prove.check("no_such.json")
    Traceback (most recent call last):
    ...
    tutelage._errors.BadInput: The proof 'no_such.json' cannot be read (No such file or directory).

    ```
    """
    content = read(path)
    try:
        enclosed = verify.verify(content)
    except verify.Refused as refused:
        raise RefusedProof(f"The proof {str(path)!r} is refused: {refused}.") from None
    return Verified(content["says"], enclosed)


def read(path: str | Path) -> Any:
    """What a file holds, if it is JSON."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"The proof {str(path)!r} cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:
        raise RefusedProof(f"The proof {str(path)!r} is refused: it is not JSON ({type(error).__name__}).") from None


def bounds(value: arb, places: int = PLACES) -> tuple[str, str]:
    """Decimal numbers that a ball lies between."""
    known(value, "What is to be written")
    with localcontext() as context:
        context.prec = places
        middle = Decimal(value.mid().str(places + 5, radius=False))
        size = max(abs(middle), Decimal(value.rad().str(3, radius=False))) or Decimal(1)
        step = size.scaleb(2 - places)
        ends = middle - step, middle + step
    if not arb(str(ends[0])) < value < arb(str(ends[1])):
        raise CannotEnclose("The ball is too wide to be written; use more precision.")
    return f"{ends[0]:f}", f"{ends[1]:f}"


def text(value: Fraction | int) -> str:
    """An exact number as a proof holds it."""
    return str(Fraction(value))


def texts(rows: Sequence[Sequence[Fraction | int]]) -> list[list[str]]:
    """A matrix as a proof holds it."""
    return [[text(x) for x in row] for row in rows]


def enclosing(values: Mapping[str, arb], places: int = PLACES) -> dict[str, tuple[str, str]]:
    """What a proof gives of what was enclosed, to so many digits."""
    return {name: bounds(value, places) for name, value in values.items()}


def minimum(
    problem: Problem, weights: Given | Ended | None = None, *, id: str = "minimum", radius: Number = "1e-30"
) -> Proof:
    """The proof that relu students have a strict local minimum that is not global, near some weights.

    All outgoing weights of students and teachers must be 1, the first layer be trained alone, and the dimension be that
    of the rows. `weights` are as in `tt.prove.stationary`.
    """
    networks = networks_of(problem, "prove.minimum", weights)
    plain = networks.gated is None and not any(networks.tied)
    relu = (
        plain
        and networks.student_form == networks.teacher_form
        and networks.student_form.kink == networks.student_form.slope
    )
    ones = all(x == 1 for side in (networks.student, networks.teacher) for row in side.second for x in row)
    if not (relu and networks.student_form.kink == Fraction(1, 2) and ones and networks.shape[2] == 1):
        raise BadInput(
            "prove.minimum: relu units with outgoing weights 1 were expected; tt.prove.stationary takes others."
        )
    if networks.trains != ("first",) or networks.dim != networks.columns or networks.shape[0] < networks.shape[1]:
        raise BadInput(
            "prove.minimum: as many students as teachers or more, trains=('first',) and rows with an entry for each of "
            "the inputs were expected."
        )
    point = stationary(problem, weights, radius=radius)
    if not point.strict_minimum or not point.loss > 0:
        raise CannotEnclose(
            f"This is no local minimum above 0: its index is {point.index}, its loss {point.loss.str(8)}."
        )
    written = radius if isinstance(radius, str) else text(point.radius)
    return _minimum(id, point, networks.teacher.first, written)


def _minimum(id: str, point: StationaryPoint, teachers: Rows, radius: str) -> Proof:
    digits = Fraction(1, 10**6) * point.radius  # the box is that much wider than its middle is rounded
    middle = [[_decimal(x, digits) for x in row] for row in point.middle.first]
    loss = float(point.loss.lower())
    data = {
        "middle": middle,
        "teachers": texts(teachers),
        "radius": radius,
        "least": _below(point.least),
        "loss": _below(loss),
    }
    return Proof(id, "a local minimum that is not global", data, enclosing({"loss": point.loss}), BITS)


def _decimal(value: Fraction, step: Fraction) -> str:
    """The nearest decimal with so small a step."""
    places = len(str(step.denominator // step.numerator)) - 1
    number = round(value * 10**places)
    return f"{'-' * (number < 0)}{abs(number) // 10**places}.{abs(number) % 10**places:0{places}d}"


def _below(value: float) -> str:
    """A short decimal below a positive number."""
    return f"{Context(prec=4, rounding=ROUND_FLOOR).create_decimal(Decimal(value)):f}"
