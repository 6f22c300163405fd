"""The abstract's implicit bias: whether the students of a group end with equal norms, the least balanced l2-norm."""

import numpy as np

from tutelage.analysis import Claim, Finding, Kind, Verdict, at_most, given
from tutelage.papers.relu_teachers.evidence import Evidence
from tutelage.papers.relu_teachers.track import NORM, Track, hypotheses
from tutelage.problem import Numbers

NEARLY = 1.01


def excess(track: Track) -> Numbers:
    """m_l sum |w_i|^2/nv^2 of every group of the end that has students, (seed, k): 1 if their norms are equal."""
    member = np.eye(track.teachers)[track.now]
    counts = member.sum(1)
    squares = np.einsum("sil,si->sl", member, track.norms[:, -1] ** 2) / NORM**2
    return np.where(counts > 0, counts * squares, np.nan)


def balanced(evidence: Evidence) -> Finding:
    tracks = [*evidence.weak.values(), *evidence.of_small_starts]
    found = [float(np.nanmax(excess(track))) for track in tracks]
    text = "Largest m_l sum |w_i|^2/nv^2 at the end of a run, by sigma sqrt(d): "
    text += ", ".join(
        f"{value:.6f} at {track.sigma * np.sqrt(track.dim):.0e} (k = {track.teachers})"
        for value, track in zip(found, tracks, strict=True)
    )
    return given(at_most(found, NEARLY, seeds=evidence.seeds, detail=f"{text}."), *hypotheses(tracks))


def unbalanced(evidence: Evidence) -> Finding:
    found = excess(evidence.gaussian)
    text = f"m_l sum |w_i|^2/nv^2 at the end: median {np.nanmedian(found):.4f}, largest {np.nanmax(found):.4f}."
    return at_most(np.nanmax(found), NEARLY, seeds=evidence.seeds, detail=text)


STATEMENT = (
    "Descent ends where sum |w_i|^2 over a group is within 1 % of its least value, nv^2/m_l, that of equal norms"
)

CLAIMS = (
    Claim(
        "BALANCE:weak",
        "Abstract; Section 1",
        f"{STATEMENT}; weak recovery with equal groups.",
        "flow, weak recovery, groups of one size; sigma sqrt(d) from 0.01 to 1e-25",
        balanced,
        kind=Kind.READING,
        reading="The words have no size; 1 % is taken. It does not hang on sigma, from 0.01 down.",
        explanation="The students collapse onto one direction and grow by the same amount; what differs is the start.",
    ),
    Claim(
        "BALANCE:gaussian",
        "Abstract; Section 1",
        f"{STATEMENT}; Gaussian start.",
        "flow, k = 2, m = 6, sigma sqrt(d) = 0.01",
        unbalanced,
        kind=Kind.OURS,
        expected=Verdict.FAILS,
        explanation="Not claimed by the paper, which needs weak recovery: no preference for equal norms is at work, "
        "students that part late are short.",
    ),
)
