"""A Qdrant server: one collection for all owners, kept apart by the filters.

Replicas of the memory service share it: each stores the same points under the same ids, so who was
first doesn't matter. Which embedder made it, and whether it was ever filled, stands in the
collection's metadata.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from vigil.errors import Unavailable
from vigil.subjects import Scope

from . import Near, Point, Where
from .filters import (
    INDEXES,
    LAYOUT,
    NUM,
    SCOPE,
    Between,
    Condition,
    Conditions,
    Is,
    IsOneOf,
    NotBy,
    allowed,
    key_of,
    payload_of,
    whose,
)

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient
    from qdrant_client import models as q

COLLECTION: Final = "vigil_memories"
FILLED: Final = "filled_with"
"""In the metadata: the layout of points that all of it was stored in."""
OLD_FILLED: Final = "is_filled"
"""What versions before said there: true means that one of them stored all of it again since."""
POINTS_MAX: Final = 256
"""Of one request: some 1.5 MB of JSON."""
SEARCH_S_MAX: Final = 5.0
WRITE_S_MAX: Final = 60.0


class ServerIndex:
    """See `VectorIndex`.

    Args:
        client: None: one of that URL is made when it is opened (importing it takes 3 s).
    """

    name = "qdrant"

    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        *,
        client: AsyncQdrantClient | None = None,
        search_s_max: float = SEARCH_S_MAX,
        write_s_max: float = WRITE_S_MAX,
    ) -> None:
        self._url = url
        self._api_key = api_key
        self._client = client
        self._search_s_max = search_s_max
        self._write_s_max = write_s_max
        self._is_filling = False
        self._opening = asyncio.Lock()

    def __repr__(self) -> str:
        return f"ServerIndex({_host(self._url)!r})"

    async def open(self, embedder: str, dimension: int) -> bool:
        async with self._opening:
            client = await self._connected()
            async with self._failing(self._write_s_max):
                self._is_filling = not await _is_whole(client, embedder, dimension)
        return self._is_filling

    async def upsert(self, points: Sequence[Point]) -> None:
        from qdrant_client import models

        client = self._ready()
        rows = [
            models.PointStruct(
                id=key_of(point),
                vector=_floats(point.vector),
                payload={**payload_of(point), NUM: point.num},
            )
            for point in points
        ]
        for start in range(0, len(rows), POINTS_MAX):
            async with self._failing(self._write_s_max):
                await client.upsert(COLLECTION, rows[start : start + POINTS_MAX], wait=True)

    async def flush(self) -> None:
        """What was stored is on the server's disk already; from now on it counts as filled."""
        client = self._ready()
        if self._is_filling:
            async with self._failing(self._write_s_max):
                filled = {FILLED: LAYOUT, OLD_FILLED: False}
                await client.update_collection(COLLECTION, metadata=filled)
            self._is_filling = False

    async def search(self, vector: bytes, limit: int, where: Where) -> list[Near]:
        conditions = allowed(where)
        if not any(vector):
            return []  # a text without any known word is near to nothing
        async with self._failing(self._search_s_max):
            found = await self._ready().query_points(
                COLLECTION,
                query=_floats(vector),
                query_filter=_filter(conditions),
                limit=limit,
                with_payload=[NUM],
            )
        payloads = [(point.payload or {}, point.score) for point in found.points]
        # One without a number was just stored by a replica of an older version.
        return [Near(int(told[NUM]), score) for told, score in payloads if NUM in told]

    async def count(self, scope: Scope | None = None) -> int:
        matching = _filter(whose(scope)) if scope else None
        async with self._failing(self._write_s_max):
            counted = await self._ready().count(COLLECTION, count_filter=matching, exact=True)
        return counted.count

    async def drop(self, scope: Scope | None = None) -> None:
        """Forget points. Their bytes are on the server's disk: it overwrites them as it merges."""
        client = self._ready()
        async with self._failing(self._write_s_max):
            if scope is None:
                await _make_empty(client)
            else:
                await client.delete(COLLECTION, _filter(whose(scope)), wait=True)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _ready(self) -> AsyncQdrantClient:
        if self._client is None:
            raise Unavailable("the vector index has to be opened first")
        return self._client

    async def _connected(self) -> AsyncQdrantClient:
        if self._client is None:
            self._client = await asyncio.to_thread(self._connect)
        return self._client

    def _connect(self) -> AsyncQdrantClient:
        from qdrant_client import AsyncQdrantClient

        # Without the check of versions, which asks the server, and waits for it, here and now.
        return AsyncQdrantClient(
            url=self._url,
            api_key=self._api_key,
            timeout=int(self._write_s_max) or 1,
            check_compatibility=False,
        )

    @asynccontextmanager
    async def _failing(self, seconds_max: float) -> AsyncIterator[None]:
        """Turn whatever goes wrong with the server into `Unavailable`."""
        from qdrant_client.common.client_exceptions import QdrantException
        from qdrant_client.http.exceptions import ApiException

        host = _host(self._url)
        try:
            async with asyncio.timeout(seconds_max):
                yield
        except TimeoutError:
            raise Unavailable(f"Qdrant at {host}: no answer within {seconds_max:g} s") from None
        except (ApiException, QdrantException, OSError, ValueError) as error:
            raise Unavailable(f"Qdrant at {host}: {_reason(error)}") from error


async def _is_whole(client: AsyncQdrantClient, embedder: str, dimension: int) -> bool:
    """Make sure of a collection of that embedder; return whether it was ever filled."""
    from qdrant_client import models
    from qdrant_client.http.exceptions import ApiException

    if await client.collection_exists(COLLECTION):
        metadata = (await client.get_collection(COLLECTION)).config.metadata or {}
        if (metadata.get("embedder"), metadata.get("dimension")) == (embedder, dimension):
            await _index(client)
            return metadata.get(FILLED) == LAYOUT and not metadata.get(OLD_FILLED)
        await client.delete_collection(COLLECTION)
    try:
        await client.create_collection(
            COLLECTION,
            vectors_config=models.VectorParams(size=dimension, distance=models.Distance.DOT),
            metadata={"embedder": embedder, "dimension": dimension},
        )
    except ApiException:
        if await client.collection_exists(COLLECTION):
            # Another replica was first; it may have made it with another embedder, though.
            return await _is_whole(client, embedder, dimension)
        raise
    await _index(client)
    return False


async def _make_empty(client: AsyncQdrantClient) -> None:
    """Drop the collection and make it again as it was."""
    found = (await client.get_collection(COLLECTION)).config
    await client.delete_collection(COLLECTION)
    await client.create_collection(
        COLLECTION, vectors_config=found.params.vectors, metadata=found.metadata
    )
    await _index(client)


async def _index(client: AsyncQdrantClient) -> None:
    """Make the payload indexes. Again: whoever made the collection may have been killed between."""
    from qdrant_client import models

    for field, kind in INDEXES.items():
        schema: Any = models.PayloadSchemaType(kind)
        if field == SCOPE:
            schema = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
        await client.create_payload_index(COLLECTION, field, schema, wait=True)


def _filter(conditions: Conditions) -> q.Filter:
    from qdrant_client import models

    return models.Filter(must=[_condition(one) for one in conditions])


def _condition(one: Condition) -> q.FieldCondition | q.Filter:
    from qdrant_client import models

    match one:
        case Is(key, value):
            return models.FieldCondition(key=key, match=models.MatchValue(value=value))
        case IsOneOf(key, values):
            return models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))
        case Between(key, least, most):
            return models.FieldCondition(key=key, range=models.Range(gte=least, lte=most))
        case NotBy(key, at):
            missing = models.IsEmptyCondition(is_empty=models.PayloadField(key=key))
            later = models.FieldCondition(key=key, range=models.Range(gt=at))
            return models.Filter(should=[missing, later])


def _floats(vector: bytes) -> list[float]:
    return array("f", vector).tolist()


def _host(url: str) -> str:
    """Return what may be told of a URL: a name and a port, and no password."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def _reason(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    if status is not None:
        return f"it answered {status}"
    return f"{type(error).__name__}: {error}"
