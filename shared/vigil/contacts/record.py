"""Whom somebody knows, as it's kept, and who is found in it. Pure.

A contact may have been written by anybody: a mail program that collects senders, a colleague with
the same address book, whoever sent the card. So names and addresses are held to forms, and a list
counts as the person's own only where they said so, and nobody else can write it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from ..contracts import Instant
from ..mail.ids import is_address
from ..subjects import token_of
from ..texts.glyphs import hidden_in, is_printable

PREFIX: Final = "contacts."
CONTACTS_MAX: Final = 5_000
"""Of a list; those beyond are left out, which is told."""
NAMES_MAX: Final = 8
ADDRESSES_MAX: Final = 10
NAME_LENGTH_MAX: Final = 80
FOUND_MAX: Final = 10
BYTES_MAX: Final = 700_000
"""Of a list, as it's stored."""
_PHONE: Final = re.compile(r"\+?[0-9][0-9 ()./-]{2,29}", re.ASCII)


class Contact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody. Of several addresses of a kind, the first is meant by their name if `has_first`."""

    name: str
    """As it's shown."""
    names: tuple[str, ...] = ()
    """What else they are called: given name, family name, nickname."""
    addresses: tuple[str, ...] = ()
    """Of mail."""
    phones: tuple[str, ...] = ()
    has_first: bool = False
    """Whether the list says which address is preferred; that is the first."""


class ContactList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one source holds."""

    user: str
    source: str
    at: Instant
    """When it was last found to have changed."""
    contacts: tuple[Contact, ...] = ()
    left_out: int = 0
    """Contacts beyond what is kept, and cards that can't be read."""
    is_open: bool = False
    """Whether others can write the file that it is."""


def key_of(user: str, source: str) -> str:
    """Return where a list stands; names are hashed: they outlive in keys what was stored there."""
    return f"{PREFIX}{token_of('person', user)}.{token_of('contacts', source)}"


def cleaned_name(text: str) -> str:
    """Return a name in one line; empty: it's none.

    >>> cleaned_name(" Ben\\n Miller "), cleaned_name("ben@example.org"), cleaned_name("a" * 90)
    ('Ben Miller', '', '')
    """
    name = " ".join(unicodedata.normalize("NFC", text).split())
    is_usable = 0 < len(name) <= NAME_LENGTH_MAX and is_printable(name) and not hidden_in(name)
    return name if is_usable and not set(name) & set("@<>[]{}|\\`") else ""


def cleaned_address(text: str) -> str:
    """Return an address of mail; empty: it's no plain one.

    >>> cleaned_address("mailto:Ben@Example.org"), cleaned_address("a@b.example, c@d.example")
    ('ben@example.org', '')
    """
    plain = text.strip().lower().removeprefix("mailto:")
    return plain if is_address(plain) else ""


def cleaned_phone(text: str) -> str:
    """Return a number to call; empty: it's none.

    >>> cleaned_phone("tel:+43-660-1234567;ext=1"), cleaned_phone("call me")
    ('+43-660-1234567', '')
    """
    plain = text.strip().lower().removeprefix("tel:").partition(";")[0].strip()
    return plain if _PHONE.fullmatch(plain) else ""


def limited(contacts: Iterable[Contact]) -> tuple[tuple[Contact, ...], int]:
    """Return what is kept of a list, and how many are left out. In an order of its own, so that
    the same is stored whatever order a server has."""
    plain = sorted(set(contacts), key=lambda one: (one.name.lower(), one.addresses, one.phones))
    kept: list[Contact] = []
    room = BYTES_MAX
    for one in plain[:CONTACTS_MAX]:
        room -= len(msgspec.json.encode(one)) + 1
        if room < 0:
            break
        kept.append(one)
    return tuple(kept), len(plain) - len(kept)


def rows_of(contacts: Iterable[Contact]) -> list[tuple[Sequence[str], Sequence[str]]]:
    """Return names and addresses as an address book takes them: a name stands for one address of a
    kind, so of somebody with two, for the one that the list prefers, or for none.

    >>> ben = Contact(name="Ben Ray", names=("Ben",), addresses=("a@b.org", "c@d.org"))
    >>> rows_of([ben])
    [((), ('a@b.org', 'c@d.org'))]
    """
    rows: list[tuple[Sequence[str], Sequence[str]]] = []
    for one in contacts:
        names = (one.name, *one.names)
        for reached, is_clear in ((one.addresses, one.has_first), (one.phones, False)):
            meant = 1 if len(reached) == 1 or is_clear else 0
            parts = ((names, reached[:meant]), ((), reached[meant:]))
            rows += [(called, part) for called, part in parts if part]
    return rows


def found_in(contacts: Iterable[Contact], query: str) -> list[Contact]:
    """Return who is meant by a name, an address or a part of either: those whose whole name it is,
    else those whose words begin so.

    >>> ben, rubens = Contact(name="Ben Ray"), Contact(name="Ruth Rubens")
    >>> found_in([ben, rubens], "ben") == [ben], found_in([ben, rubens], "rub ruth") == [rubens]
    (True, True)
    """
    wanted = " ".join(unicodedata.normalize("NFC", query).lower().split())
    everybody = list(contacts)
    exact = [one for one in everybody if wanted in _called(one)]
    words = wanted.split()
    if exact or not words:
        return exact
    return [one for one in everybody if all(_has_word(one, start) for start in words)]


def _called(one: Contact) -> set[str]:
    reached = (*one.addresses, *one.phones)
    return {each.lower() for each in (one.name, *one.names, *reached)}


def _has_word(one: Contact, start: str) -> bool:
    words = (word for each in _called(one) for word in re.split(r"[\s@.+-]+", each))
    return any(word.startswith(start) for word in words)


def shown(one: Contact) -> str:
    """Return a contact in one line.

    >>> shown(Contact(name="Ben Ray", names=("Ben",), addresses=("ben@example.org",)))
    'Ben Ray <ben@example.org>'
    """
    ways = [f"<{address}>" for address in one.addresses] + list(one.phones)
    return " ".join([one.name, ", ".join(ways)]).strip()
