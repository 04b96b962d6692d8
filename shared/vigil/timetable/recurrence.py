"""When a row is due, as calendars tell it: rules, and the instants that no rule has. Pure.

Source: RFC 5545, section 3.3.10. A rule is told only if it's found to be what the row does, by the
row's own instants: all of them, or those of the next days and about each change of clocks. What
cron does there and a rule doesn't is an exception of the rule, or an instant beside it. A few times
a day are a rule each, of days, weeks or months: not every calendar knows rules of hours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import islice, product, takewhile
from typing import Final, NamedTuple

from cronsim import CronSim, CronSimError

from ..contracts import TimetableRow
from ..contracts.board import ChosenSchedule, CronSchedule, EverySchedule, Ledger
from ..zones.wall import changes
from .instants.fields import split
from .instants.once import zone_of
from .schedule import NEW, is_active, upcoming

TIMES_MAX: Final = 24
"""Times of a day that are a rule each; more are one rule."""
CHECKED_WHOLE_MAX: Final = 4
"""A row with so many times a day is compared until the end, and not in parts."""
COMPARED_DAYS: Final = 4
"""What is compared of others, and as much about each change of clocks."""
EXCEPTIONS_MAX: Final = 50
"""A rule with more of them is none."""
SEARCHED_DAYS: Final = 9 * 366
"""Within them there is a 29th of February."""
_DAY_S: Final = 86_400
_WEEKDAYS: Final = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
_UNITS: Final = (("DAILY", _DAY_S), ("HOURLY", 3600), ("MINUTELY", 60), ("SECONDLY", 1))

Parts = Mapping[str, str | int | list[int] | list[str]]
"""Of a rule, by the names that the RFC has for them."""


class Rule(NamedTuple):
    """A rule with its exceptions."""

    first: datetime
    """Aware, on the clocks by which it goes: the first instant of it."""
    parts: Parts
    without: tuple[datetime, ...] = ()
    """On the same clocks."""


class Recurrence(NamedTuple):
    """When a row is due."""

    rules: tuple[Rule, ...] = ()
    instants: tuple[datetime, ...] = ()
    """Beside the rules (aware UTC), the soonest first."""
    is_cut: bool = False
    """Whether there are more instants than are told."""


class _Days(NamedTuple):
    """On which days something is due."""

    parts: Parts
    has: Callable[[date], bool]


class _Draft(NamedTuple):
    """A rule that isn't compared yet."""

    zone: tzinfo
    times: list[time]
    days: _Days
    parts: Parts


_EACH_DAY: Final = _Days({"FREQ": "DAILY"}, lambda _: True)


def recurrence_of(
    row: TimetableRow, now: datetime, until: datetime, ledger: Ledger = NEW, *, most: int
) -> Recurrence:
    """Return when a row is due after now (aware UTC).

    Args:
        until: so far it's compared, and instants that no rule has are told (aware UTC).
        ledger: as of `upcoming`.
        most: instants, where there is no rule.

    Raises:
        InvalidInput: its schedule is none.
    """
    is_one = row.runs_once or isinstance(row.schedule, ChosenSchedule)
    if not is_one and (exact := _of_interval(row, now)):
        return Recurrence(tuple(exact))
    for drafts in () if is_one else _drafts(row, now):
        if (found := _compared(row, drafts, now, until)) is not None:
            return found
    following = islice(_due(row, now, until, ledger), 1 if is_one else most + 1)
    instants = tuple(following)
    return Recurrence((), instants[:most], is_cut=len(instants) > most)


def _due(
    row: TimetableRow, after: datetime, until: datetime, ledger: Ledger = NEW
) -> Iterator[datetime]:
    """Yield the instants at which it may run: outside its hours it doesn't."""
    within = takewhile(lambda at: at <= until, upcoming(row, after, ledger))
    return (at for at in within if is_active(row.active_hours, row.zone, at))


# ---------------------------------------------------------------- intervals


def _of_interval(row: TimetableRow, now: datetime) -> list[Rule]:
    """Return the rules of an interval without hours, which clocks don't change."""
    if not isinstance(row.schedule, EverySchedule) or row.active_hours:
        return []
    interval_s = row.schedule.interval_s
    count = _times_of_day(interval_s)
    following = list(islice(upcoming(row, now), count or 1))
    if count:
        return [Rule(at, _EACH_DAY.parts) for at in following]
    name, size = next(one for one in _UNITS if interval_s % one[1] == 0)
    return [Rule(at, {"FREQ": name, "INTERVAL": interval_s // size}) for at in following]


def _times_of_day(interval_s: int) -> int:
    """Return at how many times of each day an interval comes; 0: they differ, or are many."""
    count, rest = divmod(_DAY_S, interval_s)
    return count if not rest and count <= TIMES_MAX else 0


# ---------------------------------------------------------------- drafts


def _drafts(row: TimetableRow, now: datetime) -> Iterator[list[_Draft]]:
    """Yield what may be the rules of a row, the likeliest first."""
    match row.schedule:
        case EverySchedule(interval_s=interval_s) if count := _times_of_day(interval_s):
            zone = zone_of(row.zone)
            local = [at.astimezone(zone) for at in islice(upcoming(row, now), count)]
            times = [at.time() for at in local if is_active(row.active_hours, row.zone, at)]
            yield [_Draft(zone, [one], _EACH_DAY, _EACH_DAY.parts) for one in times]
        case CronSchedule() as schedule:
            yield from _drafts_of_cron(row, schedule, now)


def _drafts_of_cron(
    row: TimetableRow, schedule: CronSchedule, now: datetime
) -> Iterator[list[_Draft]]:
    cron, zone = _read(schedule), zone_of(schedule.zone)
    days = None if cron is None else _days_of(cron)
    if cron is None or days is None or len(cron.seconds) != 1:
        return
    hours, minutes, (second,) = _numbers(cron.hours), _numbers(cron.minutes), cron.seconds
    times = [time(hour, minute, second) for hour, minute in product(hours, minutes)]
    is_endless = len(hours) == 24 and days is _EACH_DAY and not row.active_hours
    if is_endless and _keeps_minutes(zone, now):
        # What goes on through the day and night doesn't notice that clocks change.
        yield _of_each_hour(row, minutes, second, now)
    if row.active_hours:
        noon = date(2000, 1, 1)
        inside = [
            one
            for one in times
            if is_active(row.active_hours, "UTC", datetime.combine(noon, one, UTC))
        ]
        is_all, times = len(inside) == len(times), inside
        if row.zone != schedule.zone or (len(times) > TIMES_MAX and not is_all):
            return
    if len(times) <= TIMES_MAX:
        yield [_Draft(zone, [one], days, days.parts) for one in times]
    else:
        parts = {**days.parts, "BYHOUR": hours, "BYMINUTE": minutes}
        yield [_Draft(zone, times, days, parts)]


def _of_each_hour(
    row: TimetableRow, minutes: list[int], second: int, now: datetime
) -> list[_Draft]:
    first = next(upcoming(row, now), None)
    if first is None:
        return []
    # A zone may be half an hour off.
    found = sorted({at.minute for at in _due(row, now, first + timedelta(minutes=59))})
    times = [time(hour, minute, second) for hour, minute in product(range(24), found)]
    if len(times) <= TIMES_MAX:
        return [_Draft(UTC, [one], _EACH_DAY, _EACH_DAY.parts) for one in times]
    parts: Parts = {"FREQ": "HOURLY", "BYMINUTE": found}
    return [_Draft(UTC, times, _EACH_DAY, parts)]


def _read(schedule: CronSchedule) -> CronSim | None:
    try:
        return CronSim(" ".join(split(schedule.expression)), datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError:
        return None


def _numbers(items: set[int] | set[int | tuple[int, int]]) -> list[int]:
    return sorted(one for one in items if isinstance(one, int))


def _days_of(cron: CronSim) -> _Days | None:
    """Return the days of an expression; None: no rule has them."""
    months, weekdays = set(_numbers(cron.months)), {one for one in cron.weekdays if one != 7}
    weekdays |= {0} if 7 in cron.weekdays else set()
    is_each_month, is_each_weekday = len(months) == 12, len(weekdays) == 7
    is_each_day = len(cron.days) == 31
    by_month: Parts = {} if is_each_month else {"BYMONTH": sorted(months)}
    if is_each_day and is_each_weekday:
        if is_each_month:
            return _EACH_DAY
        return _Days({"FREQ": "DAILY", **by_month}, lambda day: day.month in months)
    if is_each_day and all(isinstance(one, int) for one in weekdays):
        names = [_WEEKDAYS[one] for one in _numbers(weekdays)]
        parts: Parts = {"FREQ": "WEEKLY", "BYDAY": names, **by_month}
        return _Days(parts, lambda d: d.month in months and d.isoweekday() % 7 in weekdays)
    if is_each_weekday and min(_numbers(cron.days), default=0) > 0:
        days = _numbers(cron.days)
        parts = {"FREQ": "MONTHLY" if is_each_month else "YEARLY", **by_month, "BYMONTHDAY": days}
        return _Days(parts, lambda day: day.month in months and day.day in days)
    return None


# ---------------------------------------------------------------- comparing


_Span = tuple[datetime, datetime]
"""After the first, until the last."""


class _Met(NamedTuple):
    """A time of a rule."""

    at: datetime
    """In UTC."""
    shown: datetime
    """On the clocks of the rule."""
    is_plain: bool
    """Whether those show it once: of what they skip or show twice, readers think differently."""


def _met(draft: _Draft, first: date, last: date) -> Iterator[_Met]:
    day = first
    while day <= last:
        for one in draft.times if draft.days.has(day) else ():
            shown = datetime.combine(day, one, draft.zone)
            is_plain = shown.utcoffset() == shown.replace(fold=1).utcoffset()
            yield _Met(shown.astimezone(UTC), shown, is_plain)
        day += timedelta(days=1)


def _compared(
    row: TimetableRow, drafts: list[_Draft], now: datetime, until: datetime
) -> Recurrence | None:
    """Return rules with what they get wrong mended; None: that is too much, or there are none."""
    since = max(now, row.scheduled_at - timedelta(microseconds=1))
    firsts = [found for draft in drafts if (found := _first(draft, since)) is not None]
    if not drafts or len(firsts) < len(drafts):
        return None
    spans = _spans(drafts, since, until)
    left = {at for start, end in spans for at in _due(row, start, end)}
    rules, wrong = [], 0
    for draft, first in zip(drafts, firsts, strict=True):
        exceptions = []
        for one in _met_within(draft, first, spans):
            if one.is_plain and one.at in left:
                left.remove(one.at)
            else:
                exceptions.append(one.shown)
        wrong += len(exceptions)
        rules.append(Rule(first.shown, draft.parts, tuple(exceptions)))
    if len(left) + wrong > EXCEPTIONS_MAX:
        return None
    return Recurrence(tuple(rules), tuple(sorted(left)))


def _met_within(draft: _Draft, first: _Met, spans: list[_Span]) -> Iterator[_Met]:
    for start, end in spans:
        dates = (at.astimezone(draft.zone).date() for at in (start, end))
        for one in _met(draft, *dates):
            if start < one.at <= end and one.at >= first.at:
                yield one


def _first(draft: _Draft, since: datetime) -> _Met | None:
    today = since.astimezone(draft.zone).date()
    met = _met(draft, today, today + timedelta(days=SEARCHED_DAYS))
    return next((one for one in met if one.at > since and one.is_plain), None)


def _spans(drafts: list[_Draft], since: datetime, until: datetime) -> list[_Span]:
    """Return what is compared: all, or of many instants some days at each change of clocks."""
    if sum(len(draft.times) for draft in drafts) <= CHECKED_WHOLE_MAX:
        return [(since, until)]
    span = timedelta(days=COMPARED_DAYS)
    found = [(since, min(since + span, until))]
    for change in changes(drafts[0].zone, since, until):
        start, end = max(change - span / 2, found[-1][1]), min(change + span / 2, until)
        if start < end:
            found.append((start, end))
    return found


def _keeps_minutes(zone: tzinfo, now: datetime) -> bool:
    """Whether its clocks change by whole hours: by Lord Howe's, hourly is another minute then."""
    year = (now, *changes(zone, now, now + timedelta(days=366)))
    offsets = (at.astimezone(zone).utcoffset() or timedelta() for at in year)
    return len({offset % timedelta(hours=1) for offset in offsets}) == 1
