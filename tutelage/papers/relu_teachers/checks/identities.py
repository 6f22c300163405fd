"""Closed forms and invariances: gradient, Hessian, reduction to a few coordinates, scaling."""

from collections.abc import Callable

import numpy as np

from tutelage.analysis import Claim, Finding, Kind, Verdict, all_of, at_most
from tutelage.papers.relu_teachers import kernel
from tutelage.papers.relu_teachers.evidence import Evidence
from tutelage.papers.relu_teachers.hessian import hessian
from tutelage.problem import Numbers


def _differences(function: Callable[[Numbers], Numbers], at: Numbers, along: Numbers, h: float = 1e-3) -> Numbers:
    """The derivative of `function` at each of `at` (N, m, n) in direction `along`, to fourth order: error ~ h^4."""
    near, far = (function(at + step * h * along) - function(at - step * h * along) for step in (1, 2))
    return (8 * near - far) / (12 * h)


def _directions(evidence: Evidence, first: Numbers) -> Numbers:
    """Eight random unit directions for each network, (8, N, m, n)."""
    along = evidence.random(2).standard_normal((8, *first.shape))
    return along / np.linalg.norm(along, axis=(2, 3), keepdims=True)


def gradient_formula(evidence: Evidence) -> Finding:
    first, teacher = evidence.networks(1)
    found = evidence.gradients(first, teacher)
    printed = np.stack([kernel.gradient(one, teacher) for one in first])
    size = np.max(np.abs(printed))
    worst = 0.0
    for along in _directions(evidence, first):
        slope = _differences(lambda at: evidence.losses(at, teacher), first, along)
        worst = max(worst, float(np.max(np.abs(slope - np.sum(found * along, axis=(1, 2))))) / size)
    formula = float(np.max(np.abs(found - printed))) / size
    text = f"Central differences of the loss, relative; the paper's formula agrees to {formula:.1e}."
    return all_of([at_most(worst, 1e-9, seeds=len(first), detail=text), at_most(formula, 1e-12)])


def _hessian_gap(evidence: Evidence, *, printed: bool) -> tuple[float, float]:
    """Largest deviation of Lemma 7's blocks, and of differences of the gradient, from the Hessian of the oracle."""
    first, teacher = evidence.networks(3)
    found = evidence.hessians(first, teacher)
    blocks = np.stack([hessian(one, teacher, printed=printed) for one in first])
    worst = 0.0
    for along in _directions(evidence, first):
        change = _differences(lambda at: evidence.gradients(at, teacher), first, along)
        predicted = np.einsum("npq,nq->np", found, along.reshape(len(first), -1))
        worst = max(worst, float(np.max(np.abs(change.reshape(len(first), -1) - predicted))))
    return float(np.max(np.abs(found - blocks))), worst


def hessian_printed(evidence: Evidence) -> Finding:
    gap, _ = _hessian_gap(evidence, printed=True)
    return at_most(
        gap, 1e-9, seeds=evidence.sizes.networks, detail="Largest error of an entry of the blocks as they are printed."
    )


def hessian_corrected(evidence: Evidence) -> Finding:
    gap, differences = _hessian_gap(evidence, printed=False)
    text = f"Largest error of an entry; differences of the gradient agree to {differences:.1e}."
    return all_of([at_most(gap, 1e-9, seeds=evidence.sizes.networks, detail=text), at_most(differences, 1e-9)])


def stays_in_span(evidence: Evidence) -> Finding:
    run = evidence.lifted
    basis = np.linalg.qr(np.vstack([run.teacher, run.start / np.linalg.norm(run.start, axis=1, keepdims=True)]).T)[0]
    outside = float(np.max(np.abs(run.final - (run.final @ basis) @ basis.T)))
    whole = np.vstack([run.final, run.teacher])
    frame = np.vstack([run.frame_final, run.frame_teacher])
    gram = float(np.max(np.abs(whole @ whole.T - frame @ frame.T)))
    text = f"Largest component outside the span after {evidence.sizes.path_steps} steps in {run.start.shape[1]} "
    text += f"dimensions; inner products of the run in {frame.shape[1]} coordinates differ by {gram:.1e}."
    return all_of([at_most(outside, 1e-12, seeds=1, detail=text), at_most(gram, 1e-12)])


def scaling(evidence: Evidence, c: float = 3.0) -> Finding:
    first, teacher = evidence.networks(5)
    loss = float(np.max(np.abs(evidence.losses(c * first, c * teacher) / (c**2 * evidence.losses(first, teacher)) - 1)))
    small, large = (evidence.rescaled[nv] for nv in (1, 5))
    path = float(np.max(np.abs(large.weights / 5 - small.weights)))
    text = f"L(3W, 3V)/(9 L(W, V)) - 1; W/nv of descents with nv = 1 and 5 differ by {path:.1e} over 300 steps."
    # Rounding is amplified on the way past the saddle, where differences of students grow.
    return all_of([at_most(loss, 1e-13, seeds=len(first), detail=text), at_most(path, 1e-12)])


CLAIMS = (
    Claim(
        "GRAD",
        "Eq. 2, 15",
        "The closed form of the gradient is the derivative of the loss.",
        "random students, k = 3, m = 5",
        gradient_formula,
        must_hold=True,
        explanation="Eq. 15 sums over j in [m]; the paper prints [n].",
    ),
    Claim(
        "HESS:printed",
        "Lemma 7",
        "The printed block d2L/dw_i dw_j = [(pi - t) I + nhat_{w_i,w_j} wbar_j^T + nhat_{w_j,w_i} wbar_i^T]/(2 pi).",
        "random students, k = 3, m = 5",
        hessian_printed,
        kind=Kind.SLIP,
        mended="HESS:corrected",
        expected=Verdict.FAILS,
        explanation="The two normals are exchanged against the paper's own definition n_{a,b} = bbar - cos(t) abar.",
    ),
    Claim(
        "HESS:corrected",
        "Lemma 7, corrected",
        "d2L/dw_i dw_j = [(pi - t) I + nhat_{w_j,w_i} wbar_j^T + nhat_{w_i,w_j} wbar_i^T]/(2 pi), and the diagonal "
        "block.",
        "random students, k = 3, m = 5",
        hessian_corrected,
        must_hold=True,
        explanation="The normals exchanged back.",
    ),
    Claim(
        "SPAN",
        "implicit",
        "W(t) stays in the span of W(0) and V, so m + k coordinates give the same run as all d.",
        "descent, k = 2, m = 6, eta = 0.1",
        stays_in_span,
        kind=Kind.OURS,
        must_hold=True,
        explanation="Every gradient is a combination of students and teachers.",
    ),
    Claim(
        "SCALE",
        "new",
        "L(cW, cV) = c^2 L(W, V), and W/nv as a function of flow time does not depend on nv when sigma/nv is kept.",
        "nv = 1 and 5",
        scaling,
        kind=Kind.OURS,
        must_hold=True,
        explanation="The kernel is homogeneous of degree one in each argument.",
    ),
)
