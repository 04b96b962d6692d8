"""What strangers send is answered and leaves no trace in the log; nor does a client that leaves."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.support.cli import running_vigil

SOCKET = (
    b"GET /api/ws?session=me:vigil:t1 HTTP/1.1\r\nHost: %h\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
)
KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
STRANGE = (
    b"GARBAGE\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"POST /api/chat HTTP/1.1\r\nHost: %h\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    b"POST /hooks/x HTTP/1.1\r\nHost: %h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nZZ\r\n",
    b"GET /asyncapi.json HTTP/1.1\r\nHost: %h\r\n\r\n\r\nGET /openapi.json HTTP/1.1\r\n\xff: \r\n",
    b"GET /healthz HTTP/1.1\r\nHost: %h\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: %h\r\nX: " + b"a" * 70_000,
    b"POST /mcp HTTP/1.1\r\nHost: %h\r\nContent-Length: -1\r\n\r\n",
    SOCKET + KEY + b"\r\n",
    SOCKET + KEY + KEY + b"\r\n",
    SOCKET + KEY + b"Sec-WebSocket-Extensions: ,,;;=\r\n\r\n",
    SOCKET + KEY + b"Content-Length: 5\r\n\r\nhello\xff\xff",
    SOCKET + b"\r\n",
)
LEAVE = ("read", "reset", "half", "end")


def send(host: str, port: int, data: bytes, leave: str) -> None:
    """Send bytes, and leave: after the answer, at once by a reset, in the middle, or politely."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), 5) as connection:
        connection.settimeout(5)
        connection.sendall(data[: len(data) // 2] if leave == "half" else data)
        if leave in ("reset", "half"):
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            return
        if leave == "end":
            connection.shutdown(socket.SHUT_WR)
        connection.settimeout(0.5)
        while connection.recv(65536):
            pass


@pytest.mark.parametrize(
    "processes",
    [pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long), 6],
)
def test_strangers_leave_no_traceback(tmp_path: Path, processes: int) -> None:
    """X-7: without a token nobody fills the log; each line of it is one object with an action."""
    with running_vigil(tmp_path / "home", f"--processes={processes}") as cli:
        url = urlsplit(cli.run_state.url)
        assert url.hostname is not None
        assert url.port is not None
        log = cli.home / "logs" / "up.log"
        before = log.stat().st_size
        for data in STRANGE:
            for leave in LEAVE:
                name = f"{url.hostname}:{url.port}".encode()
                send(url.hostname, url.port, data.replace(b"%h", name), leave)
        assert httpx2.get(f"{cli.run_state.url}/healthz", timeout=10).status_code == 200
        cli("down")
        lines = log.read_bytes()[before:].decode().splitlines()
    told = [json.loads(line) for line in lines]
    assert all("action" in one for one in told)
    assert [one for one in told if one["level"] in ("warning", "error")] == []
