"""Reads a ``text/calendar`` part of a mail (iTIP). Pure."""

from __future__ import annotations

from typing import Any, Final, get_args

from ..entries import CalendarWindow, RawObject
from ..invitations import Invitation, Method
from .objects import Limit, NotCalendar, parsed, read_objects, recurrence_of, text_of

METHODS: Final[tuple[Method, ...]] = get_args(Method)


def read_invitation(data: bytes, window: CalendarWindow, limit: Limit) -> Invitation:
    """Return what a part says; what can't be read is a problem in words."""
    text = text_of(data)
    try:
        calendar, *others = parsed(text)
    except NotCalendar as error:
        return Invitation(problem=str(error))
    events = list(calendar.walk("VEVENT"))
    if others or len({str(one.get("UID", "")) for one in events}) != 1:
        return Invitation(problem="it isn't about one event")
    (found,) = read_objects([RawObject(href="", etag="", data=text)], window, limit)
    if not found.uid or (found.remark and not found.instances):
        return Invitation(problem=found.remark or "its event has no UID")
    method = str(calendar.get("METHOD", "")).upper()
    masters = [one for one in events if "RECURRENCE-ID" not in one]
    about: Any = masters[0] if masters else events[0]
    return Invitation(
        method=next((one for one in METHODS if one == method), ""),
        organizer=_address(about),
        sequence=found.sequence,
        recurrence="" if masters else recurrence_of(about["RECURRENCE-ID"].dt),
        event=found,
    )


def _address(event: Any) -> str:
    """Return whom an event is of; empty: it says nobody, or several."""
    organizer = event.get("ORGANIZER")
    if organizer is None or isinstance(organizer, list):
        return ""
    scheme, _, address = str(organizer).partition(":")
    return address.strip().casefold() if scheme.lower() == "mailto" else ""
