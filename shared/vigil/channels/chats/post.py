"""What somebody wrote in a network, whichever it is. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from ...attachments.forwarded import ForwardedText
from .fields import instant_of


def mark_of(channel: str, room: str, message: str) -> str:
    """Return by what a message that was sent is known again.

    >>> mark_of("tele", "77", "104")
    'tele 77 104'
    """
    return f"{channel} {room} {message}"


class RepliedPost(msgspec.Struct, frozen=True):
    """A message of the account that a post replies to, as its network tells of it."""

    message: str
    """Its id in the room."""
    at: datetime
    """When it was sent, by the network's clock."""


def replied_post(message: str, epoch_s: float) -> RepliedPost | None:
    """Return what is replied to; None: it's of no time.

    >>> replied_post("104", 1.5).at.year, replied_post("104", 1e300)
    (1970, None)
    """
    at = instant_of(epoch_s)
    return None if at is None else RepliedPost(message, at)


VOICE: Final = "a voice message"


class PostFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that somebody sent, as its network tells of it: nothing of it is proven."""

    kind: str
    """What to call it: "an image"."""
    place: str
    """Where the network has it, in its own way of saying so."""
    name: str = ""
    """Which whoever made the file chose; empty: it has none."""
    size: int = 0
    """In bytes, as it's claimed; 0: it isn't told."""
    is_spoken: bool = False
    """Whether its author said it into the network's app, in place of writing."""


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wrote in a network, as its server vouches for it."""

    id: str
    """The network's own."""
    author: str
    """The network's id of whom wrote it; never a name that they are shown by."""
    room: str
    text: str
    is_direct: bool
    """Whether nobody but its author and the agent's account is in the room."""
    is_named: bool = False
    """Whether the account is spoken to, where others are."""
    is_edit: bool = False
    """Whether it only changes what was written before."""
    reply_to: str | None = None
    """The effect that said what it replies to, where the network tells it."""
    replied: RepliedPost | None = None
    """What it replies to, where it doesn't."""
    files: tuple[PostFile, ...] = ()
    """What may be taken in, if it's what it's said to be."""
    forwarded: tuple[ForwardedText, ...] = ()
    """What others wrote that it hands on: no word of its author's."""
