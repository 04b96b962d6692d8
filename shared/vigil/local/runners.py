"""How a service is run under `vigil up`: as tasks of this process, or as a child process.

A runner runs a service once and tells why it ended; when to start it again is decided by
`Restarts` and done by the supervisor in :mod:`vigil.local.up`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import structlog

from .. import runtime
from ..backoff import Backoff
from ..errors import ConfigError
from ..fields import environ
from ..processes.process import Process, start
from ..settings.config import Settings
from ..settings.live.renewal import Renewal
from ..texts.trouble import reason_of
from .forks import ForkedService

log = structlog.get_logger("vigil.up")

RESTART: Final = Backoff(0.2, 10.0)
STEADY_AFTER_S: Final = 10.0
"""A service that lived this long starts again without a longer delay."""
STOP_GRACE_S: Final = 12.0


class Restarts:
    """How long to wait before the next start; forgets once a run was steady."""

    def __init__(self) -> None:
        self._failures = 0

    def after(self, lived_s: float) -> float:
        """Return the delay in seconds after a run of `lived_s` seconds.

        >>> restarts = Restarts()
        >>> [restarts.after(lived_s) for lived_s in (0.1, 0.1, 11.0, 0.1)]
        [0.2, 0.4, 0.2, 0.4]
        """
        if lived_s >= STEADY_AFTER_S:
            self._failures = 0
        self._failures += 1
        return RESTART.after(self._failures)


class Runner(Protocol):
    """Runs a service once. Cancelling it ends the service, in good order and in time."""

    async def run(self, name: str, on_start: Callable[[int], None]) -> str:
        """Run until the service ends by itself; return why, for the log.

        `on_start` gets the pid of the process that it runs in.

        Raises:
            ConfigError: it can't work as configured.
        """
        ...


class TaskRunner:
    """Services as tasks of this process."""

    def __init__(self, settings: Settings, url: str) -> None:
        self._settings = settings
        self._url = url
        self._renewals: dict[str, Renewal] = {}

    async def run(self, name: str, on_start: Callable[[int], None]) -> str:
        on_start(os.getpid())
        try:
            await self._run(name)
        except ConfigError:
            raise
        except Exception as error:
            if reason := runtime.of_broker(error):
                return reason
            log.exception("service failed", action="up.failed", service=name)
            return repr(error)
        return "it returned"

    async def _run(self, name: str) -> None:
        """Run it as it was configured at the start; one that failed, as it is by now, if it can,
        else with what it took in before."""
        if name not in self._renewals:
            self._renewals[name] = Renewal(name, self._settings)
        await runtime.run(name, self._settings, self._url, renewal=self._renewals[name])


class ProcessRunner:
    """Services as children. On Linux they die with this process, however it ends."""

    def __init__(
        self,
        settings: Settings,
        url: str,
        stop_grace_s: float = STOP_GRACE_S,
        forked: Mapping[str, ForkedService] | None = None,
    ) -> None:
        """Args: forked: processes that wait to be such a service, each for its first run."""
        self._forked = dict(forked or {})
        self._environ = os.environ | {
            "VIGIL_HOME": str(settings.home),
            "NATS_URL": url,
            "VIGIL_PORT": str(settings.config.gateway.port),
            # One port can't serve all of them; the gateway tells about each.
            "VIGIL_METRICS__PORT": "0",
        }
        self._grace_s = stop_grace_s

    async def run(self, name: str, on_start: Callable[[int], None]) -> str:
        try:
            process = await self._start(name, environ.of_service(self._environ, name))
        except OSError as error:
            return f"no process: {reason_of(error)}"
        on_start(process.pid)
        log.info("started", action="up.started", service=name, pid=process.pid)
        try:
            code = await process.wait()
        finally:
            await self._end(process)
        return f"exit code {code}"

    async def _start(self, name: str, env: dict[str, str]) -> Process | ForkedService:
        forked = self._forked.pop(name, None)
        if forked is not None:
            forked.begin(env)
            return forked
        # -P: a folder `services` of wherever a person stands isn't ours.
        return await start(
            sys.executable, "-Pm", f"services.{name}",
            stdin=subprocess.DEVNULL, env=env, is_ended_with_us=True,
        )  # fmt: skip

    async def _end(self, process: Process | ForkedService) -> None:
        if process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(self._grace_s):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
