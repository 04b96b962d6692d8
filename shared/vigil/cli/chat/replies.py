"""`/reply [N] TEXT` in a chat: what is said next replies to something that the agent said.

Only at a terminal: what comes from a pipe is said as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from .conversation import Conversation
from .files import Files
from .screen import Screen

REPLY: Final = "/reply"
USAGE: Final = f"{REPLY} TEXT: to what the agent said last; {REPLY} 2 TEXT: to the one before"
NONE_SUCH: Final = "not said: the agent said nothing here that long ago"
_FORM: Final = re.compile(rf"{REPLY}(?:[ \t]+(\d{{1,4}}))?[ \t]+(\S.*)", re.DOTALL)


class SaidInReply(NamedTuple):
    """What a line says, and to what."""

    text: str
    back: int
    """1: the newest message of the agent's, 2: the one before."""

    def meant(self, said: Sequence[str]) -> str | None:
        """Return the id of the message that is meant; None: there is none.

        Args:
            said: ids of what the agent said, the oldest first.
        """
        return said[-self.back] if 0 < self.back <= len(said) else None


def reply_of(line: str) -> SaidInReply | None:
    """Read a line that replies; None: it is no reply, or doesn't say what.

    >>> reply_of("/reply make it shorter"), reply_of("/reply 2 and this one?")
    (SaidInReply(text='make it shorter', back=1), SaidInReply(text='and this one?', back=2))
    >>> reply_of("/reply") is None, reply_of("/replying is fun") is None
    (True, True)
    """
    found = _FORM.fullmatch(line.strip())
    return None if found is None else SaidInReply(found[2], int(found[1] or 1))


async def say(conversation: Conversation, line: str, files: Files, screen: Screen) -> None:
    """Say a line, with what was attached; if it is a reply, to what it replies to."""
    if line.split(maxsplit=1)[0] != REPLY:
        await conversation.say(line, files.given())
        return
    reply = reply_of(line)
    meant = None if reply is None else reply.meant(conversation.said)
    if reply is None or meant is None:
        screen.notice(USAGE if reply is None else NONE_SUCH)
        return
    await conversation.say(reply.text, files.given(), reply_to=meant)
