"""A person's clock: their zone, their quiet hours, the hour of their digest. Pure."""

from __future__ import annotations

from datetime import time
from zoneinfo import ZoneInfo

from ..errors import ConfigError
from .sections import Person


def zone_of(person: Person) -> ZoneInfo:
    """Return the person's time zone. Raises: ConfigError."""
    try:
        return ZoneInfo(person.timezone)
    except (KeyError, ValueError, OSError) as error:
        raise ConfigError(f"timezone {person.timezone!r} is not an IANA time zone") from error


def quiet_hours_of(person: Person) -> tuple[time, time] | None:
    """Return (start, end) in the person's time zone, or None. Raises: ConfigError.

    >>> quiet_hours_of(Person(quiet_hours="22:00-07:30"))
    (datetime.time(22, 0), datetime.time(7, 30))
    """
    if not person.quiet_hours:
        return None
    start, separator, end = person.quiet_hours.partition("-")
    try:
        if not separator:
            raise ValueError("no '-'")
        return time.fromisoformat(start.strip()), time.fromisoformat(end.strip())
    except ValueError as error:
        raise ConfigError(
            f"quiet_hours {person.quiet_hours!r}: expected HH:MM-HH:MM ({error})"
        ) from error


def digest_time_of(person: Person) -> time:
    """Return when the person is told together what could wait. Raises: ConfigError.

    >>> digest_time_of(Person(digest_at="07:30"))
    datetime.time(7, 30)
    """
    try:
        return time.fromisoformat(person.digest_at.strip())
    except ValueError as error:
        raise ConfigError(f"digest_at {person.digest_at!r}: expected HH:MM ({error})") from error
