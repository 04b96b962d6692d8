"""Active hours: when a row may run. Pure."""

from __future__ import annotations

from datetime import datetime, time

from ..errors import InvalidInput
from ..settings.hours import span_of
from .schedule import zone_of


def hours_of(text: str) -> tuple[time, time] | None:
    """Read ``HH:MM-HH:MM``; None: always.

    Raises:
        InvalidInput: it is something else.

    >>> hours_of("09:00-17:30")
    (datetime.time(9, 0), datetime.time(17, 30))
    >>> hours_of("9 to 5")
    Traceback (most recent call last):
    vigil.errors.InvalidInput: active_hours: '9 to 5' must be HH:MM-HH:MM (no '-')
    """
    if not text:
        return None
    try:
        return span_of(text)
    except ValueError as error:
        reason = f"{text[:100]!r} must be HH:MM-HH:MM ({str(error)[:100]})"
        raise InvalidInput("active_hours", reason) from error


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
