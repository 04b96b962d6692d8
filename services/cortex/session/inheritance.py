"""What a branch inherits: the history of its parent, up to the answer that started it.

It's read from the parent's turns whenever the branch is opened, and isn't stored a second time.
What the parent heard after that isn't part of it, so that a branch reads the same each time.
"""

from __future__ import annotations

import msgspec
import structlog

from vigil.bus.bus import Bus, Message
from vigil.contracts import Row, Start, TextBlock, ToolUseBlock, Turn, decode_turn
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey

from ..core.context.history import chunk_of, without
from ..profiles import profile_of
from .history import NOTHING, Inherited

log = structlog.get_logger("vigil.cortex")


async def inherited(bus: Bus, key: SessionKey, start: Start | None) -> Inherited:
    """Read what the session `key` inherits; `NOTHING` if its kind does not, or its parent is gone.

    Raises:
        Unavailable: the broker is away.
    """
    if start is None or not profile_of(key.kind).is_heir:
        return NOTHING
    parent = _parent(key, start)
    last = None if parent is None else await bus.get_of(parent, start.parent_turn)
    turn = None if last is None else _readable(last)
    if parent is None or last is None or turn is None or not parent.is_turn(last.subject):
        return NOTHING
    earlier = await bus.read(parent.stream, [parent.turns], turn.state.history_from or last.seq)
    turns = [(m.seq, _readable(m)) for m in earlier if m.seq < last.seq]
    known = [(seq, t) for seq, t in turns if t is not None and t.rows]
    chunks = [chunk_of(seq, t) for seq, t in (*known, (last.seq, without_answer(turn)))]
    unsaid = {id_ for _, t in (*turns, (last.seq, turn)) if t is not None for id_ in t.unsaid}
    summary = await _summary(bus, parent, turn)
    return Inherited(
        chunks=tuple(chunk for chunk in without(chunks, unsaid) if chunk.rows),
        summary=None if summary is None else _row(summary),
        is_summary_tainted=summary is not None and summary.is_summary_tainted,
    )


def _parent(key: SessionKey, start: Start) -> SessionKey | None:
    """Return the parent, if it is a session of the same person and agent: no other is read."""
    try:
        parent = SessionKey.parse(start.parent)
    except InvalidInput:
        return None
    return parent if (parent.user, parent.agent) == (key.user, key.agent) else None


def without_answer(turn: Turn) -> Turn:
    """Return the turn that started a branch without the answer that did so, and what came of it."""
    calls = [
        index
        for index, row in enumerate(turn.rows)
        if any(isinstance(block, ToolUseBlock) for block in row.blocks)
    ]
    rows = turn.rows[: calls[-1]] if calls else turn.rows
    return msgspec.structs.replace(turn, rows=rows)


async def _summary(bus: Bus, parent: SessionKey, turn: Turn) -> Turn | None:
    """Return the turn whose summary stands for what is before the history."""
    if not turn.state.summary_seq:
        return None
    message = await bus.get_of(parent, turn.state.summary_seq)
    found = None if message is None or not parent.is_turn(message.subject) else _readable(message)
    return found if found is not None and found.summary else None


def _row(turn: Turn) -> Row:
    text = TextBlock(text=turn.summary)
    return Row(role="user", source="system", blocks=(text,), at=turn.created_at)


def _readable(message: Message) -> Turn | None:
    try:
        return decode_turn(message.data)
    except InvalidInput as error:
        log.error("turn unreadable", action="cortex.inherit", seq=message.seq, error=str(error))
        return None
