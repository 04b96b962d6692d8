"""What a person calls a conversation, and whether they put it away: their own, beside its content.

A label is one entry of the bucket CONFIG for a person and a conversation. Members of a team name
the conversations that they share each for themselves. It ends with the conversation or the person.
"""

from __future__ import annotations

from typing import Final

import msgspec
import structlog

from ..bus.bus import Bus
from ..bus.kv import KeyValue
from ..contracts import Instant
from ..subjects import SessionKey, token_of

log = structlog.get_logger("vigil.switches")

BUCKET: Final = "CONFIG"
PREFIX: Final = "label."
TITLE_LENGTH_MAX: Final = 120


class ConversationLabel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one person has a conversation in their list."""

    reader: str
    """Whose list it is."""
    session: str
    """The conversation, as userId:agentId:threadId."""
    at: Instant
    """When they last changed it."""
    title: str = ""
    """What they call it; empty: by its first words."""
    archived_at: Instant | None = None
    """When they put it away; None: it is among the others."""


def key_of(reader: str, session: SessionKey) -> str:
    """Return where the label stands."""
    return f"{_of_reader(reader)}{_name_of(session)}"


def _of_reader(reader: str) -> str:
    return f"{PREFIX}{token_of('person', reader)}."


def _name_of(session: SessionKey) -> str:
    return token_of("thread", str(session))


async def find(bus: Bus, reader: str, session: SessionKey) -> tuple[ConversationLabel | None, int]:
    """Return a label and its revision; 0: there was never any. Raises: Unavailable."""
    value, revision = await KeyValue(bus, BUCKET).last(key_of(reader, session))
    return _read(value), revision


async def put(bus: Bus, label: ConversationLabel, *, expect: int) -> None:
    """Store a label; one that says nothing is removed. Raises: WrongLastSequence, Unavailable."""
    key = key_of(label.reader, SessionKey.parse(label.session))
    if label.title or label.archived_at is not None:
        await KeyValue(bus, BUCKET).put(key, msgspec.json.encode(label), expect=expect)
    elif expect:
        await KeyValue(bus, BUCKET).delete(key, expect=expect)


async def all_of(bus: Bus, reader: str) -> dict[str, ConversationLabel]:
    """Return a person's labels by the key of the conversation. Raises: Unavailable."""
    found = await bus.read(f"KV_{BUCKET}", [f"$KV.{BUCKET}.{_of_reader(reader)}*"])
    labels = (_read(message.data) for message in found)
    return {one.session: one for one in labels if one is not None}


async def forget_conversation(bus: Bus, session: SessionKey) -> None:
    """Remove what anybody calls a conversation."""
    await _forget(bus, f"{PREFIX}*.{_name_of(session)}")


async def forget(bus: Bus, user: str) -> None:
    """Remove a person's labels, and those of others for conversations of theirs."""
    await _forget(bus, f"{_of_reader(user)}*")
    for message in await bus.read(f"KV_{BUCKET}", [f"$KV.{BUCKET}.{PREFIX}>"]):
        label = _read(message.data)
        if label is not None and SessionKey.parse(label.session).user == user:
            await KeyValue(bus, BUCKET).delete(message.subject.removeprefix(f"$KV.{BUCKET}."))


async def _forget(bus: Bus, keys: str) -> None:
    for message in await bus.read(f"KV_{BUCKET}", [f"$KV.{BUCKET}.{keys}"]):
        if message.data:
            await KeyValue(bus, BUCKET).delete(message.subject.removeprefix(f"$KV.{BUCKET}."))


def _read(value: bytes | None) -> ConversationLabel | None:
    try:
        return msgspec.json.decode(value, type=ConversationLabel) if value else None
    except msgspec.MsgspecError as error:
        log.error("label unreadable", action="switches.unreadable", error=str(error))
        return None
