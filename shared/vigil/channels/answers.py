"""How a try to hand a message over ended, and what an HTTP answer means. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """The receiver has it."""

    reason: str = ""
    sent: tuple[str, ...] = ()
    """The messages of a chat network that came of it (`vigil.channels.chats.post.mark_of`)."""


class NotTaken(msgspec.Struct, frozen=True, kw_only=True):
    """The receiver surely doesn't have it."""

    reason: str
    status: int | None = None
    is_final: bool = False
    """Trying again changes nothing."""
    wait_s: float = 0.0
    """The receiver asked for a pause of so many seconds."""
    is_apart: bool = False
    """It says nothing of the channel: others are reached over it."""


class Unclear(msgspec.Struct, frozen=True, kw_only=True):
    """It was on its way; whether the receiver has it, nobody knows."""

    reason: str
    status: int | None = None
    is_apart: bool = False
    """As above."""
    sent: tuple[str, ...] = ()
    """Those that came, though not all did."""


Answer = Taken | NotTaken | Unclear


# ---------------------------------------------------------------- what an HTTP answer means

AGAIN: Final = frozenset({408, 425, 429})
"""Of the 4xx, those that ask for another try."""
RELAYED: Final = frozenset({502, 504, 520, 522, 524})
"""Somebody in between got no answer: the receiver may have it all the same.

Those beyond 511 are Cloudflare's: https://developers.cloudflare.com/support/troubleshooting/
"""


def answer_of(
    status: int, phrase: str, *, retry_after: str | None, location_host: str | None, now: datetime
) -> Answer:
    """Translate a complete HTTP answer.

    >>> now = datetime(2026, 3, 1, tzinfo=UTC)
    >>> busy = answer_of(503, "Unavailable", retry_after="7", location_host=None, now=now)
    >>> busy.reason, busy.is_final, busy.wait_s
    ('503 Unavailable', False, 7.0)
    >>> answer_of(302, "Found", retry_after=None, location_host="10.0.0.1", now=now).reason
    '302 Found: redirects are not followed (to 10.0.0.1)'
    """
    text = f"{status} {phrase}".strip()
    if 200 <= status < 300:
        return Taken(reason=text)
    if 300 <= status < 400:
        reason = f"{text}: redirects are not followed (to {location_host or 'nowhere'})"
        return NotTaken(reason=reason, status=status, is_final=True)
    if status in RELAYED:
        return Unclear(reason=text, status=status)
    is_final = 400 <= status < 500 and status not in AGAIN
    wait_s = 0.0 if is_final else retry_after_s(retry_after, now)
    return NotTaken(reason=text, status=status, is_final=is_final, wait_s=wait_s)


def retry_after_s(header: str | None, now: datetime) -> float:
    """Return the seconds that a ``Retry-After`` asks for; 0.0 if it can't be read.

    >>> now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    >>> retry_after_s("Sun, 01 Mar 2026 12:00:30 GMT", now), retry_after_s("soon", now)
    (30.0, 0.0)
    """
    if header is None:
        return 0.0
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return 0.0
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max((aware - now).total_seconds(), 0.0)


# ---------------------------------------------------------------- how long to leave a server alone

PAUSE_MAX_S: Final = 3600.0
"""Longest pause that a server is granted to which we listen."""


def pause_s(planned_s: float, asked_s: float) -> float:
    """Return after how long a server is asked again: as planned, or later if it asks for that.

    >>> pause_s(4.0, 7.0), pause_s(4.0, -7.0), pause_s(4.0, 1e12)
    (7.0, 4.0, 3600.0)
    """
    return max(planned_s, min(asked_s, PAUSE_MAX_S))
