"""What a row of the timetable may hold: each refusal names the field and the reason. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from ..contracts import (
    SOCKET,
    TimetableRow,
)
from ..contracts.board import (
    AfterSchedule,
    ChosenSchedule,
    CronSchedule,
    CronWork,
    EventSchedule,
    EverySchedule,
    OnceSchedule,
    Schedule,
    is_watch_only,
    kind_of,
)
from ..errors import InvalidInput
from ..facts.followed import check_hook
from ..facts.hooked import hooks_for
from ..facts.news import check_rules
from ..facts.observed import check_places
from ..facts.shape import check_shapes
from ..minds import KIND as MIND
from ..settings import models
from ..settings.config import Config
from ..settings.hours import hours_of
from ..skills.form import check_name as check_skill_name
from ..subjects import Scope, SessionKey, check_part
from ..tasks.check import check_text
from ..texts.glyphs import is_printable
from ..watching.watched import check_watched
from ..words.nearest import meant
from ..zones.wall import END
from . import chain
from .bounds import (
    BEFORE_S_MAX,
    GRACE_S_MAX,
    INTERVAL_S_MAX,
    INTERVAL_S_MIN,
    JITTER_S_MAX,
    NAME_LENGTH_MAX,
    PROMPT_LENGTH_MAX,
    SOONEST_S_MIN,
    TIMEOUT_S_MAX,
    TIMEOUT_S_MIN,
    TOKENS_MAX,
)
from .instants.cron import check_cron
from .instants.once import check_zone

EVENT_HANDLE: Final = re.compile(r"[0-9a-f]{8}")
ROW_ID: Final = re.compile(r"[0-9a-f]{32}")
BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)


def check(row: TimetableRow) -> TimetableRow:
    """Return a row that may be kept. Raises: InvalidInput."""
    check_part("owner", row.owner)
    check_part("agent", row.agent)
    name = check_text("name", row.name, NAME_LENGTH_MAX)
    if not name.strip() or not is_printable(name):
        raise InvalidInput("name", "must be one line that says something")
    check_schedule(row.schedule)
    check_zone(row.zone)
    if isinstance(row.schedule, OnceSchedule) and row.schedule.at < row.scheduled_at:
        raise InvalidInput("at", f"{row.schedule.at.isoformat()} is over: it would never be due")
    hours_of(row.active_hours)
    _check_range("grace_s", row.grace_s or 0, 0, GRACE_S_MAX)
    _check_range("jitter_s", row.jitter_s, 0, JITTER_S_MAX)
    _check_range("timeout_s", row.work.timeout_s, TIMEOUT_S_MIN, TIMEOUT_S_MAX)
    _check_range("daily_tokens", row.work.daily_tokens, 0, TOKENS_MAX)
    if isinstance(row.work, CronWork):
        _check_work(row, row.work)
    return row


def _check_work(row: TimetableRow, work: CronWork) -> None:
    has_prompt = bool(check_text("prompt", work.prompt, PROMPT_LENGTH_MAX).strip())
    if not (has_prompt or work.skill or is_watch_only(work)):
        raise InvalidInput("prompt", "must say what is to be done, if no skill does")
    _check_facts(work, is_run=has_prompt or bool(work.skill))
    if work.skill:
        check_skill_name(work.skill)
    _check_target(row, work.target)
    if work.watch is None:
        return
    check_watched(work.watch)
    if isinstance(row.schedule, AfterSchedule):
        raise InvalidInput("watch", "goes with times: what follows another runs with its result")


def _check_facts(work: CronWork, *, is_run: bool) -> None:
    check_shapes(work.facts)
    check_rules(work.news, work.facts)
    check_places(work.looked, work.facts, work.watch)
    untold = [name for name in work.facts if name not in work.looked]
    if untold and not is_run:
        reason = "is told by no run: say what is to be done, or where a look finds it"
        raise InvalidInput(f"facts.{untold[0]}", reason)


def check_schedule(schedule: Schedule) -> None:
    """Raises: InvalidInput: it is never due, or no schedule."""
    match schedule:
        case CronSchedule(expression=expression, zone=zone):
            check_cron(expression, zone)
        case EverySchedule(interval_s=interval_s):
            _check_range("interval_s", interval_s, INTERVAL_S_MIN, INTERVAL_S_MAX)
        case ChosenSchedule(interval_s=interval_s, soonest_s=soonest_s, latest_s=latest_s):
            _check_range("soonest_s", soonest_s, SOONEST_S_MIN, INTERVAL_S_MAX)
            _check_range("latest_s", latest_s, SOONEST_S_MIN, INTERVAL_S_MAX)
            if not soonest_s <= interval_s <= latest_s:
                reason = f"must be from soonest_s to latest_s, {soonest_s} to {latest_s}"
                raise InvalidInput("interval_s", f"{reason}, is {interval_s}")
        case AfterSchedule(row=row):
            if not ROW_ID.fullmatch(row):
                raise InvalidInput("after", f"{row[:100]!r} is no id of a row: 32 hex digits")
        case EventSchedule(event=event, before_s=before_s):
            _check_range("before_s", before_s, 0, BEFORE_S_MAX)
            if event and not EVENT_HANDLE.fullmatch(event):
                reason = "must be the 8 digits that stand behind the calendar's name in its id"
                raise InvalidInput("event", reason)
        case OnceSchedule(at=at):
            if not BEGINNING <= at < END:
                years = f"{BEGINNING.year} to {END.year - 1}"
                raise InvalidInput("at", f"{at.isoformat()} must be of the years {years}")


def fitted(row: TimetableRow, others: Sequence[TimetableRow]) -> TimetableRow:
    """Return a row that may be among the owner's others: no two have one name, and what it follows
    is there (`chain.fitted`). The system's names don't count.

    Args:
        others: ended ones, and it as it was, too.

    Raises:
        InvalidInput: it newly has the name of another, or newly follows what it can't.
    """
    there = {one.id: one for one in others if not one.is_removed}
    before = there.get(row.id)
    if not (row.is_of_system or row.is_removed or (before and before.name == row.name)):
        theirs = {one.name for one in there.values() if not one.is_of_system and one.id != row.id}
        if row.name in theirs:
            raise InvalidInput("name", f"{row.name!r} is the name of another row already")
    return chain.fitted(row, others)


def check_known(row: TimetableRow, before: TimetableRow | None, config: Config) -> None:
    """Check what a row newly names of the configuration; what it named before may be gone.

    Raises:
        InvalidInput: there is no such channel, model or hook.
    """
    work, old = row.work, None if before is None else before.work
    schedule = row.schedule
    is_new = before is None or before.schedule != schedule
    if isinstance(schedule, AfterSchedule) and schedule.hook and is_new:
        check_hook(schedule, hooks_for(config.hooks, Scope(row.agent, row.owner)))
    if isinstance(schedule, EventSchedule) and is_new:
        whose = Scope(row.agent, row.owner)
        theirs = sorted(name for name, one in config.calendars.items() if one.scope == whose)
        _check_among("calendar", schedule.calendar, theirs, "no calendar of theirs")
    if not isinstance(work, CronWork) or not isinstance(old, CronWork | None):
        return  # the system's own rows name nothing
    targets = (MIND, SOCKET, *config.channels)
    if is_channel(work.target) and (old is None or old.target != work.target):
        _check_among("target", work.target, targets, "no conversation's key and no channel")
    known = {*models.names(config).values(), *config.models} - {""}
    if work.model and (old is None or old.model != work.model):
        _check_among("model", work.model, sorted(known), "no model of the configuration")
        usual = models.name_of(config, agent=row.agent, profile=kind_of(work), tier="cheap")
        least = models.context_tokens_of(config, usual)
        if models.context_tokens_of(config, work.model) < least:
            raise InvalidInput("model", f"holds less than the {least} tokens that jobs may have")


def is_channel(target: str) -> bool:
    """Whether a row is told through a channel.

    >>> is_channel("mail"), is_channel("ann:vigil:news"), is_channel("mind"), is_channel("")
    (True, False, False, False)
    """
    return bool(target) and target != MIND and ":" not in target


def _check_among(field: str, value: str, known: Sequence[str], what: str) -> None:
    if value not in known:
        raise InvalidInput(field, f"{value[:100]!r} is {what}{meant(value[:100], known)}")


def _check_target(row: TimetableRow, target: str) -> None:
    if not target or target == MIND or is_channel(target):
        return
    key = SessionKey.parse(target)
    if (key.user, key.agent) != (row.owner, row.agent) or key.is_system:
        reason = f"must be a conversation of {row.owner} with {row.agent}"
        raise InvalidInput("target", f"{reason}, as {row.owner}:{row.agent}:THREAD")


def _check_range(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInput(field, f"must be from {least} to {most}, is {value}")
