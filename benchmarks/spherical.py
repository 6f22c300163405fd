"""Normalised single-sample SGD of one expert, 200 inputs, 500 ReLU units: exact blocks against the loop in PyTorch.

Both meet the same samples in the same order, from the same start, on one thread each, and are compared in the end. The
loop of PyTorch differentiates by autograd, projects and normalises, as one writes it by hand. A second loop has the
gradient written out. Samples are drawn before the clock starts, for both; drawing them is timed by itself.
"""

# isort: off
from _measure import interleaved, write  # first, because it fixes the number of threads

import sys
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import torch

import tutelage as tt
from tutelage.dynamics.blocks import Rule
from tutelage.dynamics.spherical import SEGMENT, segment
from tutelage.dynamics.streams import Samples, stream
from tutelage.problem.clusters import antipodal
# isort: on

DIM, WIDTH, STEP = 200, 500, 1e-4
TORCH_STEPS = 512
TASKS = tt.Tasks(local=[{3: 1.0, 5: 1.0}, {3: 1.0, 4: 1.0}], shared={3: 1.0}, interference=(1.0, -1.0))
PROBLEM = tt.Clustered(antipodal(DIM, 3.0), TASKS)


def start() -> tuple[tt.Units, np.ndarray]:
    return tt.Experts(1, WIDTH, "relu", 1.0).draw(np.random.default_rng(0), DIM)


@partial(jax.jit, static_argnums=1)
def drawing(start: jax.Array, dtype: str) -> Samples:
    return stream(PROBLEM, 0, 1, dtype).samples(start, SEGMENT)


def samples(dtype: str) -> Samples:
    return jax.block_until_ready(drawing(jnp.asarray(0), dtype))


def ours(drawn: Samples, steps: int) -> Callable[[], np.ndarray]:
    """The run, with all arrays in place."""
    units, first = start()
    dtype = drawn.inputs.dtype
    begin, gates = jnp.asarray(first, dtype), (jnp.arange(SEGMENT) < steps).astype(dtype)[None]
    rule = Rule(jnp.asarray(STEP), jnp.asarray(1 / WIDTH))
    return lambda: np.asarray(segment(rule, units, begin, drawn, gates))


def theirs(drawn: Samples, steps: int, *, by_hand: bool = False) -> Callable[[], np.ndarray]:
    """The same with PyTorch, with all tensors in place."""
    units, first = start()
    kind = torch.from_numpy(np.asarray(drawn.inputs[:1]).copy()).dtype
    inputs, labels = (torch.tensor(np.asarray(each[:steps]), dtype=kind) for each in (drawn.inputs, drawn.labels))
    begin = torch.tensor(first[0], dtype=kind)
    out, bias = (torch.tensor(np.asarray(each[0]), dtype=kind) for each in (units.outgoing, units.bias))

    def loop() -> np.ndarray:
        weights = begin.clone().requires_grad_(not by_hand)
        for x, y in zip(inputs, labels, strict=True):
            if by_hand:
                slope = (out * ((weights @ x + bias) > 0))[:, None] * x
            else:
                (slope,) = torch.autograd.grad((out * torch.relu(weights @ x + bias)).sum(), weights)
            with torch.no_grad():
                slope = slope - (slope * weights).sum(1, keepdim=True) * weights
                weights += STEP * y * slope
                weights /= weights.norm(dim=1, keepdim=True)
        return weights.detach().numpy()

    return loop


def compared(dtype: str, rounds: int) -> dict[str, float]:
    drawn = samples(dtype)
    seconds = interleaved(
        {
            "tutelage": ours(drawn, SEGMENT),
            "torch": theirs(drawn, TORCH_STEPS),
            "torch_by_hand": theirs(drawn, TORCH_STEPS, by_hand=True),
            "samples": lambda: samples(dtype),
        },
        rounds,
    )
    steps = {"torch": TORCH_STEPS, "torch_by_hand": TORCH_STEPS}
    each = {name: value / steps.get(name, SEGMENT) * 1e6 for name, value in seconds.items()}
    apart = np.abs(ours(drawn, TORCH_STEPS)()[0] - theirs(drawn, TORCH_STEPS)()).max()
    return {
        **{f"microseconds_{name}": value for name, value in each.items()},
        "torch_over_tutelage": each["torch"] / each["tutelage"],
        "torch_by_hand_over_tutelage": each["torch_by_hand"] / each["tutelage"],
        "largest_difference": float(apart),
    }


def main(rounds: int) -> None:
    torch.set_num_threads(1)
    write(
        "spherical",
        {
            "setting": f"one expert, {DIM} inputs, {WIDTH} ReLU units, one sample per update, one thread each",
            "torch": torch.__version__,
            **{dtype: compared(dtype, rounds) for dtype in ("float64", "float32")},
        },
    )


if __name__ == "__main__":
    main(rounds=int(sys.argv[1]) if len(sys.argv) > 1 else 5)
