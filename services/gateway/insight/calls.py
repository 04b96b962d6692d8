"""/api/sessions/{key}/calls: what models were asked, what filled their prompts, what it cost.

The turns of the log have it: what each call took, and of each part of the prompt how many tokens.
The rows of the history that a model was shown are read back (:mod:`.shown`).
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import Path, Query, Response

from vigil.bus.bus import Bus, Message
from vigil.contracts import Instant, Outcome, Turn, Usage
from vigil.subjects import SessionKey

from ..backlog.counts import Stretch, start_of
from ..callers import SEQ_MAX, Readable, Shared
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Answer
from ..sessions.history import read_page
from . import shown
from .shown import ShownRow, read_turn

ROWS_MAX: Final = 300
"""Rows of a prompt that are shown, the newest."""


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


class ModelCallDetail(Answer, frozen=True, kw_only=True):
    """The calls of one turn, with the rows that stood before it."""

    session_key: str
    calls: tuple[ModelCall, ...]
    summary: str
    """What stood for the part of the conversation before the rows; empty: nothing."""
    rows: tuple[ShownRow, ...]
    rows_left_out: int
    before_seq: int
    """Sequence of the turn before: the situation was made of the state that it left. 0: it was the
    first."""


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
    turn = None if message is None or not session.is_turn(message.subject) else read_turn(message)
    if message is None or turn is None:
        raise Problem(404, f"{seq} is no turn of {session}")
    history, before = await asyncio.gather(
        shown.history_of(edge.bus, session, seq, shown.before_answer(turn)),
        _turn_before(edge.bus, session, seq),
    )
    left_out = max(len(history.rows) - ROWS_MAX, 0)
    return Json(
        ModelCallDetail(
            session_key=str(session),
            calls=tuple(_calls_of(message)),
            summary=history.summary,
            rows=tuple(history.rows[left_out:]),
            rows_left_out=left_out,
            before_seq=before,
        )
    )


async def _turn_before(bus: Bus, session: SessionKey, seq: int) -> int:
    stretch = Stretch(before=seq, limit=1)
    start = await start_of(bus, session.stream, session.turns, stretch)
    found, _ = await read_page(bus, session.stream, [session.turns], start, 1)
    return found[0].seq if found and found[0].seq < seq else 0


def _calls_of(message: Message) -> list[ModelCall]:
    turn = read_turn(message)
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


_PATH: Final = "/api/sessions/{key}/calls"
ENDPOINTS: Final = (
    Endpoint("GET", _PATH, list_calls, {200: ModelCallList}, (404, 422, 503)),
    Endpoint("GET", f"{_PATH}/{{seq}}", get_call, {200: ModelCallDetail}, (404, 422, 503)),
)
