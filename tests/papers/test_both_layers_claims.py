"""Every claim of `both_layers`: its verdict on honest evidence, and another verdict on a planted error."""

import copy
import dataclasses

import numpy as np
import pytest
from papers.plants import each, plus, replaced, times
from tables import conditions_are_told

from tutelage.analysis.claims import Kind, Verdict
from tutelage.papers.both_layers.checks import phases, success
from tutelage.papers.both_layers.claims import CLAIMS
from tutelage.papers.both_layers.evidence import FRAME, QUICK, SMALL_BATCH, Evidence, widen
from tutelage.papers.both_layers.laws import plateau_level
from tutelage.papers.both_layers.start import both_signs
from tutelage.papers.both_layers.two_neurons import Course, TwoNeurons

BY_ID = {claim.id: claim for claim in CLAIMS}
# Small sizes: only verdicts are tested here, and every claim must be decided by them.
TINY = dataclasses.replace(
    QUICK, states=4096, samples=20_000, trials=400, failure_trials=400, failure_dims=(3,), output_seeds=10,
    empirical_ratios=(10,), empirical_seeds=2, scan_dims=(10, 20), scan_seeds=16, concentration=((5, 20), (10, 100)),
    restarts=3, planar_sets=12, escapes=QUICK.escapes[1:], search_starts=20, truncated_sets=40, gauss_dims=(3,),
    larger_starts=20, many_seeds=2, rate_dims=(5, 40), rate_seeds=6, multi_seeds=4,
)  # fmt: skip


@pytest.fixture(scope="module")
def honest():
    evidence = Evidence(size="quick", seeds=3)
    evidence.sizes = TINY
    return evidence


def first_layer_times(factor):
    return lambda old: lambda *args: (old(*args)[0], factor * old(*args)[1])


def plus_identity(amount):
    return lambda old: lambda *args: (lambda h: h + amount * np.eye(h.shape[-1]))(old(*args))


def with_states(change):
    """A course whose weights are changed: `change(course, second, first)` gives the new ones."""

    def plant(course: Course):
        second, first = change(course, course.states.second, course.states.first)
        return dataclasses.replace(course, states=TwoNeurons(second, first, course.states.target))

    return plant


def late_fall(course, second, first):
    factor = np.where(course.tau < 600, 1.0, 0.3)
    return second * factor[:, None], first * factor[:, None, None]


def early_growth(course, second, first):
    factor = np.where((course.tau > 0) & (course.tau < 100), 2.0, 1.0)
    return second, first * factor[:, None, None]


def far_across(course, second, first):
    return second, first + 1e82 * np.eye(first.shape[-1])[-1]


def one_flipped(trials):
    loss = trials.loss.copy()
    loss[0] = 0.25 if loss[0] < 0.1 else 0.0
    return loss


def smaller_suprema(factor):
    shrink = replaced(value=lambda found: factor * found.value)
    return replaced(suprema=lambda sampled: tuple(map(shrink, sampled.suprema)))


def exact_updates(evidence):
    """Runs whose updates are those of the population gradient: no deviation at all."""

    def change(sampled):
        states = sampled.course.states
        second, first = states.second.copy(), states.first.copy()
        for t in range(second.shape[1] - 1):
            slope = evidence.slopes(TwoNeurons(second[:, t], first[:, t], states.target))
            second[:, t + 1], first[:, t + 1] = second[:, t] - 0.1 * slope[0], first[:, t] - 0.1 * slope[1]
        course = dataclasses.replace(sampled.course, states=TwoNeurons(second, first, states.target))
        return dataclasses.replace(sampled, course=course)

    return each(change)


def rising(old):
    return lambda states: old(states) * 1.02 ** np.arange(states.second.shape[1])


def growing(found):
    return {(level, ratio): ratio**0.8 * values for (level, ratio), values in found.items()}


def shared_out(trials):
    """Units on the line of a such that those of each sign of v add up to a or -a."""
    side = np.sign(trials.final_second)
    count = np.sum(side[..., None] == side[..., None, :], axis=-1)
    return (side / count)[..., None] * trials.target


NEARLY = 1 + 1e-9
EVENT = replaced(start_first=lambda t: t.start_first * np.sign(t.start_first @ t.target * t.start_second)[..., None])
SAME_DRIFT = each(lambda runs: (runs[0], replaced(step=lambda _: runs[1].step)(runs[0])))

# What is falsified, and how; where the honest verdict is "fails", the plant makes the statement true instead.
PLANTED = {
    "BL01": ("losses", times(NEARLY)),
    "BL02": ("gradients", times(NEARLY)),
    "BL03": ("gradients", first_layer_times(NEARLY)),
    "BL04": ("hessians", times(1 + 1e-6)),
    "BL05": ("gradients", plus(1e-10)),
    "BL06": ("hessians", plus_identity(1e-8)),
    "BL07": ("losses", plus(1e-12)),
    "BL08": ("escapes", each(replaced(tau=lambda course: 1.3 * course.tau))),
    "BL09": ("losses", plus(-1e-4)),
    "BL10": ("trials", each(replaced(loss=one_flipped))),
    "BL11": ("trials", each(replaced(loss=lambda t: 0 * t.loss))),
    "BL12": ("theorem_trials", each(replaced(loss=lambda t: 0 * t.loss))),
    "BL13": ("gradients", times(8.0)),
    "BL14": ("gradients", times(3.0)),
    "BL15": ("gradients", times(-1.0)),
    "BL16": ("gradients", times(-1.0)),
    "BL17": ("courses", each(with_states(far_across))),
    "BL18": ("courses", each(replaced(tau=lambda course: course.tau + 1))),
    "BL19": ("grown_from_nothing", with_states(lambda _, second, first: (0.2 * second, first))),
    "BL20": ("courses", each(with_states(late_fall))),
    "BL21": ("slow_course", replaced(loss=lambda course: course.loss + 1e-5)),
    "BL22": ("gradients", times(0.3)),
    "BL23": ("losses", times(NEARLY)),
    "BL24": ("losses", times(0.5)),
    "BL25": ("hessians", times(20.0)),
    "BL26": ("courses", each(replaced(tau=lambda course: 1e4 * course.tau))),
    "BL27": ("local", replaced(step=lambda course: 1.01 * course.step)),
    "BL28": ("outputs", SAME_DRIFT),
    "BL29": ("planar", lambda found: {ratio: ratio**0.5 * values for ratio, values in found.items()}),
    "BL30": ("sampled", each(smaller_suprema(0.1))),
    "BL31": ("sampled", each(smaller_suprema(0.01))),
    "BL32": ("sampled", exact_updates),
    "BL33": ("recovered", lambda found: {d: {d * r / 10: g for r, g in by.items()} for d, by in found.items()}),
    "BL34": ("gradients", times(NEARLY)),
    "BL35": ("gradients", times(NEARLY)),
    "BL36": ("gradients", times(0.5)),
    "BL37": ("trials", each(replaced(final_second=lambda t: t.final_second * NEARLY))),
    "BL38": ("outputs", each(each(replaced(final_first=lambda run: run.final_first + 1e-9)))),
    "BL39": ("outputs", each(each(replaced(loss=lambda run: run.loss + 0.1 * (run.loss == run.loss[0]))))),
    "BL40": ("hessians", plus_identity(1e-3)),
    "BL42": ("refinement", replaced(loss=lambda course: 0 * course.loss + 0.1)),
    "BL43": ("gradients", times(0.0)),
    "BL44": ("plateau", replaced(loss=lambda course: 0 * course.loss + 0.25)),
    "BL45": ("hessians", times(0.01)),
    "BL51": ("gradients", plus(1e-6)),
    "BL52": ("courses", each(with_states(lambda c, second, first: (second, 1.2 * first)))),
    "BL53": ("trials", each(replaced(loss=lambda t: np.where(both_signs(t.start_second), 0.0, 0.25)))),
    "BL46": ("trials", each(replaced(loss=lambda t: np.where(both_signs(t.start_second), 0.0, 0.25)))),
    "BL47": ("courses", each(with_states(early_growth))),
    "BL48": ("stationary", each(replaced(rows=lambda found: (dataclasses.replace(found.rows[0], level=0.3),)))),
    "BL49": ("trials", each(replaced(final_second=lambda t: t.final_second * 1.01))),
    "BL50": ("short_of_one", lambda losses: 0 * losses + plateau_level()),
    "BL54": ("escapes", each(replaced(tau=lambda course: 1.1 * course.tau))),
    "BL55": ("values", rising),
    "BL56": ("recovered_outputs", each(lambda losses: losses + 1e-3 * (losses == losses[0]))),
    "BL57": ("nets", each(lambda net: net[: len(net) // 3])),
    "BL58": ("tail_moments", times(8.0)),
    "BL59": ("truncated", each(lambda values: 10 * values)),
    "BL60": ("truncated", growing),
    "BL61": ("truncated", growing),
    "BL62": ("trials", each(replaced(final_first=lambda t: t.final_first[..., ::-1]))),
    "BL63": ("trials", each(replaced(final_first=lambda t: t.final_first + 1e-5))),
    "BL64": ("trials", each(replaced(final_second=lambda t: np.sign(t.final_second), final_first=shared_out))),
    "BL65": ("fixed_trials", replaced(final_first=shared_out)),
    "BL66": ("trials", each(replaced(final_second=lambda t: t.final_second * NEARLY))),
    "BL67": ("default_trials", replaced(final_second=lambda t: np.sign(t.final_second), final_first=shared_out)),
    "BL68": ("gauss_trials", each(replaced(loss=lambda t: 0 * t.loss))),
    "BL69": ("gauss_trials", each(replaced(loss=lambda t: 0 * t.loss))),
    "BL70": ("many_outputs", replaced(final_first=lambda run: run.final_first + 1e-3)),
}  # fmt: skip

# Where the honest verdict is "not applicable": the hypothesis is made to hold, and with it the conclusion is judged.
LIFTED = {
    "BL41": (success, "initial_event_bound", lambda dim: 0.1, Verdict.UNDECIDED),
}


def test_ids_are_complete_and_each_claim_says_where_and_what():
    assert sorted(BY_ID) == [f"BL{number:02d}" for number in range(1, 71)] and len(BY_ID) == len(CLAIMS)
    assert set(PLANTED) == set(BY_ID) - set(LIFTED), "every claim needs a planted error"
    assert set(LIFTED) == {id for id, claim in BY_ID.items() if claim.expected is Verdict.NOT_APPLICABLE}
    for claim in CLAIMS:
        assert claim.where and claim.statement.endswith(".") and claim.setting and claim.explanation.endswith(".")
        assert claim.kind is Kind.OURS or not claim.where.startswith("new")


@pytest.mark.parametrize("id", BY_ID)
def test_verdict_on_honest_evidence(id, honest):
    finding = BY_ID[id].check(honest)
    assert finding.verdict is BY_ID[id].expected, finding
    assert finding.measured is not None and finding.bound is not None
    assert conditions_are_told(BY_ID[id], finding)


@pytest.mark.parametrize("id", LIFTED)
def test_verdict_where_the_hypothesis_holds(id, honest, monkeypatch):
    module, name, value, verdict = LIFTED[id]
    monkeypatch.setattr(module, name, value)
    assert BY_ID[id].check(honest).verdict is verdict
    planted = copy.copy(honest)
    planted.theorem_trials = each(EVENT)(honest.theorem_trials)
    assert BY_ID[id].check(planted).verdict is Verdict.FAILS


@pytest.mark.parametrize("id", PLANTED)
def test_verdict_on_a_planted_error(id, honest):
    name, plant = PLANTED[id]
    planted = copy.copy(honest)
    change = plant(honest) if plant is exact_updates else plant
    setattr(planted, name, change(getattr(honest, name)))
    expected = Verdict.HOLDS if BY_ID[id].expected is Verdict.FAILS else Verdict.FAILS
    assert BY_ID[id].check(planted).verdict is expected


@pytest.mark.parametrize(("name", "value"), [("SIGMA_0", 1e-3), ("MU_0", 1.0), ("ENOUGH", 20.0)])
def test_the_rate_of_theorem_2_is_asked_for_where_its_hypotheses_are_met(name, value, honest, monkeypatch):
    """BL26: sigma, mu and n enter."""
    monkeypatch.setattr(phases, name, value)
    assert BY_ID["BL26"].check(honest).verdict is Verdict.NOT_APPLICABLE


def test_padding_of_batches_changes_nothing(honest):
    rng = np.random.default_rng(0)
    count = SMALL_BATCH + 3
    second, first = rng.standard_normal((count, 2, 1)), rng.standard_normal((count, 2, FRAME))
    target = np.eye(1, FRAME)
    whole, part = honest.losses(second, first, target), honest.losses(second[:3], first[:3], target)
    assert whole.shape == (count,)
    np.testing.assert_allclose(whole[:3], part, rtol=1e-14)
    in_second, in_first = honest.gradients(second, first, target)
    assert in_second.shape == second.shape and in_first.shape == first.shape


def test_zero_columns_change_nothing(honest):
    states = TwoNeurons(
        np.array([[0.7, -0.4]]), np.array([[[1.0, 2.0, -1.0], [-0.5, 1.0, 0.3]]]), np.array([1.0, 0.0, 2.0])
    )
    # The stored loss of the same network in three coordinates.
    assert honest.values(states)[0] == pytest.approx(3.436746494936686, rel=1e-14)
    assert honest.slopes(states)[1].shape == (1, 2, 3) and widen(np.ones((2, 3))).shape == (2, FRAME)


def test_a_course_finds_its_phases():
    tau = np.arange(6.0)
    angle = np.array([1.0, 0.1, 1.0, 0.1, 0.1, 0.1])  # inside the cone, out again, and in for good from index 3
    v = np.array([0.1, 0.1, 0.3, 0.1, 0.2, 0.3])
    first = np.stack([np.stack([np.cos(angle), np.sin(angle)], -1), np.stack([-np.cos(angle), np.sin(angle)], -1)], 1)
    states = TwoNeurons(np.stack([v, -v], -1)[None], first[None], np.array([1.0, 0.0]))
    course = Course(states, np.ones((1, 6)), tau, 0.1, 1e-3)
    assert course.aligned.tolist() == [3] and course.grown.tolist() == [5] and course.complete.all()
    short = dataclasses.replace(
        course, states=TwoNeurons(states.second[:, :3], states.first[:, :3], states.target), tau=tau[:3]
    )
    assert short.aligned.tolist() == [3] and not short.complete.any()
