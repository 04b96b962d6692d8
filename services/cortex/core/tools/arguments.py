"""Whether the arguments of a call fit the JSON Schema of its tool (SPEC X-6). Pure.

The schema of an MCP tool is a stranger's, and it is checked here, in the process that holds all
sessions. So nothing in it may take long or reach out: no reference leads out of it, the work is
counted and ends at a limit, and what could run away in one step (a regular expression) is ignored,
as is `$schema`, which would bring another dialect with all of that back. What can't be checked in
bounded work isn't: whoever runs the tool checks the arguments, too. This check is there so that the
model, or the person who edits a request, is told at once what is wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import referencing
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend

from vigil.contracts import Tool
from vigil.contracts.arguments import renamed
from vigil.errors import InvalidInput

SCHEMA_BYTES_MAX: Final = 64 * 1024
STEPS_MAX: Final = 30_000
"""Keywords that one check may apply, each with what it goes through of the schema and the value."""
KEPT_MAX: Final = 500
"""Compiled validators that are kept; the ones that were not used for longest go."""
MESSAGE_LENGTH_MAX: Final = 500
FOREIGN: Final = "__"
"""Stands in the names of the tools of MCP servers."""
IGNORED: Final = (
    "pattern", "patternProperties", "format",  # regular expressions
    "unevaluatedProperties", "unevaluatedItems",  # look at patternProperties by themselves
    "uniqueItems",  # compares each with each
)  # fmt: skip
"""Keywords that a stranger's schema is relieved of."""

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


class _TooMuch(Exception):
    """The check takes more steps than it may."""


class _Steps:
    """Counts what a check does."""

    def __init__(self) -> None:
        self.left = STEPS_MAX

    def counting(self, keyword: Keyword) -> Keyword:
        def check(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
            self.left -= 1 + _length(value) + _length(instance)
            if self.left < 0:
                raise _TooMuch
            return keyword(validator, value, instance, schema)

        return check


def _length(part: Any) -> int:
    return len(part) if isinstance(part, list | dict) else 0


class _Check:
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


_kept: OrderedDict[tuple[str, bytes], _Check | None] = OrderedDict()
"""Compiled schemas, by what they are made of: remembering one changes no answer."""


def problem(tool: Tool, arguments: dict[str, Any]) -> str | None:
    """Return what doesn't fit, with the field's name; None if all does, or it can't be checked.

    >>> shout = Tool(name="shout", description="", input_schema={
    ...     "type": "object", "properties": {"times": {"type": "integer"}}, "required": ["times"]})
    >>> problem(shout, {"times": 3})
    >>> problem(shout, {"times": "3"})
    "times: '3' is not of type 'integer'"
    >>> problem(shout, {})
    "the arguments: 'times' is a required property"
    """
    check = _check_of(tool)
    if check is None:
        return None
    try:
        return check.problem(arguments)
    except Exception:
        # A schema that is none fails in ways of its own: bad types, references to nowhere or round
        # in circles, more steps than it may take.
        return None


def _check_of(tool: Tool) -> _Check | None:
    """Return the compiled schema; None if it can't be used."""
    try:
        encoded = msgspec.json.encode(tool.input_schema)
    except (msgspec.MsgspecError, TypeError, RecursionError):
        return None
    if len(encoded) > SCHEMA_BYTES_MAX:
        return None
    key = (FOREIGN if FOREIGN in tool.name else "", encoded)
    if key not in _kept:
        _kept[key] = _compiled(tool)
        if len(_kept) > KEPT_MAX:
            _kept.popitem(last=False)
    _kept.move_to_end(key)
    return _kept[key]


def _compiled(tool: Tool) -> _Check | None:
    try:
        return _Check(tool.input_schema, is_foreign=FOREIGN in tool.name)
    except Exception:
        return None


def fitted(tool: Tool, given: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return the arguments by the names of the schema, and what doesn't fit, as `problem`.

    >>> schema = {"properties": {"zone": {"type": "string"}}, "additionalProperties": False}
    >>> clock = Tool(name="clock", description="", input_schema=schema, other_names={"tz": "zone"})
    >>> fitted(clock, {"tz": "Asia/Tokyo"})
    ({'zone': 'Asia/Tokyo'}, None)
    >>> fitted(clock, {"tz": "Asia/Tokyo", "zone": "UTC"})[1]
    'tz: is another name of zone: give one of them'
    """
    try:
        arguments = renamed(given, tool.other_names)
    except InvalidInput as error:
        return given, str(error)
    return arguments, problem(tool, arguments)
