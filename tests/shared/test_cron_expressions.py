"""What cron expressions come to where clocks change, how they are told, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Final

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import up_to
from vigil.contracts.board import CronSchedule
from vigil.errors import InvalidInput
from vigil.timetable.instants import fields
from vigil.timetable.instants.cron import check_cron, simulated, words_of
from vigil.zones.database import zone_named

MINUTE: Final = timedelta(minutes=1)
SPRING: Final = datetime(2026, 3, 29, tzinfo=UTC)
AUTUMN: Final = datetime(2026, 10, 25, tzinfo=UTC)
"""When the clocks of Berlin change, at 01:00 UTC."""


def due(expression: str, zone: str, start: datetime, hours: float) -> Iterator[datetime]:
    schedule = CronSchedule(expression=expression, zone=zone)
    end = start + timedelta(hours=hours)
    return takewhile(lambda at: at < end, simulated(schedule, start - timedelta(seconds=1)))


def shown(expression: str, day: datetime) -> str:
    """Return what clocks in Berlin show when that is due in the night of a change."""
    berlin = zone_named("Europe/Berlin")
    found = [at.astimezone(berlin) for at in due(expression, "Europe/Berlin", day, 3)]
    return " ".join(f"{at:%H:%M}" for at in found)


@pytest.mark.parametrize(
    ("expression", "spring", "autumn"),
    [
        # Each hour, or within each: at its own pace.
        ("*/30 * * * *", "01:00 01:30 03:00 03:30 04:00 04:30", "02:00 02:30 02:00 02:30 03:00"),
        ("0 * * * *", "01:00 03:00 04:00", "02:00 02:00 03:00"),
        ("0 0-23 * * *", "01:00 03:00 04:00", "02:00 02:00 03:00"),
        # Within certain hours: the same, and made up for once.
        ("*/30 2 * * *", "03:00", "02:00 02:30 02:00 02:30"),
        ("*/30 1-3 * * *", "01:00 01:30 03:00 03:30", "02:00 02:30 02:00 02:30 03:00"),
        # At certain hours: once.
        ("30 2 * * *", "03:00", "02:30"),
        ("0,30 2 * * *", "03:00", "02:00 02:30"),
        ("0 */2 * * *", "03:00 04:00", "02:00"),
        ("0 2,3 * * *", "03:00", "02:00 03:00"),
        ("30 30 2 * * *", "03:00", "02:30"),
        ("@daily", "", ""),
    ],
)
def test_a_night_on_which_the_clocks_change(expression: str, spring: str, autumn: str) -> None:
    """docs/timetable.md has this table (issue 32)."""
    assert shown(expression, SPRING) == spring
    assert shown(expression, AUTUMN).removesuffix(" 03:30") == autumn


EXPRESSIONS: Final = (
    "*/30 2 * * *", "*/20 1-3 * * *", "0 * * * *", "*/15 * * * *", "0 */2 * * *", "10 2 * * *",
    "0,30 1,2,3 * * *", "59 23 * * *", "0 0 * * *", "30 2 * * 0", "0 22,23,0,1,2 * * *",
)  # fmt: skip
ZONES: Final = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "UTC")
CHANGES: Final = (
    SPRING, AUTUMN, datetime(2026, 3, 8, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC),
    datetime(2026, 4, 4, tzinfo=UTC), datetime(2026, 10, 3, tzinfo=UTC),
)  # fmt: skip


def looked_up(expression: str, zone: str, start: datetime, minutes: int) -> list[datetime]:
    """Return the same minute by minute: from the clocks on the wall, one after the other."""
    where = zone_named(zone)
    walls = CronSim(expression, (start - timedelta(days=2)).replace(tzinfo=None))
    end = (start + timedelta(days=3)).replace(tzinfo=None)
    wanted = set(takewhile(lambda wall: wall < end, walls))
    minute, hour = expression.split()[:2]
    is_each_hour = fields.is_whole(fields.HOUR, hour)
    found = []
    for n in range(minutes):
        at = (start + n * MINUTE).astimezone(where)
        wall = at.replace(tzinfo=None, fold=0)
        before = (at.astimezone(UTC) - MINUTE).astimezone(where).replace(tzinfo=None, fold=0)
        skipped = [before + k * MINUTE for k in range(1, int((wall - before) / MINUTE))]
        is_second = at.fold == 1 and not (is_each_hour or minute.startswith("*"))
        is_made_up = not is_each_hour and not wanted.isdisjoint(skipped)
        if (wall in wanted and not is_second) or is_made_up:
            found.append(at.astimezone(UTC))
    return found


@up_to(300)
@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(ZONES),
    st.sampled_from(CHANGES),
    st.integers(-600, 600),
)
def test_it_is_due_as_the_clocks_on_the_wall_say(
    expression: str, zone: str, change: datetime, off: int
) -> None:
    start, minutes = change + off * MINUTE, 36 * 60
    expected = looked_up(expression, zone, start, minutes)
    assert list(due(expression, zone, start, minutes / 60)) == expected
    schedule = CronSchedule(expression=expression, zone=zone)
    latest = simulated(schedule, start + minutes * MINUTE, backwards=True)
    assert list(takewhile(lambda at: at >= start, latest)) == expected[::-1]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("*/15 * * * *", "Every 15th minute of every hour"),
        ("*/40 * * * *", "At minutes 0 and 40 of every hour"),
        ("*/25 * * * *", "At minutes 0, 25, and 50 of every hour"),
        ("5/20 * * * *", "At minutes 5, 25, and 45 of every hour"),
        ("0 */5 * * *", "At minute 0 past hours 0, 5, 10, 15, and 20"),
        ("0 */6 * * *", "At minute 0 past every sixth hour"),
        ("*/60 * * * *", "At the start of every hour"),
        # Two that are refused now, and may be stored.
        ("*/90 * * * *", "At the start of every hour"),
        ("0 */36 * * *", "At 00:00 every day"),
        # Days of a month or of a week: of two that are restricted either will do.
        ("0 0 1-31 * 1", "At 00:00 every day"),
        ("0 0 15 * 0-6", "At 00:00 every day"),
        ("0 0 1-31 * *", "At 00:00 every day"),
        ("0 0 * * 1", "At 00:00 on Monday"),
        ("0 0 13 * 5", "At 00:00 on the 13th day of month and on Friday"),
        ("0 0 ? * 5", "At 00:00 on Friday"),
        ("0 9 * * Mon-Sun", "At 09:00 every day"),
        ("0 9 * * sat-sun", "At 09:00 on Saturday and Sunday"),
        ("0 9 * * 6-1", "At 09:00 on Saturday, Sunday, and Monday"),
        ("0 22-1 * * *", "At 00:00, 01:00, 22:00, and 23:00 every day"),
    ],
)
def test_it_is_told_as_it_is(expression: str, words: str) -> None:
    assert words_of(expression) == words


@pytest.mark.parametrize(
    ("expression", "same"),
    [
        ("0 9 * * Mon-Sun", "0 9 * * *"),
        ("0 9 * * 6-1", "0 9 * * 6,0,1"),
        ("0 9 * * 7-2", "0 9 * * 0,1,2"),
        ("0 9 * * Fri-Mon/2", "0 9 * * 5,0"),
        ("0 9 15 * ?", "0 9 15 * *"),
        ("0 9 ? * 1", "0 9 * * 1"),
        ("0 22-6/4 * * *", "0 22,2,6 * * *"),
        ("50-10 * * * *", "0,1,2,3,4,5,6,7,8,9,10,50,51,52,53,54,55,56,57,58,59 * * * *"),
        ("0 0 1 nov-feb *", "0 0 1 1,2,11,12 *"),
        ("0 0 30-2 * *", "0 0 1,2,30,31 * *"),
    ],
)
def test_what_goes_over_the_end_goes_on_at_the_beginning(expression: str, same: str) -> None:
    check_cron(expression, "UTC")
    found, expected = (
        list(islice(simulated(CronSchedule(expression=one, zone="UTC"), SPRING), 50))
        for one in (expression, same)
    )
    assert found == expected


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("*/90 * * * *", "would be due once an hour; use --every 90m (interval_s: 5400)"),
        ("5-59/90 * * * *", "use --every 90m"),
        ("0 */36 * * *", "would be due once a day; use --every 36h (interval_s: 129600)"),
        ("0 0 */40 * *", "would be due once a month; use --every 40d"),
        ("0 0 1 */13 *", "would be due once a year"),
        ("0 0 * * */9", "would be due once a week"),
        ("0 9 * * 8", "Bad day-of-week, which takes 0-7 or SUN-SAT"),
        ("0 9 * * Mon-Fr", "Bad day-of-week, which takes 0-7 or SUN-SAT"),
        ("0 9 * 13 *", "Bad month, which takes 1-12 or JAN-DEC"),
        ("? 9 * * *", "Bad minute, which takes 0-59"),
        ("9 * *", "it has five, as 0 9 * * 1-5"),
        ("every day", "it has five, as 0 9 * * 1-5"),
    ],
)
def test_what_would_mislead_is_refused_with_a_hint(expression: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_cron(expression, "UTC")
    assert hint in str(refused.value)
