"""Of a message that came through a channel: what its answer needs to find its place. Pure."""

from __future__ import annotations

from typing import TypedDict

from ..base import Record


class MailHead(Record, frozen=True, kw_only=True):
    """Of a message that came as a mail: what its answer needs to be one."""

    address: str
    """The address of whoever wrote it, as it stands in From."""
    message_id: str = ""
    """Empty: it had none that can be referred to."""
    references: tuple[str, ...] = ()
    """Ids of the mails before it, the oldest first."""
    subject: str = ""


class ChatHead(Record, frozen=True, kw_only=True):
    """Of a message that came through a chat network: where, by whom, and which it is there."""

    address: str
    """The network's id of whom wrote it, which is paired."""
    room: str
    """The network's id of where it was said."""
    message: str
    """The network's id of the message."""
    is_direct: bool = True
    """Whether nobody else is in the room: what answers it is said there only as long as that is
    so."""


class Heads(TypedDict):
    """The fields of a message's payload that one of them fills."""

    mail: MailHead | None
    chat: ChatHead | None


def head_of(head: MailHead | ChatHead | None) -> Heads:
    """Return where it belongs in a message's payload."""
    return {
        "mail": head if isinstance(head, MailHead) else None,
        "chat": head if isinstance(head, ChatHead) else None,
    }
