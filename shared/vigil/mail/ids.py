"""Message-IDs: which message and which conversation a mail belongs to. Pure.

The id of a mail of ours names what it is: the effect that said it, and its conversation. So a reply
finds its way by itself, whatever was forgotten meanwhile, and each try has the same id. It holds
no name of a person: whose conversation it is, only who wrote the reply decides.

    <vigil.EFFECT.AGENT.THREAD@DOMAIN>      a message
    <vigil-thread.AGENT.THREAD@DOMAIN>      a conversation: no mail has it, all refer to it

All mails of a conversation refer to the second one, so mail programs show them together; and a
conversation that began in the console is one of mails, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from ..subjects import PART, token_of

REFERENCES_LENGTH_MAX: Final = 900
"""Characters of them: a line must not have more than 998, and servers break longer ones."""
ID_LENGTH_MAX: Final = 400
"""Of an id that is referred to; longer ones are left out."""
ADDRESS: Final = r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,253}$"
"""The form of a plain address."""
_ID: Final = re.compile(r"<[!-;=?-~]+>", re.ASCII)
_OURS: Final = re.compile(r"<vigil\.([\w-]+)\.([\w-]+)\.([\w-]+)@([^>]+)>", re.ASCII)
_THREAD: Final = re.compile(r"<vigil-thread\.([\w-]+)\.([\w-]+)@([^>]+)>", re.ASCII)


class MailPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a mail belongs."""

    thread: str
    agent: str = ""
    """Empty: the channel's."""
    reply_to: str | None = None
    """The effect of what the agent said that it replies to."""
    is_new: bool = False
    """Whether it refers to nothing that was said in a conversation with an agent."""


def domain_of(address: str) -> str:
    """Return what is behind the @ of an address, in lower case.

    >>> domain_of("Ann@Example.ORG")
    'example.org'
    """
    return address.rpartition("@")[2].lower()


def is_address(text: str) -> bool:
    """Whether it's a plain address: one that means the same wherever it's read.

    >>> is_address("ann@a.example"), is_address('"a b"@a.example'), is_address("ann@localhost")
    (True, False, True)
    """
    return re.fullmatch(ADDRESS, text) is not None


def message_id(effect_id: str, agent: str, thread: str, domain: str) -> str:
    """Return the id of the mail that carries a message."""
    return f"<vigil.{effect_id}.{agent}.{thread}@{domain}>"


def thread_id(agent: str, thread: str, domain: str) -> str:
    """Return what all mails of a conversation refer to."""
    return f"<vigil-thread.{agent}.{thread}@{domain}>"


def read_message_id(text: str, domain: str) -> tuple[str, str, str] | None:
    """Return effect, agent and thread of an id of ours; None: it's another's.

    >>> read_message_id("<vigil.0f.vigil.t1@example.org>", "example.org")
    ('0f', 'vigil', 't1')
    >>> read_message_id("<vigil.0f.vigil.t1@example.net>", "example.org") is None
    True
    """
    found = _OURS.fullmatch(text)
    if found is None or found[4].lower() != domain or not _are_parts(found.groups()[:3]):
        return None
    return found[1], found[2], found[3]


def ids_in(value: str) -> tuple[str, ...]:
    """Return the ids of a header, in order, each once; what isn't one is left out.

    >>> ids_in("<a@x> junk <b c@x> <d@x> <a@x>")
    ('<a@x>', '<d@x>')
    """
    found = (one for one in _ID.findall(value) if len(one) <= ID_LENGTH_MAX)
    return tuple(dict.fromkeys(found))


def place_of(
    references: Sequence[str], in_reply_to: str, own: str, *, channel: str, domain: str
) -> MailPlace:
    """Return where a mail of a person belongs.

    Args:
        references: the oldest first.
        in_reply_to: what it replies to; empty: nothing.
        own: its own id, or what else tells it from others.

    >>> place_of((), "<vigil.0f.vigil.t1@a.example>", "<x@b>", channel="m", domain="a.example")
    MailPlace(thread='t1', agent='vigil', reply_to='0f', is_new=False)
    """
    nearest = [*([in_reply_to] if in_reply_to else []), *reversed(references)]
    for one in nearest:
        if (known := read_message_id(one, domain)) is not None:
            return MailPlace(thread=known[2], agent=known[1], reply_to=known[0])
    for one in nearest:
        found = _THREAD.fullmatch(one)
        if found and found[3].lower() == domain and _are_parts((found[1], found[2])):
            return MailPlace(thread=found[2], agent=found[1])
    root = next(iter((*references, *nearest)), "")
    return MailPlace(thread=f"mail-{token_of(channel, root or own)[:16]}", is_new=True)


def references_for(
    thread: str, before: Sequence[str], parent: str, length_max: int = REFERENCES_LENGTH_MAX
) -> tuple[str, ...]:
    """Return what a mail of ours refers to: the conversation, what its parent refers to, and that.

    Where they are too long together, those after the first two are left out, the oldest first:
    the root tells the conversation, the last ones the place in it.
    """
    wanted = list(dict.fromkeys((thread, *before, *([parent] if parent else []))))
    if parent:  # it stands last, wherever it stood
        wanted = [*(one for one in wanted if one != parent), parent]
    while _length(wanted) > length_max and len(wanted) > 3:
        del wanted[2]
    while _length(wanted) > length_max and len(wanted) > 1:
        del wanted[1 if len(wanted) > 2 else 0]
    return tuple(wanted)


def references_of(before: Sequence[str], parent: str) -> tuple[str, ...]:
    """Return what an answer to a mail of anybody's refers to, in the same bounds.

    >>> references_of(("<a@x>",), "<b@x>"), references_of((), "")
    (('<a@x>', '<b@x>'), ())
    """
    if not parent:
        return ()
    root = before[0] if before else parent
    return references_for(root, before, parent)


def _length(ids: Iterable[str]) -> int:
    return sum(len(one) + 1 for one in ids)


def _are_parts(parts: Iterable[str]) -> bool:
    """Whether each may be a part of a session key, and none is of the cortex itself."""
    return all(PART.fullmatch(one) and not one.startswith("_") for one in parts)
