"""The commands for many runs: a sweep over settings, and the phase diagrams of a study."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tutelage._errors import BadInput, unknown
from tutelage._plain import some
from tutelage.present.cli import completion
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
    print_json,
    stoppable,
    tell,
    writable,
)

if TYPE_CHECKING:
    from tutelage.study.sweep_result import Sweep

Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Send the cells to this Dask scheduler, such as tcp://host:8786.")
]
Processes = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Processes on this machine; default: as many as it has cores.")
]


def sweep(
    study: StudyName,
    over: Annotated[
        list[str],
        typer.Option("--over", metavar="NAME=VALUES", help="A setting to sweep: a,b,c or low..high:count; may be "
                     "repeated.", autocompletion=completion.settings),
    ],
    measure: Annotated[
        list[str],
        typer.Option("--measure", metavar="NAMES", help="What to keep of each seed: names with commas between, such as "
                     "final_loss, claim:ID or own.py:function; `tutelage papers STUDY` lists a study's own.",
                     autocompletion=completion.measures),
    ],
    sets: Sets = None,
    preset: Preset = None,
    seeds: Seeds = 8,
    dynamics: Dynamics = None,
    fit: Annotated[bool, typer.Option("--fit", help="Fit laws to each measure.")] = False,
    law: Annotated[
        str | None,
        typer.Option(metavar="LAW", help="Fit this law too, and say whether it is rejected: power, exponential, "
                     "logarithmic, sqrt, linear, constant."),
    ] = None,
    design: Annotated[
        Literal["grid", "random", "sobol"], typer.Option(help="Every combination, or points in the ranges.")
    ] = "grid",
    points: Annotated[int | None, typer.Option(metavar="N", min=1, help="Points of a random or sobol design.")] = None,
    scheduler: Scheduler = None,
    processes: Processes = None,
    figure: FigureFile = None,
    folder: StoreFolder = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Run a study over many settings, and fit laws to what it measures.

    Only what the store does not have is computed. Ctrl-C stops it; the same command goes on from there.

    \b
    Example:
      tutelage sweep soft_moe --set init=orthonormal --over dim=1e3..1e8:11 --seeds 32 --measure recovery_time --fit
    """
    from tutelage.analysis.scaling.laws import LAWS
    from tutelage.study.study import Experiment

    if law is not None and law not in LAWS:
        raise unknown("law", law, LAWS)
    chosen, settings, _ = configured(study, sets, preset)
    writable(None, figure)
    options: dict[str, Any] = {
        "over": _over(over),
        "measure": measure,
        "design": design,
        "points": points,
        "dynamics": dynamics,
    }
    done = _swept(Experiment(chosen, settings), options | {"seeds": seeds}, folder, scheduler, processes, quiet)
    report(done, figure, fit=fit or law is not None, law=law, as_json=as_json, quiet=quiet)


def diagram(
    study: StudyName,
    name: Annotated[
        str | None, typer.Argument(metavar="[DIAGRAM]", help="Name of the diagram; default: the first.")
    ] = None,
    full: Annotated[bool, typer.Option("--full/--quick", help="Many cells and seeds, or few.")] = False,
    seeds: Annotated[int | None, typer.Option("--seeds", metavar="N", min=1, help="Seeds of a cell.")] = None,
    scheduler: Scheduler = None,
    processes: Processes = None,
    figure: FigureFile = None,
    folder: StoreFolder = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compute a phase diagram, a measure over two settings.

    \b
    Example:
      tutelage diagram both_layers --quick --figure success.png
    """
    from tutelage.study.registry import get

    chosen = get(study)
    if not chosen.diagrams:
        raise BadInput(
            f"{chosen.name} has no phase diagrams; `tutelage sweep {study}` makes one over any two settings."
        )
    which = chosen.diagram(name) if name else chosen.diagrams[0]
    writable(None, figure)
    size: Literal["quick", "full"] = "full" if full else "quick"
    options: dict[str, Any] = {"over": which.over[size], "measure": which.measure, "dynamics": which.dynamics}
    options["seeds"] = seeds or which.seeds[size]
    done = _swept(chosen(**which.settings), options, folder, scheduler, processes, quiet)
    report(done, figure, as_json=as_json, quiet=quiet, title=which.title)


def report(
    done: "Sweep",
    figure: Path | None,
    *,
    fit: bool = False,
    law: str | None = None,
    as_json: bool = False,
    quiet: bool = False,
    title: str | None = None,
) -> None:
    """Print a sweep with the laws that describe it if asked to, and draw it: into `figure`, or into its folder."""
    from tutelage.present import sweep_tables

    chosen = {name: done.choices(name, law=law) for name in done.fitted()} if fit else {}
    paths = sweep_tables.draw(done, chosen, figure, title)
    if as_json:
        print_json(sweep_tables.record(done, chosen) | {"figures": paths})
    elif not quiet:
        sweep_tables.tables(console(), done)
        for sentence in sweep_tables.sentences(chosen):
            typer.echo(sentence)
        tell(*paths)
    for where, why in done.failed.items():
        typer.echo(f"tutelage: {where} failed: {why}", err=True)
    if done.failed:
        typer.echo(f"tutelage: {some(len(done.failed), 'cell')} failed; the same command tries again.", err=True)
        raise typer.Exit(1)


def _over(texts: list[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.rpartition("="))
        if not (name and equals and values):
            raise BadInput(f"--over {text!r} is not of the form name=values; write for example --over dim=1e2..1e8:13.")
        found[name] = values
    return found


def _swept(
    experiment: Any,
    options: dict[str, Any],
    folder: Path | None,
    scheduler: str | None,
    processes: int | None,
    quiet: bool,
) -> "Sweep":
    from tutelage.present.progress import Progress
    from tutelage.study.cluster import connect
    from tutelage.study.sweep import sweep as swept
    from tutelage.study.sweep_result import CellsFailed

    client = connect(scheduler) if scheduler else None
    with (
        Progress(quiet=quiet, title=f"sweeping {experiment.study.name}") as progress,
        stoppable(),
        warnings.catch_warnings(),
    ):
        where: dict[str, Any] = {"store": folder, "client": client, "processes": processes}
        warnings.simplefilter("ignore", CellsFailed)  # `report` says it
        return swept(experiment, **options, **where, progress=progress, told=progress.tell)
