"""A person's clock: their zone, their quiet hours, the hour of their digest, their pause. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time
from typing import Final
from zoneinfo import ZoneInfo

from ..errors import ConfigError, InvalidInput
from ..words.contacts import book_of_contacts
from ..zones.database import refusal_of, zone_named
from ..zones.wall import instant_of
from .sections import Person

PAUSED: Final = "on"
UNENDING: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""When a pause ends that the person takes back by themselves."""


def zone_of(person: Person) -> ZoneInfo:
    """Return the person's time zone. Raises: ConfigError."""
    try:
        return zone_named(person.timezone)
    except KeyError as error:
        raise ConfigError(f"timezone {refusal_of(person.timezone)}") from error


def check_zone(name: str) -> None:
    """Raises: ConfigError: that is no name of a zone that may be set."""
    if reason := refusal_of(name):
        raise ConfigError(f"timezone {reason}")


def wall_time(text: str) -> time:
    """Read a time that a clock on somebody's wall shows. Raises: ValueError, it's none.

    >>> wall_time("7 pm")
    Traceback (most recent call last):
    ValueError: '7 pm' is no HH:MM
    """
    try:
        found = time.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text.strip()[:40]!r} is no HH:MM") from None
    if found.tzinfo is not None:
        raise ValueError("it is local time: no zone")
    return found


def span_of(text: str) -> tuple[time, time]:
    """Read ``HH:MM-HH:MM``. Raises: ValueError, it's something else."""
    start, separator, end = text.partition("-")
    if not separator:
        raise ValueError("no '-'")
    return wall_time(start), wall_time(end)


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


def quiet_hours_of(person: Person) -> tuple[time, time] | None:
    """Return (start, end) in the person's time zone, or None. Raises: ConfigError.

    >>> quiet_hours_of(Person(quiet_hours="22:00-07:30"))
    (datetime.time(22, 0), datetime.time(7, 30))
    """
    if not person.quiet_hours:
        return None
    try:
        return span_of(person.quiet_hours)
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
        return wall_time(person.digest_at)
    except ValueError as error:
        raise ConfigError(f"digest_at {person.digest_at!r}: expected HH:MM ({error})") from error


def pause_of(person: Person) -> datetime | None:
    """Return until when (aware UTC) the person paused their agents; None: they didn't.

    Raises: ConfigError.

    >>> pause_of(Person(pause="2026-12-01T08:00", timezone="Europe/Vienna")).isoformat()
    '2026-12-01T07:00:00+00:00'
    """
    if person.pause in ("", PAUSED):
        return UNENDING if person.pause else None
    try:
        at = datetime.fromisoformat(person.pause.strip())
        return at.astimezone(UTC) if at.tzinfo else instant_of(at, zone_of(person))
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"pause {person.pause!r}: expected an instant as 2026-12-01T08:00, or 'on'"
        ) from error


PARSED: Final[dict[str, Callable[[Person], object]]] = {
    "timezone": zone_of,
    "quiet_hours": quiet_hours_of,
    "digest_at": digest_time_of,
    "pause": pause_of,
    "contacts": lambda person: book_of_contacts(person.contacts),
}
"""What of a person's section may be written wrongly, and what finds that out."""
