"""Routers: which experts see a sample, and with what weight, from the scores `theta_m.x`.

Ties are drawn. At the start all scores are zero, and an arg max would send every sample to the first expert.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from tutelage._checks import real, refused, whole
from tutelage._errors import BadInput

Scores = Float[Array, "sample expert"]


class Router(eqx.Module):
    """`gates(scores, uniforms)`: the factor of each expert's output, 0 for experts that do not see the sample.

    `uniforms` are numbers in (0, 1), one for each sample and expert. They decide ties, and are a router's noise.
    """

    @abc.abstractmethod
    def chosen(self, scores: Scores, uniforms: Scores) -> Bool[Array, "sample expert"]:
        """Which experts see which samples."""

    @abc.abstractmethod
    def gates(self, scores: Scores, uniforms: Scores) -> Scores:
        """The factors."""


class Top1(Router):
    """The expert of the highest score, times its softmax weight. With `noise` t, scores are compared after each has
    been raised by a number drawn from `[0, t]`; the weight is that of the scores without noise."""

    noise: float | Float[Array, ""] = 0.0

    def __check_init__(self) -> None:
        if not isinstance(self.noise, jax.core.Tracer):
            real("Top1: noise", self.noise, least=0)

    def chosen(self, scores: Scores, uniforms: Scores) -> Bool[Array, "sample expert"]:
        # Noise has used up the uniforms' first digits; ties then have probability zero anyway.
        return _highest(scores + self.noise * uniforms, uniforms, 1)

    def gates(self, scores: Scores, uniforms: Scores) -> Scores:
        return jnp.where(self.chosen(scores, uniforms), jax.nn.softmax(scores, axis=-1), 0.0)


class TopK(Router):
    """The `k` experts of the highest scores, with softmax weights among all experts."""

    k: int = eqx.field(static=True)

    def __init__(self, k: int):
        self.k = whole("TopK: k", k, least=1)

    def chosen(self, scores: Scores, uniforms: Scores) -> Bool[Array, "sample expert"]:
        if self.k > scores.shape[-1]:
            raise BadInput(f"TopK: k is {self.k}, but there are only {scores.shape[-1]} experts to choose from.")
        return _highest(scores, uniforms, self.k)

    def gates(self, scores: Scores, uniforms: Scores) -> Scores:
        return jnp.where(self.chosen(scores, uniforms), jax.nn.softmax(scores, axis=-1), 0.0)


class Threshold(Router):
    """Adaptive top-k: every expert whose score is at least `level`, each with weight 1. There may be none."""

    level: float | Array = 0.0

    def __check_init__(self) -> None:
        if not isinstance(self.level, jax.core.Tracer):
            _checked_level(self.level)

    def chosen(self, scores: Scores, uniforms: Scores) -> Bool[Array, "sample expert"]:
        del uniforms
        return scores >= self.level

    def gates(self, scores: Scores, uniforms: Scores) -> Scores:
        return self.chosen(scores, uniforms).astype(scores.dtype)


def _checked_level(level: Any) -> None:
    """Levels may be infinite: an expert is then always chosen, or never."""
    refusal = refused("Threshold: level", level, "a number, or one for each expert,")
    try:
        levels = np.asarray(level)
    except ValueError:  # rows of several lengths
        raise refusal from None
    if levels.dtype.kind not in "iuf" or levels.ndim > 1 or np.isnan(levels).any():
        raise refusal


def _highest(scores: Scores, uniforms: Scores, k: int) -> Bool[Array, "sample expert"]:
    """The k highest scores of each row; among equal ones those of the highest uniforms.

    By k rounds of picking one: a sort is many times slower.
    """
    chosen = jnp.zeros(scores.shape, bool)
    for _ in range(min(k, scores.shape[-1])):
        left = jnp.where(chosen, -jnp.inf, scores)
        tied = ~chosen & (left == jnp.max(left, axis=-1, keepdims=True))
        pick = jnp.argmax(jnp.where(tied, uniforms, -1.0), axis=-1)
        chosen = chosen | (jnp.arange(scores.shape[-1])[None, :] == pick[:, None])
    return chosen
