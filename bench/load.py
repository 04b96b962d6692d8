"""Clients that talk: one HTTP connection and one WebSocket each, as a process of its own.

    python -m bench.load URL TOKEN SESSIONS MESSAGES [PREFIX]

Prints one JSON object: how many messages a second, and from the request sent to the message on
the socket in ms. A client sends its next message when the answer to the last one is there.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import cast
from urllib.parse import urlsplit

import uvloop
from websockets.asyncio.client import ClientConnection, connect

from bench.numbers import percentile


class Http(asyncio.Protocol):
    """One keep-alive connection that posts and reads answers, as lean as a client can be."""

    def __init__(self) -> None:
        self._buffer = b""
        self._waiter: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result((int(head[9:12]), rest[:length]))

    async def post(self, head: bytes, body: bytes) -> tuple[int, bytes]:
        assert self._transport is not None
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        return await self._waiter

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def connect_http(url: str) -> Http:
    where = urlsplit(url)
    loop = asyncio.get_running_loop()
    _, http = await loop.create_connection(Http, where.hostname or "", where.port or 80)
    return http


def head_of(url: str, token: str, key: str) -> bytes:
    """Return the head of a POST to a session's messages, less the content length."""
    return (
        f"POST /api/sessions/{key}/messages HTTP/1.1\r\nhost: {urlsplit(url).netloc}\r\n"
        f"authorization: Bearer {token}\r\ncontent-type: application/json\r\n"
    ).encode()


async def converse(
    url: str, token: str, name: str, messages: int, latencies: list[float], seen: int | None = None
) -> None:
    """Send `messages` messages in a session of its own, one after the other.

    With `seen`, a cursor, the socket isn't brought what was said until then.
    """
    key = f"me:vigil:{name}"
    head = head_of(url, token, key)
    address = f"ws://{urlsplit(url).netloc}/api/ws?session={key}"
    address += "" if seen is None else f"&cursor={seen}"
    headers = {"Authorization": f"Bearer {token}"}
    async with connect(address, additional_headers=headers, compression=None) as socket:
        # Not before: a connection that asks for nothing is closed, and 1,000 sockets take long.
        http = await connect_http(url)
        for number in range(messages):
            begun_at = time.perf_counter()
            status, body = await http.post(head, b'{"text":"message %d"}' % number)
            if status != 202:
                raise RuntimeError(f"{status}: {body!r}")
            await answer(socket, json.loads(body)["event_id"])
            latencies.append((time.perf_counter() - begun_at) * 1000)
    http.close()


async def answer(socket: ClientConnection, event_id: str) -> None:
    while True:
        frame = json.loads(await socket.recv())
        if frame["type"] == "message" and frame["caused_by"] == event_id:
            return


async def main(url: str, token: str, sessions: int, messages: int, prefix: str) -> None:
    warmup: list[float] = []
    names = [f"{prefix}-{i}" for i in range(sessions)]
    # The first message opens the session; what is measured is a conversation.
    await asyncio.gather(*(converse(url, token, name, 1, warmup) for name in names))
    latencies: list[float] = []
    begun_at = time.perf_counter()
    await asyncio.gather(*(converse(url, token, name, messages, latencies) for name in names))
    elapsed_s = time.perf_counter() - begun_at
    result = {
        "per_s": sessions * messages / elapsed_s,
        "p50_ms": percentile(latencies, 50),
        "p99_ms": percentile(latencies, 99),
        "opening_ms": percentile(warmup, 50),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    _, address, secret, people, each, *rest = sys.argv
    uvloop.run(main(address, secret, int(people), int(each), rest[0] if rest else "b"))
