"""What the commands share: their common options, and how they print."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tutelage._errors import BadInput

if TYPE_CHECKING:
    from rich.console import Console

    from tutelage.papers.paper import Paper


def named(text: str | Path) -> Path:
    """A path from a command line; an empty one would be the folder that one is in."""
    if not str(text).strip():
        raise typer.BadParameter("the name is empty; write for example --out run.nc or --store runs.")
    return Path(text)


PaperName = Annotated[str, typer.Argument(metavar="PAPER", help="Name of a paper; `tutelage papers` lists them.")]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting; may be repeated.")
]
Preset = Annotated[str | None, typer.Option("--preset", metavar="NAME", help="Start from a named set of settings.")]
Seeds = Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="Number of seeds.")]
Dynamics = Annotated[
    Literal["descent", "flow", "sgd"] | None,
    typer.Option("--dynamics", help="Gradient descent, gradient flow or online SGD; default: the paper's own."),
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


def configured(name: str, sets: list[str] | None, preset: str | None) -> tuple["Paper", Any]:
    """The paper and its settings: the preset first, then what was set by hand."""
    from tutelage import papers as registry
    from tutelage._errors import unknown
    from tutelage._values import assignments

    paper = registry.get(name)
    if preset is not None and preset not in paper.presets:
        raise unknown(f"preset of {name}", preset, paper.presets)
    return paper, paper.configure((paper.presets[preset] if preset else {}) | assignments(sets or ()))


SHORT = "short"


def shortened(name: str, sets: list[str] | None, preset: str | None) -> str | None:
    """The preset of a run: the paper's short form if nothing is set."""
    from tutelage import papers as registry

    return SHORT if preset is None and not sets and SHORT in registry.get(name).presets else preset


def length(paper: "Paper", preset: str | None) -> str:
    """What to say of a preset before it is run: how long it takes, or where the longer or the shorter form is."""
    from tutelage.present.terminal import spent

    if preset is None:
        return "what is not set is the default; --preset short begins from a run of seconds." * (SHORT in paper.presets)
    if preset == SHORT and paper.own:
        changed = ", ".join(f"{key}={value}" for key, value in paper.presets[SHORT].items())
        longer = f"--preset {paper.own} has the paper's own sizes{spent(paper.takes.get(paper.own), ' and takes {}')}"
        return f"--preset short, the main effect in seconds ({changed}); {longer}."
    return spent(paper.takes.get(preset), f"--preset {preset} takes {{}}.")
