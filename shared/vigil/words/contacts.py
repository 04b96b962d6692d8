"""Whom a person knows, as `contacts` of their section says. Pure."""

from __future__ import annotations

from email.utils import parseaddr
from functools import lru_cache
from typing import Final

from ..errors import ConfigError
from .rule import Book, book_of

CONTACTS_MAX: Final = 2_000


@lru_cache(maxsize=256)
def book_of_contacts(contacts: tuple[str, ...]) -> Book:
    """Return the address book that a person's contacts make.

    >>> book = book_of_contacts(("Ben Miller <ben@example.org>", "+43 1 234567"))
    >>> book.has("Ben@example.org"), book.has("+43 1 234567"), sorted(book.names)
    (True, True, ['ben', 'ben miller', 'miller'])

    Raises:
        ConfigError: naming the entry that names nobody.
    """
    if len(contacts) > CONTACTS_MAX:
        raise ConfigError(f"contacts: {len(contacts)} entries; at most {CONTACTS_MAX} are kept")
    return book_of(map(parsed, contacts))


def parsed(entry: str) -> tuple[list[str], list[str]]:
    """Return the names and the addresses of one entry: ``Name <address>``, or an address alone.

    Raises:
        ConfigError: it names nobody.
    """
    if "<" not in entry:
        name, address = "", entry.strip()
    else:
        name, address = parseaddr(entry)
    if not address:
        raise ConfigError(f"contacts: {entry!r} has no address; write Name <address>")
    parts = name.split()
    return ([name, *parts] if len(parts) > 1 else parts), [address]
