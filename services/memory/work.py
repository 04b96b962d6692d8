"""What a turn gives memory to do, and the records that come of it. Pure.

Two things: what is to be remembered without anybody waiting (`SaveMemory`), and calls of the memory
tools (`CallTool`), each answered by one `tool_result` event. What a model wrote is checked against
the tool's types here, and what is wrong with it goes back to the model as the result.
"""

from __future__ import annotations

from typing import Final

import msgspec

from vigil.contracts import CallTool, SaveMemory, Turn
from vigil.errors import InvalidInput
from vigil.memory.operation import tools
from vigil.memory.operations.save import Save
from vigil.memory.questions import Question
from vigil.subjects import SessionKey
from vigil.worker import turns

from . import checks

SERVICE: Final = "memory"
LETTER: Final = "m"
"""Memory's in the header of a turn."""
TAGS: Final = (b'"type":"save_memory"', b'"type":"call_tool"')
Work = SaveMemory | CallTool


def read_turn(subject: str, data: bytes) -> tuple[SessionKey, Turn]:
    """Decode a turn and the session that it was stored under. Raises: InvalidInput."""
    return turns.read_turn(subject, data, work_of)


def work_of(turn: Turn) -> list[Work]:
    """Return what memory has to do for a turn, in order."""
    return [
        effect
        for effect in turn.effects
        if isinstance(effect, SaveMemory)
        or (isinstance(effect, CallTool) and effect.payload.service == SERVICE)
    ]


# ---------------------------------------------------------------- a call as a question


def question_of(key: SessionKey, call: CallTool) -> Question:
    """Return what a call asks for. Its source and whether it's trusted are none of its arguments.

    Raises:
        InvalidInput: for the model to correct.
    """
    payload = call.payload
    tool = tools().get(payload.tool)
    if tool is None:
        raise InvalidInput("tool", f"there is no tool {payload.tool[:100]!r}")
    try:
        arguments = msgspec.convert(payload.input, tool.arguments)
    except msgspec.ValidationError as error:
        raise checks.invalid(str(error), "input") from error
    checks.check_characters(msgspec.structs.asdict(arguments))
    question = tool.question(arguments, f"session:{key}")
    return _stamped(key, call, question) if isinstance(question, Save) else question


def _stamped(key: SessionKey, call: CallTool, save: Save) -> Save:
    return msgspec.structs.replace(
        save,
        source=call.payload.source or f"chat:{key.thread}",
        thread=key.thread,
        provenance=(call.payload.caused_by,),
        is_tainted=call.payload.is_tainted,
        key=call.id,
    )
