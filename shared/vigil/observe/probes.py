"""HTTP of a service that runs alone: ``/healthz``, ``/readyz``, ``/metrics``.

For container health checks and for Prometheus, where a service has no HTTP of its own. It is
served by the loop that does the work, so a loop that is stuck is also not alive. It takes no
input but a path, needs no token and tells nothing about people; bind it where only the operator
comes (`metrics.host`, loopback by default).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Final, Protocol

import msgspec
import structlog

from ..errors import ConfigError
from ..net.endpoint import shown_endpoint
from ..settings.sections import MetricsSection
from . import metrics
from .health import Alive, Health

log = structlog.get_logger("vigil.runtime")

HEAD_BYTES_MAX: Final = 8 * 1024
HEAD_TIMEOUT_S: Final = 5.0
JSON: Final = "application/json"


class ReplicaReadiness(msgspec.Struct, frozen=True):
    """The answer of /readyz."""

    ready: bool
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Probed(Protocol):
    """What there is to tell."""

    @property
    def metrics(self) -> metrics.Metrics: ...

    def health(self) -> Health: ...


class Probes:
    """What is told about the replica of this process. `context` is None until there is a broker."""

    def __init__(self) -> None:
        self.context: Probed | None = None
        self.waits_for = ""
        """Why there is none."""

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Return (status, content type, body) for a path."""
        if path == "/healthz":
            return 200, JSON, msgspec.json.encode(Alive(status="alive"))
        if path == "/readyz":
            readiness = self._readiness()
            return 200 if readiness.ready else 503, JSON, msgspec.json.encode(readiness)
        if path == "/metrics":
            body = b"" if self.context is None else self.context.metrics.exposition()
            return 200, metrics.CONTENT_TYPE, body
        return 404, "text/plain", b"/healthz, /readyz and /metrics are here\n"

    def _readiness(self) -> ReplicaReadiness:
        if self.context is None:
            why = f": {self.waits_for}" if self.waits_for else ""
            return ReplicaReadiness(False, (f"no broker yet{why}",))
        health = self.context.health()
        problems = health.problems
        if not health.ready and not problems:
            problems = health.warnings or ("starting",)
        return ReplicaReadiness(health.ready, problems, health.warnings)

    @contextlib.asynccontextmanager
    async def serving(self, config: MetricsSection) -> AsyncIterator[int]:
        """Serve while the block runs; yields the port, 0 if none is configured.

        Raises:
            ConfigError: the address can't be used.
        """
        if not config.port:
            yield 0
            return
        try:
            server = await asyncio.start_server(
                self._serve, config.host, config.port, limit=HEAD_BYTES_MAX
            )
        except OSError as error:
            where = shown_endpoint(config.host, config.port)
            raise ConfigError(f"[metrics] can't listen on {where}: {error.strerror}") from error
        port = server.sockets[0].getsockname()[1]
        log.info("probes", action="service.probes", host=config.host, port=port)
        try:
            yield port
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(HEAD_TIMEOUT_S):
                writer.write(self._respond(await _head(reader)))
                await writer.drain()
        writer.close()

    def _respond(self, head: bytes) -> bytes:
        method, _, rest = head.split(b"\r\n", 1)[0].partition(b" ")
        path = rest.split(b" ")[0].split(b"?")[0].decode("latin-1")
        status, kind, body = 405, "text/plain", b"GET only\n"
        if method in (b"GET", b"HEAD"):
            status, kind, body = self.answer(path)
        lines = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {kind}\r\n"
            f"content-length: {len(body)}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
        )
        return lines.encode() + (b"" if method == b"HEAD" else body)


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return b""
