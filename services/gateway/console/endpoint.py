"""/api/console: a link that lets a browser in, and the browsers that are signed in."""

from __future__ import annotations

from typing import Annotated, Final

import structlog
from fastapi import Depends, Response

from vigil.contracts import Instant
from vigil.settings.tokens import Principal

from ..callers import Caller, Shared, id_of
from ..endpoint import Endpoint
from ..http.browser import PATH
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Answer
from ..push.ends import sign_out
from ..state.browsers import Browser
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")

Id = Annotated[str, Depends(id_of("a browser"))]


class ConsoleLink(Answer, frozen=True, kw_only=True):
    """Lets one browser in, once."""

    path: str
    """Below the address of the gateway."""
    url: str = ""
    """The whole link, if `gateway.public_url` says where people reach it."""
    expires_at: Instant


class BrowserView(Answer, frozen=True, kw_only=True):
    """A browser that is signed in to the console."""

    id: str
    name: str
    """What it is, by its own account."""
    created_at: Instant
    expires_at: Instant


class BrowserList(Answer, frozen=True, kw_only=True):
    """The newest first."""

    browsers: tuple[BrowserView, ...]


async def make_console_link(edge: Shared, caller: Caller) -> Response:
    """Make a link that signs a browser in to the console: good once, for two minutes."""
    code, until = await edge.browsers.make_link(caller.token_id, edge.clock.now())
    path = f"{PATH}/enter?code={code}"
    url = f"{edge.public.url}{path}" if edge.public.url else ""
    return Json(ConsoleLink(path=path, url=url, expires_at=until), 201)


async def list_browsers(edge: Shared, caller: Caller) -> Response:
    """List the browsers in which you are signed in to the console."""
    there = await _own(edge, caller)
    shown = [_view(id_, one) for id_, one in there.items()]
    shown.sort(key=lambda one: one.created_at, reverse=True)
    return Json(BrowserList(browsers=tuple(shown)))


async def end_browser(edge: Shared, caller: Caller, id_: Id) -> Response:
    """Sign a browser out, at once."""
    found = (await _own(edge, caller)).get(id_)
    if found is None:
        raise Problem(404, "there is no such browser")
    await sign_out(edge, id_)
    log.info("signed out", action="gateway.signed_out", by=caller.user, browser=id_)
    return Json(_view(id_, found))


async def _own(edge: Edge, caller: Principal) -> dict[str, Browser]:
    now = edge.clock.now()
    return {
        id_: one
        for id_, one in (await edge.browsers.all(now)).items()
        if (who := edge.tokens.find_id(one.token_id, now)) and who.user == caller.user
    }


def _view(id_: str, one: Browser) -> BrowserView:
    return BrowserView(id=id_, name=one.name, created_at=one.created_at, expires_at=one.expires_at)


_B: Final = "/api/console/browsers"
ENDPOINTS: Final = (
    Endpoint("POST", "/api/console/links", make_console_link, {201: ConsoleLink}, (503,)),
    Endpoint("GET", _B, list_browsers, {200: BrowserList}, (503,)),
    Endpoint("DELETE", f"{_B}/{{id}}", end_browser, {200: BrowserView}, (404, 422, 503)),
)
