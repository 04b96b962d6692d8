"""Programs started without a copy of this process.

uvloop forks: the tables of all our memory are copied, and pages that are written meanwhile. Of a
service with 45 MB that took 11.5 ms of CPU, 4.7 of them with the event loop at a halt; of one with
77 MB 20.5 and 8.5. :func:`start` takes 3 and 1.3, whatever we hold (CPython 3.11, uvloop 0.23,
2 cores, medians of 40): `subprocess` borrows our memory until the program begins (vfork).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import IO, Any, Final

from .with_parent import ended_with_parent

LINE_BYTES: Final = 64 * 1024
"""How much of what it writes waits to be read, and the longest line (asyncio's own)."""


class _Output(asyncio.StreamReaderProtocol):
    """What a program writes, closed at its end: uvloop would keep the pipe."""

    def eof_received(self) -> bool:
        super().eof_received()
        return False


class _ToProgram(asyncio.StreamWriter):
    """What a program reads. Once that is closed, `drain` says so; uvloop's `write` fails already,
    and with no OSError."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.is_closing():
            super().write(data)


class Process:
    """A program that runs, as `asyncio.subprocess.Process` shows one."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._outputs: list[asyncio.ReadTransport] = []
        self._ended = asyncio.Event()
        self.pid: Final = process.pid
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        try:
            on_end(process.pid, self._take_end)
        except (AttributeError, OSError):  # not Linux; an old one, or a filter of system calls
            self._watch_in_thread()

    async def connect(self, limit: int) -> None:
        """Open the pipes to it."""
        if self._process.stdin is not None:
            self.stdin = await self._writer(self._process.stdin)
        if self._process.stdout is not None:
            self.stdout = await self._reader(self._process.stdout, limit)
        if self._process.stderr is not None:
            self.stderr = await self._reader(self._process.stderr, limit)
        if self._ended.is_set():  # meanwhile
            self._take_end()

    async def _writer(self, pipe: IO[bytes]) -> asyncio.StreamWriter:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), _given(pipe, loop)
        )
        return _ToProgram(transport, protocol, None, loop)

    async def _reader(self, pipe: IO[bytes], limit: int) -> asyncio.StreamReader:
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit)
        transport, _ = await loop.connect_read_pipe(lambda: _Output(reader), _given(pipe, loop))
        self._outputs.append(transport)
        return reader

    @property
    def returncode(self) -> int | None:
        """How it ended: its exit code, or the signal below zero; None: it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Return how it ended, once it did; something of its output may still wait to be read."""
        await self._ended.wait()
        return self._process.wait()

    async def communicate(self, data: bytes = b"") -> tuple[bytes, bytes]:
        """Write `data` and the end of it; return what it wrote, once it ended. Whoever gives up
        waiting has closed its pipes."""
        try:
            _, out, error, _ = await asyncio.gather(
                self._feed(data), _all_of(self.stdout), _all_of(self.stderr), self.wait()
            )
        finally:
            self.close()
        return out, error

    async def _feed(self, data: bytes) -> None:
        if self.stdin is None:
            return
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it wants no more
            self.stdin.write(data)
            await self.stdin.drain()
        self.stdin.close()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, if it runs."""
        self._process.send_signal(number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes: what others hold of them, or don't read, holds nobody up."""
        if self.stdin is not None:
            self.stdin.close()
            if self.stdin.transport.get_write_buffer_size():
                self.stdin.transport.abort()
        for output in self._outputs:
            output.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:  # that wasn't connected yet
                pipe.close()

    def _take_end(self) -> None:
        self._process.wait()  # it did
        if self.stdin is not None:
            self.stdin.close()
        self._ended.set()

    def _watch_in_thread(self) -> None:
        loop = asyncio.get_running_loop()

        def watch() -> None:
            self._process.wait()
            with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits any more
                loop.call_soon_threadsafe(self._take_end)

        threading.Thread(target=watch, name=f"end-of-{self.pid}", daemon=True).start()


async def start(
    *argv: str, limit: int = LINE_BYTES, is_ended_with_us: bool = False, **more: Any
) -> Process:
    """Start a program.

    Args:
        limit: how much of what it writes waits to be read, in bytes, and its longest line.
        is_ended_with_us: whether it is killed when this process is gone; it has a group of its own.
        more: as `subprocess.Popen` has it; nothing that is to run between fork and exec.

    Raises:
        OSError: it can't be started.
    """
    words = ended_with_parent(argv) if is_ended_with_us else {"args": argv}
    process = Process(_begun(**words, **more))
    try:
        await process.connect(limit)
    except BaseException:
        process.kill()
        process.close()
        raise
    return process


def _begun(**how: Any) -> subprocess.Popen[bytes]:
    """Return once it has begun: that takes a millisecond, and nothing else can be done meanwhile
    with the memory that it borrows."""
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:  # as some who start us hand it on
        with contextlib.suppress(ValueError):  # in a thread that can't change it
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # or nobody is told how a child ended
    return subprocess.Popen(**how)


def _given(pipe: IO[bytes], loop: asyncio.AbstractEventLoop) -> IO[bytes]:
    """Return a pipe's end for the loop alone. uvloop closes it by its number: what closed that once
    more, as a file does, would close what another thread opened by then."""
    with pipe:
        descriptor = os.dup(pipe.fileno())
    is_closed_as_file = isinstance(loop, asyncio.BaseEventLoop)
    return os.fdopen(descriptor, pipe.mode, buffering=0, closefd=is_closed_as_file)


def on_end(pid: int, told: Callable[[], None]) -> Callable[[], None]:
    """Have `told` called once a child ended, before anybody took that in (Linux).

    Returns:
        what stops the watch, also one that is over.
    """
    loop, watched = asyncio.get_running_loop(), [os.pidfd_open(pid)]

    def stop() -> None:
        while watched:
            loop.remove_reader(watched[0])
            os.close(watched.pop())

    def end() -> None:
        stop()
        told()

    loop.add_reader(watched[0], end)
    return stop


async def _all_of(stream: asyncio.StreamReader | None) -> bytes:
    return b"" if stream is None else await stream.read()
