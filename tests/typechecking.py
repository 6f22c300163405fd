"""The checker of annotations in all tests."""

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

import jaxtyping
from beartype import BeartypeConf, FrozenDict, beartype
from numpy.typing import ArrayLike
from pydantic import ValidationInfo

# NumPy's protocol for sequences of numbers asks for `__reversed__`, which tuples do not have.
_SEQUENCES = {
    hint: Sequence
    for hint in typing.get_args(getattr(ArrayLike, "__value__", ArrayLike))  # from Python 3.12 on a `type` statement
    if getattr(typing.get_origin(hint), "__name__", "") == "_NestedSequence"
}
_PROTOCOLS = {ValidationInfo: object}  # pydantic's cannot be asked whether something is one

# An int is a float, as for every checker of Python's annotations.
check = beartype(conf=BeartypeConf(is_pep484_tower=True, hint_overrides=FrozenDict(_SEQUENCES | _PROTOCOLS)))
_jaxtyped = jaxtyping.jaxtyped


def install(*modules: str) -> None:
    """Check every function and class of these modules, and of those in them, that are imported from now on.

    The hook writes `jaxtyping.jaxtyped` above each of them; here it is one that lets them refuse arguments themselves.
    """
    jaxtyping.jaxtyped = _courteous
    jaxtyping.install_import_hook(modules, "typechecking.check")


def _courteous(*, typechecker: Any) -> Callable[[Any], Any]:
    def decorate(target: Any) -> Any:
        if inspect.isclass(target):
            if "__init__" in vars(target):
                target.__init__ = _made(target, typechecker)
            return target
        return target if target.__name__ == "__init__" else _speaking(target, typechecker)

    return decorate


def _made(kind: Any, typechecker: Any) -> Callable[..., None]:
    """The `__init__` of a class. If its attributes are annotated, as in a dataclass, it is checked what they hold in
    the end, and not what was given: many a class makes such a thing from more than that, or refuses it."""
    init, hints = kind.__init__, _attributes(kind)
    if not hints:
        return _speaking(init, typechecker)
    # A function of the same module, so that annotations in quotes are understood.
    holds = types.FunctionType((lambda **attributes: None).__code__, vars(sys.modules[kind.__module__]))
    holds.__name__, holds.__qualname__, holds.__module__ = "attributes", kind.__qualname__, kind.__module__
    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]) for name in hints]
    holds.__signature__ = inspect.Signature(parameters)
    checked = _jaxtyped(holds, typechecker=typechecker)

    @functools.wraps(init)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        init(self, *args, **kwargs)
        if type(self) is not kind or not all(name in getattr(self, "__dict__", ()) for name in hints):
            return
        try:
            checked(**{name: getattr(self, name) for name in hints})
        except jaxtyping.TypeCheckError:
            _let_refuse(getattr(kind, "__check_init__", len), (self,), {})  # which Equinox asks later
            raise

    return made


def _attributes(kind: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        found |= inspect.get_annotations(each)
    return {name: hint for name, hint in found.items() if "ClassVar" not in str(hint)}


def _speaking(function: Callable[..., Any], typechecker: Any) -> Callable[..., Any]:
    """The checked function; if its arguments are of wrong types and it has a sentence for that, it says its sentence.

    What a user sees is then what is tested, and an argument that is taken although its annotation excludes it is still
    an error.
    """
    checked = _jaxtyped(function, typechecker=typechecker)
    mine = f"Type-check error whilst checking the parameters of {function.__module__}.{function.__qualname__}."

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            return checked(*args, **kwargs)
        except jaxtyping.TypeCheckError as error:
            if str(error).startswith(mine):
                _let_refuse(function, args, kwargs)
            raise

    return call


def _let_refuse(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises what the function itself has to say against its arguments, if anything."""
    from tutelage import BadInput

    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        function(*args, **kwargs)
    except BadInput as refusal:
        raise refusal from None
    except Exception:
        pass
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
