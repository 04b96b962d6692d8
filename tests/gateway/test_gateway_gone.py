"""Clients that go before they are answered: nothing is told to them, and nothing is wrong."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from pathlib import Path
from typing import Any

import pytest
import structlog

from services.gateway.state.cursors import Cursors
from tests.support.gateway import running_gateway
from vigil.errors import Unavailable

NONCE = "dGhlIHNhbXBsZSBub25jZQ=="


async def test_a_socket_that_went_while_it_was_refused_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """S-10: the broker is away, a page gives up waiting, and then it would be told 503."""
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def away(*_: Any) -> int:
        begun.set()
        await goes_on.wait()
        raise Unavailable("the broker is away")

    monkeypatch.setattr(Cursors, "load", away)
    async with running_gateway(tmp_path) as gate:
        token = await gate.token("ann")
        head = (
            f"GET /api/ws?session=ann:vigil:t1 HTTP/1.1\r\nHost: 127.0.0.1:{gate.port}\r\n"
            f"Authorization: Bearer {token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {NONCE}\r\n\r\n"
        )
        with structlog.testing.capture_logs() as lines, caplog.at_level(logging.ERROR):
            _, writer = await asyncio.open_connection("127.0.0.1", gate.port)
            writer.write(head.encode())
            await begun.wait()
            hard = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, hard)
            writer.transport.abort()
            # Another request is answered: the server has seen by then who went.
            assert (await (await gate.http()).get("/healthz")).status_code == 200
            goes_on.set()
            assert (await (await gate.http()).get("/healthz")).status_code == 200
        assert [line for line in lines if line["log_level"] in ("error", "critical")] == []
        assert [record.getMessage() for record in caplog.records] == []
