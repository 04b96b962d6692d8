"""Whom people know now: lists in the bucket CONFIG, which one replica of the gateway refreshes.

Which list is whose, and which counts as known to them, is the configuration's to say, not the
bucket's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

import msgspec
import structlog

from ..bus.bus import Bus
from ..bus.kv import KeyValue
from ..subjects import token_of
from ..words.rule import Book, book_of
from .record import PREFIX, Contact, ContactList, key_of, rows_of
from .section import ContactSource

log = structlog.get_logger("vigil.contacts")

BUCKET = "CONFIG"
Sources = Mapping[str, ContactSource]


class WithInput(Protocol):
    """A call of a tool."""

    @property
    def input(self) -> Mapping[str, Any]: ...


class KnownContacts:
    """All lists as they are now, told by a watch of the bucket.

    Attributes:
        sources: as configured; only what is among them counts.
    """

    def __init__(self) -> None:
        self.sources: Sources = {}
        self._lists: dict[str, ContactList] = {}
        self._books: dict[str, tuple[Book, Book]] = {}

    def take(self, key: str, value: bytes | None) -> None:
        """Know what an entry holds; None, or what can't be read: nobody."""
        found = _decoded(value)
        if found is not None and key_of(found.user, found.source) == key:
            self._lists[key] = found
        else:
            self._lists.pop(key, None)
        self._books.clear()

    def book(self, user: str, configured: Book) -> Book:
        """Return whom a person knows: as configured, and what counts of their lists. A name that
        two of them give to different people stands for none."""
        if not self._lists:
            return configured
        known = self._books.get(user)
        if known is not None and known[0] is configured:
            return known[1]
        rows = [row for one in theirs(self.of(user), self.sources) for row in rows_of(one.contacts)]
        book = merged(configured, book_of(rows)) if rows else configured
        self._books[user] = (configured, book)
        return book

    def named_in(self, user: str, configured: Book, calls: Iterable[WithInput]) -> Book | None:
        """Return of whom a person knows those whose addresses stand in calls, with all that they
        are called; None: they have no lists. What a decision rests on is kept with it, so it's no
        more than that.
        """
        if not self.of(user):
            return None
        book = self.book(user, configured)
        text = "\n".join(_texts(call.input for call in calls)).lower()
        addresses = frozenset(one for one in book.addresses if one in text)
        names = {name: to & addresses for name, to in book.names.items() if to & addresses}
        return Book(addresses=addresses, names=names)

    def of(self, user: str) -> list[ContactList]:
        """Return a person's lists, by name."""
        found = [one for one in self._lists.values() if one.user == user]
        return sorted(found, key=lambda one: one.source)


def theirs(lists: list[ContactList], sources: Sources) -> list[ContactList]:
    """Return the lists that count as known to the person: they alone write them."""
    return [one for one in lists if is_theirs(one, sources)]


def is_theirs(found: ContactList, sources: Sources) -> bool:
    source = sources.get(found.source)
    is_named = source is not None and source.user == found.user and source.is_theirs
    return is_named and not found.is_open


def merged(one: Book, other: Book) -> Book:
    """Return what both have; a name that means different addresses in them means none.

    >>> ben = book_of([(["Ben"], ["ben@a.org"]), (["Al"], ["al@a.org"])])
    >>> sorted(merged(ben, book_of([(["Ben"], ["b@b.org"])])).names)
    ['al']
    """
    names: dict[str, frozenset[str]] = {}
    for name in one.names.keys() | other.names.keys():
        both = one.names.get(name, frozenset()) | other.names.get(name, frozenset())
        kinds = [frozenset(to for to in both if ("@" in to) is mail) for mail in (True, False)]
        clear = frozenset[str]().union(*(each for each in kinds if len(each) == 1))
        if clear:
            names[name] = clear
    return Book(addresses=one.addresses | other.addresses, names=names)


def found_by(
    lists: list[ContactList], sources: Sources
) -> tuple[list[Contact], list[tuple[str, Contact]]]:
    """Return the person's own contacts, and those of lists that others write, with the list."""
    own = [contact for one in theirs(lists, sources) for contact in one.contacts]
    rest = [one for one in lists if one.source in sources and not is_theirs(one, sources)]
    return own, [(one.source, contact) for one in rest for contact in one.contacts]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for below in value.values():
            yield from _texts(below)
    elif isinstance(value, str | int | float):
        yield str(value)
    elif isinstance(value, Iterable):
        for below in value:
            yield from _texts(below)


# ---------------------------------------------------------------- the bucket


async def lists_of(bus: Bus, user: str) -> list[ContactList]:
    """Return a person's lists, by name. Raises: Unavailable, BusError."""
    return await _read(bus, f"{PREFIX}{token_of('person', user)}.*")


async def all_lists(bus: Bus) -> list[ContactList]:
    """Return everybody's lists. Raises: Unavailable, BusError."""
    return await _read(bus, f"{PREFIX}>")


async def _read(bus: Bus, keys: str) -> list[ContactList]:
    found: dict[str, ContactList] = {}
    for message in await bus.read(f"KV_{BUCKET}", [f"$KV.{BUCKET}.{keys}"]):
        key = message.subject.removeprefix(f"$KV.{BUCKET}.")
        one = _decoded(message.data)
        if one is not None and key_of(one.user, one.source) == key:
            found[key] = one
        else:
            found.pop(key, None)
    return sorted(found.values(), key=lambda one: one.source)


async def store(bus: Bus, found: ContactList) -> bool:
    """Store a list, if it isn't there as it is; whether it was stored."""
    bucket, key = KeyValue(bus, BUCKET), key_of(found.user, found.source)
    entry = await bucket.get(key)
    before = _decoded(None if entry is None else entry.value)
    if before is not None and msgspec.structs.replace(before, at=found.at) == found:
        return False
    await bucket.put(key, msgspec.json.encode(found))
    return True


async def remove_others(bus: Bus, kept: Collection[tuple[str, str]]) -> None:
    """Remove lists that are of no such person and source any more."""
    for one in await all_lists(bus):
        if (one.user, one.source) not in kept:
            await KeyValue(bus, BUCKET).delete(key_of(one.user, one.source))


async def forget(bus: Bus, user: str) -> None:
    """Remove whom a person knows."""
    for one in await lists_of(bus, user):
        await KeyValue(bus, BUCKET).delete(key_of(user, one.source))


def _decoded(value: bytes | None) -> ContactList | None:
    try:
        return msgspec.json.decode(value, type=ContactList) if value else None
    except msgspec.MsgspecError as error:
        log.error("contacts unreadable", action="contacts.unreadable", error=str(error))
        return None
