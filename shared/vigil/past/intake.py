"""Storing a conversation that was led elsewhere, message by message, in a thread of its own.

Each message is stored only if nothing else came into its thread since the one before, and says its
number. So a repeat finds how far the one before it came, whatever ended that, and goes on there:
nothing is stored twice, or in another order. The order that ends it has the agent begin with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple

from .. import crash
from ..bus.bus import Bus
from ..contracts import Control, ControlPayload, encode
from ..contracts.codec import decode_past
from ..contracts.past.origins import ImportedPast
from ..contracts.past.words import PastWords
from ..errors import InvalidInput, WrongLastSequence
from ..marks import thread_mark
from ..subjects import SessionKey, check_part, token_of
from . import places
from .ids import KnownIds
from .pages import pages, readable
from .rows import shown_from

SHOWN_MAX: Final = 200
"""Messages that the history of an imported conversation begins with."""
SHOWN_SIZE_MAX: Final = 200_000
"""Characters of these: some 50,000 tokens."""
EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""No conversation is older; of the first days of the calendar no zone can tell the time."""
AHEAD_MAX: Final = timedelta(days=1)
"""Of the clock of where it was said, to ours."""
_ORIGIN: Final = re.compile("[a-z]{1,32}", re.ASCII)
"""It stands on the envelope of what nobody vouches for, which whoever wrote that doesn't write."""
WROTE: Final = "somebody writes in the conversation: it stays as far as it was taken"


class ThreadBegun(InvalidInput):
    """The thread holds something else."""


Standing = Literal["free", "ours", "others"]
"""Of a thread, to a conversation: it's empty; it holds that, or a part of it; something else."""


class PastPlace(NamedTuple):
    """How far a conversation stands in a thread."""

    standing: Standing
    number: int = 0
    """Of its last message there."""
    last: int = 0
    """Stream sequence of the thread's last record, if that is this message."""
    is_over: bool = False
    """Whether something came after it: the order that ends it, and all that goes on from there."""


class TakenPast(NamedTuple):
    """Messages that were stored, and that were there before."""

    new: int
    there: int


async def standing(bus: Bus, key: SessionKey, of: str) -> PastPlace:
    """Return how far the conversation `of` stands in a thread. Raises: Unavailable, BusError."""
    last = await bus.get_last(key.stream, key.everything)
    if last is None:
        return PastPlace("free")
    past = await bus.get_last(key.stream, places.all_of(key))
    words = None if past is None else decode_past(past.data)
    if past is None or words is None or words.of != of:
        return PastPlace("others")
    return PastPlace("ours", words.number, last.seq, is_over=last.seq != past.seq)


async def take(
    bus: Bus,
    key: SessionKey,
    messages: Sequence[PastWords],
    total: int,
    now: datetime,
    known: KnownIds | None = None,
) -> TakenPast:
    """Store messages of one conversation that follow those that are there.

    Args:
        total: how many it has in all: with the last of them it is whole.
        known: the ids of those that were taken, if whoever calls keeps them from part to part.

    Raises:
        ThreadBegun: something else is in the thread.
        InvalidInput: they don't follow, or it goes on here since; a message is none, or has
            another one's id.
        Unavailable, BusError: the same again goes on where this one ended.
    """
    of = _checked(key, messages, total)
    for one in messages:
        _check(one, now)
    mark = await thread_mark.find(bus, key)
    if mark is not None and mark.is_open:
        raise InvalidInput("session_key", "is being deleted")
    place = await standing(bus, key, of)
    if place.standing == "others":
        raise ThreadBegun("session_key", "has begun: name another thread")
    there = sum(one.number <= place.number for one in messages)
    fresh = messages[there:]
    if fresh and fresh[0].number != place.number + 1:
        raise InvalidInput(
            "first", f"must be {place.number + 1}: those follow the ones that are there"
        )
    if place.is_over:
        if fresh:
            raise InvalidInput("messages", f"{len(fresh)} newer ones: it goes on here since")
        return TakenPast(0, there)
    if fresh and place.number:
        taken = await (known or KnownIds()).of(bus, key, place.last)
        _check_other_ids(fresh, taken)
    last = place.last
    try:
        for one in fresh:
            crash.point("import.message.before")
            last = await _store(bus, key, places.of_role(key, one.role), encode(one), last)
        if (fresh[-1].number if fresh else place.number) == total:
            crash.point("import.past.before")
            await _end(bus, key, messages[-1], last, now)
    except WrongLastSequence as error:
        raise InvalidInput("messages", WROTE) from error
    return TakenPast(len(fresh), there)


def _checked(key: SessionKey, messages: Sequence[PastWords], total: int) -> str:
    """Return what tells the conversation. Raises: InvalidInput."""
    if not messages:
        raise InvalidInput("messages", "must not be empty")
    first = messages[0]
    if any(
        one.number != first.number + i or one.of != first.of or one.session_key != str(key)
        for i, one in enumerate(messages)
    ):
        raise InvalidInput("messages", "must be of one conversation, and follow each other")
    if not 1 <= first.number <= messages[-1].number <= total:
        raise InvalidInput(
            "first", f"must be at least 1, and the last message's place at most {total}"
        )
    _check_other_ids(messages, ())
    return first.of


def _check_other_ids(messages: Iterable[PastWords], taken: Iterable[str]) -> None:
    """Refuse a message with an id that another one has: what is said of one would be told of both,
    and an export would hold one of them. Raises: InvalidInput."""
    known = set(taken)
    for one in messages:
        if one.id in known:
            raise InvalidInput("messages", f"several have the id {one.id!r}")
        known.add(one.id)


def _check(words: PastWords, now: datetime) -> None:
    """Refuse what no message of a conversation is. Raises: InvalidInput."""
    if not _ORIGIN.fullmatch(words.origin):
        raise InvalidInput("origin", "must be 1 to 32 letters a-z")
    if words.by:
        check_part("by", words.by)
    if not EARLIEST <= words.at <= now + AHEAD_MAX:
        raise InvalidInput("at", f"must be from {EARLIEST.year} to now, is {words.at.isoformat()}")


async def _store(bus: Bus, key: SessionKey, subject: str, data: bytes, last: int) -> int:
    return (await bus.publish(subject, data, expect=last, expect_subject=key.everything)).seq


async def _end(bus: Bus, key: SessionKey, words: PastWords, last: int, now: datetime) -> None:
    """Have the agent begin with it."""
    sequences, sizes = await _sizes(bus, key, last)
    first = shown_from(sequences, sizes, count=SHOWN_MAX, size=SHOWN_SIZE_MAX)
    past = ImportedPast(origin=words.origin, first=first, last=last, count=len(sequences))
    event = Control(
        id=token_of("past", str(key), words.of),
        session_key=str(key),
        created_at=now,
        payload=ControlPayload(op="past", past=past),
    )
    await _store(bus, key, key.in_event("control"), encode(event), last)


async def _sizes(bus: Bus, key: SessionKey, last: int) -> tuple[list[int], list[int]]:
    """Return the stream sequences of all its messages, and how many characters each has; none, if
    it can't be read any more, as `read` leaves it out."""
    sequences: list[int] = []
    sizes: list[int] = []
    async for page in pages(bus, key, 1, last):
        sequences += [one.seq for one in page]
        sizes += [sum(len(words.text) for words in readable([one.data])) for one in page]
    return sequences, sizes


async def read(bus: Bus, key: SessionKey, past: ImportedPast) -> list[PastWords]:
    """Return what the history of an imported conversation begins with; what can't be read any more
    is left out. Raises: Unavailable, BusError."""
    found: list[PastWords] = []
    async for page in pages(bus, key, past.first, past.last):
        found += readable(one.data for one in page)
    return found
