"""The way to servers that give tokens: guarded, by https, and with answers that are bounded.

Where they are is said by the MCP server itself, so nothing that only this machine can reach may be
asked (RELIABILITY S9), and no token goes where somebody else on the way could read it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Final

import httpx2

from ..net.bounded import whole
from ..net.client import guarded_client
from ..net.guard import GuardedTransport
from ..net.ssrf import RequestRefused, Rules

ANSWER_BYTES_MAX: Final = 256 * 1024
TIMEOUT_S: Final = 15.0
WHOLE_S: Final = 30.0
"""For an answer that comes byte by byte: calls wait for a token that is exchanged."""


def client(
    *, allow_private: bool, ports_never: Collection[int] = (), auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    """Make a client for one sign-in, or one exchange of tokens.

    Args:
        allow_private: whether it may ask this machine and its network, and without https.
        ports_never: the broker's.
    """
    # It logs what went wrong with what was answered, which may hold tokens.
    logging.getLogger("mcp.client").setLevel(logging.CRITICAL)
    rules = Rules(
        ports=range(1, 65536), ports_never=tuple(ports_never), allow_private=allow_private
    )
    outlet = _Outlet(GuardedTransport(rules), is_open=allow_private)
    return guarded_client(outlet, timeout=TIMEOUT_S, auth=auth)


class _Outlet(httpx2.AsyncBaseTransport):
    def __init__(self, inner: httpx2.AsyncBaseTransport, *, is_open: bool) -> None:
        self._inner = inner
        self._is_open = is_open

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.scheme != "https" and not self._is_open:
            raise RequestRefused("url", "must begin with https:// where one signs in")
        try:
            async with asyncio.timeout(WHOLE_S):
                return await self._answer(request)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no whole answer within {WHOLE_S:g} s") from error

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        body: bytes | None = b""
        try:
            # A stream of events is an answer already: whoever may listen is let in.
            is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
            if not is_stream:
                body = await whole(response.aiter_raw(), ANSWER_BYTES_MAX)
            if body is None:
                raise httpx2.StreamError(f"more than {ANSWER_BYTES_MAX} bytes")
        finally:
            await response.aclose()
        kept = {name: value for name, value in response.headers.items() if name in _KEPT}
        return httpx2.Response(response.status_code, headers=kept, content=body)

    async def aclose(self) -> None:
        await self._inner.aclose()


_KEPT: Final = frozenset({"content-type", "location", "www-authenticate"})
