"""The outermost layer: who is let in. Everything behind it knows who asks.

Host and Origin are checked first (a page of another site must not reach a gateway on the
visitor's own machine, also not by rebinding a name), then the token, then the rate. Only
`/healthz`, `/readyz`, the two documents and the card of A2A need no token (SPEC X-4), and
`/hooks/`, `/channels/`, `/calendar/` and `/console`, where a proof of another kind takes its place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import parse_qs

import structlog
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse
from uvicorn.protocols.utils import ClientDisconnected

from vigil.observe import metrics
from vigil.settings.tokens import PREFIX, Principal

from .access import PRINCIPAL
from .http.browser import PATH, is_of_console
from .http.connections import HttpConnection
from .http.decide import bearer_of, is_host_allowed, is_origin_allowed
from .http.problem import Problem, erasing, of_error, send_problem, too_many, unauthorized
from .http.protocol import CONNECTION
from .http.query import check_query
from .state.edge import Edge

log = structlog.get_logger("vigil.gateway")

CARD: Final = "/.well-known/agent-card.json"
"""Of A2A: it says no more than that there is an agent, and that a token is needed."""
PUBLIC: Final = frozenset({"/healthz", "/readyz", "/openapi.json", "/asyncapi.json", CARD})
HOOKS: Final = "/hooks/"
"""Below it a signature takes the place of the token; the endpoint checks it."""
CHANNELS: Final = "/channels/"
"""Below it the channel's receiver knows what proves who asks."""
GONE: Final = (ClientDisconnected, ClientDisconnect)
"""What is raised when a client went: by the server for a socket, by the framework for a body."""
LINKS: Final = "/calendar/"
"""Below it the link itself proves who asks."""
_TOKEN_NAMES: Final = frozenset({"token", "access_token", "authorization", "api_key"})
_TOKEN_MARK: Final = PREFIX.encode()
_ONCE: Final = {
    b"host": "Host",
    b"origin": "Origin",
    b"authorization": "Authorization",
    b"sec-fetch-site": "Sec-Fetch-Site",
    b"sec-fetch-dest": "Sec-Fetch-Dest",
}
"""Headers of which two would mean one thing to a proxy and another one to us."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Door:
    """An ASGI application around the application."""

    def __init__(self, app: Any, edge: Edge) -> None:
        self._app = app
        self._edge = edge

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        scope = below(scope, self._edge.public.root)
        # Whoever went is told nothing any more, a refusal as little as an answer.
        with contextlib.suppress(*GONE):
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        is_websocket = scope["type"] == "websocket"
        try:
            if not is_websocket:
                send = self._counted(scope, send)
            if not await self._admit(scope, is_websocket):
                # Relative where nothing says below which path of somebody's proxy the gateway is.
                root = self._edge.public.root
                home = f"{root}{PATH}" if root else PATH[1:]
                await RedirectResponse(home, 303)(scope, receive, send)
                return
        except Exception as error:
            problem = of_error(error)
            if problem is None:
                log.exception("request failed", action="gateway.failed", path=_logged(scope))
                problem = Problem(500, "something went wrong here; it was logged")
            await send_problem(send, problem, is_websocket=is_websocket)
            return
        try:
            await self._app(scope, receive, send)
        except GONE:
            raise
        except Exception:
            # The client was told already, by the application's own error handler.
            log.exception("request failed", action="gateway.failed", path=_logged(scope))

    def _counted(self, scope: Any, send: Any) -> Any:
        """Return a `send` that counts the answer once its head is on its way."""
        clock, counts = self._edge.clock, self._edge.context.metrics
        begun_s = clock.monotonic()

        async def counted(message: Any) -> None:
            await send(message)
            if message["type"] == "http.response.start":
                lasted_s = clock.monotonic() - begun_s
                labels = _method_of(scope), _route_of(scope), str(message["status"])
                counts.observe(metrics.REQUEST_SECONDS, lasted_s, *labels)

        return counted

    async def _admit(self, scope: Any, is_websocket: bool) -> bool:
        """Return whether it's let in; else it is a person at the front door, for the console."""
        heads = _heads_of(scope["headers"])
        self._check_names(heads.get(b"host"), heads.get(b"origin"))
        if is_open(scope["path"]) and not is_websocket:
            return True
        if not is_websocket and _is_arrival(scope, heads):
            return False
        query = scope["query_string"]
        if query and _has_token(query):
            raise unauthorized("a token in a URL ends up in logs: send it as Authorization header")
        edge = self._edge
        if (authorization := heads.get(b"authorization")) is not None:
            principal = await self._by_token(authorization.decode("latin-1"), scope["client"])
        elif is_websocket and query:
            principal = self._by_ticket(query)
        else:
            raise unauthorized("send a token: Authorization: Bearer pat_…")
        if edge.switches.is_erasing(principal.user):
            raise erasing()
        if wait_s := edge.limiter.take(principal.token_id, edge.clock.monotonic()):
            raise too_many("this token makes too many requests", wait_s)
        sign_in(scope, principal.user)
        scope[PRINCIPAL] = principal
        check_query(query)
        return True

    def _check_names(self, host: bytes | None, origin: bytes | None) -> None:
        hosts = self._edge.hosts
        if host is None or not is_host_allowed(host.decode("latin-1"), hosts):
            raise Problem(
                421, "this gateway isn't known under that Host; see gateway.allowed_hosts"
            )
        if origin is not None and not is_origin_allowed(origin.decode("latin-1"), hosts):
            raise Problem(403, "pages of that Origin may not use this gateway")

    async def _by_token(self, authorization: str, client: Any) -> Principal:
        edge = self._edge
        token = bearer_of(authorization)
        if token is None:
            raise unauthorized("expected Authorization: Bearer pat_…")
        now = edge.clock.now()
        principal = edge.tokens.find(token, now)
        if principal is not None:
            return principal
        address = client[0] if client else ""
        if wait_s := edge.failures.take(address, edge.clock.monotonic()):
            raise too_many("too many requests with bad tokens", wait_s)
        principal = await edge.tokens.find_fresh(token, now)
        if principal is None:
            raise unauthorized("the token is unknown, revoked or expired")
        return principal

    def _by_ticket(self, query: bytes) -> Principal:
        edge = self._edge
        values = parse_qs(query.decode("latin-1"))
        ticket, session = (values.get(name, [""])[0] for name in ("ticket", "session"))
        if not ticket:
            raise unauthorized("send a token as Authorization header, or a ticket")
        given = edge.tickets.take(ticket, session, edge.clock.monotonic())
        # The token behind the ticket may have ended since.
        principal = given and edge.tokens.find_id(given.token_id, edge.clock.now())
        if principal is None:
            raise unauthorized("the ticket is unknown, used, expired or for another session")
        return principal


def below(scope: Any, root: str) -> Any:
    """Return a request as it is without the path that a proxy has the gateway at, whether or not
    the proxy leaves that out.

    >>> below({"path": "/vigil/console", "raw_path": b"/vigil/console"}, "/vigil")
    {'path': '/console', 'raw_path': b'/console'}
    >>> [below({"path": path}, "/vigil")["path"] for path in ("/vigil", "/vigils", "/api/chat")]
    ['/', '/vigils', '/api/chat']
    """
    path = scope.get("path", "")
    if not root or not (path == root or path.startswith(f"{root}/")):
        return scope
    found = {**scope, "path": path.removeprefix(root) or "/"}
    if raw := scope.get("raw_path"):
        found["raw_path"] = raw.removeprefix(root.encode()) or b"/"
    return found


def sign_in(scope: Any, user: str) -> None:
    """Note that the connection is `user`'s. Raises: Problem, 429 or 503, they are too many."""
    connection: HttpConnection | None = scope.get(CONNECTION)
    if connection is not None:
        connection.sign_in(user)


def _heads_of(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return what tells who asks for what. Raises: Problem, 400: something of it came twice."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _ONCE:
            if name in found:
                raise Problem(400, f"there is more than one {_ONCE[name]} header")
            found[name] = value
    return found


def _is_arrival(scope: Any, heads: dict[bytes, bytes]) -> bool:
    """Return whether a browser opens the gateway's address itself, as somebody types it."""
    is_root = scope["path"] == "/" and scope["method"] in ("GET", "HEAD")
    if not is_root or b"authorization" in heads:
        return False
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


def _method_of(scope: Any) -> str:
    return str(scope["method"]) if scope["method"] in _METHODS else "other"


def _route_of(scope: Any) -> str:
    """Return the template of the path, never the path: that is a client's to choose.

    FastAPI names its own routes in the scope; of a bare one there is the application.
    """
    if scope["path"] in PUBLIC:
        return str(scope["path"])
    return str(getattr(scope.get("route") or scope.get("endpoint"), "path", "none"))


def _logged(scope: Any) -> str:
    """Return the path for the log, which no link belongs in."""
    path = str(scope["path"])
    return f"{LINKS}…" if path.startswith(LINKS) else path


def is_open(path: str) -> bool:
    """Return whether a request may come in without a token."""
    return path in PUBLIC or path.startswith((HOOKS, CHANNELS, LINKS)) or is_of_console(path)


def _has_token(query: bytes) -> bool:
    if _TOKEN_MARK in query:
        return True
    names = {part.partition("=")[0].lower() for part in query.decode("latin-1").split("&")}
    return not names.isdisjoint(_TOKEN_NAMES)
