"""Running a command in its box until it ends, or until it has taken too much.

What it writes is read as fast as it comes and mostly forgotten: the beginning and the end are kept,
the middle is counted. So neither a gigabyte of output nor a command that never ends takes more than
its limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from subprocess import DEVNULL, PIPE, STDOUT
from typing import Final, Literal, Protocol

import msgspec

from vigil.background.end import end_tasks
from vigil.errors import Unavailable
from vigil.processes.process import Process, start
from vigil.texts import excerpt

from .box import Kind

CHUNK_BYTES: Final = 64 * 1024
FLOOD_BYTES: Final = 64 * 1024 * 1024
"""Of output, after which a command is ended: nobody will ever read that."""
END_S: Final = 5.0
"""How long the launcher may take to end everything; it takes some milliseconds."""

Ended = Literal["exit", "timeout", "flood", "stopped"]


class CommandWatch(Protocol):
    """Looks after a command while it runs."""

    @property
    def why(self) -> str:
        """Why the command has to end; empty: it need not."""
        ...

    async def watch(self, pid: int) -> str:
        """Wait until the command of that process has to end; return why."""
        ...


class Watches:
    """Several that look after the same command; the first that wants its end gets it."""

    def __init__(self, *watches: CommandWatch) -> None:
        self._watches = watches

    @property
    def why(self) -> str:
        return next((watch.why for watch in self._watches if watch.why), "")

    async def watch(self, pid: int) -> str:
        tasks = [asyncio.ensure_future(watch.watch(pid)) for watch in self._watches]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a bug there must not look like an end
        finally:
            await end_tasks(*tasks)
        return self.why


class CommandEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended."""

    ended: Ended
    """`stopped`: because of what `watch` told."""
    exit_code: int | None
    """128 + the signal that ended it; None: we ended it."""
    output: str
    """What it wrote, on both of its channels in their order; the middle may be left out."""
    bytes_written: int
    why: str = ""
    """Of `stopped`, in words."""


class CommandOutput:
    """What a command has written so far: the beginning, the end, and how much it was."""

    def __init__(self, bytes_max: int) -> None:
        self._first_max = bytes_max // 2
        self._last_max = bytes_max - self._first_max
        self._first = bytearray()
        self._last = bytearray()
        self.count = 0

    def add(self, data: bytes) -> None:
        self.count += len(data)
        disk = self._first_max - len(self._first)
        self._first += data[:disk]
        self._last += data[disk:]
        del self._last[: -self._last_max]

    def text(self) -> str:
        """Return it as text; what is no UTF-8 is replaced."""
        left_out = self.count - len(self._first) - len(self._last)
        if not left_out:
            return text_of(self._first + self._last)
        return text_of(self._first) + excerpt.mark(left_out) + text_of(self._last)


def text_of(data: bytes | bytearray) -> str:
    """Return output as text with no more bytes than it had; what is none becomes a question mark.

    >>> text_of(b"a\\xff\\x00b")
    'a??b'
    """
    return data.decode("utf-8", "replace").replace("\ufffd", "?").replace("\0", "?")


async def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    kind: Kind,
    timeout_s: float,
    output_bytes_max: int,
    watch: CommandWatch | None = None,
) -> CommandEnd:
    """Run what :meth:`Sandbox.argv_of` returned; return how it ended.

    When this returns or raises, also because it was cancelled, nothing that the command started
    runs any more, as far as the kind of sandbox promises it.

    Args:
        kind: whose line it is; it decides how the command is ended.
        watch: told to look after it.

    Raises:
        Unavailable: it could not be started.
    """
    heard = CommandOutput(output_bytes_max)
    process = await _start(argv, env)
    ended: Ended = "exit"
    why = ""
    watching = asyncio.ensure_future(watch.watch(process.pid) if watch else _never())
    hearing = asyncio.ensure_future(_hear(process, heard))
    try:
        await asyncio.wait(
            (watching, hearing), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
        if watch and watch.why:  # also if it has ended of it by now
            ended, why = "stopped", watch.why
        elif hearing.done():
            ended = hearing.result()
        elif watching.done():
            watching.result()
        else:
            ended = "timeout"
    finally:
        watching.cancel()
        await _finish(process, hearing, kind)
    return CommandEnd(
        ended=ended,
        exit_code=_code(process) if ended == "exit" else None,
        output=heard.text(),
        bytes_written=heard.count,
        why=why,
    )


async def _start(argv: Sequence[str], env: Mapping[str, str]) -> Process:
    try:
        # Of all that is open here nothing is passed on, and a terminal is left behind.
        return await start(
            *argv,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            env=dict(env),
            cwd="/",
            close_fds=True,
            start_new_session=True,
            limit=CHUNK_BYTES,
        )
    except OSError as error:
        raise Unavailable(f"no process could be started: {error.strerror}") from error


async def _never() -> str:
    return str(await asyncio.get_running_loop().create_future())


async def _hear(process: Process, heard: CommandOutput) -> Ended:
    """Read until the command has ended, or has written too much; return which."""
    while process.stdout and (data := await process.stdout.read(CHUNK_BYTES)):
        heard.add(data)
        if heard.count > FLOOD_BYTES:
            return "flood"
    await process.wait()  # it may have closed its output and live on
    return "exit"


def _code(process: Process) -> int | None:
    code = process.returncode
    return 128 - code if code is not None and code < 0 else code


async def _finish(process: Process, hearing: asyncio.Future[Ended], kind: Kind) -> None:
    """End it if it hasn't ended, whoever cancels us meanwhile."""
    task = asyncio.ensure_future(_end(process, kind))
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    hearing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await hearing
    if cancelled:
        raise asyncio.CancelledError


async def _end(process: Process, kind: Kind) -> None:
    """End a command and all that it started.

    Under bubblewrap it is enough that the outermost process goes: the kernel ends the others.
    Elsewhere the launcher is asked to see to it.
    """
    for number in (signal.SIGKILL,) if kind == "bubblewrap" else (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is None:
            _signal(process, number)
            # What has left the box, if that can be, must not hold us up by keeping the pipe open.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    await process.wait()
    process.close()


def _signal(process: Process, number: signal.Signals) -> None:
    """Signal the group: right after the start it may have a member that doesn't obey yet."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
