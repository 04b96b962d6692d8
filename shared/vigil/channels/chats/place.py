"""How far a network was read, and what was told to whom there. Pure.

Messages come in the order of the network's own log, from a mark that it gave (`next`). What was
heard is known by its id for a while, in case the network gives it again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from ...subjects import token_of

HEARD_MAX: Final = 500
TOLD_MAX: Final = 200
"""Strangers who are remembered to have been told; while there are more, nobody new is told."""
TOLD_EVERY: Final = timedelta(hours=1)
SHORT: Final = 16
"""Hex digits that are kept of an id."""


class ChatPlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far one account was read."""

    next: str = ""
    """The network's mark; empty: it was never read."""
    heard: tuple[str, ...] = ()
    """Of the newest messages that were dealt with, hashed."""
    told: tuple[tuple[str, int], ...] = ()
    """Strangers who were refused within the hour, hashed, and when, in epoch seconds."""
    outside: int = 0
    """Messages and invitations of others, who got nothing of them."""
    refused: int = 0
    """Messages of people that could not be taken in."""
    heard_at: int = 0
    """When the newest came that was taken in, in epoch seconds."""


def is_heard(place: ChatPlace, id_: str) -> bool:
    """Whether a message was dealt with."""
    return _short(id_) in place.heard


def heard(place: ChatPlace, id_: str) -> ChatPlace:
    """Return a place after a message was dealt with."""
    return replace(place, heard=(*place.heard, _short(id_))[-HEARD_MAX:])


def refusing(
    place: ChatPlace, stranger: str, now: datetime, *, room: str = ""
) -> tuple[ChatPlace, bool]:
    """Return a place after a stranger wrote, and whether they are told that nobody hears them: once
    an hour, so that nobody has an agent write as often as they like.

    Args:
        room: where several are: all of them read it, so it's told once there, whoever wrote.
    """
    place = replace(place, outside=place.outside + 1)
    at = int(now.timestamp())
    since = int((now - TOLD_EVERY).timestamp())
    told = tuple(one for one in place.told if one[1] > since)
    who = {_short(one) for one in (stranger, room and f"room {room}") if one}
    is_told = not who & {one for one, _ in told} and len(told) < TOLD_MAX
    if is_told:
        told = (*told, *((one, at) for one in sorted(who)))
    return replace(place, told=told), is_told


def _short(id_: str) -> str:
    return token_of(id_)[:SHORT]
