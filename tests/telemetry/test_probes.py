"""Probes of a service that runs alone: alive, ready, metrics."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.support.stack import Stack, settings_of
from vigil.broker.ports import free_port
from vigil.errors import ConfigError
from vigil.observe import metrics
from vigil.observe.probes import Probes
from vigil.runtime import _serve_alone
from vigil.settings.sections import MetricsSection

CHECK = (
    "import sys,urllib.request as u; "
    "u.urlopen('http://127.0.0.1:'+sys.argv[1]+'/readyz', timeout=3)"
)
"""What docs/telemetry.md tells to run as a health check."""


async def get(port: int, path: str) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=5) as client:
        return await client.get(f"http://127.0.0.1:{port}{path}")


def is_healthy(port: int) -> bool:
    command = [sys.executable, "-c", CHECK, str(port)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


async def test_a_service_alone_tells_when_it_is_ready(bare: Stack, tmp_path: Path) -> None:
    """X-7: not ready without a broker, ready with one, and the health check follows."""
    port = free_port()
    settings = settings_of(tmp_path, metrics={"port": port})
    nowhere = f"nats://127.0.0.1:{free_port()}"
    waiting = asyncio.create_task(_serve_alone("scheduler", settings, nowhere))
    try:
        async with asyncio.timeout(10):
            while True:
                with contextlib.suppress(httpx2.ConnectError):
                    answer = await get(port, "/readyz")
                    break
        assert answer.status_code == 503
        assert answer.json() == {"ready": False, "problems": ["no broker yet"], "warnings": []}
        assert (await get(port, "/healthz")).json() == {"status": "alive"}
        assert (await get(port, "/metrics")).text == ""
        assert not await asyncio.to_thread(is_healthy, port)
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    serving = asyncio.create_task(_serve_alone("scheduler", settings, bare.broker.url))
    try:
        async with asyncio.timeout(10):
            while True:
                with contextlib.suppress(httpx2.ConnectError):
                    if (answer := await get(port, "/readyz")).status_code == 200:
                        break
        assert answer.json() == {"ready": True, "problems": [], "warnings": []}
        assert await asyncio.to_thread(is_healthy, port)
        told = await get(port, "/metrics")
        assert told.headers["content-type"] == metrics.CONTENT_TYPE
        assert 'vigil_ready{instance="' in told.text
        assert (await get(port, "/")).status_code == 404
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def test_bad_requests_get_an_answer_and_hurt_nobody() -> None:
    """X-6"""
    port = free_port()
    async with Probes().serving(MetricsSection(port=port)) as served:
        assert served == port
        for request, begin in (
            (b"POST /healthz HTTP/1.1\r\n\r\n", b"HTTP/1.1 405"),
            (b"GET " + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", b"HTTP/1.1 405"),
            (b"\x00\xff\r\n\r\n", b"HTTP/1.1 405"),
            (b"GET /../../etc/passwd HTTP/1.1\r\n\r\n", b"HTTP/1.1 404"),
            (b"HEAD /healthz HTTP/1.1\r\n\r\n", b"HTTP/1.1 200"),
            (b"GET /healthz", b""),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            writer.write_eof()
            with contextlib.suppress(ConnectionError):
                assert (await reader.read()).startswith(begin)
            writer.close()
        assert (await get(port, "/healthz")).status_code == 200


async def test_a_port_that_is_taken_is_a_mistake_of_the_configuration() -> None:
    port = free_port()
    async with Probes().serving(MetricsSection(port=port)):
        with pytest.raises(ConfigError, match=str(port)):
            async with Probes().serving(MetricsSection(port=port)):
                pass


async def test_without_a_port_nothing_listens() -> None:
    async with Probes().serving(MetricsSection()) as port:
        assert port == 0
