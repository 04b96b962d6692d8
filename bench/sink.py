"""A collector that takes everything and looks at nothing, as a process of its own.

    python -m bench.sink

Prints its port, then serves until its input ends; then prints how many bytes came.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import uvloop

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n"


class Sink(asyncio.Protocol):
    """One keep-alive connection."""

    taken = 0

    def __init__(self) -> None:
        self._head = b""
        self._left = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        while data:
            if not self._left:
                self._head += data
                head, separator, data = self._head.partition(b"\r\n\r\n")
                if not separator:
                    return
                self._head = b""
                length = head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0]
                self._left = int(length)
            taken = data[: self._left]
            data = data[len(taken) :]
            self._left -= len(taken)
            Sink.taken += len(taken)
            if not self._left and self._transport is not None:
                self._transport.write(ANSWER)


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Sink, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()
    print(Sink.taken)


if __name__ == "__main__":
    uvloop.run(main())
