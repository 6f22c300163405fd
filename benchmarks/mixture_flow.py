"""A mixture of experts, 5 teachers, 25 students, to flow time 150: tutelage's exact flow against PyTorch's online SGD.

PyTorch does what the paper describes: a fresh batch of 4096 examples in dimension 1000 at every update, by autograd, in
float32. An update is timed; the run to time 150 takes 150 / step of them. A step of 0.05 is about the largest that is
stable; at 0.01 the noise of the batches is still far from what the flow's picture asks for (a batch over step above
2e6, that is a step below 0.002). One thread each; the 64 seeds use all cores.
"""

# isort: off
from _measure import interleaved, write  # first, because it fixes the number of threads

import sys
import time

import numpy as np
import torch

import tutelage as tt
# isort: on

TEACHERS, STUDENTS, DIM, BATCH, UNTIL = 5, 25, 1000, 4096, 150.0
STEPS = (0.05, 0.01, 0.002)
UPDATES = 5
SGD_UPDATES = 200


def ours(dim: int, seeds: int = 1) -> np.ndarray:
    settings = {"dim": dim, "until": UNTIL, "students": STUDENTS, "teachers": TEACHERS}
    run = tt.papers.soft_moe(**settings).flow(seeds=seeds, record=np.linspace(0, UNTIL, 51))
    return run.last("loss").values


def ours_sgd(dim: int) -> np.ndarray:
    settings = {"dim": dim, "until": SGD_UPDATES * 0.01, "step": 0.01, "batch": BATCH}
    run = tt.papers.soft_moe(**settings).sgd(dtype="float32", record=tt.Record(2, observables=("loss",), crossings=()))
    return run.last("loss").values


def network(routers: torch.Tensor, experts: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    gate = torch.sigmoid(x @ torch.nn.functional.normalize(routers, dim=1).T)
    z = x @ torch.nn.functional.normalize(experts, dim=1).T
    return (gate * (z**3 - 3 * z)).sum(1)


def theirs(updates: int) -> torch.Tensor:
    axes = torch.eye(2 * TEACHERS, DIM)
    routers, experts = (torch.randn(STUDENTS, DIM) / DIM**0.5 for _ in range(2))
    for part in (routers, experts):
        part.requires_grad_()
    for _ in range(updates):
        x = torch.randn(BATCH, DIM)
        with torch.no_grad():
            y = network(axes[:TEACHERS], axes[TEACHERS:], x)
        loss = 0.5 * ((network(routers, experts, x) - y) ** 2).mean()
        slopes = torch.autograd.grad(loss, (routers, experts))
        with torch.no_grad():
            for part, slope in zip((routers, experts), slopes, strict=True):
                part -= 0.01 * slope
    return experts.detach()


def main(rounds: int, seeds: int) -> None:
    torch.set_num_threads(1)
    seconds = interleaved({"flow": lambda: ours(DIM), "torch": lambda: theirs(UPDATES)}, rounds)
    update = seconds["torch"] / UPDATES
    dims = interleaved({f"{dim:g}": lambda d=dim: ours(d) for dim in (10**3, 10**6, 10**9)}, rounds)
    sgd = interleaved({f"{dim:g}": lambda d=dim: ours_sgd(d) for dim in (10**3, 10**6)}, rounds)
    start = time.perf_counter()
    ours(DIM, seeds)
    many = time.perf_counter() - start
    write(
        "mixture_flow",
        {
            "setting": f"{TEACHERS} teachers, {STUDENTS} students, dim {DIM}, batch {BATCH}, to time {UNTIL:g}",
            "torch": torch.__version__,
            "tutelage_flow_seconds": seconds["flow"],
            "torch_milliseconds_per_update": 1e3 * update,
            "torch_over_tutelage_by_step": {f"{s:g}": UNTIL / s * update / seconds["flow"] for s in STEPS},
            "flow_seconds_by_dim": dims,
            "sgd_milliseconds_per_update_by_dim": {dim: 1e3 * s / SGD_UPDATES for dim, s in sgd.items()},
            "seeds": seeds,
            "seconds_for_all_seeds_on_all_cores": many,
        },
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, int(sys.argv[2]) if len(sys.argv) > 2 else 64)
