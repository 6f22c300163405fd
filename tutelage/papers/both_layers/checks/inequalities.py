"""The deterministic lemmas: drift, angles, norms, PL, smoothness, loss lower bound (Lemmas 3-5, 8, 9, 12, 13)."""

import math

import numpy as np

from tutelage.analysis import Claim, Finding, all_of, at_least, at_most
from tutelage.papers.both_layers.constants import (
    C2,
    C4,
    C5,
    C6,
    C7,
    C_MIN_SQUARED,
    GAMMA,
    LEMMA12,
    LOSS_LOWER,
    PL,
    STEP_ANGLES,
    STEP_NORMS,
    smoothness,
)
from tutelage.papers.both_layers.evidence import FRAME, Evidence, Sampled
from tutelage.papers.both_layers.inequalities import (
    pl_curvature,
    pl_root,
    pl_slack,
    sharp_loss_lower,
    sharp_pl,
    worst_target,
)
from tutelage.papers.both_layers.two_neurons import SIDES, TwoNeurons
from tutelage.problem import Numbers

TARGET = np.eye(FRAME)[0]
OBTUSE = np.linspace(math.pi / 2 + 1e-6, math.pi - 0.05, 60)


def _random_states(
    rng: np.random.Generator, count: int, spread: float = 1.0, second: float | None = None
) -> TwoNeurons:
    """States with log-uniform norms over 2 * spread decades and random directions; v = +-`second` if given."""
    v = np.full((count, 2), second) if second else 10 ** rng.uniform(-spread, spread, (count, 2))
    first = rng.standard_normal((count, 2, FRAME))
    first *= (10 ** rng.uniform(-spread, spread, (count, 2)) / np.linalg.norm(first, axis=-1))[..., None]
    return TwoNeurons(v * SIDES, first, TARGET)


def drift(evidence: Evidence) -> Finding:
    worst = {}
    for name, states in (
        ("random states", _random_states(evidence.random(13), evidence.sizes.states)),
        *((f"runs from {scale:g}", course.states) for scale, course in evidence.courses.items()),
    ):
        ratio = _drift_ratio(states, *evidence.slopes(states))
        worst[name] = _largest(ratio, states, 1e-24)
    for sampled in evidence.sampled:
        states, in_second, in_first = sampled_gradients(sampled)
        # Closer in than 1e-4, the difference of two updates is rounding.
        worst[f"n={sampled.ratio}d"] = _largest(_drift_ratio(states, in_second, in_first), states, 1e-8)
    text = "Largest ratio: " + ", ".join(f"{name} {value:.2f}" for name, value in worst.items()) + "."
    return at_most(list(worst.values()), C6, seeds=evidence.seeds, detail=text)


def _largest(ratio: Numbers, states: TwoNeurons, error: float) -> float:
    """The largest ratio where |h|^2 is above `error` and the lemma's v_1, v_2 > 0 is met."""
    return float(np.max(ratio[(states.error_squared > error) & (states.magnitudes > 0).all(-1)]))


def sampled_gradients(sampled: Sampled) -> tuple[TwoNeurons, Numbers, Numbers]:
    """Empirical gradients along recorded runs, read off the updates themselves: (theta(tau) - theta(tau+1))/mu."""
    course = sampled.course
    second, first = course.states.second, course.states.first
    states = TwoNeurons(second[:, :-1], first[:, :-1], course.states.target)
    return states, -np.diff(second, axis=1) / course.step, -np.diff(first, axis=1) / course.step


def _drift_ratio(states: TwoNeurons, in_second: Numbers, in_first: Numbers) -> Numbers:
    sizes = states.second**2 + states.norms**2
    drift = np.abs(states.drift(in_second, in_first, 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return drift / (sizes * states.error_squared[..., None])


def gradient_bound(evidence: Evidence) -> Finding:
    states = _random_states(evidence.random(14), evidence.sizes.states, spread=2.0, second=1.0)
    in_first = evidence.slopes(states)[1]
    ratio = np.sum(in_first**2, axis=(1, 2)) / states.error_squared
    return at_most(ratio, LEMMA12, seeds=len(ratio), detail="Largest ratio over random W.")


def _lemma_states(rng: np.random.Generator, count: int) -> TwoNeurons:
    """States allowed by Lemmas 4 and 5, a third of each quantity at the edge of its range."""

    def draw(low: float, high: float) -> Numbers:
        return np.clip(rng.uniform(low - (high - low) / 4, high + (high - low) / 4, (count, 2)), low, high)

    v = np.maximum(draw(0.0, C2), 1e-3)
    imbalance = np.maximum(draw(-GAMMA, GAMMA), -(v**2) + 1e-8)
    theta = draw(0.0, C4)
    across = rng.standard_normal((count, 2, FRAME - 1))
    across /= np.linalg.norm(across, axis=-1, keepdims=True)
    # A third of the pairs in one plane with the target, on the same or on opposite sides: the extreme cases.
    plane = rng.integers(0, 3, count)
    across[plane == 1, 1] = across[plane == 1, 0]
    across[plane == 2, 1] = -across[plane == 2, 0]
    norm = np.sqrt(v**2 + imbalance)
    first = np.concatenate(
        [(SIDES * norm * np.cos(theta))[..., None], (norm * np.sin(theta))[..., None] * across], axis=-1
    )
    return TwoNeurons(v * SIDES, first, TARGET)


def angles_stay(evidence: Evidence) -> Finding:
    rng, count = evidence.random(15), evidence.sizes.states
    states = _lemma_states(rng, count)
    step = np.where(rng.random(count) < 0.5, STEP_ANGLES, rng.uniform(0, STEP_ANGLES, count))[:, None, None]
    moved = states.first - step * evidence.slopes(states)[1]
    # The worst deviation pushes straight out of the cone: along cos(c4) e_perp - sin(c4) (+-a).
    perp = moved - (moved @ TARGET)[..., None] * TARGET
    perp /= np.maximum(np.linalg.norm(perp, axis=-1, keepdims=True), 1e-300)
    outward = math.cos(C4) * perp - math.sin(C4) * SIDES[:, None] * TARGET
    moved = moved + step * states.magnitudes[..., None] / 2 * C5 * outward
    excess = TwoNeurons(states.second, moved, TARGET).angles - C4
    return at_most(
        excess, 1e-12, seeds=count, detail="Largest angle minus pi/20 after one update with the worst deviation."
    )


def norms_stay(evidence: Evidence) -> Finding:
    rng, count = evidence.random(16), evidence.sizes.states
    states = _lemma_states(rng, count)
    step = np.where(rng.random(count) < 0.5, STEP_NORMS, rng.uniform(0, STEP_NORMS, count))[:, None]
    moved = states.magnitudes - step * evidence.slopes(states)[0] * SIDES
    push = step / 2 * C5 * states.norms  # the worst deviation, along +-w_i
    # For every beta <= 1/4 below v the new v must stay above beta: above min(v, 1/4).
    floor = np.minimum(states.magnitudes, C7)
    ratio = float(np.min((moved - push) / states.magnitudes))
    return all_of(
        [
            at_least(
                moved - push - floor, -1e-14, seeds=count, detail=f"Smallest v' - min(v, 1/4); v'/v >= {ratio:.3f},"
            ),
            at_most(moved + push, C2, detail=f"v' <= {np.max(moved + push):.3f}."),
        ]
    )


def _worst_grid() -> tuple[Numbers, Numbers]:
    theta, rho = np.meshgrid(OBTUSE, np.geomspace(0.2, 5, 21))
    return theta.ravel(), rho.ravel()


def _worst_pl_states(alpha: float) -> tuple[TwoNeurons, Numbers]:
    """Effective weights at which the PL inequality is tightest, turned and scaled to the target e_1; and the scale."""
    theta, rho = _worst_grid()
    target = worst_target(theta, rho, alpha)
    first = np.stack([np.stack([rho, 0 * rho], -1), np.stack([np.cos(theta), np.sin(theta)], -1)], axis=1)
    return _to_standard(first, target), np.linalg.norm(target, axis=-1)


def _to_standard(first: Numbers, target: Numbers) -> TwoNeurons:
    size = np.linalg.norm(target, axis=-1)
    cosine, sine = target[:, 0] / size, target[:, 1] / size
    turn = np.stack([np.stack([cosine, -sine], -1), np.stack([sine, cosine], -1)], axis=1)
    planar = first @ turn / size[:, None, None]
    wide = np.concatenate([planar, np.zeros((*planar.shape[:2], FRAME - 2))], axis=-1)
    return TwoNeurons(np.tile(SIDES, (len(first), 1)), wide, TARGET)


def _obtuse(evidence: Evidence, tag: int) -> list[tuple[str, TwoNeurons]]:
    """States with theta > pi/2: random ones, the worst of Lemma 8, and the runs."""
    found = [
        ("random states", _random_states(evidence.random(tag), evidence.sizes.states)),
        ("worst case", _worst_pl_states(sharp_pl())[0]),
    ]
    for scale, course in evidence.courses.items():
        found.append((f"runs from {scale:g}", course.states))
    return found


def pl_inequality(evidence: Evidence) -> Finding:
    seen = {}
    for name, states in _obtuse(evidence, 22):
        in_first, loss = evidence.slopes(states)[1], evidence.values(states)
        keep = (states.angle > math.pi / 2) & (states.magnitudes > 0).all(-1) & (loss > 1e-24)
        ratio = np.sum(in_first[keep] ** 2, axis=(-1, -2)) / (np.min(states.second[keep] ** 2, axis=-1) * loss[keep])
        seen[name] = float(np.min(ratio))
    text = (
        "Smallest ratio: " + ", ".join(f"{n} {v:.4f}" for n, v in seen.items()) + f"; sharp constant {sharp_pl():.6f}."
    )
    return at_least(list(seen.values()), PL, seeds=evidence.seeds, detail=text)


def pl_function(evidence: Evidence) -> Finding:
    theta, rho = np.linspace(math.pi / 2, math.pi, 400), np.exp(np.linspace(-4, 4, 401))
    lowest = np.min(pl_slack(theta[:, None], rho))
    bend, root = float(np.min(pl_curvature(theta))), pl_root()
    # The closed form is a minimum over the target: it is attained by the gradient and loss there.
    states, size = _worst_pl_states(PL)
    reached = np.sum(evidence.slopes(states)[1] ** 2, axis=(1, 2)) - PL * evidence.values(states)
    gap = float(np.max(np.abs(reached * size**2 - pl_slack(*_worst_grid()))))
    return all_of(
        [
            at_least(lowest, -1e-15, detail=f"Smallest value for theta >= pi/2, rho in e^[-4,4]; root at {root:.5f},"),
            at_most(root, math.pi / 2),
            at_least(bend, 0.03, detail=f"coefficient of rho^2 + 1 at least {bend:.4f},"),
            at_most(gap, 1e-13, detail=f"attained to {gap:.0e}."),
        ]
    )


def loss_sandwich(evidence: Evidence) -> Finding:
    lower: dict[str, float] = {}
    upper = 0.0
    theta = OBTUSE
    first = np.stack(
        [np.stack([np.ones_like(theta), 0 * theta], -1), np.stack([np.cos(theta), np.sin(theta)], -1)], axis=1
    )
    tight = ("worst case", _to_standard(first, (first[:, 0] - first[:, 1]) / 2))
    for name, states in [tight, *_obtuse(evidence, 24)]:
        loss, error = evidence.values(states), states.error_squared
        # Below |h| = 1e-6 the rounding of v w - a, 1e-16, is more than a relative 1e-9 of |h|^2.
        keep = (states.magnitudes > 0).all(-1) & (error > 1e-12)
        upper = max(upper, float(np.max(loss[keep] / error[keep])))
        keep &= states.angle > math.pi / 2
        lower[name] = max(lower.get(name, 0.0), float(np.max(error[keep] / loss[keep])))
    text = "Largest |h|^2/L: " + ", ".join(f"{n} {v:.3f}" for n, v in lower.items())
    text += f"; sharp constant {1 / float(sharp_loss_lower(math.pi / 2)):.3f}. L/|h|^2 <= {upper:.6f}."
    return all_of(
        [
            at_most(list(lower.values()), 1 / LOSS_LOWER, seeds=evidence.seeds, detail=text),
            at_most(upper, 0.25 * (1 + 1e-9)),
        ]
    )


def smooth_box(evidence: Evidence) -> Finding:
    rng, count = evidence.random(25), evidence.sizes.states // 16
    low = math.sqrt(C_MIN_SQUARED)
    sizes = np.clip(rng.uniform(low - 0.5, C2 + 0.5, (count, 4)), low, C2)
    first = rng.standard_normal((count, 2, FRAME))
    flat = rng.random(count) < 0.5  # half of them nearly on a line, where neurons interact most
    first[flat, :, 1:] *= 0.05
    first *= (sizes[:, 2:] / np.linalg.norm(first, axis=-1))[..., None]
    hessians = evidence.hessians((sizes[:, :2] * SIDES)[..., None], first, TARGET[None])
    norms = np.max(np.abs(np.linalg.eigvalsh(hessians)), axis=1)
    return at_most(
        norms, smoothness(low, C2), seeds=count, detail="Largest spectral norm in the box [0.206, 2] of all norms."
    )


CLAIMS = (
    Claim(
        "BL13",
        "Lemma 3",
        "|b_i(tau+1) - b_i(tau)| <= 6 mu^2 (v_i^2 + |w_i|^2)|h|^2.",
        "v_1, v_2 > 0; population and empirical",
        drift,
        must_hold=True,
        explanation="The drift is mu^2 (|grad_w|^2 - |grad_v|^2), computed as such and never by differencing b.",
    ),
    Claim(
        "BL14",
        "Lemma 12",
        "|grad_{w_1}|^2 + |grad_{w_2}|^2 <= (5/2)|h|^2.",
        "v = (1,-1), all W",
        gradient_bound,
        must_hold=True,
        explanation="The largest ratio found is near 1/2, reached for w_2 -> 0 and |w_1| -> infinity.",
    ),
    Claim(
        "BL15",
        "Lemma 4",
        "Angles to the target that are below pi/20 stay so.",
        "mu|a| <= 1/2, the lemma's ranges, worst deviation",
        angles_stay,
        must_hold=True,
        explanation="Random and extreme states, each with the deviation that pushes it straight out of the cone.",
    ),
    Claim(
        "BL16",
        "Lemma 5",
        "beta sqrt|a| < v_i <= 2 sqrt|a| is kept, for every beta <= 1/4.",
        "mu|a| <= 4/25, the lemma's ranges",
        norms_stay,
        must_hold=True,
        explanation="One step of C.3 (|w_1| < sqrt|a|) does not follow, but the lemma stands.",
    ),
    Claim(
        "BL22",
        "Lemma 8",
        "|grad_W L|^2 >= 0.05 min(v_1^2, v_2^2) L.",
        "theta > pi/2",
        pl_inequality,
        must_hold=True,
        explanation="The sharp constant over theta >= pi/2 is 0.082659.",
    ),
    Claim(
        "BL23",
        "Figure 4, B.2",
        "The function of Figure 4 is not negative for theta >= pi/2, for any ratio of norms.",
        "alpha = 0.05",
        pl_function,
        must_hold=True,
        explanation="A quadratic in rho with positive leading coefficient, smallest at rho = 1.",
    ),
    Claim(
        "BL24",
        "Lemma 13",
        "|h|^2 <= 20 L for theta > pi/2; and L <= |h|^2/4 always.",
        "v_1, v_2 > 0",
        loss_sandwich,
        must_hold=True,
        explanation="The sharp constant is 11.008, at theta = pi/2 and equal norms.",
    ),
    Claim(
        "BL25",
        "Lemma 9",
        "The spectral norm of the Hessian is at most L(c1, c2)|a| = 112.1|a| in the box.",
        "c1 = sqrt(c7^2 - c11), c2 = 2",
        smooth_box,
        must_hold=True,
        explanation="As proved; the statement prints the Frobenius norm.",
    ),
)
