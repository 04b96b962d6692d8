"""What would have been said, blocked and spent with other settings, by the log of what happened.

Each turn is decided from the state on the log, but for the counters of the gates: those are of what
would have been said. Messages and answers of models stay what they were: nobody knows what else
would have been written. A loop that would not have been opened costs nothing, and says nothing.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from vigil.bus.bus import Bus
from vigil.contracts import Counters, SendMessage, State, Turn
from vigil.settings.config import Config
from vigil.subjects import SessionKey

from .decision import CannotReplay
from .log import LONG_AGO, SessionLog


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that would be otherwise."""

    seq: int
    """Stream sequence of the turn on the log."""
    at: datetime
    was: str
    would_be: str


class Totals(msgspec.Struct, kw_only=True):
    """What a session came to."""

    said: int = 0
    blocked: int = 0
    tokens: int = 0


class Supposed(msgspec.Struct, kw_only=True):
    """What became of one session, and what would have."""

    session: str
    turns: int = 0
    was: Totals
    would_be: Totals
    changes: list[Line] = []
    """The first `CHANGES_MAX`."""
    skipped: dict[str, int] = {}


CHANGES_MAX = 1000


async def supposed(
    bus: Bus, key: SessionKey, config: Config, since: datetime = LONG_AGO
) -> Supposed:
    """Decide a session again with a changed configuration."""
    log = SessionLog(bus, key, config)
    found = Supposed(session=str(key), was=Totals(), would_be=Totals())
    counters, unopened = Counters(), ""
    async for message, turn, before in log.turns():
        if turn is None:
            continue
        is_counted = turn.created_at >= since
        if is_counted:
            found.turns += 1
            _add(found.was, turn)
        if unopened and _continues(turn, before, unopened):
            if is_counted:
                _note_change(found, message.seq, turn, None)
            continue
        try:
            known = None if before is None else msgspec.structs.replace(before, counters=counters)
            decided = await log.again(message, turn, known)
        except CannotReplay as error:
            found.skipped[str(error)] = found.skipped.get(str(error), 0) + 1
            counters, unopened = turn.state.counters, ""
            if is_counted:
                _add(found.would_be, turn)
            continue
        counters = decided.state.counters
        loop = turn.state.loop
        unopened = loop.cause.id if loop is not None and decided.state.loop is None else ""
        if is_counted:
            _add(found.would_be, decided)
            _note_change(found, message.seq, turn, decided)
    return found


def _continues(turn: Turn, before: State | None, cause: str) -> bool:
    """Whether a turn goes on with a loop that would not have been opened."""
    is_open = before is not None and before.loop is not None and before.loop.cause.id == cause
    return is_open and turn.event is not None and turn.event.id == cause


def _add(totals: Totals, turn: Turn) -> None:
    totals.said += len(_texts(turn))
    totals.blocked += turn.outcome == "blocked"
    totals.tokens += sum(
        u.input_tokens + u.output_tokens + u.cache_read_tokens + u.cache_write_tokens
        for u in turn.usage
    )


def _texts(turn: Turn) -> list[str]:
    return [e.payload.text for e in turn.effects if isinstance(e, SendMessage)]


def _note_change(found: Supposed, seq: int, turn: Turn, decided: Turn | None) -> None:
    was, would_be = _summary(turn), "not asked" if decided is None else _summary(decided)
    if was != would_be and len(found.changes) < CHANGES_MAX:
        found.changes.append(Line(seq=seq, at=turn.created_at, was=was, would_be=would_be))


def _summary(turn: Turn) -> str:
    said = _texts(turn)
    if said:
        return f"said: {' / '.join(said)[:200]}"
    reason = next((n.text for n in turn.notes if turn.outcome == "blocked"), "")
    return f"{turn.outcome}: {reason}" if reason else turn.outcome
