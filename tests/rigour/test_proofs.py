"""Proof files are checked by a second implementation; whatever is changed in them is refused, and errors are seen."""

import copy
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import arb

import tutelage as tt
from tutelage.rigour import Standing, verify
from tutelage.rigour.proofs import RefusedProof, bounds

ROOT = Path(tt.__file__).parent.parent
SHIPPED = sorted((ROOT / "tutelage/papers").glob("*/shipped/*.json"))
ANGLE = "P1-ANGLE-k2"


def content(name: str) -> dict:
    found = next(path for path in SHIPPED if path.stem == name)
    return json.loads(found.read_text(encoding="utf-8"))


def shortened() -> dict:
    """The proof about descent with two updates, after which nothing is broken yet."""
    proof = content(ANGLE)
    proof["data"] |= {"updates": 2, "margin": "0"}
    return sealed(proof)


def sealed(proof: dict) -> dict:
    """As one who changes a file would leave it: words and seal are those of its new content."""
    proof["says"] = verify.KINDS[proof["kind"]].says(proof["data"])
    return proof | {"sha256": verify.seal(proof)}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_proofs_are_checked(path):
    """Those of `P1-ANGLE` and of the annihilation take twenty seconds of CPU, all others one."""
    assert tt.prove.check(path).says == json.loads(path.read_text(encoding="utf-8"))["says"]


PROVING = [name for name in tt.papers.names() if tt.papers.get(name).proofs]


@pytest.mark.parametrize("name", PROVING)
def test_there_are_files_for_all_that_can_be_proved(name):
    """And each is of its id, about claims that there are."""
    paper = tt.papers.get(name)
    assert {path.name for path in paper.shipped.iterdir()} == {each.file for each in paper.proofs}
    claims = {claim.id for claim in paper.claims}
    for each in paper.proofs:
        assert json.loads((paper.shipped / each.file).read_text(encoding="utf-8"))["id"] == each.id
        assert {settles.claim for settles in each.settles} <= claims
        assert all(settles.note for settles in each.settles if settles.standing is Standing.PARTLY)


@pytest.mark.parametrize("name", PROVING)
def test_no_claim_is_proved_and_refuted_or_against_what_is_known(name):
    paper = tt.papers.get(name)
    for claim in paper.claims:
        seen = {each.standing for each in paper.settled(claim.id)}
        assert not {Standing.PROVED, Standing.REFUTED} <= seen
        if Standing.REFUTED in seen:
            assert claim.expected is tt.Verdict.FAILS and not claim.must_hold


def test_a_changed_file_settles_nothing(tmp_path):
    paper = tt.papers.get("relu_teachers")
    (each,) = paper.provable(["HESS"])
    assert [found.standing for found in each.settled(paper.shipped, "HESS:printed")] == [Standing.REFUTED]
    assert each.settled(tmp_path, "HESS:printed") == () == each.settled(paper.shipped, "HESS:corrected")
    text = (paper.shipped / each.file).read_text(encoding="utf-8")
    (tmp_path / each.file).write_text(text.replace("1/10", "1/9"), encoding="utf-8")
    with pytest.raises(RefusedProof, match="not what was sealed"):
        each.settled(tmp_path, "HESS:printed")


def test_a_proof_is_written_and_checked(tmp_path):
    for made in tt.Study.named("relu_teachers").provable(["HESS", "MINIMA:k=6"]):
        proof = made.make()
        proof.save(tmp_path / "new" / "one.json")
        checked = tt.prove.check(tmp_path / "new" / "one.json")
        assert checked.says == proof.says and proof.says in repr(proof)
        assert set(checked.enclosed) == set(proof.enclosed)


def changed(place: str, value) -> dict:
    proof = copy.deepcopy(content("MINIMA-k6"))
    if place in proof:
        proof[place] = value
    else:
        proof["data"][place] = value
    return proof


@pytest.mark.parametrize(
    ("place", "value"),
    [("says", "All is well."), ("loss", "0.5"), ("bits", 256), ("versions", {}), ("enclosed", {"loss": ["0", "1"]})],
)
def test_a_file_that_was_changed_is_refused(place, value, tmp_path):
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(changed(place, value)), encoding="utf-8")
    with pytest.raises(RefusedProof, match="not what was sealed"):
        tt.prove.check(path)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("loss", "0.0251", "not as large"),
        ("loss", "-1", "prove nothing"),
        ("least", "0.0048", "not as positive"),
        ("radius", "1e-50", "into itself"),
        ("radius", "0.3", "into itself|singular"),
        ("radius", "nan", "not an exact number"),
        ("radius", "1e999999999", "not an exact number"),
        ("teachers", [["1", "0"]], "do not fit"),
        ("middle", [["1"], ["1", "2"]], "several lengths"),
        ("middle", None, "cannot be read"),
        ("kind", "a theorem", "no kind"),
        ("bits", 8, "precision"),
        ("bits", True, "precision"),
        ("format", "tutelage proof 2", "not a proof"),
        ("enclosed", {"loss": ["0.03", "0.04"]}, "not within the bounds"),
        ("enclosed", {}, "not what belongs"),
    ],
)
def test_a_false_statement_is_refused_however_it_is_sealed(place, value, words):
    proof = changed(place, value)
    try:
        proof = sealed(proof)
    except (KeyError, TypeError):
        proof["sha256"] = verify.seal(proof)
    with pytest.raises(verify.Refused, match=words):
        verify.verify(proof)


def test_words_that_are_not_those_of_the_data_are_refused():
    proof = content("MINIMA-k6")
    proof["says"] = proof["says"].replace("not global", "global")
    with pytest.raises(verify.Refused, match="words"):
        verify.verify(proof | {"sha256": verify.seal(proof)})


def test_an_entry_of_the_minimum_that_is_off_is_refused():
    proof = content("MINIMA-k6")
    proof["data"]["middle"][0][0] = proof["data"]["middle"][0][0][:-8] + "00000000"
    with pytest.raises(verify.Refused, match="into itself"):
        verify.verify(sealed(proof))


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("margin", "1", "not broken by so much"),
        ("margin", "0", "not broken by so much"),
        ("margin", "-1", "prove nothing"),
        ("eps1", "-1/5", "prove nothing"),
        ("eta", "1", "eta is too large"),
        ("sigma_sqrt_d", "1e-3", "sigma is too large"),
        ("eps1", "1/6", "sigma is too large"),
        ("small", "1/40", "zeta_i"),
        ("k", 3, "do not fit"),
        ("norm", "2", "norm"),
        ("student", 6, "do not fit"),
        ("updates", 0, "do not fit"),
        ("updates", 10**60, "T1 is earlier"),
    ],
)
def test_a_start_that_does_not_satisfy_the_theorem_is_refused(place, value, words):
    proof = shortened()
    proof["data"][place] = value
    with pytest.raises(verify.Refused, match=words):
        verify.verify(sealed(proof))


def third_too_long(row):
    return [3 * x for x in row]


def towards_the_other_teacher(row):
    return [row[0], row[2] / 4, *row[2:]]


def away(row):
    return [-row[0], -row[2], *row[2:]]


@pytest.mark.parametrize(
    ("change", "words"),
    [(third_too_long, "Lemma 1"), (towards_the_other_teacher, "10 k zeta"), (away, "leans away")],
)
def test_a_start_that_was_moved_is_refused(change, words):
    proof = shortened()
    first = [Fraction(x) for x in proof["data"]["start"][0]]
    proof["data"]["start"][0] = [str(x) for x in change(first)]
    with pytest.raises(verify.Refused, match=words):
        verify.verify(sealed(proof))


def test_groups_of_unlike_size_are_refused():
    proof = shortened()
    proof["data"]["start"] = proof["data"]["start"][:1] * 6
    with pytest.raises(verify.Refused, match="Assumption 3"):
        verify.verify(sealed(proof))


def test_teachers_that_are_not_orthogonal_are_refused():
    proof = shortened()
    proof["data"]["teachers"][1] = proof["data"]["teachers"][0]
    with pytest.raises(verify.Refused, match="orthogonal"):
        verify.verify(sealed(proof))


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("rate", ["1.787739065056", "1.787739065060"], "more slowly"),
        ("rate", ["1.787739065033", "1.787739065034"], "faster"),
        ("rate", ["2", "1"], "prove nothing"),
        ("students", 1, "prove nothing"),
        ("students", 7, "faster"),
        ("direction", ["1", "1"], "more slowly"),
        ("direction", ["0", "0"], "do not fit"),
        ("middle", ["1.0683", "1.0683"], "into itself"),
        ("teachers", [["1", "0"], ["0", "-1"]], "into itself"),
    ],
)
def test_another_saddle_is_refused(place, value, words):
    proof = content("SADDLE-k2")
    proof["data"][place] = value
    with pytest.raises(verify.Refused, match=words):
        verify.verify(sealed(proof))


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("margin", "1/5", "by so much"),
        ("margin", "-1", "prove nothing"),
        ("updates", 20, "by so much"),
        ("left", 40, "T2 is earlier"),
        ("left", 101, "prove nothing"),
        ("angle", "1/2", "as far from its teacher"),
        ("eps2", "1/100", "T2 is earlier"),
        ("eps2", "1/2", "prove nothing"),
        ("eta", "1/1000", "by so much"),
        ("counts", [5, 1], "by so much|not within"),
        ("counts", [12, 1], "Assumption 3"),
        ("counts", [3], "do not fit"),
        ("norms", ["1/3", "1/3"], "by so much"),
    ],
)
def test_students_that_stay_are_refused(place, value, words):
    proof = content("P2-LIN-k2")
    proof["data"][place] = value
    with pytest.raises(verify.Refused, match=words):
        verify.verify(sealed(proof))


def potential() -> dict:
    proof = content("C19-unequal")
    proof["data"]["updates"] = 25  # of a thousand; it breaks at update 19
    return proof


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("updates", 19, "do not fit"),
        ("broken", 18, "Phi before is not within"),
        ("margin", "1/1000", "falls as stated"),
        ("margin", "-1", "prove nothing"),
        ("lead", "1", "prove nothing"),
        ("eta", "-1/5", "prove nothing"),
        ("eta", "1/10", "not within the bounds|falls as stated"),
        ("share", "1/1000", "falls as stated|does not fall"),
        ("weights", ["1/2", "1/2"], "do not fit"),
        ("weights", ["1/50"] * 50, "Lemma A.5|falls as stated|not within"),
        ("beta", ["1/50"] * 50, "Lemma A.5"),
        ("gamma", ["-1/50"] * 50, "positive"),
    ],
)
def test_a_potential_that_falls_is_refused(place, value, words):
    proof = potential()
    proof["data"][place] = value
    with pytest.raises(verify.Refused, match=words):
        verify.verify(sealed(proof))


def test_the_printed_potential_is_no_corrected_one(monkeypatch):
    """A checker that takes one for the other refuses what was proved."""
    right = verify.masses.potentials
    verify.verify(sealed(potential()))
    for wrong in (lambda *of: right(*of)[:1] * 2, lambda *of: right(*of)[1:] * 2):
        monkeypatch.setattr(verify.masses, "potentials", wrong)
        with pytest.raises(verify.Refused, match="as stated"):
            verify.verify(sealed(potential()))


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("margin", "1", "not off by so much"),
        ("orders", [2, 1, 2, 2], "not off|do not fit"),
        ("orders", [0, 0, 0, 0], "do not fit"),
        ("orders", [9, 9, 9, 9], "do not fit"),
        ("covariance", [["1", "1"], ["1", "1"]], "another size"),
        (
            "covariance",
            [["1" if i == j else "9/10" if i + j == 1 else "0" for j in range(4)] for i in range(4)],
            "not off",
        ),
        ("covariance", [["1"] * 4] * 4, "no such covariance"),
        ("covariance", [["2" if i == j else "0" for j in range(4)] for i in range(4)], "variances"),
    ],
)
def test_a_mean_that_is_as_printed_is_refused(place, value, words):
    proof = content("SM-L1-printed")
    proof["data"][place] = value
    with pytest.raises(verify.Refused, match=words):
        verify.verify(sealed(proof))


# Planted errors in the checker, which its proofs would not survive.


@pytest.mark.parametrize("name", ["HESS-printed", "RECUR-printed"])
@pytest.mark.parametrize(("margin", "words"), [("-1", "prove nothing"), ("1", "not off by so much")])
def test_a_misprint_is_off_by_more_than_its_margin(name, margin, words):
    proof = content(name)
    proof["data"]["margin"] = margin
    with pytest.raises(verify.Refused, match=words):
        verify.verify(sealed(proof))


def test_a_corrected_formula_is_no_misprint():
    """In a third coordinate, where both blocks agree, and for a student along its teacher, where theta is nearly 0."""
    block, rise = content("HESS-printed"), content("RECUR-printed")
    block["data"] |= {"a": ["1", "0", "0"], "b": ["3", "4", "0"], "row": 2, "column": 2, "margin": "0"}
    rise["data"] |= {"student": ["1", "1/1000000000000"], "margin": "1/1000000"}
    for proof in (block, rise):
        with pytest.raises(verify.Refused, match="not off by so much"):
            verify.verify(sealed(proof))


@pytest.mark.parametrize(
    ("off", "words"), [((1, 0, 0), "into itself"), ((0, 1, 0), "into itself"), ((0, 0, 1), "not within the bounds")]
)
def test_wrong_derivatives_in_the_checker_are_seen(off, words, monkeypatch):
    right = verify.minimum.derivatives

    def wrong(point, targets, columns):
        slope, bend, value = right(point, targets, columns)
        slope[0] += off[0] * arb("1e-20")
        bend[0][0] += off[1] * arb(0, 10)
        return slope, bend, value + off[2] * arb("1e-9")

    monkeypatch.setattr(verify.minimum, "derivatives", wrong)
    with pytest.raises(verify.Refused, match=words):
        verify.verify(content("MINIMA-k6"))


def test_the_checker_and_the_package_enclose_the_same():
    """Two implementations of loss, gradient and Hessian, with different formulas."""
    from tutelage.rigour.loss import Loss
    from tutelage.rigour.networks import networks_of

    draw = np.random.default_rng(0)
    first, teachers = draw.normal(size=(3, 2)), draw.normal(size=(2, 2))
    problem = tt.Problem(
        tt.Gaussian(2), tt.TwoLayer("relu", first=teachers), tt.TwoLayer("relu", first=first, trains=("first",))
    )
    loss = Loss(networks_of(problem, "test"))
    state = loss.start()
    slope, bend, value = verify.minimum.derivatives([arb(x) for x in first.ravel()], loss.target.first.tolist(), 2)
    assert value.overlaps(loss.value(state)) and abs(value - loss.value(state)) < 1e-12
    for one, other in zip(slope, loss.gradient(state).first.entries(), strict=True):
        assert one.overlaps(other) and abs(one - other) < 1e-12
    for one, other in zip([x for row in bend for x in row], loss.hessian(state).entries(), strict=True):
        assert one.overlaps(other) and abs(one - other) < 1e-12
    expected = (state.first - loss.gradient(state).first * arb("0.5")).entries()
    for half, same in ((arb("0.5"), True), (arb("0.5000001"), False)):
        moved = verify.updated([[arb(x) for x in row] for row in first], loss.target.first.tolist(), half)
        pairs = zip([x for row in moved for x in row], expected, strict=True)
        assert all(one.overlaps(other) for one, other in pairs) is same


def test_the_checker_stands_alone():
    """It loads neither JAX nor NumPy nor anything of the package but its root, and runs as a command."""
    proof = next(path for path in SHIPPED if path.stem == "HESS-printed")
    script = (
        "import sys; from tutelage.rigour import verify; code = verify.main(sys.argv[1:]);"
        "loaded = {name.partition('.')[0] for name in sys.modules};"
        "own = {name for name in sys.modules if name.startswith('tutelage')};"
        "assert not loaded & {'jax', 'numpy', 'mpmath'}, loaded;"
        "own = {name for name in own if not name.startswith('tutelage.rigour.verify')};"
        "assert own == {'tutelage', 'tutelage.rigour'}, own; sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script, proof], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and "proved. Lemma 7" in done.stdout, done.stderr
    command = [sys.executable, "-m", "tutelage.rigour.verify", proof, "no_such.json"]
    alone = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert alone.returncode == 1 and "proved" in alone.stdout and "refused" in alone.stderr


def test_what_cannot_be_read_is_one_sentence(tmp_path):
    (tmp_path / "text.json").write_text("{", encoding="utf-8")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    for name, words in (("no.json", "cannot be read"), ("text.json", "not JSON"), ("list.json", "not a proof")):
        with pytest.raises(tt.BadInput, match=words):
            tt.prove.check(tmp_path / name)


def relu(first, **more):
    return tt.TwoLayer("relu", first=first, **more)


@pytest.mark.parametrize(
    ("student", "teacher", "words"),
    [
        (relu(np.eye(2) * 1.01, trains=("first",)), relu(np.eye(2)), "no local minimum above 0"),
        (relu(np.eye(2)), relu(np.eye(2)), "trains"),
        (relu([[1.0, 0.0]], trains=("first",)), relu(np.eye(2)), "as many students"),
        (relu(np.eye(2), second=[1.0, 2.0], trains=("first",)), relu(np.eye(2)), "outgoing weights 1"),
        (tt.TwoLayer("erf", first=np.eye(2), trains=("first",)), tt.TwoLayer("erf", first=np.eye(2)), "relu units"),
    ],
)
def test_what_is_no_spurious_minimum_is_refused(student, teacher, words):
    with pytest.raises(tt.BadInput, match=words):
        tt.prove.minimum(tt.Problem(tt.Gaussian(2), teacher, student))


@pytest.mark.parametrize("value", ["0", "1e-70", "-3.25", "1e40"])
def test_bounds_contain_what_they_bound(value):
    least, most = bounds(arb(value))
    assert arb(least) < arb(value) < arb(most)


def test_bounds_of_nothing_are_refused():
    with pytest.raises(tt.prove.CannotEnclose):
        bounds(arb.nan())


# Relu students of a line, and experts that annihilate.


def quickly(name: str, **data) -> dict:
    """A proof with other data."""
    proof = content(name)
    proof["data"] |= data
    return sealed(proof)


def refuse(proof: dict, words: str) -> None:
    with pytest.raises(verify.Refused, match=words):
        verify.verify(proof)


def test_a_proof_about_a_line_is_made_as_it_is_shipped():
    for made in tt.Study.named("both_layers").provable(["BL46"]):
        proof, shipped = made.make(), content(made.id.replace(":", "-"))
        assert proof.says == shipped["says"] and {n: list(e) for n, e in proof.enclosed.items()} == shipped["enclosed"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"stalled": 20, "updates": 21}, "not so small"),
        ({"stalled": 380, "updates": 381}, "loss is not so small"),
        ({"near": "1/100"}, "not so near"),
        ({"small": "1/10000"}, "not so small"),
        ({"gap": "1/1000000"}, "not so near to 1/4"),
        ({"left": "1/4"}, "prove nothing"),
        ({"around": "1/100"}, "around 3/2 a"),
        ({"start": [["3/2", "1/10"]]}, "does not fit"),
    ],
)
def test_a_false_escape_is_refused(data, words):
    refuse(quickly("BL44-escape", **({"updates": 401} | data)), words)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"second": ["1/100000000", "1/1000000000"]}, "signs do not differ"),
        ({"start": [["1/10", "0"], ["1/10", "1/10"]]}, "on the line"),
        ({"least": "9/10"}, "not so large"),
        ({"updates": 300}, "not so large|not so small"),
        ({"gap": "1e-60"}, "not so near"),
        ({"second": ["1/10000000", "-1/10000000"], "updates": 600}, "not so large|not so small"),
    ],
)
def test_a_start_that_is_not_stuck_is_refused(data, words):
    refuse(quickly("BL46-stuck", **data), words)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"second": ["1/4", "1/4"]}, "signs do not differ"),
        ({"eta": "1/2"}, "step is too large"),
        ({"second": ["1/4", "-1/2"]}, "turn round"),
        ({"alpha": ["3", "3"]}, "too large"),
    ],
)
def test_a_start_that_may_turn_round_is_refused(data, words):
    refuse(quickly("BL46-forever", **data), words)


def test_what_is_stuck_for_ever_is_so_in_exact_arithmetic():
    """The products of the argument, update by update, at the largest step and near the largest starts."""
    draw, eta = np.random.default_rng(0), Fraction(2, 5)
    for _ in range(20):
        alpha = [Fraction(int(x), 64) for x in draw.integers(1, 60, 2)]
        second = [a * Fraction(int(x), 64) for a, x in zip(alpha, draw.integers(-63, 64, 2), strict=True)]
        for _ in range(4):
            rest = 1 - sum(v * a for v, a in zip(second, alpha, strict=True))
            alpha, second = ([a + eta * v * rest / 2 for a, v in zip(alpha, second, strict=True)],
                             [v + eta * a * rest / 2 for a, v in zip(alpha, second, strict=True)])  # fmt: skip
            assert all(a > abs(v) for a, v in zip(alpha, second, strict=True))


def test_the_slope_of_the_line_is_that_of_the_package(monkeypatch):
    """Another implementation, and a wrong one is seen by the bounds of what is enclosed."""
    from tutelage.rigour.loss import Loss
    from tutelage.rigour.networks import networks_of

    first, second = [[0.5, 0.25], [1.0, -0.75]], [0.75, -0.5]
    student = tt.TwoLayer("relu", first=first, second=second)
    loss = Loss(networks_of(tt.Problem(tt.Gaussian(2), tt.TwoLayer("linear", first=[[1.0, 0.0]]), student), "test"))
    state = loss.start()
    rows, outer = state.first.tolist(), state.second.entries()
    slope, other = verify.linear.lines_slope(rows, outer)
    gradient = loss.gradient(state)
    pairs = zip(sum(slope, other), [*gradient.second.entries(), *gradient.first.entries()], strict=True)
    assert all(abs(one - two) < 1e-12 for one, two in pairs)
    assert abs(verify.linear.lines_loss(rows, outer) - loss.value(state)) < 1e-12
    right = verify.linear.lines_slope
    monkeypatch.setattr(verify.linear, "lines_slope", lambda *given: (right(*given)[0], [-x for x in right(*given)[1]]))
    refuse(content("BL46-stuck"), "not so large|not so small|not so near")


def annihilating(**data) -> dict:
    """The proof for a sixteenth of a unit of time."""
    loose = {"until": "1/16", "experts": "2", "routers": "2", "together": "99", "teacher": "1", "gap": "9"}
    return quickly("SM-T1a-annihilation", **(loose | data))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "not within the bounds"),
        ({"experts": "1/2"}, "annihilation"),
        ({"routers": "1/2"}, "annihilation"),
        ({"together": "1"}, "both add"),
        ({"teacher": "1/100"}, "nearer to the teacher"),
        ({"gap": "1"}, "the loss"),
        ({"step": "1/15"}, "do not fit"),
        ({"step": "1/1", "until": "1"}, "no box"),
        ({"experts_start": [["1/20", "1"], ["1/10", "1"]]}, "does not name"),
        ({"routers_start": [["0", "0", "0"], ["0", "1", "0"]]}, "zero"),
    ],
)
def test_a_false_annihilation_is_refused(data, words):
    refuse(annihilating(**data), words)


def test_the_checkers_integrator_is_right_and_its_errors_are_seen(monkeypatch):
    """`x' = x (1 - x)` beside its closed form; a remainder that is dropped, and an error that does not grow."""
    before, verify.ctx.prec = verify.ctx.prec, 128

    def logistic(now):
        return [now[0] - now[0] * now[0]]

    def holds(**more) -> bool:
        (found,) = verify.annihilation.flowed(logistic, [arb("0.1")], arb(1) / 16, 32, 8, arb(0))
        return found.overlaps(1 / (1 + 9 * arb(-2).exp()))

    try:
        (found,) = verify.annihilation.flowed(logistic, [arb("0.1")], arb(1) / 16, 32, 8, arb(0))
        assert holds() and found.rad() < 1e-9
        (off,) = verify.annihilation.flowed(logistic, [arb("0.1")], arb(1) / 16, 32, 8, arb("1e-3"))
        assert off.rad() > 1e-3
        right = verify.annihilation.coefficients

        def without_remainder(velocity, point, order):
            rows = right(velocity, point, order)
            return [[*row[:-1], arb(0)] for row in rows] if point[0].rad() > 0 else rows

        monkeypatch.setattr(verify.annihilation, "coefficients", without_remainder)
        assert not holds()
    finally:
        verify.ctx.prec = before


def test_the_checkers_gate_is_that_of_the_package():
    from tutelage.problem.activations import activation
    from tutelage.rigour.balls import precision
    from tutelage.rigour.gates import Overlap, gate_of

    with precision(128):
        gate, sigmoid = verify.annihilation.logistic(61), gate_of(activation("sigmoid"))
        overlap = Overlap(sigmoid, sigmoid)
        for place in (arb(1), arb(-1) / 3):
            for order in (0, 1):
                assert abs(gate.at(place, order) - overlap.at(order, order, place)) <= gate.left + arb("1e-30")
        assert 0 < gate.left < 1e-12
