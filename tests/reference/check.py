"""Some of the reference values by other routes, since a reference may be wrong too.

    python tests/reference/check.py

Samples know nothing of any formula; finer grids tell what a rule leaves out; integrals in polar coordinates know no
closed form. Anything beyond its error is told, and the exit code is 1.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp, mpf
from scipy import special

sys.path.insert(0, str(Path(__file__).parents[1]))
from reference import gaussian as gs  # noqa: E402

Numbers = Any
NUMPY: dict[str, Callable[[Numbers], Numbers]] = {
    "linear": lambda z: z,
    "abs": np.abs,
    "half_abs": lambda z: np.abs(z) / 2,
    "relu": lambda z: np.maximum(z, 0),
    "leaky_relu": lambda z: np.where(z > 0, z, 0.2 * z),
    "polynomial": lambda z: 0.5 - z + 0.25 * z**2 + 0.125 * z**3,
    "constant": np.ones_like,
    "erf": special.erf,
    "two_erf": lambda z: 0.75 * special.erf(z / 2) - 0.25 * special.erf(2 * z),
    "probit": special.ndtr,
    "tanh": np.tanh,
    "sigmoid": special.expit,
    "softplus": lambda z: np.logaddexp(0, z),
    "gelu": lambda z: z * special.ndtr(z),
    "sin": np.sin,
    "relu_and_erf": lambda z: np.maximum(z, 0) + special.erf(z),
    "abs_and_he3": lambda z: np.abs(z) + z**3 - 3 * z,
    **{f"he{k}": lambda z, k=k: special.eval_hermitenorm(k, z) for k in range(7)},
}
SAMPLES = 400_000
LIMIT = 5.0  # standard errors: some 400 of them, so that one beyond is by chance once in 5000 times


def z_score(samples: Numbers, exact: Any) -> float:
    error = samples.std() / len(samples) ** 0.5
    return float(abs(samples.mean() - float(exact)) / error) if error > 1e-12 * abs(samples).max() else 0.0


def networks(values: dict[str, Any]) -> float:
    """Loss, and its gradient in the first row and in the first outgoing weight, of one case of each pair."""
    draw, worst = np.random.default_rng(0), 0.0
    for group in ("kinked", "erf", "polynomials", "mixed", "integrals", "one dimension", "tied"):
        for row in values[group]:
            case = row["cases"][0]
            first, target = np.array(case["first"]), np.array(case["target"])
            x = draw.standard_normal((SAMPLES, first.shape[1]))
            s, t = NUMPY[row["student"]], NUMPY[row["teacher"]]

            def error(rows: Numbers, out: Numbers, x: Numbers = x, t: Any = t, s: Any = s, case: Any = case) -> Numbers:
                taught = t(x @ np.array(case["target"]).T) @ case["outer"]
                return s(x @ rows.T) @ out - taught

            def half_square(rows: Numbers, out: Numbers, group: str = group, error: Any = error) -> Numbers:
                return error(rows, out * np.linalg.norm(rows, axis=1) if group == "tied" else out) ** 2 / 2

            out = np.array(case["second"])
            assert len(target) == len(case["outer"])
            worst = max(worst, z_score(half_square(first, out), case["loss"]))
            for k in range(first.shape[1]):
                by = 1e-5 * np.eye(len(first) * first.shape[1])[k].reshape(first.shape)
                slope = (half_square(first + by, out) - half_square(first - by, out)) / 2e-5
                worst = max(worst, z_score(slope, case["gradient"][0][k]))
            up, down = (out + sign * 1e-5 * np.eye(len(out))[0] for sign in (1, -1))
            worst = max(worst, z_score((half_square(first, up) - half_square(first, down)) / 2e-5, case["outgoing"][0]))
    return worst


def mixtures(values: dict[str, Any]) -> float:
    draw, worst = np.random.default_rng(1), 0.0
    x = draw.standard_normal((SAMPLES, 3))

    def output(kind: Any, first: Numbers, out: Numbers) -> Numbers:
        unit = first / np.linalg.norm(first, axis=1, keepdims=True)
        routers, experts = np.split(x @ unit.T, 2, axis=1)
        return (NUMPY[kind[0]](routers) * special.eval_hermitenorm(kind[1], experts)) @ out

    for row in values["mixtures"]:
        for case in row["cases"]:
            first, taught = (np.concatenate(case[name][:2]) for name in ("rows", "taught"))
            out, labels = np.array(case["rows"][2]), output(case["teacher"], taught, np.array(case["taught"][2]))

            def loss(rows: Numbers, kind: Any = case["student"], out: Any = out, labels: Any = labels) -> Numbers:
                return (output(kind, rows, out) - labels) ** 2 / 2

            worst = max(worst, z_score(loss(first), case["loss"]))
            for i in (0, len(first) - 1):
                for k in range(3):
                    by = np.zeros_like(first)
                    by[i, k] = 1e-5
                    slope = (loss(first + by) - loss(first - by)) / 2e-5
                    worst = max(worst, z_score(slope, case["gradient"][i][k]))
    return worst


def clusters(values: dict[str, Any]) -> float:
    draw, worst = np.random.default_rng(2), 0.0
    [row] = values["clusters"]
    problem = row["problem"]
    means, directions = (np.array(problem[name]) for name in ("means", "directions"))
    means, directions = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (means, directions))
    cluster = draw.choice(2, SAMPLES, p=problem["weights"])
    x = draw.standard_normal((SAMPLES, 3)) + problem["radius"] * means[cluster]
    norms = [special.factorial(i) ** 0.5 for i in range(4)]

    def series(table: Numbers, z: Numbers) -> Numbers:
        return sum(table[..., i] * special.eval_hermitenorm(i, z) / norms[i] for i in range(4))

    own = series(np.array(problem["local"])[cluster], np.sum(x * directions[cluster], axis=1))
    shared = series(np.array(problem["shared"]), x @ directions[2])
    label = own + np.array(problem["interference"])[cluster] * shared
    for case in row["cases"]:
        s, w = NUMPY[case["kind"]], np.array(case["row"])
        seen = x @ w + case["bias"]
        worst = max(worst, z_score(label * case["outgoing"] * s(seen), case["correlation"]))
        slope = (s(seen + 1e-5) - s(seen - 1e-5)) / 2e-5
        across = x - np.outer(x @ w, w)
        for k in range(3):
            worst = max(worst, z_score(label * case["outgoing"] * s(seen) * x[:, k], case["router"][k]))
            worst = max(worst, z_score(label * case["outgoing"] * slope * across[:, k], case["turning"][k]))
    return worst


def finer() -> float:
    """The largest change of integrals when the grid is refined; as a part of 1e-50."""
    part, worst = gs.Part("tanh"), mpf(0)
    p, q, c = mpf(1) / 4, mpf(1) / 5, mpf(1) / 10
    for base in ("tanh", "lncosh"):
        coarse, fine = (gs._plane(gs.Part(base), p, q, c, step) for step in (1, mpf("1.3")))
        both = zip(coarse, fine, strict=True)
        worst = max(worst, *(abs(x - y) for x, y in both))
    for other in (gs.Part("erf"), gs.Part("sin"), gs.Part("poly", coefficients=gs.he(3))):
        worst = max(worst, abs(gs._line(part, other, p, q, c) - gs._line(part, other, p, q, c, finer=mpf("1.3"))))
    return float(worst / mpf(10) ** -50)


def polar() -> float:
    """The closed forms as integrals over the plane, split at the rays where a kink is; as a part of 1e-20."""
    norm, other, angle, worst = mpf("1.2"), mpf("0.7"), mpf("0.9"), mpf(0)
    a, b = (norm, mpf(0)), (other * mp.cos(angle), other * mp.sin(angle))
    functions: dict[str, Callable[[Any], Any]] = {
        "relu": lambda z: max(z, mpf(0)),
        "abs": abs,
        "erf": mp.erf,
        "he3": lambda z: z**3 - 3 * z,
    }
    half = mp.pi / 2
    edges = sorted({-half, angle - half, half, angle + half, 3 * half})
    for s, t in (("relu", "relu"), ("abs", "relu"), ("erf", "erf"), ("erf", "he3"), ("relu", "he3")):

        def density(phi: Any, r: Any, s: Any = functions[s], t: Any = functions[t]) -> Any:
            ahead = s(norm * r * mp.cos(phi)) * t(other * r * mp.cos(phi - angle))
            return ahead * r * mp.exp(-(r**2) / 2) / (2 * mp.pi)

        found = mp.quad(density, edges, [0, 2, 5, 11], method="gauss-legendre")
        worst = max(worst, abs(found - gs.expectation(s, t, a, b)))
    return float(worst / mpf(10) ** -20)


def main() -> int:
    values = json.loads((Path(__file__).parent / "values.json").read_text(encoding="utf-8"))
    limits = {networks: LIMIT, mixtures: LIMIT, clusters: LIMIT}
    found = {f"{part.__name__}, by samples (z-score)": (part(values), limit) for part, limit in limits.items()}
    with mp.workdps(gs.DIGITS):
        found["finer grids (1e-50)"] = finer(), 1.0
    with mp.workdps(25):
        found["polar coordinates (1e-20)"] = polar(), 1.0
    for name, (worst, limit) in found.items():
        print(f"{name}: {worst:.3g} of {limit:g}{'' if worst < limit else '  WRONG'}")
    return int(any(worst >= limit for worst, limit in found.values()))


if __name__ == "__main__":
    sys.exit(main())
