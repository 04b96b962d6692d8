"""Moments and spans as a person types them: ``2026-11-20``, ``2026-11-20T09:30Z``, ``7d``."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from vigil.errors import InvalidInput
from vigil.zones import moments
from vigil.zones.database import zone_named
from vigil.zones.wall import instant_of

_SPAN: Final = re.compile(r"(\d{1,6})\s*([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(option: str, text: str, now: datetime, zone: Callable[[], str]) -> datetime:
    """Return the instant (aware UTC) that has passed and that `text` names: `7d` was a week ago,
    and what says nothing of a zone is on the person's clocks.

    Args:
        zone: asks for the name of the person's zone, where that matters.

    Raises:
        InvalidInput: naming the option.

    >>> now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    >>> str(moment("since", "2d", now, lambda: "Asia/Tokyo"))
    '2026-11-18 12:00:00+00:00'
    >>> str(moment("since", "2026-11-01", now, lambda: "Asia/Tokyo"))
    '2026-10-31 15:00:00+00:00'
    """
    try:
        if match := _SPAN.fullmatch(text.strip()):
            return now - _span(match)
        at = datetime.fromisoformat(text.strip())
        return at.astimezone(UTC) if at.tzinfo else instant_of(at, zone_named(zone()))
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            option,
            f"{text!r} is no moment: try 2026-11-20, 2026-11-20T09:30Z, or 7d for a week",
        ) from error


def _span(match: re.Match[str]) -> timedelta:
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def seconds(option: str, text: str | None) -> int | None:
    """Return a span in seconds. A number alone is none: who types 5 mostly means minutes.

    Raises:
        InvalidInput: naming the option.

    >>> seconds("--every", "90s"), seconds("--every", "5m")
    (90, 300)
    """
    if text is None:
        return None
    typed = text.strip()
    if (match := _SPAN.fullmatch(typed)) is not None:
        return int(_span(match).total_seconds())
    if re.fullmatch("[0-9]{1,12}", typed):
        raise InvalidInput(option, f"{typed} of what? Say {typed}s, {typed}m, {typed}h or {typed}d")
    raise InvalidInput(option, f"{text!r} is no span: try 90s, 5m, 2h or 1d")


def until(option: str, text: str | None, now: datetime, zone: Callable[[], str]) -> datetime | None:
    """Return the instant to come that `text` names: `7d` is in a week, and what says nothing of a
    zone is on the person's clocks, as ``tomorrow 9:00``.

    Args:
        zone: asks for the name of the person's zone, where that matters.

    Raises:
        InvalidInput: naming the option.

    >>> now = datetime(2026, 11, 20, tzinfo=UTC)
    >>> str(until("--expires", "2d", now, lambda: "Asia/Tokyo"))
    '2026-11-22 00:00:00+00:00'
    >>> str(until("--expires", "2026-12-01", now, lambda: "Asia/Tokyo"))
    '2026-11-30 15:00:00+00:00'
    """
    if text is None:
        return None
    if _SPAN.fullmatch(text.strip()):
        return now + (now - moment(option, text, now, zone))
    wall = None
    if moments.read(option, text) is not None:
        wall = moments.wall_of(option, text, now, zone_named(zone()))
    try:
        given = wall or datetime.fromisoformat(text.strip())
        return given.astimezone(UTC) if given.tzinfo else instant_of(given, zone_named(zone()))
    except (ValueError, OverflowError) as error:
        hint = "try tomorrow 9:00, 2026-12-01, 2026-12-01T09:30Z, or 7d for in a week"
        raise InvalidInput(option, f"{text!r} is no moment: {hint}") from error


def end(option: str, text: str, now: datetime) -> str:
    """Return the instant to come that `text` names, if it's from now: `2d`; else the text itself,
    which the server reads, in the zone that is named or the person's.

    Raises:
        InvalidInput: naming the option.

    >>> end("--pause", "2d", datetime(2026, 11, 20, tzinfo=UTC))
    '2026-11-22T00:00:00+00:00'
    """
    if not _SPAN.fullmatch(text.strip()):
        return text
    now = now.replace(microsecond=0)
    return (now + (now - moment(option, text, now, str))).isoformat()
