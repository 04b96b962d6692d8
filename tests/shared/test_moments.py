"""Moments that a person names: on whose clocks, and what may mean either of two (P-2)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import pytest

from vigil.cli import times
from vigil.errors import InvalidInput
from vigil.settings import own
from vigil.settings.own import StoredSettings
from vigil.settings.sections import Person
from vigil.timetable.instants.once import once
from vigil.zones import moments
from vigil.zones.database import zone_named

FRIDAY: Final = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
"""In Tokyo it's Saturday, 8:30."""


@pytest.mark.parametrize(
    ("text", "zone", "wall"),
    [
        ("tomorrow 9:00", "UTC", "2026-11-21T09:00"),
        ("tomorrow 9:00", "Asia/Tokyo", "2026-11-22T09:00"),
        ("9:00", "Asia/Tokyo", "2026-11-21T09:00"),
        ("8:00", "Asia/Tokyo", "2026-11-22T08:00"),
        ("today 23:45", "UTC", "2026-11-20T23:45"),
        ("Sunday 18:30", "Asia/Tokyo", "2026-11-22T18:30"),
        (" 6:30 PM fri ", "Asia/Tokyo", "2026-11-27T18:30"),
        ("thursday at 12am", "UTC", "2026-11-26T00:00"),
    ],
)
def test_a_moment_is_on_the_persons_clocks(text: str, zone: str, wall: str) -> None:
    found = moments.wall_of("at", text, FRIDAY, zone_named(zone))
    assert found == datetime.fromisoformat(wall)
    until = times.until("--until", text, FRIDAY, lambda: zone)
    assert until == once(text, zone, FRIDAY).at == once(wall, zone).at
    assert once(text, zone, FRIDAY).wall == f"{wall}:00", "it moves with a change of the clocks"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tomorrow", "says no hour: write tomorrow 9:00"),
        ("fri", "says no hour: write friday 9:00"),
        ("tomorrow 9", "write 9:00 or 9pm"),
        ("next monday 9:00", "may be of this week or the one after"),
        ("friday 23:45", "today is friday: write today, or a date"),
        ("today 9:00", "is over"),
        ("tomorrow 24:00", "there is no such hour"),
        ("tomorrow 13pm", "there is no such hour"),
    ],
)
def test_what_may_mean_either_of_two_is_refused(text: str, reason: str) -> None:
    for read in (
        lambda: once(text, "UTC", FRIDAY),
        lambda: times.until("at", text, FRIDAY, lambda: "UTC"),
    ):
        with pytest.raises(InvalidInput, match=reason) as refused:
            read()
        assert refused.value.field == "at"


@pytest.mark.parametrize("text", ["in a week", "9", "at 9:00", "morgen 9:00", "2026-12-01", "7d"])
def test_what_has_another_form_is_left_to_others(text: str) -> None:
    assert moments.read("at", text) is None


def test_what_the_clocks_skip_is_as_soon_as_they_went_on() -> None:
    night = datetime(2026, 3, 28, 12, tzinfo=UTC)
    due = once("tomorrow 2:30", "Europe/Berlin", night)
    assert due.at == datetime(2026, 3, 29, 1, tzinfo=UTC)


def test_a_pause_until_a_moment_is_kept_as_that_moment() -> None:
    """A word that is read anew each day would never end."""
    found = StoredSettings(own=None, revision=0)
    wanted = {"pause": "tomorrow 9:00", "timezone": "Asia/Tokyo"}
    kept = own.changed(found, wanted, FRIDAY, "ann", Person(), ())
    assert kept.pause == "2026-11-22T09:00"
    with pytest.raises(InvalidInput, match="is over"):
        own.changed(found, {"pause": "today 9:00"}, FRIDAY, "ann", Person(), ())
