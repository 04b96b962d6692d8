"""The arguments of a tool of ours, as a type: what a model sees, and what checks its calls. Pure.

The type's docstring is the description, its fields make the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from ..errors import InvalidInput
from ..fields.structs import components_of

T = TypeVar("T")
_LENGTHS: Final = frozenset({"minLength", "maxLength"})
_NAMED: Final = frozenset({"properties", "$defs"})
"""Keys of a schema under which stand names that we choose, each with a schema."""
_NULL: Final = {"type": "null"}
_NOTHING: Final[tuple[Any, ...]] = (None, "", [], False)
"""Defaults that go without saying."""


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
    _, components = components_of([kind])
    schema: dict[str, Any] = dict(components.pop(kind.__name__))
    schema.pop("title", None)
    schema.pop("description", None)
    return schema | ({"$defs": components} if components else {})


def brief(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of ours as a model is shown it: each word is paid for in every request.

    What is left out says nothing that a model needs to fill it in, and is checked all the same: how
    long a text may be, that no other field is taken, and that what isn't given is null.

    >>> lines = {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    >>> path = {"type": "string", "maxLength": 99}
    >>> brief({"type": "object", "properties": {"path": path, "lines": lines}, "required": []})
    {'type': 'object', 'properties': {'path': {'type': 'string'}, 'lines': {'type': 'integer'}}}
    """
    kept = {name: value for name, value in schema.items() if name not in _LENGTHS}
    if kept.get("additionalProperties") is False:
        del kept["additionalProperties"]
    if kept.get("required") == []:
        del kept["required"]
    if kept.get("default", _NOTHING[0]) in _NOTHING:
        kept.pop("default", None)
    for name in _NAMED & kept.keys():
        kept[name] = {field: brief(value) for field, value in kept[name].items()}
    if isinstance(items := kept.get("items"), Mapping):
        kept["items"] = brief(items)
    if "anyOf" in kept:
        kinds = [brief(kind) for kind in kept.pop("anyOf") if kind != _NULL]
        kept |= kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return kept


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
