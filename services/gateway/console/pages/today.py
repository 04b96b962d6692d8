"""Today: what needs you, what agents did, what comes next, what it cost, and what doesn't run."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any, Final

from vigil.subjects import SessionKey

from ...board.actions import ActionListing
from ...http.wire import Readiness, TimerList, Transcript, TranscriptMessage
from ...timetable.rows import RowListing, RowView
from ...timetable.slots import FindingListing
from ...work.cost import CostLine, Costs
from ...work.health import HealthView
from ..visit import Visit

SHOWN_MAX: Final = 8
DAYS: Final = 7
TALK_MAX: Final = 100
"""Messages of the home that are looked through for those that nobody asked for."""


async def show(visit: Visit) -> dict[str, Any]:
    api = visit.api
    home = SessionKey(visit.reader.user, "vigil", visit.person.home_thread)
    (asked, actions, rows, findings, costs), (ready, health, talk, timers) = await asyncio.gather(
        asyncio.gather(
            visit.open_requests(),
            api.get(ActionListing, "/api/actions", limit=SHOWN_MAX),
            api.get(RowListing, "/api/cron"),
            api.get(FindingListing, "/api/slots/findings"),
            api.get(Costs, "/api/cost", days=DAYS, by="day"),
        ),
        asyncio.gather(
            api.checks(Readiness, "/readyz"),
            api.get(HealthView, "/api/health"),
            api.get(Transcript, f"/api/sessions/{home}", limit=TALK_MAX),
            api.get(TimerList, f"/api/sessions/{home}/timers"),
        ),
    )
    since = await visit.last_here()
    waiting = [one for one in asked if visit.may_decide(one.session_key)]
    return {
        "waiting": waiting[:SHOWN_MAX],
        "waiting_count": len(waiting),
        "actions": actions.actions,
        "home": str(home),
        "since": since,
        "is_new": lambda at: since is not None and at > since,
        "unasked": unasked(talk.messages)[:SHOWN_MAX],
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


def unasked(messages: tuple[TranscriptMessage, ...]) -> list[TranscriptMessage]:
    """Return what an agent said by itself, the newest first: it carries a tag that says so."""
    return [one for one in reversed(messages) if one.role == "assistant" and one.tag]


def coming(rows: tuple[RowView, ...]) -> list[tuple[datetime, RowView]]:
    """Return the next instant of each row that has one, soonest first."""
    found = [(one.next_at[0], one) for one in rows if one.next_at]
    return sorted(found, key=lambda pair: pair[0])


def spent(lines: tuple[CostLine, ...], day: str) -> int:
    """Return what a day came to, in millionths of a dollar."""
    return sum(one.micro_usd for one in lines if one.day == day)
