"""The enclosed loss of any two-layer network."""

from tutelage.rigour.loss import Loss
from tutelage.rigour.networks import Networks

AnyLoss = Loss


def loss_of(networks: Networks) -> AnyLoss:
    """The loss of a student, of whatever kind."""
    return Loss(networks)
