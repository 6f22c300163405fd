"""Online SGD, 4 ReLU teachers, 20 ReLU students, batch 512, float32: tutelage in law against PyTorch with samples.

PyTorch draws every example with all its entries and differentiates by autograd, as one writes it by hand; both use one
thread. The losses after the same number of updates agree in law, not number by number.
"""

# isort: off
from _measure import interleaved, write  # first, because it fixes the number of threads

import sys

import numpy as np
import torch

import tutelage as tt
# isort: on

TEACHERS, STUDENTS, BATCH, NORM, INITIAL = 4, 20, 512, 5.0, 1e-6
STEPS = 1000
TORCH_STEPS = {100: 300, 1000: 60, 10_000: 12, 100_000: 3}
FLAT = (10**3, 10**6, 10**9)


def step_size(dim: int) -> float:
    """Stable at every dim: the noise of a batch grows with it."""
    return 5e-4 * min(1.0, 1e4 / dim)


def ours(dim: int, steps: int, dtype: str = "float32") -> float:
    problem = tt.Problem(
        inputs=tt.Gaussian(dim),
        teacher=tt.TwoLayer("relu", first=NORM * np.eye(TEACHERS)),
        student=tt.TwoLayer("relu", first=tt.GaussianRows(INITIAL), width=STUDENTS, trains=("first",)),
    )
    run = tt.sgd(
        problem, step=step_size(dim), steps=steps, batch=BATCH, dtype=dtype, record=tt.Record(2, observables=("loss",))
    )
    return float(run.last("loss")[0])


def theirs(dim: int, steps: int) -> torch.Tensor:
    teacher = NORM * torch.eye(TEACHERS, dim)
    weights = (INITIAL * torch.randn(STUDENTS, dim)).requires_grad_()
    for _ in range(steps):
        x = torch.randn(BATCH, dim)
        with torch.no_grad():
            y = torch.relu(x @ teacher.T).sum(1)
        loss = 0.5 * ((torch.relu(x @ weights.T).sum(1) - y) ** 2).mean()
        (slope,) = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            weights -= step_size(dim) * slope
    return weights.detach()


def main(rounds: int) -> None:
    torch.set_num_threads(1)
    per_step: dict[str, dict[str, float]] = {}
    for dim, steps in TORCH_STEPS.items():
        runs = {"tutelage": lambda d=dim: ours(d, STEPS), "torch": lambda d=dim, n=steps: theirs(d, n)}
        seconds = interleaved(runs, rounds)
        own, other = seconds["tutelage"] / STEPS * 1e6, seconds["torch"] / steps * 1e6
        per_step[f"{dim:g}"] = {"tutelage": own, "torch": other, "torch_over_tutelage": other / own}
    flat = interleaved({f"{dim:g}": lambda d=dim: ours(d, STEPS) for dim in FLAT}, rounds)
    double = interleaved({"float64": lambda: ours(1000, STEPS, "float64")}, rounds)
    write(
        "online_sgd",
        {
            "setting": f"{TEACHERS} teachers, {STUDENTS} students, batch {BATCH}, float32, one thread each",
            "torch": torch.__version__,
            "microseconds_per_step": per_step,
            "microseconds_per_step_by_dim": {dim: value / STEPS * 1e6 for dim, value in flat.items()},
            "microseconds_per_step_in_float64": double["float64"] / STEPS * 1e6,
        },
    )


if __name__ == "__main__":
    main(rounds=int(sys.argv[1]) if len(sys.argv) > 1 else 5)
