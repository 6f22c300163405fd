"""Gradient descent in balls: where the exact iterates are, after any number of updates."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from flint import arb, arb_mat

from tutelage._checks import flag, function, mapping, real, refused, whole
from tutelage._errors import BadInput, shown
from tutelage._interrupt import Interrupted, stop_asked
from tutelage._progress import Listener, reporting
from tutelage.problem.networks import rates_given
from tutelage.problem.problem import Problem
from tutelage.rigour.balls import MOST_BITS, CannotEnclose, Number, ball, dot, exact, known, precision, root
from tutelage.rigour.loss import State
from tutelage.rigour.losses import AnyLoss, loss_of
from tutelage.rigour.networks import Ended, Given, Networks, networks_of
from tutelage.rigour.tubes import Moving, around, radii, stretch

LAYERS = ("first", "second")
TOLD = 200
"""Updates between two words about progress, at which descent can be stopped."""


class Moment:
    """Descent at one update: what `watch` is asked of."""

    def __init__(self, update: int, state: State, loss: AnyLoss):
        self.update, self.state, self._loss = update, state, loss
        self.first, self.second = state.first.tolist(), state.second.tolist()
        self.teacher = loss.target.first.tolist()

    def loss(self) -> arb:
        """The population loss."""
        return self._loss.value(self.state)

    def gradient(self) -> arb:
        """The norm of the gradient in the weights that are trained."""
        entries = [x for part in self._loss.gradient(self.state) for x in part.entries()]
        return root(dot(entries, entries))

    def norm(self, student: int) -> arb:
        """The length of a student's incoming weights."""
        return dot(self.first[student], self.first[student]).sqrt()

    def cosine(self, student: int, teacher: int) -> arb:
        """The cosine of the angle between a student's incoming weights and a teacher's."""
        a, b = self.first[student], self.teacher[teacher]
        return dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()


class Truncated(Protocol):
    """What a `tt.Truncation` has: a cap for each stage, and after how many updates all but the last end."""

    @property
    def caps(self) -> tuple[float, ...]: ...

    @property
    def ends(self) -> tuple[int, ...]: ...


Watch = Mapping[str, Callable[[Moment], arb]]


@dataclass(frozen=True)
class Descended:
    """What was watched, enclosed: `seen[name][update]`, at a precision of so many bits."""

    seen: Mapping[str, Mapping[int, arb]]
    networks: Networks
    steps: int
    bits: int
    seconds: float

    def __getitem__(self, name: str) -> Mapping[int, arb]:
        return self.seen[name]

    def __repr__(self) -> str:
        lines = [f"{self.steps} updates enclosed with {self.bits} bits in {self.seconds:.1f} s"]
        lines += [
            f"{name} after {update}: {value.str(12)}"
            for name, values in self.seen.items()
            for update, value in values.items()
        ]
        return "\n".join(lines)


class _Coarse(Exception):
    """The precision does not suffice; the sentence says for what."""


def descend(
    problem: Problem,
    step: Number,
    steps: int,
    *,
    watch: Watch | None = None,
    at: Sequence[int] | None = None,
    start: Given | Ended | None = None,
    teacher: Given | None = None,
    seed: int = 0,
    rates: Mapping[str, Number] | None = None,
    radius: float = 1e-10,
    floor: float = 0.0,
    centred: bool = False,
    truncation: Truncated | None = None,
    bits: int = 128,
    most_bits: int = 4096,
    progress: Listener | None = None,
) -> Descended:
    """Enclose quantities along gradient descent on the population loss, from exact weights.

    - `step`: its size: a fraction, a decimal as text, or a double; `rates`: factors of it for "first" and "second".
    - `watch`: functions of a `Moment` by name, each a ball; without it the loss.
    - `at`: after how many updates they are asked for; without it after the last.
    - `start`, `teacher`: weights in place of the problem's own (whose doubles are exact numbers, too): a matrix of
      incoming weights, `tt.Weights`, or a dictionary with "first" and "second".
    - `radius`: what a ball may have, relative to its number, or to `floor` where the number is smaller. The precision
      begins with `bits` and is doubled until that is met, to `most_bits`.
    - `centred`: carry one point exactly, and how far the iterate can be from it, by a bound of the Hessian around. For
      thousands of long updates, in which balls by themselves lose up to some bits an update; for few weights.
    - `truncation`: a `tt.Truncation`: units whose squared norm is above its cap stand still.

    ```python
    >>> import tutelage as tt
    >>> relu = tt.TwoLayer("relu", first=[[1.0, 0.0]])
    >>> student = tt.TwoLayer("relu", first=[[0.0, 1.0]], trains=("first",))
    >>> done = tt.prove.descend(tt.Problem(tt.Gaussian(2), relu, student), "1/10", 100, radius=1e-20)
    >>> 0 < done["loss"][100] < 0.01
    True

    ```
    """
    networks = networks_of(problem, "prove.descend", start, teacher, seed=seed)
    plan = _Plan(
        networks,
        layer_rates(exact("prove.descend: step", step), networks, rates, "prove.descend"),
        whole("prove.descend: steps", steps, least=1),
        _watched(watch),
        _updates(at, steps),
        real("prove.descend: radius", radius, above=0),
        real("prove.descend: floor", floor, least=0),
        flag("prove.descend: centred", centred),
        truncation,
    )
    if centred and truncation is not None:
        raise BadInput("prove.descend: a truncated descent is not smooth where units come to rest; leave out centred.")
    bits = whole("prove.descend: bits", bits, least=16, most=MOST_BITS)
    most_bits = whole("prove.descend: most_bits", most_bits, least=bits, most=MOST_BITS)
    began = time.perf_counter()
    with reporting(progress, "proved descent") as told:
        while True:
            try:
                seen = plan.enclosed(bits, told)
                return Descended(seen, networks, plan.steps, bits, time.perf_counter() - began)
            except _Coarse as coarse:
                if 2 * bits > most_bits:
                    raise CannotEnclose(
                        f"{coarse} with {bits} bits; allow more by most_bits, or a larger radius."
                    ) from None
                bits *= 2


def layer_rates(
    step: Fraction, networks: Networks, rates: Mapping[str, Number] | None, whose: str
) -> tuple[Fraction, Fraction]:
    """The steps of the two layers; 0 for one that is not trained."""
    given = {layer: exact(f"{whose}: the rate of {layer}", rate) for layer, rate in rates_given(rates).items()}
    if wrong := set(given) - set(LAYERS):
        raise BadInput(f"{whose}: rates are given for {sorted(wrong)}, but the layers are first and second.")
    if any(rate < 0 for rate in given.values()):
        raise BadInput(f"{whose}: a rate is below 0, but rates of 0 or more were expected.")
    first, second = (step * given.get(layer, 1) if layer in networks.trains else Fraction(0) for layer in LAYERS)
    return first, second


def _watched(watch: Watch | None) -> Watch:
    chosen = mapping("prove.descend: watch", watch or {"loss": Moment.loss}, "a dictionary of functions of a Moment")
    for name, asked in chosen.items():
        function(f"prove.descend: watch {name!r}", asked, "a Moment")
    return chosen


def _updates(at: Sequence[int] | None, steps: int) -> tuple[int, ...]:
    if at is None:
        return (steps,)
    if isinstance(at, (str, int)) or not len(at):
        raise refused("prove.descend: at", at, "a list of numbers of updates")
    return tuple(sorted({whole("prove.descend: at", each, most=steps) for each in at}))


@dataclass(frozen=True)
class _Plan:
    """What is to be enclosed."""

    networks: Networks
    sizes: tuple[Fraction, Fraction]
    steps: int
    watch: Watch
    at: tuple[int, ...]
    radius: float
    floor: float
    centred: bool
    truncation: Truncated | None

    def enclosed(self, bits: int, told: Listener) -> dict[str, dict[int, arb]]:
        """All that is watched, if the precision suffices."""
        with precision(bits):
            loss = loss_of(self.networks, moving=True)
            sizes = [ball(size) for size in self.sizes]
            path = _Centred(loss, sizes) if self.centred else _Balls(loss, sizes, self.truncation)
            seen: dict[str, dict[int, arb]] = {name: {} for name in self.watch}
            wanted = set(self.at)
            for update in range(self.at[-1] + 1):
                try:
                    if update in wanted:
                        moment = Moment(update, path.state, loss)
                        for name, ask in self.watch.items():
                            seen[name][update] = self._fine(ask(moment), name, update)
                    if update < self.at[-1]:
                        path.move(update)
                except CannotEnclose as error:
                    raise _Coarse(f"After {update} updates: {str(error).rstrip('.')},") from None
                if update % TOLD == 0:
                    told(f"proved descent, {bits} bits", update, self.at[-1])
                    if stop_asked():
                        raise Interrupted(f"stopped after {update} updates")
            told(f"proved descent, {bits} bits", self.at[-1], self.at[-1])
            return seen

    def _fine(self, value: arb, name: str, update: int) -> arb:
        """The ball itself, if it is as small as was asked."""
        if not isinstance(value, arb):  # a float has lost its radius, and would pass for exact
            raise BadInput(f"prove.descend: watch {name!r} gave {shown(value)}, but a ball (flint.arb) was expected.")
        value = known(value, name)
        size = max(value.abs_lower(), arb(self.floor))
        if not value.rad() <= self.radius * size:
            raise _Coarse(f"{name} after {update} updates is not known to within {self.radius:g} of itself")
        return value


class _Balls:
    """Iterates as balls, each made of the last."""

    def __init__(self, loss: AnyLoss, sizes: Sequence[arb], truncation: Truncated | None):
        self.loss, self.sizes, self.truncation, self.state = loss, sizes, truncation, loss.start()

    def move(self, update: int) -> None:
        """Go one update on."""
        after = moved(self.loss, self.state, self.sizes)
        if self.truncation is not None:
            stand = _standing(self.state.first.tolist(), self.truncation, update)
            after = State(*(_kept(old, new, stand) for old, new in zip(self.state, after, strict=True)))
        self.state = after


class _Centred:
    """One point that is carried exactly, and how far the iterate can be from it (`tubes`)."""

    def __init__(self, loss: AnyLoss, sizes: Sequence[arb]):
        self.loss, self.sizes, begin = loss, sizes, loss.start()
        layers = zip(("first", "second"), sizes, strict=True)
        self.moving = Moving(begin, [layer for layer, size in layers if not size.is_zero()])
        self.roots = [size.sqrt() for size in self.moving.spread(sizes)]
        column = self.moving.column(begin)
        self.centre, self.error = column.mid(), radii(column, self.roots)
        self.tube, self.factor = self.centre, arb(1)
        self.curved = loss_of(replace(loss.networks, trains=tuple(self.moving.moves)), moving=True)

    @property
    def column(self) -> arb_mat:
        """All points where the iterate may be."""
        return around(self.centre, self.error, self.roots)

    @property
    def state(self) -> State:
        """The iterate as balls."""
        return self.moving.state(self.column)

    def move(self, update: int) -> None:
        """Go one update on."""
        del update
        point = self.moving.state(self.centre)
        after = self.moving.column(moved(self.loss, point, self.sizes))
        if not contains(self.tube, self.column):
            self._surround(after)
        self.error = (self.factor * self.error + radii(after, self.roots)).upper()
        self.centre = after.mid()

    def _surround(self, after: arb_mat) -> None:
        """A box for this and the next updates, as many as can be, and how much errors grow in it."""
        steps = [x / root for x, root in zip((after - self.centre).entries(), self.roots, strict=True)]
        length = dot(steps, steps).sqrt().upper()
        for ahead in AHEAD:
            self.tube = around(self.centre, (ahead * length + 2 * self.error).upper(), self.roots)
            try:
                self.factor = stretch(self.curved.hessian(self.moving.state(self.tube)), self.roots)
            except CannotEnclose:
                if ahead == AHEAD[-1]:
                    raise
            else:
                return


AHEAD = (64, 8, 1)
"""For how many updates a bound of the Hessian is made to last, if it can be."""


def contains(wide: arb_mat, narrow: arb_mat) -> bool:
    """Whether all entries lie within those of another matrix."""
    pairs = zip(wide.entries(), narrow.entries(), strict=True)
    return all(one.is_finite() and other.is_finite() and bool(one.contains(other)) for one, other in pairs)


def _standing(rows: Sequence[Sequence[arb]], truncation: Truncated, update: int) -> list[bool]:
    """Which units stand still in the update that begins after so many."""
    cap, found = truncation.caps[sum(update >= end for end in truncation.ends)], []
    for unit, row in enumerate(rows):
        square = dot(row, row)
        if not (square > arb(cap) or square <= arb(cap)):
            raise CannotEnclose(f"Whether unit {unit} is above its cap cannot be decided; try more precision.")
        found.append(square > arb(cap))
    return found


def _kept(old: arb_mat, new: arb_mat, stand: Sequence[bool]) -> arb_mat:
    """The old rows of units that stand still."""
    pairs = zip(stand, old.tolist(), new.tolist(), strict=True)
    return arb_mat([before if still else after for still, before, after in pairs])


def moved(loss: AnyLoss, state: State, sizes: Sequence[arb]) -> State:
    """The state after one update."""
    gradient = loss.gradient(state)
    return State(*(part - slope * size for part, slope, size in zip(state, gradient, sizes, strict=True)))
