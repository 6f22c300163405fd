"""Writes docs/corrections.md: statements that were found wrong, the commands that show it, and what is true instead."""

import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from tutelage import papers
from tutelage._plain import number
from tutelage.rigour.standing import standing

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "corrections.md"
CORRECTIONS: dict[str, list[dict[str, Any]]] = tomllib.loads(
    (ROOT / "docs" / "corrections.toml").read_text(encoding="utf-8")
)
KINDS = {
    "wrong": "false as stated",
    "gap": "the proof asks for something that is not so; the conclusion was not seen to fail",
    "vacuous": "says nothing at sizes that can be run",
    "slip": "a misprint or a slip of notation; the argument stands",
    "clarified": "true as far as it goes, and easily misread",
}
OPENING = """What the papers in the laboratory say and what turned out otherwise, with the statement that we believe
to be true. To measure a theorem one has to take it at its word, and every text of this length has slips;
most of what these papers state was measured to hold. Authors who find that we have misread them are
asked to tell us, with a *wrong number* issue; we shall correct this page as gladly as we wrote it.

Everything here is *measured*, on exact population quantities unless said otherwise; what is proved
as well is on [a page of its own](proved.md).
Numbers are those of the recorded full runs (`benchmarks/results/*_full.json`). The commands take from
seconds to some minutes, at quick sizes, so that digits may differ; `--full` takes the sizes of this
page. Each prints *fails* for the statement; the claims named under *instead* hold. Statements are in our
words."""
ASIDE = """## What is not listed

- Tests of asymptotic statements at sizes that can be run, when they fail for no other reason than the size:
  Lemmas 4.10 and C.14 of `cluster_moe` (CM-17:small, CM-18:samples), the second bullet of Lemma A.3 of
  `beyond_ntk` (C15:bad32, C16:here), whose own threshold nothing reaches there (C15:bad).
- Hypotheses that runs do not meet though the conclusion is seen: BL32 of `both_layers`, CM-24:trained of
  `cluster_moe`, so that what its laboratories show of Theorem 4.6 does not apply to it (CM-07, CM-08).
- Statements carried beyond their hypotheses, such as Gaussian starts in `relu_teachers` or experts that know
  both tasks in `cluster_moe` (CM-17:explored, CM-18:explored), and predictions of our own that failed (BL50).
- Figure 2 of `beyond_ntk`. That orders 4 and 6 are above 0.1 after 10^5 iterations is right in its setting (F2). That
  order 2 is as well hangs on the step, which is not given: after 10^5 steps of 0.02 it is not (F2:second), after
  10^5 of 2e-5 it is (F2:early). That the plateau ends is our finding, not a contradiction."""


def page() -> str:
    parts = [
        "# Corrections",
        "<!-- Made by docs/make_corrections.py (`make pages`) from docs/corrections.toml; do not edit. -->",
        OPENING,
        _count(),
    ]
    for name, rows in CORRECTIONS.items():
        card = next(card for card in papers.cards() if card.name == name)
        parts += [f"## {card.title}", f"{card.authors}. [What the laboratory found](papers/{name}.md)."]
        recorded = records(name)
        parts += [_block(name, row, recorded) for row in rows]
    return "\n\n".join([*parts, ASIDE]) + "\n"


def records(paper: str) -> dict[str, dict[str, Any]]:
    """The recorded findings of a paper, by the ids of its claims."""
    found = json.loads((ROOT / "benchmarks" / "results" / f"{paper}_full.json").read_text(encoding="utf-8"))
    return {claim["id"]: claim for claim in found["papers"][paper]}


def _count() -> str:
    counts = {name: Counter(row["kind"] for row in rows) for name, rows in CORRECTIONS.items()}
    head = f"| paper | {' | '.join(KINDS)} |\n|---|{'---|' * len(KINDS)}"
    rows = (f"| `{name}` | {' | '.join(str(count[kind] or '') for kind in KINDS)} |" for name, count in counts.items())
    told = "\n".join(f"- *{kind}*: {meaning}." for kind, meaning in KINDS.items())
    return "\n".join([head, *rows]) + "\n\n" + told


def _block(paper: str, row: dict[str, Any], recorded: dict[str, dict[str, Any]]) -> str:
    about = _seen(recorded[row["claim"]]) if row["claim"] in recorded else "not recorded yet"
    proofs = standing(papers.get(paper).settled(row["claim"]))
    about += f"; {proofs} by [ball arithmetic](proved.md)" if proofs else ""
    held = f" ({', '.join(row['holds'])})" if row.get("holds") else ""
    lines = [
        f"- *The statement.* {row['says']}",
        f"- *Found.* {row['found']}",
        f"- *See it.* `tutelage check {paper} --only {row['claim']}`: {about}.",
        f"- *Instead.* {row['instead']}{held}",
        *([f"- *Our reading.* {row['reading']}"] if "reading" in row else []),
    ]
    return f"### {row['where']}: {row['kind']}\n\n" + "\n".join(lines)


def _seen(shown: dict[str, Any]) -> str:
    about = f"measured {number(shown['measured'])}, bound {shown['relation']} {number(shown['bound'])}"
    return about if shown["verdict"] == "fails" else str(shown["verdict"])


def pages() -> dict[Path, str]:
    return {PAGE: page()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
