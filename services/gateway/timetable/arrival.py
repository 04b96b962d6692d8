"""What became of a run's result where it was told: said at once, kept for the digest, given up.

Execution and delivery are two things (SPEC J-4): the ledger has that a result was handed to a
conversation, and that one's log what it did with it. Read here, for whoever asks.
"""

from __future__ import annotations

from typing import Final, Literal

from vigil.bus.bus import Bus
from vigil.contracts import (
    ReceiptOutcome,
    SendMessage,
    SlotEntry,
    Turn,
    decode_receipt,
    decode_turn,
)
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey

Arrival = Literal["", "waiting", "digest", "taken"] | ReceiptOutcome
"""Nothing was told, or nothing is known any more; the conversation hasn't come to it; it waits for
a digest; it was taken in, and nothing said. Else how its message ended."""
NOT_ARRIVED: Final[tuple[Arrival, ...]] = ("failed", "dropped", "ambiguous")
TURNS_MAX: Final = 50
"""Turns after it that are read: a busy conversation takes it in once it has done with others."""


async def arrival_of(bus: Bus, owner: str, entry: SlotEntry) -> Arrival:
    """Return what became of what was told of a run. Raises: Unavailable.

    Args:
        owner: of the row; what became of it in another's conversation is theirs to know.
    """
    if not entry.told_to:
        return ""
    home = SessionKey.parse(entry.told_to)
    if home.user != owner:
        return ""
    event = await bus.get_last(home.stream, home.in_event(f"told.{entry.told}"))
    if event is None:
        return ""
    turn = await _folded(bus, home, event.seq)
    if turn is None:
        return "waiting"
    if turn.outcome == "held":
        return "digest"
    sent = next((one.id for one in turn.effects if isinstance(one, SendMessage)), None)
    return "taken" if sent is None else await _ended(bus, home, sent)


async def _folded(bus: Bus, home: SessionKey, seq: int) -> Turn | None:
    """Return the turn that took an event in; None: none did yet."""
    at = seq
    for _ in range(TURNS_MAX):
        message = await bus.get_next(home.stream, home.turns, at + 1)
        if message is None:
            return None
        at = message.seq
        try:
            turn = decode_turn(message.data)
        except InvalidInput:
            continue
        if turn.event is not None and turn.event.seq == seq and turn.outcome != "queued":
            return turn
    return None


async def _ended(bus: Bus, home: SessionKey, effect: str) -> Arrival:
    receipt = await bus.get_last(home.stream, home.receipt(effect))
    if receipt is not None:
        return decode_receipt(receipt.data).outcome
    said = await bus.get_last(home.stream, home.out_said(effect))
    return "waiting" if said is None else "said"
