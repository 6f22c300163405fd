"""A plain table for a terminal."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid


def grid(console: Console, title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a plain table under its title; cells may carry rich markup, so text of others must be escaped before."""
    table = Grid(*head, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=any(head))
    for row in rows:
        table.add_row(*row)
    if table.rows:
        console.print(f"[bold]{escape(title)}[/]" if title else "", table, "", sep="\n")
