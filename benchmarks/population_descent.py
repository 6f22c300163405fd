"""Population gradient descent, 4 teachers, 20 students, d = 100, float64: tutelage against PyTorch autograd.

PyTorch differentiates the same closed-form loss, as one writes it by hand. Both start from the same weights, take the
same steps, and must end at the same loss.
"""

# isort: off
from _measure import interleaved, write  # first, because it fixes the number of threads

import math

import numpy as np
import torch

import tutelage as tt
# isort: on

TEACHERS, STUDENTS, DIM, STEP = 4, 20, 100, 5e-3
LONG, SHORT = 20_000, 1000


def main() -> None:
    torch.set_num_threads(1)
    first = 1e-3 * np.random.default_rng(0).standard_normal((STUDENTS, DIM))
    teacher = np.eye(TEACHERS, DIM)
    problem = tt.Problem(
        inputs=tt.Gaussian(DIM),
        teacher=tt.TwoLayer("relu", first=teacher),
        student=tt.TwoLayer("relu", first=first, trains=("first",)),
    )

    def ours(steps: int):
        run = tt.descend(
            problem, step=STEP, steps=steps, record=tt.Record(observables=("loss",)), stop=tt.Stop(gradient=0.0)
        )
        return float(run.last("loss")[0])

    target = torch.tensor(teacher)

    def theirs(steps: int):
        weights = torch.tensor(first, requires_grad=True)
        for _ in range(steps):
            (slope,) = torch.autograd.grad(closed_form(weights, target), weights)
            with torch.no_grad():
                weights -= STEP * slope
        return closed_form(weights, target).item()

    losses = {"tutelage": ours(SHORT), "torch": theirs(SHORT)}
    # Agreement to the accuracy of arccos near alignment in the hand-written loss.
    assert math.isclose(losses["tutelage"], losses["torch"], rel_tol=1e-6), losses
    times = interleaved({"tutelage": lambda: ours(LONG), "torch": lambda: theirs(SHORT)})
    per_step = {"tutelage": times["tutelage"] / LONG * 1e6, "torch": times["torch"] / SHORT * 1e6}
    write(
        "population_descent",
        {
            "setting": f"{TEACHERS} ReLU teachers, {STUDENTS} ReLU students, d = {DIM}, float64, one thread each",
            "microseconds_per_step": per_step,
            "torch_over_tutelage": per_step["torch"] / per_step["tutelage"],
            f"loss_after_{SHORT}_steps": losses,
        },
    )


def closed_form(weights: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """1/2 E (sum relu(w.x) - sum relu(t.x))^2 as one writes it by hand."""
    return 0.5 * kernel(weights, weights).sum() - kernel(weights, target).sum() + 0.5 * kernel(target, target).sum()


def kernel(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    norms = a.norm(dim=1)[:, None] * b.norm(dim=1)
    cosine = (a @ b.T / norms).clamp(-1 + 1e-12, 1 - 1e-12)
    angle = torch.arccos(cosine)
    return norms * (torch.sin(angle) + (math.pi - angle) * cosine) / (2 * math.pi)


if __name__ == "__main__":
    main()
