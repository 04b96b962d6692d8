"""The rows of the history that a model was shown, read back from the turns before its answer.

A branch and a fork begin with what another session knew, an imported conversation with what was
said before; those rows are read there, as the cortex reads them (ADR 35, 75). Instructions,
identity, tools and situation are stored nowhere, so aren't here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
import structlog

from vigil.bus.bus import Bus, Message
from vigil.contracts import (
    AttachmentBlock,
    Block,
    ExternalBlock,
    Instant,
    OpaqueBlock,
    Row,
    State,
    TaskBlock,
    TextBlock,
    TimerBlock,
    ToolResultBlock,
    ToolUseBlock,
    Turn,
    decode_turn,
)
from vigil.errors import InvalidInput
from vigil.past import intake
from vigil.past.rows import rows_of
from vigil.subjects import SessionKey

from ..http.wire import Answer
from ..sessions.history import read_page

log = structlog.get_logger("vigil.gateway")

PAGE: Final = 300
"""Turns that are read at once."""
TEXT_MAX: Final = 4_000
"""Characters of one row."""
DEPTH_MAX: Final = 8
"""Sessions that are read, one having begun with what the next knew."""
HEIR: Final = "branch"
"""The kind of sessions that inherit what their parent knew."""


class ShownRow(Answer, frozen=True, kw_only=True):
    """A row of the history that the model was shown, in words."""

    turn_seq: int
    role: str
    source: str
    text: str
    at: Instant
    left_out: int = 0
    """Characters that are not shown here."""
    session_key: str = ""
    """Of another session, whose history this one began with; empty: its own."""


class ShownHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What a model was shown of what was said and done."""

    summary: str = ""
    """What stood for the part before the rows; empty: nothing."""
    rows: tuple[ShownRow, ...] = ()


def read_turn(message: Message) -> Turn | None:
    """Return a turn; None: it can't be read."""
    try:
        return decode_turn(message.data)
    except InvalidInput as error:
        log.warning("unreadable", action="gateway.unreadable", seq=message.seq, error=str(error))
        return None


async def history_of(
    bus: Bus, session: SessionKey, seq: int, ending: Turn, depth: int = 0
) -> ShownHistory:
    """Return the history up to the turn with that sequence, of which `ending` are the rows that
    count. Raises: Unavailable, BusError."""
    turns = [*await _turns_before(bus, session, seq, ending.state), (seq, ending)]
    summary = await _summary_of(bus, session, ending)
    rows = tuple(_rows(turns))
    known = await _known_before(bus, session, ending.state, depth)
    if known is None:
        return ShownHistory(summary=summary, rows=rows)
    # What a fork began with is compacted and forgotten with its own first turn.
    has_origin = ending.state.fork is not None or ending.state.past is not None
    is_whole = not has_origin or any(turn.ordinal == 1 for _, turn in turns)
    return ShownHistory(
        summary=summary or known.summary, rows=(*known.rows, *rows) if is_whole else rows
    )


def before_answer(turn: Turn) -> Turn:
    """Return a turn without its last answer, and what came of that."""
    return _cut(turn, [index for index, row in enumerate(turn.rows) if row.role == "assistant"])


def _before_call(turn: Turn) -> Turn:
    """Return a turn without its last call of tools."""
    return _cut(
        turn,
        [
            index
            for index, row in enumerate(turn.rows)
            if any(isinstance(block, ToolUseBlock) for block in row.blocks)
        ],
    )


def _cut(turn: Turn, ends: list[int]) -> Turn:
    return msgspec.structs.replace(turn, rows=turn.rows[: ends[-1]]) if ends else turn


async def _known_before(
    bus: Bus, session: SessionKey, state: State, depth: int
) -> ShownHistory | None:
    """Return what another session knew when this one began with it; None: it began with nothing."""
    if state.past is not None:
        imported = rows_of(await intake.read(bus, session, state.past))
        return ShownHistory(rows=tuple(_row(state.past.last, one.row) for one in imported))
    if state.fork is not None:
        whose, seq = state.fork.session, state.fork.turn
    elif state.start is not None and session.kind == HEIR:
        whose, seq = state.start.parent, state.start.parent_turn
    else:
        return None
    parent = _parent(session, whose)
    message = None if parent is None or depth >= DEPTH_MAX else await bus.get_of(parent, seq)
    if parent is None or message is None or not parent.is_turn(message.subject):
        return None
    turn = read_turn(message)
    if turn is None:
        return None
    ending = turn if state.fork is not None else _before_call(turn)
    found = await history_of(bus, parent, seq, ending, depth + 1)
    named = (
        row if row.session_key else msgspec.structs.replace(row, session_key=whose)
        for row in found.rows
    )
    return msgspec.structs.replace(found, rows=tuple(named))


def _parent(session: SessionKey, whose: str) -> SessionKey | None:
    """Return the other session, if it's of the same person and agent: no other is read."""
    try:
        parent = SessionKey.parse(whose)
    except InvalidInput:
        return None
    return parent if (parent.user, parent.agent) == (session.user, session.agent) else None


async def _turns_before(
    bus: Bus, session: SessionKey, seq: int, state: State
) -> list[tuple[int, Turn]]:
    start, found, has_more = min(state.history_from or seq, seq), [], True
    while has_more and start < seq:
        page, has_more = await read_page(bus, session.stream, [session.turns], start, PAGE)
        found += [one for one in page if one.seq < seq]
        start = page[-1].seq + 1 if page else seq
    turns = ((one.seq, read_turn(one)) for one in found)
    return [
        (number, turn)
        for number, turn in turns
        if turn is not None and not any(one.has_turn(turn.ordinal) for one in state.taken_back)
    ]


def _rows(turns: Iterable[tuple[int, Turn]]) -> Iterator[ShownRow]:
    for seq, turn in turns:
        for row in turn.rows:
            yield _row(seq, row)


def _row(seq: int, row: Row) -> ShownRow:
    text = "\n".join(words for block in row.blocks if (words := words_of(block)))
    return ShownRow(
        turn_seq=seq,
        role=row.role,
        source=row.source,
        text=text[:TEXT_MAX],
        at=row.at,
        left_out=max(len(text) - TEXT_MAX, 0),
    )


def words_of(block: Block) -> str:
    """Return what a block says, for a person; empty: only its provider can read it."""
    words = ""
    match block:
        case TextBlock(text=words) | ToolResultBlock(content=words):
            pass
        case ToolUseBlock(name=name):
            words = f"{name} {json.dumps(block.input, ensure_ascii=False)}"
        case TimerBlock(follow_up=follow_up):
            words = follow_up.reason
        case ExternalBlock(event=event):
            words = event.content
        case TaskBlock(title=title, content=content):
            words = f"{title}\n{content}"
        case AttachmentBlock(file=file):
            words = f"[{file.in_words}]"
        case OpaqueBlock():
            pass
    return words


async def _summary_of(bus: Bus, session: SessionKey, turn: Turn) -> str:
    if not turn.state.summary_seq:
        return ""
    found = await bus.get_of(session, turn.state.summary_seq)
    summed = None if found is None or not session.is_turn(found.subject) else read_turn(found)
    return "" if summed is None else summed.summary[:TEXT_MAX]
