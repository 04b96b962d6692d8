"""A line to a mail server that breaks where a test wants it: before the body, or after it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final, Literal

Where = Literal["", "before", "after"]
END: Final = b"\r\n.\r\n"


class BreakingLine:
    """Passes SMTP on to a server. `cuts` are used up one by one, then every line holds.

    ``before``: nothing of the body gets there. ``after``: the server has all of it and said so, and
    who sent it isn't told.
    """

    def __init__(self, port: int) -> None:
        self.server_port = port
        self.port = 0
        self.cuts: list[Where] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        cut = self.cuts.pop(0) if self.cuts else ""
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self.server_port)
        is_cut = asyncio.Event()
        answers = asyncio.create_task(_answers(there, writer, is_cut))
        try:
            await self._asked(reader, back, cut, is_cut)
            if is_cut.is_set():
                await answers  # the server's last word came, and went no further
        finally:
            answers.cancel()
            back.close()
            writer.close()

    async def _asked(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        cut: Where,
        is_cut: asyncio.Event,
    ) -> None:
        body: bytes | None = None
        while data := await reader.read(65536):
            is_data = data.upper().endswith(b"DATA\r\n")
            if cut == "before" and is_data:
                return
            if body is not None:
                body += data
                if cut == "after" and body.endswith(END):
                    is_cut.set()
            writer.write(data)
            await writer.drain()
            if is_cut.is_set():
                return
            if is_data:
                body = b"\r\n"


async def _answers(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_cut: asyncio.Event
) -> None:
    while data := await reader.read(65536):
        if is_cut.is_set():
            return
        writer.write(data)
        await writer.drain()


@contextlib.asynccontextmanager
async def breaking_line(port: int) -> AsyncIterator[BreakingLine]:
    line = BreakingLine(port)
    server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
    line.port = server.sockets[0].getsockname()[1]
    async with server:
        yield line
