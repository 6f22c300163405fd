"""One self-contained HTML page of figures, claims, parameters, certificates, timings and versions; no scripts."""

import base64
import datetime
import html
import os
import re
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from tutelage._files import deliver
from tutelage._plain import duration, number, plain, some
from tutelage.analysis.certificates import Certificate
from tutelage.analysis.claims import Checked
from tutelage.present.reproduction import DrawnFigure, PaperResult
from tutelage.present.settings_table import parameters
from tutelage.present.versions import machine, versions
from tutelage.trajectory.findings import Kind, tally


def write(results: Sequence[PaperResult], path: str | Path, *, seconds: float | None = None) -> Path:
    """Write the report of these results; links to data files are relative to it.

    `seconds`: what all of them took; if not given, that of one after another.
    """
    path = Path(path)
    content = page(results, path.parent, seconds)
    deliver(path, lambda part: part.write_text(content, encoding="utf-8"))
    return path


def page(results: Sequence[PaperResult], folder: Path, seconds: float | None = None) -> str:
    """The whole page as text; `folder` is where it will stand."""
    css = resources.files("tutelage.present").joinpath("report.css").read_text(encoding="utf-8")
    body = [_header(results, seconds), *(_paper(result, folder) for result in results), _footer()]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>tutelage: reproduction report</title>\n<style>\n{css}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


# ---- pieces of text


def text(value: Any) -> str:
    """Escaped text, in which `code` is set as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(str(value), quote=True))


def _table(head: Sequence[str], rows: Iterable[str]) -> str:
    top = "".join(f"<th>{text(cell)}</th>" for cell in head)
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _row(*cells: str) -> str:
    """A row of cells that are HTML already."""
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _details(summary: str, inside: str) -> str:
    return f"<details><summary>{text(summary)}</summary>{inside}</details>"


# ---- header and footer


def _header(results: Sequence[PaperResult], seconds: float | None) -> str:
    broken = sum(len(result.table.broken) for result in results)
    crashed = sum(len(result.crashes) for result in results)
    wrong = [some(broken, "claim") + " that must hold failed"] * bool(broken)
    wrong += [some(crashed, "part") + " crashed"] * bool(crashed)
    doubted = sum(result.certificate is not None and not result.certificate.ok for result in results)
    wrong += [some(doubted, "certificate") + " disagreed"] * bool(doubted)
    checked = sum(len(result.table) for result in results)
    right = "Every claim that must hold does." if checked else "Everything asked for was drawn."
    line, tone = ("; ".join(wrong) + ".", "bad") if wrong else (right, "good")
    if coming := sum(len(result.coming) for result in results):
        made_now = f"{some(coming, 'part')} still to come: this page is written again as they are made."
        line, tone = f"{line} {made_now}" if wrong else made_now, "bad" if wrong else "quiet"
    made = {
        "made": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "tutelage": versions()["tutelage"],
        "size": ", ".join(dict.fromkeys(result.size for result in results)),
        "took": duration(sum(result.seconds for result in results) if seconds is None else seconds),
    } | machine()
    facts = "".join(f"<span>{text(name)}: {text(value)}</span> " for name, value in made.items())
    return (
        "<header><h1>Reproduction report</h1>"
        "<p>Figures computed again and claims measured again, each measured value beside its bound. "
        "The numbers of every figure are in the NetCDF file linked under it.</p>"
        f'<p class="facts">{facts}</p><p class="verdict-line {tone}">{text(line)}</p>{_contents(results)}</header>'
    )


def _contents(results: Sequence[PaperResult]) -> str:
    items = "".join(
        f'<li><a href="#{text(r.paper.name)}">{text(r.paper.title)}</a> '
        f'<span class="quiet">{some(len(r.figures), "figure")}, {some(len(r.table), "claim")}</span></li>'
        for r in results
    )
    return f"<nav><ul>{items}</ul></nav>"


def _footer() -> str:
    rows = [_row(text(name), text(version)) for name, version in versions().items()]
    note = "Verdicts: a claim <em>holds</em> or <em>fails</em> by measurement; it is <em>undecided</em> when the "
    note += "interval of what was sampled has the bound in it, <em>not applicable</em> when a hypothesis of it is not "
    note += "met, and <em>not reached</em> when the run ended before it could be judged."
    return f"<footer>{_details('Versions', _table(('package', 'version'), rows))}<p>{note}</p></footer>"


# ---- one paper


def _paper(result: PaperResult, folder: Path) -> str:
    paper = result.paper
    parts = [
        f'<section><h2 id="{text(paper.name)}">{text(paper.title)}</h2>',
        f'<p class="quiet">{text(paper.authors)}. {text(paper.reference)}</p>',
        f"<p>{text(paper.summary)}</p>",
        _crashes(result),
        _coming(result),
        _claims(result),
        _figures(result.figures, folder),
        _certificate(result.certificate),
        _parameters(result),
        _timings(result),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _crashes(result: PaperResult) -> str:
    if not result.crashes:
        return ""
    items = "".join(
        _details(f"{crash.what}: {crash.message}", f"<pre>{html.escape(crash.trace)}</pre>") for crash in result.crashes
    )
    line = some(len(result.crashes), "part") + " crashed and could not be shown."
    return f'<h3>Crashes</h3><p class="verdict-line bad">{line}</p>{items}'


def _coming(result: PaperResult) -> str:
    return f'<p class="quiet">Still to come: {text(", ".join(result.coming))}.</p>' if result.coming else ""


def _claims(result: PaperResult) -> str:
    if not len(result.table):
        return ""
    head = ("claim", "statement", "verdict", "measured", "", "bound", "seeds")
    counts = " ".join(
        f'<span class="badge {verdict.replace(" ", "-")}">{text(tally(verdict, count))}</span>'
        for verdict, count in result.counts().items()
    )
    note = f"{result.table.sentence} A claim that fails is shown as measured; it is an alarm, and red, only where it "
    note += "is an identity, or proved with explicit constants."
    rows = [_claim(row) for row in result.table.rows]
    return f'<h3>Claims</h3><p class="counts">{counts}</p><p class="quiet">{note}</p>{_table(head, rows)}'


def _claim(row: Checked) -> str:
    claim, finding = row.claim, row.finding
    kind = "" if claim.kind is Kind.PAPER else f' <span class="badge new">{text(claim.kind.value)}</span>'
    cells = [
        f'<td class="id">{text(claim.id)}<span class="quiet">{text(claim.where)}</span></td>',
        f'<td class="what">{text(claim.statement)}{kind}{_quiet(claim.setting, tone="quiet setting")}'
        f"{_quiet(finding.detail, *(each.sentence for each in finding.hypotheses), claim.explanation)}"
        f"{_quiet(*(each.sentence for each in row.settled))}"
        f"{_quiet(claim.reading and f'Our reading: {claim.reading}')}</td>",
        f"<td>{_badge(row)}</td>",
        f'<td class="number">{number(finding.measured)}</td>',
        f"<td>{text(_sign(finding.relation)) if finding.bound is not None else ''}</td>",
        f'<td class="number">{number(finding.bound)}</td>',
        f'<td class="number">{_seeds(row)}</td>',
    ]
    alarm = ' class="alarm"' if row.broken else ""
    return f"<tr{alarm}>{''.join(cells)}</tr>"


def _quiet(*sentences: str, tone: str = "quiet") -> str:
    return "".join(f'<span class="{tone}">{text(sentence)}</span>' for sentence in sentences if sentence)


def _badge(row: Checked) -> str:
    verdict = row.finding.verdict
    tone = "broken" if row.broken else verdict.value.replace(" ", "-")
    label = f"{row.outcome}, must hold" if row.broken else row.outcome
    other = f"expected: {row.claim.expected.value}" if verdict is not row.claim.expected else ""
    return f'<span class="badge {tone}">{text(label)}</span>{_quiet(other)}'


def _sign(relation: str) -> str:
    return {"<=": "≤", ">=": "≥"}.get(relation, relation)


def _seeds(row: Checked) -> str:
    finding = row.finding
    if not finding.seeds:
        return "–"
    done = f"{finding.successes}/{finding.seeds}" if finding.successes is not None else str(finding.seeds)
    if finding.interval is None:
        return done
    low, high, level = finding.interval.low, finding.interval.high, finding.interval.level
    return done + _quiet(f"[{number(low, 3)}, {number(high, 3)}] at {100 * level:g}%")


def _figures(drawn: Sequence[DrawnFigure], folder: Path) -> str:
    return "<h3>Figures</h3>" + "".join(_figure(each, folder) for each in drawn) if drawn else ""


def _figure(drawn: DrawnFigure, folder: Path) -> str:
    image = drawn.png.read_bytes()
    picture = base64.b64encode(image).decode("ascii")
    # The header of a PNG holds its width; two thirds of a CSS pixel a dot sets the type in the size of the page's own.
    width = round(int.from_bytes(image[16:20], "big") * 0.68)
    data = Path(os.path.relpath(drawn.netcdf, folder)).as_posix()
    new = ' <span class="badge new">new here</span>' if drawn.figure.ours else ""
    return (
        f'<figure id="{text(drawn.figure.id)}">'
        f'<img width="{width}" alt="{text(drawn.figure.title)}" src="data:image/png;base64,{picture}">'
        f"<figcaption><strong>{text(drawn.figure.title)}.</strong>{new} {text(drawn.sheet.caption)} "
        f'<a href="{text(data)}">data (NetCDF)</a> <span class="quiet">computed in {duration(drawn.seconds)}</span>'
        "</figcaption></figure>"
    )


def _certificate(certificate: Certificate | None) -> str:
    if certificate is None:
        return ""
    tone = "good" if certificate.ok else "bad"
    head = ("what", "by", "reported", "found again", "difference", "allowed", "agrees")
    rows = [
        _row(text(check.what), text(check.route), number(check.reported, 8), number(check.independent, 8),
             number(check.difference, 2), number(check.tolerance, 2), "yes" if check.agrees else "<strong>no</strong>")
        for check in certificate.rows
    ]  # fmt: skip
    notes = "".join(f'<p class="quiet">{text(note)}</p>' for note in certificate.notes)
    return (
        "<h3>Certificate</h3><p>Numbers of the paper's default run, computed again by routes that share nothing with "
        f'the first.</p><p class="verdict-line {tone}">{text(certificate.sentence)}</p>{_table(head, rows)}{notes}'
    )


def _parameters(result: PaperResult) -> str:
    chosen = result.settings.model_dump()
    rows = [
        _row(f"<code>{text(p.name)}</code>", text(number(plain(chosen[p.name]))), text(number(plain(p.default))),
             text(p.bounds), text(p.description))
        for p in parameters(type(result.settings))
    ]  # fmt: skip
    return _details("Parameters", _table(("name", "value", "default", "bounds", "what it is"), rows))


def _timings(result: PaperResult) -> str:
    parts = [(f"figure {drawn.figure.id}", drawn.seconds) for drawn in result.figures]
    parts += [(f"claim {row.claim.id}", row.seconds) for row in result.table.rows]
    rows = [_row(text(name), duration(took)) for name, took in sorted(parts, key=lambda part: -part[1])]
    total = _row("<strong>all</strong>", f"<strong>{duration(result.seconds)}</strong>")
    return _details("Timings", _table(("part", "time"), [total, *rows]))
