"""Fills the pages of papers with what was recorded: counts, tables of verdicts, statements, captions under pictures.

A page has places for them, between comments: `<!-- record -->`, `<!-- verdicts -->` and `<!-- statements -->`, each up
to its `<!-- /... -->`. A caption is the paragraph in italics after a picture.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tutelage import papers
from tutelage._plain import number
from tutelage.rigour import Standing
from tutelage.rigour.standing import standing
from tutelage.trajectory.findings import PLURAL, Claim, Kind, Verdict

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "benchmarks" / "results"
PICTURE = re.compile(r"^(!\[[^\]]*\]\([./]*images/(\w+)/(\w+)\.png\))\n(?:\n\*(?!\*)(?:.+\n)+)?", re.M)
BAD = (Verdict.FAILS, Verdict.UNDECIDED, Verdict.NOT_APPLICABLE, Verdict.NOT_REACHED)
TOLD = {
    Kind.PAPER: "Statements of the paper that do not hold, or could not be judged",
    Kind.READING: "Our readings of statements that leave a constant or a size open",
    Kind.SLIP: "Misprints: the print as it stands, and the claim of the corrected statement",
    Kind.OURS: "Our own predictions that did not come true",
}

Row = dict[str, Any]


@cache
def record(paper: str) -> Row:
    """What `benchmarks/record.py` kept."""
    found: Row = json.loads((RESULTS / f"{paper}_full.json").read_text(encoding="utf-8"))
    return found


@cache
def findings(paper: str) -> dict[str, Row]:
    return {row["id"]: row for row in record(paper)["papers"][paper]}


@cache
def statements(paper: str) -> tuple[Row, ...]:
    """Every numbered statement of the paper, with its claims or the reason why it has none."""
    path = DOCS / "statements" / f"{paper}.toml"
    return tuple(tomllib.loads(path.read_text(encoding="utf-8"))["statement"]) if path.is_file() else ()


def cell(text: str) -> str:
    """Words that cannot break a table, nor begin or end emphasis."""
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    parts[::2] = [re.sub(r"([*_\[\]])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


# ---- the three places


def recorded(paper: str) -> str:
    """When and by which code, and how many statements of which kind have which verdict."""
    about, found = record(paper), findings(paper)
    claims = [claim for claim in papers.get(paper).claims if claim.id in found]
    verdicts = [verdict for verdict in Verdict if any(found[claim.id]["verdict"] == verdict for claim in claims)]
    rows = []
    for kind in Kind:
        of_kind = [found[claim.id]["verdict"] for claim in claims if claim.kind is kind]
        if of_kind:
            rows.append([PLURAL[kind], *(str(of_kind.count(verdict) or "") for verdict in verdicts)])
    must = [claim for claim in claims if claim.must_hold]
    broken = [claim.id for claim in must if found[claim.id]["verdict"] == Verdict.FAILS]
    commit = f", commit {about['commit']}" if about.get("commit") else ""
    first = f"The numbers on this page are from `{about['command']}`, run on {about['date']} on two cores{commit}. "
    first += f"Every claim with its measured value is in `benchmarks/results/{paper}_full.json`."
    last = f"Of the claims {len(must)} are identities, or proved with explicit constants; "
    last += f"{', '.join(broken)} of them fail." if broken else "none of them fails."
    kinds = "[What the kinds mean](../concepts.md#claims-and-certificates)."
    told = [first, table(["", *(verdict.value for verdict in verdicts)], rows), f"{last} {kinds}"]
    return "\n\n".join([*told, *filter(None, [proved(paper)])])


def proved(paper: str) -> str:
    """Which claims are proved, refuted, or proved in part."""
    known = {claim.id: _standing(paper, claim.id) for claim in papers.get(paper).claims}
    told = [
        f"{each.value} are {', '.join(ids)}" if len(ids) > 1 else f"{each.value} is {ids[0]}"
        for each in Standing
        if (ids := [id for id, known_as in known.items() if known_as is each])
    ]
    return f"By [proof](../proved.md), {'; '.join(told)}." if told else ""


def _standing(paper: str, id: str) -> Standing | None:
    return standing(papers.get(paper).settled(id))


def verdicts(paper: str) -> str:
    """What does not hold, by kind. All readings are listed: what hangs on a choice is said whichever way it went."""
    found, parts = findings(paper), []
    claims = [claim for claim in papers.get(paper).claims if claim.id in found]
    for kind in Kind:
        rows = [
            (f"{cell(claim.id)}<br>{cell(claim.where)}", _said(claim), _outcome(paper, found[claim.id]))
            for claim in claims
            if claim.kind is kind and (kind is Kind.READING or Verdict(found[claim.id]["verdict"]) in BAD)
        ]
        if rows:
            parts.append(f"### {TOLD[kind]}\n\n{table(['claim', 'statement', 'measured'], rows)}")
    return "\n\n".join(parts)


def _said(claim: Claim) -> str:
    more = [claim.reading and f"*Chosen:* {cell(claim.reading)}", cell(claim.explanation)]
    more.append(f"Corrected: {claim.mended}." if claim.mended else "")
    return "<br>".join([cell(claim.statement), *filter(None, more)])


def _outcome(paper: str, found: Row) -> str:
    told = _verdict(paper, found) + (f" ({found['needed']} seeds would decide)" if found.get("needed") else "")
    if found["measured"] is not None and found["bound"] is not None:
        told += f": {number(found['measured'])}, bound {found['relation']} {number(found['bound'])}"
    unmet = [each["words"] for each in found.get("hypotheses") or () if not each["met"]]
    return cell(told + (f"; not met: {', '.join(unmet)}" if unmet else ""))


def _verdict(paper: str, found: Row) -> str:
    """What was measured, and what is proved."""
    return ", ".join([found["verdict"], *filter(None, [_standing(paper, found["id"])])])


def listed(paper: str) -> str:
    """All numbered statements, what they say, and the claims with their verdicts, or why there are none."""
    found = findings(paper)
    rows = [
        (cell(each["where"]), cell(each["says"]), _verdicts(paper, each.get("claims", ()), found) or cell(each["none"]))
        for each in statements(paper)
    ]
    return table(["statement", "in our words", "claims"], rows)


def _verdicts(paper: str, ids: Sequence[str], found: dict[str, Row]) -> str:
    return ", ".join(f"{id} *{_verdict(paper, found[id]) if id in found else 'not recorded'}*" for id in ids)


PLACES = {"record": recorded, "verdicts": verdicts, "statements": listed}


# ---- pages


def captioned(text: str) -> str:
    """The page with the recorded captions under its pictures."""

    def caption(match: re.Match[str]) -> str:
        image, paper, figure = match.groups()
        said = record(paper).get("captions", {}).get(figure) if (RESULTS / f"{paper}_full.json").is_file() else None
        return f"{image}\n\n*{cell(said)}*\n" if said else match.group(0)

    return PICTURE.sub(caption, text)


def filled(text: str, paper: str) -> str:
    """The page with its places filled."""
    for place, make in PLACES.items():
        pattern = re.compile(rf"(<!-- {place} -->\n).*?(<!-- /{place} -->)", re.S)
        text = pattern.sub(lambda match, make=make: f"{match.group(1)}\n{make(paper)}\n\n{match.group(2)}", text)
    return text


def pages() -> dict[Path, str]:
    """The pages by their places."""
    made = {}
    for path in sorted([*(DOCS / "papers").glob("*.md"), *(DOCS / "gallery").glob("*-*.md")]):
        text = captioned(path.read_text(encoding="utf-8"))
        made[path] = filled(text, path.stem) if path.stem in papers.names() else text
    return made


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
