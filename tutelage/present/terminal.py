"""Tables for a terminal. Every function takes plain values and prints to the given console."""

import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from tutelage._plain import duration, number, plain
from tutelage.papers.cards import Card
from tutelage.present.reproduction import Crash
from tutelage.present.settings_table import parameters
from tutelage.present.sparkplot import sparkplot
from tutelage.rigour.standing import Settled
from tutelage.trajectory.findings import Checked, Kind, Table, Verdict

if TYPE_CHECKING:
    from tutelage.study.study import Study

_COLOURS = {
    Verdict.HOLDS: "green",
    Verdict.FAILS: "yellow",
    Verdict.UNDECIDED: "magenta",
    Verdict.NOT_APPLICABLE: "bright_black",
    Verdict.NOT_REACHED: "blue",
}


def grid(console: Console, title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a plain table under its title; cells may carry rich markup, so text of others must be escaped before."""
    table = Grid(*head, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=any(head))
    for row in rows:
        table.add_row(*row)
    if table.rows:
        console.print(f"[bold]{escape(title)}[/]" if title else "", table, "", sep="\n")


def papers(console: Console, known: Sequence[Card]) -> None:
    """What there is, one line per study."""
    rows = [(f"[bold]{p.name}[/]", escape(p.title), str(p.figures), str(p.claims)) for p in known]
    grid(console, "", ("paper", "title", "figures", "claims"), rows)


def paper(console: Console, known: "Study") -> None:
    """One study: summary, settings, presets, figures, measures and claims."""
    source = ". ".join(filter(None, (known.authors, known.reference)))
    for text in (f"[bold]{escape(known.title)}[/]" + f"\n{escape(source)}" * bool(source), escape(known.summary)):
        if text:
            console.print(text + "\n")
    rows = [
        (f"[bold]{p.name}[/]", escape(p.kind), number(plain(p.default)), p.bounds, escape(p.description))
        for p in parameters(known.settings)
    ]
    grid(console, "Settings (--set name=value)", ("setting", "kind", "default", "bounds", "what it is"), rows)
    if known.presets:
        chosen = [
            (f"[bold]{name}[/]", escape(", ".join(f"{k}={v}" for k, v in values.items())), spent(known.takes.get(name)))
            for name, values in known.presets.items()
        ]
        grid(console, "Presets (--preset name)", ("preset", "settings", "takes"), chosen)
    console.print(f"Dynamics (--dynamics name): {', '.join(known.dynamics)}.\n")
    drawn = [(f"[bold]{f.id}[/]", escape(f.title), "new here" if f.ours else "") for f in known.figures]
    grid(console, "Figures", ("figure", "title", ""), drawn)
    kept = [(f"[bold]{m.name}[/]", m.kind, escape(m.long_name), "has a law" if m.law else "") for m in known.measures]
    grid(console, "Measures (sweep --measure name)", ("measure", "kind", "what it is", ""), kept)
    mapped = [(f"[bold]{d.id}[/]", escape(d.title)) for d in known.diagrams]
    grid(console, f"Phase diagrams (tutelage diagram {known.name} name)", ("diagram", "title"), mapped)
    stated = [(f"[bold]{c.id}[/]", escape(c.where), escape(c.statement)) for c in known.claims]
    grid(console, "Claims", ("claim", "where", "statement"), stated)


def spent(seconds: float | None, words: str = "{}") -> str:
    """How long a run of eight seeds takes on two cores, in words; nothing if nobody has measured it.

    ```python
    >>> from tutelage.present.terminal import spent
    >>> spent(90, "it takes {}"), spent(None, "it takes {}")
    ('it takes about 1 min 30 s', '')

    ```
    """
    return "" if seconds is None else words.format(f"about {duration(seconds)}")


def claims(console: Console, table: Table, crashes: Sequence[Crash], *, details: bool = False) -> None:
    """The checked claims and their count, with `details` also what was seen of each, in words."""
    head = ("claim", "verdict", "measured", "bound", "seeds", "statement")
    grid(console, "", head, [_claim(row) for row in table.rows])
    for row in table.rows:
        if details and row.finding.detail:
            console.print(f"[bold]{row.claim.id}[/] {escape(row.finding.detail)}")
    console.print(table.sentence)
    for row in table.broken:
        console.print(f"[red]{row.claim.id} must hold and fails.[/] {escape(row.finding.detail)}")
    for crash in crashes:
        console.print(f"[red]{escape(crash.what)} crashed:[/] {escape(crash.message)}")


def _claim(row: Checked) -> tuple[str, ...]:
    finding = row.finding
    colour = "red" if row.broken else _COLOURS[finding.verdict]
    bound = f"{finding.relation} {number(finding.bound)}" if finding.bound is not None else "–"
    seeds = f"{finding.successes}/{finding.seeds}" if finding.successes is not None else str(finding.seeds or "–")
    if finding.interval is not None:
        seeds += escape(f" [{finding.interval.low:.2f}, {finding.interval.high:.2f}]")
    mine = "" if row.claim.kind is Kind.PAPER else f" [dim]({row.claim.kind.value})[/]"
    unmet = "".join(f" [dim]Not met: {escape(each.words)}.[/]" for each in finding.hypotheses if not each.met)
    proofs = "".join(f" [dim]{escape(_by(each))}[/]" for each in row.settled)
    verdict = f"[{colour}]{row.outcome}[/]"
    return (
        f"[bold]{row.claim.id}[/]",
        verdict,
        number(finding.measured),
        bound,
        seeds,
        escape(row.claim.statement) + mine + unmet + proofs,
    )


def _by(settled: Settled) -> str:
    """Which proof says what, without its words."""
    note = f" ({settled.note})" if settled.note else ""
    return f"{settled.standing.value.capitalize()}{note} by {settled.proof}."


def entries(console: Console, values: dict[str, Any], title: str = "") -> None:
    """A dictionary as lines of `name value`; lists of dictionaries follow as tables of their own."""
    tables = {name: value for name, value in plain(values).items() if _tabular(value)}
    rest = [(_spoken(name), inline(value)) for name, value in values.items() if name not in tables]
    grid(console, title, ("", ""), [(f"[bold]{escape(name)}[/]", escape(value)) for name, value in rest])
    for name, rows in tables.items():
        rows = over_seeds(rows)
        keys = list(dict.fromkeys(key for row in rows for key in row))
        cells = [[escape(inline(row.get(key))) for key in keys] for row in rows]
        grid(console, _spoken(name).capitalize(), [_spoken(key) for key in keys], cells)


def over_seeds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that repeat for every seed, made one row per name: the median of each number, and how many seeds had it.

    ```python
    >>> from tutelage.present.terminal import over_seeds
    >>> over_seeds([{"name": "growth", "seed": s, "end": 10.0 + s} for s in range(3)])
    [{'name': 'growth', 'end': 11.0, 'seeds': 3}]

    ```
    """
    if not all("seed" in row and "name" in row for row in rows):
        return rows
    merged = []
    for name in dict.fromkeys(row["name"] for row in rows):
        same = [row for row in rows if row["name"] == name]
        columns = {key: [row[key] for row in same] for key in same[0] if key != "seed"}
        middle = {key: _middle(values) for key, values in columns.items() if any(v is not None for v in values)}
        merged.append(middle | {"seeds": len(same)})
    return merged


def _middle(values: list[Any]) -> Any:
    numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return statistics.median(numbers) if numbers else values[0]


def _tabular(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def inline(value: Any) -> str:
    """A value on one line.

    ```python
    >>> from tutelage.present.terminal import inline
    >>> inline({"median": 0.25, "count": 8})
    'median 0.25, count 8'
    >>> inline({"slope": -3.0, "error": 0.01, "points": 40})
    '-3 ± 0.01'

    ```
    """
    value = plain(value)
    if isinstance(value, dict) and {"slope", "error"} <= value.keys():  # a fitted line
        return f"{number(value['slope'])} ± {number(value['error'])}"
    if isinstance(value, dict):
        return ", ".join(f"{_spoken(name)} {inline(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(inline(each) for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value)


def saved(console: Console, about: dict[str, Any], time: Any, loss: Any) -> None:
    """What a saved run holds, with a small plot of its loss."""
    for title in ("settings", "paper_settings", "provenance"):
        entries(
            console,
            about[title] if isinstance(about[title], dict) else {title: about[title]},
            _spoken(title).capitalize(),
        )
    if about["stopped"]:
        stops = [(str(s["seeds"]), f"[bold]{s['reason']}[/]", escape(s["sentence"])) for s in about["stopped"]]
        grid(console, "Stopped", ("seeds", "stopped", "why"), stops)
    entries(console, {name: about[name] for name in ("phases", "certificate") if about[name]})
    rows = [
        (f"[bold]{name}[/]", number(v["min"]), number(v["median"]), number(v["max"]), escape(v["units"]),
         escape(v["long_name"]))
        for name, v in about["final"].items()
    ]  # fmt: skip
    grid(console, "Last recorded values", ("variable", "least", "median", "largest", "units", "what it is"), rows)
    if time is not None and loss is not None:
        console.print(sparkplot(time, loss, title="Loss, median over seeds"), highlight=False, markup=False)
