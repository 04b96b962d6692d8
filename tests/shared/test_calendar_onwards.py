"""Series of which an instance and all later ones were changed at once (RANGE=THISANDFUTURE)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.support.calendars import calendar, event
from tests.support.examples import up_to
from vigil.calendars.edits import CancelledInstance, ChangedEvent, Edit, Edited, ToEdit, When
from vigil.calendars.entries import CalendarWindow
from vigil.calendars.ical.event_changes import edited
from vigil.calendars.ical.objects import read_document, recurrence_of
from vigil.calendars.ical.program import limited
from vigil.zones.database import zone_named

BERLIN: Final = zone_named("Europe/Berlin")
IN_BERLIN: Final = ";TZID=Europe/Berlin"
FIRST: Final = datetime(2026, 10, 5, 10, tzinfo=BERLIN)
"""Three weeks later clocks go back."""
WINDOW: Final = CalendarWindow.around(datetime(2026, 10, 20, tzinfo=UTC))
COUNT: Final = 6


class Due(NamedTuple):
    """An instance, by Berlin's clocks."""

    begins: str
    minutes: int
    title: str


def series(since: int, minutes: int, *more: str) -> str:
    """A weekly hour, that from an instance on is later, and shorter."""
    rule = FIRST + timedelta(weeks=since)
    later = f"{IN_BERLIN}:{rule + timedelta(minutes=minutes):%Y%m%dT%H%M%S}"
    named = f"RECURRENCE-ID{IN_BERLIN};RANGE=THISANDFUTURE:{rule:%Y%m%dT%H%M%S}"
    return calendar(
        event("w", f"{IN_BERLIN}:{FIRST:%Y%m%dT%H%M%S}", "DURATION:PT1H",
              f"RRULE:FREQ=WEEKLY;COUNT={COUNT}", title="Standup"),
        event("w", later, named, "DURATION:PT30M", title="Late"),
        *more,
    )  # fmt: skip


def due(text: str | bytes) -> dict[str, Due]:
    """Return the instances of a series, by what names them in it."""
    data = text.encode() if isinstance(text, str) else text
    (found,) = read_document(data, WINDOW, limited).objects
    assert not found.remark
    read = {}
    for one in found.instances:
        begins = datetime.fromtimestamp(one.begins, BERLIN)
        length = (one.ends - one.begins) // 60
        read[one.recurrence] = Due(f"{begins:%d %b %H:%M}", length, found.texts[one.text].title)
    assert len(read) == len(found.instances), "two have the same name"
    return read


def done(edit: Edit) -> Edited:
    return edited(ToEdit(edit=edit, call="call-1", now=datetime(2026, 10, 1, tzinfo=UTC)))


def after(edit: Edit) -> dict[str, Due]:
    made = done(edit)
    assert not made.problem
    return due(made.data)


def name_of(instance: int) -> str:
    return recurrence_of(FIRST + timedelta(weeks=instance))


def test_each_instance_has_its_own_name() -> None:
    """The library that unfolds series gives all later ones the first's."""
    assert due(series(2, 90)) == {
        "20261005T080000Z": Due("05 Oct 10:00", 60, "Standup"),
        "20261012T080000Z": Due("12 Oct 10:00", 60, "Standup"),
        "20261019T080000Z": Due("19 Oct 11:30", 30, "Late"),
        "20261026T090000Z": Due("26 Oct 11:30", 30, "Late"),
        "20261102T090000Z": Due("02 Nov 11:30", 30, "Late"),
        "20261109T090000Z": Due("09 Nov 11:30", 30, "Late"),
    }


SINCE: Final = st.integers(0, COUNT - 1)
MOVED: Final = st.integers(-600, 780)
"""In minutes: it stays on its day."""


@up_to(100)
@given(SINCE, MOVED, SINCE)
def test_what_is_cancelled_takes_no_other_along(since: int, moved: int, which: int) -> None:
    before = due(series(since, moved))
    left = after(CancelledInstance(data=series(since, moved), recurrence=name_of(which)))
    before.pop(name_of(which))
    assert left == before


@up_to(100)
@given(SINCE, MOVED, SINCE)
def test_what_is_changed_changes_no_other(since: int, moved: int, which: int) -> None:
    text, name = series(since, moved), name_of(which)
    before = due(text)
    when = When(begins=f"{FIRST + timedelta(weeks=which):%Y-%m-%d}T08:15", zone="Europe/Berlin")
    left = after(ChangedEvent(data=text, recurrence=name, title="Only this", when=when))
    day = before[name].begins[:6]
    assert left == before | {name: Due(f"{day} 08:15", before[name].minutes, "Only this")}


def test_one_with_a_description_of_its_own_keeps_it_when_the_change_is_put_off() -> None:
    own = event("w", f"{IN_BERLIN}:20261027T090000", f"RECURRENCE-ID{IN_BERLIN}:20261026T100000",
                "DURATION:PT15M", title="On Tuesday")  # fmt: skip
    text = series(2, 90, own)
    before = due(text)
    assert before[name_of(3)] == Due("27 Oct 09:00", 15, "On Tuesday")
    left = after(CancelledInstance(data=text, recurrence=name_of(2)))
    before.pop(name_of(2))
    assert left == before


def test_a_title_of_the_whole_series_is_that_of_the_later_ones_too() -> None:
    found = after(ChangedEvent(data=series(2, 90), title="Weekly"))
    assert {one.title for one in found.values()} == {"Weekly"}


def test_other_times_of_the_whole_series_are_refused() -> None:
    """Which of its two times is meant can't be told."""
    when = When(begins="2026-10-05T08:00", zone="Europe/Berlin")
    made = done(ChangedEvent(data=series(2, 90), when=when))
    assert made.problem.startswith("begins: of a series that has other times from a day on")
    assert not made.data
