"""Erasing a person from what memory services make of the log, while they run (SPEC X-8)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.memory.recall.recall import Recaller
from services.memory.replica import slots
from tests.keeping.test_erase import NOTHING, TEXT, USER, canaries, erased
from tests.support.gateway import Gate, until
from tests.support.remembering import contents, look, running_memories, save, until_vectors
from vigil.backup import projections
from vigil.backup.projections import slots as folders
from vigil.bus.bus import Bus
from vigil.clock import SystemClock
from vigil.contracts import MemoriesMerged, Memory, MemorySaved, decode_memory, encode
from vigil.erasure import residue
from vigil.erasure.erase import Eraser
from vigil.erasure.theirs import filters_of
from vigil.errors import InvalidInput, NotFound
from vigil.marks import erasure
from vigil.memory.client import MemoryClient
from vigil.memory.operations.get import Get
from vigil.memory.operations.recall import Recall, Recalled
from vigil.memory.questions import ERASE, Erased
from vigil.subjects import Scope
from vigil.teams import TEAM

THEIRS = Scope("vigil", USER)
SHARED = Scope("crew", TEAM)
MANY = 12
CREW: dict[str, Any] = {"agents": {"crew": {"kind": "team", "members": [USER, "bob"]}}}


@contextlib.asynccontextmanager
async def running(home: Path, *replicas: str) -> AsyncIterator[Gate]:
    async with running_memories(home, **CREW) as gate:
        await gate.stack.start(*replicas)
        yield gate


def in_memory(home: Path) -> list[str]:
    """Return what of a canary is in files of memory services."""
    return [name for name in canaries(home) if name.startswith("memory/")]


async def test_every_replica_forgets_its_own(tmp_path: Path) -> None:
    """X-8: rows, full text, vectors, the log of writes; two that run, and one that doesn't."""
    async with running(tmp_path, "memory:2", "memory:3") as gate:
        ann, bob = await gate.person(USER), await gate.person("bob")
        for n in range(MANY):
            await save(ann, f"{TEXT} number {n} is about CANARYgarden", source="CANARYsource")
        await save(bob, "the garden of bob has pears")
        await until_vectors(ann)
        await until_made(tmp_path, 3)
        await gate.stack.stop("memory:3")
        assert {name.split("/")[1] for name in in_memory(tmp_path)} == {"0", "1", "2"}
        eraser = await erased(gate.admin, USER, quiet_s=0.2)
        assert eraser.swept.replicas == 2
        assert eraser.swept.deleted["MEMORIES"] == MANY
        left = {name.split("/")[1] for name in in_memory(tmp_path)}
        assert left == {"2"}, "of those that run, nothing is left while they run"
        assert projections.scrub(tmp_path / "memory") == 1
        assert in_memory(tmp_path) == []
        assert "the garden of bob has pears" in contents(await look(bob, q="garden"))
        await gate.stack.start("memory:3")
        # The same name is somebody new, and nothing is remembered of the one before.
        again = await gate.person(USER)
        assert contents(await look(again)) == []
        await save(again, "I am new here")

        async def is_found() -> bool:  # any replica may answer, within a second
            return contents(await look(again, q="garden new")) == ["I am new here"]

        await until(is_found, "what is new")


async def until_made(home: Path, count: int) -> None:
    """Wait until so many replicas have vectors of the canaries."""

    async def is_made() -> bool:
        files = in_memory(home)
        return all(any(f"memory/{n}/vectors/" in f for f in files) for n in range(count))

    await until(is_made, "vectors in every slot")


async def test_how_rare_their_words_were_is_forgotten_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-8: a recall counts the words of a memory, and keeps that while the service runs."""
    made: list[Recaller] = []
    real = Recaller.__init__

    def begin(self: Recaller, *parts: Any) -> None:
        made.append(self)
        real(self, *parts)

    monkeypatch.setattr(Recaller, "__init__", begin)
    async with running(tmp_path) as gate:
        ann = await gate.person(USER)
        await save(ann, f"{TEXT} is about a garden")
        assert contents(await look(ann, q="garden")) == [f"{TEXT} is about a garden"]
        assert any(THEIRS in one._frequencies._known for one in made)
        await erased(gate.admin, USER, quiet_s=0.2)
        assert not any(THEIRS in one._frequencies._known for one in made)


async def test_a_question_alone_makes_nobody_forget(tmp_path: Path) -> None:
    """X-4, X-8: whoever may ask, and even mark somebody: what is in the log is remembered."""
    async with running(tmp_path) as gate:
        ann = await gate.person(USER)
        await save(ann, f"{TEXT} stays")
        assert await projections.ask(gate.admin, USER, NOTHING) == 1
        assert contents(await look(ann)) == [f"{TEXT} stays"]
        now = datetime.now(UTC)
        mark = await erasure.begin(gate.admin, USER, now)
        subject = f"{ERASE}.{erasure.hash_of(USER)}"

        async def is_refused() -> bool:
            (answer,) = await gate.admin.ask_all(subject, b"", count=1, timeout=5)
            return msgspec.json.decode(answer, type=Erased).left == "it is still in the log"

        await until(is_refused, "the mark arrived")
        await erasure.end(gate.admin, USER, mark, now)

        async def is_back() -> bool:
            return (await ann.get("/api/memories")).status_code == 200

        await until(is_back, "the mark is gone")
        assert contents(await look(ann)) == [f"{TEXT} stays"]


async def test_until_it_is_over_nothing_of_theirs_is_taken_in_or_told(tmp_path: Path) -> None:
    """X-8: by whoever asks: here the cortex, whose session may be in the middle of a turn."""
    async with running(tmp_path) as gate:
        cortex = MemoryClient(await gate.stack.bus("cortex"))
        await save(await gate.person(USER), TEXT)
        mark = await erasure.begin(gate.admin, USER, datetime.now(UTC))

        async def is_refused() -> bool:
            try:
                await cortex.ask(THEIRS, Recall(query="anything"))
            except Exception as error:
                return "being erased" in str(error)
            return False

        await until(is_refused, "the mark arrived")
        await Eraser(gate.admin, USER, SystemClock(), NOTHING).run(quiet_s=0.2)
        await erasure.end(gate.admin, USER, mark, datetime.now(UTC))


# ---------------------------------------------------------------- shared


async def test_from_a_shared_memory_theirs_goes_and_what_was_made_of_it(tmp_path: Path) -> None:
    """X-8: what a summary had taken of others stands again, what they forgot stays forgotten."""
    async with running(tmp_path) as gate:
        ann, bob = await gate.person(USER), await gate.person("bob")
        theirs = await save(ann, f"{TEXT} likes tea", agentId="crew")
        bobs = await save(bob, "bob likes coffee", agentId="crew")
        secret = await save(bob, "bob would rather not say", agentId="crew")
        await ann.delete(f"/api/memories/{secret}", params={"agentId": "crew"})
        await merge(gate.admin, "5" * 32, theirs, bobs)
        client = MemoryClient(await gate.stack.bus("gateway"))
        await until_known(client, "5" * 32)
        await until_vectors(bob)
        assert in_memory(tmp_path)
        await erased(gate.admin, USER, quiet_s=0.2)
        assert in_memory(tmp_path) == []
        assert contents(await look(bob, agentId="crew")) == ["bob likes coffee"]
        found: Recalled = await client.ask(SHARED, Recall(query="tea coffee say"))
        assert [hit.memory.id for hit in found.hits] == [bobs]
        for gone in (theirs, "5" * 32, secret):
            with pytest.raises(NotFound):
                await client.ask(SHARED, Get(id=gone))
        log = await gate.admin.read("MEMORIES", [SHARED.everything])
        assert not [message for message in log if b"CANARY" in message.data]
        assert {decode_memory(message.data).by for message in log} <= {
            "user:bob", "erased", "memory", "maintenance",
        }  # fmt: skip
        # Nothing is left to do for a second time.
        again = await erased(gate.admin, USER, quiet_s=0.2)
        assert again.swept.deleted == {}


async def merge(admin: Bus, id_: str, *members: str) -> None:
    """Store a merge as maintenance does: the contents, one after the other."""
    now = datetime.now(UTC)
    record = MemoriesMerged(
        id="r" + id_[:31], agent=SHARED.agent, owner=SHARED.owner, at=now, by="maintenance",
        memory=Memory(id=id_, content=f"{TEXT} likes tea; bob likes coffee", created_at=now),
        merged_ids=members,
    )  # fmt: skip
    await admin.publish(SHARED.record("merge"), encode(record))


async def until_known(client: MemoryClient, id_: str) -> None:
    async def is_known() -> bool:
        try:
            await client.ask(SHARED, Get(id=id_))
        except NotFound:
            return False
        return True

    await until(is_known, "the summary was folded")


async def test_killed_between_a_memory_and_its_summary_it_is_found_again(tmp_path: Path) -> None:
    """X-8: the summary alone is left, by an earlier run, and goes as well."""
    async with running(tmp_path) as gate:
        bobs = await save(await gate.person("bob"), "bob likes coffee", agentId="crew")
        await merge(gate.admin, "5" * 32, "a" * 32, bobs)
        eraser = await erased(gate.admin, USER, quiet_s=0.2)
        assert eraser.swept.deleted["MEMORIES"] == 1
        assert in_memory(tmp_path) == []


async def test_a_flood_of_others_holds_nothing_up(tmp_path: Path) -> None:
    """X-8: while others save on and on, the replica still says that it is done."""
    async with running(tmp_path) as gate:
        ann = await gate.person(USER)
        for n in range(5):
            await save(ann, f"{TEXT} {n}")
        is_over = asyncio.Event()
        flood = asyncio.create_task(saves(gate.admin, is_over))
        try:
            await erased(gate.admin, USER, quiet_s=0.2)
        finally:
            is_over.set()
            count = await flood
        assert count > 50
        assert in_memory(tmp_path) == []


async def saves(admin: Bus, is_over: asyncio.Event) -> int:
    """Store memories of somebody else until it is over; return how many."""
    count = 0
    while not is_over.is_set():
        count += 1
        now = datetime.now(UTC)
        record = MemorySaved(
            id=f"r{count}", agent="vigil", owner="bob", at=now, by="user:bob",
            memory=Memory(id=f"{count:032x}", content=f"note {count}", created_at=now),
        )  # fmt: skip
        await admin.publish(Scope("vigil", "bob").record("save"), encode(record))
        await asyncio.sleep(0.01)
    return count


# ---------------------------------------------------------------- files


def test_a_slot_in_use_is_left_alone(tmp_path: Path) -> None:
    """X-8: its replica does it; the others' files are overwritten, and free again afterwards."""
    used, free = slots.take(tmp_path, slots_max=2), slots.take(tmp_path, slots_max=2)
    for slot in (used, free):
        (slot.folder / "vectors").mkdir()
        (slot.folder / "vectors" / "page.dat").write_bytes(b"CANARY")
        os.truncate(slot.folder / "vectors" / "page.dat", 1 << 40)  # a hole: nobody fills it
        (slot.folder / "memory.db").write_bytes(b"CANARY")
    free.release()
    assert projections.scrub(tmp_path) == 1
    assert [path.name for path in folders(tmp_path)] == ["0", "1"]
    assert {path.name for path in free.folder.iterdir()} == {"lock"}
    assert (used.folder / "memory.db").read_bytes() == b"CANARY"
    taken = slots.take(tmp_path, slots_max=2)
    assert taken.number == free.number
    taken.release()
    used.release()


def test_nothing_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert projections.scrub(tmp_path / "memory") == 0
    assert projections.owners(tmp_path / "memory.db") == []
    (tmp_path / "memory.db").write_bytes(b"no database" * 1000)
    assert projections.owners(tmp_path / "memory.db") == []


def test_nobody_is_called_team() -> None:
    """M-2, X-8: erasing that name would erase what all of them share."""
    with pytest.raises(InvalidInput):
        filters_of(TEAM)


def test_what_a_replica_did_not_remove_is_told(tmp_path: Path) -> None:
    """X-8: rows of theirs, and vectors; not what somebody else is reminded of."""
    slot = tmp_path / "memory" / "0"
    (slot / "vectors").mkdir(parents=True)
    (slot / "vectors" / "page.dat").write_bytes(b'\0{"owner":"ann","thread":"t1"}\0')
    with contextlib.closing(sqlite3.connect(slot / projections.DATABASE)) as db:
        db.execute("CREATE TABLE scopes (agent, owner, note)")
        db.executemany("INSERT INTO scopes VALUES ('vigil', ?, ?)", [("ann", ""), ("bob", "ben")])
        db.commit()
    left = residue.scan(tmp_path, "ann")
    assert [(one.file, one.kind, one.count) for one in left] == [
        ("memory/0/memory.db", "memory", 1), ("memory/0/vectors/page.dat", "memory", 1),
    ]  # fmt: skip
    assert "vigil down" in left[0].why
    assert residue.scan(tmp_path, "ben") == []
