"""A paper's settings as rows: name, kind, default, bounds, description; the same in commands, report and docs."""

import types
import typing
from dataclasses import dataclass
from typing import Any

import annotated_types
import pydantic


@dataclass(frozen=True)
class Parameter:
    """One setting, in words."""

    name: str
    kind: str
    default: Any
    bounds: str
    description: str


def parameters(model: type[pydantic.BaseModel]) -> list[Parameter]:
    """The fields of a settings model.

    ```python
    >>> import pydantic
    >>> from tutelage.present.settings_table import parameters
    >>> class Small(pydantic.BaseModel):
    ...     dim: int = pydantic.Field(100, ge=1, description="d, the input dimension")
    >>> parameters(Small)
    [Parameter(name='dim', kind='int', default=100, bounds='>= 1', description='d, the input dimension')]

    ```
    """
    rows = []
    for name, field in model.model_fields.items():
        default = "required" if field.is_required() else field.get_default(call_default_factory=True)
        rows.append(Parameter(name, _kind(field.annotation), default, _bounds(field.metadata), field.description or ""))
    return rows


def _kind(annotation: Any) -> str:
    """The type as a reader says it: `a | b` for choices."""
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        return " | ".join(str(choice) for choice in typing.get_args(annotation))
    if origin is typing.Annotated:
        return _kind(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return " | ".join("none" if arg is type(None) else _kind(arg) for arg in typing.get_args(annotation))
    if origin is not None:
        inside = ", ".join("..." if arg is Ellipsis else _kind(arg) for arg in typing.get_args(annotation))
        return f"{origin.__name__}[{inside}]"
    return getattr(annotation, "__name__", str(annotation))


def _bounds(metadata: list[Any]) -> str:
    parts = []
    for item in metadata:
        for kind, sign in ((annotated_types.Gt, ">"), (annotated_types.Ge, ">="), (annotated_types.Lt, "<"),
                           (annotated_types.Le, "<=")):  # fmt: skip
            if isinstance(item, kind):
                value = getattr(item, {">": "gt", ">=": "ge", "<": "lt", "<=": "le"}[sign])
                parts.append(f"{sign} {value:g}" if isinstance(value, float) else f"{sign} {value}")
    return ", ".join(parts)
