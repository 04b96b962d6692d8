"""Facts of a mailbox: how many are unread, when known people last wrote, the nearest deadline (FLOW
F-9). Pure.

`unread` and `newest_…` are counted by who follows the mailbox, without a model; `matter`, `due` and
`due_from` are told by the reader of new mail. A sender who is no contact is `other`: an address is
their writer's word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from email.utils import parseaddr
from typing import Final, NamedTuple

from ..contracts.board import ADay, AnInstant, BoundedNumber, FactShape, OneOf, SourceFacts
from ..subjects import Scope, token_of
from .shape import COUNT_MAX, FACTS_MAX, NAME, WORD, WORDS_MAX

KIND: Final = "mail"
"""Of the rows of the timetable by which new mail is read."""
UNREAD: Final = "unread"
NEWEST: Final = "newest_"
MATTER: Final = "matter"
DUE: Final = "due"
DUE_FROM: Final = "due_from"
OTHER: Final = "other"
MATTER_MAX: Final = 99


class MailContact(NamedTuple):
    """Somebody whom the person knows."""

    name: str
    address: str
    """In lower case."""


class MailFacts(NamedTuple):
    """Which facts a mailbox has."""

    read: dict[str, FactShape]
    """Told by the reader."""
    counted: dict[str, FactShape]
    """Told without one."""
    newest: dict[str, str]
    """Of these, whose newest mail one is about: fact -> address."""


def row_of(whose: Scope, mailbox: str) -> str:
    """Return the id of the row of the timetable by which a mailbox is read: its facts' source."""
    return token_of("row", KIND, whose.agent, whose.owner, mailbox)


def contacts_of(entries: tuple[str, ...]) -> tuple[MailContact, ...]:
    """Return those of a person's contacts who have an e-mail address.

    >>> contacts_of(("Ben Miller <Ben@b.example>", "eve@b.example", "+43 1 234"))[1]
    MailContact(name='eve', address='eve@b.example')
    """
    found = [parseaddr(one) if "<" in one else ("", one.strip()) for one in entries]
    return tuple(
        MailContact(name.strip() or address.partition("@")[0], address.lower())
        for name, address in found
        if "@" in address
    )


def facts_of(contacts: tuple[MailContact, ...]) -> MailFacts:
    """Return the facts of a mailbox whose person knows these people.

    >>> list(facts_of((MailContact("Zoë Ng", "z@b.example"),)).counted)
    ['unread', 'newest_zoe_ng']
    """
    names = dict.fromkeys(one.name for one in contacts if WORD.fullmatch(one.name))
    who = [one for one in names if one.casefold() != OTHER][: WORDS_MAX - 1]
    read: dict[str, FactShape] = {
        MATTER: BoundedNumber(least=0, most=MATTER_MAX),
        DUE: ADay(),
        DUE_FROM: OneOf(values=(*who, OTHER)),
    }
    if not who:
        del read[DUE_FROM]
    newest: dict[str, str] = {}
    for one in contacts:
        name = fact_name(one.name)
        if name and name not in newest and len(newest) < FACTS_MAX - 4:
            newest[name] = one.address
    counted: dict[str, FactShape] = {UNREAD: BoundedNumber(least=0, most=COUNT_MAX)}
    return MailFacts(read, counted | dict.fromkeys(newest, AnInstant()), newest)


def fact_name(name: str) -> str:
    """Return what the fact is called that tells when somebody last wrote; empty: it can't be."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    found = f"{NEWEST}{re.sub('[^a-z0-9]+', '_', plain).strip('_')}"[:32].rstrip("_")
    return found if NAME.fullmatch(found) and len(found) > len(NEWEST) else ""


def whereabouts(facts: MailFacts) -> Mapping[str, str]:
    """Return where what is told without a reader is found, as rows of the timetable have it."""
    return dict.fromkeys(facts.counted, "mailbox")


def sender_of(contacts: tuple[MailContact, ...], address: str) -> str:
    """Return as whom facts name a sender."""
    known = {one.address: one.name for one in contacts}
    return known.get(address.lower(), OTHER)


def nearest(
    known: SourceFacts | None, given: Mapping[str, str], now: datetime
) -> Mapping[str, str]:
    """Return what a reader told, without a deadline behind one that is known and yet to come."""
    due = next((one.value for one in known.facts if one.name == DUE), "") if known else ""
    if DUE not in given or not due or due < now.date().isoformat() or given[DUE] <= due:
        return given
    return {name: value for name, value in given.items() if name not in (DUE, DUE_FROM)}
