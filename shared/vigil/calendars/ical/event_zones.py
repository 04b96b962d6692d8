"""The zones that events name: which they are, and what is to be said of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, NamedTuple

import icalendar

from ...zones.database import zone_named

NO_ZONE: Final = (
    "its zone {zone!r} isn't known, and it brings no rules along: its times are taken as those of "
    "its owner's clocks"
)
OTHER_RULES: Final = (
    "the rules that it has for {zone} differ from those of the zone database, which count"
)


class EventZone(NamedTuple):
    """What a zone's name in an event comes to."""

    name: str
    is_unknown: bool


def remark_of(whole: icalendar.Calendar, parts: Sequence[Any]) -> str:
    """Say of its zones what is otherwise than it says."""
    zones = dict.fromkeys(zone_of(one) for one in parts)
    remarks = [NO_ZONE.format(zone=zone.name[:80]) for zone in zones if zone.is_unknown]
    used = {zone.name for zone in zones}
    for component in whole.walk("VTIMEZONE"):
        name = str(component.get("TZID", "")).strip("/")
        if name in used and _differs(component, name):
            remarks.append(OTHER_RULES.format(zone=name[:80]))
    return "; ".join(dict.fromkeys(remarks))


def _differs(component: Any, name: str) -> bool:
    """Whether the rules of a document for a zone of the database give other times this year."""
    known = known_zone(name)
    if known is None:
        return False
    year = datetime.fromtimestamp(_newest(component), UTC).year
    try:
        theirs = component.to_tz(lookup_tzid=False)
        moments = [datetime(max(year, 2020), month, 15, 12, tzinfo=UTC) for month in (1, 7)]
        return any(
            one.replace(tzinfo=theirs).utcoffset() != one.replace(tzinfo=known).utcoffset()
            for one in moments
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return False


def _newest(component: Any) -> float:
    """Return when the newest of its rules begins."""
    starts = [one["DTSTART"].dt for one in component.subcomponents if "DTSTART" in one]
    return max((one.replace(tzinfo=UTC).timestamp() for one in starts), default=0.0)


def known_zone(name: str) -> tzinfo | None:
    try:
        return zone_named(name.strip("/")) if name else None
    except KeyError:
        return None


def zone_of(event: Any) -> EventZone:
    start = event["DTSTART"]
    name = str(start.params.get("TZID", ""))
    is_time = isinstance(start.dt, datetime)
    return EventZone(name.strip("/"), bool(name) and is_time and start.dt.tzinfo is None)
