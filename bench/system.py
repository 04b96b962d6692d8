"""The system under measurement: the real `vigil up` in a home of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import urllib.request
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil

from services.memory.vectors.engine_process import ENGINE
from vigil.bus.bus import Bus
from vigil.settings import credentials, tokens
from vigil.topology import ADMIN

START_TIMEOUT_S = 600.0
POLL_S = 5.0
AT_REST = 0.05
"""Share of a core: it does nothing that it wouldn't do always."""


class System:
    """A running `vigil up`: where it is, and what it uses."""

    def __init__(
        self, home: Path, url: str, nats_url: str, token: str, pid: int, apart: Sequence[int] = ()
    ) -> None:
        self.home = home
        self.nats_url = nats_url
        self.url = url
        self.token = token
        self._process = psutil.Process(pid)
        self._apart = [psutil.Process(one) for one in apart]

    async def admin(self) -> Bus:
        """Connect to its broker as the one who may read everything."""
        seed = credentials.load(self.home / "nkeys", ADMIN)
        return await Bus.connect(self.nats_url, role=ADMIN, seed=seed)

    async def talk(self, sessions: int, messages: int, name: str) -> dict[str, float]:
        """Run the load (`bench.load`) as a process of its own; return what it found."""
        return await talk(self.url, self.token, sessions, messages, name)

    def services_rss_mb(self) -> float:
        """Resident memory of the process with the services, without the broker, in MiB."""
        return float(self._process.memory_info().rss / 2**20)

    def rss_mb(self) -> float:
        """Resident memory of everything: services and broker, in MiB."""
        return float(sum(p.memory_info().rss for p in self._family()) / 2**20)

    def rss_mb_of_each(self) -> dict[str, float]:
        """Resident memory by process, in MiB: the broker's by its name, others' by number."""
        return {
            f"{p.name()}-{p.pid}": round(p.memory_info().rss / 2**20, 1) for p in self._family()
        }

    def cpu_s(self) -> float:
        """CPU time of everything so far, in seconds."""
        times = [p.cpu_times() for p in self._family()]
        return float(sum(t.user + t.system for t in times))

    def cpu_s_by_part(self) -> dict[str, float]:
        """CPU time so far by what it is for: services, broker, the vectors' engine; in seconds."""
        found = dict.fromkeys(("services", "broker", "engine"), 0.0)
        for one in self._family():
            command = " ".join(one.cmdline())
            part = "engine" if ENGINE in command else "services"
            if "nats-server" in command:
                part = "broker"
            times = one.cpu_times()
            found[part] += times.user + times.system
        return found

    async def until_rest(self, patience_s: float) -> None:
        """Wait until it has worked off what lies behind it: that nothing is due shows in its CPU.

        Raises:
            TimeoutError: it still works after that many seconds.
        """
        async with asyncio.timeout(patience_s):
            while True:
                begun_s = self.cpu_s()
                await asyncio.sleep(POLL_S)
                if self.cpu_s() - begun_s < POLL_S * AT_REST:
                    return

    def end(self, number: int) -> None:
        """Send the signal to everything at once: services and broker."""
        for process in self._family():
            process.send_signal(number)

    def _family(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True), *self._apart]


def environment_of(home: Path) -> dict[str, str]:
    """Return what services run with: the rehearsal model, and no limit on how often one asks."""
    return {
        **os.environ,
        "VIGIL_HOME": str(home),
        "VIGIL_PORT": "0",
        "VIGIL_MODEL": "rehearsal",
        "VIGIL_MODEL__REHEARSAL_WORD_MS": "0",
        "VIGIL_GATEWAY__RATE_PER_S": "1000000",
        "VIGIL_GATEWAY__RATE_BURST": "1000000",
    }


async def tokens_of(home: Path, nats_url: str, people: Sequence[str]) -> list[str]:
    """Make a token for each of the people, as `vigil token create` does."""
    seed = credentials.load(home / "nkeys", "operator")
    bus = await Bus.connect(nats_url, role="operator", seed=seed)
    try:
        now = datetime.now(UTC)
        return [await tokens.create(bus, user=person, now=now) for person in people]
    finally:
        await bus.close()


async def talk(url: str, token: str, sessions: int, messages: int, name: str) -> dict[str, float]:
    """Run the load with one gateway; return what it found."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.load", url, token, str(sessions), str(messages), name,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError("the load failed")
    result: dict[str, float] = json.loads(output)
    return result


@contextlib.asynccontextmanager
async def running(
    home: Path,
    files: int = 0,
    *,
    flags: Sequence[str] = (),
    apart: Sequence[str] = (),
    gateways: Sequence[int] = (),
    python: str = sys.executable,
    folder: Path | None = None,
    **settings: str,
) -> AsyncIterator[System]:
    """Run `vigil up` with the rehearsal model, as fast as it answers.

    Args:
        files: how many it may have open, if it's to be bounded.
        flags: of `vigil up`.
        apart: services that run beside it, each in a process of its own; not the gateway.
        gateways: ports of more gateways, each in a process of its own.
        python: of the environment that it's installed in, which may be another tree's.
        folder: where it runs; None: here.
    """
    environment = environment_of(home) | settings
    limit = [] if not files else ["prlimit", f"--nofile={files}:{files}"]
    without = [f"--without={name}" for name in apart]
    async with contextlib.AsyncExitStack() as stack:
        log = stack.enter_context((home / "bench.log").open("wb"))

        async def start(*command: str, **more: str) -> asyncio.subprocess.Process:
            process = await asyncio.create_subprocess_exec(
                *limit, python, "-m", "vigil.cli", *command,
                env=environment | more, stdout=log, stderr=log, cwd=folder,
            )  # fmt: skip
            stack.push_async_callback(ended, process)
            return process

        process = await start("up", *flags, *without)
        others = []
        if apart or gateways:
            nats_url = str((await _run_file(home, process))["nats_url"])
            others = [await start("serve", name, NATS_URL=nats_url) for name in apart]
            others += [
                await start("serve", "gateway", NATS_URL=nats_url, VIGIL_PORT=str(port))
                for port in gateways
            ]
        yield await _ready(home, process, [one.pid for one in others])


async def ended(process: asyncio.subprocess.Process) -> None:
    """Ask a process to end, and wait until it has."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    await process.wait()


async def _run_file(home: Path, process: asyncio.subprocess.Process) -> dict[str, object]:
    """Return what `vigil up` notes of itself, once it knows its broker."""
    async with asyncio.timeout(START_TIMEOUT_S):
        while True:
            if process.returncode is not None:
                raise RuntimeError((home / "bench.log").read_text())
            with contextlib.suppress(OSError, ValueError):
                run: dict[str, object] = json.loads((home / "run" / "up.json").read_bytes())
                if run.get("nats_url"):
                    return run
            await asyncio.sleep(0.1)


async def _ready(home: Path, process: asyncio.subprocess.Process, apart: Sequence[int]) -> System:
    async with asyncio.timeout(START_TIMEOUT_S):
        while True:
            run = await _run_file(home, process)
            if not run["is_ready"]:  # /readyz doesn't wait for memory, what is measured does
                await asyncio.sleep(0.1)
                continue
            url, nats_url = str(run["url"]), str(run["nats_url"])
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"{url}/readyz", timeout=2),  # noqa: S310
            ):
                token = (home / "token").read_text().strip()
                return System(home, url, nats_url, token, process.pid, apart)
            await asyncio.sleep(0.1)
