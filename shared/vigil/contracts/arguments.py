"""The arguments of a tool of ours, as a type: what a model sees, and what checks its calls. Pure.

The type's docstring is the description, its fields make the schema.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the arguments."""


def description_of(kind: type[Arguments]) -> str:
    """Return what a model is told that a tool does."""
    return " ".join((kind.__doc__ or "").split())


def schema_of(kind: type[Arguments]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments, with all that it refers to.

    >>> class Look(Arguments):
    ...     path: str
    >>> schema_of(Look)["required"]
    ['path']
    """
    _, components = msgspec.json.schema_components([kind])
    schema: dict[str, Any] = dict(components.pop(kind.__name__))
    schema.pop("title", None)
    schema.pop("description", None)
    return schema | ({"$defs": components} if components else {})
