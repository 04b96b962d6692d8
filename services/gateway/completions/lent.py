"""The tools of the caller's that a request brings along, and what it tells of their calls. Pure.

A schema of theirs is a text that the model reads, and data that the server of a model may refuse
with the whole request. So what can't be shown is refused here, by field and reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vigil.contracts import Tool
from vigil.contracts.calls.caller import CALLER_PREFIX, CallerTools
from vigil.errors import InvalidInput

TOOLS_MAX: Final = 64
BYTES_MAX: Final = 32 * 1024
"""Of all names, descriptions and schemas: they are in every turn until the answer is there."""
NAME_LENGTH_MAX: Final = 64 - len(CALLER_PREFIX)
FUNCTION: Final = "function"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_ARGUMENT: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""In JSON; behind an odd number of backslashes it's those, and digits."""
_AT_THE_TOP: Final = ("oneOf", "anyOf", "allOf", "not", "if", "enum", "const")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_CHOICE: Final = "must be auto or none: an agent decides by itself what it calls"


class GivenTool(NamedTuple):
    """A tool as a request has it, of whichever interface."""

    field: str
    """Where in the request."""
    kind: str
    name: str
    description: str | None
    parameters: Any


def caller_tools(
    given: Sequence[GivenTool], choice: object, *, is_parallel: bool | None
) -> CallerTools | None:
    """Return the tools of a request for the agent; None: it may call none.

    Args:
        choice: `tool_choice` of the request.

    Raises:
        InvalidInput: one can't be shown to a model, or they are too many.
    """
    if choice not in (None, "auto", "none"):
        raise InvalidInput("tool_choice", _CHOICE)
    if len(given) > TOOLS_MAX:
        raise InvalidInput("tools", f"must be at most {TOOLS_MAX}, are {len(given)}")
    tools = tuple(map(_tool, given))
    names = [one.name for one in tools]
    for at, one in enumerate(given):
        if names[at] in names[:at]:
            raise InvalidInput(f"{one.field}.name", f"{one.name!r} is there twice")
    written = msgspec.json.encode(tools)
    if len(written) > BYTES_MAX:
        raise InvalidInput("tools", f"must have at most {BYTES_MAX} bytes, have {len(written)}")
    if _NUL.search(written):
        raise InvalidInput("tools", "must not contain NUL")
    if not tools or choice == "none":
        return None
    return CallerTools(tools=tools, is_one_by_one=is_parallel is False)


def _tool(given: GivenTool) -> Tool:
    if given.kind != FUNCTION:
        reason = f"{given.kind[:40]!r} isn't taken here, only functions: an agent has its own"
        raise InvalidInput(f"{given.field}.type", reason)
    name = f"{given.field}.name"
    if not _NAME.fullmatch(given.name):
        raise InvalidInput(name, "may contain only letters A-Z a-z, digits, '_' and '-'")
    if len(given.name) > NAME_LENGTH_MAX:
        reason = f"must have at most {NAME_LENGTH_MAX} characters, has {len(given.name)}"
        raise InvalidInput(name, reason)
    return Tool(
        name=f"{CALLER_PREFIX}{given.name}",
        description=given.description or "",
        input_schema=_schema(f"{given.field}.parameters", given.parameters),
        risk="external",
    )


def _schema(field: str, given: Any) -> dict[str, Any]:
    """Return a schema that can be shown. Raises: InvalidInput."""
    schema = {"type": "object"} if given is None else given
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise InvalidInput(field, "must be a JSON Schema of an object")
    for keyword in _AT_THE_TOP:
        if keyword in schema:
            raise InvalidInput(field, f"must not have {keyword} at the top: models refuse that")
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict):
        raise InvalidInput(f"{field}.properties", "must be an object")
    for name, one in properties.items():
        if not _ARGUMENT.fullmatch(name):
            reason = f"{name[:64]!r} is no usable name of an argument"
            raise InvalidInput(f"{field}.properties", reason)
        if not isinstance(one, dict | bool):
            raise InvalidInput(f"{field}.properties.{name}", "must be a JSON Schema")
    if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
        raise InvalidInput(f"{field}.required", "must be a list of names")
    for place in _references(schema):
        if not (isinstance(place, str) and place.startswith("#")):
            raise InvalidInput(field, f"leads to {str(place)[:64]!r}; nothing is fetched")
    return {"type": "object"} | schema


def _references(value: Any) -> Iterator[object]:
    """Return where a schema leads to. The request's depth is bounded before."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in _REFERENCES:
                yield inner
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


# ---------------------------------------------------------------- calls


CALL: Final = "call_"
"""Begins the ids of calls, as programs have them."""
_CALL: Final = re.compile(rf"{CALL}([0-9a-f]{{32}})")


class GivenResult(NamedTuple):
    """What a program says of a call."""

    field: str
    """Where in the request the call is named."""
    call_id: str
    """As the program has it."""
    text: str


class AskedCall(NamedTuple):
    """A call that a program is to run."""

    call_id: str
    """As the program has it."""
    name: str
    arguments: Mapping[str, Any]


def effect_of(call_id: str) -> str:
    """Return the id of a call as the log has it; empty: nobody gave that id.

    >>> effect_of("call_" + 32 * "a") == 32 * "a", effect_of("call_7")
    (True, '')
    """
    found = _CALL.fullmatch(call_id)
    return found[1] if found else ""


def asked_call(effect_id: str, tool: str, arguments: Mapping[str, Any]) -> AskedCall:
    """Return a call as its program is to see it."""
    return AskedCall(f"{CALL}{effect_id}", tool.removeprefix(CALLER_PREFIX), arguments)


def check_complete(results: Sequence[GivenResult], asked: Iterable[str]) -> None:
    """Check that each call of an answer has one result.

    Args:
        asked: ids of the calls of that answer, as programs have them.

    Raises:
        InvalidInput: one has none, or two, or isn't of that answer.
    """
    wanted, seen = set(asked), set[str]()
    for one in results:
        if one.call_id not in wanted:
            raise InvalidInput(one.field, "isn't a call of the same answer as those before it")
        if one.call_id in seen:
            raise InvalidInput(one.field, "has a result already")
        seen.add(one.call_id)
    if missing := sorted(wanted - seen):
        raise InvalidInput(results[-1].field, f"there is no result of {', '.join(missing)}")
