"""The schema of a tool of somebody else, made fit to be shown to a model. Pure.

A schema says what arguments look like, and is also a text that the model reads, data that the
model's API may refuse as a whole, and a program that a validator runs. So what could hide text,
fetch something or never end is taken out; the server checks its arguments by the whole schema
anyhow. What can't be made fit is refused with a reason.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from vigil.texts.glyphs import is_printable

SCHEMA_BYTES_MAX: Final = 16 * 1024
DEPTH_MAX: Final = 32
ARGUMENT: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
"""Names of arguments that the API of Anthropic takes; one other, and it refuses the request."""

_NAMED: Final = ("properties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose keys are names, and whose values are schemas."""
_DATA: Final = ("const", "default", "enum", "examples")
"""Keywords whose value is data: it stays as it is."""
_PATTERNS: Final = ("pattern", "patternProperties")
"""A regular expression may take for ever; nobody but the server need run its own."""
_AT_THE_TOP: Final = ("oneOf", "anyOf", "allOf", "not", "if", "then", "else")
"""The API of Anthropic refuses a request with one of the first three at the top of a schema."""
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


class Unfit(ValueError):
    """A tool can't be offered; the text says why."""


def visible(text: str) -> str:
    """Return `text` without what a person can't see and a model reads all the same.

    >>> visible("Read a file.\\u200b\\U000e0041")
    'Read a file.'
    """
    return "".join(filter(_is_seen, text))


def _is_seen(char: str) -> bool:
    return char in "\n\t" or is_printable(char) or unicodedata.category(char) not in _HIDDEN


_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cn", "Cs"})


def fit(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema as it is offered.

    Raises:
        Unfit: it is too large or too deep, no schema of an object, or leads somewhere else.
    """
    if _depth(schema) > DEPTH_MAX:
        raise Unfit(f"its schema is nested deeper than {DEPTH_MAX}")
    if len(msgspec.json.encode(schema)) > SCHEMA_BYTES_MAX:
        raise Unfit(f"its schema has more than {SCHEMA_BYTES_MAX} bytes")
    if schema.get("type") != "object":
        raise Unfit("its schema is not one of an object")
    _check(schema)
    return {k: v for k, v in _cleaned(schema).items() if k not in _AT_THE_TOP}


def _check(schema: dict[str, Any]) -> None:
    for place in _references(schema):
        if not place.startswith("#"):
            raise Unfit(f"its schema leads to {place[:64]!r}")
    from jsonschema import Draft202012Validator, SchemaError  # 0.1 s, if there is any server

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise Unfit(f"its schema is none: {error.message[:200]}") from error
    for name in schema.get("properties", {}):
        if not ARGUMENT.fullmatch(name):
            raise Unfit(f"its argument {visible(name)[:64]!r} has no usable name")


def _depth(value: object) -> int:
    """Return how deep lists and objects are nested, counting no further than is allowed."""
    level = [value]
    for depth in range(DEPTH_MAX + 2):
        level = [inner for one in level for inner in _inner(one)]
        if not level:
            return depth
    return DEPTH_MAX + 1


def _inner(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for keyword in _REFERENCES:
            if isinstance(place := value.get(keyword), str):
                yield place
    for inner in _inner(value):
        yield from _references(inner)


def _cleaned(schema: Any) -> Any:
    """Return a schema, or a list of them, without patterns and hidden text."""
    if isinstance(schema, list):
        return [_cleaned(one) for one in schema]
    if not isinstance(schema, dict):
        return visible(schema) if isinstance(schema, str) else schema
    kept = {
        keyword: _value(keyword, value)
        for keyword, value in schema.items()
        if keyword not in _PATTERNS
    }
    if "patternProperties" in schema and kept.get("additionalProperties") is False:
        del kept["additionalProperties"]  # it speaks of what the patterns leave over
    return kept


def _value(keyword: str, value: Any) -> Any:
    if keyword in _DATA or keyword == "required":
        return value
    if keyword in _NAMED and isinstance(value, dict):
        return {name: _cleaned(one) for name, one in value.items()}
    return _cleaned(value)
