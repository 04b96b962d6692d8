"""GET /api/sessions/{key}/now: what a session is at, and what its gates let through (SPEC S-7)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from fastapi import Response

from vigil.contracts import Counters, Instant, State, decode_turn
from vigil.errors import InvalidInput
from vigil.settings.sections import Autonomy

from ..callers import Readable, Shared
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Answer

HOUR: Final = timedelta(hours=1)


class GatesNow(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """What the agent may say without being asked, at present."""

    consecutive: int
    """Messages in a row that it said so, since the person last wrote."""
    consecutive_max: int
    ordered: int
    """Reminders of the last hour that the person had asked for."""
    ordered_max: int
    cooldown_until: Instant | None
    """Before that it says nothing; null: it may now."""
    is_locked: bool
    """Its state could not be read: it says nothing until the person writes."""


class SessionNow(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """What the newest turn left."""

    session_key: str
    turn_seq: int
    """Sequence of that turn; 0: there is none yet."""
    turn_at: Instant | None = None
    """When that turn was decided."""
    is_thinking: bool
    """Whether an exchange is open: a model is asked, or something is waited for."""
    waits_for: tuple[str, ...]
    """Tools whose results it waits for."""
    waits_until: Instant | None
    """When those count as failed, or when the model is asked again; null: it waits for nothing."""
    retries_because: str
    """Why the model is asked again: what its last answer failed of."""
    queued: int
    """Events that wait until it is done."""
    gates: GatesNow


async def get_now(edge: Shared, session: Readable) -> Response:
    """Tell what a session is at, and what its gates let through."""
    newest = await edge.bus.get_last(session.stream, session.turns)
    state, seq, decided_at = State(), 0, None
    if newest is not None:
        try:
            turn = decode_turn(newest.data)
            state, seq, decided_at = turn.state, newest.seq, turn.created_at
        except InvalidInput as error:
            raise Problem(409, f"the newest turn can't be read: {error}") from error
    limits, now = edge.context.settings.config.autonomy, edge.clock.now()
    waiting = None if state.loop is None else state.loop.waiting
    retry = None if state.loop is None else state.loop.retry
    return Json(
        SessionNow(
            session_key=str(session),
            turn_seq=seq,
            turn_at=decided_at,
            # Whoever takes a session over says so first, and asks the model then.
            is_thinking=state.loop is not None or state.attempt > 0,
            waits_for=() if waiting is None else tuple(call.tool for call in waiting.calls),
            waits_until=retry.due_at if retry else waiting.due_at if waiting else None,
            retries_because=retry.reason if retry else "",
            queued=len(state.queue),
            gates=gates_of(state.counters, limits, now, is_locked=state.is_locked),
        )
    )


def gates_of(counters: Counters, limits: Autonomy, now: datetime, *, is_locked: bool) -> GatesNow:
    """Return where the gates stand.

    >>> at = datetime(2026, 11, 25, 9, tzinfo=UTC)
    >>> found = gates_of(Counters(consecutive=2), Autonomy(), at, is_locked=False)
    >>> found.consecutive, found.consecutive_max, found.cooldown_until
    (2, 3, None)
    """
    last, until = counters.last_autonomous_ms, None
    if last is not None:
        until = datetime.fromtimestamp((last + limits.cooldown_ms) / 1000, UTC)
    recent = [at for at in counters.ordered_ms if at / 1000 > (now - HOUR).timestamp()]
    return GatesNow(
        consecutive=counters.consecutive,
        consecutive_max=limits.max_consecutive,
        ordered=len(recent),
        ordered_max=limits.ordered_per_hour,
        cooldown_until=until if until is not None and until > now else None,
        is_locked=is_locked,
    )


ENDPOINTS: Final = (
    Endpoint("GET", "/api/sessions/{key}/now", get_now, {200: SessionNow}, (404, 409, 422, 503)),
)
