"""Discord's REST interface: what an answer of it means, and when the next call may follow.

A limit is of a kind of call in a channel: the headers of an answer say how many are left, and after
how long there are more. Whoever waits for that is refused nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ... import __version__
from ...errors import InvalidInput
from ..answers import NotTaken, Unclear
from ..chats.addresses import is_file_of, is_socket_of
from ..chats.calls import CALL_S, CallFailed, rate_limited, refused, token_refused
from ..chats.fields import text_in
from ..downloads import ELSEWHERE, Downloads
from ..network_api import NetworkApi, NetworkReply, NetworkSocket, SentFile

DOMAINS: Final = ("discord.gg",)
"""Where Discord's sockets are, beside the host of its interface."""
FILE_DOMAINS: Final = ("cdn.discordapp.com", "media.discordapp.net")
"""Where what people attach is."""
AGENT: Final = f"DiscordBot (https://vigil.invalid, {__version__})"
"""In the form that Discord asks for."""
ROUTES_MAX: Final = 1_000


class DiscordApi:
    """The way to Discord with one bot's token."""

    def __init__(self, token: str, api_url: str) -> None:
        self._token = token
        self._api_url = api_url
        self._api = NetworkApi(api_url, AGENT)
        self._downloads = Downloads()
        self._free_at: dict[str, float] = {}
        """By path, when the next call may follow, by the loop's clock."""

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        is_open: bool = False,
        file: SentFile | None = None,
    ) -> Any:
        """Make a call, once its limit lets it. Raises: CallFailed.

        Args:
            is_open: the path has a secret of its own, and the token isn't shown.
            file: goes beside the body.
        """
        loop, route = asyncio.get_running_loop(), f"{method} {path}"
        left_s = self._free_at.pop(route, 0.0) - loop.time()
        if left_s > CALL_S:
            self._free_at[route] = loop.time() + left_s
            raise rate_limited(left_s)
        if left_s > 0:
            await asyncio.sleep(left_s)
        reply = await self._api.call(
            method,
            path,
            body,
            authorization="" if is_open else f"Bot {self._token}",
            timeout_s=CALL_S,
            file=file,
        )
        if (wait_s := _wait_after(reply)) > 0 and len(self._free_at) < ROUTES_MAX:
            self._free_at[route] = loop.time() + wait_s
        return _result_of(reply)

    async def gateway_url(self) -> str:
        """Return where the gateway is. Raises: CallFailed."""
        return text_in(await self.call("GET", "/gateway/bot"), "url")

    async def socket(self, url: str) -> NetworkSocket:
        """Open a socket. Raises: CallFailed."""
        if not is_socket_of(url, self._api_url, DOMAINS):
            raise CallFailed(NotTaken(reason="the socket is to be elsewhere, which isn't followed"))
        whole = f"{url.rstrip('/')}/?v=10&encoding=json"
        return await self._api.socket(whole, timeout_s=CALL_S, heartbeat_s=None)

    async def file(self, url: str, bytes_max: int) -> bytes:
        """Fetch a file, whose address lets in whoever has it. Raises: CallFailed, InvalidInput."""
        if not is_file_of(url, self._api_url, FILE_DOMAINS):
            raise InvalidInput("file", ELSEWHERE)
        return await self._downloads.get(url, bytes_max)

    async def close(self) -> None:
        await self._downloads.close()
        await self._api.close()


def _wait_after(reply: NetworkReply) -> float:
    if reply.headers.get("x-ratelimit-remaining") != "0":
        return 0.0
    return rate_limited(reply.headers.get("x-ratelimit-reset-after")).wait_s


def _result_of(reply: NetworkReply) -> Any:
    status, data = reply.status, reply.data
    if status == 429:
        asked = data.get("retry_after") if isinstance(data, dict) else None
        raise rate_limited(reply.headers.get("retry-after") if asked is None else asked)
    if status == 401:
        raise token_refused(text_in(data, "message"))
    if not 200 <= status < 300:
        code = data.get("code") if isinstance(data, dict) else ""
        raise refused(status, f"{text_in(data, 'message')} {code}")
    if data is None and status != 204:
        raise CallFailed(Unclear(reason="no whole answer"))
    return data
