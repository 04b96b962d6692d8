"""A network's interface in JSON over HTTP, and its socket: a call at a time, and whether it surely
never got there.

Nothing is repeated here, no redirect followed, and no proxy of the environment used: the libraries
of Slack and Discord do one or the other by themselves (ADR 59). The token is in a header, and no
header is told.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import msgspec
from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientSession,
    ClientWebSocketResponse,
    DummyCookieJar,
    FormData,
    WSMsgType,
    WSServerHandshakeError,
)

from ..texts.trouble import reason_of
from .answers import NotTaken, Unclear
from .chats.calls import CallFailed, refused
from .redirects import NO_REDIRECTS, LedElsewhere

ANSWER_BYTES_MAX: Final = 16_000_000
CLOSE_CODE: Final = 4_000
"""With which a socket is let go of; 1000 or 1001 would end its session with Discord."""


class SentFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that goes with a call."""

    name: str
    type: str
    """Media type."""
    data: bytes


class NetworkReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a server answered."""

    status: int
    data: Any
    """Decoded; None: nothing, or no JSON."""
    headers: Mapping[str, str]


class SocketClosed(CallFailed):
    """The other side ended the socket."""

    def __init__(self, code: int | None, words: str = "") -> None:
        super().__init__(NotTaken(reason=f"the socket was closed: {code} {words}".strip()))
        self.code = code


class NetworkApi:
    """The way to one network, with one account's headers."""

    def __init__(self, api_url: str, user_agent: str) -> None:
        self._api_url = api_url.rstrip("/")
        self._headers = {"User-Agent": user_agent}
        self._session: ClientSession | None = None

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        authorization: str,
        timeout_s: float,
        is_form: bool = False,
        file: SentFile | None = None,
    ) -> NetworkReply:
        """Make a call; an answer of any status is returned. Raises: CallFailed.

        Args:
            is_form: the body is an object, and goes as a form with JSON in its fields.
            file: goes beside the body, which is a part of its own then.
        """
        headers = {"Authorization": authorization} if authorization else {}
        data: Any = None
        if file is not None:
            data = FormData(quote_fields=False)  # a name is shown as it is
            data.add_field("payload_json", json.dumps(body), content_type="application/json")
            data.add_field("files[0]", file.data, filename=file.name, content_type=file.type)
        elif is_form:
            data = {name: _field(value) for name, value in (body or {}).items()}
        elif body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._opened().request(
                    method, f"{self._api_url}{path}", data=data, headers=headers
                ) as answer,
            ):
                raw = await answer.content.read(ANSWER_BYTES_MAX)
                if not answer.content.at_eof():
                    raise CallFailed(Unclear(reason="an answer that is too long"))
                return NetworkReply(
                    status=answer.status,
                    data=_decoded(raw),
                    headers={name.lower(): value for name, value in answer.headers.items()},
                )
        except TimeoutError as error:
            raise CallFailed(Unclear(reason=f"no answer within {timeout_s:g} s")) from error
        except (ClientError, OSError, ValueError) as error:
            raise meant(error) from error

    async def upload(self, url: str, file: SentFile, *, timeout_s: float) -> NetworkReply:
        """Send a file alone to where the network said; no token is shown. Raises: CallFailed."""
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._opened().post(
                    url, data=file.data, headers={"Content-Type": file.type}
                ) as answer,
            ):
                await answer.content.read(ANSWER_BYTES_MAX)
                return NetworkReply(status=answer.status, data=None, headers={})
        except TimeoutError as error:
            raise CallFailed(Unclear(reason=f"no answer within {timeout_s:g} s")) from error
        except (ClientError, OSError, ValueError) as error:
            raise meant(error) from error

    async def socket(
        self, url: str, *, timeout_s: float, heartbeat_s: float | None
    ) -> NetworkSocket:
        """Open a socket. Raises: CallFailed."""
        try:
            async with asyncio.timeout(timeout_s):
                found = await self._opened().ws_connect(
                    url, heartbeat=heartbeat_s, max_msg_size=ANSWER_BYTES_MAX
                )
        except TimeoutError as error:
            raise CallFailed(NotTaken(reason=f"no socket within {timeout_s:g} s")) from error
        except WSServerHandshakeError as error:
            raise refused(error.status, "no socket") from error
        except (ClientError, OSError, ValueError) as error:
            raise meant(error) from error
        return NetworkSocket(found)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> ClientSession:
        if self._session is None:
            self._session = ClientSession(
                headers=self._headers, trace_configs=[NO_REDIRECTS], cookie_jar=DummyCookieJar()
            )
        return self._session


class NetworkSocket:
    """A socket over which objects in JSON go both ways."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket

    async def next(self, timeout_s: float | None = None) -> dict[str, Any]:
        """Return the next object; what is none is left out. Raises: CallFailed."""
        while True:
            try:
                message = await self._socket.receive(timeout_s)
            except TimeoutError as error:
                raise CallFailed(NotTaken(reason=f"nothing came for {timeout_s:g} s")) from error
            except (ClientError, OSError) as error:
                raise meant(error) from error
            if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                found = _decoded(message.data)
                if isinstance(found, dict):
                    return found
            elif message.type not in (WSMsgType.PING, WSMsgType.PONG):
                self._raise_closed()

    async def send(self, frame: Mapping[str, Any]) -> None:
        """Send an object. Raises: CallFailed."""
        try:
            await self._socket.send_str(json.dumps(frame))
        except (ClientError, OSError, RuntimeError) as error:
            raise meant(error) from error

    async def close(self) -> None:
        await self._socket.close(code=CLOSE_CODE)

    def _raise_closed(self) -> NoReturn:
        raise SocketClosed(self._socket.close_code)


def _field(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _decoded(raw: bytes | str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def meant(error: Exception) -> CallFailed:
    """Return what an error of the library means for a call."""
    if isinstance(error, ClientConnectorError):
        return CallFailed(NotTaken(reason=f"can't be reached: {reason_of(error)}"))
    if isinstance(error, LedElsewhere):
        return CallFailed(NotTaken(reason=str(error)))
    return CallFailed(Unclear(reason=f"no whole answer: {type(error).__name__}"))
