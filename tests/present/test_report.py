"""The report holds everything, escaped, in one file that needs no other."""

import dataclasses
import html.parser
import re

import pytest

from tutelage import verbs
from tutelage.analysis.certificates import Certificate, Check
from tutelage.analysis.claims import Claim, Finding, Verdict
from tutelage.present import report
from tutelage.present.checks import guarded
from tutelage.present.reproduce import reproduce
from tutelage.present.reproduction import Crash, PaperResult

CERTIFICATE = Certificate((Check("loss", "long <arithmetic>", 0.25, 0.25, 3e-17, 1e-15),), ("A note.",))


@pytest.fixture
def result(paper) -> PaperResult:
    return PaperResult(paper, paper.configure({"dim": 7}), paper.check(), seconds=75.0, seeds=10)


def page(result, tmp_path) -> str:
    return report.write([result], tmp_path / "report.html").read_text(encoding="utf-8")


class Tags(html.parser.HTMLParser):
    """Checks that tags close in order, and collects addresses and rows."""

    VOID = {"meta", "img", "br", "!doctype"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_claim_is_told(result, tmp_path):
    text = page(result, tmp_path)
    for claim in result.paper.claims:
        assert claim.id in text and claim.where in text
    for part in ("loss &lt;= 1 &amp; falls", "<code>p = 1/2</code>", "4041", "55", "The paper&#x27;s time", "Vacuous.",
                 "50/100", "at 99.9%", ">ours<", "n is too small.", "expected: holds"):  # fmt: skip
        assert part in text, part
    for verdict, count in (("holds", "2 hold"), ("fails", "1 fails"), ("not-applicable", "1 not applicable")):
        assert f'<span class="badge {verdict}">{count}</span>' in text
    assert "Every claim that must hold does." in text and 'class="alarm"' not in text


def test_it_is_well_formed_and_needs_nothing_else(registered, tmp_path, monkeypatch):
    monkeypatch.setattr(verbs, "certified", lambda run: CERTIFICATE)
    made = reproduce(out=tmp_path / "out", certify=True)
    text = made.report.read_text(encoding="utf-8")
    tags = Tags(text)
    assert "script" not in tags.tags and "link" not in tags.tags
    assert not [a for a in tags.addresses if re.match(r"\w+:", a) and not a.startswith("data:image/png;base64,")]
    assert "url(" not in text and "@import" not in text
    assert [a for a in tags.addresses if a.endswith(".nc")] == ["tiny/fig1.nc"]
    assert (made.report.parent / "tiny/fig1.nc").is_file()
    assert "It decays &amp; &lt;decays&gt;." in text and "1e-15" in text
    assert "long &lt;arithmetic&gt;" in text and "All 1 checks agree" in text and "A note." in text


def test_parameters_and_facts(result, tmp_path):
    text = page(result, tmp_path)
    assert re.search(r"<code>dim</code></td><td>7</td><td>100</td><td>&gt;= 1, &lt;= 1000000000000</td>", text)
    for part in ("d, the input dimension", "UTC", "jax", "1 min 15 s", "It shows &lt;that&gt; little"):
        assert part in text


def test_a_broken_claim_is_an_alarm(result, tmp_path):
    wrong = Claim("T99", "Thm 9", "false", "", lambda e: Finding(Verdict.FAILS, 2.0, 1.0), must_hold=True)
    paper = dataclasses.replace(result.paper, claims=(wrong,))
    text = page(dataclasses.replace(result, paper=paper, table=paper.check()), tmp_path)
    assert 'class="alarm"' in text and '<span class="badge broken">fails, must hold</span>' in text
    assert "1 claim that must hold failed." in text


def test_a_certificate_that_disagrees_is_an_alarm(result, tmp_path):
    doubted = Certificate((Check("loss", "sampling", 0.25, 0.5, 0.25, 1e-3),))
    result = dataclasses.replace(result, certificate=doubted)
    text = page(result, tmp_path)
    assert not result.ok and "1 certificate disagreed." in text and "<strong>no</strong>" in text


def test_crashes_are_shown(result, tmp_path):
    text = page(dataclasses.replace(result, crashes=(Crash("figure fig9", "ValueError: <x>"),)), tmp_path)
    assert "figure fig9: ValueError: &lt;x&gt;" in text and "1 part crashed." in text


def test_a_guarded_claim_that_crashes_does_not_hold(paper):
    def boom(_):
        raise ZeroDivisionError("by zero")

    crashes: list[Crash] = []
    paper = dataclasses.replace(paper, claims=(Claim("T00", "", "", "", boom, must_hold=True), *paper.claims))
    table = guarded(paper, crashes).check()
    assert table["T00"].finding.verdict is Verdict.FAILS and table["T00"].broken
    assert len(table) == 6 and [c.what for c in crashes] == ["claim T00"]
    with pytest.raises(ZeroDivisionError):
        paper.check()
