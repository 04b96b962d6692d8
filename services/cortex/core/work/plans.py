"""Reading a plan from what a model said (SPEC J-1). Pure.

A model that is held to a schema answers with JSON and nothing else; others put words or a fence
around it. So the answer may be JSON or hold one JSON object, and whatever is wrong with it is said
in a sentence that the model can use for another try.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from vigil.contracts import Plan, Step
from vigil.errors import InvalidInput

from ..context.offers import cut
from ..queue import stored_size

PLAN_BYTES_MAX: Final = 32 * 1024
"""A plan as it is stored: a turn holds it up to five times."""
REASONING_BYTES_MAX: Final = 2 * 1024
TOOL_LENGTH_MAX: Final = 128
DEPTH_MAX: Final = 24
"""How deep arguments may nest."""
BEGINNINGS_MAX: Final = 64
"""Places at which a JSON object is looked for: each may cost a look at the whole answer."""

_decoder: Final = json.JSONDecoder()


def read(text: str, steps_max: int) -> Plan:
    """Read a plan.

    Raises:
        InvalidInput: it is none; the reason is for the model to read.

    >>> read('Here it is: {"steps": [{"tool": "search", "input": "{}"}]}', 20).steps[0].tool
    'search'
    """
    found = _object_in(text.strip())
    steps = found.get("steps")
    if not isinstance(steps, list):
        raise _no("'steps' must be a list of steps")
    if not steps:
        raise _no("'steps' is empty: there must be at least one")
    if len(steps) > steps_max:
        raise _no(f"there are {len(steps)} steps; at most {steps_max} are allowed")
    reasoning = found.get("reasoning", "")
    plan = Plan(
        steps=tuple(_step(number, step) for number, step in enumerate(steps, start=1)),
        reasoning=cut(reasoning, REASONING_BYTES_MAX) if isinstance(reasoning, str) else "",
    )
    _check_size(plan)
    return plan


def _no(reason: str) -> InvalidInput:
    return InvalidInput("plan", reason)


def _check_size(plan: Plan) -> None:
    try:
        size = stored_size(plan)
    except (ValueError, OverflowError, UnicodeEncodeError) as error:
        raise _no(f"it holds what can't be stored ({error})") from error
    if size > PLAN_BYTES_MAX:
        raise _no(f"it has {size} bytes; at most {PLAN_BYTES_MAX} are allowed")


# ---------------------------------------------------------------- the object


def _object_in(text: str) -> dict[str, Any]:
    """Return the JSON object that the text is, or the only one that it holds."""
    if not text:
        raise _no("the answer is empty")
    whole = _whole(text)
    if isinstance(whole, dict):
        return whole
    if whole is not None:
        raise _no("it must be a JSON object with 'steps'")
    found = _objects(text)
    if not found:
        raise _no("there is no JSON object in it")
    if len(found) > 1:
        raise _no(f"there are {len(found)} JSON objects in it; there must be one")
    return found[0]


def _whole(text: str) -> Any:
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
            one = _whole(text[at:end])
            if isinstance(one, dict):
                found.append(one)
        at = text.find("{", end)
    return found


# ---------------------------------------------------------------- a step


def _step(number: int, step: object) -> Step:
    where = f"step {number}"
    if not isinstance(step, dict):
        raise _no(f"{where} must be an object with 'tool' and 'input'")
    tool = step.get("tool")
    if not isinstance(tool, str) or not tool.strip():
        raise _no(f"{where}: 'tool' must be the name of a tool")
    if len(tool) > TOOL_LENGTH_MAX:
        raise _no(f"{where}: 'tool' has more than {TOOL_LENGTH_MAX} characters")
    return Step(tool=tool.strip(), input=_input(where, step.get("input")))


def _input(where: str, given: object) -> dict[str, Any]:
    """Return the arguments: an object, or one written as a string, or nothing."""
    if isinstance(given, str):
        given = _whole(given) if given.strip() else {}
    elif given is None:
        given = {}
    if not isinstance(given, dict):
        raise _no(f"{where}: 'input' must be a JSON object with the tool's arguments")
    if _depth(given) > DEPTH_MAX:
        raise _no(f"{where}: 'input' is nested deeper than {DEPTH_MAX} levels")
    return given


def _depth(value: object) -> int:
    """Return how deep JSON data nests, without recursion.

    >>> _depth({"a": [1, {"b": 2}]}), _depth(1)
    (3, 0)
    """
    depth, level = 0, [value]
    while level := [one for one in level if isinstance(one, dict | list)]:
        depth += 1
        level = [
            child for one in level for child in (one.values() if isinstance(one, dict) else one)
        ]
    return depth
