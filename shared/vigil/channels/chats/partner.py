"""With whom something is said in a network: who paired there, and what of theirs it answers."""

from __future__ import annotations

import msgspec

from ...contracts import Said
from ...contracts.mail.heads import ChatHead
from .. import pairs
from ..contract import ChannelContext
from ..pairs import PairedAddress
from ..whom import asked_by, user_of


class ChatPartner(msgspec.Struct, frozen=True, kw_only=True):
    """Who is spoken with."""

    paired: PairedAddress
    head: ChatHead | None = None
    """Of the message of theirs that is answered; None: it's said unasked, or asked elsewhere."""


async def partner_of(context: ChannelContext, said: Said) -> ChatPartner | None:
    """Return with whom it is said; None: nobody is paired.

    Raises:
        Unavailable: the broker can't tell.
    """
    bus = context.bus
    asked = await asked_by(bus, said)
    user = user_of(said, asked)
    if bus is None or not user:
        return None
    head: ChatHead | None = None
    if asked is not None and asked.payload.channel == context.name and not said.is_autonomous:
        head = asked.payload.chat
    person = await pairs.find(bus, context.name, user)
    paired = pairs.paired_with(person, "" if head is None else head.address)
    if paired is None:
        return None
    is_theirs = head is not None and pairs.is_same(paired.address, head.address)
    return ChatPartner(paired=paired, head=head if is_theirs else None)
