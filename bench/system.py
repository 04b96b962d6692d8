"""The system under measurement: the real `vigil up` in a home of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import psutil

from vigil.bus.bus import Bus
from vigil.settings import credentials
from vigil.topology import ADMIN

START_TIMEOUT_S = 60.0


class System:
    """A running `vigil up`: where it is, and what it uses."""

    def __init__(self, home: Path, url: str, nats_url: str, token: str, pid: int) -> None:
        self.home = home
        self.nats_url = nats_url
        self.url = url
        self.token = token
        self._process = psutil.Process(pid)

    async def admin(self) -> Bus:
        """Connect to its broker as the one who may read everything."""
        seed = credentials.load(self.home / "nkeys", ADMIN)
        return await Bus.connect(self.nats_url, role=ADMIN, seed=seed)

    async def talk(self, sessions: int, messages: int, name: str) -> dict[str, float]:
        """Run the load (`bench.load`) as a process of its own; return what it found."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.load", self.url, self.token, str(sessions), str(messages),
            name, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, _ = await process.communicate()
        if process.returncode != 0:
            raise RuntimeError("the load failed")
        result: dict[str, float] = json.loads(output)
        return result

    def services_rss_mb(self) -> float:
        """Resident memory of the process with the services, without the broker, in MiB."""
        return float(self._process.memory_info().rss / 2**20)

    def rss_mb(self) -> float:
        """Resident memory of everything: services and broker, in MiB."""
        return float(sum(p.memory_info().rss for p in self._family()) / 2**20)

    def cpu_s(self) -> float:
        """CPU time of everything so far, in seconds."""
        times = [p.cpu_times() for p in self._family()]
        return float(sum(t.user + t.system for t in times))

    def end(self, number: int) -> None:
        """Send the signal to everything at once: services and broker."""
        for process in self._family():
            process.send_signal(number)

    def _family(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True)]


@contextlib.asynccontextmanager
async def running(home: Path, files: int = 0, **settings: str) -> AsyncIterator[System]:
    """Run `vigil up` in one process with the rehearsal model, as fast as it answers.

    With `files`, it can't have more open than so many.
    """
    environment = {
        **os.environ,
        "VIGIL_HOME": str(home),
        "VIGIL_PORT": "0",
        "VIGIL_MODEL": "rehearsal",
        "VIGIL_MODEL__REHEARSAL_WORD_MS": "0",
        "VIGIL_GATEWAY__RATE_PER_S": "1000000",
        "VIGIL_GATEWAY__RATE_BURST": "1000000",
        **settings,
    }
    log = (home / "bench.log").open("wb")
    process = await asyncio.create_subprocess_exec(
        *([] if not files else ["prlimit", f"--nofile={files}:{files}"]),
        sys.executable, "-m", "vigil.cli", "up", env=environment, stdout=log, stderr=log,
    )  # fmt: skip
    try:
        yield await _ready(home, process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        log.close()


async def _ready(home: Path, process: asyncio.subprocess.Process) -> System:
    async with asyncio.timeout(START_TIMEOUT_S):
        while True:
            if process.returncode is not None:
                raise RuntimeError((home / "bench.log").read_text())
            with contextlib.suppress(OSError, ValueError, KeyError):
                run = json.loads((home / "run" / "up.json").read_bytes())
                with urllib.request.urlopen(run["url"] + "/readyz", timeout=2):  # noqa: S310
                    token = (home / "token").read_text().strip()
                    return System(home, run["url"], run["nats_url"], token, process.pid)
            await asyncio.sleep(0.1)
