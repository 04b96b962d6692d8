"""A JSON Schema compiled to a check that ends after bounded work: see :mod:`.arguments`. Pure.

Apart from there because the library takes a tenth of a second to load, and no call may ever come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import referencing
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend

STEPS_MAX: Final = 30_000
"""Keywords that one check may apply, each with what it goes through of the schema and the value."""
MESSAGE_LENGTH_MAX: Final = 500
IGNORED: Final = (
    "pattern",
    "patternProperties",
    "format",  # regular expressions
    "unevaluatedProperties",
    "unevaluatedItems",  # look at patternProperties by themselves
    "uniqueItems",  # compares each with each
)
"""Keywords that a stranger's schema is relieved of."""

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


class TooMuch(Exception):
    """The check takes more steps than it may."""


class _Steps:
    """Counts what a check does."""

    def __init__(self) -> None:
        self.left = STEPS_MAX

    def counting(self, keyword: Keyword) -> Keyword:
        def check(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
            self.left -= 1 + _length(value) + _length(instance)
            if self.left < 0:
                raise TooMuch
            return keyword(validator, value, instance, schema)

        return check


def _length(part: Any) -> int:
    return len(part) if isinstance(part, list | dict) else 0


class SchemaCheck:
    """A compiled schema."""

    def __init__(self, schema: dict[str, Any], *, is_foreign: bool) -> None:
        self._steps = _Steps()
        keywords: dict[str, Any] = {
            name: self._steps.counting(keyword)
            for name, keyword in Draft202012Validator.VALIDATORS.items()
        }
        if is_foreign:
            keywords |= dict.fromkeys(IGNORED)
            keywords["additionalProperties"] = self._steps.counting(_additional_properties)
        # A registry of our own: the usual one fetches what a reference leads to.
        kind = extend(Draft202012Validator, keywords)  # type: ignore[no-untyped-call]
        self._validator = kind(_plain(schema), registry=referencing.Registry())

    def problem(self, arguments: dict[str, Any]) -> str | None:
        self._steps.left = STEPS_MAX
        error = best_match(self._validator.iter_errors(arguments))
        return None if error is None else _words(error)


def _additional_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
    if "patternProperties" in schema:
        return iter(())  # which names those cover isn't looked at
    return Draft202012Validator.VALIDATORS["additionalProperties"](
        validator, value, instance, schema
    )


def _plain(schema: Any) -> Any:
    """Return the schema without any `$schema`: it would switch to another dialect, unguarded."""
    if isinstance(schema, dict):
        return {
            key: _plain(value)
            for key, value in schema.items()
            if not (key == "$schema" and isinstance(value, str))
        }
    return [_plain(value) for value in schema] if isinstance(schema, list) else schema


def _words(error: ValidationError) -> str:
    """Name the field and what is wrong with it."""
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.path)
    text = f"{field[:MESSAGE_LENGTH_MAX].lstrip('.') or 'the arguments'}: {error.message}"
    return text if len(text) <= MESSAGE_LENGTH_MAX else f"{text[: MESSAGE_LENGTH_MAX - 1]}…"
