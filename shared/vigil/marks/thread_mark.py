"""The mark of a conversation that is being deleted, and what is left of it: who, which and when.

It is one entry of the bucket CONFIG, written before anything is deleted. While it is open nothing
of the conversation is shown, taken in, thought about or said by any service. The active scheduler
deletes the records (:mod:`.thread`) and closes it; then it is the proof, and the name is free.
"""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Final

import msgspec
import structlog

from ..bus.bus import Bus
from ..bus.kv import KeyValue
from ..contracts import Instant
from ..errors import WrongLastSequence
from ..subjects import SessionKey, token_of

log = structlog.get_logger("vigil.switches")

BUCKET: Final = "CONFIG"
PREFIX: Final = "thread."
SWEEP: Final = 1
"""What goes with a conversation: since 1 its requests, too, and grants that held in it alone."""


class Deletion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far it is; nothing of what was said is in here."""

    session: str
    """The conversation, as userId:agentId:threadId."""
    asked_at: Instant
    by: str
    """The user who asked for it."""
    parts: tuple[str, ...] = ()
    """Sessions that it started, and theirs: workers and branches. They are deleted with it."""
    files: tuple[str, ...] = ()
    """Hashes of files that its records named; those that nothing else names are deleted."""
    deleted: dict[str, int] = {}
    """Records that were deleted since the service that did it last began, by stream."""
    done_at: Instant | None = None
    sweep: int = 0
    """How much was deleted when it was closed: `SWEEP`, or less by an older version."""

    @property
    def is_open(self) -> bool:
        return self.done_at is None


def key_of(session: SessionKey) -> str:
    """Return where the mark of a conversation stands."""
    return PREFIX + token_of("thread", str(session))


class DeletedThreads:
    """The marks as they are now."""

    def __init__(self) -> None:
        self._open: dict[str, Deletion] = {}
        self._gone: frozenset[str] = frozenset()

    def take(self, key: str, value: bytes | None) -> None:
        """Know what an entry holds; None or empty: it is gone."""
        self._open.pop(key, None)
        found = read(value)
        if found is not None and found.is_open:
            self._open[key] = found
        gone = {one for mark in self._open.values() for one in (mark.session, *mark.parts)}
        self._gone = frozenset(gone)

    @property
    def open(self) -> tuple[Deletion, ...]:
        """Those that are not done, in the order of their keys."""
        return tuple(self._open[key] for key in sorted(self._open))

    def __contains__(self, session: SessionKey) -> bool:
        return bool(self._gone) and self.has(str(session))

    def has(self, session: str) -> bool:
        """Whether a session, by its key as text, is one that is being deleted or a part of it."""
        return session in self._gone

    def of(self, session: SessionKey) -> Deletion | None:
        """Return the mark of a conversation that is being deleted."""
        return self._open.get(key_of(session))


def read(value: bytes | None) -> Deletion | None:
    """Return what an entry holds; None: nothing, or it can't be read."""
    try:
        return msgspec.json.decode(value, type=Deletion) if value else None
    except msgspec.MsgspecError as error:
        log.error("mark unreadable", action="switches.unreadable", error=str(error))
        return None


async def find(bus: Bus, session: SessionKey) -> Deletion | None:
    """Return the mark of a conversation, also one that is done. Raises: Unavailable."""
    return (await last(bus, session))[0]


async def last(bus: Bus, session: SessionKey) -> tuple[Deletion | None, int]:
    """Return the mark and its revision; 0: there was never any. Raises: Unavailable."""
    value, revision = await KeyValue(bus, BUCKET).last(key_of(session))
    return read(value), revision


async def swept_in_part(bus: Bus) -> list[Deletion]:
    """Return the marks that an older version closed, when less went. Raises: Unavailable."""
    there = await bus.read(f"KV_{BUCKET}", [f"$KV.{BUCKET}.{PREFIX}>"])
    marks = (read(message.data) for message in there)
    return [one for one in marks if one is not None and not one.is_open and one.sweep < SWEEP]


async def begin(bus: Bus, session: SessionKey, *, by: str, now: datetime) -> Deletion:
    """Set the mark; one that is open stays. From here on the services refuse the conversation.

    Raises:
        Unavailable, BusError.
    """
    found, revision = await last(bus, session)
    if found is not None and found.is_open:
        return found
    mark = Deletion(session=str(session), asked_at=now, by=by)
    with contextlib.suppress(WrongLastSequence):
        await put(bus, mark, expect=revision)
        return mark
    return await find(bus, session) or mark


async def put(bus: Bus, mark: Deletion, *, expect: int | None = None) -> int:
    """Store a mark; return its revision. Raises: WrongLastSequence, Unavailable, BusError."""
    key = key_of(SessionKey.parse(mark.session))
    return await KeyValue(bus, BUCKET).put(key, msgspec.json.encode(mark), expect=expect)


async def forget(bus: Bus, user: str) -> None:
    """Remove the marks of a person's conversations, and their name from those of others."""
    while not await _forget(bus, user):
        pass


async def _forget(bus: Bus, user: str) -> bool:
    """Do so; whether no deletion went on meanwhile whose mark names them."""
    is_done = True
    for message in await bus.read(f"KV_{BUCKET}", [f"$KV.{BUCKET}.{PREFIX}>"]):
        mark = read(message.data)
        if mark is None:
            continue
        if SessionKey.parse(mark.session).user == user:
            await KeyValue(bus, BUCKET).delete(message.subject.removeprefix(f"$KV.{BUCKET}."))
        elif mark.by == user:
            unnamed = msgspec.structs.replace(mark, by="somebody erased")
            try:
                await put(bus, unnamed, expect=message.seq)
            except WrongLastSequence:
                is_done = False
    return is_done
