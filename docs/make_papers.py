"""Writes docs/papers/NAME-reference.md from each paper's settings, figures and claims."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tutelage import papers
from tutelage._plain import number, plain
from tutelage.present.settings_table import parameters
from tutelage.present.terminal import spent
from tutelage.study import Study

FOLDER = Path(__file__).parent / "papers"


def cell(text: object) -> str:
    """Text that cannot break a table; what stands between backticks is code already."""
    parts = " ".join(str(text).split()).replace("|", "\\|").split("`")
    parts[::2] = [re.sub(r"([*_])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def code(text: str) -> str:
    return f"`{text}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def page(paper: Study) -> str:
    settings = [
        (code(p.name), cell(p.kind), cell(number(plain(p.default))), cell(p.bounds), cell(p.description))
        for p in parameters(paper.settings)
    ]
    figures = [(code(f.id), cell(f.title), "new here" if f.ours else "") for f in paper.figures]
    measures = [(code(m.name), m.kind, cell(m.long_name), "has a law" if m.law else "") for m in paper.measures]
    diagrams = [(code(d.id), cell(d.title)) for d in paper.diagrams]
    claims = [
        (cell(c.id), cell(c.where), cell(c.statement), c.kind.value, "yes" if c.must_hold else "", c.expected.value)
        for c in paper.claims
    ]
    presets = [
        (code(name), cell(", ".join(f"{k}={plain(v)}" for k, v in values.items())), spent(paper.takes.get(name)))
        for name, values in paper.presets.items()
    ]
    note = "`tutelage run` takes `short` if nothing is set; if something is, all else is the default.\n"
    note = note if "short" in paper.presets else ""
    return f"""# {paper.name}: settings, figures and claims

<!-- Made by docs/make_papers.py (`make pages`); do not edit. -->

{paper.title}. {paper.authors}.

## Settings

Set with `--set name=value` on the command line, or `papers.get("{paper.name}").configure({{...}})` in Python.

{table(("name", "kind", "default", "bounds", "what it is"), settings)}

## Presets

Chosen with `--preset name`; what they do not name is the default. Times are of eight seeds on two cores, without
compilation.
{note}
{table(("name", "settings", "takes"), presets)}

## Figures

`tutelage reproduce {paper.name}/NAME` makes one.

{table(("name", "title", ""), figures)}

## Measures

`tutelage sweep {paper.name} --over ... --measure NAME` keeps one of each seed, beside those that
[any run has](../sweeps.md#what-can-be-measured).

{table(("name", "kind", "what it is", ""), measures)}

## Phase diagrams

`tutelage diagram {paper.name} NAME` makes one.

{table(("name", "title"), diagrams)}

## Claims

`tutelage check {paper.name} --only ID` checks one. [What the kinds mean](../concepts.md#claims-and-certificates). *Must
hold*: identities, and statements proved with explicit constants. *Expected* is the verdict known from earlier
measurements; it never changes the one that is measured.

{table(("id", "where", "statement", "kind", "must hold", "expected"), claims)}
"""


def pages() -> dict[Path, str]:
    """The pages by their places."""
    return {FOLDER / f"{name}-reference.md": page(papers.get(name)) for name in papers.names()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
