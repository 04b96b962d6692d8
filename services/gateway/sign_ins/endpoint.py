"""/api/servers/{name}/sign-in: sign in to an MCP server by OAuth, and out, for admins.

What a browser comes back with is taken at the console's path, without a cookie: it comes from the
server's page, and with what only the one who began can know.
"""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec
import structlog
from fastapi import Depends, Response

from vigil.net.ssrf import URL_LENGTH_MAX
from vigil.oauth import kept

from ..callers import Admin, Shared, body_of
from ..endpoint import Endpoint
from ..http.browser import PATH as CONSOLE
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Answer, RequestBody
from ..servers.endpoint import KnownName, known_server
from ..state.edge import Edge
from ..written_settings import read_settings

log = structlog.get_logger("vigil.gateway")

BACK: Final = "/signed-in"
"""Where browsers come back to, below the console."""


class SignInBegun(Answer, frozen=True, kw_only=True):
    """A sign-in that a person is to make in a browser, within ten minutes."""

    link: str
    """The server's own page, to be followed."""


class SignInWanted(RequestBody, frozen=True, kw_only=True):
    """Where this gateway is, as the browser of whoever signs in sees it."""

    gateway: Annotated[str, msgspec.Meta(max_length=URL_LENGTH_MAX)] = ""
    """Its address, such as `https://vigil.example.org`; default: `gateway.public_url`, which counts
    more, or as this request sees it."""


class SignedOut(Answer, frozen=True, kw_only=True):
    """A sign-in that ended."""

    is_revoked: bool
    """Whether it ended where it was made, too; otherwise there when its tokens expire."""


async def sign_in(
    edge: Shared,
    caller: Admin,
    name: KnownName,
    wanted: Annotated[SignInWanted, Depends(body_of(SignInWanted))],
) -> Response:
    """Begin to sign in to a server by its own page, in a browser -> the link. Needs an admin token.

    The browser comes back to this gateway, which keeps the tokens for the executor.
    """
    from vigil.oauth.signing_in import SignInFailed

    settings = await read_settings(edge)
    section = known_server(settings, name)
    if not section.url:
        raise Problem(422, f"{name} is a program, which nobody signs in to", field="name")
    back = (edge.public.url or _origin(edge, wanted.gateway)) + CONSOLE + BACK
    try:
        link = await edge.sign_ins.begin(settings.home, name, section, back, edge.bus.broker_ports)
    except SignInFailed as error:
        raise Problem(422, f"{name}: {error}") from error
    log.info("signing in", action="gateway.servers", by=caller.user, server=name)
    return Json(SignInBegun(link=link), 201)


async def sign_out(edge: Shared, caller: Admin, name: KnownName) -> Response:
    """End a sign-in to a server, here and where it was made. Needs an admin token."""
    from vigil.oauth.sign_out import sign_out as end

    settings = await read_settings(edge)
    section = known_server(settings, name)
    if not kept.path_of(settings.home, name).exists():
        raise Problem(404, f"nobody is signed in to {name}", field="name")
    is_revoked = await end(
        settings.home,
        name,
        section.url,
        allow_private=section.allow_private,
        ports_never=edge.bus.broker_ports,
    )
    log.info("signed out", action="gateway.servers", by=caller.user, server=name)
    return Json(SignedOut(is_revoked=is_revoked))


def _origin(edge: Edge, given: str) -> str:
    """Return the address that a browser comes back to. Raises: Problem, 422: it isn't ours."""
    try:
        parts = urlsplit(given or f"http://127.0.0.1:{edge.context.facts['port']}")
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise Problem(422, "is no address", field="gateway") from error
    if parts.scheme not in ("http", "https") or host not in edge.hosts or "@" in parts.netloc:
        raise Problem(422, "is no address of this gateway", field="gateway")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port else "")


_PATH: Final = "/api/servers/{name}/sign-in"
ENDPOINTS: Final = (
    Endpoint(
        "POST",
        _PATH,
        sign_in,
        {201: SignInBegun},
        (403, 404, 413, 422, 503),
        SignInWanted,
    ),
    Endpoint("DELETE", _PATH, sign_out, {200: SignedOut}, (403, 404, 422, 503)),
)
