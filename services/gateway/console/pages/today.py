"""Today: what needs you, what happened since you looked, what comes next, what it cost, and what
doesn't run."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any, Final

from vigil.board.kinds.action import ActionListing
from vigil.board.kinds.job import JobList
from vigil.board.kinds.preference import PreferenceListing
from vigil.board.kinds.row import RowListing, RowView
from vigil.board.kinds.task import TaskListing
from vigil.subjects import SessionKey

from ...http.wire import Readiness, SessionList, TimerList, Transcript
from ...timetable.autonomy import AutonomyView
from ...timetable.slots import FindingListing, SlotListing, SlotView
from ...work.cost import CostLine, Costs
from ...work.health import HealthView
from ...work.letters import DeadLetterPage
from ..shapes import journal
from ..shapes.runs import latest
from ..visit import Visit

SHOWN_MAX: Final = 8
NEW_MAX: Final = 40
"""Lines of what happened since the last look."""
READ_MAX: Final = 40
"""Of each kind that are looked through for them."""
SLOTS_MAX: Final = 20
"""Of the ledger: each is an exchange with the broker, one after the other."""
TALKS_MAX: Final = 12
"""Conversations that are looked through for what is unread."""
DAYS: Final = 7
TALK_MAX: Final = 100
"""Messages of the home that are looked through for those that nobody asked for."""
FIRST: Final = timedelta(days=1)
"""What is told to who was never here."""


async def show(visit: Visit) -> dict[str, Any]:
    api = visit.api
    home = SessionKey(visit.reader.user, "vigil", visit.person.home_thread)
    (
        (asked, rows, findings, costs),
        (ready, health, timers),
        (lines, slots),
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
            api.get(TimerList, f"/api/sessions/{home}/timers"),
        ),
        _lines(visit, str(home)),
    )
    lines = [*lines, *journal.of_slots(latest(slots))]
    since = await visit.last_here()
    new, more, old = journal.split_at(lines, since or visit.now - FIRST, NEW_MAX, SHOWN_MAX)
    waiting = [one for one in asked if visit.may_decide(one.session_key)]
    return {
        "waiting": waiting[:SHOWN_MAX],
        "waiting_count": len(waiting),
        "home": str(home),
        "since": since,
        "happened": new,
        "more": more,
        "before": old,
        "timers": timers.timers[:SHOWN_MAX],
        "coming": coming(rows.rows)[:SHOWN_MAX],
        "findings": findings.findings[:SHOWN_MAX],
        "today_micro_usd": spent(costs.lines, f"{visit.now.astimezone(visit.zone):%Y-%m-%d}"),
        "week_micro_usd": sum(one.micro_usd for one in costs.lines),
        "calls": sum(one.calls for one in costs.lines),
        "calls_unpriced": sum(one.calls_unpriced for one in costs.lines),
        "ready": ready,
        "circuits": [one for one in health.circuits if one.state != "closed"],
    }


async def _lines(visit: Visit, home: str) -> tuple[list[journal.JournalLine], tuple[SlotView, ...]]:
    """Return what happened lately, of each kind the newest, in no order; and the slots, whose rows
    have names."""
    api = visit.api
    (
        (talk, talks, actions, slots, dead),
        (done, failed, jobs, cycles, learnt),
    ) = await asyncio.gather(
        asyncio.gather(
            api.get(Transcript, f"/api/sessions/{home}", limit=TALK_MAX),
            api.get(SessionList, "/api/sessions", order="newest", archived=False, limit=TALKS_MAX),
            api.get(ActionListing, "/api/actions", limit=READ_MAX),
            api.get(SlotListing, "/api/slots", limit=SLOTS_MAX),
            api.get(DeadLetterPage, "/api/dead", open=True, limit=READ_MAX),
        ),
        asyncio.gather(
            api.get(TaskListing, "/api/tasks", status="done", limit=READ_MAX),
            api.get(TaskListing, "/api/tasks", status="failed", limit=READ_MAX),
            api.get(JobList, "/api/jobs", limit=READ_MAX),
            api.get(AutonomyView, "/api/autonomy"),
            api.get(PreferenceListing, "/api/preferences", limit=READ_MAX),
        ),
    )
    mine = [one for one in cycles.cycles if one.owner == visit.reader.user]
    told = [
        *journal.of_messages(talk.messages, home),
        *journal.of_unread(talks.sessions, home),
        *journal.of_actions(actions.actions),
        *journal.of_tasks((*done.tasks, *failed.tasks)),
        *journal.of_jobs(jobs.jobs),
        *journal.of_letters(dead.letters),
        *journal.of_cycles(mine),
        *journal.of_preferences(learnt.preferences),
    ]
    return told, slots.slots


def coming(rows: tuple[RowView, ...]) -> list[tuple[datetime, RowView]]:
    """Return the next instant of each row that has one, soonest first."""
    found = [(one.next_at[0], one) for one in rows if one.next_at]
    return sorted(found, key=lambda pair: pair[0])


def spent(lines: tuple[CostLine, ...], day: str) -> int:
    """Return what a day came to, in millionths of a dollar."""
    return sum(one.micro_usd for one in lines if one.day == day)
