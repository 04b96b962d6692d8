"""Active hours: when a row may run. Pure."""

from __future__ import annotations

from datetime import datetime, time

from ..errors import InvalidInput
from .schedule import zone_of


def hours_of(text: str) -> tuple[time, time] | None:
    """Read ``HH:MM-HH:MM``; None: always.

    Raises:
        InvalidInput: it is something else.

    >>> hours_of("09:00-17:30")
    (datetime.time(9, 0), datetime.time(17, 30))
    >>> hours_of("9 to 5")
    Traceback (most recent call last):
    vigil.errors.InvalidInput: active_hours: '9 to 5' must be HH:MM-HH:MM
    """
    if not text:
        return None
    start, _, end = text.partition("-")
    try:
        found = time.fromisoformat(start.strip()), time.fromisoformat(end.strip())
    except ValueError as error:
        raise InvalidInput("active_hours", f"{text[:100]!r} must be HH:MM-HH:MM") from error
    if any(one.tzinfo is not None for one in found):
        reason = f"{text[:100]!r} must name no zone: the row's own is meant"
        raise InvalidInput("active_hours", reason)
    return found


def is_active(text: str, zone: str, at: datetime) -> bool:
    """Whether an instant is in the hours: the start belongs to them, the end doesn't, they may go
    over midnight, and equal ones mean always.

    >>> from datetime import UTC
    >>> night = datetime(2026, 11, 23, 2, 0, tzinfo=UTC)
    >>> is_active("22:00-06:00", "UTC", night), is_active("09:00-17:00", "UTC", night)
    (True, False)
    """
    hours = hours_of(text)
    if hours is None or hours[0] == hours[1]:
        return True
    start, end = hours
    local = at.astimezone(zone_of(zone)).time()
    return start <= local < end if start < end else local >= start or local < end
