"""The way to an agent: the SDK's requests, sent by Vigil's own guarded client.

The SDK has another HTTP library, which would look names up by itself and go wherever a card
leads. So its requests end here: each is judged, goes to the origin of the section's URL alone, and
its answer is bounded before anybody reads it.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

import httpx
import httpx2

from vigil.net.bounded import whole
from vigil.net.client import why_failed
from vigil.net.ssrf import RequestRefused

BODY_BYTES_MAX: Final = 8 * 1024 * 1024
BRACKETS_MAX: Final = 20_000
"""Objects and lists in an answer: each of them takes its time to be read."""
_SENT_ON: Final = ("content-type", "accept", "a2a-version", "a2a-extensions")
_PORTS: Final = {"http": 80, "https": 443}


class NotSent(httpx.TransportError):
    """It surely did not get there; the text says why."""


class NoAnswer(httpx.TransportError):
    """It was sent, and nothing came back that can be read; the text says why."""


def origin_of(url: str) -> tuple[str, str, int | None]:
    """Return where a URL leads, without what is asked there; of one that is none, nowhere.

    >>> origin_of("https://A.example/x") == origin_of("https://a.example:443")
    True
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "", "", None
    return parts.scheme, parts.hostname or "", port or _PORTS.get(parts.scheme)


class GuardedWay(httpx.AsyncBaseTransport):
    """Sends what the SDK asks for by `client`, if it's for the origin of `url`."""

    def __init__(self, client: httpx2.AsyncClient, url: str) -> None:
        self._client = client
        self._origin = origin_of(url)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if origin_of(str(request.url)) != self._origin:
            raise NotSent("it leads to another host than its URL")
        try:
            return await self._sent(request)
        except RequestRefused as error:
            raise NotSent(f"the URL {error.reason}") from error
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise NotSent(why_failed(error)) from error
        except (httpx2.HTTPError, OSError) as error:
            raise NoAnswer(why_failed(error)) from error

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        headers = {name: request.headers[name] for name in _SENT_ON if name in request.headers}
        async with self._client.stream(
            request.method, str(request.url), headers=headers, content=await request.aread()
        ) as response:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise NoAnswer("it answers compressed, unasked")
            body = await whole(response.aiter_raw(), BODY_BYTES_MAX)
        if body is None:
            raise NoAnswer(f"it sent more than {BODY_BYTES_MAX} bytes")
        if body.count(b"{") + body.count(b"[") > BRACKETS_MAX:
            raise NoAnswer(f"it sent more than {BRACKETS_MAX} objects and lists")
        kind = response.headers.get("content-type", "")
        return httpx.Response(response.status_code, headers={"content-type": kind}, content=body)
