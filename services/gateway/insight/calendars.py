"""/api/calendars: the calendars of people, and how each is by who keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from fastapi import Response

from vigil.calendars.section import CalendarKind
from vigil.calendars.state import FACT, UNKEPT, CalendarState, CalendarStatus
from vigil.contracts import Instant
from vigil.observe.health import Health
from vigil.subjects import SessionKey

from ..access import listed
from ..callers import Caller, Shared, User
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.wire import Answer


class CalendarView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """A calendar, and how it is. Its address isn't told: it may be a secret."""

    name: str
    kind: CalendarKind
    owner: str
    agent_id: str
    is_writable: bool
    state: CalendarStatus
    """`failing`: the last look failed, and what was seen before counts; `refused`: its server
    refused the password; `not_running`: no executor keeps it."""
    synced_at: Instant | None
    """When it was last seen as it is."""
    problem: str
    """Why the last look failed."""
    remarks: tuple[str, ...]
    """What of it can't be read, or is read otherwise than it says."""
    events: int
    """A series counts as one."""


class CalendarListing(Answer, frozen=True, kw_only=True):
    """By name."""

    calendars: tuple[CalendarView, ...]


def states_in(replicas: Iterable[Health]) -> Mapping[str, CalendarState]:
    """Return how each calendar is that a replica keeps."""
    found: dict[str, CalendarState] = {}
    for replica in replicas:
        for name, told in replica.facts.get(FACT, {}).items():
            found[name] = msgspec.convert(told, CalendarState)
    return found


async def list_calendars(edge: Shared, caller: Caller, user: User = None) -> Response:
    """List calendars, and whether each can be read: one's own and one's teams', or an admin any."""
    scopes, states = listed(caller, user), states_in(await edge.readiness.replicas())
    shown = tuple(
        CalendarView(
            name=name,
            kind=one.kind,
            owner=one.user,
            agent_id=one.agent,
            is_writable=one.is_writable,
            **msgspec.structs.asdict(states.get(name, UNKEPT)),
        )
        for name, one in sorted(edge.context.settings.config.calendars.items())
        if any(whose.covers(SessionKey(one.user, one.agent, "")) for whose in scopes)
    )
    return Json(CalendarListing(calendars=shown))


ENDPOINTS: Final = (
    Endpoint("GET", "/api/calendars", list_calendars, {200: CalendarListing}, (403, 422, 503)),
)
