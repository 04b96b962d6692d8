"""vCards as contacts, read by the library vobject: versions 2.1, 3.0 and 4.0, and what programs
make of them. A line or a card that can't be read costs no other; groups are nobody."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
import vobject
from vobject.base import Component, VObjectError, getLogicalLines

from .record import (
    ADDRESSES_MAX,
    NAMES_MAX,
    Contact,
    cleaned_address,
    cleaned_name,
    cleaned_phone,
    limited,
)

BROKEN: Final = (VObjectError, ValueError, AttributeError, LookupError, TypeError)
"""What the library raises for what is no card; LookupError also of a character set that there
isn't."""
_BEGIN: Final = "BEGIN:VCARD"
_READ: Final = frozenset({"BEGIN", "END", "VERSION", "KIND", "FN", "N", "NICKNAME", "EMAIL", "TEL"})
"""What of a card is read. Half a photo costs nobody their name."""
_LINE: Final = re.compile(r"(?:[^.:;]+\.)?([^.:;]+)[:;]")
"""A line that begins a property, perhaps of a group ("item1.EMAIL")."""
_PLAIN: Final = re.compile(r";(?:ENCODING=)?[78]BIT(?=[;:])", re.IGNORECASE)
"""Says that a value is as it stands. The library would decode it as Base64."""


class ReadCards(msgspec.Struct, frozen=True, kw_only=True):
    """What of cards could be read."""

    contacts: tuple[Contact, ...]
    left_out: int
    """Cards that can't be read, and contacts beyond what is kept."""


def read_cards(data: bytes) -> ReadCards:
    """Read a file of cards, or several one after the other."""
    # It would log lines of cards. It sets the level of this logger itself, so not of one above it.
    logging.getLogger(getLogicalLines.__module__).setLevel(logging.CRITICAL)
    found: list[Contact] = []
    broken = 0
    for text in _apart(data.decode("utf-8", "replace")):
        try:
            card = next(iter(vobject.readComponents(text, ignoreUnreadable=True, allowQP=True)))
            contact = contact_of(card)
        except (*BROKEN, StopIteration):
            broken += 1
            continue
        if contact is not None:
            found.append(contact)
    kept, left_out = limited(found)
    return ReadCards(contacts=kept, left_out=left_out + broken)


def _apart(text: str) -> Iterable[str]:
    """Yield of each card what is read, so that one that can't be read costs no other."""
    lines: list[str] = []
    for line in _read_lines(text.replace("\r\n", "\n")):
        if line.strip().upper() == _BEGIN and lines:
            yield "\r\n".join(lines)
            lines = []
        if lines or line.strip().upper() == _BEGIN:
            lines.append(line)
    if lines:
        yield "\r\n".join(lines) + "\r\n"


def _read_lines(text: str) -> Iterator[str]:
    """Yield the lines of what is read, unfolded as the library does it."""
    for line, _ in getLogicalLines(io.StringIO(text), allowQP=True):
        found = _LINE.match(line)
        if found is not None and found[1].strip().upper() in _READ:
            yield _plain(line)


def _plain(line: str) -> str:
    name, colon, value = line.partition(":")
    return _PLAIN.sub("", name + colon) + value


def contact_of(card: Component) -> Contact | None:
    """Return whom a card is of; None: nobody who can be reached by name, as a group."""
    if any(str(one.value).lower() in ("group", "location") for one in _lines(card, "kind")):
        return None
    names = [cleaned_name(name) for name in _names_of(card)]
    known = [name for name in dict.fromkeys(names) if name]
    mail = sorted(_lines(card, "email"), key=_preference)
    addresses = [cleaned_address(str(one.value)) for one in mail]
    phones = [cleaned_phone(str(one.value)) for one in sorted(_lines(card, "tel"), key=_preference)]
    kept = tuple(dict.fromkeys(filter(None, addresses)))[:ADDRESSES_MAX]
    numbers = tuple(dict.fromkeys(filter(None, phones)))[:ADDRESSES_MAX]
    if not (kept or numbers):
        return None
    return Contact(
        name=known[0] if known else (kept or numbers)[0],
        names=tuple(known[1:NAMES_MAX]),
        addresses=kept,
        phones=numbers,
        has_first=len(kept) > 1 and bool(addresses[0]) and _is_preferred(mail),
    )


def _names_of(card: Component) -> Iterable[str]:
    """Yield how somebody is called, the name that is shown first."""
    whole = [str(one.value) for one in _lines(card, "fn")]
    yield from whole
    parts = [
        name
        for one in _lines(card, "n")
        for part in (one.value.given, one.value.family)
        for name in (part if isinstance(part, list) else [part])
    ]
    # Since version 4.0 a card may have no name in parts.
    yield from parts if any(parts) else (word for name in whole for word in name.split())
    for one in _lines(card, "nickname"):  # of several the library gives the first
        yield str(one.value)


def _lines(card: Component, name: str) -> list[Any]:
    return list(card.contents.get(name, []))


def _preference(line: Any) -> int:
    """Return which of several is preferred: 1 before 100 (RFC 6350, 5.3); 101: nothing says so."""
    params = {name.upper(): values for name, values in line.params.items()}
    types = {word.upper() for one in params.get("TYPE", []) for word in one.split(",")}
    if "PREF" in types or "PREF" in (one.upper() for one in getattr(line, "singletonparams", ())):
        return 1
    value = next(iter(params.get("PREF", [])), "")
    return int(value) if value.isascii() and value.isdecimal() and 1 <= int(value) <= 100 else 101


def _is_preferred(mail: list[Any]) -> bool:
    """Whether one address is before all others."""
    return _preference(mail[0]) < _preference(mail[1]) if len(mail) > 1 else False
