"""`/reply [N] TEXT` in a chat: what is said next replies to something that the agent said."""

from __future__ import annotations

from typing import Final

from vigil.words.slash import SlashOrder, reply_of

from .conversation import Conversation
from .files import Files
from .screen import Screen

NONE_SUCH: Final = "not said: the agent said nothing here that long ago"


async def say(conversation: Conversation, order: SlashOrder, files: Files, screen: Screen) -> None:
    """Say what an order says, with what was attached, to what it replies to."""
    back, text = reply_of(order.rest)
    said = conversation.said
    if not text:
        screen.notice(order.command.usage)
    elif not 0 < back <= len(said):
        screen.notice(NONE_SUCH)
    else:
        await conversation.say(text, files.given(), reply_to=said[-back])
