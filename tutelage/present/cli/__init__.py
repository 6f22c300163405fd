"""The command line: each command is a skin over one public function. Heavy imports wait until a command needs them."""

import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from tutelage._errors import BadInput
from tutelage.present.cli import completion, streams
from tutelage.present.cli.bench import bench
from tutelage.present.cli.options import (
    Dynamics,
    FigureFile,
    Json,
    Preset,
    Quiet,
    Seeds,
    Sets,
    StoreFolder,
    StudyName,
    configured,
    console,
    length,
    named,
    print_json,
    stoppable,
    tell,
    writable,
)
from tutelage.present.cli.proofs import prove, verify
from tutelage.present.cli.store import export, rm, runs, show
from tutelage.present.cli.sweep import diagram, sweep

if TYPE_CHECKING:
    from tutelage.papers.cards import Card
    from tutelage.study.study import Study
    from tutelage.trajectory.findings import Table


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE, errno.ENFILE)
"""What is wrong with a disk or its permissions, and not with the program."""


GROUPS = {
    "Studies": ["papers", "run", "check", "reproduce", "new"],
    "Many runs": ["sweep", "diagram"],
    "Proofs": ["prove", "verify"],
    "What was computed": ["runs", "show", "export", "rm"],
}


class _Group(TyperGroup):
    """What cannot be is one sentence on stderr: bad input, or a disk, with exit code 2; memory, with 1.

    Other errors stay loud.
    """

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands by what they are for."""
        grouped = [name for names in GROUPS.values() for name in names]
        groups = {**GROUPS, "More": [name for name in self.commands if name not in grouped]}
        for title, names in groups.items():
            with formatter.section(title):
                # All in one column, whatever their length.
                formatter.write_dl([(name.ljust(9), self.commands[name].get_short_help_str(100)) for name in names])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BadInput as error:
            raise _told(str(error), 2) from None
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise _told(f"{error.filename or 'A file'} cannot be used ({error.strerror}).", 2) from None
        except KeyboardInterrupt:
            raise _told("stopped.", 130) from None
        except Exception as error:
            if not (isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)):
                raise
            raise _told(
                "The memory was used up; ask for fewer seeds, samples or records, or smaller sizes.", 1
            ) from None


def _told(sentence: str, code: int) -> typer.Exit:
    typer.echo(f"tutelage: {sentence}", err=True)
    return typer.Exit(code)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""A laboratory for teacher-student learning dynamics.

    \b
    Example:
      tutelage reproduce --quick

    Exit codes: 0 done; 1 a claim that must hold failed, a certificate or a stored run disagreed, or a part crashed;
    2 bad input; 130 stopped by Ctrl-C.
    """,
)

Certify = Annotated[bool, typer.Option("--certify", help="Check reported numbers by an independent route.")]


@app.command()
def papers(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY", help="Show this one: a name, or a file my_study.py.", autocompletion=completion.studies
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List papers and studies, or show one: settings, figures, claims.

    \b
    Example:
      tutelage papers both_layers
    """
    from tutelage.present import terminal

    if name:
        from tutelage.study.registry import get

        known = get(name)
        print_json(_details(known)) if as_json else terminal.paper(console(), known)
    elif as_json:
        print_json([_summary(card) for card in _cards()])
    else:
        terminal.papers(console(), _cards())


@app.command()
def run(
    study: StudyName,
    sets: Sets = None,
    preset: Preset = None,
    seeds: Seeds = 8,
    dynamics: Dynamics = None,
    certify: Certify = False,
    claims: Annotated[bool, typer.Option("--check", help="Check its claims at these settings, too.")] = False,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Compute it even if the store has it; both must agree, bit for bit. What is "
            "damaged there is put aside.",
        ),
    ] = False,
    folder: StoreFolder = None,
    out: Annotated[
        Path | None, typer.Option(parser=named, metavar="FILE.nc", help="Write the trajectory as NetCDF.")
    ] = None,
    figure: FigureFile = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a study, and say what happened.

    A run that the store has is read, not computed. If nothing is set it is the short form, which takes seconds;
    `tutelage papers STUDY` lists other presets, a paper's own sizes among them, and how long they take. With --set and
    no --preset, everything else is the default. Ctrl-C stops it and keeps what was done; the same command goes on from
    there.

    \b
    Example:
      tutelage run both_layers --set dim=1e9 --set step=0.05 --seeds 32 --out run.nc --figure run.png
    """
    from tutelage.present import terminal
    from tutelage.present.answer import answer
    from tutelage.present.progress import Progress
    from tutelage.store.store import Store
    from tutelage.trajectory.findings import Table

    # Claims are about the study's own sizes.
    chosen, settings, preset = configured(study, sets, preset, short=not claims)
    writable(out, figure)
    with Progress(quiet=quiet, title=f"running {chosen.name}") as progress, stoppable():
        if said := length(chosen, preset):
            progress.tell(said)
        done = chosen.run(
            settings, dynamics=dynamics, seeds=seeds, certify=certify, fresh=fresh, store=Store(folder),
            progress=progress, told=progress.tell,
        )  # fmt: skip
        table = _claims(chosen, done, progress) if claims else Table()
    certificate = done.certificate if certify else None
    if out:
        done.save(out)
    if figure:
        _draw(done, chosen.title, figure)
    if as_json:
        print_json(done.summary() | ({"claims": table.records()} if claims else {}))
    elif not quiet:
        answer(console(), done, chosen.title)
        if certificate is not None:
            typer.echo(certificate.sentence)
        if claims:
            terminal.claims(console(), table, ())
        tell(*(path for path in (out, figure) if path))
    if table.broken or (certificate is not None and not certificate.ok):
        raise typer.Exit(1)


@app.command()
def check(
    study: StudyName,
    sets: Sets = None,
    preset: Preset = None,
    seeds: Seeds = 10,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="ID",
            help="Check this claim, and say what was seen of it in words; may be repeated.",
            autocompletion=completion.claims,
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Full sizes instead of quick ones.")] = False,
    latex: Annotated[
        Path | None, typer.Option(parser=named, metavar="FILE.tex", help="Write the table for a paper, too.")
    ] = None,
    folder: StoreFolder = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check the claims of a study, measured value beside bound.

    \b
    Example:
      tutelage check both_layers --only BL11 --seeds 100
    """
    from tutelage._progress import listening
    from tutelage.present import terminal
    from tutelage.present.checks import guarded
    from tutelage.present.progress import Progress, Within
    from tutelage.present.reproduction import Crash
    from tutelage.store.store import Store

    writable(latex, None)
    chosen, settings, _ = configured(study, sets, preset)
    crashes: list[Crash] = []
    safe = guarded(chosen, crashes, refuse_bad_input=True)
    store = Store(folder)
    with (
        Progress(quiet=quiet, title=f"checking {chosen.name}", alike=False) as progress,
        listening(Within(progress.tell)),
        stoppable(),
        store.in_use(),
    ):
        size: Literal["quick", "full"] = "full" if full else "quick"
        table = safe.check(settings, size=size, seeds=seeds, only=tuple(only or ()), progress=progress)
    if as_json:
        print_json(table.records())
    elif not quiet:
        terminal.claims(console(), table, crashes, details=bool(only))
    if latex:
        from tutelage._files import deliver

        text = table.to_latex()
        deliver(latex, lambda part: part.write_text(text, encoding="utf-8"))
        tell(latex)
    if table.broken or crashes:
        raise typer.Exit(1)


@app.command()
def reproduce(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STUDY[/FIGURE]",
            help="Studies or single figures; default: all.",
            autocompletion=completion.targets,
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full/--quick", help="The papers' own sizes, or quick ones.")] = False,
    out: Annotated[Path, typer.Option(parser=named, metavar="DIR", help="Folder for the report and its files.")] = Path(
        "report"
    ),
    seeds: Seeds = 10,
    certify: Certify = False,
    folder: StoreFolder = None,
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

    with Progress(quiet=quiet, title="reproducing", alike=False) as progress, stoppable():
        size: Literal["quick", "full"] = "full" if full else "quick"
        done = reproduced(
            targets or (), size=size, out=out, seeds=seeds, certify=certify, store=folder, progress=progress
        )
    if as_json:
        print_json({"report": str(done.report), "ok": done.ok, "papers": [_outcome(r) for r in done.results]})
    elif not quiet:
        for result in done.results:
            told = result.table.sentence if len(result.table) else "No claims asked for."
            typer.echo(f"{result.paper.name}: {some(len(result.figures), 'figure')}. {told}")
        for result in done.results:
            for row in result.table.broken:
                typer.echo(f"{result.paper.name}: {row.claim.id} must hold and fails. {row.finding.detail}", err=True)
            for crash in result.crashes:
                typer.echo(f"{result.paper.name}: {crash.what} crashed: {crash.message}", err=True)
        tell(done.report)
    if not done.ok:
        raise typer.Exit(1)


for _command in (sweep, diagram, prove, verify, runs, show, export, rm, bench):
    app.command()(_command)


def _version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


@app.callback()
def options(
    asked: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """What stands before the command."""


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the study, as of a Python module: my_paper.")],
    folder: Annotated[
        Path | None, typer.Option("--out", parser=named, metavar="DIR", help="Where to; default: a folder of its name.")
    ] = None,
) -> None:
    """Write a study of your own that runs as it is.

    It has settings, a problem, claims, a figure, a test and a page.

    \b
    Example:
      tutelage new my_paper
    """
    from tutelage.present.new_study import new_study

    made = new_study(name, folder)
    tell(*made)
    typer.echo(f"Run it: tutelage run {made[0]}\nIts claims: tutelage check {made[0]}")


@app.command()
def version(as_json: Json = False) -> None:
    """Print the version; with --json those of what it uses, too.

    \b
    Example:
      tutelage version --json
    """
    from tutelage.present.versions import versions

    if as_json:
        print_json(versions())
    else:
        typer.echo(versions()["tutelage"])


# ---- shared


def _claims(paper: "Study", done: Any, progress: Any) -> "Table":
    from tutelage.study.checking import claims_of

    return claims_of(paper, done, progress)


def _draw(done: Any, title: str, path: Path) -> None:
    from tutelage.present import figures
    from tutelage.present.overview import overview

    figures.save(overview(done.dataset, title), path)


def _cards() -> list["Card"]:
    """What each study is: of papers it is written down, so that nothing is imported; others are loaded."""
    from tutelage.papers.cards import CARDS
    from tutelage.study.announced import installed

    return [CARDS.get(name) or _card(name) for name in installed()]


def _card(name: str) -> "Card":
    from tutelage.papers.cards import Card
    from tutelage.study.registry import get

    try:
        return Card.of(get(name))
    except BadInput as error:  # it hides no other
        return Card(name, str(error), "", "", "", "", 0, 0)


def _summary(card: "Card") -> dict[str, Any]:
    return card.words | {"figures": card.figures, "claims": card.claims}


def _details(paper: "Study") -> dict[str, Any]:
    from tutelage.present.settings_table import parameters

    keys = ("id", "where", "statement", "setting", "kind", "reading", "mended", "must_hold")
    about = {key: getattr(paper, key) for key in ("name", "title", "authors", "reference", "summary")}
    return about | {
        "settings": parameters(paper.settings),
        "presets": paper.presets,
        "takes": paper.takes,
        "dynamics": list(paper.dynamics),
        "figures": [{"id": f.id, "title": f.title, "ours": f.ours} for f in paper.figures],
        "measures": [{"name": m.name, "kind": m.kind, "long_name": m.long_name} for m in paper.measures],
        "diagrams": [{"id": d.id, "title": d.title, "measure": d.measure} for d in paper.diagrams],
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


def main() -> None:
    """The `tutelage` command."""
    # The cores have work already: parts of a report, or lanes of seeds. Small factorisations, of which online SGD has
    # one a step, would spend most of their time waiting for a second thread.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sink = streams.begin()
    try:
        app()
    except SystemExit as end:
        sys.exit(streams.ended(sink, end.code))


if __name__ == "__main__":
    main()
