"""Reads iCalendar: which events there are, and when each is due in a stretch of time. Pure.

What recurs is worked out by `recurring-ical-events`, on what `icalendar` reads; here is what they
leave to others:

* Zones. `icalendar` keeps the zones that a document brings along by their name, for the whole
  process: so what it keeps is dropped before each object. A name of the database means that zone,
  whatever the document says its rules are (they may be old); where these differ this year, it's
  remarked. A name that nobody knows is never taken for no zone without a word.
* Exceptions by rule, which the library passes over (`rule_exceptions`).
* Words. What is said of an event that can't be read holds none of its own, but the name of a
  zone: it stands where people look at how a calendar is.
* Bounds. An instance is made once for each instant; of one object there are `INSTANCES_MAX`, and
  `limit` ends what takes too long: such an object is left out, with the reason, and no other.
* ``X-WR-TIMEZONE`` is the zone of what has none, and changes no times that have one.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Final

import icalendar
import msgspec
import recurring_ical_events
from icalendar.timezone import tzp

from ...texts.glyphs import without_hidden
from ...words.amounts import count_of, number_of
from ..entries import (
    DAY_S,
    NOTES_LENGTH_MAX,
    PLACE_LENGTH_MAX,
    TITLE_LENGTH_MAX,
    CalendarObject,
    CalendarWindow,
    EventText,
    Instance,
    InstanceKind,
    RawObject,
    ReadApart,
)
from .event_zones import EventZone, known_zone, remark_of, zone_of
from .onwards import instance_of, is_onwards
from .rule_exceptions import RuleExceptions

INSTANCES_MAX: Final = 1_500
"""Of one object in the window: one each day of three years, with room."""
OBJECTS_MAX: Final = 50_000
SERIES_PARTS_MAX: Final = 5_000
"""Changed instances of one series."""
CUT: Final = "it has more than {count} instances there: those of these days are known"
FAILURES: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What the libraries end with, given a rule that nobody should write."""
OF_SERIES: Final = ("RRULE", "RDATE", "RECURRENCE-ID")
SLOW: Final = "it took too long to work out: left out"
Limit = Callable[[], AbstractContextManager[None]]
"""Raises `TooSlow` in what takes too long."""


class TooSlow(Exception):
    """An object took too long to read."""


class NotCalendar(Exception):
    """A document is none that can be read; the text says why."""


# ---------------------------------------------------------------- documents


def read_document(data: bytes, window: CalendarWindow, limit: Limit) -> ReadApart:
    """Read a document: its events by their UIDs.

    Raises:
        NotCalendar: it's none.
    """
    text = text_of(data)
    if "BEGIN:VCALENDAR" not in text.upper():
        raise NotCalendar("it is no iCalendar document: BEGIN:VCALENDAR isn't in it")
    objects: dict[str, CalendarObject] = {}
    remarks: list[str] = []
    for calendar in parsed(text):
        zone = str(calendar.get("X-WR-TIMEZONE", ""))
        groups, nameless = _by_uid(calendar)
        if nameless:
            events = count_of(nameless, "event")
            remarks.append(f"{events} without a UID {number_of(nameless, 'is', 'are')} left out")
        zones = list(calendar.walk("VTIMEZONE"))
        for uid, parts in groups.items():
            if len(objects) >= OBJECTS_MAX:
                remarks.append(f"only the first {OBJECTS_MAX} events are read")
                break
            whole = _calendar_of(zones, parts)
            digest = hashlib.sha256(whole.to_ical()).hexdigest()[:32]
            objects[uid] = _object_of("", digest, uid, whole, "", window, zone, limit)
    return ReadApart(objects=tuple(objects.values()), remarks=tuple(remarks))


def read_objects(
    raws: Iterable[RawObject], window: CalendarWindow, limit: Limit
) -> Iterator[CalendarObject]:
    """Read objects of a collection: each is one event, or one series (RFC 4791, 4.1)."""
    for raw in raws:
        try:
            (calendar, *_) = parsed(raw.data)
        except (NotCalendar, ValueError) as error:
            yield CalendarObject(
                href=raw.href, etag=raw.etag, uid="", data=raw.data, remark=f"not read: {error}"
            )
            continue
        groups, _ = _by_uid(calendar)
        if not groups:  # a task, or a note
            yield CalendarObject(href=raw.href, etag=raw.etag, uid="")
            continue
        uid, parts = next(iter(groups.items()))
        whole = _calendar_of(list(calendar.walk("VTIMEZONE")), parts)
        zone = str(calendar.get("X-WR-TIMEZONE", ""))
        yield _object_of(raw.href, raw.etag, uid, whole, raw.data, window, zone, limit)


def text_of(data: bytes) -> str:
    """Return a document as text: what isn't UTF-8 is taken as Windows writes it."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def parsed(text: str) -> list[icalendar.Calendar]:
    """Return the calendars of a text. Raises: NotCalendar."""
    tzp.use_default()  # else zones of the same name, of another calendar, would count
    try:
        found = icalendar.Calendar.from_ical(text, multiple=True)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise NotCalendar("it can't be read as iCalendar") from error
    calendars = [one for one in found if one.name == "VCALENDAR"]
    if not calendars:
        raise NotCalendar("it holds no VCALENDAR")
    return calendars


def _by_uid(calendar: icalendar.Calendar) -> tuple[dict[str, list[Any]], int]:
    groups: dict[str, list[Any]] = {}
    nameless = 0
    for event in calendar.walk("VEVENT"):
        uid = str(event.get("UID", "")).strip()
        if uid:
            groups.setdefault(uid, []).append(event)
        else:
            nameless += 1
    return groups, nameless


def _calendar_of(zones: Sequence[Any], events: Sequence[Any]) -> icalendar.Calendar:
    whole = icalendar.Calendar()
    whole.add("prodid", "-//Vigil//calendars//")
    whole.add("version", "2.0")
    for one in (*zones, *events):
        whole.add_component(one)
    return whole


# ---------------------------------------------------------------- one object


def _object_of(
    href: str,
    etag: str,
    uid: str,
    whole: icalendar.Calendar,
    data: str,
    window: CalendarWindow,
    default_zone: str,
    limit: Limit,
) -> CalendarObject:
    parts = list(whole.walk("VEVENT"))
    rule = next((_rule_of(one) for one in parts if "RRULE" in one or "RDATE" in one), "")
    empty = CalendarObject(
        href=href, etag=etag, uid=uid, data=data, rule=rule, sequence=_sequence_of(parts)
    )
    if len(parts) > SERIES_PARTS_MAX:
        return msgspec.structs.replace(
            empty, remark=f"more than {SERIES_PARTS_MAX} of its instances were changed: left out"
        )
    if broken := next((reason for one in parts if (reason := _broken(one))), ""):
        return msgspec.structs.replace(empty, remark=f"left out: {broken}")
    try:
        with limit(), warnings.catch_warnings(action="ignore"):
            found = _instances(whole, window, known_zone(default_zone))
    except TooSlow:
        return msgspec.structs.replace(empty, remark=SLOW)
    except FAILURES as error:
        reason = f"left out: its times can't be worked out ({type(error).__name__})"
        return msgspec.structs.replace(empty, remark=reason)
    texts, instances, is_cut = found
    remarks = [remark_of(whole, parts)]
    if is_cut:
        remarks.append(CUT.format(count=INSTANCES_MAX))
    return msgspec.structs.replace(
        empty,
        texts=texts,
        instances=instances,
        is_cut=is_cut,
        remark="; ".join(filter(None, remarks)),
    )


def _sequence_of(parts: Sequence[Any]) -> int:
    """Return the greatest number of a revision that its parts have."""
    numbers = [one.get("SEQUENCE", 0) for one in parts]
    return max((int(one) for one in numbers if isinstance(one, int)), default=0)


def _rule_of(event: Any) -> str:
    rule = event.get("RRULE")
    rules = rule if isinstance(rule, list) else [rule]
    texts = [one.to_ical().decode("utf-8", "replace") for one in rules if one is not None]
    return " + ".join(texts)[:300] or "RDATE"


def _broken(event: Any) -> str:
    """Return why an event can't be told in time; empty: it can."""
    start = event.get("DTSTART")
    if start is None:
        return "it has no DTSTART"
    for name, _ in event.errors:
        if name in (
            "DTSTART",
            "DTEND",
            "DURATION",
            "RRULE",
            "RDATE",
            "EXDATE",
            "EXRULE",
            "RECURRENCE-ID",
        ):
            return f"its {name} can't be read"
    if isinstance(start, list):
        return "it has several DTSTART"
    return ""


# ---------------------------------------------------------------- instances


def _instances(
    whole: icalendar.Calendar, window: CalendarWindow, default: tzinfo | None
) -> tuple[tuple[EventText, ...], tuple[Instance, ...], bool]:
    texts: dict[EventText, int] = {}
    found: dict[tuple[Any, ...], Instance] = {}
    is_cut = False
    events = whole.walk("VEVENT")
    sources = {_identity(one): one for one in events}
    taken_out = RuleExceptions(events, window.first, window.behind)
    is_series = any(name in one for one in whole.walk("VEVENT") for name in OF_SERIES)
    for since, until in ((window.near, window.behind), (window.first, window.near)):
        for occurrence in _unfolded(whole, since, until):
            is_changed = "RECURRENCE-ID" in occurrence and _identity(occurrence) in sources
            if not is_changed and occurrence["DTSTART"].dt in taken_out:
                continue
            made = _instance(occurrence, sources, default, texts, is_series=is_series)
            # An instant that a rule gives twice, as each hour where clocks go on, is one.
            found.setdefault((made.kind, made.begins, made.ends, made.text), made)
            if len(found) > INSTANCES_MAX:
                is_cut = True
                break
    kept = list(found.values())[:INSTANCES_MAX]
    ordered = sorted(kept, key=lambda one: (one.begins, one.ends, one.recurrence))
    return tuple(texts), tuple(ordered), is_cut


def _unfolded(whole: icalendar.Calendar, since: date, until: date) -> Iterator[Any]:
    """Yield instances in the window in order, a piece of it at a time: a rule of each second ends
    where there are too many."""
    query = recurring_ical_events.of(whole)
    rules = " ".join(_rule_of(one) for one in whole.walk("VEVENT") if "RRULE" in one)
    is_dense = any(word in rules for word in ("HOURLY", "MINUTELY", "SECONDLY"))
    step = timedelta(hours=1 if "SECONDLY" in rules else 24) if is_dense else timedelta(days=1200)
    at, end = _midnight(since), _midnight(until)
    while at < end:
        yield from query.between(at, min(at + step, end))
        at += step


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _identity(event: Any) -> str:
    recurrence = event.get("RECURRENCE-ID")
    return "" if recurrence is None else recurrence_of(recurrence.dt)


def _instance(
    event: Any,
    sources: dict[str, Any],
    default: tzinfo | None,
    texts: dict[EventText, int],
    *,
    is_series: bool,
) -> Instance:
    begins = event["DTSTART"].dt
    ends = event["DTEND"].dt if "DTEND" in event else begins
    recurrence = _identity(event) if is_series else ""
    # An instance has lost what its times were written with.
    source = sources.get(recurrence) or sources.get("") or event
    if is_series and is_onwards(source):
        # The library names all that such a change is about by the first of them.
        recurrence = recurrence_of(instance_of(begins, source))
    zone = zone_of(source)
    text = texts.setdefault(_text(event, zone), len(texts))
    if not isinstance(begins, datetime):
        first = _seconds(begins)
        behind = _seconds(ends) if not isinstance(ends, datetime) else first
        return Instance("day", first, max(behind, first + DAY_S), recurrence, text)
    if not isinstance(ends, datetime):
        ends = datetime.combine(ends, begins.timetz())
    kind, start = _moment(begins, zone, default)
    _, stop = _moment(ends, zone, default)
    lasts = source["DURATION"].dt if "DURATION" in source else None
    if lasts == ends - begins and kind == "at":  # else it's a period of its own (RDATE)
        # Days go by the clock, what is beyond them by time that passes (RFC 5545, 3.3.6).
        behind_days = begins + timedelta(days=lasts.days)
        stop = _moment(behind_days, zone, default)[1] + lasts.seconds
    return Instance(kind, start, max(stop, start), recurrence, text)


def _moment(at: datetime, zone: EventZone, default: tzinfo | None) -> tuple[InstanceKind, int]:
    if at.tzinfo is None:
        if default is None or zone.is_unknown:
            return "floating", int(at.replace(tzinfo=UTC).timestamp())
        at = at.replace(tzinfo=default)
    # The zone database that holds may be newer than the one that the library reads.
    known = known_zone(getattr(at.tzinfo, "key", "") or "")
    return "at", int((at if known is None else at.replace(tzinfo=known)).timestamp())


def _seconds(day: date) -> int:
    return int(_midnight(day).timestamp())


def recurrence_of(at: date) -> str:
    """Return by what an instance of a series is named: as RECURRENCE-ID has it, in UTC."""
    if not isinstance(at, datetime):
        return f"{at:%Y%m%d}"
    if at.tzinfo is None:
        return f"{at:%Y%m%dT%H%M%S}"
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _text(event: Any, zone: EventZone) -> EventText:
    return EventText(
        title=_line(event, "SUMMARY", TITLE_LENGTH_MAX),
        place=_line(event, "LOCATION", PLACE_LENGTH_MAX),
        notes=_plain(event, "DESCRIPTION")[:NOTES_LENGTH_MAX],
        status=_line(event, "STATUS", 20).upper(),
        is_free=_line(event, "TRANSP", 20).upper() == "TRANSPARENT",
        zone=zone.name[:80],
        is_zone_unknown=zone.is_unknown,
        people=_count(event, "ATTENDEE"),
    )


def _count(event: Any, name: str) -> int:
    value = event.get(name, [])
    return len(value) if isinstance(value, list) else 1


def _plain(event: Any, name: str) -> str:
    value = event.get(name)
    first = value[0] if isinstance(value, list) and value else value
    text = "" if first is None else str(first)
    return without_hidden(text.encode("utf-8", "replace").decode("utf-8"))


def _line(event: Any, name: str, length_max: int) -> str:
    return " ".join(_plain(event, name).split())[:length_max]
