"""What tells one thing that was asked for from another: a canonical description, and a short name made from it.

A run, its checkpoint, a cell of a sweep and a measure are all named by it. Values count by their content, arrays by
their bytes, objects by their class, its `revision` and their fields, and functions by their source and by all that
they refer to, a class of the same module by its methods and values. What cannot be described is refused.
"""

import ast
import dataclasses
import enum
import functools
import hashlib
import inspect
import json
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from tutelage._errors import BadInput

LENGTH = 16
LATER = {"later": True}
"""The metadata of a field that a class did not always have: left at its default it is not described, so that what was
asked for before keeps its name."""
COMPILERS = ("jax", "jaxlib", "equinox", "functools")
"""Whose wrappers compute what they wrap: compiled, or cached."""


def digest(plain: Any) -> str:
    """A name of sixteen hexadecimal digits for anything that is JSON; equal values have equal names."""
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def identity(*things: Any) -> str:
    """The name of things that were asked for.

    ```python
    >>> from tutelage._identity import identity
    >>> [one, same, other] = [lambda run, factor=factor: run.loss * factor for factor in (1, 1, 2)]
    >>> identity(one) == identity(same), identity(one) == identity(other)
    (True, False)

    ```
    """
    return digest([described(thing) for thing in things])


def described(thing: Any) -> Any:
    """The thing as JSON: numbers, texts, lists and dictionaries, with everything in it that makes a difference.

    ```python
    >>> import tutelage as tt
    >>> from tutelage._identity import described
    >>> described(tt.Truncation(caps=(2.0,)))
    {'is': 'tutelage.dynamics.descent.Truncation', 'caps': [2.0], 'ends': []}

    ```
    """
    return _Describer().describe(thing)


class _Describer:
    """One description in the making.

    What is being described and comes again within itself is named by how far out it is. Anything else that comes again
    is described again, so that two equal things are what one thing twice is; `known` spares the work.
    """

    def __init__(self) -> None:
        self.open: list[int] = []
        self.outermost = 0  # of what came again within itself, since the present thing was begun
        self.known: dict[tuple[int, str | None], tuple[Any, Any]] = {}  # with the thing: nothing else takes its id
        self.home: str | None = None

    def describe(self, thing: Any) -> Any:
        if thing is None or isinstance(thing, (bool, int, str)):
            return thing if not isinstance(thing, enum.Enum) else [_name(type(thing)), thing.name]
        if isinstance(thing, float):
            return _real(thing)
        if isinstance(thing, (complex, bytes, PurePath)):
            return {"value": repr(thing)}  # in a place of its own: a text may read the same
        if isinstance(thing, enum.Enum):
            return [_name(type(thing)), thing.name]
        if isinstance(thing, np.generic) or hasattr(type(thing), "__array__"):  # not `np.float64` itself
            return _array(np.asarray(thing))
        if id(thing) in self.open:
            depth = self.open.index(id(thing))
            self.outermost = min(self.outermost, depth)
            return {"again": len(self.open) - depth}
        key = (id(thing), self.home)
        return self.known[key][1] if key in self.known else self._found(thing, key)

    def _found(self, thing: Any, key: tuple[int, str | None]) -> Any:
        before, self.outermost = self.outermost, len(self.open)
        self.open.append(id(thing))
        try:
            found = self._described(thing)
            if self.outermost >= len(self.open) - 1:  # it is the same wherever it stands
                self.known[key] = (thing, found)
        finally:
            self.open.pop()
            self.outermost = min(before, self.outermost)
        return found

    def _described(self, thing: Any) -> Any:
        if isinstance(thing, tuple) and hasattr(thing, "_fields"):
            return {"is": _name(type(thing)), **{name: self.describe(getattr(thing, name)) for name in thing._fields}}
        if isinstance(thing, (list, tuple)):
            return [self.describe(each) for each in thing]
        if isinstance(thing, (set, frozenset)):
            return sorted((self.describe(each) for each in thing), key=repr)
        if isinstance(thing, Mapping):
            pairs = [[self.describe(key), self.describe(value)] for key, value in thing.items()]
            return {"map": sorted(pairs, key=repr)}
        if isinstance(thing, range):
            return {"range": [thing.start, thing.stop, thing.step]}
        if isinstance(thing, types.ModuleType):
            return {"module": thing.__name__}
        if isinstance(thing, type):
            return self._class(thing)
        if isinstance(thing, functools.partial):
            return {"partial": [self.describe(part) for part in (thing.func, thing.args, thing.keywords)]}
        if isinstance(thing, types.MethodType):
            known = _known(type(thing.__self__))
            method = thing.__func__.__qualname__ if known else self.describe(thing.__func__)
            return {"method": method, "of": self.describe(thing.__self__)}
        if inspect.isfunction(thing):
            return self._function(thing)
        if inspect.isbuiltin(thing) or isinstance(thing, np.ufunc):
            return {"builtin": getattr(thing, "__qualname__", thing.__name__)}
        return self._object(thing)

    def _object(self, thing: Any) -> Any:
        kind = type(thing)
        wrapped = getattr(thing, "__wrapped__", None)
        if callable(wrapped) and kind.__module__.partition(".")[0] in COMPILERS:
            return {"wrapped": self.describe(wrapped)}
        facts = _fields(thing)
        if facts is None:
            raise BadInput(
                f"A {_name(kind)} cannot be told from another of its kind, so that no run with it can be named; pass "
                "plain values, arrays, dataclasses or functions in its place."
            )
        revision = {"revision": kind.revision} if isinstance(getattr(kind, "revision", None), int) else {}
        called = {} if _known(kind) or not callable(thing) else {"call": self.describe(kind.__call__)}
        return {
            "is": _name(kind),
            **revision,
            **called,
            **{name: self.describe(value) for name, value in facts.items()},
        }

    def _class(self, kind: type) -> Any:
        """By its name; where a function would count by its source, also by its methods, values and bases."""
        home = self.home
        if _known(kind) or kind.__module__ == "builtins" or home not in (None, kind.__module__):
            return {"class": _name(kind)}
        self.home = kind.__module__
        try:
            members = [[name, self._global(member)] for name, member in _members(kind)]
            return {"class": _name(kind), "members": members, "bases": [self.describe(base) for base in kind.__bases__]}
        finally:
            self.home = home

    def _function(self, function: Any) -> Any:
        home = self.home
        if home is not None and function.__module__ != home and function.__closure__ is None:
            return {"function": f"{function.__module__}.{function.__qualname__}"}
        self.home = home or function.__module__
        try:
            facts = {
                "source": _source(function),
                "defaults": self.describe(function.__defaults__),
                "keywords": self.describe(function.__kwdefaults__),
                "around": [[name, self.describe(value)] for name, value in _around(function)],
                "globals": [[name, self._global(value)] for name, value in _globals(function)],
            }
        finally:
            self.home = home
        # A helper is a short name only: else what several of them share would be written out for each of them.
        return {"function": function.__qualname__, **(facts if home is None else {"content": digest(facts)})}

    def _global(self, value: Any) -> Any:
        """What a function finds in its module; what has no name there, such as a lock, hardly makes a difference."""
        try:
            return self.describe(value)
        except BadInput:
            return {"is": _name(type(value))}


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _known(kind: type) -> bool:
    """Whether a class is of this package, whose code counts by revisions."""
    return kind.__module__.partition(".")[0] == "tutelage"


def _real(number: float) -> Any:
    return number if np.isfinite(number) else {"value": repr(number)}  # JSON has none of these


def _array(array: np.ndarray) -> Any:
    if array.ndim == 0 and array.dtype.kind in "fiub":
        value = array.item()
        return _real(value) if isinstance(value, float) else value
    if array.dtype == object:
        raise BadInput("An array of Python objects cannot be told from another, so that no run with it can be named.")
    content = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[: 2 * LENGTH]
    return {"array": str(array.dtype), "shape": list(array.shape), "content": content}


def _fields(thing: Any) -> dict[str, Any] | None:
    """The fields of a dataclass (of those that are compared), or the values of an object; None if it has neither."""
    if dataclasses.is_dataclass(thing):
        return {each.name: getattr(thing, each.name) for each in dataclasses.fields(thing) if _counts(thing, each)}
    if hasattr(thing, "model_dump"):
        return dict(thing.model_dump())
    own = getattr(thing, "__dict__", None)
    return dict(own) if isinstance(own, dict) else _slots(thing)


def _counts(thing: Any, each: dataclasses.Field[Any]) -> bool:
    """Whether a field is a part of the description."""
    unset = each.metadata.get("later") and getattr(thing, each.name) is each.default
    return each.compare and not unset


def _slots(thing: Any) -> dict[str, Any] | None:
    """The values of an object that has nothing but slots."""
    parts = [vars(kind).get("__slots__") for kind in type(thing).__mro__[:-1]]  # none of a bare `object()`: a mark
    if any(part is None for part in parts):
        return None
    names = [name for part in parts for name in ((part,) if isinstance(part, str) else part or ())]
    return {name: getattr(thing, name) for name in sorted(names) if hasattr(thing, name)}


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """What was written in a class: its functions, however they are called, and values; nothing that was made for it."""
    for name, member in sorted(vars(kind).items()):
        inner = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        inner = inner.func if isinstance(inner, functools.cached_property) else inner
        special = name.startswith("__")
        if not special or (inspect.isfunction(inner) and _node(inner) is not None):
            yield name, inner


def _source(function: Any) -> str:
    """The function as it is written, without its name, its place and its comments; its instructions if nobody knows.

    Source text outlives a new Python; instructions do not.
    """
    node = _node(function)
    if node is None:
        return hashlib.sha256(repr(_instructions(function.__code__)).encode()).hexdigest()[:LENGTH]
    return hashlib.sha256(ast.dump(node, include_attributes=False).encode()).hexdigest()[:LENGTH]


def _node(function: Any) -> ast.AST | None:
    """The syntax of a function; None if its text is not at hand, or holds several that it might be."""
    try:
        # Of the code: a wrapper passes itself off as what it wraps.
        text = textwrap.dedent(inspect.getsource(function.__code__))
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError):
        return None
    wanted = ast.Lambda if function.__code__.co_name == "<lambda>" else (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in ast.walk(tree) if isinstance(node, wanted)]
    if wanted is not ast.Lambda:
        return found[0] if found else None
    return found[0] if len(found) == 1 else None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code, and that of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _instructions(code: types.CodeType) -> list[Any]:
    """Without the lines and the file that they come from."""
    constants = [
        sorted(map(repr, each)) if isinstance(each, frozenset) else repr(each)
        for part in _codes(code)
        for each in part.co_consts
        if not isinstance(each, types.CodeType)
    ]
    return [[part.co_code.hex(), part.co_names, part.co_varnames] for part in _codes(code)] + constants


def _around(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Names that a function takes from the functions around it, with what they stand for now."""
    inner: Any = function
    for name, cell in zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not yet bound
            yield name, None


def _globals(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Names that a function takes from its module, with what they stand for now."""
    inner: Any = function
    names = {name for code in _codes(inner.__code__) for name in code.co_names}
    yield from ((name, inner.__globals__[name]) for name in sorted(names) if name in inner.__globals__)
