"""Moments as a person types them: ``2026-11-20``, ``2026-11-20T09:30Z``, ``7d`` for a week ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from vigil.errors import InvalidInput

_AGO: Final = re.compile(r"(\d{1,6})\s*([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(option: str, text: str, now: datetime) -> datetime:
    """Return the instant (aware UTC) that `text` names; without a zone it's UTC.

    Raises:
        InvalidInput: naming the option.

    >>> now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    >>> str(moment("since", "2d", now)), str(moment("since", "2026-11-01", now))
    ('2026-11-18 12:00:00+00:00', '2026-11-01 00:00:00+00:00')
    """
    try:
        if match := _AGO.fullmatch(text.strip()):
            return now - timedelta(**{_UNITS[match[2]]: int(match[1])})
        at = datetime.fromisoformat(text.strip())
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            option,
            f"{text!r} is no moment: try 2026-11-20, 2026-11-20T09:30Z, or 7d for a week ago",
        ) from error


def until(option: str, text: str | None, now: datetime) -> datetime | None:
    """Return the instant to come that `text` names: as `moment`, but `7d` is in a week.

    Raises:
        InvalidInput: naming the option.

    >>> str(until("--expires", "2d", datetime(2026, 11, 20, tzinfo=UTC)))
    '2026-11-22 00:00:00+00:00'
    """
    if text is None:
        return None
    found = moment(option, text, now)
    return now + (now - found) if _AGO.fullmatch(text.strip()) else found


def end(option: str, text: str, now: datetime) -> str:
    """Return the instant to come that `text` names, if it's from now: `2d`; else the text itself,
    which the server reads in the person's time zone.

    Raises:
        InvalidInput: naming the option.

    >>> end("--pause", "2d", datetime(2026, 11, 20, tzinfo=UTC))
    '2026-11-22T00:00:00+00:00'
    """
    found = (
        until(option, text, now.replace(microsecond=0)) if _AGO.fullmatch(text.strip()) else None
    )
    return text if found is None else found.isoformat()
