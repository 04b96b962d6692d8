"""Projectors as processes that can be killed, forked from one that has everything imported.

    python -m tests.support.projecting HOME URL

Reads commands, a line each, and answers each with a line: ``start [POINT:N]`` (the pid of a new
projector), ``wait PID`` (its exit code, once it ended). A start costs a fork and a connection
instead of a second of imports, so that hundreds of kills are a matter of seconds.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import uvloop

from services.cortex.signals.projector import Run
from tests.support import pipes, warm
from vigil import crash
from vigil.bus.bus import Bus
from vigil.clock import SystemClock, new_id
from vigil.errors import VigilError
from vigil.processes.process import Process, start
from vigil.processes.with_parent import die_with_parent
from vigil.settings import credentials

MODULE = "tests.support.projecting"
ROOT = Path(__file__).resolve().parents[2]
GATHER_S = 0.01
AGAIN_S = 0.01


async def project(url: str, seed: bytes) -> None:
    """Project as the cortex does, but without the lease: only the log decides who may append."""
    bus = await Bus.connect(url, role="cortex", seed=seed)
    while True:
        try:
            run = Run(bus, SystemClock(), new_id, timedelta(days=7), GATHER_S)
            async for _ in run.each():
                pass
        except VigilError:
            await asyncio.sleep(AGAIN_S)


def _start(home: str, url: str, crash_at: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    die_with_parent()
    os.close(0)
    os.dup2(2, 1)  # the answers have stdout to themselves
    crash._name, crash._left = crash._parse(crash_at)
    seed = credentials.load(Path(home) / "nkeys", "cortex")
    assert seed is not None
    uvloop.run(project(url, seed))
    os._exit(0)


def main() -> None:
    _, home, url = sys.argv
    gc.freeze()
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        if command == "start":
            answer = _start(home, url, argument)
        else:
            answer = os.waitstatus_to_exitcode(os.waitpid(int(argument), 0)[1])
        print(answer, flush=True)


class Nursery:
    """The process that forks, as the test sees it."""

    def __init__(self, process: Process | pipes.Piped) -> None:
        self._process = process

    @classmethod
    async def open(cls, home: Path, url: str) -> Nursery:
        if warm.IS_OFFERED:
            return cls(await pipes.start(MODULE, str(home), url, env=os.environ))
        return cls(await start(
            sys.executable, "-m", MODULE, str(home), url, cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, is_ended_with_us=True,
        ))  # fmt: skip

    async def start(self, crash_at: str = "") -> int:
        """Start a projector; returns its pid."""
        return await self._ask(f"start {crash_at}")

    async def wait(self, pid: int) -> int:
        """Wait until a projector ended; returns its exit code (negative: the signal)."""
        return await self._ask(f"wait {pid}")

    async def _ask(self, command: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n".encode())
        return int(await self._process.stdout.readline())

    async def close(self) -> None:
        self._process.kill()
        await self._process.wait()


if __name__ == "__main__":
    main()
