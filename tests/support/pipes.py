"""Programs of ours with pipes to them, forked instead of begun anew."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from typing import IO

from tests.support import warm


class Piped:
    """A forked program with pipes to it, as `asyncio.subprocess.Process` shows one."""

    def __init__(
        self,
        process: warm.Process,
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
        stderr: asyncio.StreamReader,
    ) -> None:
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.pid = process.pid
        self._process = process
        self._ending = asyncio.create_task(process.wait())

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        return await asyncio.shield(self._ending)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)


async def start(module: str, *args: str, env: Mapping[str, str]) -> Piped:
    """Run ``python -m module args``, forked, with pipes to it."""
    (stdin, to), (out, stdout), (error, stderr) = (os.pipe() for _ in range(3))
    try:
        # In a thread: what forks may still be starting itself.
        process = await asyncio.to_thread(
            warm.start, module, args, env=env, stdin=stdin, stdout=stdout, stderr=stderr,
        )  # fmt: skip
    finally:
        for descriptor in (stdin, stdout, stderr):
            os.close(descriptor)
    return Piped(process, await _writer(to), await _reader(out), await _reader(error))


async def _writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop), _given(descriptor, "wb")
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def _reader(descriptor: int) -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), _given(descriptor, "rb")
    )
    return reader


def _given(descriptor: int, mode: str) -> IO[bytes]:
    """Return what uvloop closes by its number alone: closed once more, that may be another file."""
    return os.fdopen(descriptor, mode, 0, closefd=False)
