"""A Qdrant server on loopback: the real REST models and the client's own engine behind HTTP.

It carries what `ServerIndex` uses of the interface, so that its requests, answers and failures go
over a wire on machines without Docker. What it isn't: a proof of how the real server searches.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import uvicorn
from fastapi.encoders import jsonable_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.support.pauses import pauses

KEY = "the-api-key-of-the-tests"

Handle = Callable[[str, bytes], Awaitable[Any]]


class Qdrant:
    """What it holds is in memory."""

    def __init__(self) -> None:
        # Not above: the import takes 2 s of whoever only collects the tests.
        from qdrant_client import AsyncQdrantClient, models

        self._models = models
        self._engine = AsyncQdrantClient(":memory:")
        self.requests: list[str] = []
        self.indexed: list[str] = []

    def app(self) -> Starlette:
        of_collection = "/collections/{name}"
        return Starlette(
            routes=[
                self._route("GET", f"{of_collection}/exists", self._exists),
                self._route("GET", of_collection, self._get),
                self._route("PUT", of_collection, self._create),
                self._route("PATCH", of_collection, self._update),
                self._route("DELETE", of_collection, self._delete),
                self._route("PUT", f"{of_collection}/index", self._index),
                self._route("PUT", f"{of_collection}/points", self._upsert),
                self._route("POST", f"{of_collection}/points/query", self._query),
                self._route("POST", f"{of_collection}/points/count", self._count),
                self._route("POST", f"{of_collection}/points/delete", self._delete_points),
            ]
        )

    async def forget(self, collection: str) -> None:
        """Lose a collection, as a server that comes back empty."""
        await self._engine.delete_collection(collection)

    async def close(self) -> None:
        await self._engine.close()

    def _route(self, method: str, path: str, handle: Handle) -> Route:
        async def endpoint(request: Request) -> JSONResponse:
            self.requests.append(f"{method} {request.url.path}")
            if request.headers.get("api-key") != KEY:
                return JSONResponse({"status": {"error": "Unauthorized"}}, 401)
            try:
                result = await handle(request.path_params["name"], await request.body())
            except ValueError as error:
                code = 404 if "not found" in str(error) else 400
                return JSONResponse({"status": {"error": str(error)}}, code)
            return JSONResponse({"result": jsonable_encoder(result), "status": "ok", "time": 0.0})

        return Route(path, endpoint, methods=[method])

    async def _exists(self, name: str, _: bytes) -> Any:
        return {"exists": await self._engine.collection_exists(name)}

    async def _get(self, name: str, _: bytes) -> Any:
        return await self._engine.get_collection(name)

    async def _create(self, name: str, body: bytes) -> Any:
        asked = self._models.CreateCollection.model_validate_json(body)
        return await self._engine.create_collection(
            name, vectors_config=asked.vectors, metadata=asked.metadata
        )

    async def _update(self, name: str, body: bytes) -> Any:
        asked = self._models.UpdateCollection.model_validate_json(body)
        return await self._engine.update_collection(name, metadata=asked.metadata)

    async def _delete(self, name: str, _: bytes) -> Any:
        return await self._engine.delete_collection(name)

    async def _index(self, name: str, body: bytes) -> Any:
        # The engine of the client has no indexes; the model still checks what was asked.
        self.indexed.append(self._models.CreateFieldIndex.model_validate_json(body).field_name)
        return {"operation_id": 0, "status": "completed"}

    async def _upsert(self, name: str, body: bytes) -> Any:
        asked = self._models.PointsList.model_validate_json(body)
        return await self._engine.upsert(name, asked.points)

    async def _query(self, name: str, body: bytes) -> Any:
        asked = self._models.QueryRequest.model_validate_json(body)
        return await self._engine.query_points(
            name,
            query=asked.query,
            query_filter=asked.filter,
            limit=asked.limit or 10,
            with_payload=asked.with_payload or False,
        )

    async def _count(self, name: str, body: bytes) -> Any:
        asked = self._models.CountRequest.model_validate_json(body)
        return await self._engine.count(name, asked.filter, exact=True)

    async def _delete_points(self, name: str, body: bytes) -> Any:
        asked = self._models.FilterSelector.model_validate_json(body)
        return await self._engine.delete(name, asked.filter)


@contextlib.asynccontextmanager
async def running_qdrant() -> AsyncIterator[tuple[Qdrant, str]]:
    """A server and its URL."""
    qdrant = Qdrant()
    config = uvicorn.Config(qdrant.app(), port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    serving = asyncio.create_task(server.serve([socket]))
    try:
        async with asyncio.timeout(20):
            pause_s = pauses()
            while not server.started:
                await asyncio.sleep(next(pause_s))
        yield qdrant, f"http://127.0.0.1:{socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        server.force_exit = True
        await serving
        socket.close()
        await qdrant.close()


class Cable:
    """A TCP proxy that can be pulled out: its connections break, new ones are refused."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def plug_in(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def pull_out(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in set(self._writers):
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers |= {writer, back}
        try:
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        finally:
            self._writers -= {writer, back}


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()
