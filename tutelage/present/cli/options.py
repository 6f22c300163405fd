"""What the commands share: their common options, and how they print."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tutelage._errors import BadInput
from tutelage.present.cli import completion

if TYPE_CHECKING:
    from rich.console import Console

    from tutelage.study.study import Study


def named(text: str | Path) -> Path:
    """A path from a command line; an empty one would be the folder that one is in."""
    if not str(text).strip():
        raise typer.BadParameter("the name is empty; write for example --out run.nc or --store runs.")
    return Path(text)


StudyName = Annotated[
    str,
    typer.Argument(
        metavar="STUDY",
        help="A paper or study by name, which `tutelage papers` lists, or a file: my_study.py.",
        autocompletion=completion.studies,
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Change a setting; may be repeated.", autocompletion=completion.settings
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset", metavar="NAME", help="Start from a named set of settings.", autocompletion=completion.presets
    ),
]
Seeds = Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="Number of seeds.")]
Dynamics = Annotated[
    str | None,
    typer.Option(
        "--dynamics",
        metavar="NAME",
        help="How to move: descent, flow, sgd or another that the study knows; with changes: flow:until=1e3,rtol=1e-9. "
        "Default: the study's first.",
        autocompletion=completion.dynamics,
    ),
]
FigureFile = Annotated[
    Path | None, typer.Option("--figure", parser=named, metavar="FILE.png", help="Draw it into this file.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no tables.")]
StoreFolder = Annotated[
    Path | None,
    typer.Option("--store", parser=named, metavar="DIR", help="Where runs are kept; default: TUTELAGE_STORE, or runs."),
]


def print_json(value: Any) -> None:
    """JSON on stdout, in ASCII: the same wherever it is printed, and read alike by every program."""
    from tutelage._plain import plain

    typer.echo(json.dumps(plain(value), indent=2, allow_nan=False))


def tell(*paths: Path) -> None:
    """Say where files were written."""
    for path in paths:
        typer.echo(f"Written: {path}")


def console() -> "Console":
    """A console on stdout."""
    from rich.console import Console

    # A pipe has no width of its own; 80 columns would break every statement into shreds.
    return Console(width=None if sys.stdout.isatty() else 120, soft_wrap=False)


def writable(out: Path | None, figure: Path | None) -> None:
    """Find out before a long run, not after it, that its result has nowhere to go."""
    from tutelage._files import check_file

    if figure is not None:
        from tutelage.present.theme import FORMATS

        if figure.suffix.lower() not in FORMATS:
            raise BadInput(f"--figure {str(figure)!r} must end in one of {', '.join(FORMATS)}; try {figure.stem}.png.")
    if out is not None and figure is not None and out.resolve() == figure.resolve():
        raise BadInput(f"--out and --figure are both {str(out)!r}; give each a name of its own.")
    for path in filter(None, (out, figure)):
        check_file(path)


@contextlib.contextmanager
def stoppable(kept: str = "what was done is kept, and the same command goes on from there") -> Iterator[None]:
    """Within it Ctrl-C stops runs at the next chunk, and what a run and its stored form disagree in is one sentence."""
    from tutelage._interrupt import gentle_signals
    from tutelage.store.fetching import Disagreement

    try:
        with gentle_signals():
            yield
    except KeyboardInterrupt:
        typer.echo(f"tutelage: stopped; {kept}.", err=True)
        raise typer.Exit(130) from None
    except Disagreement as error:
        typer.echo(f"tutelage: {error}", err=True)
        raise typer.Exit(1) from None


def configured(name: str, sets: list[str] | None, preset: str | None, *, short: bool = False) -> "Configured":
    """The study and its settings: the preset first, then what was set by hand. `short`: if neither is given, the short
    form of the study."""
    from tutelage._errors import unknown
    from tutelage._values import assignments
    from tutelage.study.registry import get

    study = get(name)
    if short and preset is None and not sets and SHORT in study.presets:
        preset = SHORT
    if preset is not None and preset not in study.presets:
        raise unknown(f"preset of {study.name}", preset, study.presets)
    values = (study.presets[preset] if preset else {}) | assignments(sets or ())
    return Configured(study, study.configure(values), preset)


class Configured(NamedTuple):
    """A study with settings, and the preset that they began from."""

    study: "Study"
    settings: Any
    preset: str | None


SHORT = "short"


def length(study: "Study", preset: str | None) -> str:
    """What to say of a preset before it is run: how long it takes, or where the longer or the shorter form is."""
    from tutelage.present.terminal import spent

    if preset is None:
        return "what is not set is the default; --preset short begins from a run of seconds." * (SHORT in study.presets)
    if preset == SHORT and study.own:
        changed = ", ".join(f"{key}={value}" for key, value in study.presets[SHORT].items())
        longer = f"--preset {study.own} has the paper's own sizes{spent(study.takes.get(study.own), ' and takes {}')}"
        return f"--preset short, the main effect in seconds ({changed}); {longer}."
    return spent(study.takes.get(preset), f"--preset {preset} takes {{}}.")
