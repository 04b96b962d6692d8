"""`vigil up`: the broker and the services, started in order, kept alive, ended in order.

A service is asyncio tasks of this process, or a child process that a crash can't take the others
down with (`vigil.local.runfile.APART`). Both are restarted when they end, with a growing delay, and
both are asked themselves whether they are ready, over the bus.

The gateway's port is chosen here and kept, so a restarted gateway comes back where it was. It
is no cluster manager: replicas on several machines are what `vigil serve` and images are for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec
import structlog

from ..broker.ports import free_port
from ..broker.process import Broker
from ..broker.provision import provision, provision_outside
from ..bus.bus import Bus
from ..errors import ConfigError, Unavailable
from ..imports import garbage
from ..net.endpoint import shown_endpoint
from ..observe.cpu import cpu_of
from ..observe.health import HEALTH, Health
from ..settings import credentials
from ..settings.config import Settings
from ..topology import SERVICES
from ..upgrade import migrate
from ..worker.patience import AWAY, Patience, after_s
from . import runfile
from .forks import ForkedService
from .home import check_whole, connect_admin, ensure_token
from .runfile import APART, Lock, RunFile
from .runners import STOP_GRACE_S, ProcessRunner, Restarts, Runner, TaskRunner
from .startup import StartedService, StartProgress, in_words

log = structlog.get_logger("vigil.up")

PREPARE_S: Final = 120.0
"""How long our own broker may leave questions without an answer right after its start."""
POLL_S: Final = 0.05
TELL_S: Final = 5.0
"""How often it's told at most what a start is at."""
STOP_GATEWAY_S: Final = 10.0
EARLY_DEATHS_MAX: Final = 3
"""How often a service may end before everything was ready once, until the start is given up."""
REPLICAS_ASKED: Final = 1000


class Supervisor:
    """Everything that `vigil up` runs, from the lock to the last goodbye."""

    def __init__(
        self,
        settings: Settings,
        processes: int,
        without: Collection[str] = (),
        forked: Mapping[str, ForkedService] | None = None,
    ) -> None:
        self._forked = forked
        self.settings = _with_port(settings)
        self._apart = APART[processes]
        self._names = [name for name in SERVICES if name not in without]
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ended: dict[str, str] = {}
        """Why a service ended that isn't started again yet."""
        self._is_ready = False
        gateway = self.settings.config.gateway
        self._run = RunFile(
            pid=os.getpid(),
            url=f"http://{_reachable(gateway.host)}:{gateway.port}",
            nats_url=self.settings.config.nats.url,
            started_at=datetime.now(UTC),
            processes=processes,
        )

    async def run(self, on_ready: Callable[[RunFile], None]) -> None:
        """Start everything, call `on_ready`, and keep it up until cancelled.

        Raises:
            AlreadyRunning: another one holds this home.
            ConfigError: it can't start as configured.
            Unavailable: the broker of `nats.url` can't be reached.
        """
        lock = Lock(self.settings.run_file)
        lock.acquire()
        try:
            check_whole(self.settings.home)
            check_port(self.settings)
            migrate.bring_up(self.settings.home)  # before anything is stored
            self._note(self._run)
            async with contextlib.AsyncExitStack() as stack:
                url = await self._broker(stack)
                await self._prepared(url)
                self._note(msgspec.structs.replace(self._run, nats_url=url))
                await self._services(url, on_ready)
        finally:
            lock.release()

    async def _broker(self, stack: contextlib.AsyncExitStack) -> str:
        if self.settings.config.nats.url:
            credentials.ensure(self.settings.credentials)
            return self.settings.config.nats.url
        config = self.settings.config
        broker = Broker(config.nats, home=self.settings.home, retention=config.retention)
        stack.push_async_callback(broker.stop)
        broker.on_spawn = lambda: self._note_broker(broker.pid or 0)
        await broker.start()
        broker.watch()
        return broker.url

    async def _prepared(self, url: str) -> None:
        """Make what is missing on the broker; ours, that just started, may be slow to answer."""
        patience_s = 0.0 if self.settings.config.nats.url else PREPARE_S
        patience = Patience(None, errors=AWAY, is_over=after_s(patience_s))
        await patience.run(lambda: self._prepare(url))

    async def _prepare(self, url: str) -> None:
        admin = await connect_admin(self.settings, url)
        try:
            config = self.settings.config
            await provision(admin, config.retention, config.nats)
            await provision_outside(admin, credentials.outside(self.settings.credentials))
            await ensure_token(admin, self.settings)
        finally:
            await admin.close()

    async def _services(self, url: str, on_ready: Callable[[RunFile], None]) -> None:
        tasks, children = (
            TaskRunner(self.settings, url),
            ProcessRunner(self.settings, url, forked=self._forked),
        )
        seed = credentials.load(self.settings.credentials, "operator")
        bus = await Bus.connect(url, role="operator", seed=seed)
        try:
            for name in self._names:
                runner: Runner = children if name in self._apart else tasks
                self._tasks[name] = asyncio.create_task(self._keep(name, runner), name=name)
            health = await self._wait_ready(bus)
            self._is_ready = True
            self._note(msgspec.structs.replace(self._run, starting={}, is_stuck=False))
            garbage.keep()
            self._note_ready(health)
            on_ready(self._run)
            await asyncio.wait(self._tasks.values(), return_when="FIRST_COMPLETED")
            self._raise_if_given_up()
        finally:
            await self._stop()
            await bus.close()

    async def _keep(self, name: str, runner: Runner) -> None:
        """Run a service for good."""
        loop = asyncio.get_running_loop()
        restarts = Restarts()
        deaths = 0
        while True:
            begun = loop.time()
            try:
                reason = await runner.run(name, lambda pid: self._note_pid(name, pid))
            except ConfigError as error:
                if not self._is_ready:
                    raise
                reason = str(error)
            deaths += 1
            self._ended[name] = reason
            if not self._is_ready and deaths >= EARLY_DEATHS_MAX:
                raise ConfigError(f"{name} does not start: {reason}")
            delay_s = restarts.after(loop.time() - begun)
            log.warning(
                "service ended", action="up.restart", service=name, reason=reason, delay_s=delay_s
            )
            await asyncio.sleep(delay_s)

    async def _wait_ready(self, bus: Bus) -> dict[str, Health]:
        """Wait until each of our own services says that it is ready, as long as anything moves.

        What serves by then is never ended for what doesn't: it goes on, and it is told what isn't
        there yet.

        Raises:
            Unavailable: nothing moves any more, and nothing serves.
        """
        loop = asyncio.get_running_loop()
        start, told_at_s = StartProgress(loop.time()), loop.time()
        while True:
            self._raise_if_given_up()
            services = await self._started(bus)
            stages = {name: one.at for name, one in services.items() if not one.is_ready}
            if not stages:
                return {name: one.health for name, one in services.items() if one.health}
            now_s = loop.time()
            has_moved = start.take_in(services, now_s)
            is_stuck = not has_moved and start.is_still(now_s)
            if is_stuck and len(stages) == len(services):
                raise Unavailable(f"nothing moves any more: {in_words(stages)}")
            is_changed = stages != self._run.starting and now_s >= told_at_s + TELL_S
            if is_changed or is_stuck != self._run.is_stuck:
                told_at_s = now_s
                self._note(msgspec.structs.replace(self._run, starting=stages, is_stuck=is_stuck))
                log.info("starting", action="up.starting", stuck=is_stuck, **stages)
            await asyncio.sleep(POLL_S)

    async def _started(self, bus: Bus) -> dict[str, StartedService]:
        """Return how each of our own services looks at the moment."""
        count = REPLICAS_ASKED if self.settings.config.nats.url else len(self._names) + 1
        answers = await bus.ask_all(HEALTH, b"", count=count, timeout=0.3)
        found = [msgspec.json.decode(answer, type=Health) for answer in answers]
        pids = self._run.services
        ours = {h.service: h for h in found if pids.get(h.service) == h.pid}
        return {
            name: StartedService(
                pid=0 if name in self._ended else pids.get(name, 0),
                ended=self._ended.get(name, ""),
                health=ours.get(name),
                cpu_s=cpu_of(pids[name]) if name in self._apart and pids.get(name) else 0.0,
            )
            for name in self._names
        }

    def _raise_if_given_up(self) -> None:
        for task in self._tasks.values():
            if task.done():
                task.result()

    def _note_ready(self, health: dict[str, Health]) -> None:
        model = str(health["cortex"].facts.get("model", "")) if "cortex" in health else ""
        self._note(msgspec.structs.replace(self._run, model=model, is_ready=True))

    def _note_pid(self, name: str, pid: int) -> None:
        self._ended.pop(name, None)
        services = self._run.services | {name: pid}
        self._note(msgspec.structs.replace(self._run, services=services))

    def _note_broker(self, pid: int) -> None:
        self._note(msgspec.structs.replace(self._run, broker_pid=pid))

    def _note(self, run: RunFile) -> None:
        self._run = run
        try:
            runfile.write(self.settings.run_file, run)
        except OSError as error:
            # A full disk: what runs goes on, and only the file is behind.
            log.error("run file not written", action="up.run_file", error=str(error))

    async def _stop(self) -> None:
        """End the gateway first, so that nothing new is accepted, then the others together."""
        log.info("stopping", action="up.stopping")
        gateway = self._tasks.pop("gateway", None)
        if gateway is not None:
            await _end([gateway], STOP_GATEWAY_S)
        await _end(list(self._tasks.values()), STOP_GRACE_S + 1)


async def _end(tasks: list[asyncio.Task[None]], grace_s: float) -> None:
    for task in tasks:
        task.cancel()
    if not tasks:
        return
    _, late = await asyncio.wait(tasks, timeout=grace_s)
    for task in late:
        log.warning("did not end in time", action="up.late", service=task.get_name())


def check_port(settings: Settings) -> None:
    """Raise ConfigError if the gateway's port is taken."""
    gateway = settings.config.gateway
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            gateway.host, gateway.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, proto) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        where = shown_endpoint(gateway.host, gateway.port)
        raise ConfigError(
            f"can't listen on {where} ({error.strerror or error}): end what uses it, or choose "
            "another port with VIGIL_PORT"
        ) from error


def _with_port(settings: Settings) -> Settings:
    """Choose the port now if the system may choose, so that a restart finds it again."""
    if settings.config.gateway.port:
        return settings
    gateway = msgspec.structs.replace(settings.config.gateway, port=free_port())
    config = msgspec.structs.replace(settings.config, gateway=gateway)
    return msgspec.structs.replace(settings, config=config)


def _reachable(host: str) -> str:
    """Return the name under which this machine reaches a server that listens on `host`."""
    if host in ("", "0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
