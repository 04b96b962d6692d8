"""When a cron expression is due, and how that is said.

Where the clocks of a zone change, rows are of three kinds, by what cron(8) says of them:

* due each hour: at their own pace, whatever the clocks show;
* due within the hour (the minute begins with `*`): the same, and what the clocks skip is made up
  for once, as soon as they have gone on;
* others, of certain hours: what the clocks skip is made up for in the same way, and what they show
  twice is due the first time. So a daily row is due once every day.

That is what cronie's cron(8) promises of jobs "that run at a specific time" and those "with a
granularity greater than one hour", while those "that run more frequently are scheduled normally",
and beyond that no day's run is lost. Debian's leaves out of the promise whatever has a `*` in
minutes or hours, as cronsim does: it loses `*/30 2 * * *` on a day in spring, and runs
`0 */2 * * *` twice in autumn.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from ...contracts.board import CronSchedule
from ...errors import InvalidInput
from ...zones.wall import END, instant_of
from . import fields
from .fields import DAY, FIELDS, HOUR, MINUTE, SECOND, WEEKDAY
from .once import check_zone, zone_of

EXPRESSION_LENGTH_MAX: Final = 200
CHANGE_MAX: Final = timedelta(hours=3)
"""No zone changes its clocks by more than that, but for days that were left out."""


def check_cron(expression: str, zone: str) -> None:
    """Raises: InvalidInput: there is no such zone, it is no expression, or it is never due.

    >>> check_cron("0 9 * * 1-5", "Europe/Berlin")
    >>> check_cron("0 9 30 2 *", "Europe/Berlin")
    Traceback (most recent call last):
    vigil.errors.InvalidInput: expression: '0 9 30 2 *' is no cron expression: Bad day-of-month, \
which takes 1-31, L or LW
    """
    check_zone(zone)
    if len(expression) > EXPRESSION_LENGTH_MAX:
        raise InvalidInput("expression", f"must have at most {EXPRESSION_LENGTH_MAX} characters")
    parts = _parts(expression)
    if reason := fields.misled(parts):
        raise InvalidInput("expression", reason)
    schedule = CronSchedule(expression=expression, zone=zone)
    if next(simulated(schedule, datetime(2026, 1, 1, tzinfo=UTC)), None) is None:
        raise InvalidInput("expression", f"{expression!r} is never due")


def _parts(expression: str) -> list[str]:
    """Return its six fields. Raises: InvalidInput, naming the one that is none."""
    parts = fields.split(expression)
    try:
        CronSim(" ".join(parts), datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        takes = [f", which takes {one.takes}" for one in FIELDS if str(error).endswith(one.name)]
        hint = "".join(takes[:1]) or "; it has five, as 0 9 * * 1-5, or six with seconds first"
        raise InvalidInput(
            "expression", f"{expression[:100]!r} is no cron expression: {error}{hint}"
        ) from error
    return parts


def simulated(
    schedule: CronSchedule, start: datetime, *, backwards: bool = False
) -> Iterator[datetime]:
    """Yield the instants after that one, or before it, in UTC; without end, or until none comes
    for 50 years.

    Raises:
        InvalidInput: it is no expression, or there is no such zone.
    """
    zone, parts = zone_of(schedule.zone), _parts(schedule.expression)
    if start >= END:
        return iter(())
    start = start.astimezone(UTC)
    if fields.is_whole(HOUR, parts[FIELDS.index(HOUR)]):
        parts[FIELDS.index(HOUR)] = "*"  # or cronsim would take it for one of certain hours
        return _by_pace(parts, zone, start, backwards=backwards)
    by_walls = _by_walls(parts, zone, start, backwards=backwards)
    if not any(parts[FIELDS.index(one)].startswith("*") for one in (SECOND, MINUTE)):
        return by_walls
    both = (_by_pace(parts, zone, start, backwards=backwards), by_walls)
    return (at for at, _ in groupby(heapq.merge(*both, reverse=backwards)))


def _by_pace(
    parts: list[str], zone: ZoneInfo, start: datetime, *, backwards: bool
) -> Iterator[datetime]:
    """Yield the instants at which the clocks show such a time, each time that they do."""
    for at in CronSim(" ".join(parts), start.astimezone(zone), reverse=backwards):
        if at.replace(tzinfo=UTC) >= END:
            return
        instant = at.astimezone(UTC)
        # From the second pass of an hour that comes twice it finds the first pass, too.
        if instant < start if backwards else instant > start:
            yield instant


def _by_walls(
    parts: list[str], zone: ZoneInfo, start: datetime, *, backwards: bool
) -> Iterator[datetime]:
    """Yield an instant for each such time on a wall, the same for those that are skipped
    together."""
    sooner, later = start - CHANGE_MAX, start + CHANGE_MAX
    is_near = sooner.astimezone(zone).utcoffset() != later.astimezone(zone).utcoffset()
    begin = (later if backwards else sooner) if is_near else start
    wall = begin.astimezone(zone).replace(tzinfo=None, fold=0)
    last = None
    for shown in CronSim(" ".join(parts), wall, reverse=backwards):
        if shown.replace(tzinfo=UTC) >= END:
            return
        at = instant_of(shown, zone)
        if at != last and (at < start if backwards else at > start):
            last = at
            yield at


def words_of(expression: str) -> str:
    """Say when that is due, in English.

    >>> words_of("0 9 * * 1-5"), words_of("*/40 * * * *")
    ('At 09:00 on Monday through Friday', 'At minutes 0 and 40 of every hour')
    >>> words_of("0 0 1-31 * 1"), words_of("0 9 * * mon-sun")
    ('At 00:00 every day', 'At 09:00 every day')
    """
    parts = fields.split(expression)
    for number, field in enumerate(FIELDS):
        if field in (SECOND, MINUTE, HOUR):
            parts[number] = _evenly(field, parts[number])
    day, weekday = FIELDS.index(DAY), FIELDS.index(WEEKDAY)
    both = ((DAY, parts[day]), (WEEKDAY, parts[weekday]))
    are_all = [fields.is_whole(*one) for one in both]
    # cron(8): if both are restricted, either will do; one that begins with `*` doesn't count as so.
    if not any(part.startswith("*") for _, part in both):
        are_all = [any(are_all)] * 2
    for number, is_all in zip((day, weekday), are_all, strict=True):
        parts[number] = "*" if is_all else parts[number]
    return CronSim(" ".join(parts), datetime(2026, 1, 1, tzinfo=UTC)).explain()


def _evenly(field: fields.Field, part: str) -> str:
    """Return a field as it is to be told: what isn't every so many is told one by one."""
    found, size = fields.values_of(field, part), field.most - field.least + 1
    if fields.is_whole(field, part):
        return "*"
    step = part.partition("/")[2]
    if found is None or not step.isdigit() or "," in part or "-" in part:
        return part
    is_even = part.startswith("*") and size % int(step) == 0 and len(found) > 1
    return part if is_even else ",".join(map(str, sorted(found)))
