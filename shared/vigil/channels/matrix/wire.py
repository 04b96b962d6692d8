"""One server of Matrix: a request at a time, and whether it surely never got there.

The library builds the requests and holds the connections. What it repeats by itself isn't used: it
repeats for ever by default, and whoever waits never learns that an outcome is unclear.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec
from aiohttp import ClientConnectorError, ClientError, ClientSession, StreamReader
from nio import AsyncClient, AsyncClientConfig

from ...errors import InvalidInput
from ...mail.smtp import trust
from ...net.bounded import whole
from ...texts.trouble import reason_of
from ..downloads import ELSEWHERE, Downloads
from ..redirects import NO_REDIRECTS, LedElsewhere
from .happenings import MXC
from .verdicts import HomeserverReply

BYTES_MAX: Final = 32 * 1024**2
"""Of an answer."""
NO_REPEATS: Final = AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0)
Request = tuple[str, str] | tuple[str, str, str | bytes]
"""Method, path, and a body, as the library builds them."""


class NotReached(Exception):
    """No connection came about, or it leads elsewhere: the server has nothing of it."""


class NoReply(Exception):
    """It was on its way, and no whole answer came."""


class Homeserver:
    """The way to one server."""

    def __init__(self, url: str, ca_file: str, home: Path) -> None:
        self._url = url.rstrip("/")
        self._ca_file = ca_file
        self._home = home
        self._client: AsyncClient | None = None
        self._downloads: Downloads | None = None

    async def ask(
        self, token: str, request: Request, *, timeout_s: float, type_: str = "application/json"
    ) -> HomeserverReply:
        """Ask once.

        Args:
            type_: the body's media type.

        Raises:
            NotReached: the server has nothing of it.
            NoReply: nobody knows what the server has of it.
        """
        method, path, *body = request
        # The library leaves room for a token in the address; a server refuses two.
        path = path.replace("access_token=&", "").removesuffix("?access_token=")
        headers = {"Content-Type": type_}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            async with asyncio.timeout(timeout_s):
                client = self._open()
                answer = await client.send(
                    method, path, body[0] if body else None, headers, timeout=timeout_s
                )
                async with answer:
                    data = await _whole(answer.content)
        except ClientConnectorError as error:
            raise NotReached(f"can't be reached: {_described(error)}") from error
        except LedElsewhere as error:
            raise NotReached(str(error)) from error
        except TimeoutError as error:
            raise NoReply(f"no answer within {timeout_s:g} s") from error
        except (ClientError, OSError, ValueError) as error:
            raise NoReply(f"no whole answer: {_described(error)}") from error
        try:
            read = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            read = None
        return HomeserverReply(
            status=answer.status,
            data=read,
            retry_after_s=_seconds(answer.headers.get("Retry-After")),
        )

    async def file(self, token: str, place: str, bytes_max: int) -> bytes:
        """Fetch a file, from its mxc://SERVER/NAME. Raises: CallFailed, InvalidInput."""
        found = MXC.fullmatch(place)
        if found is None:
            raise InvalidInput("file", ELSEWHERE)
        if self._downloads is None:
            self._downloads = Downloads(self._tls())
        path = f"/_matrix/client/v1/media/download/{quote(found[1], safe=':')}/{found[2]}"
        headers = {"Authorization": f"Bearer {token}"}
        return await self._downloads.get(f"{self._url}{path}", bytes_max, headers=headers)

    def _tls(self) -> ssl.SSLContext | None:
        return trust(self._ca_file, self._home) if self._ca_file else None

    def _open(self) -> AsyncClient:
        if self._client is None:
            self._client = AsyncClient(self._url, "", config=NO_REPEATS, ssl=self._tls())
            # Its own would follow redirects.
            self._client.client_session = ClientSession(trace_configs=[NO_REDIRECTS])
        return self._client

    async def close(self) -> None:
        """Let go of the connections."""
        if self._downloads is not None:
            await self._downloads.close()
        client, self._client = self._client, None
        if client is not None:
            await client.close()


async def _whole(content: StreamReader) -> bytes:
    found = await whole(content.iter_any(), BYTES_MAX)
    if found is None:
        raise ValueError(f"an answer of more than {BYTES_MAX} bytes")
    return found


def _described(error: Exception) -> str:
    return reason_of(error)[:200]


def _seconds(header: str | None) -> float:
    text = (header or "").strip()
    return float(text[:9]) if text.isascii() and text.isdigit() else 0.0
