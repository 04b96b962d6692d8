"""The list of conversations: by key or the newest first, with titles, and what is unread.

What a conversation is called is its person's label, or its first words. It is unread if the agent
said something after what they read or wrote last. One in which only an agent spoke is among them.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import dropwhile, islice
from typing import Final, Literal

import msgspec

from vigil.bus.bus import Bus, Message
from vigil.contracts import decode_said
from vigil.errors import InvalidInput
from vigil.marks.conversation_label import ConversationLabel
from vigil.past import places, words
from vigil.subjects import Scope, SessionKey

from ..http.wire import Forked, SessionList, SessionSummary
from ..shelf.first_words import first_said, words_of
from ..shelf.known_talks import KnownTalk, KnownTalks
from ..shelf.read_marks import ReadMarks
from ..shelf.recency import LastWord, Recency, key_of
from ..shelf.titles import is_found, title_of
from .history import forked_in

READS_AT_ONCE: Final = 32
SEARCHED_MAX: Final = 2_000
"""Conversations of which a search looks at the first words, the newest; titles that a person gave
are looked through in all."""
Order = Literal["key", "newest"]


class ListWish(msgspec.Struct, frozen=True, kw_only=True):
    """Which conversations are wanted."""

    order: Order = "key"
    after: str = ""
    limit: int = 100
    archived: bool | None = None
    """Only those that are put away, or only the others; None: both."""
    words: str = ""
    """Only those whose title or thread has all of these."""


class Catalog:
    """The conversations of some owners, as one person has them in their list."""

    def __init__(
        self,
        bus: Bus,
        recency: Recency,
        marks: ReadMarks,
        reader: str,
        labels: dict[str, ConversationLabel],
        known: KnownTalks,
    ) -> None:
        self._bus = bus
        self._recency = recency
        self._marks = marks
        self._reader = reader
        self._labels = labels
        self._known = known
        self._gate = asyncio.Semaphore(READS_AT_ONCE)

    async def page(self, whose: Iterable[Scope], wish: ListWish) -> SessionList:
        """Return those that are wanted and follow the key `after` in that order.

        Raises:
            Unavailable: the broker can't tell.
        """
        keys = await self._keys(tuple(whose), wish)
        there = list(keys)
        if wish.words:
            there = await self._search(there, wish.words, wish.limit + 1)
        page = there[: wish.limit]
        found = await asyncio.gather(*(self._summary(key, keys[key]) for key in page))
        return SessionList(
            sessions=tuple(one for one in found if one is not None),
            next_after=page[-1] if len(there) > wish.limit else None,
        )

    async def _keys(self, owners: tuple[Scope, ...], wish: ListWish) -> dict[str, int]:
        """Return those that are wanted, in their order, after the one that is named; of each the
        sequence of what somebody wrote last, 0: it isn't known.

        By the newest they are known without asking for all: of the ten thousand that one may have,
        the broker lists the subjects each time.
        """
        talks = [await self._recency.look(one) for one in owners]
        if wish.order == "key":
            there = {
                *await _subjects_of(self._bus, owners),
                *itertools.chain(*(one.told for one in talks)),
            }
            wanted = sorted(
                key for key in there if key > wish.after and self._is_wanted(key, wish.archived)
            )
            return dict.fromkeys(wanted, 0)
        # Of those in which nobody wrote the sequence isn't known.
        unasked = [{key: LastWord(at, 0) for key, (at, _) in one.told.items()} for one in talks]
        known = [*(one.written for one in talks), *unasked]
        newest = heapq.merge(
            *(reversed(one.items()) for one in known), key=lambda pair: pair[1], reverse=True
        )
        keys: Iterator[tuple[str, int]] = (
            (key, last.seq) for key, last in newest if self._is_wanted(key, wish.archived)
        )
        if any(wish.after in one for one in known) and self._is_wanted(wish.after, wish.archived):
            keys = islice(dropwhile(lambda pair: pair[0] != wish.after, keys), 1, None)
        # No more are looked at than are shown, unless their words have to be.
        return dict(keys if wish.words else islice(keys, wish.limit + 1))

    def _is_wanted(self, key: str, archived: bool | None) -> bool:
        if archived is None:
            return True
        label = self._labels.get(key)
        return (label is not None and label.archived_at is not None) == archived

    async def _search(self, keys: list[str], words: str, limit: int) -> list[str]:
        """Return those of the keys, in their order, that have the words in title or thread."""

        async def has(key: str, may_read: bool) -> bool:
            label = self._labels.get(key)
            title = label.title if label is not None else ""
            thread = SessionKey.parse(key).thread
            if is_found(words, f"{title} {thread}"):
                return True
            if title or not may_read:
                return False
            async with self._gate:
                first, _ = await self._first(SessionKey.parse(key))
                return is_found(words, f"{first} {thread}")

        found: list[str] = []
        for start in range(0, len(keys), READS_AT_ONCE):
            some = keys[start : start + READS_AT_ONCE]
            are = await asyncio.gather(*(has(key, start < SEARCHED_MAX) for key in some))
            found += [key for key, is_one in zip(some, are, strict=True) if is_one]
            if len(found) >= limit:
                break
        return found

    async def _first(self, session: SessionKey) -> tuple[str, Forked | None]:
        """Return the first words of a conversation, and what it was forked from.

        A fork is the first that came into its thread, and what was imported is before all else, so
        mostly one question tells all.
        """
        first = await self._bus.get_next(session.stream, session.everything, 1)
        fork_of = forked_in(first)
        if words.by_person(first) is None and first is not None:
            first = await first_said(self._bus, session, first.seq)
        return title_of(words_of(first)), fork_of

    async def _known_of(self, session: SessionKey, seq: int) -> KnownTalk | None:
        """Return what a person's next message changes, read if it isn't known of the newest one;
        None: nobody ever wrote, or the conversation was deleted.

        Args:
            seq: of what somebody wrote last; 0: it is to be asked.
        """
        if seq and (known := self._known.find(str(session), seq)) is not None:
            return known
        newest = await self._bus.get_last(session.stream, places.said_in(session))
        if newest is None:
            self._known.forget(str(session))
            return None
        known = self._known.find(str(session), newest.seq)
        return known or await self._read(session, newest)

    async def _only_told(self, session: SessionKey) -> KnownTalk | None:
        """Return what there is to say of one in which nobody wrote; None: nobody spoke, either."""
        first_words, fork_of = await self._first(session)
        found = await self._bus.get_last(session.stream, session.transcript)
        if found is None:
            return None
        return KnownTalk(
            newest=0, last_at=None, messages=0, first_words=first_words, fork_of=fork_of
        )

    async def _read(self, session: SessionKey, newest: Message) -> KnownTalk:
        """Read what a person's next message changes, and keep it."""
        counts, (first_words, fork_of) = await asyncio.gather(
            self._bus.subjects(session.stream, places.said_in(session)), self._first(session)
        )
        said = words.by_person(newest)
        known = KnownTalk(
            newest=newest.seq,
            last_at=None if said is None else said.at,
            messages=sum(counts.values()),
            first_words=first_words,
            fork_of=fork_of,
        )
        self._known.keep(str(session), known)
        return known

    async def _summary(self, key: str, seq: int) -> SessionSummary | None:
        """Return a conversation as it is in the list; None: it was deleted.

        Args:
            seq: of what somebody wrote last in it; 0: it isn't known.
        """
        session, label = SessionKey.parse(key), self._labels.get(key)
        async with self._gate:
            said = await self._bus.get_last(session.stream, session.out_all)
            # Where the agent said nothing it may be that all is gone: then it has to be asked.
            known = await self._known_of(session, 0 if said is None else seq)
            known = known or await self._only_told(session)
            if known is None:
                return None
            is_unread = said is not None and said.seq > known.newest
            if said is not None and is_unread:
                is_unread = said.seq > await self._marks.of(self._reader, session)
        return SessionSummary(
            session_key=key,
            messages=known.messages,
            last_at=known.last_at,
            fork_of=known.fork_of,
            title=(label.title if label is not None else "") or known.first_words,
            is_archived=label is not None and label.archived_at is not None,
            is_unread=is_unread,
            said_at=_said_at(said),
        )


async def _subjects_of(bus: Bus, whose: Iterable[Scope]) -> list[str]:
    """Ask the stream which sessions have user messages; return their keys."""
    found: set[str] = set()
    for one in whose:
        found.update(await bus.subjects("SESSIONS", places.by_person(one)))
    return [key_of(subject) for subject in found]


def _said_at(message: Message | None) -> datetime | None:
    try:
        return None if message is None else decode_said(message.data).at
    except InvalidInput:
        return None
