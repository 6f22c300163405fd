"""The ReLU problems of several cases, for tutelage and, in all coordinates, for others."""

import numpy as np
from numpy.typing import NDArray

import tutelage as tt

Numbers = NDArray[np.float64]
PEER = ("jax", "tutelage.bench.peers.plain_jax")
"""What plain JAX needs."""
TORCH = ("torch", "tutelage.bench.peers.by_torch")
OWN = ("tutelage.verbs",)


def problem(teachers: int, students: int, dim: int, scale: float, norm: float = 1.0) -> tt.Problem:
    """Orthogonal ReLU teachers of this norm, and students with Gaussian entries of this scale; first layers learn."""
    return tt.Problem(
        inputs=tt.Gaussian(dim),
        teacher=tt.TwoLayer("relu", first=norm * np.eye(teachers)),
        student=tt.TwoLayer("relu", first=tt.GaussianRows(scale), width=students, trains=("first",)),
    )


def starts(problem: tt.Problem, seeds: int) -> tuple[Numbers, Numbers]:
    """Students (seed, unit, dim) and teachers as tutelage starts them, in as many coordinates as there are inputs."""
    dim = problem.inputs.dim
    begun = [problem.begin(seed) for seed in range(seeds)]
    return np.stack([padded(each.student.first, dim) for each in begun]), padded(begun[0].teacher.first, dim)


def padded(rows: Numbers, dim: int) -> Numbers:
    """Rows of a frame as rows in all coordinates: the others are zero."""
    rows = np.asarray(rows)
    return np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, dim - rows.shape[-1])])
