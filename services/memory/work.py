"""What a turn gives memory to do, and the records that come of it. Pure.

Two things: what is to be remembered without anybody waiting (`SaveMemory`), and calls of the memory
tools (`CallTool`), each answered by one `tool_result` event. What a model wrote is checked against
the tool's types here, and what is wrong with it goes back to the model as the result.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from vigil.contracts import (
    CallTool,
    MemoryType,
    SaveMemory,
    Turn,
)
from vigil.errors import InvalidInput
from vigil.memory import tools
from vigil.memory.questions import ListMemories, Recall, Save
from vigil.subjects import SessionKey
from vigil.worker import turns

from . import checks

SERVICE: Final = "memory"
LETTER: Final = "m"
"""Memory's in the header of a turn."""
TAGS: Final = (b'"type":"save_memory"', b'"type":"call_tool"')
SUMMARY_LIMIT: Final = 30
"""Memories that `summarize` gathers."""
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


def question_of(key: SessionKey, call: CallTool) -> Save | Recall | ListMemories:
    """Return what a call asks for. Its source and whether it's trusted are none of its arguments.

    Raises:
        InvalidInput: for the model to correct.
    """
    payload = call.payload
    kind = tools.TOOLS.get(payload.tool)
    if kind is None:
        raise InvalidInput("tool", f"there is no tool {payload.tool[:100]!r}")
    try:
        arguments: Any = msgspec.convert(payload.input, kind)
    except msgspec.ValidationError as error:
        raise checks.invalid(str(error), "input") from error
    checks.check_characters(msgspec.structs.asdict(arguments))
    return _question(key, call, arguments)


def _question(key: SessionKey, call: CallTool, arguments: Any) -> Save | Recall | ListMemories:
    question: Save | Recall | ListMemories
    match arguments:
        case tools.MemorySave(content=content, type=type_, importance=importance):
            question = _save(key, call, content, type_, importance)
        case tools.Remember(text=text):
            question = _save(key, call, text, "fact", None)
        case tools.MemoryRecall(query=query, types=types, source=source, limit=limit):
            question = Recall(query=query, types=types, source=source, limit=limit)
        case tools.Search(query=query):
            question = Recall(query=query)
        case tools.ListMemory(sort=sort, types=types, limit=limit):
            question = ListMemories(sort=sort, types=types, limit=limit)
        case tools.Summarize(topic=""):
            question = ListMemories(sort="importance", limit=SUMMARY_LIMIT)
        case tools.Summarize(topic=topic):
            question = Recall(query=topic, limit=SUMMARY_LIMIT)
        case _:  # pragma: no cover - the table has no other types
            raise InvalidInput("tool", f"{call.payload.tool!r} is not served")
    return question


def _save(
    key: SessionKey, call: CallTool, content: str, kind: MemoryType, importance: float | None
) -> Save:
    return Save(
        content=content,
        by=f"session:{key}",
        type=kind,
        importance=importance,
        source=f"chat:{key.thread}",
        thread=key.thread,
        provenance=(call.payload.caused_by,),
        is_tainted=call.payload.is_tainted,
        key=call.id,
    )
