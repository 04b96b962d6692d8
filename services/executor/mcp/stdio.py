"""A server that is a program: its messages on standard input and output, in a box.

The SDK's own transport isn't used: it reads lines without a limit, hands the program variables of
ours, and leaves what the program writes on standard error to ours. Here a message has a largest
size, a flood of them waits in the pipe, and standard error comes into our log in bounded lines.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from subprocess import PIPE
from typing import Final, cast

import anyio
import mcp_types as types
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from vigil.background.end import end_tasks
from vigil.processes.process import Process, start

from ..sandbox.commands import CommandWatch
from ..sandbox.memory import hint_of
from .pace import DEAF, Pace, Unheard
from .schemas import visible

MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
LINE_BYTES_MAX: Final = 500
"""Of a line on standard error that is told."""
CHUNK_BYTES: Final = 4096
CHUNK_PAUSE_S: Final = 0.01
"""After each chunk of standard error: who floods it waits in the pipe."""
QUIT_S: Final = 1.0
"""How long a program may take to end after its input has ended..."""
LAST_LENGTH_MAX: Final = 200
LAST_LINES: Final = 50
"""Of standard error, among which the reason of an end is looked for."""
END_S: Final = 5.0
"""...and after SIGTERM, by which the box ends it and all that it started."""

Inbound = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Inbound], MemoryObjectSendStream[SessionMessage]]
Running = Callable[[], AbstractAsyncContextManager[None]]
Hear = Callable[[str], None]
"""Is told a line that a program wrote and that is no message."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What is started."""

    argv: tuple[str, ...]
    """The whole command line, with the sandbox's part."""
    env: dict[str, str]
    cwd: str


class StdioWire:
    """One start of a program. `connect` may be entered once.

    Args:
        on_end: is called when it ends by itself.
        running: is entered before the start, and left when all of it has ended.
        guard: makes what looks after it, just before it starts. Blocks.
    """

    def __init__(
        self,
        program: Program,
        hear: Hear,
        on_end: Callable[[], None],
        running: Running,
        guard: Callable[[], CommandWatch],
    ) -> None:
        self._guard = guard
        self._running = running
        self._program = program
        self._hear = hear
        self._on_end = on_end
        self._is_closing = False
        self._unheard = Unheard()
        self._problem = ""
        self._has_ended = False
        self._last: deque[str] = deque(maxlen=LAST_LINES)

    @property
    def problem(self) -> str:
        """Why the connection is no more; empty: it is, or nobody knows."""
        last = last_words(self._last) if self._has_ended else ""
        text = f"{self._problem}: {last}" if last else self._problem
        hint = _hint("\n".join(self._last)) if self._has_ended else ""
        return f"{text} ({hint})" if hint else text

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[Streams]:
        """Start the program; at the end, end it and all that it started."""
        async with self._running(), self._started() as streams:
            yield streams

    @contextlib.asynccontextmanager
    async def _started(self) -> AsyncIterator[Streams]:
        guard = await asyncio.to_thread(self._guard)
        process = await self._start()
        inbound_w, inbound_r = anyio.create_memory_object_stream[Inbound](0)
        outbound_w, outbound_r = anyio.create_memory_object_stream[SessionMessage](0)
        listening = asyncio.create_task(self._listen(process))
        reading = asyncio.create_task(self._read(process, inbound_w))
        tasks = [
            asyncio.create_task(self._write(process, outbound_r)),
            asyncio.create_task(self._guard_disk(process, guard)),
            reading,
            listening,
        ]
        try:
            yield inbound_r, outbound_w
        finally:
            self._is_closing = True
            with anyio.CancelScope(shield=True):
                for stream in (inbound_r, outbound_w):
                    stream.close()
                if self._has_ended:  # its exit code and last words may still be on their way
                    await asyncio.wait((reading, listening), timeout=QUIT_S)
                await _end(process)
                await end_tasks(*tasks)
                for half in (inbound_w, outbound_r):
                    half.close()

    async def _start(self) -> Process:
        return await start(
            *self._program.argv,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._program.env,
            cwd=self._program.cwd,
            start_new_session=True,
            limit=MESSAGE_BYTES_MAX,
        )

    async def _read(self, process: Process, to: MemoryObjectSendStream[Inbound]) -> None:
        """Hand on its messages until its output ends; then nothing more is waited for."""
        try:
            async with to:
                async for line in _paced(cast(asyncio.StreamReader, process.stdout)):
                    message = self._message(line)
                    if message is None:
                        continue
                    if not self._unheard.may_come(message):
                        self._problem = DEAF
                        break
                    await to.send(message)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # we ended it
        except ValueError:
            self._problem = f"it sent a message of more than {MESSAGE_BYTES_MAX} bytes"
        await self._ended(process)

    async def _guard_disk(self, process: Process, guard: CommandWatch) -> None:
        """End it when it has taken too much of the disk."""
        if why := await guard.watch(process.pid):
            self._problem = f"it was ended: {why}"
            _signal(process, signal.SIGTERM)

    def _message(self, line: bytes) -> SessionMessage | None:
        try:
            read = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            # Many programs greet on standard output; a line that is no message answers nothing.
            self._hear(line[:LINE_BYTES_MAX].decode("utf-8", "replace").strip())
            return None
        return SessionMessage(read)

    async def _ended(self, process: Process) -> None:
        if self._is_closing:
            return
        if not self._problem:
            self._has_ended = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(QUIT_S):
                    await process.wait()
            code = process.returncode
            self._problem = (
                "it closed its output" if code is None else f"it ended with exit code {code}"
            )
        self._on_end()

    async def _write(
        self, process: Process, messages: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        pipe = cast(asyncio.StreamWriter, process.stdin)
        with contextlib.suppress(anyio.ClosedResourceError, OSError):
            async with messages:
                async for one in messages:
                    text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                    pipe.write(text.encode() + b"\n")
                    await pipe.drain()
                    self._unheard.heard()

    async def _listen(self, process: Process) -> None:
        """Tell what it writes on standard error, in lines that aren't too long."""
        pipe = cast(asyncio.StreamReader, process.stderr)
        pending = b""
        while chunk := await pipe.read(CHUNK_BYTES):
            *lines, pending = (pending + chunk).split(b"\n")
            if len(pending) > LINE_BYTES_MAX:
                lines, pending = [*lines, pending], b""
            self._said(lines)
            await asyncio.sleep(CHUNK_PAUSE_S)
        self._said([pending])

    def _said(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            text = line[:LINE_BYTES_MAX].decode("utf-8", "replace").rstrip()
            self._last.append(text)
            self._hear(text)


_BESIDE: Final = re.compile(r"A complete log of this run can be found in")
"""What npm says last."""
_OFFLINE: Final = re.compile(r"only-if-cached|ENOTCACHED|network was disabled")


def _hint(text: str) -> str:
    """Return which setting to look at, for what a program said before it ended."""
    return "it has no network, see `network`" if _OFFLINE.search(text) else hint_of(text)


_ERROR: Final = re.compile(r"\S*(error|exception|panic|panicked|fatal)\b", re.IGNORECASE)


def last_words(lines: Iterable[str]) -> str:
    """Return the line that tells most about an end: the last that begins with an error, or else
    the last one. After the error some runtimes tell their version, or where it was.

    >>> last_words(["Error: Cannot find module 'x'", "    at require", "", "Node.js v24"])
    "Error: Cannot find module 'x'"
    """
    kept = [line for line in lines if line.strip() and not _BESIDE.search(line)]
    errors = [line for line in kept if _ERROR.match(line)]
    return visible((errors or kept or [""])[-1].strip())[:LAST_LENGTH_MAX]


async def _paced(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield lines, no more of them a second than we are ready to take."""
    pace = Pace()
    while line := await reader.readline():
        yield line
        await pace.take(1, len(line))


async def _end(process: Process) -> None:
    """End a program: by the end of its input, as the protocol has it; else by force."""
    if process.stdin is not None:
        process.stdin.close()
    for number, patience_s in ((None, QUIT_S), (signal.SIGTERM, END_S), (signal.SIGKILL, END_S)):
        if number is not None:
            _signal(process, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await process.wait()
                break
    # What it started in its own group and the box didn't end: there is none with a box.
    _signal(process, signal.SIGKILL)
    process.close()  # pipes that were full are not read to their end any more


def _signal(process: Process, number: signal.Signals) -> None:
    """Signal the launcher; with SIGKILL its whole group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if number == signal.SIGKILL:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
