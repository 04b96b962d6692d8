"""/api/cron.ics and the links of calendars: when one's rows are due, for programs that show that.

A program that subscribes sends no header, so what proves who asks is in the link: a token of its
own, which reads this and nothing else, and can be ended without touching any other.
"""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import Annotated, Final

import msgspec
import structlog
from fastapi import Depends, Path, Query, Request, Response

from vigil.board.kept import ROWS, KeptBoard
from vigil.contracts import Instant
from vigil.contracts.board import ChosenSchedule
from vigil.errors import InvalidInput
from vigil.settings import tokens
from vigil.settings.tokens import CALENDAR, Principal, Token
from vigil.subjects import Scope
from vigil.texts.glyphs import is_printable

from ..access import listed
from ..callers import Caller, Shared, User, body_of
from ..door import LINKS
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem, erasing, too_many
from ..http.wire import Answer, RequestBody
from ..insight.people import ID_LENGTH, ID_PATTERN, NAME_LENGTH_MAX
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")

FEED_DAYS: Final = 366
"""How far ahead a link tells what no rule describes."""
LINKS_MAX: Final = 20
"""Of one person."""
_PATH: Final = "/api/calendar-links"


class LinkBody(RequestBody, frozen=True, kw_only=True):
    """A new link of a calendar."""

    name: Annotated[str, msgspec.Meta(max_length=NAME_LENGTH_MAX)] = ""
    """For you to tell links apart: "phone"."""


class LinkView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """A link that counts, without what it is."""

    id: str
    user: str
    """Whose rows it tells, with those of their teams."""
    name: str
    created_at: Instant


class LinkMade(LinkView, frozen=True, kw_only=True, omit_defaults=False):
    """A link that was just made."""

    path: str
    """What to subscribe to, at this host. It's stored nowhere, and never told again."""


class ICalendar(str):
    """Text in iCalendar."""

    media_type = "text/calendar"


class LinkList(Answer, frozen=True, kw_only=True):
    """The newest first."""

    links: tuple[LinkView, ...]


async def get_calendar(
    edge: Shared,
    caller: Caller,
    user: User = None,
    days: Annotated[
        int, Query(ge=1, le=366, description="How far ahead, where no rule describes a row")
    ] = 30,
) -> Response:
    """Read when rows are due as iCalendar (RFC 5545): by rules, and where there is none one by one.

    Where there is no room for all, the last that is listed says so.
    """
    return await _calendar(edge, listed(caller, user), days)


async def get_feed(
    request: Request,
    edge: Shared,
    link: Annotated[str, Path(json_schema_extra={"pattern": r"^cal_[A-Za-z0-9_-]{43}\.ics$"})],
) -> Response:
    """Read the calendar of who made the link: what a calendar program subscribes to."""
    caller = await _holder(
        edge, link.removesuffix(".ics"), request.client.host if request.client else ""
    )
    if edge.switches.is_erasing(caller.user):
        raise erasing()
    if wait_s := edge.limiter.take(caller.token_id, edge.clock.monotonic()):
        raise too_many("this link is asked too often", wait_s)
    return await _calendar(edge, caller.reach, FEED_DAYS)


async def list_links(edge: Shared, caller: Caller) -> Response:
    """List your links of calendars; an admin's, everybody's."""
    found = [_view(id_, token) for id_, token in _links(edge, caller)]
    found.sort(key=lambda one: one.created_at, reverse=True)
    return Json(LinkList(links=tuple(found)))


async def make_link(
    edge: Shared, caller: Caller, wanted: Annotated[LinkBody, Depends(body_of(LinkBody))]
) -> Response:
    """Make a link to subscribe to, which this answer alone tells; 422 beyond 20."""
    if edge.switches.is_erasing(caller.user):
        raise erasing()
    if not is_printable(wanted.name):
        raise InvalidInput("name", "must be one line that can be seen")
    own = [token for _, token in _links(edge, caller) if token.user == caller.user]
    if len(own) >= LINKS_MAX:
        raise InvalidInput("name", f"there are {LINKS_MAX} links of yours; end one first")
    now, name = edge.clock.now(), wanted.name
    text = await tokens.create(edge.bus, user=caller.user, now=now, name=name, scope=CALENDAR)
    id_ = tokens.token_id_of(text)[:ID_LENGTH]
    log.info("link made", action="gateway.tokens", by=caller.user, user=caller.user, id=id_[:8])
    made = LinkMade(id=id_, user=caller.user, name=name, created_at=now, path=f"{LINKS}{text}.ics")
    return Json(made, 201)


async def end_link(
    edge: Shared,
    caller: Caller,
    id_: Annotated[
        str,
        Path(
            alias="id",
            description=f"Of a link: {ID_LENGTH} hex digits or more",
            json_schema_extra={"pattern": ID_PATTERN},
        ),
    ],
) -> Response:
    """End a link at once. Calendars keep what they have read."""
    if re.fullmatch(ID_PATTERN, id_) is None:
        raise InvalidInput("id", f"must be {ID_LENGTH} hex digits or more")
    found = [one for one in _links(edge, caller) if one[0].startswith(id_)]
    if len(found) != 1:
        raise Problem(404, "there is no such link")
    ((whole, token),) = found
    await tokens.revoke(edge.bus, whole)
    log.info("link ended", action="gateway.tokens", by=caller.user, user=token.user, id=whole[:8])
    return Json(_view(whole, token))


def _links(edge: Edge, caller: Principal) -> list[tuple[str, Token]]:
    """Return the links that the caller may see and end."""
    there = edge.tokens.live(edge.clock.now()).items()
    return [
        (id_, one)
        for id_, one in there
        if one.is_link and (caller.is_admin or one.user == caller.user)
    ]


def _view(id_: str, token: Token) -> LinkView:
    return LinkView(
        id=id_[:ID_LENGTH], user=token.user, name=token.name, created_at=token.created_at
    )


async def _holder(edge: Edge, token: str, address: str) -> Principal:
    """Return whose link that is. Raises: Problem: nobody's; who guesses is slowed down."""
    now = edge.clock.now()
    found = edge.tokens.find(token, now, CALENDAR)
    if found is not None:
        return found
    if wait_s := edge.failures.take(address, edge.clock.monotonic()):
        raise too_many("too many requests with bad links", wait_s)
    found = await edge.tokens.find_fresh(token, now, CALENDAR)
    if found is None:
        raise Problem(404, "there is no such link, or it was ended")
    return found


async def _calendar(edge: Edge, whose: tuple[Scope, ...], days: int) -> Response:
    board, now = KeptBoard(edge.bus, ROWS), edge.clock.now()
    there = [one.entity for each in whose for one in await board.all(each)]
    ledgers = {
        row.id: (await edge.slots.last(Scope(row.agent, row.owner), row.id)).ledger
        for row in there
        if isinstance(row.schedule, ChosenSchedule)
    }
    until = now + timedelta(days=days)
    # A hundred rows take a second to compare.
    from .calendar import calendar_of  # 40 ms of icalendar, of which most starts need nothing

    data = await asyncio.to_thread(calendar_of, there, now, until, ledgers)
    headers = {"cache-control": "no-store", "content-type": "text/calendar; charset=utf-8"}
    return Response(data, headers=headers)


ENDPOINTS: Final = (
    Endpoint("GET", "/api/cron.ics", get_calendar, {200: ICalendar}, (403, 422, 503)),
    Endpoint("GET", f"{LINKS}{{link}}", get_feed, {200: ICalendar}, (404, 422, 429, 503)),
    Endpoint("GET", _PATH, list_links, {200: LinkList}),
    Endpoint("POST", _PATH, make_link, {201: LinkMade}, (413, 422, 503), LinkBody),
    Endpoint("DELETE", f"{_PATH}/{{id}}", end_link, {200: LinkView}, (404, 422, 503)),
)
