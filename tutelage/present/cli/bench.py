"""The command that measures speed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tutelage.present.cli.options import Json, Quiet, console, named, print_json, tell

if TYPE_CHECKING:
    from rich.console import Console


def bench(
    cases: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CASE",
            help="Which cases, of those that --list shows; default: all.",
        ),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show the cases and measure nothing.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes, to see that all works; its figures say nothing.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=named,
            metavar="FILE.json",
            help="Where the results go; default: benchmarks/results/DATE.json, or nowhere if quick or not all cases.",
        ),
    ] = None,
    repeat: Annotated[int | None, typer.Option(metavar="N", min=1, help="Rounds; default: 5, or 2 if quick.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure speed beside JAX, diffrax, SciPy, PyTorch and NumPy.

    They are written as one writes them by hand. Entries of a contest are first compared, and timed only if they
    computed the same thing; then in turn, several times, with first calls in processes of their own. PyTorch and
    torchdiffeq are optional (pip install 'tutelage[bench]'). All cases take about twenty minutes; do nothing else on
    the machine meanwhile. What was measured is kept contest by contest. The exit code is 1 if results differ or a case
    did not come to its end.

    \b
    Example:
      tutelage bench flow descent --repeat 3 --out bench.json
    """
    from tutelage.bench.cases import chosen
    from tutelage.bench.results import troubles
    from tutelage.bench.runner import bench as measured
    from tutelage.bench.runner import usual_file
    from tutelage.present.progress import Progress

    names = chosen(cases or ())
    if listed:
        return _list(names, as_json)
    place = usual_file() if out is None and not quick and not cases else out
    with Progress(quiet=quiet, title="measuring") as progress:
        found = measured(cases or (), quick=quick, repeat=repeat, out=place, told=progress.tell)
    if as_json:
        print_json(found)
    elif not quiet:
        _show(console(), found)
        tell(*filter(None, [place]))
    if troubles(found):
        raise typer.Exit(1)


def _list(names: list[str], as_json: bool) -> None:
    """The cases, and what is compared in each."""
    from rich.markup import escape

    from tutelage.bench.cases import get
    from tutelage.present.terminal import grid

    known = {name: get(name) for name in names}
    held = {name: [contest.name for contest in case.contests(False)] for name, case in known.items()}
    if as_json:
        print_json({name: {"title": case.title, "contests": held[name]} for name, case in known.items()})
        return
    rows = [(name, escape(case.title), str(len(held[name]))) for name, case in known.items()]
    grid(console(), "Cases", ("case", "about", "contests"), rows)


def _show(screen: "Console", found: dict[str, Any]) -> None:
    """Tables of later and first calls, of growth, and what is missing."""
    from rich.markup import escape

    from tutelage.bench import results
    from tutelage.present.terminal import grid

    later = [
        (row.case, escape(row.contest), results.ranged(row.ours), row.peer, results.ranged(row.theirs),
         f"{row.ratio:.3g}", "" if row.goal is None else f"{row.goal:g}", escape(row.verdict))
        for row in results.rows(found)
    ]  # fmt: skip
    head = ("case", "contest", "tutelage", "compared with", "takes", "ratio", "goal", "")
    grid(screen, "Later calls, for a unit of work: median and quartiles", head, later)
    first = [
        (row.case, escape(row.contest), results.spoken(row.ours["seconds"]), results.spoken(row.ours["cached"]),
         str(row.ours["programs"]), row.peer, results.spoken(row.theirs["seconds"]), row.verdict)
        for row in results.first_rows(found)
    ]  # fmt: skip
    head = ("case", "contest", "tutelage", "from its cache", "programs", "compared with", "takes", "")
    grid(screen, "First calls, in a new process", head, first)
    grown = [
        (row["name"], f"{row['exponent']:.2f}", " to ".join(dict.fromkeys(f"{each:g}" for each in row["expected"])))
        for row in found["cases"].get("growth", {}).get("growth", ())
    ]
    grid(screen, "How cost grows", ("with", "exponent", "expected"), grown)
    for line in (*results.left_out(found), *results.troubles(found)):
        screen.print(escape(line))
