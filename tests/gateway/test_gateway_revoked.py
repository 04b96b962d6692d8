"""Open streams of whom isn't let in any more: nothing that waited for them is sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from services.gateway.console.changes import InnerStream
from services.gateway.sessions.sockets import CLOSE_UNAUTHORIZED, Socket, _End
from services.gateway.signals.endpoint import SignalStream
from services.gateway.state.selection import Selection
from tests.support.gateway import running_gateway, until
from vigil.settings import tokens
from vigil.settings.tokens import Principal
from vigil.subjects import SessionKey

ANN: Final = Principal(user="ann", is_admin=False, token_id="t1")
KEY: Final = SessionKey.parse("ann:vigil:t1")
LIVE: Final = "live.vigil.ann.t1"


async def test_no_piece_of_an_answer_follows_once_the_token_is_revoked(tmp_path: Path) -> None:
    """X-4: the stream waits for the next piece; when that comes, its reader has no token."""
    async with running_gateway(tmp_path / "vigil") as gate:
        token = await gate.token("ann")
        client = await gate.http(token)
        async with client.stream("GET", f"/api/sessions/{KEY}/tokens") as stream:
            lines = stream.aiter_lines()
            await gate.admin.send(LIVE, b'{"turn":1,"attempt":1,"text":"one"}')
            assert "one" in await anext(line async for line in lines if line.startswith("data"))
            await tokens.revoke(gate.operator, token)

            async def is_out() -> bool:
                return (await client.get("/api/me")).status_code == 401

            await until(is_out, "the gateway knows")
            await gate.admin.send(LIVE, b'{"turn":1,"attempt":1,"text":"two"}')
            async with asyncio.timeout(30):
                assert [line async for line in lines if line.startswith("data")] == []


class Edge(SimpleNamespace):
    """What a stream needs of a gateway in which a token holds for the first look alone."""

    def __init__(self) -> None:
        super().__init__(
            tokens=self,
            looks=0,
            feed=SimpleNamespace(is_alive=True),
            config=SimpleNamespace(socket_queue_max=10),
            clock=SimpleNamespace(now=lambda: datetime(2026, 11, 20, tzinfo=UTC)),
        )

    def find_id(self, *_: Any) -> Principal | None:
        self.looks += 1
        return ANN if self.looks == 1 else None


async def _socket(edge: Any, send: Any) -> None:
    socket = Socket(edge, ANN, KEY, "c", 0, None, send, None)
    socket._put("piece-1", 0)
    with pytest.raises(_End) as end:
        await socket._write()
    assert end.value.code == CLOSE_UNAUTHORIZED


async def _signals(edge: Any, send: Any) -> None:
    stream = SignalStream(edge, ANN, Selection(), None, follow=True)
    stream._reader.put(b"piece-1")
    await stream._read_along(send)


async def _console(_: Any, send: Any) -> None:
    """A page's stream, once its browser is signed out elsewhere."""
    end = asyncio.Event()

    @contextlib.asynccontextmanager
    async def end_of(*_: Any) -> AsyncIterator[asyncio.Event]:
        yield end

    async def follow(_path: str, _last: Any, _receive: Any, told: Any) -> None:
        await told({"type": "http.response.start", "status": 200, "headers": []})
        end.set()
        await told({"type": "http.response.body", "body": b"piece-1", "more_body": True})

    visit: Any = SimpleNamespace(
        browser="b",
        now=None,
        edge=SimpleNamespace(browsers=SimpleNamespace(end_of=end_of)),
        api=SimpleNamespace(follow=follow),
    )
    await InnerStream(visit, "/api/signals")({}, None, send)


@pytest.mark.parametrize("stream", [_socket, _signals, _console])
async def test_what_waited_is_not_sent_to_whom_was_let_in_a_moment_ago(
    stream: Callable[[Any, Any], Awaitable[None]],
) -> None:
    """X-4: between the look at the token and the next piece it may have ended."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async with asyncio.timeout(30):
        await stream(Edge(), send)
    assert "piece-1" not in str(sent)
