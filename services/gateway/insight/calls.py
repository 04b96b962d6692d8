"""/api/sessions/{key}/calls: what models were asked, what filled their prompts, what it cost.

The turns of the log have it: what each call took, and of each part of the prompt how many tokens.
The rows that a model was shown are those of the turns before it; instructions and tools are what
the installation has, and only their size is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import structlog
from fastapi import Path, Query, Response

from vigil.bus.bus import Bus, Message
from vigil.contracts import (
    AttachmentBlock,
    Block,
    ExternalBlock,
    Instant,
    OpaqueBlock,
    Outcome,
    Row,
    TaskBlock,
    TextBlock,
    TimerBlock,
    ToolResultBlock,
    ToolUseBlock,
    Turn,
    Usage,
    decode_turn,
)
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey

from ..endpoint import Endpoint
from ..http.problem import Problem
from ..http.routes import SEQ_MAX, Json, Readable, Shared
from ..http.wire import Answer
from ..sessions.counts import Stretch, start_of
from ..sessions.history import read_page

log = structlog.get_logger("vigil.gateway")

ROWS_MAX: Final = 300
"""Rows of a prompt that are shown, the newest."""
TEXT_MAX: Final = 4_000
"""Characters of one row."""


class ModelCall(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """A call of a model. `cached_share` of what was sent came from the provider's cache."""

    turn_seq: int
    """Of the turn that has its answer."""
    number: int
    """Which of that turn's calls it is, from 0."""
    at: Instant
    outcome: Outcome
    """Of the turn."""
    model: str
    tier: str
    tier_reason: str
    """Why that tier was asked."""
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cached_share: float
    micro_usd: int | None
    """Millionths of a dollar; null: there was no price."""
    shown: dict[str, int]
    """Tokens of each part of the prompt, by estimate, in their order; empty: not recorded."""


class ModelCallList(Answer, frozen=True, kw_only=True):
    """Calls, the newest first. `next_before` continues; null: that was all."""

    session_key: str
    calls: tuple[ModelCall, ...]
    next_before: int | None


class ShownRow(Answer, frozen=True, kw_only=True):
    """A row of the history that the model was shown, in words."""

    turn_seq: int
    role: str
    source: str
    text: str
    at: Instant
    left_out: int = 0
    """Characters that are not shown here."""


class ModelCallDetail(Answer, frozen=True, kw_only=True):
    """The calls of one turn, with the rows that stood before it."""

    session_key: str
    calls: tuple[ModelCall, ...]
    summary: str
    """What stood for the part of the conversation before the rows; empty: nothing."""
    rows: tuple[ShownRow, ...]
    rows_left_out: int


async def list_calls(
    edge: Shared,
    session: Readable,
    before: Annotated[int, Query(ge=0, le=SEQ_MAX, description="Continue before this turn")] = 0,
    limit: Annotated[int, Query(ge=1, le=200, description="Turns that are looked at")] = 50,
) -> Response:
    """List what models were asked in a session, the newest first."""
    stretch = Stretch(before=before, limit=limit)
    start = await start_of(edge.bus, session.stream, session.turns, stretch)
    found, _ = await read_page(edge.bus, session.stream, [session.turns], start, limit)
    found = [one for one in found if not before or one.seq < before]
    calls = [call for one in found for call in _calls_of(one)]
    is_full = len(found) == limit and start > 1
    return Json(
        ModelCallList(
            session_key=str(session),
            calls=tuple(reversed(calls)),
            next_before=found[0].seq if is_full else None,
        )
    )


async def get_call(
    edge: Shared,
    session: Readable,
    seq: Annotated[int, Path(ge=1, le=SEQ_MAX, description="Sequence of the turn")],
) -> Response:
    """Show the calls of one turn, and the rows of the history that the model was shown."""
    message = await edge.bus.get_of(session, seq)
    turn = None if message is None or not session.is_turn(message.subject) else _turn(message)
    if message is None or turn is None:
        raise Problem(404, f"{seq} is no turn of {session}")
    rows = await _rows_before(edge.bus, session, message, turn)
    left_out = max(len(rows) - ROWS_MAX, 0)
    return Json(
        ModelCallDetail(
            session_key=str(session),
            calls=tuple(_calls_of(message)),
            summary=await _summary_of(edge.bus, session, turn),
            rows=tuple(rows[left_out:]),
            rows_left_out=left_out,
        )
    )


def _calls_of(message: Message) -> list[ModelCall]:
    turn = _turn(message)
    if turn is None:
        return []
    return [_call(message.seq, turn, number, used) for number, used in enumerate(turn.usage)]


def _call(seq: int, turn: Turn, number: int, used: Usage) -> ModelCall:
    sent = used.input_tokens + used.cache_read_tokens + used.cache_write_tokens
    return ModelCall(
        turn_seq=seq,
        number=number,
        at=turn.created_at,
        outcome=turn.outcome,
        model=used.model,
        tier=used.tier,
        tier_reason=used.tier_reason,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
        cached_share=round(used.cache_read_tokens / sent, 4) if sent else 0.0,
        micro_usd=used.micro_usd,
        shown=used.shown,
    )


def _turn(message: Message) -> Turn | None:
    try:
        return decode_turn(message.data)
    except InvalidInput as error:
        log.warning("unreadable", action="gateway.unreadable", seq=message.seq, error=str(error))
        return None


# ---------------------------------------------------------------- rows


async def _rows_before(
    bus: Bus, session: SessionKey, message: Message, turn: Turn
) -> list[ShownRow]:
    """Return the rows of the history up to the turn, and of its own those before the answer."""
    start = min(turn.state.history_from or message.seq, message.seq)
    found, has_more = [], True
    while has_more and start < message.seq:
        page, has_more = await read_page(bus, session.stream, [session.turns], start, ROWS_MAX)
        found += [one for one in page if one.seq < message.seq]
        start = page[-1].seq + 1 if page else message.seq
    turns = [(one.seq, each.rows) for one in found if (each := _turn(one)) is not None]
    return list(_shown([*turns, (message.seq, _before_answer(turn))]))


def _before_answer(turn: Turn) -> tuple[Row, ...]:
    answers = [index for index, row in enumerate(turn.rows) if row.role == "assistant"]
    return turn.rows[: answers[-1]] if answers else turn.rows


def _shown(turns: Iterable[tuple[int, Iterable[Row]]]) -> Iterator[ShownRow]:
    for seq, rows in turns:
        for row in rows:
            text = "\n".join(words for block in row.blocks if (words := words_of(block)))
            yield ShownRow(
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
    summed = None if found is None or not session.is_turn(found.subject) else _turn(found)
    return "" if summed is None else summed.summary[:TEXT_MAX]


_PATH: Final = "/api/sessions/{key}/calls"
ENDPOINTS: Final = (
    Endpoint("GET", _PATH, list_calls, {200: ModelCallList}, (404, 422, 503)),
    Endpoint("GET", f"{_PATH}/{{seq}}", get_call, {200: ModelCallDetail}, (404, 422, 503)),
)
