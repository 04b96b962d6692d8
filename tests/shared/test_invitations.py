"""Invitations in mails: what each would change, and whose word counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from services.executor.calendars.book import CalendarBook, proposal_for
from tests.support.calendars import calendar, event
from vigil.calendars import mirror
from vigil.calendars.agenda import CalendarAgenda
from vigil.calendars.entries import CalendarWindow
from vigil.calendars.ical.invitation_part import read_invitation
from vigil.calendars.ical.objects import read_document
from vigil.calendars.ical.program import limited
from vigil.calendars.invitations import Proposal, proposal_of, words_of
from vigil.calendars.section import CalendarSection
from vigil.zones.database import zone_named

NOW: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
BERLIN: Final = zone_named("Europe/Berlin")
WINDOW: Final = CalendarWindow.around(NOW)
BO: Final = "bo@example.org"
OF_BO: Final = "ORGANIZER;CN=Bo:mailto:Bo@example.org"
AT_9: Final = ":20261201T080000Z"
AT_10: Final = ":20261201T090000Z"
SERIES: Final = event("e", AT_9, OF_BO, "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=3", title="Review")


def invitation(method: str, *events: str) -> bytes:
    return calendar(f"METHOD:{method}\r\n", *events).encode()


def proposed(data: bytes, *known: str, sender: str = BO) -> Proposal:
    found = read_document(calendar(*known).encode(), WINDOW, limited).objects if known else ()
    agendas = {"work": CalendarAgenda(found, "work")}
    return proposal_of(read_invitation(data, WINDOW, limited), agendas, BERLIN, NOW, sender=sender)


def meeting(start: str, *lines: str) -> str:
    return event("e", start, OF_BO, "DURATION:PT1H", *lines, title="Review")


def test_a_new_one_is_proposed_with_what_it_meets() -> None:
    found = proposed(invitation("REQUEST", meeting(AT_9, "ATTENDEE:mailto:ann@example.org")),
                     event("other", ":20261201T083000Z", "DURATION:PT1H"))  # fmt: skip
    assert (found.kind, found.title, found.overlaps) == ("new", "Review", 1)
    assert words_of(found, BERLIN) == (
        "an invitation; 2026-12-01 09:00; at the same time as another event"
    )
    assert found.edit is not None
    assert (found.edit.uid, found.edit.when.begins) == ("e", "2026-12-01T09:00+01:00")
    days = proposed(invitation("REQUEST", event("d", ";VALUE=DATE:20261201", OF_BO)))
    assert days.edit is not None
    assert (days.edit.when.begins, days.edit.when.ends) == ("2026-12-01", "2026-12-01")


def test_a_change_and_a_cancellation_name_what_is_there() -> None:
    moved = proposed(invitation("REQUEST", meeting(AT_10, "SEQUENCE:1")), meeting(AT_9))
    assert moved.kind == "changed"
    assert words_of(moved, BERLIN).startswith(
        "a change of an event; 2026-12-01 10:00; now 2026-12-01 09:00; event "
    )
    assert proposed(invitation("REQUEST", meeting(AT_9)), meeting(AT_9)).kind == "same"
    gone = proposed(invitation("CANCEL", meeting(AT_9, "SEQUENCE:1")), meeting(AT_9))
    assert (gone.kind, gone.calendar) == ("cancelled", "work")
    one = event(
        "e", AT_9, OF_BO, "RECURRENCE-ID:20261202T080000Z", "STATUS:CANCELLED", "SEQUENCE:1"
    )
    of_series = proposed(invitation("CANCEL", one), SERIES)
    assert of_series.was_at == datetime(2026, 12, 2, 8, tzinfo=UTC)


def test_nobody_moves_or_cancels_what_is_of_somebody_else() -> None:
    """Whoever knows a UID could write one: the mail must be proven to be from the organizer."""
    for sender in ("", "mallory@evil.test"):
        for method in ("REQUEST", "CANCEL"):
            data = invitation(method, meeting(AT_10, "SEQUENCE:9"))
            assert proposed(data, meeting(AT_9), sender=sender).kind == "unproven"
        new = proposed(invitation("REQUEST", meeting(AT_9)), sender=sender)
        assert (new.kind, bool(new.reason)) == ("new", True)


@pytest.mark.parametrize(
    ("data", "kind", "reason"),
    [
        (invitation("REPLY", meeting(AT_9)), "unusable", "its method is REPLY"),
        (invitation("PUBLISH", meeting(AT_9)), "unusable", "its method is PUBLISH"),
        (calendar(meeting(AT_9)).encode(), "unusable", "its method is none"),
        (b"Obey me", "unusable", "it can't be read as iCalendar"),
        (invitation("REQUEST"), "unusable", "about one event"),
        (invitation("REQUEST", meeting(AT_9), event("f", AT_9)), "unusable", "about one event"),
        (invitation("REQUEST", event("e", ":soon", OF_BO)), "unusable", "DTSTART"),
        (invitation("REQUEST", meeting(":20261101T080000Z")), "stale", "it's over"),
        (invitation("CANCEL", meeting(AT_9)), "same", "changes nothing"),
    ],
)
def test_what_changes_nothing_says_why(data: bytes, kind: str, reason: str) -> None:
    found = proposed(data)
    assert found.kind == kind
    assert reason in found.reason
    assert "Obey" not in words_of(found, BERLIN)


def test_an_older_one_than_is_known_is_stale() -> None:
    data = invitation("REQUEST", meeting(AT_10, "SEQUENCE:1"))
    assert proposed(data, meeting(AT_9, "SEQUENCE:2")).kind == "stale"


@pytest.mark.usefixtures("forked_readers")
async def test_a_mailbox_asks_with_what_is_known_of_the_persons_calendars(tmp_path: Path) -> None:
    """What the view of a mailbox calls: read apart, compared with the calendars of that person."""
    section = CalendarSection(kind="file", file="a.ics", user="ann")
    found = read_document(calendar(meeting(AT_9)).encode(), WINDOW, limited).objects
    known = mirror.Mirror(source=mirror.source_of(section), window=WINDOW, objects=found)
    mirror.store(mirror.path_of(tmp_path, "work", section), known)
    book = CalendarBook({"work": section}, tmp_path)
    data = invitation("REQUEST", meeting(AT_10, "SEQUENCE:1"))
    told = await proposal_for(book, section.scope, data, BERLIN, NOW, sender=BO)
    assert (told.kind, told.calendar, told.was_at) == (
        "changed", "work", NOW.replace(day=1, month=12, hour=8),
    )  # fmt: skip
    stranger = CalendarSection(kind="file", file="a.ics", user="bob").scope
    other = await proposal_for(book, stranger, data, BERLIN, NOW, sender=BO)
    assert (other.kind, other.begins_at) == ("new", NOW + timedelta(hours=21))
