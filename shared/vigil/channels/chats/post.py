"""What somebody wrote in a network, whichever it is. Pure."""

from __future__ import annotations

import msgspec


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
    """The effect that said what it replies to."""
    files: tuple[PostFile, ...] = ()
    """What may be taken in, if it's what it's said to be."""
