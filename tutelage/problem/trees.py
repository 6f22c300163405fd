"""Parameters as a tree with named parts: all that loops, solvers and norms need to know of a student.

A part is a field of an `equinox.Module`, such as `first` and `second` of `Weights`. Vectors of all parameters have the
parts in the order of the fields.
"""

import dataclasses
from typing import TypeVar, cast

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree

Tree = TypeVar("Tree", bound=PyTree)


def part_names(tree: PyTree) -> tuple[str, ...]:
    """The names of a tree's parts, in order.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> from tutelage.problem.trees import part_names
    >>> part_names(tt.Weights(first=jnp.ones((2, 3)), second=jnp.ones((2, 1))))
    ('second', 'first')

    ```
    """
    return tuple(field.name for field in dataclasses.fields(tree))


def flatten(tree: PyTree) -> Float[Array, " parameters"]:
    """All parameters in one vector."""
    return ravel_pytree(tree)[0]


def unflatten(vector: Float[Array, " parameters"], like: Tree) -> Tree:
    """The inverse of `flatten`."""
    return cast(Tree, ravel_pytree(like)[1](vector))


def square_norm(tree: PyTree) -> Float[Array, ""]:
    """The sum of the squares of all parameters."""
    first, *others = (jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree))
    return sum(others, first)


def finite(tree: PyTree) -> Bool[Array, ""]:
    """Whether no parameter is infinite or nan; whole numbers always are finite."""
    floats = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in floats]))


def scaled(tree: Tree, factors: Tree, moving: tuple[str, ...]) -> Tree:
    """A velocity with each part times its factor, and exactly zero in a part that does not move."""

    def part(name: str) -> PyTree:
        value = getattr(tree, name)
        if name not in moving:
            return jax.tree.map(jnp.zeros_like, value)
        return jax.tree.map(lambda leaf: getattr(factors, name) * leaf, value)

    return cast(Tree, type(tree)(**{name: part(name) for name in part_names(tree)}))


def chosen_parts(names: tuple[str, ...], chosen: Tree, others: Tree) -> Tree:
    """A tree with some parts of one tree and the rest of another."""
    return cast(
        Tree, type(chosen)(**{name: getattr(chosen if name in names else others, name) for name in part_names(chosen)})
    )


def moving_vector(tree: PyTree, names: tuple[str, ...]) -> Float[Array, " moving"]:
    """The parameters of some parts in one vector, in the order of the fields."""
    return ravel_pytree(_some(tree, names))[0]


def with_moving(vector: Float[Array, " moving"], like: Tree, names: tuple[str, ...]) -> Tree:
    """The inverse of `moving_vector`: a tree with these parts from a vector, and the rest of another."""
    parts = dict(zip(_in_order(like, names), ravel_pytree(_some(like, names))[1](vector), strict=True))
    return cast(Tree, type(like)(**{name: parts.get(name, getattr(like, name)) for name in part_names(like)}))


def _some(tree: PyTree, names: tuple[str, ...]) -> tuple[PyTree, ...]:
    return tuple(getattr(tree, name) for name in _in_order(tree, names))


def _in_order(tree: PyTree, names: tuple[str, ...]) -> list[str]:
    return [name for name in part_names(tree) if name in names]
