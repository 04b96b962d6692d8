"""The arguments of a tool of ours, as a type: what a model sees, and what checks its calls. Pure.

The type's docstring is the description, its fields make the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from ..errors import InvalidInput

T = TypeVar("T")


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


def renamed(given: Mapping[str, T], names: Mapping[str, str]) -> dict[str, T]:
    """Return what is given, each under the name that is documented.

    Args:
        names: those that are taken, too, and the documented ones.

    Raises:
        InvalidInput: something is given by two names.

    >>> renamed({"timezone": "Asia/Tokyo", "cron": "0 9 * * *"}, {"timezone": "zone"})
    {'zone': 'Asia/Tokyo', 'cron': '0 9 * * *'}
    """
    for other, name in names.items():
        if other in given and name in given:
            raise InvalidInput(other, f"is another name of {name}: give one of them")
    return {names.get(name, name): value for name, value in given.items()}
