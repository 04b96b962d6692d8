"""Today: what needs you, what happened since you looked, what comes next, what it cost, and what
doesn't run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from vigil.board.kinds.action import ActionListing
from vigil.board.kinds.job import JobList
from vigil.board.kinds.preference import PreferenceListing
from vigil.board.kinds.row import RowListing, RowView
from vigil.board.kinds.task import TaskListing
from vigil.settings.tokens import Principal
from vigil.subjects import SessionKey
from vigil.teams import TEAM, reach_of

from ...http.wire import Readiness, SessionList, TimerList, Transcript
from ...timetable.autonomy import AutonomyView
from ...timetable.slots import FindingListing, SlotListing
from ...work.cost import CostLine, Costs
from ...work.health import HealthView
from ...work.letters import DeadLetterPage
from ..shapes import journal
from ..shapes.journal import JournalLine
from ..shapes.lists.runs import latest
from ..visit import Visit

SHOWN_MAX: Final = 8
NEW_MAX: Final = 40
"""Lines of what happened since the last look."""
READ_MAX: Final = 40
"""Of each kind that are looked through for them."""
ALL_MAX: Final = 400
"""Lines of that, where somebody wants all."""
SLOTS_MAX: Final = 60
"""Of the ledger, which has two entries of each run: each is an exchange with the broker."""
TALKS_MAX: Final = 12
"""Conversations that are looked through for what is unread."""
DAYS: Final = 7
TALK_MAX: Final = 100
"""Messages of the home that are looked through for those that nobody asked for."""
FIRST: Final = timedelta(days=1)
"""What is told to who was never here."""


async def show(visit: Visit) -> dict[str, Any]:
    api = visit.api
    (
        (asked, rows, findings, costs),
        (ready, health, reminders),
        (lines, of_others),
    ) = await asyncio.gather(
        asyncio.gather(
            visit.open_requests(),
            api.get(RowListing, "/api/cron"),
            api.get(FindingListing, "/api/slots/findings"),
            api.get(Costs, "/api/cost", days=DAYS, by="day"),
        ),
        asyncio.gather(
            api.checks(Readiness, "/readyz"),
            api.get(HealthView, "/api/health"),
            _reminders(visit),
        ),
        _lines(visit),
    )
    since = await visit.last_here()
    most = ALL_MAX if "all" in visit.query else NEW_MAX
    failed = [one for one in lines if one.what == "failed"]
    lines = [one for one in lines if one.what != "failed"]
    went_wrong, _, before = journal.split_at(failed, since or visit.now - FIRST, most, SHOWN_MAX)
    new, more, old = journal.split_at(lines, since or visit.now - FIRST, most, SHOWN_MAX)
    waiting = sorted(
        (one for one in asked if visit.may_decide(one.session_key)),
        key=lambda one: one.expires_at,
    )
    today = f"{visit.now.astimezone(visit.zone):%Y-%m-%d}"
    return {
        "waiting": waiting[:SHOWN_MAX],
        "waiting_count": len(waiting),
        "home": str(visit.home),
        "since": since,
        "happened": new,
        "more": more,
        "failed": went_wrong[::-1],
        "before": sorted([*old, *before], key=lambda one: one.at, reverse=True)[:SHOWN_MAX],
        "others": sorted(of_others, key=lambda one: one.at, reverse=True)[:NEW_MAX],
        "coming": coming(visit, reminders, rows.rows)[:SHOWN_MAX],
        # That one began late is no reason to look at it in the morning.
        "findings": visit.own_first(one for one in findings.findings if one.what != "late")[
            :SHOWN_MAX
        ],
        "today_micro_usd": spent(costs.lines, today),
        "today_unpriced": sum(one.calls_unpriced for one in costs.lines if one.day == today),
        "week_micro_usd": sum(one.micro_usd for one in costs.lines),
        "calls": sum(one.calls for one in costs.lines),
        "calls_unpriced": sum(one.calls_unpriced for one in costs.lines),
        "ready": ready,
        "circuits": [one for one in health.circuits if one.state != "closed"],
    }


async def _lines(visit: Visit) -> tuple[list[JournalLine], list[JournalLine]]:
    """Return what happened lately, of each kind the newest, in no order: of the reader and their
    teams, and of others, which an admin is told apart."""
    api, home = visit.api, str(visit.home)
    (talk, dead, cycles), own, others = await asyncio.gather(
        asyncio.gather(
            api.get(Transcript, f"/api/sessions/{home}", limit=TALK_MAX),
            api.get(DeadLetterPage, "/api/dead", open=True, limit=READ_MAX),
            api.get(AutonomyView, "/api/autonomy", user=visit.reader.user),
        ),
        asyncio.gather(
            *(read(visit, one) for one in _own_of(visit.reader) for read in (_done, _unread))
        ),
        asyncio.gather(*((_done(visit, None),) if visit.reader.is_admin else ())),
    )
    letters = list(journal.of_letters(dead.letters))
    told = [
        *journal.of_messages(talk.messages, home),
        *journal.of_cycles(cycles.cycles),
        *(one for lines in (letters, *own) for one in lines if visit.is_own(one.whose)),
    ]
    of_others = [one for lines in (letters, *others) for one in lines]
    return told, [one for one in of_others if not visit.is_own(one.whose)]


def _own_of(reader: Principal) -> list[str | None]:
    """Return who is asked about for what is a reader's and their teams'; None: whoever they reach.

    An admin reaches everybody, and what is theirs isn't to be crowded out.
    """
    if not reader.is_admin:
        return [None]
    return [reader.user, *([TEAM] if len(reach_of(reader.user, reader.teams)) > 1 else [])]


async def _unread(visit: Visit, user: str | None) -> list[JournalLine]:
    """Return the conversations of somebody's in which something is unread, but for the home."""
    wanted: dict[str, Any] = {"order": "newest", "archived": False, "limit": TALKS_MAX}
    talks = await visit.api.get(SessionList, "/api/sessions", user=user, **wanted)
    return list(journal.of_unread(talks.sessions, str(visit.home)))


async def _done(visit: Visit, user: str | None) -> list[JournalLine]:
    """Return what was done lately for somebody; None: for all whom the reader may reach."""
    api = visit.api
    (slots, rows), (actions, done, failed), (jobs, learnt) = await asyncio.gather(
        asyncio.gather(
            api.get(SlotListing, "/api/slots", user=user, limit=SLOTS_MAX),
            api.get(RowListing, "/api/cron", user=user, all=True),
        ),
        asyncio.gather(
            api.get(ActionListing, "/api/actions", user=user, limit=READ_MAX),
            api.get(TaskListing, "/api/tasks", user=user, status="done", limit=READ_MAX),
            api.get(TaskListing, "/api/tasks", user=user, status="failed", limit=READ_MAX),
        ),
        asyncio.gather(
            api.get(JobList, "/api/jobs", userId=user, limit=READ_MAX),
            api.get(PreferenceListing, "/api/preferences", user=user, limit=READ_MAX),
        ),
    )
    system = {one.id for one in rows.rows if one.made_by == "system"}
    return [
        *journal.of_actions(actions.actions),
        *journal.of_tasks((*done.tasks, *failed.tasks)),
        *journal.of_jobs(jobs.jobs),
        *journal.of_slots(latest(slots.slots), system),
        *journal.of_preferences(learnt.preferences, visit.reader.user),
    ]


class Coming(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is planned."""

    at: datetime
    text: str
    page: str
    when: str = ""
    """How it recurs."""
    is_kept: bool = False
    """Whether it is a reminder that somebody asked for."""
    is_row: bool = False
    owner: str
    agent_id: str


async def _reminders(visit: Visit) -> list[Coming]:
    """Return what is planned in the reader's home, and in what they talked about last."""
    talks = await visit.api.get(SessionList, "/api/sessions", order="newest", limit=TALKS_MAX)
    keys = {str(visit.home), *(one.session_key for one in talks.sessions)}
    own = sorted(key for key in keys if visit.may_decide(key))
    found = await asyncio.gather(
        *(visit.api.get(TimerList, f"/api/sessions/{key}/timers") for key in own)
    )
    return [
        Coming(
            at=one.fire_at,
            text=one.message or one.reason,
            page=f"/conversations/{key}#to-come",
            is_kept=one.keep,
            owner=visit.reader.user,
            agent_id=SessionKey.parse(key).agent,
        )
        for key, timers in zip(own, found, strict=True)
        for one in timers.timers
    ]


def coming(visit: Visit, reminders: Iterable[Coming], rows: Iterable[RowView]) -> list[Coming]:
    """Return what is planned, soonest first; that of others last."""
    found = [
        Coming(
            at=one.next_at[0],
            text=one.name,
            page=f"/timetable/{one.id}",
            when=one.when,
            is_row=True,
            owner=one.owner,
            agent_id=one.agent_id,
        )
        for one in rows
        if one.next_at
    ]
    return visit.own_first(sorted([*reminders, *found], key=lambda one: one.at))


def spent(lines: tuple[CostLine, ...], day: str) -> int:
    """Return what a day came to, in millionths of a dollar."""
    return sum(one.micro_usd for one in lines if one.day == day)
