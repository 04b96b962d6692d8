"""The JSON schemas of structs, described alike whichever Python runs. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import cleandoc
from typing import Any

import msgspec

from .schema import Schema


def components_of(
    kinds: Iterable[Any], ref_template: str = "#/$defs/{name}"
) -> tuple[tuple[Schema, ...], dict[str, Schema]]:
    """Return a schema for each kind, and those of the structs that they are made of, by name.

    What a struct's docstring says loses the indentation of its lines, which Python takes out of
    docstrings since 3.13: the same document is made by each.

    >>> class Look(msgspec.Struct):
    ...     '''Look at a file
    ...     that there is.'''
    >>> components_of([Look])[1]["Look"]["description"]
    'Look at a file\\nthat there is.'
    """
    roots, components = msgspec.json.schema_components(kinds, ref_template=ref_template)
    for schema in components.values():
        if said := schema.get("description"):
            schema["description"] = cleandoc(said)
    return roots, components
