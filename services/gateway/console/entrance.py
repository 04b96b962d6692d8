"""Coming in and going: a link with a code, a cookie, and who it stands for."""

from __future__ import annotations

import structlog
from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from vigil.settings.tokens import Principal

from ..door import sign_in
from ..http.browser import SECRET, browser_of, cookie_of, is_secure, secret_of
from ..http.problem import erasing, too_many
from ..push.ends import sign_out
from ..state.browsers import LIFE, id_of
from ..state.edge import Edge
from .appearance import html

log = structlog.get_logger("vigil.gateway")


async def reader_of(edge: Edge, request: Request) -> tuple[str, Principal] | None:
    """Return the browser's id and who is signed in with it, None: nobody.

    Raises:
        Problem: 403, they are being erased; 429, too many requests.
    """
    secret = secret_of(request.headers.getlist("cookie"))
    if secret is None:
        return None
    id_, now = id_of(secret), edge.clock.now()
    if not edge.browsers.is_known(id_):
        _take_try(edge, request)
    found = await edge.browsers.find(id_, now)
    reader = None if found is None else edge.tokens.find_id(found.token_id, now)
    if reader is None:
        return None
    if edge.switches.is_erasing(reader.user):
        raise erasing()
    if wait_s := edge.limiter.take(reader.token_id, edge.clock.monotonic()):
        raise too_many("this token makes too many requests", wait_s)
    sign_in(request.scope, reader.user)
    return id_, reader


def signed_out(edge: Edge) -> Response:
    """Tell somebody who isn't signed in how to."""
    answer = html(edge.console, "signed_out.html", {"is_refused": False}, 401)
    answer.headers["www-authenticate"] = 'Bearer realm="vigil"'
    return answer


async def offer(edge: Edge, request: Request) -> Response:
    """Ask whoever follows a link whether to sign in: what only looks at a link uses up none."""
    code = request.query_params.get("code", "")
    user = await _user_of(edge, request, code)
    if user is None:
        return html(edge.console, "signed_out.html", {"is_refused": True}, 410)
    return html(edge.console, "enter.html", {"code": code, "user": user})


async def enter(edge: Edge, request: Request, code: str) -> Response:
    """Use a code up, and set the cookie."""
    user = await _user_of(edge, request, code)
    name = browser_of(request.headers.get("user-agent", ""))
    entered = user and await edge.browsers.enter(code, name, edge.clock.now())
    if not entered:
        return html(edge.console, "signed_out.html", {"is_refused": True}, 410)
    secret, _ = entered
    log.info("signed in", action="gateway.signed_in", by=user, browser=id_of(secret))
    return _with_cookie(edge, request, secret)


async def leave(edge: Edge, request: Request, browser: str) -> Response:
    """Sign this browser out."""
    await sign_out(edge, browser)
    log.info("signed out", action="gateway.signed_out", browser=browser)
    return _with_cookie(edge, request, "")


async def _user_of(edge: Edge, request: Request, code: str) -> str | None:
    """Return whom a code lets in; it's not used up. Raises: Problem, 429."""
    if not SECRET.fullmatch(code):
        return None
    _take_try(edge, request)
    now = edge.clock.now()
    link = await edge.browsers.link(code, now)
    reader = None if link is None else edge.tokens.find_id(link.token_id, now)
    if reader is None or edge.switches.is_erasing(reader.user):
        return None
    return reader.user


def _take_try(edge: Edge, request: Request) -> None:
    """Raises: Problem, 429: this address came with too much that isn't known."""
    address = request.client.host if request.client else ""
    if wait_s := edge.failures.take(address, edge.clock.monotonic()):
        raise too_many("too many attempts to sign in", wait_s)


def _with_cookie(edge: Edge, request: Request, secret: str) -> Response:
    answer = RedirectResponse(edge.console, 303)
    is_safe = is_secure(request.url.scheme, request.headers.get("origin", ""))
    cookie = cookie_of(secret, int(LIFE.total_seconds()), edge.console, is_secure=is_safe)
    answer.headers["set-cookie"] = cookie
    answer.headers["cache-control"] = "no-store"
    return answer
