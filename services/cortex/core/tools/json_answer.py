"""Reading JSON out of what a model said. Pure.

A model that is held to a schema answers with JSON and nothing else; others put words or a fence
around it. So an answer may be JSON or hold one JSON object.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from vigil.errors import InvalidInput

BEGINNINGS_MAX: Final = 64
"""Places at which a JSON object is looked for: each may cost a look at the whole answer."""

_decoder: Final = json.JSONDecoder()


def object_in(text: str, field: str) -> dict[str, Any]:
    """Return the JSON object that the text is, or the only one that it holds.

    Args:
        field: what the answer is to be, as a refusal names it.

    Raises:
        InvalidInput: there is none, or more than one.

    >>> object_in('Here it is: {"found": []}', "report")
    {'found': []}
    """
    text = text.strip()
    if not text:
        raise InvalidInput(field, "the answer is empty")
    value = whole(text)
    if isinstance(value, dict):
        return value
    if value is not None:
        raise InvalidInput(field, "it must be a JSON object")
    found = _objects(text)
    if not found:
        raise InvalidInput(field, "there is no JSON object in it")
    if len(found) > 1:
        raise InvalidInput(field, f"there are {len(found)} JSON objects in it; there must be one")
    return found[0]


def whole(text: str) -> Any:
    """Return what the text is as JSON; None, if it isn't."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects in a text that aren't part of others."""
    found: list[dict[str, Any]] = []
    at = text.find("{")
    for _ in range(BEGINNINGS_MAX):
        if at < 0:
            break
        try:
            _, end = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            one = whole(text[at:end])
            if isinstance(one, dict):
                found.append(one)
        at = text.find("{", end)
    return found


def depth(value: object) -> int:
    """Return how deep JSON data nests, without recursion.

    >>> depth({"a": [1, {"b": 2}]}), depth(1)
    (3, 0)
    """
    count, level = 0, [value]
    while level := [one for one in level if isinstance(one, dict | list)]:
        count += 1
        level = [
            child for one in level for child in (one.values() if isinstance(one, dict) else one)
        ]
    return count
