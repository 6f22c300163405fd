"""Known results of the field as studies: every file in examples/ is one, its claims have the verdicts that it says, an
error that is planted turns one, and the page quotes the recorded numbers."""

import json
import re
from pathlib import Path

import pytest

import tutelage as tt

ROOT = Path(tt.__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
RECORD = json.loads((ROOT / "benchmarks/results/examples.json").read_text(encoding="utf-8"))
EVERY = pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.stem)
OTHERS = ("safran_shamir", "staircase")
"""Whose claims are checked in test_minima_and_staircases.py, at sizes of their own."""
CHECKED = pytest.mark.parametrize("file", [f for f in EXAMPLES if f.stem not in OTHERS], ids=lambda path: path.stem)
PLANTED = {
    "saad_solla": ("saddle", {"activation": "erf"}),  # the literature's erf is another one
    "ben_arous": ("samples", {"power": 2.0}),  # a step that falls too fast with the dimension
}
"""A claim of each example, and the error that it must see."""


@pytest.fixture(autouse=True)
def one_process(monkeypatch):
    """Sweeps of a few short runs: workers would each compile all of it again."""
    monkeypatch.setattr("os.cpu_count", lambda: 1)


@pytest.fixture(scope="module")
def studies():
    return {file.stem: tt.Study.named(str(file)) for file in EXAMPLES}


@EVERY
def test_a_short_run(file, studies):
    study = studies[file.stem]
    run = study.run(study.configure(study.presets["short"]), seeds=2)
    assert run.dataset.sizes["seed"] == 2 and bool((run.last("loss") >= 0).all())
    assert study.name == file.stem and study.figures and study.title and study.reference


@CHECKED
def test_its_claims_have_the_verdicts_that_it_says(file, studies):
    """At quick sizes. What must hold is expected to hold."""
    found = {row.claim.id: row for row in studies[file.stem].check().rows}
    seen = {id: row.finding.verdict for id, row in found.items()}
    assert seen == {id: row.claim.expected for id, row in found.items()}, seen
    assert not any(row.claim.must_hold and row.claim.expected is not tt.Verdict.HOLDS for row in found.values())


@CHECKED
def test_a_planted_error_is_seen(file, studies):
    claim, error = PLANTED[file.stem]
    row = studies[file.stem](**error).check(only=(claim,))[claim]
    assert row.finding.verdict is tt.Verdict.FAILS, row.finding


@CHECKED
def test_its_figures_have_something_in_every_panel(file, studies):
    study = studies[file.stem]
    for figure in study.figures:
        sheet = figure.sheet(figure.compute(study.configure(), "quick"))
        assert all(panel.series or panel.fields for panel in sheet.panels), figure.id


# ---- the page and the record


@EVERY
def test_the_record_is_of_these_claims(file, studies):
    """With the words that the claims have now, and their expected verdicts at full size."""
    claims = {claim.id: claim for claim in studies[file.stem].claims}
    recorded = {row["id"]: row for row in RECORD[file.stem]["claims"]}
    assert {id: row["statement"] for id, row in recorded.items()} == {id: c.statement for id, c in claims.items()}
    assert {id: row["verdict"] for id, row in recorded.items()} == {id: c.expected.value for id, c in claims.items()}


NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def rows() -> list[tuple[str, str, list[str]]]:
    """Example, claim and the other cells of each row of the page's tables whose first cell is a claim."""
    found, example = [], ""
    for text in (ROOT / "docs/examples.md").read_text(encoding="utf-8").splitlines():
        if file := re.match(r"`examples/(\w+)\.py`", text):
            example = file[1]
        if row := re.match(r"\| `(\w+)` \|(.*)\|$", text):
            found.append((example, row[1], [cell.strip() for cell in row[2].split("|")]))
    return found


def test_every_example_is_checked():
    assert {file.stem for file in EXAMPLES} == {*PLANTED, *OTHERS}


def test_every_claim_is_on_the_page():
    assert {(example, claim) for example, claim, _ in rows()} == {
        (example, claim["id"]) for example, record in RECORD.items() for claim in record["claims"]
    }


@pytest.mark.parametrize(("example", "claim", "cells"), rows(), ids=lambda each: each if isinstance(each, str) else "")
def test_the_page_has_the_numbers_of_the_record(example, claim, cells):
    """Cells: statement, published, ours, interval, verdict. Each number of ours, as far as it is written, is in what
    was recorded of the claim."""
    record = next(row for row in RECORD[example]["claims"] if row["id"] == claim)
    _, _, ours, interval, verdict = cells
    assert verdict == record["verdict"]
    ends = list((record["interval"] or {}).values())[:2]
    known = [record["measured"], *ends, *map(float, NUMBER.findall(record["detail"]))]
    for text in NUMBER.findall(f"{ours} {interval}"):
        digits = len(text.partition("e")[0].partition(".")[2])
        unit = 10.0 ** (float(text.partition("e")[2] or 0) - digits)
        assert min(abs(abs(float(text)) - abs(each)) for each in known) <= 0.51 * unit, (text, known)
