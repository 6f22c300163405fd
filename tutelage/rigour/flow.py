"""Gradient flow in balls: a validated integrator, whose enclosures contain the exact flow at any time.

From an exact centre, with `e` for how far the flow can be from it, a step of length h has four parts.

1. *A-priori box.* With X all that is within e of the centre, a box B with `X + [0, h] f(B)` inside B contains the flow
   from all of X up to the time h: Picard's map takes curves in B to curves in B. The image contains them, too.
2. *Taylor.* The coefficients of the centre's flow come by recurrence, since `f` along a power series gives the next
   one. The remainder is the coefficient of the last order, over the box, times `h^order`.
3. *Errors.* `f` is a gradient, and its derivative symmetric. So two flows in a box move apart by at most `exp(m
   h)`, m being a bound of the largest eigenvalue of `-Hessian` over it. This is a length that no rotation widens, as
   it would a box, so that no frame has to be turned with it; where the loss is convex it shrinks. Layers with rates
   of their own are symmetric in weights that are divided by the roots of their rates (`tubes`).
4. What was rounded, and the remainder, are added to e, and the centre is rounded to an exact one.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import arb, arb_mat

from tutelage._checks import function, mapping, real, refused, whole
from tutelage._errors import BadInput, shown
from tutelage._interrupt import Interrupted, stop_asked
from tutelage._progress import Listener, reporting
from tutelage.problem.problem import Problem
from tutelage.rigour.balls import MOST_BITS, CannotEnclose, Number, ball, exact, hull, known, precision
from tutelage.rigour.descent import LAYERS, Moment, contains, layer_rates
from tutelage.rigour.losses import AnyLoss, loss_of
from tutelage.rigour.networks import Ended, Given, Networks, networks_of
from tutelage.rigour.series import taylor
from tutelage.rigour.tubes import Moving, around, largest, radii, scaled

SHORTEST = Fraction(1, 1 << 40)
"""A step, relative to the time asked for: where none is longer, the flow cannot be enclosed."""


class Instant(Moment):
    """The flow at one time: what `watch` is asked of. It is `moment.time`, and a `Moment` in all else."""

    def __init__(self, time: Fraction, weights: arb_mat, loss: AnyLoss, moving: Moving):
        super().__init__(0, moving.state(weights), loss)
        self.time = time


Watch = Mapping[str, Callable[[Instant], arb]]


@dataclass(frozen=True)
class Flowed:
    """What was watched, enclosed: `seen[name][time]`, at a precision of so many bits and by so many steps."""

    seen: Mapping[str, Mapping[Fraction, arb]]
    networks: Networks
    until: Fraction
    taken: int
    bits: int
    seconds: float

    def __getitem__(self, name: str) -> Mapping[Fraction, arb]:
        return self.seen[name]

    def __repr__(self) -> str:
        lines = [f"time {self.until} enclosed by {self.taken} steps with {self.bits} bits in {self.seconds:.1f} s"]
        lines += [f"{name} at {at}: {value.str(12)}" for name, seen in self.seen.items() for at, value in seen.items()]
        return "\n".join(lines)


class _Coarse(Exception):
    """The precision does not suffice; the sentence says for what."""


def flow(
    problem: Problem,
    until: Number,
    *,
    watch: Watch | None = None,
    at: Sequence[Number] | None = None,
    start: Given | Ended | None = None,
    teacher: Given | None = None,
    seed: int = 0,
    rates: Mapping[str, Number] | None = None,
    radius: float = 1e-10,
    floor: float = 0.0,
    bits: int = 128,
    most_bits: int = 1024,
    progress: Listener | None = None,
) -> Flowed:
    """Enclose quantities along gradient flow on the population loss, from exact weights.

    - `until`: the time: a fraction, a decimal as text, or a double; `rates`: factors for "first" and "second".
    - `watch`: functions of an `Instant` by name, each a ball; without it the loss. `at`: at which times they are asked
      for; without it at the last.
    - `start`, `teacher`, `radius`, `floor`: as in `tt.prove.descend`.

    The step and the order are chosen, and the precision raised, until the radius is met. Where two rows with kinked
    activations are or come parallel, the flow has no Taylor series, and is refused, but for rows with one coordinate.

    ```python
    >>> import tutelage as tt
    >>> line = tt.TwoLayer("linear", first=[[1.0]])
    >>> student = tt.TwoLayer("linear", first=[[0.0]], trains=("first",))
    >>> done = tt.prove.flow(tt.Problem(tt.Gaussian(1), line, student), 2, radius=1e-15)
    >>> print(f"{float(done['loss'][2]):.12f}")  # exp(-4)/2
    0.009157819444

    ```
    """
    networks = networks_of(problem, "prove.flow", start, teacher, seed=seed)
    end = exact("prove.flow: until", until)
    if not end > 0:
        raise BadInput(f"prove.flow: until is {float(end):g}, but a time above 0 was expected.")
    speeds = layer_rates(Fraction(1), networks, rates, "prove.flow")
    networks = replace(networks, trains=tuple(layer for layer, speed in zip(LAYERS, speeds, strict=True) if speed))
    plan = _Plan(
        networks, speeds, end, _watched(watch), _times(at, end),
        real("prove.flow: radius", radius, above=0), real("prove.flow: floor", floor, least=0),
    )  # fmt: skip
    bits = whole("prove.flow: bits", bits, least=64, most=MOST_BITS)
    most_bits = whole("prove.flow: most_bits", most_bits, least=bits, most=MOST_BITS)
    if not any(plan.rates):
        raise BadInput("prove.flow: no layer moves; train one, with a rate above 0.")
    began, digits, reason = time.perf_counter(), SPARE - math.frexp(plan.radius)[1], "So small a radius is not met"
    with reporting(progress, "proved flow") as told:
        while (bits := max(bits, 2 * digits)) <= most_bits:
            try:
                seen, taken = plan.enclosed(bits, digits, told)
                return Flowed(seen, networks, end, taken, bits, time.perf_counter() - began)
            except _Coarse as coarse:
                reason, digits = str(coarse), 2 * digits
    raise CannotEnclose(f"{reason} with {most_bits} bits; allow more by most_bits, or a larger radius.")


def _watched(watch: Watch | None) -> Watch:
    chosen = mapping("prove.flow: watch", watch or {"loss": Instant.loss}, "a dictionary of functions of an Instant")
    for name, asked in chosen.items():
        function(f"prove.flow: watch {name!r}", asked, "an Instant")
    return chosen


def _times(at: Sequence[Number] | None, end: Fraction) -> tuple[Fraction, ...]:
    if at is None:
        return (end,)
    if isinstance(at, (str, int, float)) or not len(at):
        raise refused("prove.flow: at", at, "a list of times")
    found = sorted({exact("prove.flow: at", each) for each in at})
    if found[0] < 0 or found[-1] > end:
        raise BadInput(f"prove.flow: at goes from {found[0]} to {found[-1]}, but times from 0 to {end} were expected.")
    return tuple(found)


@dataclass(frozen=True)
class _Plan:
    """What is to be enclosed."""

    networks: Networks
    rates: tuple[Fraction, Fraction]
    end: Fraction
    watch: Watch
    at: tuple[Fraction, ...]
    radius: float
    floor: float

    def enclosed(self, bits: int, digits: int, told: Listener) -> tuple[dict[str, dict[Fraction, arb]], int]:
        """All that is watched and how many steps it took, if the precision suffices."""
        with precision(bits):
            loss = loss_of(self.networks, moving=True)
            path = _Path(loss, [ball(rate) for rate in self.rates], self.end * SHORTEST, bits, digits)
            seen: dict[str, dict[Fraction, arb]] = {name: {} for name in self.watch}
            for place in self.at:
                while path.time < place:
                    told(f"proved flow, {bits} bits", int(1000 * path.time / self.end), 1000)
                    if stop_asked():
                        raise Interrupted(f"stopped at time {float(path.time):g}")
                    try:
                        path.step(place)
                    except CannotEnclose as error:
                        words = str(error).rstrip(".")
                        raise _Coarse(f"At time {float(path.time):.6g}: {words},") from None
                instant = Instant(place, path.column, loss, path.moving)
                for name, ask in self.watch.items():
                    seen[name][place] = self._fine(ask, instant, name)
            told(f"proved flow, {bits} bits", 1000, 1000)
            return seen, path.taken

    def _fine(self, ask: Callable[[Instant], arb], instant: Instant, name: str) -> arb:
        """What is watched, if its ball is as small as was asked."""
        try:
            value = ask(instant)
            if isinstance(value, arb):
                known(value, name)
        except CannotEnclose as error:
            raise _Coarse(f"At time {float(instant.time):.6g}: {str(error).rstrip('.')},") from None
        if not isinstance(value, arb):  # a float has lost its radius, and would pass for exact
            raise BadInput(f"prove.flow: watch {name!r} gave {shown(value)}, but a ball (flint.arb) was expected.")
        if not value.rad() <= self.radius * max(value.abs_lower(), arb(self.floor)):
            raise _Coarse(f"{name} at time {float(instant.time):.6g} is not known to within {self.radius:g} of itself")
        return value


class _Path:
    """Where the flow is: a centre, and how far from it, in weights divided by the roots of their rates."""

    def __init__(self, loss: AnyLoss, rates: Sequence[arb], shortest: Fraction, bits: int, digits: int):
        self.loss, self.rates, self.shortest, self.bits, self.digits = loss, rates, shortest, bits, digits
        begin = loss.start()
        layers = zip(LAYERS, rates, strict=True)
        self.moving = Moving(begin, [layer for layer, rate in layers if not rate.is_zero()])
        self.factors = self.moving.spread(rates)
        self.roots = [rate.sqrt() for rate in self.factors]
        column = self.moving.column(begin)
        self.centre, self.error = column.mid(), radii(column, self.roots)
        self.time, self.taken = Fraction(0), 0
        self.share = Fraction(1)  # of a step by its coefficients, what boxes allowed of late

    @property
    def column(self) -> arb_mat:
        """All points where the flow may be."""
        return around(self.centre, self.error, self.roots)

    def step(self, limit: Fraction) -> None:
        """One step, not beyond a time."""
        order = max(8, self.digits // 3)
        terms = self.terms(self.centre, order)
        size = max(abs(x).upper() for part in terms[:2] for x in part.entries())
        tolerance = arb(2) ** -self.digits * size.max(arb(2) ** -self.bits)
        reach = _reach(terms, tolerance)
        length = min(reach * self.share, limit - self.time)
        reason = "No step is short enough for the remainder to be small; try more precision."
        while length > self.shortest or length == limit - self.time:
            try:
                after, error, carried = self._taken(terms, length, order)
            except CannotEnclose as cannot:
                reason, length = str(cannot), length / 2
                self.share = length / reach
                continue
            if error < ROUGH * tolerance:
                self.centre, self.error = after.mid(), (error + carried).upper()
                self.time, self.taken = self.time + length, self.taken + 1
                self.share = min(Fraction(1), _short(self.share * Fraction(17, 16)))
                return
            length = _short(length * 3 / 4)
            self.share = length / reach
        raise CannotEnclose(reason)

    def _taken(self, terms: Sequence[arb_mat], length: Fraction, order: int) -> tuple[arb_mat, arb, arb]:
        """The centre after a step, by how much it may be off, and what has become of the error before."""
        span = ball(length)
        box = self.box(span)
        growth = largest(scaled(-self.loss.hessian(self.moving.state(box)), self.roots))
        after, power = terms[0], arb(1)
        for n in range(1, order):
            power *= span
            after += terms[n] * power
        after += self.terms(box, order)[order] * (power * span)
        return after, radii(after, self.roots), self.error * (growth * span).exp()

    def terms(self, column: arb_mat, order: int) -> list[arb_mat]:
        """Taylor coefficients of the flow, from a point or over a box."""
        weights = taylor(self.loss.along, *self.moving.state(column), self.rates, order)
        parts = weights._asdict()
        entries = [x for layer in self.moving.moves for row in parts[layer] for x in row]
        return [arb_mat([[x[n]] for x in entries]) for n in range(order + 1)]

    def box(self, span: arb) -> arb_mat:
        """All that the flow passes within a time, by Picard."""
        begin, wide = self.column, hull(0, span)
        guess = begin
        for _ in range(GUESSES):
            slope = self.moving.column(self.loss.gradient(self.moving.state(guess))).entries()
            image = [x - wide * rate * g for x, rate, g in zip(begin.entries(), self.factors, slope, strict=True)]
            found = arb_mat(len(image), 1, image)
            if contains(guess, found):
                return found
            guess = arb_mat(len(image), 1, [x + arb(0, 1) * x.rad() / 4 for x in image])
        raise CannotEnclose("No box could be found that contains the flow; use a smaller step.")


SPARE = 34
"""Binary digits that a step is more accurate than what is asked of the end."""
GUESSES = 6
LONGEST = 10.0
"""The logarithm of the longest step."""
ROUGH = 1 << 12
"""How much larger than was aimed at the error of a step may be, since the box widens the last coefficient."""


def _reach(terms: Sequence[arb_mat], tolerance: arb) -> Fraction:
    """How long a step may be for the last coefficients to be as small as that."""
    logarithms = [LONGEST]
    for n in (len(terms) - 2, len(terms) - 1):
        size = max(abs(x).upper() for x in terms[n].entries())
        if size > 0:
            logarithms.append(float((tolerance / size).log() / n))
    return _short(math.exp(max(min(logarithms), -300.0)))


def _short(value: Fraction | float) -> Fraction:
    """Nearly the same, with few digits, so that times do not gather them."""
    mantissa, power = math.frexp(float(value))
    return Fraction(round(mantissa * 256)) / 256 * Fraction(2) ** power
