"""The arguments of the executor's own tools, as types: what a model sees (SPEC P-6). Pure.

Each type's docstring is the description, its fields make the schema, and the same types check what
comes in.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from vigil.errors import InvalidInput

Offset = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the arguments."""


A = TypeVar("A", bound=Arguments)


def description_of(kind: type[Arguments]) -> str:
    """Return what a model is told that a tool does."""
    return " ".join((kind.__doc__ or "").split())


def schema_of(kind: type[Arguments]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments.

    >>> class Look(Arguments):
    ...     path: str
    >>> schema_of(Look)["required"]
    ['path']
    """
    _, components = msgspec.json.schema_components([kind])
    schema: dict[str, Any] = dict(components[kind.__name__])
    schema.pop("title", None)
    schema.pop("description", None)
    return schema


def check(kind: type[A], given: dict[str, Any]) -> A:
    """Return the arguments of a call. Raises: InvalidInput."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise InvalidInput("input", str(error)) from error
