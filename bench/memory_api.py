"""Memory as a program of the owner asks for it, over HTTP, and as a service does, on the bus."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlsplit

from bench.conversations import Turn
from bench.load import Http, connect_http
from bench.system import System
from vigil.bus.bus import Bus
from vigil.settings import credentials

CONNECTIONS: Final = 32
PATIENCE_S: Final = 240.0
POLL_S: Final = 0.05


class Refused(RuntimeError):
    """An answer that is an error."""

    def __init__(self, what: str, status: int, answer: bytes) -> None:
        super().__init__(f"{what}: {status}: {answer!r}")
        self.status = status


class Client:
    """One connection that asks as a program of the owner would, or of somebody else."""

    def __init__(self, system: System, http: Http, token: str = "") -> None:
        self._http = http
        self._headers = (
            f" HTTP/1.1\r\nhost: {urlsplit(system.url).netloc}\r\n"
            f"authorization: Bearer {token or system.token}\r\ncontent-type: application/json\r\n"
        )

    def of(self, system: System, token: str) -> Client:
        """Return one that asks as whom the token is of, over the same connection."""
        return Client(system, self._http, token)

    async def call(self, method: str, path: str, body: bytes = b"") -> Any:
        head = f"{method} {path}{self._headers}".encode()
        status, answer = await self._http.post(head, body)
        if status not in (200, 201, 202):
            raise Refused(f"{method} {path}", status, answer)
        return json.loads(answer)

    async def save(self, agent: str, turn: Turn) -> str:
        """Post a turn; return the memory's id."""
        body = {
            "content": turn.text,
            "occurredAt": turn.at.isoformat(),
            "agentId": agent,
        }
        if turn.thread:
            body["threadId"] = turn.thread
        return str((await self.call("POST", "/api/memories", json.dumps(body).encode()))["id"])

    async def recall(
        self, agent: str, text: str, mode: str, limit: int, source: str = ""
    ) -> list[str]:
        """Return the ids of what is found."""
        path = f"/api/memories?agentId={agent}&mode={mode}&limit={limit}&source={source}"
        found = await self.call("GET", f"{path}&q={quote(text)}")
        return [memory["id"] for memory in found["memories"]]

    async def stats(self) -> dict[str, Any]:
        found: dict[str, Any] = await self.call("GET", "/api/memories/stats")
        return found

    async def until_found(self, patience_s: float = PATIENCE_S) -> None:
        """Wait until everything that is stored is in both indexes, also of what is starting."""
        await self.until(
            lambda found: (
                found["rebuild"] is None and found["vectors_position"] >= found["position"]
            ),
            patience_s,
        )

    async def until(
        self,
        is_so: Callable[[dict[str, Any]], bool],
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Wait until figures are as wanted; a service that is busy or starting is asked again."""
        async with asyncio.timeout(patience_s):
            while not await self._is_so(is_so):
                await asyncio.sleep(POLL_S)

    async def _is_so(self, is_so: Callable[[dict[str, Any]], bool]) -> bool:
        try:
            return is_so(await self.stats())
        except Refused as error:
            if error.status != HTTPStatus.SERVICE_UNAVAILABLE:
                raise
            return False


@asynccontextmanager
async def clients(system: System, count: int) -> AsyncIterator[list[Client]]:
    connections = [await connect_http(system.url) for _ in range(count)]
    try:
        yield [Client(system, http) for http in connections]
    finally:
        for http in connections:
            http.close()


@asynccontextmanager
async def bus_of(system: System, role: str) -> AsyncIterator[Bus]:
    """Connect to the system's broker as one of its services."""
    seed = credentials.load(system.home / "nkeys", role)
    bus = await Bus.connect(system.nats_url, role=role, seed=seed)
    try:
        yield bus
    finally:
        await bus.close()
