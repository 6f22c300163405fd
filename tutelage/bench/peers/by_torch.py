"""The same with PyTorch and its autograd. Arrays come and go as NumPy's."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Rows = NDArray[Any]
ALL = torch.get_num_threads()
"""Threads for large arrays. Where arrays are tiny a second thread makes PyTorch slower, and one is taken."""


def tensor(rows: Rows) -> Tensor:
    return torch.from_numpy(np.array(rows))


def kernel(a: Tensor, b: Tensor) -> Tensor:
    """`E relu(a.x) relu(b.x)` for all pairs of rows."""
    norms = a.norm(dim=1)[:, None] * b.norm(dim=1)
    cosine = (a @ b.T / norms).clamp(-1 + 1e-12, 1 - 1e-12)
    angle = torch.arccos(cosine)
    return norms * (torch.sin(angle) + (math.pi - angle) * cosine) / (2 * math.pi)


def loss(first: Tensor, teacher: Tensor) -> Tensor:
    """`1/2 E (sum relu(w.x) - sum relu(t.x))^2`."""
    return 0.5 * kernel(first, first).sum() - kernel(first, teacher).sum() + 0.5 * kernel(teacher, teacher).sum()


def descend(first: Rows, teacher: Rows, step: float, steps: int) -> Rows:
    """Gradient descent on the population loss."""
    torch.set_num_threads(1)
    w, target = tensor(first).requires_grad_(), tensor(teacher)
    for _ in range(steps):
        (slope,) = torch.autograd.grad(loss(w, target), w)
        with torch.no_grad():
            w -= step * slope
    return np.asarray(w.detach())


def sgd(seed: int, first: Rows, teacher: Rows, step: float, steps: int, batch: int) -> Rows:
    """Online SGD: a fresh batch of whole examples at every update."""
    torch.set_num_threads(ALL if batch > 8 else 1)
    draw = torch.Generator().manual_seed(seed)
    w, target = tensor(first).requires_grad_(), tensor(teacher)
    for _ in range(steps):
        x = torch.randn(batch, w.shape[1], dtype=w.dtype, generator=draw)
        y = torch.relu(x @ target.T).sum(1)
        error = 0.5 * ((torch.relu(x @ w.T).sum(1) - y) ** 2).mean()
        (slope,) = torch.autograd.grad(error, w)
        with torch.no_grad():
            w -= step * slope
    return np.asarray(w.detach())


def spectrum(first: Rows, teacher: Rows) -> Rows:
    """All eigenvalues of the Hessian of the loss."""
    torch.set_num_threads(1)
    w, target = tensor(first), tensor(teacher)
    matrix = torch.autograd.functional.hessian(lambda w: loss(w, target), w)
    torch.set_num_threads(ALL)
    return np.asarray(torch.linalg.eigvalsh(matrix.reshape(w.numel(), w.numel())))


def on_samples(first: Rows, x: Rows, y: Rows, step: float, steps: int) -> Rows:
    """Full-batch descent of `1/m sum |w| |w.x|` on examples."""
    torch.set_num_threads(ALL)
    w, inputs, labels = tensor(first).requires_grad_(), tensor(x), tensor(y)
    for _ in range(steps):
        said = (w.norm(dim=1) * (inputs @ w.T).abs()).mean(1)
        (slope,) = torch.autograd.grad(0.5 * ((said - labels) ** 2).mean(), w)
        with torch.no_grad():
            w -= step * slope
    return np.asarray(w.detach())


def mixture(weights: Sequence[Tensor], x: Tensor) -> Tensor:
    """`sum sigmoid(v.x) He3(u.x)` with unit vectors `v` and `u`."""
    routers, experts = weights
    gate = torch.sigmoid(x @ torch.nn.functional.normalize(routers, dim=1).T)
    z = x @ torch.nn.functional.normalize(experts, dim=1).T
    return (gate * (z**3 - 3 * z)).sum(1)


def mixture_sgd(
    seed: int, student: tuple[Rows, Rows], teacher: tuple[Rows, Rows], step: float, steps: int, batch: int
) -> tuple[Rows, Rows]:
    """Online SGD of a mixture of experts."""
    torch.set_num_threads(ALL)
    draw = torch.Generator().manual_seed(seed)
    weights = [tensor(rows).requires_grad_() for rows in student]
    target = [tensor(rows) for rows in teacher]
    for _ in range(steps):
        x = torch.randn(batch, weights[0].shape[1], dtype=weights[0].dtype, generator=draw)
        error = 0.5 * ((mixture(weights, x) - mixture(target, x)) ** 2).mean()
        slopes = torch.autograd.grad(error, weights)
        with torch.no_grad():
            for w, slope in zip(weights, slopes, strict=True):
                w -= step * slope
    routers, experts = (np.asarray(w.detach()) for w in weights)
    return routers, experts


def on_sphere(first: Rows, out: Rows, bias: Rows, x: Rows, y: Rows, step: float) -> Rows:
    """Normalised SGD of the correlation loss, one sample at a time."""
    torch.set_num_threads(ALL)
    w, outgoing, shift = tensor(first).requires_grad_(), tensor(out), tensor(bias)
    for sample, label in zip(tensor(x), tensor(y), strict=True):
        (slope,) = torch.autograd.grad((outgoing * torch.relu(w @ sample + shift)).sum(), w)
        with torch.no_grad():
            slope = slope - (slope * w).sum(1, keepdim=True) * w
            w += step * label * slope
            w /= w.norm(dim=1, keepdim=True)
    return np.asarray(w.detach())
