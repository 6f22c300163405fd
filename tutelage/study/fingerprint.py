"""A short name for what a user's function computes: it changes with its code and with the values it refers to."""

import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np


def fingerprint(function: Callable[..., Any]) -> str:
    """Eight hexadecimal digits, the same in every process that runs the same Python.

    Constants from around the function count, and so do helpers in the same module. Those of other modules count by
    name only.

    ```python
    >>> from tutelage.study.fingerprint import fingerprint
    >>> [one, same, other] = [lambda run, factor=factor: run.loss * factor for factor in (1, 1, 2)]
    >>> fingerprint(one) == fingerprint(same), fingerprint(one) == fingerprint(other)
    (True, False)

    ```
    """
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    facts = _facts(function, getattr(inner, "__module__", None), set())
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:8]


def _facts(thing: Any, home: str | None, seen: set[int]) -> Any:
    """What tells a thing from others, as nested lists of texts; a thing that is met again is only named."""
    if thing is None or isinstance(thing, (bool, int, float, complex, str, bytes)):
        return repr(thing)
    if id(thing) in seen:
        return "again"
    seen.add(id(thing))
    within = functools.partial(_facts, home=home, seen=seen)
    if isinstance(thing, (list, tuple)):
        return [within(each) for each in thing]
    if isinstance(thing, (set, frozenset)):
        return sorted(map(repr, thing))
    if isinstance(thing, dict):
        return [[repr(key), within(value)] for key, value in thing.items()]
    if isinstance(thing, np.ndarray):
        return [str(thing.dtype), thing.shape, hashlib.sha256(thing.tobytes()).hexdigest()]
    if isinstance(thing, functools.partial):
        return [within(thing.func), within(thing.args), within(thing.keywords)]
    if inspect.ismodule(thing):
        return thing.__name__
    if inspect.isfunction(thing) and thing.__module__ == home:
        values = [[name, within(value)] for name, value in _outside(thing)]
        return [_code(thing.__code__), within(thing.__defaults__), within(thing.__kwdefaults__), values]
    name = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"
    own = getattr(thing, "__dict__", None)
    return name if isinstance(thing, type) or not isinstance(own, dict) else [name, *_object(thing, within)]


def _object(thing: Any, within: Callable[[Any], Any]) -> list[Any]:
    """An object that is called: its values, and how its class calls."""
    call = getattr(type(thing), "__call__", None)  # noqa: B004  (the function itself is wanted)
    return [within(vars(thing)), within(call) if inspect.isfunction(call) else ""]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _code(code: CodeType) -> list[Any]:
    """The instructions, without the lines and the file that they come from."""
    constants = [
        sorted(map(repr, each)) if isinstance(each, frozenset) else repr(each)
        for part in _codes(code)
        for each in part.co_consts
        if not isinstance(each, CodeType)
    ]
    return [[part.co_code.hex(), part.co_names, part.co_varnames] for part in _codes(code)] + constants


def _outside(function: Any) -> Iterator[tuple[str, Any]]:
    """Names that a function takes from around it, with what they stand for now."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    yield from ((name, function.__globals__[name]) for name in sorted(names) if name in function.__globals__)
