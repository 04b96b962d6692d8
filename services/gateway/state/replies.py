"""What a message of a person's replies to (FLOW F-2): a message that the agent said here."""

from __future__ import annotations

from typing import Final

from vigil.bus.bus import Bus
from vigil.contracts import decode_said
from vigil.contracts.events import RepliedTo
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey, check_part

FIELD: Final = "reply_to"
QUOTE_MAX: Final = 300
"""Characters of the beginning that the model is shown, so that it knows which message is meant."""
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
