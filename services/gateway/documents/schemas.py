"""The schemas of the AsyncAPI document, made of the structs that encode and decode. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from vigil.fields.structs import components_of

AT: Final = "#/components/schemas"
SERVED: Final = {"MemoryLink": "Edge"}
"""Names that programs know schemas by, of classes whose own name has become another."""


def of(kinds: Iterable[type]) -> dict[str, Any]:
    """Return the schemas of records and of all that these are made of, by name."""
    _, schemas = components_of(kinds, AT + "/{name}")
    served = {SERVED.get(name, name): schema for name, schema in schemas.items()}
    plain: dict[str, Any] = _plain(dict(sorted(served.items())))
    return plain


def _plain(schema: Any) -> Any:
    """Give references and titles the names that are served, and drop OpenAPI's `discriminator`,
    which AsyncAPI knows in another form only.

    Nothing is lost: each record of a union says which it is in its own schema (`type`).
    """
    if isinstance(schema, list):
        return [_plain(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _named(value) if key in ("$ref", "title") else _plain(value)
        for key, value in schema.items()
        if not (key == "discriminator" and isinstance(value, dict))
    }


def _named(value: Any) -> Any:
    """Return a title or a reference with the name that is served.

    >>> _named("#/components/schemas/MemoryLink"), _named("Edge"), _named({"type": "string"})
    ('#/components/schemas/Edge', 'Edge', {'type': 'string'})
    """
    if not isinstance(value, str):
        return _plain(value)  # a field of that name
    at, slash, name = value.rpartition("/")
    return at + slash + SERVED.get(name, name)
