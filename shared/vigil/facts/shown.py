"""How facts are shown: a line each, with source and age (FLOW F-10, F-11). Pure.

Each value is looked at once more by its shape: what doesn't fit isn't shown, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Final, NamedTuple

from ..contracts import TimetableRow
from ..contracts.board import (
    AnInstant,
    AutonomyWork,
    BoardGoal,
    BoundedNumber,
    CronWork,
    FactShape,
    KnownFact,
    MailWork,
    SourceFacts,
    watch_of,
)
from ..contracts.board.approval import short_name
from ..teams import TEAM
from ..zones.database import zone_named
from .shape import MOVING, NAME
from .value import fits
from .wanted import WantedFact

LINES_MAX: Final = 20
"""Lines of facts in a prompt."""
FULL_TOLD: Final = (
    "The facts of {name} changed so much today that no more are taken until 00:00 UTC "
    "(`cortex.fact_bits_per_day`)."
)
SHOWN_FOR: Final = timedelta(days=7)
"""What wasn't told for so long is shown to no model any more: it may not hold."""


def shapes_of(row: TimetableRow) -> Mapping[str, FactShape]:
    """Return the facts that a row names."""
    return row.work.facts if isinstance(row.work, CronWork | AutonomyWork | MailWork) else {}


def wanted_of(row: TimetableRow) -> Mapping[str, WantedFact]:
    """Return the facts that a row names, with where they are found and what of them is news."""
    work = row.work
    if not isinstance(work, CronWork | AutonomyWork | MailWork):
        return {}
    looked = {} if isinstance(work, AutonomyWork) else work.looked
    return {
        name: WantedFact(shape, looked.get(name, ""), work.news.get(name, ""))
        for name, shape in work.facts.items()
    }


def wanted_of_goal(goal: BoardGoal) -> Mapping[str, WantedFact]:
    """Return the facts that a goal names, and which changes of them are news."""
    named = goal.facts.items()
    return {name: WantedFact(shape, "", goal.news.get(name, "")) for name, shape in named}


def of_row(row: TimetableRow, source: SourceFacts | None) -> tuple[KnownFact, ...]:
    """Return what is known by a row of the facts that it names now, in its order."""
    return named_of(shapes_of(row), source)


def named_of(shapes: Mapping[str, FactShape], source: SourceFacts | None) -> tuple[KnownFact, ...]:
    """Return what is known of facts that are named so now, in their order."""
    known = {} if source is None else {one.name: one for one in source.facts}
    named = ((known.get(name), shape) for name, shape in shapes.items())
    return tuple(one for one, shape in named if one is not None and one.shape == shape)


def news_of(source: SourceFacts) -> tuple[KnownFact, ...]:
    """Return the facts that its newest telling changed, if that is news."""
    news = () if source.newest is None else source.newest.news
    return tuple(one for one in source.facts if one.name in news)


def described(fact: KnownFact, zone: tzinfo, now: datetime) -> str:
    """Say what a fact is and was, and since when; empty: its value has no such shape.

    >>> from datetime import UTC
    >>> from vigil.contracts.board import OneOf
    >>> now = datetime(2026, 11, 20, 8, 30, tzinfo=UTC)
    >>> at, shape = now.replace(hour=1, minute=10), OneOf(values=("red", "green"))
    >>> fact = KnownFact(name="ci", shape=shape, value="red", was="green", since=at, at=at)
    >>> described(fact, UTC, now)
    'ci: red since 01:10, was green'
    """
    value = shown(fact.value, fact, fact.since, zone)
    if not value or not NAME.fullmatch(fact.name):
        return ""
    was = shown(fact.was, fact, fact.since, zone) if fact.was else ""
    since = f" since {when(fact.since, zone, now)}" if not isinstance(fact.shape, MOVING) else ""
    return f"{fact.name}: {value}{since}{f', was {was}' if was else ''}"


def text_of(facts: Iterable[KnownFact], zone: str, now: datetime) -> str:
    """Say what facts are, a line each, on the clocks of a zone."""
    said = (described(one, zone_named(zone), now) for one in facts)
    return "\n".join(filter(None, said)) or "No fact is known."


def shown(value: str, fact: KnownFact, at: datetime, zone: tzinfo) -> str:
    """Return a value as people read it; empty: it doesn't fit."""
    if not fits(value, fact.shape, at):
        return ""
    if isinstance(fact.shape, AnInstant):
        return f"{datetime.fromisoformat(value).astimezone(zone):%Y-%m-%d %H:%M}"
    unit = fact.shape.unit if isinstance(fact.shape, BoundedNumber) else ""
    return f"{value} {unit}".rstrip()


def when(at: datetime, zone: tzinfo, now: datetime) -> str:
    """Say when something was, on the clocks of a zone.

    >>> from datetime import UTC
    >>> when(datetime(2026, 11, 20, 1, 10, tzinfo=UTC), UTC, datetime(2026, 11, 21, tzinfo=UTC))
    '2026-11-20 01:10'
    """
    local = at.astimezone(zone)
    is_today = local.date() == now.astimezone(zone).date()
    return f"{local:%H:%M}" if is_today else f"{local:%Y-%m-%d %H:%M}"


def age(at: datetime, now: datetime) -> str:
    """Say how long ago something was.

    >>> from datetime import UTC
    >>> at = datetime(2026, 11, 20, tzinfo=UTC)
    >>> [age(at, at + timedelta(minutes=each)) for each in (0, 40, 150, 4000)]
    ['just now', '40 min ago', '2 h ago', '2 days ago']
    """
    minutes = max(int((now - at).total_seconds() // 60), 0)
    if minutes < 1:
        return "just now"
    if minutes < 120:
        return f"{minutes} min ago"
    hours = minutes // 60
    return f"{hours} h ago" if hours < 48 else f"{hours // 24} days ago"


def called(row: TimetableRow) -> str:
    """Return what a row is called where its facts are shown: of a team's by its id, as one member's
    words are no other's.
    """
    if isinstance(row.work, AutonomyWork):
        return CYCLES
    if isinstance(row.work, MailWork):
        return f"{MAIL}{row.work.mailbox}"
    kind = "cron" if watch_of(row.work) is None else "watch"
    return f"{kind} {row.id[:8] if row.owner == TEAM else row.name}"


CYCLES: Final = "cycles"
"""What cycles are called as a source."""
MAIL: Final = "mail "
GOAL: Final = "goal "
HOOK: Final = "hook "
"""Begin what a mailbox, a goal, or a hook, is called as a source."""


class NamedSource(NamedTuple):
    """What tells facts, and which it names now."""

    called: str
    """As people call it: `cron briefing`."""
    id: str
    shapes: Mapping[str, FactShape]


def goals_for(goals: Iterable[BoardGoal]) -> tuple[NamedSource, ...]:
    """Return the goals that name facts and haven't ended: called by the name that a word of the
    person's ends them by, as a goal's words may be a model's."""
    return tuple(
        NamedSource(f"{GOAL}{short_name(one.id, 'g')}", one.id, one.facts)
        for one in goals
        if one.facts and one.status in ("active", "paused")
    )


def lines(
    rows: Iterable[TimetableRow],
    others: Iterable[NamedSource],
    sources: Iterable[SourceFacts],
    zone: tzinfo,
    now: datetime,
) -> tuple[str, ...]:
    """Return what is known by all sources of an owner, always in the same order.

    Args:
        rows: of the timetable.
        others: what else tells facts.
        sources: what is known by them.
    """
    known = {one.id: one for one in sources}
    if not known:
        return ()
    there = [NamedSource(called(one), one.id, shapes_of(one)) for one in rows if not one.is_removed]
    found = [
        f"{said} ({source.called}, {age(fact.at, now)}{', left out since' * fact.is_left_out})"
        for source in sorted((*there, *others), key=lambda one: one[:2])
        for fact in named_of(source.shapes, known.get(source.id))
        if now - fact.at <= SHOWN_FOR and (said := described(fact, zone, now))
    ]
    left = len(found) - LINES_MAX
    more = (f"{left} more: `vigil facts` has them",) if left > 0 else ()
    return (*found[:LINES_MAX], *more)
