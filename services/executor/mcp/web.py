"""A server behind a URL: streamable HTTP, to where the URL leads and nowhere else.

Each request is judged by :mod:`vigil.net.guard` before it connects, redirects never leave the
server's origin, and no answer is larger than a message may be. What goes wrong with one request is
told to whom it belongs, as an error of JSON-RPC; the SDK would end the
connection with all calls on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
import msgspec
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from vigil.errors import ConfigError
from vigil.net.client import guarded_client, why_failed
from vigil.net.guard import GuardedTransport, Resolve
from vigil.net.ssrf import RequestRefused, Rules, target_of
from vigil.oauth.bearer import Bearer
from vigil.settings.servers import ToolServer

from ..pairs import read
from ..site_headers import TOKEN_LENGTH_MIN, SiteHeaders
from .ended import REFUSAL_BYTES_MAX, SESSION_ENDED, is_session_gone
from .pace import DEAF, Pace, Unheard
from .schemas import visible
from .stdio import MESSAGE_BYTES_MAX
from .tools import shortened

UNREACHABLE: Final = -32901
"""Our code for: nothing was sent."""
LOST: Final = -32902
"""Our code for: it was sent, and there is no answer."""
GONE: Final = -32903
"""Our code for: it was refused, since its session is no more."""
OURS: Final = secrets.token_hex(16)
"""Comes with an error of our own making: a server may use the same codes, with its own words."""
SIGN_IN: Final = (
    "it wants to know who asks; sign in by `vigil mcp sign-in`, or on the console's page of "
    "servers; or make a token there and put it into headers_file as 'Authorization: Bearer TOKEN'"
)
SAID_MAX: Final = 200
WORDS_S: Final = 2.0
"""How long a refusal waits for its words."""
CONNECT_S: Final = 10.0
SILENCE_S: Final = 300.0
"""How long a stream may be silent; it is opened again then."""


class McpEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server is."""

    url: str
    headers: dict[str, str]
    rules: Rules
    silence_s: float = SILENCE_S


class WebWire:
    """One connection to a server. `connect` may be entered once.

    Args:
        on_end: is called when it is ended for what the server does.
        resolve: None: the system is asked.
        bearer: a person's sign-in, by which it is let in if there is one.
    """

    def __init__(
        self,
        endpoint: McpEndpoint,
        on_end: Callable[[], None],
        resolve: Resolve | None = None,
        bearer: Bearer | None = None,
    ) -> None:
        self._bearer = bearer
        self._endpoint = endpoint
        self._on_end = on_end
        self._outlet = Outlet(GuardedTransport(endpoint.rules, resolve), endpoint.headers)

    @property
    def problem(self) -> str:
        return (self._bearer and self._bearer.problem) or self._outlet.problem

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[Any]:
        endpoint = self._endpoint
        async with (
            guarded_client(
                self._outlet,
                timeout=httpx2.Timeout(CONNECT_S, read=endpoint.silence_s),
                headers=endpoint.headers,
                keeps_cookies=True,
                auth=self._bearer,
            ) as client,
            _transport(endpoint.url, client) as (inbound, outbound),
        ):
            yield _Inbound(inbound, self._outlet, self._on_end), outbound


def _transport(url: str, client: httpx2.AsyncClient) -> AbstractAsyncContextManager[Any]:
    return streamable_http_client(url, http_client=client, max_sse_event_size=MESSAGE_BYTES_MAX)


class Outlet(httpx2.AsyncBaseTransport):
    """Sends requests on by `inner`, and gives each failure to the request that it is about."""

    def __init__(
        self, inner: httpx2.AsyncBaseTransport, secret: Mapping[str, str] | None = None
    ) -> None:
        """Args: secret: headers that are told nobody, though the server repeats them."""
        self._inner = inner
        self._secret = secret or {}
        self.problem = ""
        """What went wrong last; empty: the last request was answered."""
        self.pace = Pace()
        self.unheard = Unheard()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        # The guard puts an address in the place of the name; redirects are compared with the name.
        inner = httpx2.Request(
            request.method,
            request.url,
            headers=request.headers,
            stream=request.stream,
            extensions=dict(request.extensions),
        )
        try:
            response = await self._inner.handle_async_request(inner)
        except RequestRefused as error:
            return self._failed(request, UNREACHABLE, f"the URL {error.reason}", error)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            return self._failed(request, UNREACHABLE, why_failed(error), error)
        except (httpx2.HTTPError, OSError) as error:
            return self._failed(request, LOST, why_failed(error), error)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            return self._failed(request, LOST, "it answers compressed, unasked", None)
        if request.method == "POST":  # a server need not offer the others
            self.unheard.heard()
            self.problem = _refused(response.status_code) if response.is_error else ""
            is_session = "mcp-session-id" in request.headers
            if is_session and response.status_code in (400, 404):
                response = await self._of_session(request, response)
            elif response.is_error and _has_own_words(response):
                response = await self._of_words(request, response)
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        kind = _Bounded if not is_stream else _Paced
        response.stream = kind(response.stream, self.pace)
        return response

    async def _of_session(
        self, request: httpx2.Request, response: httpx2.Response
    ) -> httpx2.Response:
        """Tell a session that is no more from a call that was refused."""
        try:
            body = await _beginning(response, REFUSAL_BYTES_MAX)
        except (httpx2.HTTPError, OSError) as error:
            return self._failed(request, LOST, why_failed(error), error)
        if is_session_gone(response.status_code, body):
            return self._failed(request, GONE, SESSION_ENDED, None)
        kind = response.headers.get("content-type", "")
        return httpx2.Response(response.status_code, headers={"content-type": kind}, content=body)

    async def _of_words(
        self, request: httpx2.Request, response: httpx2.Response
    ) -> httpx2.Response:
        """Tell with its status what whoever refuses it says, for the person who configures it."""
        body = b""
        # It is refused whatever becomes of the words.
        with contextlib.suppress(httpx2.HTTPError, OSError, TimeoutError):
            async with asyncio.timeout(WORDS_S):
                body = await _beginning(response, REFUSAL_BYTES_MAX)
        said = " ".join(visible(body.decode("utf-8", "replace")).split())
        if said := _without_sent(said, self._secret, request.headers.get("authorization", "")):
            self.problem = f"it answered HTTP {response.status_code}: {shortened(said, SAID_MAX)}"
        kind = response.headers.get("content-type", "")
        return httpx2.Response(response.status_code, headers={"content-type": kind}, content=body)

    def _failed(
        self, request: httpx2.Request, code: int, reason: str, error: Exception | None
    ) -> httpx2.Response:
        """Answer as the server would have refused; only for what awaits an answer."""
        if request.method != "POST" and error is not None:
            raise error
        self.problem = reason
        told = {"code": code, "message": reason, "data": OURS}
        body = {"jsonrpc": "2.0", "id": None, "error": told}
        return httpx2.Response(
            503, headers={"content-type": "application/json"}, content=msgspec.json.encode(body)
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Inbound:
    """What the SDK reads of a server, in our pace; its end, if the server does not listen."""

    def __init__(self, inner: Any, outlet: Outlet, on_end: Callable[[], None]) -> None:
        self._inner, self._outlet, self._on_end = inner, outlet, on_end

    @property
    def last_context(self) -> Any:
        return self._inner.last_context

    async def receive(self) -> SessionMessage | Exception:
        message: SessionMessage | Exception = await self._inner.receive()
        await self._outlet.pace.take(1, 0)
        if self._outlet.unheard.may_come(message):
            return message
        self._outlet.problem = DEAF
        self._on_end()
        raise anyio.EndOfStream

    def __aiter__(self) -> _Inbound:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> _Inbound:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Paced(httpx2.AsyncByteStream):
    """A body that comes no faster than we are ready to take it."""

    def __init__(self, inner: Any, pace: Pace) -> None:
        self._inner, self._pace = inner, pace

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            yield chunk
            await self._pace.take(0, len(chunk))

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Bounded(_Paced):
    """A body that is no longer than a message may be."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MESSAGE_BYTES_MAX:
                raise httpx2.StreamError(f"it sent more than {MESSAGE_BYTES_MAX} bytes")
            yield chunk


async def _beginning(response: httpx2.Response, bytes_max: int) -> bytes:
    body = b""
    try:
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) >= bytes_max:
                break
    finally:
        await response.aclose()
    return body[:bytes_max]


def _without_sent(text: str, headers: Mapping[str, str], token: str) -> str:
    """Return a text without the headers that were sent.

    >>> _without_sent("it isn't s3cret-of-ann", {"X-One": "i"}, "Bearer s3cret-of-ann")
    "it isn't [hidden]"
    """
    sent = {**headers, "authorization": token}
    long = {name: value for name, value in sent.items() if len(value) >= TOKEN_LENGTH_MIN}
    return SiteHeaders({"": long}).hidden(text)


def _has_own_words(response: httpx2.Response) -> bool:
    """Return whether a refusal may have words of its own, and asks for no sign-in."""
    kind = response.headers.get("content-type", "text/plain")
    asks = response.status_code == 401 or "www-authenticate" in response.headers
    return kind.startswith("text/plain") and not asks


def _refused(status: int) -> str:
    told = f"it answered HTTP {status}"
    return f"{told}: {SIGN_IN}" if status in (401, 403) else told


# ---------------------------------------------------------------- by the configuration


def endpoint_of(config: ToolServer, home: Path, ports_never: Collection[int]) -> McpEndpoint:
    """Return where a section says that somebody is. Raises: ConfigError."""
    return McpEndpoint(
        url=config.url,
        headers=headers_of(config, home),
        rules=port_rules(config, ports_never),
        silence_s=max(SILENCE_S, config.timeout_s + 10.0),
    )


def port_rules(config: ToolServer, ports_never: Collection[int]) -> Rules:
    """Return where its requests may go: to the port of its URL. Raises: ConfigError."""
    any_port = Rules(ports=range(1, 65536), allow_private=config.allow_private)
    try:
        port = target_of(config.url, any_port).port
    except RequestRefused as error:
        raise ConfigError(f"url: {error.reason}") from error
    return Rules(ports=(port,), ports_never=ports_never, allow_private=config.allow_private)


def headers_of(config: ToolServer, home: Path) -> dict[str, str]:
    """Return the headers of each request. Raises: ConfigError."""
    return config.headers | read("headers_file", home, config.headers_file, ":")
