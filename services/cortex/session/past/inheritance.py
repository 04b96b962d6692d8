"""What a branch inherits of its parent's history, a fork of the one that it goes on from, and an
imported conversation of what was said elsewhere.

It's read from where it is whenever the session is opened, and isn't stored a second time. What was
heard there later isn't part of it, so that it's the same each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import structlog

from vigil.bus.bus import Bus, Message
from vigil.contracts import (
    Row,
    Start,
    State,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    Turn,
    decode_turn,
)
from vigil.contracts.past.origins import Fork
from vigil.errors import InvalidInput
from vigil.past import intake
from vigil.past.rows import rows_of
from vigil.subjects import SessionKey

from ...core.context.history import chunk_of, without
from ...core.context.versions import without_taken_back
from ...core.context.window import tokens_of_rows
from ...core.draft.chunk import Chunk
from ...core.draft.kinds import profile_of
from ...history import NOTHING, Inherited

log = structlog.get_logger("vigil.cortex")

LETTERS_FROM: Final = 1_000_000
"""Letters of what was imported are named from here on: names of its own turns are others."""
PAGE: Final = 200
"""Turns that are read at once."""


async def inherited(bus: Bus, key: SessionKey, start: Start | None) -> Inherited:
    """Read what the session `key` inherits; `NOTHING` if its kind does not, or its parent is gone.

    Letters are closed, unless content from outside had a part in its task: then it's swayed anyway.

    Raises:
        Unavailable: the broker is away.
    """
    if start is None or not profile_of(key.kind).is_heir:
        return NOTHING
    known = await _known(bus, key, start.parent, start.parent_turn, without_answer)
    return known if start.is_tainted else known.closed


async def began_with(bus: Bus, key: SessionKey, state: State) -> Inherited:
    """Read what a fork, or an imported conversation, begins with; `NOTHING` if it's neither.

    Raises:
        Unavailable: the broker is away.
    """
    if state.fork is not None:
        return await forked(bus, key, state.fork)
    if state.past is None:
        return NOTHING
    rows = rows_of(await intake.read(bus, key, state.past))
    return Inherited(
        chunks=tuple(
            Chunk(
                seq=0,
                rows=(one.row,),
                tokens=tokens_of_rows((one.row,)),
                ordinal=LETTERS_FROM + one.words.number,
                is_tainted=one.is_letter and one.row.role == "user",
                is_swayed=one.is_letter,
            )
            for one in rows
        )
    )


async def forked(bus: Bus, key: SessionKey, fork: Fork) -> Inherited:
    """Read what a fork begins with; `NOTHING` if the other conversation is gone.

    Raises:
        Unavailable: the broker is away.
    """
    known = await _known(bus, key, fork.session, fork.turn, lambda turn: turn)
    return msgspec.structs.replace(known, chunks=without_open_call(known.chunks))


async def _known(
    bus: Bus, key: SessionKey, parent_key: str, last_seq: int, ending: Callable[[Turn], Turn]
) -> Inherited:
    """Read what another session knew after its turn `last_seq`.

    Args:
        ending: returns of that turn what counts.
    """
    parent = _parent(key, parent_key)
    last = None if parent is None else await bus.get_of(parent, last_seq)
    turn = None if last is None else readable(last)
    if parent is None or last is None or turn is None or not parent.is_turn(last.subject):
        return NOTHING
    earlier = await _until(bus, parent, turn.state.history_from or last.seq, last.seq)
    taken_back = turn.state.taken_back
    read = ((m.seq, readable(m)) for m in earlier)
    turns = [(seq, without_taken_back(t, taken_back)) for seq, t in read if t is not None]
    known = [(seq, t) for seq, t in turns if t.rows]
    chunks = [chunk_of(seq, t) for seq, t in (*known, (last.seq, ending(turn)))]
    unsaid = {id_ for _, t in (*turns, (last.seq, turn)) for id_ in t.unsaid}
    summary = await _summary(bus, parent, turn)
    found = Inherited(
        chunks=tuple(chunk for chunk in without(chunks, unsaid) if chunk.rows),
        summary=None if summary is None else _row(summary),
        is_summary_tainted=summary is not None and summary.is_summary_tainted,
        vouched=turn.state.vouched,
    )
    before = await began_with(bus, parent, turn.state)
    if before is NOTHING:
        return found
    is_whole = any(t is not None and t.ordinal == 1 for _, t in (*turns, (last.seq, turn)))
    return _after(before, found, is_whole=is_whole)


def _after(before: Inherited, own: Inherited, *, is_whole: bool) -> Inherited:
    """Return what a fork knew: what it began with, and its own.

    Args:
        is_whole: whether nothing of its own history was left out, or summed up.
    """
    if own.summary is None:
        own = msgspec.structs.replace(
            own, summary=before.summary, is_summary_tainted=before.is_summary_tainted
        )
    chunks = before.chunks if is_whole else ()
    vouched = (*before.vouched, *own.vouched)
    return msgspec.structs.replace(own, chunks=(*chunks, *own.chunks), vouched=vouched)


async def _until(bus: Bus, parent: SessionKey, start: int, end: int) -> list[Message]:
    """Return the turns from sequence `start` on, before `end`: what came later may be very much."""
    found: list[Message] = []
    has_more = start < end
    while has_more:
        page, has_more = await bus.page(parent.stream, [parent.turns], start, limit=PAGE)
        found += [message for message in page if message.seq < end]
        has_more = has_more and bool(page) and page[-1].seq < end
        start = page[-1].seq + 1 if page else end
    return found


def _parent(key: SessionKey, parent_key: str) -> SessionKey | None:
    """Return the parent, if it is a session of the same person and agent: no other is read."""
    try:
        parent = SessionKey.parse(parent_key)
    except InvalidInput:
        return None
    return parent if (parent.user, parent.agent) == (key.user, key.agent) else None


def without_open_call(chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
    """Leave out what came after a call of a tool that had no result yet, with the call: no model
    takes one without the other."""
    blocks = [block for chunk in chunks for row in chunk.rows for block in row.blocks]
    done = {block.tool_use_id for block in blocks if isinstance(block, ToolResultBlock)}
    kept: list[Chunk] = []
    for chunk in chunks:
        for index, row in enumerate(chunk.rows):
            uses = {block.id for block in row.blocks if isinstance(block, ToolUseBlock)}
            if uses - done:
                rows = chunk.rows[:index]
                cut = msgspec.structs.replace(chunk, rows=rows, tokens=tokens_of_rows(rows))
                return (*kept, cut) if rows else tuple(kept)
        kept.append(chunk)
    return tuple(kept)


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
    if turn.summary:
        return turn
    if not turn.state.summary_seq:
        return None
    message = await bus.get_of(parent, turn.state.summary_seq)
    found = None if message is None or not parent.is_turn(message.subject) else readable(message)
    return found if found is not None and found.summary else None


def _row(turn: Turn) -> Row:
    text = TextBlock(text=turn.summary)
    return Row(role="user", source="system", blocks=(text,), at=turn.created_at)


def readable(message: Message) -> Turn | None:
    """Return a turn, or None for one that can't be read, which is told."""
    try:
        return decode_turn(message.data)
    except InvalidInput as error:
        log.error("turn unreadable", action="cortex.inherit", seq=message.seq, error=str(error))
        return None
