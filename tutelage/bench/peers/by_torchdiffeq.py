"""Gradient flow by torchdiffeq, with the loss of `by_torch` and its autograd."""

import numpy as np
import torch
from torch import Tensor
from torchdiffeq import odeint

from tutelage.bench.peers.by_torch import Rows, loss, tensor


def flow(first: Rows, teacher: Rows, times: Rows, rtol: float, method: str) -> Rows:
    """The weights at these times, as (time, unit, dim)."""
    torch.set_num_threads(1)
    target = tensor(teacher)

    def velocity(t: Tensor, w: Tensor) -> Tensor:
        with torch.enable_grad():
            w = w.detach().requires_grad_()
            (slope,) = torch.autograd.grad(loss(w, target), w)
        return -slope

    with torch.no_grad():
        weights = odeint(velocity, tensor(first), tensor(np.append(0.0, times)), rtol=rtol, atol=rtol, method=method)
    return np.asarray(weights[1:])
