"""The command line: each command is a skin over one public function. Heavy imports wait until a command needs them."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from tutelage._errors import BadInput

if TYPE_CHECKING:
    from rich.console import Console

    from tutelage.papers.paper import Paper


class _Group(TyperGroup):
    """Bad input is one sentence on stderr and exit code 2; other errors stay loud."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BadInput as error:
            typer.echo(f"tutelage: {error}", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""A laboratory for teacher-student learning dynamics.

    \b
    Example:
      tutelage reproduce --quick

    Exit codes: 0 done; 1 a claim that must hold failed, a certificate disagreed or a part crashed; 2 bad input.
    """,
)

PaperName = Annotated[str, typer.Argument(metavar="PAPER", help="Name of a paper; `tutelage papers` lists them.")]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting; may be repeated.")
]
Preset = Annotated[str | None, typer.Option("--preset", metavar="NAME", help="Start from a named set of settings.")]
Seeds = Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="Number of seeds.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no tables.")]
Certify = Annotated[bool, typer.Option("--certify", help="Check reported numbers by an independent route.")]


@app.command()
def papers(
    name: Annotated[str | None, typer.Argument(metavar="PAPER", help="Show this paper in detail.")] = None,
    as_json: Json = False,
) -> None:
    """List the papers, or show one: its settings, figures and claims.

    \b
    Example:
      tutelage papers both_layers
    """
    from tutelage import papers as registry
    from tutelage.present import terminal

    known = [registry.get(each) for each in ([name] if name else registry.names())]
    if as_json:
        _print_json(_details(known[0]) if name else [_summary(paper) for paper in known])
    elif name:
        terminal.paper(_console(), known[0])
    else:
        terminal.papers(_console(), known)


@app.command()
def run(
    paper: PaperName,
    sets: Sets = None,
    preset: Preset = None,
    seeds: Seeds = 8,
    dynamics: Annotated[
        Literal["descent", "flow", "sgd"] | None,
        typer.Option(help="Gradient descent, gradient flow or online SGD; default: the paper's own."),
    ] = None,
    certify: Certify = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE.nc", help="Write the trajectory as NetCDF.")] = None,
    figure: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw the trajectory.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a paper's experiment and print a summary.

    \b
    Example:
      tutelage run both_layers --set dim=1e9 --set step=0.05 --seeds 32 --out run.nc --figure run.png
    """
    from tutelage.present import terminal
    from tutelage.present.progress import Progress

    chosen, settings = _configured(paper, sets, preset)
    _writable(out, figure)
    with Progress(quiet=quiet, title=f"running {chosen.name}") as progress:
        done = chosen.launch(settings, dynamics, seeds=seeds, certify=certify, progress=progress)
    if out:
        done.save(out)
    if figure:
        _draw(done, chosen.title, figure)
    if as_json:
        _print_json(done.summary())
    elif not quiet:
        terminal.entries(_console(), done.summary(), chosen.title)
        if done.certificate is not None:
            typer.echo(done.certificate.sentence)
        _tell(*(path for path in (out, figure) if path))
    if done.certificate is not None and not done.certificate.ok:
        raise typer.Exit(1)


@app.command()
def check(
    paper: PaperName,
    sets: Sets = None,
    preset: Preset = None,
    seeds: Seeds = 10,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="ID", help="Check this claim; may be repeated.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Full sizes instead of quick ones.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check a paper's claims: measured value beside bound.

    \b
    Example:
      tutelage check both_layers --only BL11 --seeds 100
    """
    from tutelage.present import terminal
    from tutelage.present.guard import guarded
    from tutelage.present.progress import Progress
    from tutelage.present.results import Crash

    chosen, settings = _configured(paper, sets, preset)
    crashes: list[Crash] = []
    safe = guarded(chosen, crashes, refuse_bad_input=True)
    with Progress(quiet=quiet, title=f"checking {chosen.name}") as progress:
        size: Literal["quick", "full"] = "full" if full else "quick"
        table = safe.check(settings, size=size, seeds=seeds, only=tuple(only or ()), progress=progress)
    if as_json:
        _print_json(table.records())
    elif not quiet:
        terminal.claims(_console(), table, crashes)
    if table.broken or crashes:
        raise typer.Exit(1)


@app.command()
def reproduce(
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="PAPER[/FIGURE]", help="Papers or single figures; default: all.")
    ] = None,
    full: Annotated[bool, typer.Option("--full/--quick", help="The papers' own sizes, or quick ones.")] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the report and its files.")] = Path("report"),
    seeds: Seeds = 10,
    certify: Certify = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compute figures, check claims and write one HTML report.

    \b
    Example:
      tutelage reproduce both_layers/fig3 --quick --out report
    """
    from tutelage._plain import some
    from tutelage.present.progress import Progress
    from tutelage.present.reproduce import reproduce as reproduced
    from tutelage.present.results import tally

    with Progress(quiet=quiet, title="reproducing") as progress:
        size: Literal["quick", "full"] = "full" if full else "quick"
        done = reproduced(targets or (), size=size, out=out, seeds=seeds, certify=certify, progress=progress)
    if as_json:
        _print_json({"report": str(done.report), "ok": done.ok, "papers": [_outcome(r) for r in done.results]})
    elif not quiet:
        for result in done.results:
            counts = ", ".join(tally(*each) for each in result.counts().items()) or "no claims asked for"
            typer.echo(f"{result.paper.name}: {some(len(result.figures), 'figure')}; claims: {counts}.")
        for result in done.results:
            for row in result.table.broken:
                typer.echo(f"{result.paper.name}: {row.claim.id} must hold and fails. {row.finding.detail}", err=True)
            for crash in result.crashes:
                typer.echo(f"{result.paper.name}: {crash.what} crashed: {crash.message}", err=True)
        _tell(done.report)
    if not done.ok:
        raise typer.Exit(1)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE.nc", help="A file written by `run --out` or `reproduce`.")],
    as_json: Json = False,
) -> None:
    """Show what a saved run holds.

    \b
    Example:
      tutelage show run.nc
    """
    from tutelage.present import terminal
    from tutelage.present.saved import describe
    from tutelage.trajectory.dataset import load

    dataset = load(file)
    about = describe(dataset)
    if as_json:
        _print_json(about)
        return
    loss = dataset["loss"] if "loss" in dataset and "time" in dataset["loss"].dims else None
    if loss is not None:
        loss = loss.median([dim for dim in loss.dims if dim != "time"])
    terminal.saved(
        _console(), about, None if loss is None else loss["time"].values, None if loss is None else loss.values
    )


@app.command()
def version(as_json: Json = False) -> None:
    """Print the version; with --json also those of what it stands on.

    \b
    Example:
      tutelage version --json
    """
    from tutelage.present.versions import versions

    if as_json:
        _print_json(versions())
    else:
        typer.echo(versions()["tutelage"])


# ---- shared


def _configured(name: str, sets: list[str] | None, preset: str | None) -> tuple["Paper", Any]:
    """The paper and its settings: the preset first, then what was set by hand."""
    from tutelage import papers as registry
    from tutelage._errors import unknown
    from tutelage.present.assign import assignments

    paper = registry.get(name)
    if preset is not None and preset not in paper.presets:
        raise unknown(f"preset of {name}", preset, paper.presets)
    return paper, paper.configure((paper.presets[preset] if preset else {}) | assignments(sets or ()))


def _writable(out: Path | None, figure: Path | None) -> None:
    """Find out before a long run, not after it, that its result has nowhere to go."""
    from tutelage.present.figures import FORMATS

    if figure is not None and figure.suffix.lower() not in FORMATS:
        raise BadInput(f"--figure {str(figure)!r} must end in one of {', '.join(FORMATS)}; try {figure.stem}.png.")
    for path in filter(None, (out, figure)):
        if not path.parent.is_dir():
            raise BadInput(f"The folder of {str(path)!r} does not exist; make it first or choose another.")


def _draw(done: Any, title: str, path: Path) -> None:
    from tutelage.present import figures
    from tutelage.present.overview import overview

    figures.save(overview(done.dataset, title), path)


def _summary(paper: "Paper") -> dict[str, Any]:
    about = {key: getattr(paper, key) for key in ("name", "title", "authors", "reference", "summary")}
    return about | {"figures": len(paper.figures), "claims": len(paper.claims)}


def _details(paper: "Paper") -> dict[str, Any]:
    from tutelage.present.parameters import parameters

    keys = ("id", "where", "statement", "setting", "ours", "must_hold")
    return _summary(paper) | {
        "settings": parameters(paper.settings),
        "presets": paper.presets,
        "dynamics": list(paper.dynamics),
        "figures": [{"id": f.id, "title": f.title, "ours": f.ours} for f in paper.figures],
        "claims": [{key: getattr(claim, key) for key in keys} for claim in paper.claims],
    }


def _outcome(result: Any) -> dict[str, Any]:
    return {
        "paper": result.paper.name,
        "figures": [{"id": f.figure.id, "png": f.png, "netcdf": f.netcdf} for f in result.figures],
        "verdicts": result.counts(),
        "broken": [row.claim.id for row in result.table.broken],
        "crashes": [{"what": crash.what, "message": crash.message} for crash in result.crashes],
        "seconds": result.seconds,
    }


def _print_json(value: Any) -> None:
    from tutelage._plain import dumps

    typer.echo(dumps(value))


def _tell(*paths: Path) -> None:
    for path in paths:
        typer.echo(f"Written: {path}")


def _console() -> "Console":
    from rich.console import Console

    # A pipe has no width of its own; 80 columns would break every statement into shreds.
    return Console(width=None if sys.stdout.isatty() else 120, soft_wrap=False)


def main() -> None:
    """The `tutelage` command."""
    app()


if __name__ == "__main__":
    main()
