"""Calls of tools as a model wrote them: each with an id of its own, and whole or not at all. Pure.

Some servers number the calls of each answer from `call_0` on, or give them no ids; small models
write arguments that are no JSON, and a stream may end in the middle of them. A number that was cut
is a number, too: so nothing but an object that is complete is run.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final, NamedTuple

import msgspec

from vigil.contracts import ToolUseBlock, Usage

from ...model import ModelAnswer, ModelRequest
from ..answers import arguments, mend
from ..messages import on_wire

UNREAD: Final = "unreadable_call"
"""Stands for the name of a tool that nobody could read."""
WRITTEN_MAX: Final = 300
"""Characters of malformed arguments that the model is shown again."""


class CallIds:
    """Gives each call of an answer an id that no other call of the conversation has.

    A result is matched with its call by the id alone, and a strict server refuses a history that
    has one twice, at every message from then on.
    """

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        blocks = [block for row in request.rows for block in row.blocks]
        self._used = {on_wire(block.id) for block in blocks if isinstance(block, ToolUseBlock)}
        self._digest = b""

    def own(self, given: str) -> str:
        """Return `given`, or another id if that is empty or taken."""
        id_, number = mend(given), 0
        while not id_.strip() or on_wire(id_) in self._used:
            id_ = self._made(number)
            number += 1
        self._used.add(on_wire(id_))
        return id_

    def _made(self, number: int) -> str:
        """Return nine letters and digits, as the strictest server wants an id (Mistral's)."""
        self._digest = self._digest or msgspec.json.encode(self._request.rows)
        return f"c{hashlib.sha256(self._digest + b'%d' % number).hexdigest()[:8]}"


class WrittenArguments(NamedTuple):
    """What a model wrote as the arguments of a call."""

    input: dict[str, Any]
    malformed: str = ""
    """What is wrong with them, for the model; then `input` is empty."""


def read(text: str) -> WrittenArguments:
    """Read the arguments of a call; none are an empty object.

    >>> read('{"delay_seconds": 3600}').input, read("  ").input
    ({'delay_seconds': 3600}, {})
    >>> read('{"delay_seconds": 36').malformed
    'they are no complete JSON (Expecting \\',\\' delimiter, at character 20): {"delay_seconds": 36'
    >>> read("[1]").malformed
    'they are JSON, but no object: [1]'
    """
    try:
        return WrittenArguments(arguments(json.loads(text.strip() or "{}")))
    except json.JSONDecodeError as error:
        problem = f"they are no complete JSON ({error.msg}, at character {error.pos})"
    except TypeError:
        problem = "they are JSON, but no object"
    except (ValueError, RecursionError):
        problem = "they are nested too deeply"
    return WrittenArguments({}, f"{problem}: {_quoted(mend(text.strip()))}")


def called(ids: CallIds, given_id: str, name: str, text: str) -> ToolUseBlock:
    """Return a call as it is stored."""
    written = read(text)
    return ToolUseBlock(
        id=ids.own(given_id), name=mend(name), input=written.input, malformed=written.malformed
    )


def unread(request: ModelRequest, model: str, said: str) -> ModelAnswer:
    """Return the answer that a server kept to itself since it couldn't read a call in it.

    So the model is told what was wrong, as of a call that came here. What it took isn't known.
    """
    problem = f"the server says of them: {_quoted(mend(said))}"
    id_ = CallIds(request).own("")
    return ModelAnswer(
        blocks=(ToolUseBlock(id=id_, name=UNREAD, input={}, malformed=problem),),
        stop_reason="tool_use",
        usage=Usage(model=model, input_tokens=0, output_tokens=0),
    )


def _quoted(text: str) -> str:
    return text if len(text) <= WRITTEN_MAX else f"{text[:WRITTEN_MAX]}…"
