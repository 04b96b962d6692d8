"""A receiver of webhooks on loopback, that does to its callers whatever a test says.

It speaks HTTP/1.1 by hand, so that it can also answer half, too much, too slowly, or never.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec
import pytest
from anyio._backends import _asyncio
from standardwebhooks import Webhook

TLS: Final = Path(__file__).parent / "tls"
"""A key and a certificate for `receiver.test`, signed by itself. Nobody else trusts them."""
SECRET: Final = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


class Request(msgspec.Struct, frozen=True):
    """What came in."""

    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]
"""Answers one request; the connection is closed afterwards."""


def status(code: int, phrase: str = "Whatever", /, **headers: str) -> Behaviour:
    """Answer with a status and an empty body."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {code} {phrase}", "content-length: 0"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        await writer.drain()

    return behave


def raw(data: bytes) -> Behaviour:
    """Write these bytes and close the connection."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return behave


async def silence(writer: asyncio.StreamWriter) -> None:
    """Never answer."""
    await asyncio.Event().wait()


async def drip(writer: asyncio.StreamWriter) -> None:
    """Send a status line byte by byte, and never come to its end."""
    writer.write(b"HTTP/1.1 200 ")
    while not writer.is_closing():
        writer.write(b"O")
        await writer.drain()
        await asyncio.sleep(0.05)


class Flood:
    """Answers 200 with a body of a gigabyte; counts what the caller took."""

    def __init__(self) -> None:
        self.taken = 0

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        size, chunk = 1 << 30, b"x" * (1 << 16)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        while self.taken < size and not writer.is_closing():
            writer.write(chunk)
            await writer.drain()
            self.taken += len(chunk)


OK: Final = status(204, "No Content")


class Receiver:
    """A server; `behaviours` are used up one by one, the last one for good.

    `choose`, if set, picks one by the request and how often its id came before.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.choose: Callable[[Request, int], Behaviour] | None = None
        self.behaviours: list[Behaviour] = [OK]
        self.connections = 0
        self.port = 0
        self.names: list[str | None] = []
        """The server names that TLS callers asked for."""
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._arrived = asyncio.Event()

    def url(self, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}/in?key=k3y"

    @property
    def bodies(self) -> dict[str, Counter[bytes]]:
        """How often each body came, by webhook id."""
        found: dict[str, Counter[bytes]] = {}
        for request in self.requests:
            found.setdefault(request.id, Counter())[request.body] += 1
        return found

    async def arrived(self, count: int, within_s: float = 20.0) -> None:
        """Wait until so many requests came."""
        async with asyncio.timeout(within_s):
            while len(self.requests) < count:
                self._arrived.clear()
                await self._arrived.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._answer(reader, writer)
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            self._serving.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            pairs = (line.partition(":") for line in head[1:] if line)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            request = Request(head[0].split(" ")[1], headers, body)
            behave = self._next(request)
            self.requests.append(request)
            self._arrived.set()
            await behave(writer)

    def _next(self, request: Request) -> Behaviour:
        if self.choose is not None:
            known = [one.headers.get("webhook-id") for one in self.requests]
            return self.choose(request, known.count(request.headers.get("webhook-id")))
        return self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / "receiver.pem", TLS / "receiver.key")
        context.sni_callback = lambda _, name, __: self.names.append(name)
        return context

    @contextlib.asynccontextmanager
    async def listening(self, *, host: str = "127.0.0.1", tls: bool = False) -> AsyncIterator[None]:
        context = self._context() if tls else None
        self._server = await asyncio.start_server(self._serve, host, self.port, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            self._server.close()
            for task in set(self._serving):
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)


@contextlib.asynccontextmanager
async def running_receiver(
    *behaviours: Behaviour, host: str = "127.0.0.1", tls: bool = False
) -> AsyncIterator[Receiver]:
    """A receiver that behaves so; without behaviours it takes everything."""
    receiver = Receiver()
    if behaviours:
        receiver.behaviours = list(behaviours)
    async with receiver.listening(host=host, tls=tls):
        yield receiver


def verified(request: Request) -> bytes:
    """Return the body if its signature is good, by the library that receivers use.

    Raises:
        WebhookVerificationError: it isn't.
    """
    Webhook(SECRET).verify(request.body, request.headers, json_parse=False)
    return request.body


def lose_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each connection of a client be lost as it is opened, as uvloop tells it: it has no socket
    any more."""
    monkeypatch.setattr(_asyncio.SocketStream, "_raw_socket", None)
