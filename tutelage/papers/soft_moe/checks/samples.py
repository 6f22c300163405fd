"""How many examples are enough: pruning by the sample loss, and online SGD over dimensions."""

from tutelage.analysis import Claim, Finding, Kind, interval_is, mean_at_most, probability_at_least
from tutelage.papers.soft_moe.checks.units import papers_units
from tutelage.papers.soft_moe.evidence import Evidence
from tutelage.papers.soft_moe.samples import (
    CHOSEN,
    COUNTS,
    DIMS,
    DRAWS,
    STARTS,
    WIDTHS,
    agreements,
    exponent,
    learning,
)
from tutelage.papers.soft_moe.softmax import DIM, STUDENTS, TEACHERS, forces, sampled

ENOUGH = 1000
"""Examples with which pruning by the sample loss is judged, and all larger numbers."""
PAPERS_WIDTH = 25
SHARE = 0.8


@papers_units
def sampled_pruning(evidence: Evidence) -> Finding:
    size = evidence.size
    table, draws = agreements(size), DRAWS[size]
    row = table[WIDTHS[size].index(PAPERS_WIDTH)]
    many = [count >= ENOUGH for count in COUNTS[size]]
    good = int(row[many].sum())
    told = "; ".join(
        f"m = {m}: " + ", ".join(f"{n} of {draws} with {c}" for n, c in zip(each, COUNTS[size], strict=True))
        for m, each in zip(WIDTHS[size], table, strict=True)
    )
    return probability_at_least(good, draws * sum(many), SHARE, detail=f"Same experts kept, {told} examples.")


@papers_units
def examples_over_dim(evidence: Evidence) -> Finding:
    found, dims, starts = exponent(evidence.size), DIMS[evidence.size], STARTS[evidence.size]
    shares = [float((learning(dim, CHOSEN, starts).scaled < float("inf")).mean()) for dim in dims]
    text = f"eta/B = {CHOSEN:g} d^(-3/2), dims {', '.join(map(str, dims))}; share of starts that recovered "
    text += ", ".join(f"{share:.2f}" for share in shares) + "."
    return interval_is(found.value, found.interval, 2.0, within=0.5, seeds=starts, detail=text)


@papers_units
def fewer_pairs(evidence: Evidence) -> Finding:
    soft, plain = (sampled(gate, evidence.size) for gate in ("softmax", "sigmoid"))
    more = (soft.pairs[-1] - plain.pairs[-1]).astype(float)
    text = f"m = {STUDENTS}, m* = {TEACHERS}, d = {DIM}: pairs at the end {soft.pairs[-1].mean():.2f} with a softmax, "
    text += f"{plain.pairs[-1].mean():.2f} with sigmoids; teachers met {soft.met[-1].mean():.2f} and "
    text += f"{plain.met[-1].mean():.2f}; experts along a teacher's {soft.holders[-1].mean():.2f} and "
    text += f"{plain.holders[-1].mean():.2f}. The law of the first forces: cancelling is "
    text += f"{forces('softmax', STUDENTS, TEACHERS).ratio:.3f} times as quick as learning, with sigmoids 2."
    return mean_at_most(more, 0.0, detail=text)


CLAIMS = (
    Claim(
        "SM-T2:samples",
        "Section 5.1",
        f"Pruning by the loss on {ENOUGH} examples or more keeps the experts that pruning by the population loss "
        f"keeps, with probability at least {SHARE}.",
        "states of Assumption 4 with eps = 0.05, m = 25, m* = 5, d = 1000",
        sampled_pruning,
        kind=Kind.OURS,
    ),
    Claim(
        "SM-SGD",
        "Section 6",
        "Online SGD with eta/B of order d^(-3/2) takes a number of examples of order d^2 to recover a teacher, at a "
        "quarter of the starts: an exponent within 1/2 of 2.",
        "one student, one teacher, starts on the teacher's side",
        examples_over_dim,
        kind=Kind.OURS,
        explanation="With eta/B = kappa d^(-3/2) all of the leading law is free of d in time over sqrt(d) and overlap "
        "times sqrt(d): growth, the noise of the overlap, and the norm, which the noise makes grow.",
    ),
    Claim(
        "SM-SOFTMAX",
        "new",
        "With a softmax router over the experts fewer pairs of students cancel than with sigmoids, from "
        "the same starts.",
        "SGD on samples, iid starts, time in units in which a teacher pulls alike",
        fewer_pairs,
        kind=Kind.OURS,
        explanation="A student's share is 1/m of the output and a teacher's 1/m* of its own, so that two students act "
        "on each other m*/m times as strongly, compared with a teacher, as with sigmoids; and m/m* students fit on one "
        "teacher.",
    ),
)
