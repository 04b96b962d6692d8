"""Something that is due once: at an instant, or when the clocks of a zone show a time."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from ...contracts.board import OnceSchedule
from ...errors import InvalidInput
from ...zones import moments
from ...zones.database import refusal_of, zone_named
from ...zones.wall import instant_of


def check_zone(name: str) -> None:
    """Raises: InvalidInput: that is no name of a zone that a row may have."""
    if reason := refusal_of(name):
        raise InvalidInput("zone", reason)


def zone_of(name: str) -> ZoneInfo:
    """Return the zone of a row that is there.

    Raises:
        InvalidInput: there is none of that name.
    """
    try:
        return zone_named(name)
    except KeyError as error:
        raise InvalidInput("zone", refusal_of(name)) from error


def instant_of_once(schedule: OnceSchedule) -> datetime:
    """Return when that is due (aware UTC), by the rules that its zone has today.

    >>> at = datetime(2026, 12, 1, 17, tzinfo=UTC)
    >>> vancouver = OnceSchedule(at=at, wall="2026-12-01T09:00:00", zone="America/Vancouver")
    >>> instant_of_once(vancouver).hour, instant_of_once(OnceSchedule(at=at)).hour
    (16, 17)
    """
    if not schedule.wall:
        return schedule.at.astimezone(UTC)
    return instant_of(datetime.fromisoformat(schedule.wall), zone_of(schedule.zone))


def once(text: str, zone: str, now: datetime | None = None) -> OnceSchedule:
    """Read when something is due once: an instant, or a time on the clocks of a zone.

    Args:
        now: aware UTC; from then on ``tomorrow 9:00`` and the like are reckoned. None: those aren't
            read.

    Raises:
        InvalidInput: it is neither, or may mean one of two.

    >>> once("2026-12-01T09:00", "America/New_York").at.hour, once("2026-12-01T08:00Z", "UTC").wall
    (14, '')
    """
    local = zone_of(zone)
    if now is not None and (wall := moments.wall_of("at", text, now, local)) is not None:
        return OnceSchedule(at=instant_of(wall, local), wall=wall.isoformat(), zone=zone)
    try:
        given = datetime.fromisoformat(text.strip())
        if given.tzinfo is not None:
            return OnceSchedule(at=given.astimezone(UTC))
        return OnceSchedule(at=instant_of(given, local), wall=given.isoformat(), zone=zone)
    except (ValueError, OverflowError) as error:
        clocks = f"tomorrow 9:00 or 2026-12-01T09:00 on the clocks of {zone}"
        hint = f"try {clocks}, or 2026-12-01T08:00Z"
        raise InvalidInput("at", f"{text[:100]!r} is no instant: {hint}") from error
