"""The Qdrant server when it is away, slow, broken, or refuses: `Unavailable`, within a time."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from services.memory.vectors import Where
from services.memory.vectors.choice import choose
from services.memory.vectors.edge import EdgeIndex
from services.memory.vectors.filters import NUM, key_of
from services.memory.vectors.server import COLLECTION, FILLED, OLD_FILLED, ServerIndex
from tests.support.qdrant import KEY, Cable, running_qdrant
from tests.support.receiver import Behaviour, drip, raw, running_receiver, silence, status
from tests.support.vectors import ANN, DIMENSION, found, point, vector
from vigil.errors import Unavailable
from vigil.settings.config import load

EMBEDDER = "tests-16"
SECRET = "s3cr3t-qdrant-key"


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (status(500), "500"),
        (status(401), "401"),
        (raw(b"not HTTP at all\r\n\r\n"), ""),
        (raw(b'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"result"'), ""),
        (raw(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nnull"), ""),
        (raw(b""), ""),
        (silence, "no answer within 0.5 s"),
        (drip, "no answer within 0.5 s"),
    ],
    ids=["500", "401", "no-http", "half", "null", "closed", "silence", "drip"],
)
async def test_whatever_a_server_does_is_told_as_unavailable(
    behaviour: Behaviour, reason: str
) -> None:
    """And never with the key in it (RELIABILITY S15)."""
    async with running_receiver(behaviour) as receiver:
        index = ServerIndex(
            f"http://127.0.0.1:{receiver.port}", SECRET, search_s_max=0.5, write_s_max=0.5
        )
        with pytest.raises(Unavailable, match=reason or None) as told:
            await index.open(EMBEDDER, DIMENSION)
        assert SECRET not in f"{told.value} {told.value!r} {index!r}"
        assert f"127.0.0.1:{receiver.port}" in str(told.value)
        for call in _calls(index):
            begun = time.monotonic()
            with pytest.raises(Unavailable):
                await call()
            assert time.monotonic() - begun < 5
        assert receiver.requests[0].headers["api-key"] == SECRET
        await index.close()


async def test_a_port_where_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        index = ServerIndex(f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(Unavailable):
            await index.open(EMBEDDER, DIMENSION)
        await index.close()


@pytest.mark.parametrize("told", [{FILLED: 1}, {OLD_FILLED: True}])
async def test_points_of_an_older_version_are_stored_again(told: dict[str, int | bool]) -> None:
    """They have no numbers that a search could tell; their ids on the server are the same."""
    async with running_qdrant() as (qdrant, url):
        index = ServerIndex(url, KEY)
        assert await index.open(EMBEDDER, DIMENSION)
        await index.upsert([point(1)])
        await index.flush()
        assert not await index.open(EMBEDDER, DIMENSION)
        client = qdrant._engine
        await client.update_collection(COLLECTION, metadata=told)
        await client.delete_payload(COLLECTION, [NUM], [key_of(point(1))])
        assert await found(index) == []
        assert await index.open(EMBEDDER, DIMENSION)
        await index.upsert([point(1)])
        await index.flush()
        assert not await index.open(EMBEDDER, DIMENSION)
        assert await index.count() == 1
        assert await found(index) == [1]
        await index.close()


async def test_it_goes_on_when_the_server_is_back() -> None:
    """Issue: Qdrant away; writes catch up."""
    async with running_qdrant() as (_, url):
        cable = Cable(int(urlsplit(url).port or 0))
        await cable.plug_in()
        index = ServerIndex(f"http://127.0.0.1:{cable.port}", KEY)
        assert await index.open(EMBEDDER, DIMENSION)
        await index.upsert([point(1)])
        await index.flush()
        await cable.pull_out()
        for call in _calls(index):
            with pytest.raises(Unavailable):
                await call()
        await cable.plug_in()
        assert not await index.open(EMBEDDER, DIMENSION)
        await index.upsert([point(2)])
        assert sorted(await found(index)) == [1, 2]
        await index.close()
        await cable.pull_out()


async def test_a_collection_that_vanished_is_made_and_filled_again() -> None:
    """A server that came back empty."""
    async with running_qdrant() as (qdrant, url):
        index = ServerIndex(url, KEY)
        await index.open(EMBEDDER, DIMENSION)
        await index.upsert([point(1)])
        await index.flush()
        await qdrant.forget(COLLECTION)
        with pytest.raises(Unavailable, match="404"):
            await found(index)
        with pytest.raises(Unavailable, match="404"):
            await index.upsert([point(2)])
        assert await index.open(EMBEDDER, DIMENSION)
        assert await index.count() == 0
        await index.close()


async def test_two_replicas_share_a_collection() -> None:
    """The same points under the same ids: who was first doesn't matter."""
    async with running_qdrant() as (_, url):
        one, two = ServerIndex(url, KEY), ServerIndex(url, KEY)
        opened = await asyncio.gather(*(each.open(EMBEDDER, DIMENSION) for each in (one, two)))
        assert opened == [True, True]
        for each in (one, two):
            await each.upsert([point(n) for n in range(20)])
            await each.flush()
        assert await one.count(ANN) == 20
        assert not await two.open(EMBEDDER, DIMENSION)
        await one.close()
        await two.close()


async def test_every_field_that_is_filtered_by_has_an_index() -> None:
    """SPEC M-3. What the real server makes of it: test_vectors.py, where Docker runs."""
    async with running_qdrant() as (qdrant, url):
        index = ServerIndex(url, KEY)
        await index.open(EMBEDDER, DIMENSION)
        await index.close()
        assert set(qdrant.indexed) >= {
            "source", "type", "thread", "created_at", "happened_at",
            "scope", "standing", "ended_at", "trust",
        }  # fmt: skip


def test_the_settings_choose(tmp_path: Path) -> None:
    here = choose(load({"VIGIL_HOME": str(tmp_path)}), tmp_path)
    assert isinstance(here, EdgeIndex)
    there = choose(
        load({
            "VIGIL_HOME": str(tmp_path), "QDRANT_URL": "http://me:pw@qdrant.test:6333",
            "QDRANT_API_KEY": SECRET,
        }),
        tmp_path,
    )  # fmt: skip
    assert isinstance(there, ServerIndex)
    assert repr(there) == "ServerIndex('qdrant.test:6333')"


def _calls(index: ServerIndex) -> list[Callable[[], Awaitable[object]]]:
    return [
        lambda: index.open(EMBEDDER, DIMENSION),
        lambda: index.upsert([point(1)]),
        index.count,
        lambda: index.drop(ANN),
        index.drop,
        lambda: index.search(vector(1), 10, Where(scope=ANN)),
    ]
