"""The engine's process as seen from the service: requests in, answers out, in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import deque
from pathlib import Path
from subprocess import PIPE
from typing import Final, TypeVar

import msgspec
import structlog

from vigil.errors import Unavailable
from vigil.fields import environ
from vigil.processes.process import Process, start

from .engine_calls import LENGTH_BYTES, LOCKED, Done, Failed, Reply, Request, frame

log = structlog.get_logger("vigil.memory")

T = TypeVar("T")

ENGINE: Final = f"{__package__}.engine"
ANSWER_S_MAX: Final = 120.0
"""A call that takes longer never ends. The slowest, opening 100,000 points, takes 0.4 s."""
STOP_S_MAX: Final = 10.0
LINE_BYTES: Final = 4096


class EngineFailed(Unavailable):
    """It is there, and could not do it."""


class EngineGone(Unavailable):
    """Its process ended: what was stored since the last flush may be lost."""


class EngineSilent(Unavailable):
    """It did not answer, and was ended."""


class EngineLocked(Unavailable):
    """Another process uses the folder."""


class EngineProcess:
    """One run of the engine. When it is gone it stays gone."""

    def __init__(self, process: Process, answer_s_max: float) -> None:
        stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
        if stdin is None or stdout is None or stderr is None:
            raise ValueError("all three have to be pipes")
        self._process = process
        self._answer_s_max = answer_s_max
        self._requests = stdin
        self._waiting: deque[asyncio.Future[Reply | None]] = deque()
        self.is_gone = False
        self.has_failed = False
        """It was there and could not do something: better start it again."""
        self._tasks = [
            asyncio.create_task(self._read_answers(stdout)),
            asyncio.create_task(_read_complaints(stderr)),
        ]

    @classmethod
    async def start(cls, folder: Path, *, answer_s_max: float = ANSWER_S_MAX) -> EngineProcess:
        try:
            process = await spawn(folder)
        except OSError as error:
            raise EngineGone(f"the vector engine can't be started: {error}") from error
        return cls(process, answer_s_max)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ask(self, request: Request, answer: type[T]) -> T:
        """Return the answer.

        Raises:
            EngineFailed: it says why.
            EngineGone: it ended before it answered.
            EngineLocked: it may not even begin.
            EngineSilent: it took too long, and was ended.
        """
        waiting = self._send(request)
        try:
            async with asyncio.timeout(self._answer_s_max):
                reply = await asyncio.shield(waiting)
        except TimeoutError:
            self._process.kill()
            raise EngineSilent(
                f"the vector engine said nothing for {self._answer_s_max:g} s"
            ) from None
        if reply is None and self._process.returncode == LOCKED:
            raise EngineLocked("another process uses the folder of the vectors")
        if reply is None:
            raise EngineGone(f"the vector engine ended (exit code {self._process.returncode})")
        if isinstance(reply, Failed):
            self.has_failed = True
            raise EngineFailed(f"the vector engine failed: {reply.reason}")
        return msgspec.msgpack.decode(reply.value, type=answer)

    async def stop(self) -> None:
        """End it: what was not flushed may be lost."""
        self._requests.close()
        try:
            async with asyncio.timeout(STOP_S_MAX):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _send(self, request: Request) -> asyncio.Future[Reply | None]:
        if self.is_gone:
            raise EngineGone("the vector engine is gone")
        waiting: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        self._requests.write(frame(request))
        return waiting

    async def _read_answers(self, stdout: asyncio.StreamReader) -> None:
        decode = msgspec.msgpack.Decoder(Reply).decode
        try:
            while True:
                length = int.from_bytes(await stdout.readexactly(LENGTH_BYTES), "big")
                reply: Done | Failed = decode(await stdout.readexactly(length))
                waiting = self._waiting.popleft()
                if not waiting.done():
                    waiting.set_result(reply)
        except (asyncio.IncompleteReadError, OSError):
            await self._note_gone()

    async def _note_gone(self) -> None:
        self.is_gone = True
        await self._process.wait()
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)


async def spawn(folder: Path) -> Process:
    """Start the engine of a folder with pipes to it. Raises: OSError."""
    return await start(
        sys.executable,
        "-Pm",
        ENGINE,
        str(folder),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=environ.of_program(os.environ),
    )


async def _read_complaints(stderr: asyncio.StreamReader) -> None:
    with contextlib.suppress(OSError):
        while text := await stderr.read(LINE_BYTES):
            log.warning("engine", action="memory.engine", text=text.decode("utf-8", "replace"))
