"""What a run of the timetable cost, read from its turns (LOOPS L-1)."""

from __future__ import annotations

from typing import Final

from vigil.bus.bus import Bus
from vigil.contracts import decode_turn
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey
from vigil.timetable.ledger import RunCost

STREAM: Final = "SYSTEM"
TURNS_MAX: Final = 200
"""Turns that are read: a run has at most some 30 calls, each of a turn or two."""


async def cost_of_run(bus: Bus, key: SessionKey, end: str) -> RunCost:
    """Return what the session's calls came to until it told its end, as far as they have a price.

    Args:
        end: the effect that tells it; what comes after may or may not be over by now.

    Raises:
        Unavailable: try again later.
    """
    tokens = micro_usd = seq = 0
    for _ in range(TURNS_MAX):
        message = await bus.get_next(STREAM, key.turns, seq + 1)
        if message is None:
            break
        seq = message.seq
        try:
            turn = decode_turn(message.data)
        except InvalidInput:
            continue
        for usage in turn.usage:
            tokens += usage.tokens
            micro_usd += usage.micro_usd or 0
        if any(one.id == end for one in turn.effects):
            break
    return RunCost(tokens, micro_usd)
