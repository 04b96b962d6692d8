"""How far a mailbox was read, and which mails were dealt with. Pure.

A mail's place is its UID as long as UIDVALIDITY is the same; when that changes, the server counts
anew and the mailbox is gone through again. Then a mail that was dealt with is known by its
identity, of which the newest are kept; what came before those that are forgotten counts as dealt
with, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from ..subjects import token_of

KNOWN_MAX: Final = 500
UNDER_WAY_MAX: Final = timedelta(days=7)
IDENTITY_LENGTH: Final = 16
"""Hex digits that are kept of an identity."""


class ReadPlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far one mailbox was read."""

    validity: int
    uid: int
    """Of the last mail that was dealt with; those up to it never come again."""
    known: tuple[tuple[str, int], ...] = ()
    """Identities of the newest that were dealt with, and when each came, in epoch seconds."""
    since: int = 0
    """Whoever came before is dealt with, where `known` no longer tells."""
    heard: tuple[str, ...] = ()
    """Identities of the newest that were taken in: one that comes again isn't, whoever sent it."""
    is_again: bool = False
    """Whether UIDVALIDITY changed, so that what comes next may be known."""
    again_until: int = 0
    """The UID up to which that holds."""
    outside: int = 0
    """Mails of others, which nobody got anything of."""
    unproven: int = 0
    """Of those the ones whose From is somebody's paired address, which nothing proves."""
    heard_at: int = 0
    """When the newest came that was taken in, in epoch seconds."""
    refused: int = 0
    """Mails of people that could not be taken in."""


def begun(
    validity: int, uid_next: int, newest: Sequence[tuple[str, datetime]], *, are_all: bool
) -> ReadPlace:
    """Return where reading begins: what is in a mailbox before it was ever read isn't taken in.

    Args:
        newest: identities of what is there, and when each came, by the server's clock.
        are_all: whether there is nothing else.
    """
    place = ReadPlace(validity=validity, uid=0)
    for identity, came_at in newest:
        place = passed(place, 0, identity, came_at)
    since = 0 if are_all or not newest else min(int(at.timestamp()) for _, at in newest)
    return replace(place, uid=max(uid_next - 1, 0), since=since)


def found(place: ReadPlace, validity: int, uid_next: int) -> ReadPlace:
    """Return a place as it holds after the mailbox was opened."""
    if validity == place.validity:
        return place
    return replace(place, validity=validity, uid=0, is_again=True, again_until=max(uid_next - 1, 0))


def is_known(place: ReadPlace, uid: int, identity: str, came_at: datetime) -> bool:
    """Whether a mail was dealt with under another UID."""
    if not place.is_again or uid > place.again_until:
        return False
    came = int(came_at.timestamp())
    return came < place.since or _short(identity) in {name for name, _ in place.known}


def passed(place: ReadPlace, uid: int, identity: str, came_at: datetime) -> ReadPlace:
    """Return a place after a mail was dealt with."""
    name, came = _short(identity), int(came_at.timestamp())
    known = [one for one in place.known if one[0] != name]
    known.append((name, came))
    since = place.since
    if len(known) > KNOWN_MAX:
        # The time of those that are forgotten stands for them.
        gone, known = known[:-KNOWN_MAX], known[-KNOWN_MAX:]
        since = max([since, *(at for _, at in gone)])
    is_again = place.is_again and uid < place.again_until
    return replace(place, uid=uid, known=tuple(known), since=since, is_again=is_again)


def taken_in(place: ReadPlace, identity: str, came_at: datetime) -> ReadPlace:
    """Return a place after a mail became a message."""
    heard = (*place.heard, _short(identity))[-KNOWN_MAX:]
    return replace(place, heard=heard, heard_at=int(came_at.timestamp()))


def was_taken_in(place: ReadPlace, identity: str) -> bool:
    """Whether a mail that is the same became a message before."""
    return _short(identity) in place.heard


def is_stale(written_at: datetime | None, came_at: datetime) -> bool:
    """Whether a mail was on its way for too long: who has one of somebody's, signed, could send it
    once more when nobody remembers it. Servers give up after some days.

    >>> is_stale(datetime(2026, 3, 1), datetime(2026, 3, 10, tzinfo=UTC))
    True
    """
    if written_at is None:
        return False
    aware = written_at if written_at.tzinfo is not None else written_at.replace(tzinfo=UTC)
    return came_at - aware > UNDER_WAY_MAX


def _short(identity: str) -> str:
    return token_of(identity)[:IDENTITY_LENGTH]
