"""What a sweep measures, by name: of the study, of any run, a claim's verdict, or a function of one's own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tutelage._checks import several
from tutelage._errors import BadInput, unknown
from tutelage._identity import identity
from tutelage.study.files import module_of
from tutelage.study.study import Study
from tutelage.trajectory.measures import Measure

Wanted = str | Measure | Callable[..., Any]


@dataclass(frozen=True)
class Measurement:
    """One thing to measure: a name that workers look up, or a `Measure` that is sent to them.

    `key` changes when a function's code does, so that old numbers are not taken for new ones.
    """

    name: str
    key: str
    claim: str = ""
    own: Measure | None = None

    def measure(self, study: Study) -> Measure:
        return self.own or study.measure(self.name)


def measurements(study: Study, wanted: Wanted | Sequence[Wanted]) -> tuple[Measurement, ...]:
    """What to measure. Texts may have commas: `recovery_time,final_loss,claim:SM-T1a,own.py:spread`.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.study.measuring import measurements
    >>> [each.name for each in measurements(tt.papers.both_layers, "final_loss,claim:BL11")]
    ['final_loss', 'claim:BL11']

    ```
    """
    if isinstance(wanted, (str, Measure)) or callable(wanted):
        wanted = [wanted]
    many = several("measure", wanted, object, "a name, a function of a run or a tt.Measure, or a list of them,")
    texts = [part.strip() for each in many if isinstance(each, str) for part in each.split(",") if part.strip()]
    found = [_named(study, text) for text in texts] + [_own(each) for each in many if not isinstance(each, str)]
    if not found:
        raise BadInput("A sweep needs something to measure; write for example --measure final_loss.")
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise BadInput(f"The measures {', '.join(names)} have a name twice; give each its own.")
    return tuple(found)


def _named(study: Study, text: str) -> Measurement:
    first, colon, rest = text.partition(":")
    if colon and first == "claim":
        if rest not in [claim.id for claim in study.claims]:
            raise unknown(f"claim of {study.name}", rest, [claim.id for claim in study.claims])
        return Measurement(text, f"{text}@{study.code}", claim=rest)
    if colon:
        return _own(_from_file(first, rest))
    study.measure(text)  # a name that cannot be is refused here, not by a worker
    return Measurement(text, text)


def _from_file(file: str, name: str) -> Callable[..., Any]:
    """The function `name` of a Python file."""
    if not Path(file).is_file():
        raise BadInput(f"--measure {file}:{name}: {file} is not a Python file; write for example own.py:spread.")
    function: Callable[..., Any] | None = getattr(module_of(file), name, None)
    if not callable(function):
        raise BadInput(f"--measure {file}:{name}: {file} has no function {name}; it must take a run.")
    return function


def _own(wanted: Any) -> Measurement:
    """A function of a run, or a `Measure`, as one to send: by its text, since workers may not have its file."""
    if not (isinstance(wanted, Measure) or callable(wanted)):
        raise BadInput(f"{wanted!r} is not a measure; pass a name, a function of a run, or a tt.Measure.")
    if not isinstance(wanted, Measure):
        name = getattr(wanted, "__name__", "measure").replace("<lambda>", "measure")
        wanted = Measure(name, (wanted.__doc__ or name).strip().splitlines()[0], wanted)
    key = f"{wanted.name}@{identity(wanted)}"
    return Measurement(wanted.name, key, own=wanted)
