"""Memories in a backup: the log is, what services make of it isn't, and isn't missed (SPEC X-9)."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from tests.keeping.test_backup import restored
from tests.keeping.test_backup import save as back_up
from tests.support.gateway import Gate
from tests.support.remembering import contents, look, running_memories, save, until_vectors
from tests.support.stack import Stack, settings_of
from vigil.backup import backup
from vigil.backup.archive import Archive
from vigil.broker.process import Broker
from vigil.contracts import Memory, MemorySaved, encode
from vigil.layout import LogLayout
from vigil.settings.sections import Nats
from vigil.subjects import Scope

QUESTIONS = ("pears and apples", "who sleeps on the sofa", "when does the train leave")
TOLD = (
    "the cat sleeps on the sofa", "pears grow in the garden", "apples grow behind the house",
    "the train to Bern leaves at seven", "the sofa is red", "nobody leaves before nine",
)  # fmt: skip


async def answers(client: httpx2.AsyncClient) -> dict[str, list[str]]:
    """Return what is recalled for each question, and what is listed."""
    found = {question: contents(await look(client, q=question)) for question in QUESTIONS}
    return found | {"": sorted(contents(await look(client)))}


@contextlib.asynccontextmanager
async def running_again(home: Path) -> AsyncIterator[Gate]:
    """The broker of a home that was restored; start what is needed."""
    broker = Broker(Nats(), home=home)
    await broker.start()
    stack = Stack(broker, settings_of(home), None)
    gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
    try:
        yield gate
    finally:
        await gate.close()
        await stack.close()
        await broker.stop()


@pytest.mark.parametrize("has_stale", [False, True])
async def test_memories_come_back_and_stale_files_are_noticed(
    tmp_path: Path, *, has_stale: bool
) -> None:
    """X-9, M-9: the same answers, also where files lie that were made of a later state of the log
    and the restored one has grown longer than that since."""
    old, new, file = tmp_path / "old", tmp_path / "new", tmp_path / "all.tar"
    async with running_memories(old) as gate:
        ann = await gate.person("ann")
        token = ann.headers["authorization"].removeprefix("Bearer ")
        ids = [await save(ann, text) for text in TOLD]
        await ann.delete(f"/api/memories/{ids[4]}")
        await until_vectors(ann)
        before = await answers(ann)
        await back_up(gate.admin, gate.stack.settings, file)
        for n in range(5):
            await save(ann, f"a sofa that the backup does not know: {n}")
        await until_vectors(ann)
        assert await answers(ann) != before
    parts = [part.name for part in Archive.open(file).manifest.parts]
    assert "streams/MEMORIES" in parts
    assert not [name for name in parts if name.startswith("home/memory")]
    if has_stale:
        shutil.copytree(old / "memory", new / "memory")
    await restored(file, new)
    async with running_again(new) as gate:
        await more(gate, 20)
        await gate.stack.start("memory", "gateway")
        ann = await gate.http(token)
        await until_vectors(ann)
        assert await answers(ann) == before
        await save(ann, "the sofa was sold")
        assert "the sofa was sold" in contents(await look(ann, q="sofa"))


async def more(gate: Gate, count: int) -> None:
    """Store memories of somebody else, so that the log is longer than what was made of it."""
    now = datetime.now(UTC)
    for n in range(count):
        record = MemorySaved(
            id=f"r{n}", agent="vigil", owner="bob", at=now, by="user:bob",
            memory=Memory(id=f"{n:032x}", content=f"note {n}", created_at=now),
        )  # fmt: skip
        await gate.admin.publish(Scope("vigil", "bob").record("save"), encode(record))


def test_the_truths_are_read_last() -> None:
    """X-9: what an acknowledged turn saved is in MEMORIES, and no signal tells of what isn't."""
    names: Sequence[str] = backup.stream_names(LogLayout())
    assert names[-4:] == ["SESSIONS", "MEMORIES", "SLOTS", "FILES"]
    assert names.index("SIGNALS") < names.index("SESSIONS")
    assert len(set(names)) == len(names)
