"""Invitations in mails as calls: which call does what one asks for, and of which there is none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from services.executor.calendars.offers import NO_CALENDAR, SERIES_APART, offer_of
from tests.support.calendars import calendar, event
from vigil.calendars.agenda import CalendarAgenda
from vigil.calendars.entries import CalendarWindow
from vigil.calendars.ical.invitation_part import read_invitation
from vigil.calendars.ical.objects import read_document
from vigil.calendars.ical.program import limited
from vigil.contracts.mail import MailedOffer
from vigil.zones.database import zone_named

NOW: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
BERLIN: Final = zone_named("Europe/Berlin")
WINDOW: Final = CalendarWindow.around(NOW)
OF_BO: Final = "ORGANIZER:mailto:bo@example.org"
AT_9: Final = ":20261201T080000Z"
AT_10: Final = ":20261201T090000Z"
LOCAL_9: Final = ";TZID=Europe/Berlin:20261201T090000"
WEEKLY: Final = "RRULE:FREQ=WEEKLY;COUNT=4"


def offered(
    method: str, *events: str, known: str = "", writable: tuple[str, ...] = ("work",)
) -> MailedOffer | None:
    data = calendar(f"METHOD:{method}\r\n", *events).encode()
    found = read_document(calendar(known).encode(), WINDOW, limited).objects if known else ()
    agendas = {"work": CalendarAgenda(found, "work")}
    return offer_of(read_invitation(data, WINDOW, limited), agendas, writable, BERLIN, NOW)


def given(offer: MailedOffer | None) -> tuple[str, dict[str, Any]]:
    assert offer is not None
    return offer.tool, offer.input


def review(start: str, *lines: str, title: str = "Review") -> str:
    return event("e", start, OF_BO, "DURATION:PT1H", *lines, title=title)


def test_a_new_one_is_made_on_the_persons_clocks_with_nobody_invited() -> None:
    people = ("ATTENDEE:mailto:ann@example.org", "LOCATION:Room 1", "DESCRIPTION:https://m.example")
    assert given(offered("REQUEST", review(AT_9, *people))) == (
        "calendar_create",
        {
            "calendar": "work", "title": "Review", "place": "Room 1", "uid": "e",
            "begins": "2026-12-01T09:00+01:00", "ends": "2026-12-01T10:00+01:00",
            "notes": "https://m.example",
        },
    )  # fmt: skip


def test_a_series_is_made_if_its_rule_and_these_clocks_tell_all_of_it() -> None:
    tool, call = given(offered("REQUEST", review(LOCAL_9, WEEKLY)))
    assert (tool, call["repeats"], call["begins"]) == (
        "calendar_create", "FREQ=WEEKLY;COUNT=4", "2026-12-01T09:00+01:00",
    )  # fmt: skip
    moved = event("e", LOCAL_9, OF_BO, "RECURRENCE-ID;TZID=Europe/Berlin:20261208T090000")
    for lines, more in (
        ((LOCAL_9, WEEKLY, "EXDATE;TZID=Europe/Berlin:20261208T090000"), ()),
        ((LOCAL_9, WEEKLY, "RDATE;TZID=Europe/Berlin:20261209T090000"), ()),
        ((LOCAL_9, WEEKLY), (moved,)),
        ((";TZID=America/New_York:20261201T090000", WEEKLY), ()),
        ((";TZID=Europe/Berlin:20261124T090000", WEEKLY), ()),  # its first is over
    ):
        offer = offered("REQUEST", review(*lines), *more)
        assert given(offer) == ("", {})
        assert offer is not None
        assert offer.what.endswith(SERIES_APART)
        assert offer.title == "Review", "it's told all the same"


def test_a_change_names_what_is_there_and_what_becomes_otherwise() -> None:
    tool, call = given(offered("REQUEST", review(AT_10, "SEQUENCE:1"), known=review(AT_9)))
    assert (tool, call.pop("event").partition("/")[0]) == ("calendar_change", "work")
    assert call == {
        "begins": "2026-12-01T10:00+01:00", "ends": "2026-12-01T11:00+01:00",
    }  # fmt: skip
    renamed = review(AT_9, "SEQUENCE:1", title="Audit")
    _, call = given(offered("REQUEST", renamed, known=review(AT_9)))
    assert call.keys() == {"event", "title"}


def test_a_cancellation_takes_out_what_it_names() -> None:
    gone = review(AT_9, "SEQUENCE:1")
    offer = offered("CANCEL", gone, known=review(AT_9))
    assert given(offer)[0] == "calendar_cancel"
    assert offer is not None
    assert "as far as the mail proves" in offer.what
    series = review(AT_9, WEEKLY)
    assert given(offered("CANCEL", gone, known=series))[1]["whole_series"] is True
    one = review(AT_9, "RECURRENCE-ID:20261208T080000Z", "SEQUENCE:1")
    _, call = given(offered("CANCEL", one, known=series))
    assert call["event"].endswith("/20261208T080000Z")
    assert "whole_series" not in call


@pytest.mark.parametrize(
    ("method", "part", "known"),
    [
        ("REQUEST", review(AT_9), review(AT_9)),
        ("REQUEST", review(AT_10, "SEQUENCE:1"), review(AT_9, "SEQUENCE:2")),
        ("REQUEST", review(":20261101T080000Z"), ""),
        ("CANCEL", review(AT_9), ""),
        ("REPLY", review(AT_9), ""),
        ("REQUEST", event("e", AT_10, "DURATION:PT1H"), review(AT_9)),
        ("REQUEST", review(AT_10, "SEQUENCE:1"), review(AT_9, "ATTENDEE:mailto:cy@example.org")),
    ],
    ids=["same", "older", "over", "unknown", "reply", "nobodys", "with people"],
)
def test_nobody_is_asked_what_they_need_not_decide(method: str, part: str, known: str) -> None:
    """What has people invited its server changes by itself, and tells them."""
    assert offered(method, part, known=known) is None


def test_what_no_call_can_do_is_told() -> None:
    offer = offered("REQUEST", review(AT_9), writable=())
    assert given(offer) == ("", {})
    assert offer is not None
    assert offer.what.endswith(NO_CALENDAR)
    assert given(offered("REQUEST", event("e" * 300, AT_9, OF_BO)))[0] == ""
    days = ",".join(map(str, range(1, 101)))
    long = review(LOCAL_9, f"RRULE:FREQ=YEARLY;BYYEARDAY={days};COUNT=9")
    assert given(offered("REQUEST", long))[0] == "", "a call's rule isn't as long"
