"""Makes and changes iCalendar objects. Pure.

An object that is changed keeps all that isn't named: parts of others, properties that nobody here
knows. The call that changed it stands in it (``X-VIGIL-CALL``), so that a repeat after a crash is
known as one, whoever asks. Nobody is invited: who writes attendees has servers send mail.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Final, assert_never

import icalendar
from icalendar.timezone import tzp

from ...errors import InvalidInput
from ...zones.database import zone_named
from ..edits import CALL, CancelledInstance, ChangedEvent, Edited, NewEvent, ToEdit, When, is_of
from .objects import recurrence_of
from .onwards import comparable, described_by, is_onwards, put_off

PRODUCT: Final = "-//Vigil//calendars//EN"
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
OF_SERIES: Final = ("RRULE", "RDATE", "EXDATE")
FREQUENCIES: Final = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")


def edited(asked: ToEdit) -> Edited:
    """Return an object as it's to be stored. What can't be done is told in words."""
    tzp.use_default()
    try:
        match asked.edit:
            case NewEvent() as edit:
                return Edited(data=_made(edit, asked))
            case ChangedEvent() as edit:
                return _changed(edit, asked)
            case CancelledInstance() as edit:
                return _cancelled(edit, asked)
            case _:
                assert_never(asked.edit)
    except InvalidInput as error:
        return Edited(problem=str(error))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        return Edited(problem=f"it can't be changed as it is written: {str(error)[:200]}")


# ---------------------------------------------------------------- new ones


def _made(edit: NewEvent, asked: ToEdit) -> bytes:
    event = icalendar.Event()
    event.add("uid", edit.uid)
    begins, ends = _times(edit.when, None)
    event.add("dtstart", begins)
    event.add("dtend", ends)
    _say(event, "summary", edit.title)
    _say(event, "location", edit.place)
    _say(event, "description", edit.notes)
    if edit.rule:
        event.add("rrule", _rule(edit.rule, begins))
    _touch(event, asked, is_new=True)
    whole = icalendar.Calendar()
    whole.add("prodid", PRODUCT)
    whole.add("version", "2.0")
    whole.add_component(event)
    whole.add_missing_timezones()
    return bytes(whole.to_ical())


def _rule(text: str, begins: date) -> icalendar.vRecur:
    """Raises: InvalidInput."""
    try:
        rule: icalendar.vRecur = icalendar.vRecur.from_ical(text.removeprefix("RRULE:").strip())
    except ValueError as error:
        raise InvalidInput("repeats", f"is no RRULE: {error}") from error
    frequency = str(next(iter(rule.get("FREQ", [""])), ""))
    if frequency not in FREQUENCIES:
        raise InvalidInput("repeats", f"must have FREQ of {', '.join(FREQUENCIES)}")
    for until in rule.get("UNTIL", []):
        if isinstance(until, datetime) != isinstance(begins, datetime):
            raise InvalidInput("repeats", "UNTIL must be a date for days, and an instant for times")
    return rule


def _times(when: When, lasts: timedelta | None) -> tuple[date, date]:
    """Return begin and end, dates or aware times. Raises: InvalidInput."""
    zone = zone_named(when.zone)
    begins = _moment("begins", when.begins, zone)
    is_time = isinstance(begins, datetime)
    if not when.ends:
        return begins, _after(begins, lasts or (HOUR if is_time else DAY))
    ends = _moment("ends", when.ends, zone)
    if isinstance(ends, datetime) != is_time:
        raise InvalidInput("ends", "must be a date if the begin is one, else with a time")
    if not is_time:
        ends += DAY  # DTEND isn't in it
    if comparable(ends) < comparable(begins) or (not is_time and ends <= begins):
        raise InvalidInput("ends", "must not be before the begin")
    return begins, ends


def _moment(field: str, text: str, zone: tzinfo) -> date:
    try:
        if len(text) <= 10:
            return date.fromisoformat(text)
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(field, "must be 2026-12-01T15:00, or 2026-12-01 for a day") from error
    if found.second or found.microsecond:
        found = found.replace(second=0, microsecond=0)
    return found.replace(tzinfo=zone) if found.tzinfo is None else found.astimezone(zone)


def _after(begins: date, lasts: timedelta) -> date:
    if isinstance(begins, datetime):
        return (begins.astimezone(UTC) + lasts).astimezone(begins.tzinfo)
    return begins + max(lasts, DAY)


# ---------------------------------------------------------------- changes


def _parsed(data: str) -> tuple[icalendar.Calendar, list[Any], Any]:
    """Return an object, its events, and the one that the others are exceptions of.

    Raises: InvalidInput.
    """
    whole = icalendar.Calendar.from_ical(data)
    if not isinstance(whole, icalendar.Calendar):
        raise InvalidInput("event", "is no iCalendar object")
    events = list(whole.walk("VEVENT"))
    masters = [one for one in events if "RECURRENCE-ID" not in one]
    if len(masters) != 1:
        raise InvalidInput("event", "has no one description that all of it goes by")
    return whole, events, masters[0]


def _changed(edit: ChangedEvent, asked: ToEdit) -> Edited:
    if is_of(edit.data, asked.call):
        return Edited(is_done=True)
    whole, events, master = _parsed(edit.data)
    target = master
    if edit.recurrence:
        target = _exception(whole, events, master, edit.recurrence)
    elif edit.when is not None and any(name in master for name in OF_SERIES):
        _move_series(events, master, edit.when, edit.reference)
    if edit.when is not None and (edit.recurrence or not any(n in master for n in OF_SERIES)):
        _move(target, edit.when)
    also = [one for one in events if target is master and is_onwards(one)]
    for name, text in (
        ("summary", edit.title),
        ("location", edit.place),
        ("description", edit.notes),
    ):
        if text is not None:
            for one in (target, *also):
                _say(one, name, text)
    _touch(target, asked)
    if target is not master:
        _mark(master, asked)
    whole.add_missing_timezones()
    return Edited(data=bytes(whole.to_ical()))


def _exception(whole: icalendar.Calendar, events: list[Any], master: Any, recurrence: str) -> Any:
    """Return what describes one instance alone, made if it was like others."""
    own = _description(events, recurrence)
    if own is not None and not is_onwards(own):
        return own
    instance = _instance_start(master, recurrence)
    like, begins = described_by(events, master, instance)
    lasts = _lasts(like)
    made = like.copy(recursive=True)
    if own is not None:
        put_off(whole, events, master, own)
    for name in (*OF_SERIES, "RECURRENCE-ID", "DTEND", "DURATION"):
        made.pop(name, None)
    _put(made, "dtstart", begins)
    _put(made, "dtend", begins + lasts)
    made.add("recurrence-id", instance)
    whole.add_component(made)
    return made


def _description(events: list[Any], recurrence: str) -> Any:
    """Return what of a series is about one instance, and maybe about later ones; None: nothing."""
    for one in events:
        if "RECURRENCE-ID" in one and recurrence_of(one["RECURRENCE-ID"].dt) == recurrence:
            return one
    return None


def _instance_start(master: Any, recurrence: str) -> date:
    """Return when an instance begins by the rule, in its series' form. Raises: InvalidInput."""
    first = master["DTSTART"].dt
    try:
        if not isinstance(first, datetime):
            return datetime.strptime(recurrence, "%Y%m%d").replace(tzinfo=UTC).date()
        found = datetime.strptime(recurrence.rstrip("Z"), "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError as error:
        raise InvalidInput("event", "names no instance of the series") from error
    return found.replace(tzinfo=None) if first.tzinfo is None else found.astimezone(first.tzinfo)


def _lasts(event: Any) -> timedelta:
    start = event["DTSTART"].dt
    if "DTEND" in event:
        return comparable(event["DTEND"].dt) - comparable(start)
    if "DURATION" in event:
        found: timedelta = event["DURATION"].dt
        return found
    return timedelta() if isinstance(start, datetime) else DAY


def _move(event: Any, when: When) -> None:
    begins, ends = _times(when, _lasts(event))
    event.pop("DURATION", None)
    _put(event, "dtstart", begins)
    _put(event, "dtend", ends)


def _move_series(events: list[Any], master: Any, when: When, reference: str) -> None:
    """Have a series begin at another time of the day, with all that names its instances."""
    if any(is_onwards(one) for one in events):
        raise InvalidInput(
            "begins", "of a series that has other times from a day on can't be changed as a whole"
        )
    before = _instance_start(master, reference) if reference else master["DTSTART"].dt
    begins, ends = _times(when, _lasts(master))
    if not isinstance(before, datetime) or not isinstance(begins, datetime):
        raise InvalidInput(
            "begins", "of a series of days, or to one, can't be changed: make a new one"
        )
    there = before.tzinfo
    wanted = begins.replace(tzinfo=None) if there is None else begins.astimezone(there)
    if wanted.date() != before.date():
        raise InvalidInput(
            "begins", "of a series must stay on its day: cancel it and make a new one"
        )
    moved = wanted.replace(tzinfo=None) - before.replace(tzinfo=None)
    lasts = comparable(ends) - comparable(begins)
    start = master["DTSTART"].dt + moved
    master.pop("DURATION", None)
    _put(master, "dtstart", start)
    _put(master, "dtend", start + lasts)
    for one in events:
        if "RECURRENCE-ID" in one:
            _put(one, "recurrence-id", one["RECURRENCE-ID"].dt + moved)
    for name in ("EXDATE", "RDATE"):
        found = master.pop(name, None)
        for dates in found if isinstance(found, list) else [found] * (found is not None):
            master.add(name, [each.dt + moved for each in dates.dts])


def _cancelled(edit: CancelledInstance, asked: ToEdit) -> Edited:
    if is_of(edit.data, asked.call):
        return Edited(is_done=True)
    whole, events, master = _parsed(edit.data)
    if not any(name in master for name in OF_SERIES):
        raise InvalidInput("event", "is no series")
    own = _description(events, edit.recurrence)
    if own is not None and is_onwards(own):
        put_off(whole, events, master, own)
    elif own is not None:
        whole.subcomponents.remove(own)
    master.add("exdate", _instance_start(master, edit.recurrence))
    _touch(master, asked)
    return Edited(data=bytes(whole.to_ical()))


# ---------------------------------------------------------------- properties


def _put(event: Any, name: str, value: Any) -> None:
    event.pop(name, None)
    event.add(name, value)


def _say(event: Any, name: str, text: str) -> None:
    event.pop(name, None)
    if text:
        event.add(name, text)


def _mark(event: Any, asked: ToEdit) -> None:
    _put(event, CALL, asked.call)


def _touch(event: Any, asked: ToEdit, *, is_new: bool = False) -> None:
    now = asked.now.astimezone(UTC).replace(microsecond=0)
    _put(event, "dtstamp", now)
    _put(event, "last-modified", now)
    if is_new:
        event.add("created", now)
    number = int(event.get("SEQUENCE", 0))
    _put(event, "sequence", 0 if is_new else number + 1)
    _mark(event, asked)
