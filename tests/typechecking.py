"""The checker of annotations in all tests."""

import typing
from collections.abc import Sequence

from beartype import BeartypeConf, FrozenDict, beartype
from numpy.typing import ArrayLike

# NumPy's protocol for sequences of numbers asks for `__reversed__`, which tuples do not have.
_SEQUENCES = {
    hint: Sequence
    for hint in typing.get_args(ArrayLike)
    if getattr(typing.get_origin(hint), "__name__", "") == "_NestedSequence"
}

# An int is a float, as for every checker of Python's annotations.
check = beartype(conf=BeartypeConf(is_pep484_tower=True, hint_overrides=FrozenDict(_SEQUENCES)))
