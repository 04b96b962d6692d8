"""Reading and writing the ledger of the timetable (LOOPS L-1).

Each row has one subject, and an entry is stored if nobody stored another meanwhile; so each slot
is decided once, whoever decides at the same moment.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Final, NamedTuple

from msgspec.structs import replace

from ..bus.bus import Bus, Message
from ..contracts import (
    SlotEntry,
    decode_slot,
    encode,
)
from ..contracts.board import (
    Ledger,
)
from ..reading.read_once import once
from ..subjects import Scope
from .known_slots import KnownSlots
from .ledger import after

STREAM: Final = "SLOTS"


class Placed(NamedTuple):
    """The newest entry of a row's ledger."""

    ledger: Ledger = Ledger()
    seq: int = 0
    """Its place in the stream; 0: there is none."""


def placed(message: Message) -> Placed:
    """Return what an entry makes of the ledger. Raises: InvalidInput."""
    return Placed(decode_slot(message.data).ledger, message.seq)


class SlotLog:
    """The ledger of all rows."""

    def __init__(self, bus: Bus, known: KnownSlots | None = None) -> None:
        """Make one that asks the broker for each entry, but for those that are `known`."""
        self._bus = bus
        self._known = known

    async def last(self, whose: Scope, row: str) -> Placed:
        """Return what a row's ledger comes to. Raises: Unavailable, InvalidInput."""
        found = await self._bus.get_last(STREAM, whose.slot(row))
        return Placed() if found is None else placed(found)

    async def append(self, whose: Scope, last: Placed, entry: SlotEntry) -> Placed:
        """Store an entry after the last one.

        Raises:
            WrongLastSequence: there is a newer one than `last`.
        """
        entry = replace(entry, before=last.seq, ledger=after(last.ledger, entry))
        subject = whose.slot(entry.row)
        ack = await self._bus.publish(subject, encode(entry), expect=last.seq)
        return Placed(entry.ledger, ack.seq)

    async def newest(self, whose: Scope, row: str) -> AsyncIterator[SlotEntry]:
        """Yield the entries of a row, the newest first. Raises: Unavailable, InvalidInput."""
        async for _, entry in self.backwards(whose, row):
            yield entry

    async def backwards(self, whose: Scope, row: str) -> AsyncIterator[tuple[int, SlotEntry]]:
        """Yield them with their places. Raises: as `newest`."""
        subject = whose.slot(row)
        newest = await once(subject, lambda: self._bus.get_last(STREAM, subject))
        found = None if newest is None else (newest.seq, decode_slot(newest.data))
        while found is not None:
            yield found
            seq, entry = found
            found = await self._at(subject, entry.before) if entry.before else None
            # What it points to may be older than what is kept: then the next one is itself.
            found = None if found is None or found[0] >= seq else found

    async def _at(self, subject: str, seq: int) -> tuple[int, SlotEntry] | None:
        """Return the first entry of a row at that place or after it, with its own."""
        if self._known is not None and (known := self._known.find(subject, seq)) is not None:
            return seq, known
        read = partial(self._bus.get_next, STREAM, subject, seq)
        message = await once(f"{subject} {seq}", read)
        if message is None:
            return None
        entry = decode_slot(message.data)
        if self._known is not None:
            self._known.keep(subject, message.seq, entry)
        return message.seq, entry
