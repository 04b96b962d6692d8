"""What a message of a person's replies to (FLOW F-2): a message that the agent said here."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from vigil.bus.bus import Bus
from vigil.contracts import decode_receipt, decode_said
from vigil.contracts.events import RepliedTo
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey, check_part

FIELD: Final = "reply_to"
QUOTE_MAX: Final = 300
"""Characters of the beginning that the model is shown, so that it knows which message is meant."""
SKEW: Final = timedelta(minutes=10)
"""By which a network's clock may differ from that of delivery."""
READ_MAX: Final = 1_000
"""Receipts among which one is looked for, from that time on."""
NONE_SUCH: Final = InvalidInput(FIELD, "is no message of the agent's in this conversation")


async def find(bus: Bus, session: SessionKey, id_: str | None) -> RepliedTo | None:
    """Return what a reply to a message tells the cortex.

    Args:
        id_: of what the agent said; None: it is no reply.

    Raises:
        InvalidInput: the agent said nothing here that has that id.
        Unavailable: the broker can't tell.
    """
    if id_ is None:
        return None
    check_part(FIELD, id_)
    found = await bus.get_last(session.stream, session.out_said(id_))
    if found is None:
        raise NONE_SUCH
    try:
        said = decode_said(found.data)
    except InvalidInput:
        raise NONE_SUCH from None
    line = " ".join(said.text.split())
    quote = line if len(line) <= QUOTE_MAX else line[: QUOTE_MAX - 1] + "…"
    return RepliedTo(
        id=id_, turn_seq=said.turn_seq, at=said.at, quote="" if said.is_tainted else quote
    )


async def sent_as(bus: Bus, session: SessionKey, mark: str, at: datetime) -> str | None:
    """Return the effect of which a message of a chat network came; None: it isn't of this session.

    Args:
        mark: of the message, as its receipt has it.
        at: when it was sent; aware.

    Raises:
        InvalidInput: a receipt can't be read.
        Unavailable: the broker can't tell.
    """
    start = await _first_since(bus, session, at - SKEW)
    for each in await bus.read(session.stream, [session.receipts], start, limit=READ_MAX):
        receipt = decode_receipt(each.data)
        if mark in receipt.sent:
            return receipt.effect_id
    return None


async def _first_since(bus: Bus, session: SessionKey, at: datetime) -> int:
    """Return where in the log the receipts of a session begin that are no older.

    They are in the order of time but for the little that their writers' clocks differ.
    """
    newest = await bus.get_last(session.stream, session.receipts)
    low, high = 1, 1 if newest is None else newest.seq
    while low < high:
        middle = (low + high) // 2
        found = await bus.get_next(session.stream, session.receipts, middle)
        if found is not None and decode_receipt(found.data).at < at:
            low = found.seq + 1
        else:
            high = middle
    return low
