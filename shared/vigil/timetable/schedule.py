"""When a schedule is due (SPEC J-4). Pure.

Cron expressions mean what Debian's cron makes of them. A fixed hour that a zone's clocks skip is
due as soon as they have gone on, and one that they pass twice is due the first time, so a daily row
is due once every day; what recurs within the hour goes on at its own pace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from ..contracts import (
    TimetableRow,
)
from ..contracts.board import (
    CronSchedule,
    EverySchedule,
    OnceSchedule,
)
from ..errors import InvalidInput

RUNS_MAX: Final = 100
"""Missed instants that are known one by one; of those before there is a count."""
COUNTED_MAX: Final = 10_000
"""Instants that are counted; more are said to be at least so many. 10 µs each (cronsim 2.8)."""
NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
INTERVAL_S_MIN: Final = 1
INTERVAL_S_MAX: Final = 366 * 86_400
GRACE_S_MIN: Final = 120
GRACE_S_MAX: Final = 7200
EXPRESSION_LENGTH_MAX: Final = 200
END: Final = datetime(9990, 1, 1, tzinfo=UTC)
"""The calendar ends a little later, and zones are ahead of UTC."""


class Due(NamedTuple):
    """The instants of a row in a stretch of time, oldest first."""

    newest: tuple[datetime, ...] = ()
    """At most `RUNS_MAX`."""
    earlier: int = 0
    """How many more there were before those; at most `COUNTED_MAX`."""
    first: datetime | None = None
    """The first of those."""
    last: datetime | None = None
    """The last of those."""


def check_cron(expression: str, zone: str) -> None:
    """Raises: InvalidInput: there is no such zone, it is no expression, or it is never due.

    >>> check_cron("0 9 * * 1-5", "Europe/Berlin")
    >>> check_cron("0 9 30 2 *", "Europe/Berlin")
    Traceback (most recent call last):
    vigil.errors.InvalidInput: expression: '0 9 30 2 *' is no cron expression: Bad day-of-month
    """
    zone_of(zone)
    if len(expression) > EXPRESSION_LENGTH_MAX:
        raise InvalidInput("expression", f"must have at most {EXPRESSION_LENGTH_MAX} characters")
    schedule = CronSchedule(expression=expression, zone=zone)
    if next(_cron(schedule, datetime(2026, 1, 1, tzinfo=UTC)), None) is None:
        raise InvalidInput("expression", f"{expression!r} is never due")


def zone_of(name: str) -> ZoneInfo:
    """Return a zone by its IANA name.

    Raises:
        InvalidInput: there is none of that name.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidInput("zone", f"{name[:100]!r} is no IANA time zone") from error


def upcoming(row: TimetableRow, after: datetime) -> Iterator[datetime]:
    """Yield the instants at which a row is due after that one, in UTC, without end if it has none.

    Only those since its schedule holds: what it was before is another revision's.

    Raises:
        InvalidInput: its schedule is none.
    """
    since = row.scheduled_at
    match row.schedule:
        case OnceSchedule(at=at):
            return iter((at.astimezone(UTC),) if after < at < END and at >= since else ())
        case EverySchedule(interval_s=interval_s):
            first = 0 if row.made_at == since else 1
            return _every(since, timedelta(seconds=interval_s), first, after)
        case CronSchedule() as schedule:
            return _cron(schedule, max(after, since - timedelta(microseconds=1)))


def _every(since: datetime, interval: timedelta, first: int, after: datetime) -> Iterator[datetime]:
    number = max((after - since) // interval + 1, first)
    while (at := since + number * interval) < END:
        yield at.astimezone(UTC)
        number += 1


def _cron(schedule: CronSchedule, after: datetime) -> Iterator[datetime]:
    for at in _simulated(schedule, after):
        # From the second pass of an hour that comes twice it finds the first pass, too.
        if at > after:
            yield at


def _simulated(
    schedule: CronSchedule, start: datetime, *, backwards: bool = False
) -> Iterator[datetime]:
    zone = zone_of(schedule.zone)
    if start >= END:
        return
    text = schedule.expression.strip()
    try:
        simulation = CronSim(
            NICKNAMES.get(text.lower(), text), start.astimezone(zone), reverse=backwards
        )
    except CronSimError as error:
        raise InvalidInput(
            "expression", f"{schedule.expression[:100]!r} is no cron expression: {error}"
        ) from error
    for at in simulation:
        if at.replace(tzinfo=UTC) >= END:
            return
        yield at.astimezone(UTC)


def due_between(row: TimetableRow, after: datetime, until: datetime) -> Due:
    """Return the instants of a row after one and until another, that included.

    Raises:
        InvalidInput: its schedule is none.
    """
    found = list(islice(_until(row, after, until), COUNTED_MAX + RUNS_MAX))
    if len(found) <= RUNS_MAX:
        return Due(tuple(found))
    newest = found if len(found) < COUNTED_MAX + RUNS_MAX else _newest(row, until)
    last, *known = newest[-RUNS_MAX - 1 :]
    return Due(tuple(known), len(found) - RUNS_MAX, found[0], last)


def _until(row: TimetableRow, after: datetime, until: datetime) -> Iterator[datetime]:
    for at in upcoming(row, after):
        if at > until:
            return
        yield at


def _newest(row: TimetableRow, until: datetime) -> list[datetime]:
    """Return the last instants until that one, one more than `RUNS_MAX`; there are more."""
    match row.schedule:
        case EverySchedule(interval_s=interval_s):
            interval = timedelta(seconds=interval_s)
            return list(_until(row, until - (RUNS_MAX + 1) * interval, until))
        case CronSchedule() as schedule:
            # It yields what is before its start, and whole seconds.
            start = until.replace(microsecond=0) + timedelta(seconds=1)
            latest = _simulated(schedule, start, backwards=True)
            backwards = islice((at for at in latest if at <= until), RUNS_MAX + 1)
            return list(backwards)[::-1]
        case OnceSchedule():
            return []


def grace_of(row: TimetableRow, due_at: datetime) -> timedelta:
    """Return how late a slot is still run: the row's own, or half its period, 2 min to 2 h."""
    if row.grace_s is not None:
        return timedelta(seconds=row.grace_s)
    following = next(upcoming(row, due_at), None)
    half_s = GRACE_S_MAX if following is None else (following - due_at).total_seconds() / 2
    return timedelta(seconds=min(max(half_s, GRACE_S_MIN), GRACE_S_MAX))


def jitter_of(row: TimetableRow, due_at: datetime) -> timedelta:
    """Return what a slot is put off by: always the same for a row and instant."""
    if not row.jitter_s:
        return timedelta()
    name = f"{row.id}\0{due_at.astimezone(UTC).isoformat()}".encode()
    share = int.from_bytes(hashlib.sha256(name).digest()[:8]) / 2**64
    return timedelta(seconds=row.jitter_s * share)


def words_of(schedule: CronSchedule | EverySchedule | OnceSchedule) -> str:
    """Say when a schedule is due, in English.

    >>> words_of(CronSchedule(expression="0 9 * * 1-5", zone="Europe/Berlin"))
    'At 09:00 on Monday through Friday (Europe/Berlin)'
    >>> words_of(EverySchedule(interval_s=5400))
    'every 90 min'
    """
    match schedule:
        case CronSchedule(expression=expression, zone=zone):
            text = NICKNAMES.get(expression.strip().lower(), expression)
            words = CronSim(text, datetime(2026, 1, 1, tzinfo=UTC)).explain()
            return f"{words} ({zone})"
        case EverySchedule(interval_s=interval_s):
            units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
            unit, size = next((unit, size) for unit, size in units if interval_s % size == 0)
            return f"every {interval_s // size} {unit}"
        case OnceSchedule(at=at):
            return f"once, at {at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def told_of(row: TimetableRow, now: datetime, count: int = 3) -> str:
    """Say when a row is due, and the next instants of it on the clocks of its zone.

    >>> from vigil.contracts.board import CronWork
    >>> now = datetime(2026, 11, 20, tzinfo=UTC)
    >>> row = TimetableRow(
    ...     id="1" * 32, owner="ann", agent="vigil", name="briefing", made_at=now,
    ...     scheduled_at=now, work=CronWork(prompt="What is new?"), zone="Europe/Berlin",
    ...     schedule=CronSchedule(expression="0 9 * * 1-5", zone="Europe/Berlin"))
    >>> print(told_of(row, now))
    At 09:00 on Monday through Friday (Europe/Berlin); next: Fri 2026-11-20 09:00, \
Mon 2026-11-23 09:00, Tue 2026-11-24 09:00 (Europe/Berlin)
    """
    zone = zone_of(row.zone)
    following = [
        f"{at.astimezone(zone):%a %Y-%m-%d %H:%M}" for at in islice(upcoming(row, now), count)
    ]
    when = words_of(row.schedule)
    return f"{when}; next: {', '.join(following)} ({row.zone})" if following else f"{when}; over"
