"""The enclosed loss of any two-layer network: plain, tied, or a soft mixture of experts."""

from tutelage.rigour.loss import Loss
from tutelage.rigour.mixtures import MixtureLoss
from tutelage.rigour.networks import Networks
from tutelage.rigour.tied import TiedLoss

AnyLoss = Loss | TiedLoss | MixtureLoss


def loss_of(networks: Networks, *, moving: bool = False) -> AnyLoss:
    """The loss of a student, of whatever kind; `moving`: along descent or flow from the weights given.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.rigour.losses import loss_of
    >>> from tutelage.rigour.networks import networks_of
    >>> erf = tt.TwoLayer("erf", first=[[1.0, 0.0]], tied=True)
    >>> type(loss_of(networks_of(tt.Problem(tt.Gaussian(2), erf, erf), "example"))).__name__
    'TiedLoss'

    ```
    """
    if networks.gated is not None:
        return MixtureLoss(networks, moving=moving)
    return TiedLoss(networks) if any(networks.tied) else Loss(networks)
