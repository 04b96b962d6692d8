"""A gateway of its own, people with tokens, and records that other services would write."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import httpx2
import msgspec
import websockets
from websockets.asyncio.client import ClientConnection

from tests.support.pauses import pauses
from tests.support.stack import Stack, running_stack
from vigil.bus.bus import Ack, Bus, Message
from vigil.clock import Clock
from vigil.contracts import (
    Cause,
    Note,
    Receipt,
    ReceiptOutcome,
    Row,
    Said,
    SendMessage,
    SendPayload,
    State,
    Turn,
    encode,
)
from vigil.contracts.history import LetterHead
from vigil.settings import tokens
from vigil.subjects import SessionKey

OPEN_TIMEOUT_S: Final = 60.0
"""For a WebSocket, on a machine that other tests keep busy."""

WAIT_S: Final = 30.0
"""How long a test waits for what has to come: only one that fails waits so long."""


class Gate:
    """The gateway under test, and the ways to reach it."""

    def __init__(self, stack: Stack, admin: Bus, operator: Bus) -> None:
        self.stack = stack
        self.admin = admin
        self.operator = operator
        self._exits = contextlib.AsyncExitStack()

    @property
    def port(self) -> int:
        port: int = self.stack.contexts["gateway"].facts["port"]
        return port

    async def token(self, user: str, **options: Any) -> str:
        """Make a token as `vigil token create` does."""
        return await tokens.create(self.operator, user=user, now=datetime.now(UTC), **options)

    async def http(self, token: str | None = None, **headers: str) -> httpx2.AsyncClient:
        """Return a client that sends `token` with every request."""
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        client = httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=WAIT_S
        )
        return await self._exits.enter_async_context(client)

    async def person(self, user: str, **options: Any) -> httpx2.AsyncClient:
        """Return a client of a new token of `user`."""
        return await self.http(await self.token(user, **options))

    async def socket(
        self,
        token: str | None,
        session: str,
        /,
        headers: dict[str, str] | None = None,
        **query: Any,
    ) -> ClientConnection:
        """Open a WebSocket."""
        headers = dict(headers or {})
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        options = {name: query.pop(name) for name in ("max_queue",) if name in query}
        connection = await websockets.connect(
            f"ws://127.0.0.1:{self.port}/api/ws?{urlencode({'session': session} | query)}",
            additional_headers=headers,
            compression=None,
            proxy=None,
            open_timeout=OPEN_TIMEOUT_S,
            **options,
        )
        self._exits.push_async_callback(connection.close)
        return connection

    async def raw(self, request: bytes) -> bytes:
        """Send bytes as they are; return what comes until the end or a quiet moment."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        answer = b""
        with contextlib.suppress(TimeoutError, ConnectionError):
            while chunk := await asyncio.wait_for(reader.read(65536), 1.0):
                answer += chunk
                if b"\r\n\r\n" in answer and answer.endswith((b"}", b"\r\n0\r\n\r\n")):
                    break
        writer.close()
        return answer

    async def close(self) -> None:
        await self._exits.aclose()

    # ------------------------------------------------------------ what others write

    async def say(
        self,
        session: str,
        text: str,
        *,
        effect_id: str,
        caused_by: str = "e",
        tag: str | None = None,
    ) -> Ack:
        """Write a claim, as delivery does."""
        key = SessionKey.parse(session)
        said = Said(
            id=effect_id,
            session_key=session,
            text=text,
            at=datetime.now(UTC),
            caused_by=caused_by,
            turn_seq=0,
            tag=tag,
        )
        return await self.admin.publish(key.out_said(effect_id), encode(said))

    async def receipt(self, session: str, effect_id: str, outcome: ReceiptOutcome) -> Ack:
        """Write how a send ended, as delivery does."""
        key = SessionKey.parse(session)
        record = Receipt(
            effect_id=effect_id, session_key=session, outcome=outcome, at=datetime.now(UTC)
        )
        return await self.admin.publish(key.receipt(effect_id), encode(record))

    async def turn(
        self,
        session: str,
        state: State,
        *,
        sends: dict[str, str] | None = None,
        ended: tuple[str, ...] = (),
        letters: tuple[LetterHead, ...] = (),
        rows: tuple[Row, ...] = (),
        notes: tuple[Note, ...] = (),
    ) -> Ack:
        """Commit a turn, as the cortex does; `sends` maps effect ids to what caused them."""
        key = SessionKey.parse(session)
        effects = tuple(
            SendMessage(
                id=effect_id,
                ordinal=number,
                payload=SendPayload(text="…", caused_by=caused_by, fence=0),
            )
            for number, (effect_id, caused_by) in enumerate((sends or {}).items(), start=1)
        )
        record = Turn(
            id=f"t{state.turns}",
            session_key=session,
            ordinal=state.turns,
            event=Cause(id="e", seq=state.position, type="user_message"),
            outcome="answered",
            state=state,
            created_at=datetime.now(UTC),
            effects=effects,
            ended=ended,
            letters=letters,
            rows=rows,
            notes=notes,
        )
        headers = {"Vigil-Position": str(state.position)}
        return await self.admin.publish(
            key.turn_for("s" if effects else ""), encode(record), headers
        )

    async def stored(self, session: str) -> list[Message]:
        """Return every record of a session."""
        key = SessionKey.parse(session)
        return await self.admin.read(key.stream, [key.everything])


@contextlib.asynccontextmanager
async def running_gateway(
    home: Path, clock: Clock | None = None, **gateway: Any
) -> AsyncIterator[Gate]:
    """A gateway with the settings `gateway`, beside a broker and no other service."""
    async with running_stack(home, services=("gateway",), clock=clock, gateway=gateway) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        try:
            yield gate
        finally:
            await gate.close()


async def frame_of(socket: ClientConnection, wanted: str | None = None) -> dict[str, Any]:
    """Return the next frame (of the type `wanted`, if given)."""
    async with asyncio.timeout(WAIT_S):
        while True:
            frame: dict[str, Any] = msgspec.json.decode(await socket.recv())
            if wanted is None or frame["type"] == wanted:
                return frame


async def until(check: Callable[[], Awaitable[bool]], what: str, within_s: float = WAIT_S) -> None:
    """Wait until `check` holds.

    Raises:
        TimeoutError: it doesn't within `within_s`.
    """
    try:
        async with asyncio.timeout(within_s):
            pause_s = pauses()
            while not await check():
                await asyncio.sleep(next(pause_s))
    except TimeoutError as error:
        raise TimeoutError(f"never true: {what}") from error


def assert_problem(answer: httpx2.Response, status: int, field: str | None = None) -> Any:
    """Check that `answer` is problem+json with that status, naming that field."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["type"].startswith("urn:vigil:problem:")
    assert problem["title"]
    assert problem["detail"]
    assert "Traceback" not in answer.text
    if field is not None:
        assert problem["field"] == field
    return problem
