"""What one step teaches the router (Appendix C.3), and the split second layer (C.5).

Experts are planted: units with a chosen overlap with a task, as Lemma 4.9 says that exploration leaves them.
"""

from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tutelage.analysis import (
    Claim,
    Finding,
    Kind,
    Verdict,
    all_of,
    at_least,
    at_most,
    lines,
    readout,
)
from tutelage.dynamics import stream
from tutelage.oracle import routing
from tutelage.papers.cluster_moe import phase_two
from tutelage.papers.cluster_moe.evidence import Evidence
from tutelage.papers.cluster_moe.planted import Planted, planted
from tutelage.problem import Numbers, orthogonal

EXPERTS, WIDTH = 8, 4
DELTA = 0.1  # how often a sample may go wrong when "with high probability" is meant
RADII, DIMS = (1.0, 2.0, 4.0, 8.0, 16.0), (30, 200, 1000)


# One step of the router: Lemmas 4.10 and C.14 to C.20, with exact expectations.


class Sorted(NamedTuple):
    """`theta_m.v_c` and `P(theta_m.x >= 0 | c)`, both (cluster, expert), and which experts are outside `M_c`."""

    along: Numbers
    passing: Numbers
    outside: NDArray[np.bool_]


def _sorted(lab: Planted, theta: Numbers) -> Sorted:
    means = np.asarray(lab.problem.inputs.means)
    outside = lab.cluster[None, :] != np.arange(len(means))[:, None]
    return Sorted(means @ theta[:, : means.shape[1]].T, routing.passing(theta, lab.problem.inputs), outside)


@cache
def _population(dim: int, kappa: float, each: int, full: bool) -> tuple[Sorted, ...]:
    """Antipodal and orthogonal means in turn."""
    labs = [
        planted(dim, kappa, each=each, means=means, seed=seed)
        for seed in range(50 if full else 10)
        for means in ("antipodal", "orthogonal")
    ]
    return tuple(_sorted(lab, routing.expected_router(lab.problem, lab.units, lab.first)) for lab in labs)


def _rows_add_up(theta: Numbers) -> float:
    return float(np.abs(theta.sum(axis=0)).max() / np.abs(theta).max())


def rows_add_up(evidence: Evidence) -> Finding:
    thetas = [phase_two.expected(), *(phase_two.one_step(10_000, kind, 0) for kind in (False, True))]
    thetas.append(phase_two.many_steps(0.0, 0.0).theta)
    return at_most([_rows_add_up(theta) for theta in thetas], 1e-12, detail="Relative to the largest entry.")


def printed_gradient(inputs: Numbers, labels: Numbers, said: Numbers, chosen: NDArray[np.intp]) -> Numbers:
    """The gradient at `theta = 0` as printed in the proof of Lemma C.16: `pi_m f_m` stands for `pi_m* f_m*`."""
    experts = said.shape[1]
    weights = (np.eye(experts)[chosen] - 1 / experts) / experts * said * labels[:, None]
    return weights.T @ inputs / len(inputs)


def printed_rows_add_up(evidence: Evidence) -> Finding:
    inputs, labels, said = phase_two.batch(4096)
    theta = printed_gradient(inputs, labels, said, evidence.random(16).integers(0, EXPERTS, len(inputs)))
    return at_most(_rows_add_up(theta), 1e-12, detail="Relative to the largest entry.")


def experts_turn_to_their_cluster(evidence: Evidence, dim: int, kappa: float, each: int) -> Finding:
    seen = _population(dim, kappa, each, evidence.full)
    worst = [float(one.along[one.outside].max() / one.along.max()) for one in seen]
    best = [float(one.along.max(axis=1).min() / one.along.max()) for one in seen]
    text = f"Lemma 4.10 holds in {int(np.sum(np.array(worst) < 0))} of {len(seen)} draws."
    outside = f"The largest theta_m.v_c of an expert outside M_c, over the largest of all. {text}"
    return all_of(
        [at_most(worst, 0.0, detail=outside), at_least(best, 0.0, detail="")],
        f"The largest theta_m.v_c of a cluster is at least {min(best):.2g} of the largest of all.",
    )


def _probabilities(seen: tuple[Sorted, ...]) -> Finding:
    wrong = [float(each.passing[each.outside].max()) for each in seen]
    right = [float(each.passing.max(axis=1).min()) for each in seen]
    met = int(np.sum((np.array(wrong) <= DELTA) & (np.array(right) >= 1 - DELTA)))
    text = f"P(h_m >= 0 | c) of an expert outside M_c. It holds in {met} of {len(seen)} draws."
    best = f"The best expert of a cluster has at least {min(right):.4f}."
    return all_of([at_most(wrong, DELTA, detail=text), at_least(right, 1 - DELTA, detail=best)])


def samples_find_their_experts(evidence: Evidence, dim: int, kappa: float, each: int) -> Finding:
    return _probabilities(_population(dim, kappa, each, evidence.full))


def few_samples_are_enough(evidence: Evidence) -> Finding:
    lab, few = planted(phase_two.DIM, phase_two.KAPPA), 100 * phase_two.DIM
    thetas = [phase_two.one_step(few, False, seed) for seed in range(5)]
    miss = np.mean([np.linalg.norm(theta - phase_two.expected()) for theta in thetas])
    text = f"n = {few}: the router is off by {miss / np.linalg.norm(phase_two.expected()):.1f} times its expected norm."
    return all_of([_probabilities(tuple(_sorted(lab, theta) for theta in thetas))], text)


def probabilities_have_a_formula(evidence: Evidence) -> Finding:
    """A router with scores that pass neither always nor never; three standard normals in a million are beyond 5."""
    law, random = orthogonal(12, 1.5, 2), evidence.random(18)
    theta, count = random.standard_normal((5, law.dim)), 400_000 if evidence.full else 100_000
    passing, winning = routing.passing(theta, law), routing.winning(theta, law).value
    worst = 0.0
    for c in range(law.count):
        centre = np.zeros(law.dim)
        centre[: law.means.shape[1]] = law.radius * law.means[c]
        scores = (centre + random.standard_normal((count, law.dim))) @ theta.T
        won = np.bincount(scores.argmax(axis=1), minlength=len(theta)) / count
        for seen, told in ((np.mean(scores >= 0, axis=0), passing[c]), (won, winning[c])):
            worst = max(worst, float(np.max(np.abs(seen - told) / np.sqrt(told * (1 - told) / count))))
    return at_most(worst, 5.0, detail=f"Standard deviations, {count} samples a cluster, thresholds and top-1.")


def one_step_is_expected(evidence: Evidence) -> Finding:
    law, counts = phase_two.expected(), np.array(phase_two.COUNTS[evidence.size])
    found = []
    for kind, name in ((True, "averaged over ties"), (False, "ties drawn")):
        misses = phase_two.misses(evidence.size, kind).value
        slope = float(lines.exponent(counts, misses))
        text = f"Exponent of |theta - theta_pop| in n, {name}: {slope:.3f}; at n = {counts[-1]} it is {misses[-1]:.2g}."
        # Each norm is known to a tenth or so, with heavy tails: over a factor of 64 in n, that is 0.03 in the exponent.
        found.append(at_most(abs(slope + 0.5), 0.1, detail=text))
    parts = [float(np.sum(phase_two.one_step(10_000, True, 1, block) * law) / np.sum(law**2)) for block in range(32)]
    mean, error = float(np.mean(parts)), float(np.std(parts, ddof=1) / np.sqrt(len(parts)))
    # Student's t with 31 degrees of freedom passes 5 once in 40000 seeds.
    text = f"Along theta_pop, of norm {np.linalg.norm(law):.2g}, the step is {mean:.3f} +- {error:.3f} times theta_pop."
    return all_of([*found, at_most(abs(mean - 1) / error, 5.0, detail=text)])


def clusters_are_solved_alone(evidence: Evidence) -> Finding:
    lab = planted(phase_two.DIM, phase_two.KAPPA, each=2, width=24)
    theta = np.zeros((EXPERTS, phase_two.DIM))
    theta[:, 3] = np.where(lab.cluster == 0, 1.0, -1.0)  # the axis of the means: a sample has one side
    data = stream(lab.problem, 0, 4)
    options: dict[str, Any] = {"samples": 4000, "penalty": 1e-4, "theta": theta}
    parts, whole = (readout.ridge(data, lab.units, lab.first, split=split, **options) for split in (True, False))
    gap = float(np.abs(parts.outgoing - whole.outgoing).max() / np.abs(whole.outgoing).max())
    text = f"Solved in {len(parts.groups)} groups of {len(parts.groups[0])} experts."
    found = at_most(gap, 1e-10, detail=text)
    return found if len(parts.groups) == 2 else Finding(Verdict.NOT_APPLICABLE, gap, 1e-10, detail=text)


def router_grows_with_the_radius(evidence: Evidence) -> Finding:
    norms = np.array(
        [
            [
                np.linalg.norm(routing.expected_router(lab.problem, lab.units, lab.first), axis=1).max() / radius
                for radius in RADII
                for lab in [planted(dim, phase_two.KAPPA, radius=radius)]
            ]
            for dim in DIMS
        ]
    )
    text = f"max |theta_m|/(eta_r rho) is {norms.min():.3g} to {norms.max():.3g}; measured is their ratio."
    return at_most(norms.max() / norms.min(), 1.5, detail=text)


_PLANTED = (
    "ReLU, C = 2 antipodal or orthogonal means, rho = 3, M = 8, J = 4, one planted unit an expert with overlap "
    "{} with a task, exact expectations, d = {}"
)
_ONE: dict[str, Any] = {"dim": 200, "kappa": 0.5, "each": 1}
_ALL: dict[str, Any] = {"dim": 200, "kappa": 0.9, "each": WIDTH}
_EXPLORED = "the same, but all four units planted with overlap 0.9, each with a task of its own, d = 200"
_SAMPLED = "lab_b, one planted unit an expert with overlap 0.9"
CLAIMS = (
    Claim(
        "CM-16",
        "Lemma C.16",
        "The rows of the router add up to zero after every step.",
        f"{_SAMPLED}: in expectation, one step by samples, ties averaged, {phase_two.STEPS} steps",
        rows_add_up,
        must_hold=True,
    ),
    Claim(
        "CM-16:printed",
        "Lemma C.16, proof",
        "The gradients as printed, with pi_m f_m of each expert, add up to zero.",
        f"{_SAMPLED}, 4096 samples",
        printed_rows_add_up,
        kind=Kind.SLIP,
        mended="CM-16",
        expected=Verdict.FAILS,
        explanation="The gradient has pi and f of the chosen expert for all m; then, and only then, the sum is zero.",
    ),
    Claim(
        "CM-17",
        "Lemmas 4.10 and C.15",
        "theta_m.v_c is negative for all experts outside M_c, and positive for some expert.",
        _PLANTED.format(0.5, 200),
        partial(experts_turn_to_their_cluster, **_ONE),
        kind=Kind.READING,
        reading="Exploration is taken to have ended as Lemma 4.9 says, with a_2 = 0.5; -Omega~(1) is read as below "
        "0. It needs d "
        "so large that (2/sqrt(d))^k of other units is small beside a_2^k: see CM-17:small.",
    ),
    Claim(
        "CM-17:small",
        "Lemmas 4.10 and C.15",
        "The same in a small dimension.",
        _PLANTED.format(0.5, 30),
        partial(experts_turn_to_their_cluster, **_ONE | {"dim": 30}),
        kind=Kind.OURS,
        expected=Verdict.FAILS,
        explanation="Overlaps of the other units are up to 2/sqrt(d); their fourth powers are not small beside 0.5^4.",
    ),
    Claim(
        "CM-17:explored",
        "Lemmas 4.10 and C.15",
        "The same when exploration has gone on until all units have learnt a task.",
        _EXPLORED,
        partial(experts_turn_to_their_cluster, **_ALL),
        kind=Kind.OURS,
        expected=Verdict.FAILS,
        explanation="The router follows the sum over an expert's units: whose task the first unit has does not decide.",
    ),
    Claim(
        "CM-18",
        "Lemmas C.14 and C.20",
        "For each cluster some expert has score >= 0 with probability 0.9, and experts outside M_c with at most 0.1.",
        _PLANTED.format(0.5, 200),
        partial(samples_find_their_experts, **_ONE),
        kind=Kind.READING,
        reading="High probability is read as 0.9; exploration is taken to have ended as Lemma 4.9 says, with a_2 = "
        "0.5.",
    ),
    Claim(
        "CM-18:explored",
        "Lemmas C.14 and C.20",
        "The same when exploration has gone on until all units have learnt a task.",
        _EXPLORED,
        partial(samples_find_their_experts, **_ALL),
        kind=Kind.OURS,
        expected=Verdict.FAILS,
        explanation="Experts with as many units on one task as on the other are routed by small differences.",
    ),
    Claim(
        "CM-18:samples",
        "Lemmas C.14 and C.20",
        "The same with n of the order of d samples in the router's step.",
        f"{_SAMPLED}, n = 100 d, five streams",
        few_samples_are_enough,
        kind=Kind.READING,
        reading="n = Theta~(d) is read as 100 d and high probability as 0.9: a test at a finite size, which refutes "
        "nothing. At d = 30 it takes some 20000 d samples; a constant or a polylog of this size would make it true.",
        expected=Verdict.FAILS,
        explanation="The noise, rms(y f) sqrt(d/(n M)), is far above the signal, of which each expert has 1/J.",
    ),
    Claim(
        "CM-18:formula",
        "Lemma C.20",
        "P(h_m >= 0 | c) = Phi(rho v_c.theta_m/|theta_m|), and top-1 probabilities are Gaussian orthants.",
        "5 experts with random rows, d = 12, rho = 1.5, two clusters",
        probabilities_have_a_formula,
        kind=Kind.OURS,
    ),
    Claim(
        "CM-19",
        "Lemma 4.10",
        "One step from zero has the expectation theta_m = (eta_r/M^2)(V_m - mean V), with an error of order n^-1/2.",
        f"{_SAMPLED}, n from {phase_two.COUNTS['quick'][0]} up",
        one_step_is_expected,
        kind=Kind.OURS,
        explanation="The order n^-1/2 is an exponent of -0.5 +- 0.1. The expectation itself is exact.",
    ),
    Claim(
        "CM-23",
        "Appendix C.5",
        "Ridge regression of each cluster alone gives the weights of the whole, if no expert serves two clusters.",
        "lab_b, 8 experts of 24 units, a router along the means, 4000 samples, lambda J^2 = 1e-4",
        clusters_are_solved_alone,
        must_hold=True,
    ),
    Claim(
        "CM-27",
        "Remark 4.11",
        "|theta_m| is at most of the order eta_r rho, whatever the dimension.",
        "one planted unit an expert with overlap 0.9, rho = 1 to 16, d = 30 to 1000, exact expectations",
        router_grows_with_the_radius,
        kind=Kind.READING,
        reading="O~(eta_r rho) is read as a ratio |theta_m|/(eta_r rho) that varies by a factor of 1.5 at most.",
    ),
)
