"""When a schedule is due, and in which hours a row may run (SPEC J-4). Pure.

What cron expressions come to, and what becomes of them where clocks change, is in `instants`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import filterfalse, islice, takewhile
from typing import Final, NamedTuple

from ..contracts import (
    TimetableRow,
)
from ..contracts.board import (
    AfterSchedule,
    ChainOn,
    ChosenSchedule,
    CronSchedule,
    EventSchedule,
    EverySchedule,
    Ledger,
    OnceSchedule,
    Schedule,
)
from ..settings.hours import hours_of
from ..words.amounts import span_of
from ..zones.wall import END
from .instants import cron
from .instants.cron import simulated
from .instants.once import instant_of_once, zone_of

RUNS_MAX: Final = 100
"""Missed instants that are known one by one; of those before there is a count."""
COUNTED_MAX: Final = 10_000
"""Instants that are counted; more are said to be at least so many. 10 µs each (cronsim 2.8)."""
GRACE_S_MIN: Final = 120
GRACE_S_MAX: Final = 7200
INSTANTS_SHOWN: Final = 5
"""How many of the next instants of a row are told, to people and models."""
CLOSED_MAX: Final = 400
"""Times that hours are skipped, one after the other: more than the days of a year."""
NEW: Final = Ledger()
"""Of a row of which nothing is decided yet."""


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


def upcoming(row: TimetableRow, after: datetime, ledger: Ledger = NEW) -> Iterator[datetime]:
    """Yield the instants at which a row is due after that one, in UTC, without end if it has none.

    Only those since its schedule holds: what it was before is another revision's. When another row
    will end, nobody knows: one that follows it has none.

    Args:
        ledger: the row's; only one whose runs choose when the next is needs it.

    Raises:
        InvalidInput: its schedule is none.
    """
    found = _upcoming(row, after, ledger)
    return found if ledger.ran_through is None else filterfalse(partial(has_run, ledger), found)


def upcoming_runs(row: TimetableRow, after: datetime, ledger: Ledger = NEW) -> Iterator[datetime]:
    """Yield those of `upcoming` that are within the row's hours: nothing is run at others.

    Hours are skipped in whole, so that a row which is due each second costs no more than one which
    is due each day; of a row that is never due within them, `CLOSED_MAX` at most.

    Raises:
        InvalidInput: as `upcoming`.
    """
    closed = 0
    while closed < CLOSED_MAX:
        for at in upcoming(row, after, ledger):
            after = at
            if not is_active(row.active_hours, row.zone, at):
                break
            closed = 0
            yield at
        else:
            return
        closed += 1
        after = max(after, _opening(row, after) - timedelta(microseconds=1))


def _opening(row: TimetableRow, after: datetime) -> datetime:
    """Return when the hours of a row begin next, which has some, on the clocks of its zone."""
    local, hours = after.astimezone(zone_of(row.zone)), hours_of(row.active_hours)
    opening = local if hours is None else datetime.combine(local, hours[0], local.tzinfo)
    return (opening if opening >= local else opening + timedelta(days=1)).astimezone(UTC)


def has_run(ledger: Ledger, at: datetime) -> bool:
    """Whether that instant was run by a clock that was ahead, and set back since."""
    if ledger.ran_from is None or ledger.ran_through is None:
        return False
    return ledger.ran_from <= at <= ledger.ran_through


def _upcoming(row: TimetableRow, after: datetime, ledger: Ledger) -> Iterator[datetime]:
    since = row.scheduled_at
    match row.schedule:
        case OnceSchedule() as schedule:
            at, through = instant_of_once(schedule), ledger.through
            # On clocks it may have been due before, by the rules that the zone had then.
            is_over = schedule.wall != "" and through is not None and through >= since
            return iter((at,) if after < at < END and at >= since and not is_over else ())
        case EverySchedule(interval_s=interval_s):
            first = 0 if row.made_at == since else 1
            return _every(since, timedelta(seconds=interval_s), first, after)
        case CronSchedule() as schedule:
            return simulated(schedule, max(after, since - timedelta(microseconds=1)))
        case ChosenSchedule() as schedule:
            if any(not run.is_by_hand for run in (*ledger.running, *ledger.waiting)):
                return iter(())  # its end tells
            start = _chosen(row, schedule, ledger)
            return _every(start, timedelta(seconds=schedule.interval_s), 0, after)
        case EventSchedule() | AfterSchedule() as schedule:
            return iter(_said_instants(schedule, after, since))


def _said_instants(
    schedule: EventSchedule | AfterSchedule, after: datetime, since: datetime
) -> tuple[datetime, ...]:
    """Return the instant of a row that others say: none of one that follows another."""
    at = schedule.at if isinstance(schedule, EventSchedule) else None
    return (at,) if at is not None and after < at < END and at >= since else ()


def _chosen(row: TimetableRow, schedule: ChosenSchedule, ledger: Ledger) -> datetime:
    """Return when a row is due next whose runs choose that."""
    since, interval_s = row.scheduled_at, schedule.interval_s
    if ledger.ended_at is None or ledger.ended_at < since:
        return since if row.made_at == since else since + timedelta(seconds=interval_s)
    wanted_s = ledger.next_s or interval_s
    wait_s = min(max(wanted_s, schedule.soonest_s), schedule.latest_s)
    return ledger.ended_at + timedelta(seconds=wait_s)


def _every(since: datetime, interval: timedelta, first: int, after: datetime) -> Iterator[datetime]:
    number = max((after - since) // interval + 1, first)
    while (at := since + number * interval) < END:
        yield at.astimezone(UTC)
        number += 1


def due_between(row: TimetableRow, after: datetime, until: datetime, ledger: Ledger = NEW) -> Due:
    """Return the instants of a row after one and until another, that included.

    Args:
        ledger: as of `upcoming`.

    Raises:
        InvalidInput: its schedule is none.
    """
    found = list(islice(_until(row, after, until, ledger), COUNTED_MAX + RUNS_MAX))
    is_all = len(found) < COUNTED_MAX + RUNS_MAX
    return due_of(found, found if is_all else _newest(row, until, ledger))


def due_of(found: Sequence[datetime], newest: Sequence[datetime]) -> Due:
    """Return instants as they are decided about.

    Args:
        found: oldest first.
        newest: their end; more of it than of them, if there are too many to be counted.
    """
    if len(found) <= RUNS_MAX:
        return Due(tuple(found))
    last, *known = newest[-RUNS_MAX - 1 :]
    return Due(tuple(known), len(found) - RUNS_MAX, found[0], last)


def _until(
    row: TimetableRow, after: datetime, until: datetime, ledger: Ledger
) -> Iterator[datetime]:
    return takewhile(lambda at: at <= until, upcoming(row, after, ledger))


def _newest(row: TimetableRow, until: datetime, ledger: Ledger) -> list[datetime]:
    """Return the last instants until that one, one more than `RUNS_MAX`; there are more."""
    match row.schedule:
        case EverySchedule(interval_s=interval_s) | ChosenSchedule(interval_s=interval_s):
            interval = timedelta(seconds=interval_s)
            return list(_until(row, until - (RUNS_MAX + 1) * interval, until, ledger))
        case CronSchedule() as schedule:
            # It yields what is before its start, and whole seconds.
            start = until.replace(microsecond=0) + timedelta(seconds=1)
            latest = simulated(schedule, start, backwards=True)
            backwards = islice((at for at in latest if at <= until), RUNS_MAX + 1)
            return list(backwards)[::-1]
        case OnceSchedule() | EventSchedule() | AfterSchedule():
            return []


def grace_of(row: TimetableRow, due_at: datetime) -> timedelta:
    """Return how late a slot is still run: the row's own, or half its period, 2 min to 2 h."""
    if row.grace_s is not None:
        return timedelta(seconds=row.grace_s)
    if isinstance(row.schedule, ChosenSchedule):
        half_s = row.schedule.interval_s / 2
    else:
        following = next(upcoming(row, due_at), None)
        half_s = GRACE_S_MAX if following is None else (following - due_at).total_seconds() / 2
    return timedelta(seconds=min(max(half_s, GRACE_S_MIN), GRACE_S_MAX))


def again_until(row: TimetableRow, due_at: datetime) -> datetime:
    """Return until when a slot that no model answered is begun again: as long as it would be run
    late, and before the next."""
    latest, following = due_at + grace_of(row, due_at), next(upcoming(row, due_at), None)
    return latest if following is None else min(latest, following)


def jitter_of(row: TimetableRow, due_at: datetime) -> timedelta:
    """Return what a slot is put off by: always the same for a row and instant."""
    if not row.jitter_s:
        return timedelta()
    name = f"{row.id}\0{due_at.astimezone(UTC).isoformat()}".encode()
    share = int.from_bytes(hashlib.sha256(name).digest()[:8]) / 2**64
    return timedelta(seconds=row.jitter_s * share)


def is_active(text: str, zone: str, at: datetime) -> bool:
    """Whether an instant is in the hours: the start belongs to them, the end doesn't, they may go
    over midnight, and equal ones mean always.

    >>> from datetime import UTC
    >>> night = datetime(2026, 11, 23, 2, 0, tzinfo=UTC)
    >>> is_active("22:00-06:00", "UTC", night), is_active("09:00-17:00", "UTC", night)
    (True, False)
    """
    hours = hours_of(text)
    if hours is None or hours[0] == hours[1]:
        return True
    start, end = hours
    local = at.astimezone(zone_of(zone)).time()
    return start <= local < end if start < end else local >= start or local < end


_WHICH: Final[dict[ChainOn, str]] = {
    "success": " that succeeds",
    "failure": " that fails",
    "any": "",
    "change": "",
}


def words_of(schedule: Schedule, followed: str = "") -> str:
    """Say when a schedule is due, in English.

    Args:
        followed: the name of the row that it follows, if it does.

    >>> words_of(CronSchedule(expression="0 9 * * 1-5", zone="Europe/Berlin"))
    'At 09:00 on Monday through Friday (Europe/Berlin)'
    >>> words_of(EverySchedule(interval_s=5400))
    'every 90 min'
    >>> words_of(ChosenSchedule(interval_s=3600, soonest_s=600, latest_s=86400))
    'every 1 h, or as its runs choose: 10 min to 1 d after they end'
    >>> words_of(EventSchedule(calendar="work", before_s=600))
    '10 min before each event of calendar work'
    >>> words_of(AfterSchedule(row="1f" * 16, on="failure"), "backup")
    "after each run of 'backup' that fails"
    >>> words_of(AfterSchedule(row="1f" * 16, on="change", fact="status", hook="ci"), "hook ci")
    "when status of 'hook ci' is another, if that is news"
    """
    match schedule:
        case CronSchedule(expression=expression, zone=zone):
            return f"{cron.words_of(expression)} ({zone})"
        case EverySchedule(interval_s=interval_s):
            return f"every {span_of(interval_s)}"
        case OnceSchedule(wall="", at=at):
            return f"once, at {at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        case OnceSchedule(wall=shown, zone=zone):
            return f"once, at {datetime.fromisoformat(shown):%Y-%m-%d %H:%M:%S} ({zone})"
        case ChosenSchedule(interval_s=interval_s, soonest_s=soonest_s, latest_s=latest_s):
            limits = f"{span_of(soonest_s)} to {span_of(latest_s)} after they end"
            return f"every {span_of(interval_s)}, or as its runs choose: {limits}"
        case EventSchedule() | AfterSchedule():
            return _words_of_followed(schedule, repr(followed or getattr(schedule, "row", "")[:8]))


def _words_of_followed(schedule: EventSchedule | AfterSchedule, name: str) -> str:
    if isinstance(schedule, EventSchedule):
        which = f"event {schedule.event}" if schedule.event else "each event"
        of = f"{which} of calendar {schedule.calendar}"
        return (
            f"{span_of(schedule.before_s)} before {of}" if schedule.before_s else f"as {of} begins"
        )
    if schedule.on == "change":
        return f"when {schedule.fact or 'a fact'} of {name} is another, if that is news"
    return f"after each run of {name}{_WHICH[schedule.on]}"


def described(
    row: TimetableRow,
    now: datetime,
    count: int = INSTANTS_SHOWN,
    *,
    ledger: Ledger = NEW,
    followed: str = "",
) -> str:
    """Say when a row is due, and the next instants of it on the clocks of its zone.

    Args:
        ledger: as of `upcoming`.
        followed: the name of the row that it follows, if it does.

    >>> from vigil.contracts.board import CronWork
    >>> now = datetime(2026, 11, 20, tzinfo=UTC)
    >>> row = TimetableRow(
    ...     id="1" * 32, owner="ann", agent="vigil", name="briefing", made_at=now,
    ...     scheduled_at=now, work=CronWork(prompt="What is new?"), zone="Europe/Berlin",
    ...     schedule=CronSchedule(expression="0 9 * * 1-5", zone="Europe/Berlin"))
    >>> print(described(row, now, 3))
    At 09:00 on Monday through Friday (Europe/Berlin); next: Fri 2026-11-20 09:00, \
Mon 2026-11-23 09:00, Tue 2026-11-24 09:00 (Europe/Berlin)
    """
    when = words_of(row.schedule, followed)
    if isinstance(row.schedule, AfterSchedule):
        return when
    if isinstance(row.schedule, ChosenSchedule):
        count = 1  # what follows the next one is its own to choose
    zone = zone_of(row.zone)
    following = [
        f"{at.astimezone(zone):%a %Y-%m-%d %H:%M}"
        for at in islice(upcoming_runs(row, now, ledger), count)
    ]
    return f"{when}; next: {', '.join(following)} ({row.zone})" if following else f"{when}; over"
