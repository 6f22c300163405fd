"""The commands on a store of runs: list, show, export, remove. Heavy imports wait until a command needs them."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from tutelage._errors import BadInput
from tutelage.present.cli import completion
from tutelage.present.cli.options import FigureFile, Json, StoreFolder, console, named, print_json, tell, writable

if TYPE_CHECKING:
    import xarray as xr

    from tutelage.store.store import Entry
    from tutelage.study.study import Study
    from tutelage.trajectory.result import Run

RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="An id or the beginning of one, `last`, or a file FILE.nc of a run.",
        autocompletion=completion.runs,
    ),
]


def runs(
    paper: Annotated[str | None, typer.Option(metavar="NAME", help="Only runs of this paper or study.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="Only where it is true, such as 'dim>1e4' or 'state=finished'; may be "
                     "repeated."),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", parser=named, metavar="FILE.png",
                                   help="Draw the losses of all of them together.")
    ] = None,
    folder: StoreFolder = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """List the runs of the store, the newest first.

    \b
    Example:
      tutelage runs --paper both_layers --where 'dim>1e4' --where 'loss<1e-8'
    """
    from tutelage.present.listing import listing
    from tutelage.store.store import Store

    store = Store(folder)
    writable(None, figure)
    found = store.select(paper, where or ())
    if not found:
        _check_names([_name(text) for text in where or ()], store.entries())
    if figure:
        _draw_together(found, figure)
    if as_json:
        # A line per run: the records are plain, and quicker without indentation.
        typer.echo("[" + ",\n ".join(json.dumps(entry.record()) for entry in found) + "]")
    elif found:
        listing(found, [_name(text) for text in where or ()])
    elif paper or where:
        typer.echo(f"No run in {store.root} matches; `tutelage runs` lists all.")
    else:
        typer.echo(f"No runs in {store.root} yet; `tutelage run both_layers` makes one.")
    if figure and not as_json:
        tell(figure)


def show(
    run: RunName,
    check: Annotated[bool, typer.Option("--check", help="Check the study's claims at these settings now.")] = False,
    study: Annotated[
        str | None,
        typer.Option(metavar="STUDY", help="The study of the run, if it is not installed: a file my_study.py."),
    ] = None,
    figure: FigureFile = None,
    width: Annotated[
        float | None,
        typer.Option(metavar="INCHES", help="Of the figure, such as 3.25, with the fonts of a paper."),
    ] = None,
    opened: Annotated[bool, typer.Option("--open", help="Draw it and open the picture.")] = False,
    folder: StoreFolder = None,
    as_json: Json = False,
) -> None:
    """Show what a run holds: settings, phases, claims and a plot.

    \b
    Example:
      tutelage show last --open
    """
    from tutelage.store.store import Store

    writable(None, figure)
    drawn = Drawn(figure, width, opened)
    if _is_file(run):
        from tutelage.trajectory.dataset import load

        if check:
            raise BadInput(f"--check needs a run of the store, but {run!r} is a file; `tutelage runs` lists them.")
        _show_dataset(load(run), {}, None, as_json)
        _picture(load(run), Path(run).stem, drawn, None)
        return
    entry = Store(folder).find(run)
    if entry.trouble:
        raise BadInput(entry.trouble)
    if entry.kind == "sweep":
        _show_sweep(entry, drawn, as_json)
    elif entry.state != "finished":
        _show_unfinished(entry, as_json)
    else:
        _show_run(entry, study, check, drawn, as_json)


def export(
    run: RunName,
    to: Annotated[Literal["csv", "parquet", "netcdf"], typer.Option("--to", help="The format.")] = "csv",
    out: Annotated[
        Path | None,
        typer.Option(parser=named, metavar="FILE", help="Where to write; default: the run's id, in this folder."),
    ] = None,
    folder: StoreFolder = None,
) -> None:
    """Write a run or a sweep as one table.

    It has a row for each seed and time, and a column for each number.

    \b
    Example:
      tutelage export last --to csv --out run.csv
    """
    from tutelage.present.export import SUFFIX
    from tutelage.present.export import export as exported
    from tutelage.store.store import Store
    from tutelage.trajectory.dataset import load

    writable(out, None)
    if _is_file(run):
        dataset, stem = load(run), Path(run).stem
    else:
        entry = Store(folder).find(run)
        dataset, stem = _dataset(entry), entry.id[:8]
    path = out or Path(stem + SUFFIX[to])
    exported(dataset, path, to)
    tell(path)


def rm(
    names: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids, or their beginnings, or `last`.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    folder: StoreFolder = None,
) -> None:
    """Remove runs from the store, after asking. One that another process works on is refused.

    \b
    Example:
      tutelage rm 1f0c last
    """
    from tutelage.present.listing import listing
    from tutelage.store.store import Store

    store = Store(folder)
    found = list({entry.id: entry for entry in map(store.find, names)}.values())
    for entry in found:
        if entry.state == "running":
            raise BadInput(f"Another process is at work on {entry.id}; stop it first, or wait for it.")
    if not yes:
        listing(found)
        typer.confirm(f"Remove {'this' if len(found) == 1 else f'these {len(found)}'} for good?", abort=True)
    for entry in found:
        store.remove(entry)
        typer.echo(f"Removed: {entry.id}")


# ---- parts


def _name(condition: str) -> str:
    """What a condition is about."""
    return str(re.findall(r"\w+", condition)[0])


def _check_names(names: list[str], entries: list["Entry"]) -> None:
    """Refuse names that neither a run nor a paper has: no run will ever match. The papers are asked last; they take
    a second to import."""
    strange = [name for name in names if all(entry.value(name) is None for entry in entries)]
    if not strange or not entries:
        return
    from tutelage._errors import unknown
    from tutelage.study import registry

    facts = {"id", "kind", "state", "seeds", "paper", "dynamics", "loss", "seconds"}
    told = {name for entry in entries for part in (entry.spec, entry.summary) for name in part}
    settings = {name for each in registry.names() for name in registry.get(each).settings.model_fields}
    for name in strange:
        if name not in facts | told | settings:
            raise unknown("name in --where", name, facts | settings)


def _is_file(name: str) -> bool:
    return name.endswith(".nc") or Path(name).is_file()


def _draw_together(found: list["Entry"], figure: Path) -> None:
    from tutelage._plain import some
    from tutelage.present.loss_overlay import together

    finished = [entry for entry in found if entry.kind == "run" and entry.state == "finished"]
    if not finished:
        raise BadInput("None of these runs is finished, so there is nothing to draw; `tutelage runs` lists them.")
    left = len(finished) - together(finished, figure)
    if left:
        typer.echo(f"tutelage: {some(left, 'run')} had no loss that could be read or drawn.", err=True)


def _dataset(entry: "Entry") -> "xr.Dataset":
    """The numbers of a run, or of a sweep as far as it is."""
    from tutelage.store.fetching import opened
    from tutelage.study.sweep_result import Sweep

    if entry.trouble or entry.kind == "run":
        return opened(entry).dataset
    return Sweep.read(entry).dataset


def _about(entry: "Entry") -> dict[str, Any]:
    about: dict[str, Any] = {name: entry.spec[name] for name in ("paper", "dynamics") if name in entry.spec}
    return {"id": entry.id, "state": entry.state, **about, "seeds": len(entry.spec["seeds"]), "folder": entry.folder}


def _show_run(entry: "Entry", study: str | None, check: bool, drawn: "Drawn", as_json: bool) -> None:
    from tutelage.analysis.claims import Table
    from tutelage.present.progress import Progress
    from tutelage.store.fetching import opened as read
    from tutelage.study.checking import claims_of

    done, name = read(entry), entry.spec["paper"]
    known = _study_of(name, study)
    table = known.judged(done).claims if known else done.claims
    if check:
        if known is None:
            raise BadInput(_unfound(name))
        with Progress(title="checking claims", quiet=as_json, alike=False) as progress:
            table = claims_of(known, done, progress)
    claims = None if table is None else table.records()
    _show_dataset(done.dataset, _about(entry), claims, as_json)
    if not as_json:
        _tell_claims(entry, known, done, claims)
    _picture(done.dataset, f"{name or 'run'} {entry.id[:8]}", drawn, entry)
    if check and Table.read(claims or []).broken:
        raise typer.Exit(1)


def _tell_claims(entry: "Entry", known: "Study | None", done: "Run", claims: Any) -> None:
    """What is to be said about claims that are not shown, or not judged by the present code."""
    name = entry.spec["paper"]
    if known is None:
        if claims is not None:
            typer.echo(f"tutelage: {_unfound(name)} Its claims are those that were kept.", err=True)
    elif claims is None and len(known.claims):
        state = "not checked yet" if done.claims is None else "kept, but judged by other code than the present"
        typer.echo(f"\nClaims: {state}; `tutelage show {entry.id[:8]} --check` checks them.")


def _unfound(name: str) -> str:
    if not name:
        return "This run is of no study, so that it has no claims; `tutelage check STUDY` checks those of one."
    return f"{name!r} is not installed here; name its file, --study my_study.py."


def _study_of(name: str, study: str | None) -> "Study | None":
    """The study of a run: the one that was named, or the installed one of its name; None if there is none."""
    from tutelage.study import registry

    if study is None:
        return registry.get(name) if name in registry.names() else None
    found = registry.get(study)
    if found.name != name:
        raise BadInput(f"The run is of the study {name!r}, but {study} has {found.name!r}; name the file of {name!r}.")
    return found


def _show_dataset(
    dataset: "xr.Dataset", header: dict[str, Any], claims: list[dict[str, Any]] | None, as_json: bool
) -> None:
    from tutelage.analysis.claims import Table
    from tutelage.present import terminal
    from tutelage.present.describe import describe

    about = describe(dataset)
    if as_json:
        print_json(header | about | ({"claims": claims} if header else {}))
        return
    if header:
        terminal.entries(console(), header, "Run")
    loss = dataset["loss"] if "loss" in dataset and "time" in dataset["loss"].dims else None
    if loss is not None:
        loss = loss.median([dim for dim in loss.dims if dim != "time"])
    terminal.saved(
        console(), about, None if loss is None else loss["time"].values, None if loss is None else loss.values
    )
    if claims is not None:
        terminal.claims(console(), Table.read(claims), ())


def _show_unfinished(entry: "Entry", as_json: bool) -> None:
    """What there is of a run that is not finished: its specification and the end of its log."""
    from tutelage.present import terminal

    log = entry.folder / "log"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:] if log.is_file() else []
    if as_json:
        print_json(_about(entry) | {"settings": entry.spec["settings"], "log": lines})
        return
    terminal.entries(console(), _about(entry), "Run")
    terminal.entries(console(), entry.spec["settings"], "Settings")
    typer.echo("\n".join(["The end of its log:", *lines, ""]))
    if entry.state == "unfinished":
        typer.echo("It is not finished; `tutelage run` with the same settings goes on with it.")


def _show_sweep(entry: "Entry", drawn: "Drawn", as_json: bool) -> None:
    from tutelage._plain import some
    from tutelage.present import sweep_tables, terminal
    from tutelage.study.sweep_result import Sweep

    done = Sweep.read(entry)
    if as_json:
        print_json(sweep_tables.record(done, {}))
    else:
        terminal.entries(console(), _about(entry) | entry.summary, "Sweep")
        sweep_tables.tables(console(), done)
        missing = int((~done.dataset["done"].values).sum())
        if missing:
            cells = some(done.dataset["done"].size, "cell")
            typer.echo(f"{missing} of {cells} have no result; `tutelage sweep` with the same settings computes them.")
    for path in sweep_tables.draw(done, {}, drawn.figure, width=drawn.width) if drawn.wanted else ():
        tell_aside(path)
        if drawn.opened:
            _opened(path)


class Drawn(NamedTuple):
    """Which picture is wanted: into a file, as wide as a column, and to be opened."""

    figure: Path | None
    width: float | None
    opened: bool

    @property
    def wanted(self) -> bool:
        return bool(self.figure or self.opened)


def _picture(dataset: "xr.Dataset", title: str, drawn: Drawn, entry: "Entry | None") -> None:
    """Draw the overview into a file, and open one in the run's folder (or a new one) if asked to."""
    if not drawn.wanted:
        return
    from tutelage.present import figures
    from tutelage.present.overview import overview

    sheet = overview(dataset, title)
    if drawn.figure:
        figures.save(sheet, drawn.figure, drawn.width)
        tell_aside(drawn.figure)
    if drawn.opened:
        import tempfile

        from tutelage._files import writing

        path = (entry.folder if entry else Path(tempfile.mkdtemp())) / "overview.png"
        with writing(path):
            figures.save(sheet, path, drawn.width)
        tell_aside(path)
        _opened(path)


def tell_aside(path: Path) -> None:
    """Say on stderr where a picture is, so that JSON on stdout stays pure."""
    typer.echo(f"Written: {path}", err=True)


def _opened(path: Path) -> None:
    import webbrowser

    if not webbrowser.open(path.resolve().as_uri()):
        typer.echo("tutelage: no viewer was found; open that file by hand.", err=True)
