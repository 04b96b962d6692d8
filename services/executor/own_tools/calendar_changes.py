"""calendar_create, calendar_change, calendar_cancel: acts upon the person's calendars.

They are external: what others see there changes. Nobody is invited, and what has people invited is
left to the person: servers write to them (RFC 6638), and nobody named whom. Each call makes at most
one event, however often it's tried; and what was changed by somebody else since it was listed is
left as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Annotated, Final, NamedTuple

import msgspec

from vigil.calendars.dav import ChangedElsewhere
from vigil.calendars.edits import CancelledInstance, ChangedEvent, NewEvent, When
from vigil.calendars.entries import (
    NOTES_LENGTH_MAX,
    PLACE_LENGTH_MAX,
    TITLE_LENGTH_MAX,
)
from vigil.calendars.places import CalendarProblem
from vigil.contracts.arguments import Arguments
from vigil.contracts.tools import Aim
from vigil.errors import InvalidInput
from vigil.settings.config import Config
from vigil.words.amounts import about

from ..calendars import text
from ..calendars.book import zone_of
from ..calendars.offers import RULE_LENGTH_MAX, UID_LENGTH_MAX
from ..calendars.writer import CalendarWrite, CalendarWriter, UnclearChange, uid_of
from ..tools.declaration import ToolContext, tool
from ..tools.source import Call, ToolOutput
from .calendar import PROFILES, book_of, zone_for

MARGIN_S: Final = 30.0
"""For what is done beside asking the server."""
AIMS: Final[dict[str, Aim]] = {
    "calendar": "which",
    "event": "which",
    "whole_series": "which",
    "title": "content",
    "place": "content",
    "notes": "content",
    "begins": "detail",
    "ends": "detail",
    "repeats": "detail",
    "uid": "which",
}
PEOPLE: Final = (
    "has people invited: its server may write to them, so the person changes it by themselves"
)
OVER: Final = ". That was over {ago} ago: if a time to come is meant, change it."
AGAIN: Final = "Not done: {reason}. Call calendar_list for how it is now, and decide anew."

Title = Annotated[str, msgspec.Meta(min_length=1, max_length=TITLE_LENGTH_MAX)]
Place = Annotated[str, msgspec.Meta(max_length=PLACE_LENGTH_MAX)]
Notes = Annotated[str, msgspec.Meta(max_length=NOTES_LENGTH_MAX)]
_AT: Final = "2026-12-01T15:00 on the person's clocks; 2026-12-01 for whole days"
Moment = Annotated[str, msgspec.Meta(max_length=40, description=_AT)]
Event = Annotated[
    str,
    msgspec.Meta(max_length=100, description="Its id, as calendar_list has it in [brackets]"),
]


class CalendarCreate(Arguments, frozen=True, kw_only=True):
    """Put an event into one of the person's calendars. Nobody is invited by that."""

    calendar: Annotated[str, msgspec.Meta(max_length=32)] | None = None
    """Its name; absent: the only one that may be written."""
    title: Title
    begins: Moment
    ends: Moment | None = None
    """Of whole days the last one; absent: an hour, or the one day."""
    place: Place = ""
    notes: Notes = ""
    repeats: Annotated[str, msgspec.Meta(max_length=RULE_LENGTH_MAX)] = ""
    """An RRULE, as FREQ=WEEKLY;BYDAY=MO;COUNT=10; empty: it's due once."""
    uid: Annotated[str, msgspec.Meta(max_length=UID_LENGTH_MAX)] = ""
    """Of the invitation that it's made from, so that later mails are known to be about it."""


class CalendarChange(Arguments, frozen=True, kw_only=True):
    """Change an event of the person's calendars: what isn't given stays as it is."""

    event: Event
    whole_series: bool = False
    """Of a series: all of it, instead of the instance that the id names."""
    title: Title | None = None
    begins: Moment | None = None
    ends: Moment | None = None
    """Absent: it lasts as long as before."""
    place: Place | None = None
    notes: Notes | None = None


class CalendarCancel(Arguments, frozen=True, kw_only=True):
    """Take an event out of the person's calendar: one instance of a series, or all of it."""

    event: Event
    whole_series: bool = False
    """Of a series: all of it, instead of the instance that the id names."""


def _is_writable(config: Config) -> bool:
    return any(one.is_writable for one in config.calendars.values())


def _timeout_s(config: Config) -> float:
    return max((one.timeout_s for one in config.calendars.values()), default=0.0) + MARGIN_S


_changing: Final = partial(
    tool,
    risk="external",
    timeout_s=_timeout_s,
    profiles=PROFILES,
    is_idempotent=True,
    is_offered=_is_writable,
)
"""Declares a tool that changes a calendar: what all of them have."""


@_changing(aims={name: aim for name, aim in AIMS.items() if name not in ("event", "whole_series")})
async def calendar_create(given: CalendarCreate, call: Call, context: ToolContext) -> ToolOutput:
    """Make an event. Raises: InvalidInput, Unavailable."""
    name = given.calendar or _only(context, call)
    book, _ = book_of(context, call, name)
    section, owners = book.named(call.key.scope, name), await zone_for(context, call)
    writer = CalendarWriter(book, name, section, call.id, ports_never=context.bus.broker_ports)
    if given.uid and (there := await book.with_uid(call.key.scope, given.uid, but_of=call.id)):
        return _failed(f"Not made: the event with that UID is in {there} already.")
    edit = NewEvent(
        uid=given.uid or uid_of(call.id),
        title=given.title,
        when=When(begins=given.begins, ends=given.ends or "", zone=owners.key),
        place=given.place,
        notes=given.notes,
        rule=given.repeats,
    )
    done = await _tried("made", writer.make(edit, context.clock.now()))
    if isinstance(done, ToolOutput):
        return done
    return await _described("Made", name, done, call, context)


def _only(context: ToolContext, call: Call) -> str:
    """Raises: InvalidInput."""
    book, names = book_of(context, call, None)
    there = book.of(call.key.scope)
    writable = [name for name in names if there[name].is_writable]
    if len(writable) != 1:
        shown = ", ".join(map(repr, writable)) or "none may be written"
        raise InvalidInput("calendar", f"must be named: {shown}")
    return writable[0]


@_changing(
    aims={name: aim for name, aim in AIMS.items() if name not in ("calendar", "repeats", "uid")}
)
async def calendar_change(given: CalendarChange, call: Call, context: ToolContext) -> ToolOutput:
    """Change an event. Raises: InvalidInput, Unavailable."""
    if given.ends is not None and given.begins is None:
        raise InvalidInput("begins", "must be given with ends")
    wanted = (given.title, given.begins, given.place, given.notes)
    if all(one is None for one in wanted):
        raise InvalidInput("title", "or another part must be given: nothing would change")
    found = await _found(given.event, call, context, is_whole=given.whole_series)
    if not found.href:
        return _failed("Not changed: it isn't there any more.")
    # Not the calendar's clocks, which are for what says no zone: what is listed is on the person's.
    zone = (await zone_for(context, call)).key
    edit = ChangedEvent(
        data="",
        recurrence="" if given.whole_series else found.id.recurrence,
        reference=found.id.recurrence,
        title=given.title,
        place=given.place,
        notes=given.notes,
        when=None
        if given.begins is None
        else When(begins=given.begins, ends=given.ends or "", zone=zone),
    )
    changing = found.writer.change(found.href, found.id.stamp, edit, context.clock.now())
    done = await _tried("changed", changing)
    if isinstance(done, ToolOutput):
        return done
    return await _described("Changed", found.id.calendar, done, call, context, edit.recurrence)


@_changing(aims={"event": "which", "whole_series": "which"})
async def calendar_cancel(given: CalendarCancel, call: Call, context: ToolContext) -> ToolOutput:
    """Take an event out. Raises: InvalidInput, Unavailable."""
    found = await _found(given.event, call, context, is_whole=given.whole_series)
    if not found.href:
        return ToolOutput(content="It isn't there any more.")
    is_instance = bool(found.id.recurrence) and not given.whole_series
    now = context.clock.now()
    if is_instance:
        edit = CancelledInstance(data="", recurrence=found.id.recurrence)
        ending = found.writer.change(found.href, found.id.stamp, edit, now)
    else:
        ending = found.writer.remove(found.href, found.id.stamp, now)
    done = await _tried("cancelled", ending)
    if isinstance(done, ToolOutput):
        return done
    what = "That instance is" if is_instance else "It is"
    return ToolOutput(content=f"{what} no more in {found.id.calendar}.")


async def _tried(what: str, doing: Awaitable[CalendarWrite]) -> CalendarWrite | ToolOutput:
    """Return what came of a change, or what is said of one that came to nothing.

    Raises: InvalidInput, Unavailable.
    """
    try:
        return await doing
    except ChangedElsewhere as error:
        return _failed(AGAIN.format(reason=error))
    except UnclearChange as error:
        return _failed(f"{error}.")
    except CalendarProblem as error:
        return _failed(f"Not {what}: {error}.")


class _FoundEvent(NamedTuple):
    """An event that is to be changed, as it was listed."""

    id: text.EventId
    href: str
    """Empty: there is none any more."""
    writer: CalendarWriter


async def _found(event: str, call: Call, context: ToolContext, *, is_whole: bool) -> _FoundEvent:
    """Find an event by its id. Raises: InvalidInput."""
    id_ = text.read_id(event)
    book, _ = book_of(context, call, id_.calendar)
    section = book.named(call.key.scope, id_.calendar)
    writer = CalendarWriter(
        book, id_.calendar, section, call.id, ports_never=context.bus.broker_ports
    )
    known = (await book.known(id_.calendar)).object_named(id_.handle)
    if known is not None and known.rule and not id_.recurrence and not is_whole:
        raise InvalidInput("event", "is a series: name an instance of it, or give whole_series")
    if known is not None and any(one.people for one in known.texts):
        raise InvalidInput("event", PEOPLE)
    return _FoundEvent(id_, "" if known is None else known.href, writer)


async def _described(
    what: str,
    name: str,
    done: CalendarWrite,
    call: Call,
    context: ToolContext,
    recurrence: str | None = None,
) -> ToolOutput:
    """Say when an event is now, without a word of it."""
    if not done.is_known:
        return ToolOutput(content=f"{what} in {name}; it can't be listed yet: its server is away.")
    event = done.event
    if event is None:
        return _failed(f"{what}, and somebody else has removed it since.")
    zone = await zone_for(context, call)
    book, _ = book_of(context, call, name)
    clocks = zone_of(book.named(call.key.scope, name), zone)
    instances = list((await book.known(name)).agenda.of_object(event, clocks))
    wanted = (one for one in instances if not recurrence or one.instance.recurrence == recurrence)
    entry = next(wanted, None)
    if entry is None:
        return ToolOutput(content=f"{what}; none of its times is within two years.")
    id_ = text.id_of(name, event, entry.instance.recurrence)
    series = ", and again" if event.rule and not recurrence else ""
    when = f"{text.when_of(entry, zone)}{series} (clocks of {zone.key})"
    over_s = (context.clock.now() - entry.ends_at).total_seconds()
    over = "" if over_s < 0 or series else OVER.format(ago=about(over_s))
    return ToolOutput(content=f"{what} in {name}: {when} [{id_}]{over}")


def _failed(reason: str) -> ToolOutput:
    return ToolOutput(content=reason, is_error=True)
