"""What holds an order up on a channel that keeps order: an earlier one of the conversation.

Each message names the one before it in its session. So the log tells, from one to the next, whether
what went over the same channel before is over; whoever waited for its own had nothing open before
it, so the nearest is enough.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from vigil.bus.bus import Bus
from vigil.contracts import decode_attempt, decode_dispatch, decode_said
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey

from . import decide
from .dispatch import Later
from .orders import Order

BACK_MAX: Final = 20
"""Messages that went another way are passed over, as many at most."""
SOON: Final = timedelta(seconds=0.1)
CHECK_AGAIN: Final = timedelta(seconds=30)
"""At the latest, at what waits for its next try: it may be closed otherwise."""


async def held_until(bus: Bus, key: SessionKey, order: Order, now: datetime) -> Later | None:
    """Return when to look again, if something of the session is to go over the channel first.

    Raises:
        Unavailable, BusError: the broker can't tell.
    """
    if order.record.requeued_by is not None:
        return None
    effect: str | None = order.record.effect_id
    for _ in range(BACK_MAX):
        effect = None if effect is None else await _previous(bus, key, effect)
        if effect is None:
            return None
        newest = await bus.get_last(key.stream, key.send(effect))
        if newest is None:
            continue
        try:
            channel = decode_dispatch(newest.data).channel
        except InvalidInput:
            return None  # that is never carried
        if channel == order.record.channel:
            return await _open(bus, key, effect, newest.seq, now)
    return None


async def _previous(bus: Bus, key: SessionKey, effect: str) -> str | None:
    """Return the message that the session said before; None: nobody can tell any more."""
    found = await bus.get_last(key.stream, key.out_said(effect))
    if found is None:
        return None
    try:
        turn = await bus.get_of(key, decode_said(found.data).turn_seq)
        if turn is None or not key.is_turn(turn.subject):
            return None
        _, record = decide.read_turn(turn.subject, turn.data)
    except InvalidInput:
        return None
    return next((one.payload.previous for one in decide.sends_of(record) if one.id == effect), None)


async def _open(
    bus: Bus, key: SessionKey, effect: str, ordered: int, now: datetime
) -> Later | None:
    receipt = await bus.get_last(key.stream, key.receipt(effect))
    if receipt is not None and receipt.seq > ordered:
        return None
    attempt = await bus.get_last(key.stream, key.attempt(effect))
    next_at = None
    if attempt is not None and attempt.seq > ordered:
        next_at = decode_attempt(attempt.data).next_at
    return Later(min(max(next_at or now, now) + SOON, now + CHECK_AGAIN))
