"""The memory service as others meet it: over the bus, against the real broker and real indexes."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from structlog.testing import capture_logs

from services.memory import __main__ as service
from services.memory.config import Limits
from services.memory.recall import terms
from services.memory.replica import slots
from tests.support.memories import ANN, BOB, Asking, asking, records, until
from tests.support.stack import Stack
from vigil.contracts import (
    MemoriesAccessed,
    MemoriesMerged,
    MemoriesUndone,
    Memory,
    MemoryForgotten,
    MemorySaved,
    decode_dead_letter,
    encode,
)
from vigil.errors import ConfigError, InvalidInput, NotFound, Unavailable
from vigil.memory.client import Conflict
from vigil.memory.operations.associate import Associate
from vigil.memory.operations.forget import Forget
from vigil.memory.operations.get import Get
from vigil.memory.operations.graph import GetGraph
from vigil.memory.operations.list import ListMemories
from vigil.memory.operations.maintain import Maintain
from vigil.memory.operations.recall import Recall
from vigil.memory.operations.save import Link, Save
from vigil.memory.operations.undo import Undo, Undone
from vigil.memory.questions import IDS_MAX, REBUILD, Rebuild, Rebuilding
from vigil.subjects import Scope

NOBODY = "0" * 32


async def stopped_and_started(stack: Stack) -> None:
    await stack.stop("memory")
    await stack.start("memory")


# ---------------------------------------------------------------- writing and reading


async def test_what_is_saved_is_found_at_once(bare: Stack) -> None:
    """M-2: an acknowledged save is in the next answers of the replica that took it."""
    await bare.start("memory")
    ann = await asking(bare)
    for number in range(10):
        saved = await ann.save(f"Ann's locker number {number} is {number * 7}")
        assert (await ann.ask(Get(id=saved.id))).memory.content.startswith("Ann's locker")
        assert saved.id in [hit.memory.id for hit in (await ann.recall(f"locker {number}")).hits]
    assert len(await ann.listed()) == 10
    assert not bare.contexts["memory"].bus.violations


async def test_a_memory_keeps_what_it_was_saved_with(bare: Stack) -> None:
    """M-1: fields, default importance, associations; the record is in the log."""
    await bare.start("memory")
    ann = await asking(bare)
    first = await ann.save("The flat is in Lisbon")
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    saved = await ann.save(
        "The lease ends in May", type="decision", source="chat:t1", stability="volatile",
        thread="t1", occurred_at=moment, valid_from=moment, provenance=("e1",), is_tainted=True,
        links=(Link(to_id=first.id, relation="part_of", weight=0.7),),
    )  # fmt: skip
    got = await ann.ask(Get(id=saved.id))
    memory = got.memory
    assert (memory.type, memory.importance, memory.source) == ("decision", 0.8, "chat:t1")
    assert (memory.occurred_at, memory.valid_from, memory.valid_to) == (moment, moment, None)
    assert (memory.provenance, memory.is_tainted, memory.seq) == (("e1",), True, saved.seq)
    (edge,) = got.edges
    assert (edge.from_id, edge.to_id, edge.relation) == (saved.id, first.id, "part_of")
    graph = await ann.ask(GetGraph(id=first.id))
    assert {node.id for node in graph.nodes} == {first.id, saved.id}
    record = (await records(await bare.bus("admin")))[1]
    assert isinstance(record, MemorySaved)
    assert (record.by, record.agent, record.owner) == ("user:ann", "vigil", "ann")


async def test_a_key_makes_a_repeat_harmless(bare: Stack) -> None:
    """S-5, M-2: the same key is the same memory, at once, later, and after a restart."""
    await bare.start("memory")
    ann = await asking(bare)
    several = await asyncio.gather(*(ann.save("once", key="k") for _ in range(10)))
    assert len({saved.id for saved in several}) == 1
    assert len({saved.seq for saved in several}) == 1
    assert sum(not saved.is_repeat for saved in several) <= 1
    await stopped_and_started(bare)
    again = await ann.save("once", key="k")
    assert again.is_repeat
    assert again.id == several[0].id
    assert await ann.listed() == ["once"]
    with pytest.raises(Conflict, match="key"):
        await ann.save("something else", key="k")
    bob = Asking(ann.bus, BOB)
    assert not (await bob.save("once", key="k")).is_repeat


async def test_a_key_of_what_was_forgotten_is_no_success(bare: Stack) -> None:
    """S-5, M-2: nothing is there, and nothing comes back: the repeat stores nothing."""
    await bare.start("memory")
    ann = await asking(bare)
    gone = await ann.save("the alarm code is 99", key="k")
    await ann.ask(Forget(ids=(gone.id,), by="user:ann"))
    before = len(await records(await bare.bus("admin")))
    for content in ("the alarm code is 99", "something else"):
        with pytest.raises(Conflict, match="forgotten"):
            await ann.save(content, key="k")
    assert len(await records(await bare.bus("admin"))) == before
    assert await ann.listed(with_ended=True) == []


async def test_a_key_used_twice_at_once_is_one_memory_and_a_conflict(bare: Stack) -> None:
    """S-5: also before the first save is in SQLite, a key never says "saved" of other words."""
    await bare.start("memory")
    ann = await asking(bare)
    for number in range(10):
        first, *others = await asyncio.gather(
            *(ann.save(f"{number}: answer {n}", key=f"k{number}") for n in range(4)),
            return_exceptions=True,
        )
        answers = [first, *others]
        told = [one for one in answers if not isinstance(one, BaseException)]
        assert len(told) == 1, answers
        assert all(isinstance(one, Conflict) for one in answers if one not in told)


async def test_nobody_can_fill_the_database_with_agents(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-6, S13: each agent's memory has tables of its own, which make everybody's reads slower."""
    most = 10
    monkeypatch.setattr(service, "Limits", partial(Limits, agents_per_owner_max=most))
    await bare.start("memory")
    ann = await asking(bare)
    several = [Asking(ann.bus, Scope(f"agent{number}", "ann")) for number in range(most + 1)]
    for one in several[:most]:
        await one.save("a first memory")
    await several[0].listed()  # all of that is in SQLite
    with pytest.raises(InvalidInput, match="agentId"):
        await several[most].save("one too many")
    await several[most - 1].save("a second memory")
    await Asking(ann.bus, BOB).save("others go on")


async def test_an_undo_of_much_is_several_records(bare: Stack) -> None:
    """M-4: no record outgrows what the broker takes; notes are in one with their summary."""
    bus = await bare.bus("memory")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    about: dict[str, Any] = {"agent": "vigil", "owner": "ann", "at": now, "by": "user:ann"}
    notes = [
        Memory(id=f"{n:032x}", content="x", created_at=now, source="bad")
        for n in range(IDS_MAX + 100)
    ]
    for start in range(0, len(notes), 250):
        saves = [
            MemorySaved(**about, id=f"save-{note.id}", memory=note)
            for note in notes[start : start + 250]
        ]
        await asyncio.gather(*(bus.publish(ANN.record("save"), encode(each)) for each in saves))
    summary = Memory(id="f" * 32, content="x and x", created_at=now, type="summary")
    pair = (notes[0].id, notes[-1].id)
    merge = MemoriesMerged(**about, id="merge", memory=summary, merged_ids=pair)
    await bus.publish(ANN.record("merge"), encode(merge))

    await bare.start("memory")
    ann = await asking(bare)
    await until(lambda: _has_memories(ann, len(notes) - 1), "the log was read")
    done = await ann.ask(Undo(source="bad", by="user:ann"))
    assert len(done.undone) == len(notes) + 1
    await until(lambda: _has_memories(ann, 0), "the undo was applied")  # a question waits a second
    undos = [one for one in await records(bus) if isinstance(one, MemoriesUndone)]
    assert [len(one.memory_ids) <= IDS_MAX for one in undos] == [True] * 2
    assert sorted(i for one in undos for i in one.memory_ids) == sorted(done.undone)
    assert [set(pair) <= set(one.memory_ids) for one in undos].count(True) == 1
    ended = (await ann.ask(Get(id=pair[1]))).memory
    assert (ended.ended, ended.superseded_by) == ("undone", summary.id), "it never stood again"


async def _has_memories(ann: Asking, number: int) -> bool:
    try:
        return (await ann.stats()).memories == number
    except Unavailable:
        return False


async def test_forget_associate_undo(bare: Stack) -> None:
    """M-2, M-4: what is forgotten is shown no more; a source is reverted with what came of it."""
    await bare.start("memory")
    ann = await asking(bare)
    one, two = await ann.save("the key is under the mat"), await ann.save("the mat is green")
    edge = (await ann.ask(Associate(from_id=one.id, to_id=two.id, by="user:ann"))).edge
    assert edge.weight == 0.5
    done = await ann.ask(Forget(ids=(one.id, NOBODY), by="user:ann"))
    assert (done.forgotten, done.missing) == (1, 1)
    with pytest.raises(NotFound):
        await ann.ask(Get(id=one.id))
    assert await ann.found("mat") == ["the mat is green"]
    assert await ann.listed(with_ended=True) == ["the mat is green"]

    root = await ann.save("the paper says 5", source="paper")
    derived = await ann.save("so it is 5", provenance=(root.id,))
    undone = await ann.ask(Undo(source="paper", by="user:ann"))
    assert set(undone.undone) == {root.id, derived.id}
    assert await ann.listed() == ["the mat is green"]
    with pytest.raises(NotFound):
        await ann.ask(Undo(source="nothing of that name", by="user:ann"))
    kinds = [type(record) for record in await records(await bare.bus("admin"))]
    assert MemoryForgotten in kinds
    assert MemoriesUndone in kinds


def test_an_older_replica_names_nothing_that_stands_again() -> None:
    """X-6: a gateway of the next version reads its answers; clients always find the field."""
    assert msgspec.json.decode(b'{"undone":["a"]}', type=Undone) == Undone(
        undone=("a",), restored=()
    )
    assert msgspec.json.encode(Undone(undone=("a",))) == b'{"undone":["a"],"restored":[]}'


async def test_owners_never_meet(bare: Stack) -> None:
    """M-2, S13: whose memory it is stands in the subject; another's ids lead nowhere."""
    await bare.start("memory")
    ann = await asking(bare)
    bob, other = Asking(ann.bus, BOB), Asking(ann.bus, Scope("work", "ann"))
    secret = await ann.save("Ann's PIN is 4711")
    for stranger in (bob, other):
        assert await stranger.found("what is Ann's PIN 4711") == []
        assert await stranger.listed() == []
        with pytest.raises(NotFound):
            await stranger.ask(Get(id=secret.id))
        assert (await stranger.ask(Forget(ids=(secret.id,), by="user:bob"))).forgotten == 0
        with pytest.raises(InvalidInput):
            await stranger.save("mine", links=(Link(to_id=secret.id),))
        with pytest.raises(NotFound):
            await stranger.ask(Associate(from_id=secret.id, to_id=NOBODY, by="user:bob"))
    assert await ann.found("PIN") == ["Ann's PIN is 4711"]


# ---------------------------------------------------------------- bad input


BAD: list[tuple[str, Any, str]] = [
    ("save", {"content": "", "by": "u"}, "content"),
    ("save", {"content": " \n\t", "by": "u"}, "content"),
    ("save", {"content": "x" * 100_000, "by": "u"}, "content"),
    ("save", {"content": "ß" * 10_000, "by": "u"}, "content"),
    ("save", {"content": "a\0b", "by": "u"}, "content"),
    ("save", {"content": "bell\x07", "by": "u"}, "content"),
    ("save", {"content": 5, "by": "u"}, "content"),
    ("save", {"content": "x"}, "by"),
    ("save", {"content": "x", "by": "u", "owner": "bob"}, "owner"),
    ("save", {"content": "x", "by": "u", "type": "gossip"}, "type"),
    ("save", {"content": "x", "by": "u", "importance": 1.5}, "importance"),
    ("save", {"content": "x", "by": "u", "source": "a\0"}, "source"),
    ("save", {"content": "x", "by": "u", "expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
    ("save", {"content": "x", "by": "u", "expires_at": "2099-01-01T00:00:00"}, "expires_at"),
    ("save", {"content": "x", "by": "u", "valid_from": "2027-01-01T00:00:00Z",
              "valid_to": "2026-01-01T00:00:00Z"}, "valid_to"),
    ("save", {"content": "x", "by": "u", "links": [{"to_id": NOBODY}]}, "links[0].to_id"),
    ("save", {"content": "x", "by": "u", "links": [{"to_id": "no id"}]}, "links[0].to_id"),
    ("recall", {"query": "x", "limit": 0}, "limit"),
    ("recall", {"query": "x", "limit": 1_000_000}, "limit"),
    ("recall", {"query": "x\0"}, "query"),
    ("recall", {"query": "x", "where": "1=1"}, "where"),
    ("recall", {"query": "x", "mode": "sql"}, "mode"),
    ("list", {"sort": "random()"}, "sort"),
    ("list", {"after": "not a cursor"}, "after"),
    ("get", {"id": "../../etc/passwd"}, "id"),
    ("forget", {"ids": [], "by": "u"}, "ids"),
    ("associate", {"from_id": NOBODY, "to_id": NOBODY, "by": "u"}, "to_id"),
    ("graph", {"depth": 9}, "depth"),
]  # fmt: skip


async def test_bad_input_is_told_by_field_and_reason(bare: Stack) -> None:
    """X-6, M-3: nothing of it is stored, and the service goes on."""
    await bare.start("memory")
    ann = await asking(bare)
    for op, question, field in BAD:
        status, body = await ann.raw(op, json.dumps(question).encode())
        refused = json.loads(body)
        assert (status, refused["field"]) == (422, field), (op, question, body)
        assert refused["reason"], (op, question)
    for junk in (b"[]", b"{", b"\xff\xfe", b'"x"', b'{"content":"\\ud800","by":"u"}', b"[" * 9999):
        status, _ = await ann.raw("save", junk)
        assert status == 422, junk[:20]
    assert (await ann.raw("get", json.dumps({"id": NOBODY}).encode()))[0] == 404
    assert await records(await bare.bus("admin")) == []
    assert bare.contexts["memory"].health().ready


TEXTS = (
    "'; DROP TABLE memories; --", '"unbalanced', "NEAR(a b", "a AND", "* ^ - : ( )", "col:x",
    "NOT", "{terms}: x", "%_", "𝕌nicode ☃ мир 你好 🙂", "-", "...", "a" * 2000,
)  # fmt: skip


async def test_no_text_is_syntax(bare: Stack) -> None:
    """X-6, M-3: SQL and FTS5 syntax in a content, a query, a source and a key are only text."""
    await bare.start("memory")
    ann = await asking(bare)
    ids = {}
    for text in TEXTS:
        saved = await ann.save(text, source=text[:200], key=text[:200], thread=text[:200])
        ids[text] = saved.id
    for text, id_ in ids.items():
        assert (await ann.ask(Get(id=id_))).memory.content == text
        await ann.recall(text)
        listed = await ann.ask(ListMemories(source=text[:200], thread=text[:200]))
        assert [memory.id for memory in listed.memories] == [id_], text
        assert (await ann.ask(Undo(source=text[:200], by="user:ann"))).undone == (id_,), text


async def test_answers_go_to_the_place_for_answers_only(bare: Stack) -> None:
    """X-4: a question whose answer would go elsewhere isn't heard (docs/adr/0014)."""
    await bare.start("memory")
    ann = await asking(bare)
    admin = await bare.bus("admin")
    heard: list[bytes] = []

    async def hear(msg: Any) -> None:
        heard.append(msg.data)

    await admin.listen("elsewhere", hear)
    question = msgspec.json.encode(Save(content="x", by="u"))
    await admin.send(ANN.question("save"), question, "elsewhere")
    await admin.send(ANN.question("save"), question, "$JS.ACK.MEMORIES.x.1.1.1.1.1")
    await admin.send("$SRV.PING", b"", "elsewhere")
    await ann.save("after them")
    assert await ann.listed() == ["after them"]
    assert heard == []
    assert bare.contexts["memory"].bus.violations == []


async def test_any_nats_tool_finds_the_service(bare: Stack) -> None:
    """X-7: the micro-service API, asked by the operator: who is there, what is asked, how often."""
    await bare.start("memory")
    ann = await asking(bare)
    await ann.save("x")
    assert (await ann.raw("save", b"{}"))[0] == 422
    operator = await bare.bus("operator")
    (ping,) = await operator.ask_all("$SRV.PING", b"", count=1, timeout=5)
    (info,) = await operator.ask_all("$SRV.INFO.memory", b"", count=1, timeout=5)
    (stats,) = await operator.ask_all("$SRV.STATS.memory", b"", count=1, timeout=5)
    assert json.loads(ping)["name"] == "memory"
    subjects = {one["subject"]: one["queue_group"] for one in json.loads(info)["endpoints"]}
    assert subjects["rpc.memory.save.*.*"] == subjects["rpc.memory.maintain"] == "memory"
    assert subjects[REBUILD] != "memory"
    (save,) = [one for one in json.loads(stats)["endpoints"] if one["name"] == "save"]
    assert (save["num_requests"], save["num_errors"]) == (2, 1)
    assert save["processing_time"] > 0
    assert not operator.violations


# ---------------------------------------------------------------- what is made of the log


async def test_a_record_nobody_can_read_is_passed_over(bare: Stack) -> None:
    """X-6, M-9: it becomes a dead letter once, and what comes after it is remembered."""
    admin = await bare.bus("admin")
    await admin.publish(ANN.record("save"), b"{not json")
    await admin.publish(ANN.record("forget"), b'{"op":"save","id":"x"}')
    await bare.start("memory")
    ann = await asking(bare)
    await ann.save("readable")
    await admin.publish(ANN.record("save"), b"\xff")
    await stopped_and_started(bare)
    assert await ann.listed() == ["readable"]

    async def letters() -> list[int]:
        found = await admin.read("DEAD", ["dead.memory.vigil.ann._memory"])
        return [decode_dead_letter(one.data).seq for one in found]

    async def are_there() -> bool:
        return await letters() == [1, 2, 4]

    await until(are_there, "three dead letters")
    await stopped_and_started(bare)
    await ann.save("still")
    assert await letters() == [1, 2, 4]


async def answers_of(ann: Asking) -> list[Any]:
    """Return answers that must not depend on how the indexes came to be."""
    await ann.until_vectors()
    # What counts as accessed, and the time that passed, would tell apart equal memories.
    hits = [
        [
            (hit.memory.id, round(hit.parts.vector, 4), round(hit.parts.text, 4))
            for hit in found.hits
        ]
        for found in [
            await ann.recall(query, counts=False)
            for query in ("green tea", "where does she live", "5 o'clock")
        ]
    ]
    return [hits, sorted(await ann.listed()), sorted(await ann.listed(with_ended=True))]


async def fill(ann: Asking) -> None:
    ids = [
        (await ann.save(f"{who} {what}", thread="t1", source=f"chat:{who}")).id
        for who in ("Ann", "Bob", "Cleo")
        for what in ("likes green tea", "lives in Lisbon", "gets up at 5 o'clock", "has a dog")
    ]
    await ann.ask(Associate(from_id=ids[0], to_id=ids[1], by="user:ann"))
    await ann.ask(Forget(ids=(ids[3],), by="user:ann"))
    await ann.ask(Undo(source="chat:Cleo", by="user:ann"))


async def test_deleted_while_down_it_is_made_again(bare: Stack) -> None:
    """M-9: SQLite and the vectors deleted while nothing runs; the answers are the same."""
    await bare.start("memory")
    ann = await asking(bare)
    await fill(ann)
    before = await answers_of(ann)
    folder = bare.settings.memory / "0"
    for what in ("memory.db", "vectors", "."):
        await bare.stop("memory")
        path = folder / what
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        await bare.start("memory")
        assert await answers_of(ann) == before


@pytest.mark.parametrize("what", ["all", pytest.param("vectors", marks=pytest.mark.long)])
async def test_rebuilt_while_running_nothing_is_ever_missing(
    bare: Stack, what: Literal["all", "vectors"]
) -> None:
    """M-9: while it's made anew the answers stay whole, or say that they are degraded."""
    await bare.start("memory")
    ann = await asking(bare)
    await fill(ann)
    before = await answers_of(ann)
    folder = bare.settings.memory / "0"
    if what == "all":
        (folder / "memory.db").unlink()
    shutil.rmtree(folder / "vectors")
    (answer,) = await ann.bus.ask_all(
        REBUILD,
        msgspec.json.encode(Rebuild(what=what)),
        count=1,
        timeout=5,
    )
    assert msgspec.json.decode(answer, type=Rebuilding).what == what
    found_all = True
    while (await ann.stats()).rebuild is not None:
        recalled = await ann.recall("green tea", counts=False)
        found_all &= {"Ann likes green tea", "Bob likes green tea"} <= {
            hit.memory.content for hit in recalled.hits
        }
        assert len(await ann.listed()) == 7
    assert found_all
    assert await answers_of(ann) == before
    assert (folder / "memory.db").exists()
    assert not (folder / "next").exists()
    await stopped_and_started(bare)
    assert await answers_of(ann) == before


async def test_another_log_makes_everything_anew(bare: Stack) -> None:
    """M-9, X-9: a broker that was set up anew, or put back, has another log."""
    await bare.start("memory")
    ann = await asking(bare)
    await ann.save("of the old log")
    await ann.until_vectors()
    await bare.stop("memory")
    admin = await bare.bus("admin")
    config = (await admin.api("STREAM.INFO.MEMORIES", {}))["config"]
    await admin.api("STREAM.DELETE.MEMORIES", {})
    await admin.api("STREAM.CREATE.MEMORIES", config)
    await bare.start("memory")
    assert await ann.listed() == []
    assert await ann.found("old log") == []
    await ann.save("of the new log")
    await ann.until_vectors()
    assert await ann.found("log") == ["of the new log"]


async def test_another_log_while_it_runs_holds_up_nobody(bare: Stack) -> None:
    """X-5, X-9: what the old log was told to have is not waited for in the new one, ever."""
    await bare.start("memory")
    ann = await asking(bare)
    for number in range(5):
        await ann.save(f"of the old log {number}")
    admin = await bare.bus("admin")
    config = (await admin.api("STREAM.INFO.MEMORIES", {}))["config"]
    await admin.api("STREAM.DELETE.MEMORIES", {})
    await admin.api("STREAM.CREATE.MEMORIES", config)
    await bare.contexts["memory"].bus.connection._process_op_err(ConnectionError("cut"))

    async def is_empty() -> bool:
        try:
            return await ann.listed() == []
        except Unavailable:
            return False

    await until(is_empty, "the new log")
    took = []
    for _ in range(3):
        begun = time.monotonic()
        await ann.listed()
        took.append(time.monotonic() - begun)
    assert min(took) < Limits().fresh_wait_s / 2


async def test_a_log_that_is_made_late_is_looked_at_all_the_same(bare: Stack) -> None:
    """X-5, X-9: a broker that was set up anew is there before its streams are."""
    await bare.start("memory")
    ann = await asking(bare)
    await ann.save("of the old log")
    admin = await bare.bus("admin")
    config = (await admin.api("STREAM.INFO.MEMORIES", {}))["config"]
    await admin.api("STREAM.DELETE.MEMORIES", {})
    with capture_logs() as logs:
        await bare.contexts["memory"].bus.connection._process_op_err(ConnectionError("cut"))

        async def has_asked() -> bool:
            return any(one.get("action") == "memory.follow" for one in logs)

        await until(has_asked, "it asked for a log that isn't there")
    await admin.api("STREAM.CREATE.MEMORIES", config)

    async def is_empty() -> bool:
        try:
            return await ann.listed() == []
        except Unavailable:
            return False

    await until(is_empty, "the new log")


async def test_what_comes_in_while_it_asks_is_no_other_log(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M-9: after a reconnect everybody writes at once, and nothing must be made anew for that."""
    await bare.start("memory")
    ann = await asking(bare)
    await ann.save("before")
    bus, asked = bare.contexts["memory"].bus, asyncio.Event()
    real = bus.api

    async def api(where: str, *args: Any) -> dict[str, Any]:
        answer: dict[str, Any] = await real(where, *args)
        if where == "STREAM.INFO.MEMORIES" and not asked.is_set():
            await ann.save("meanwhile")
            assert len(await ann.listed()) == 2
            asked.set()
        return answer

    monkeypatch.setattr(bus, "api", api)
    with capture_logs() as logs:
        await bus.connection._process_op_err(ConnectionError("cut"))
        await asyncio.wait_for(asked.wait(), 15)
        await ann.save("after")
        assert len(await ann.listed()) == 3
    assert not [one for one in logs if one.get("action") == "memory.other_log"]


async def test_long_texts_are_taken_apart_beside_the_event_loop(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-4: one of 16 kB takes 15 ms, in which no other service of the process would answer."""
    real, threads = terms.index_terms, set()

    def index_terms(text: str, happened_at: datetime | None = None) -> str:
        threads.add(threading.get_ident())
        return real(text, happened_at)

    monkeypatch.setattr(terms, "index_terms", index_terms)
    await bare.start("memory")
    ann = await asking(bare)
    await ann.save("word " * 3_000)
    assert len(await ann.listed()) == 1
    assert threads
    assert threading.get_ident() not in threads


async def test_replicas_of_one_home_agree(bare: Stack) -> None:
    """M-9: each has a slot of its own, any of them answers, and both come to the same."""
    await bare.start("memory", "memory:2")
    slots_taken = {bare.contexts[name].facts["slot"] for name in ("memory", "memory:2")}
    assert slots_taken == {0, 1}
    ann = await asking(bare)
    saved = [await ann.save(f"fact number {number}") for number in range(20)]
    for one in saved:  # whoever took it, whoever answers
        assert (await ann.ask(Get(id=one.id))).memory.seq == one.seq
    (first, second) = await ann.bus.ask_all(
        REBUILD, msgspec.json.encode(Rebuild(what="vectors")), count=2, timeout=5
    )
    assert first
    assert second
    await bare.stop("memory")
    await ann.until_vectors()
    assert len(await ann.listed()) == 20


def test_a_slot_is_free_when_its_holder_ends(tmp_path: Path) -> None:
    """M-9: the first free one; none left is told at the start."""
    first, second = slots.take(tmp_path, slots_max=2), slots.take(tmp_path, slots_max=2)
    assert (first.number, second.number) == (0, 1)
    with pytest.raises(ConfigError, match="use"):
        slots.take(tmp_path, slots_max=2)
    assert not slots.is_free(tmp_path / "0")
    first.release()
    assert slots.is_free(tmp_path / "0")
    assert slots.take(tmp_path, slots_max=2).number == 0
    second.release()


# ---------------------------------------------------------------- accesses and passes


async def test_what_was_shown_is_written_down_at_the_end(bare: Stack) -> None:
    """M-7: one record for a scope, however many recalls; looking back in time doesn't count."""
    await bare.start("memory")
    ann = await asking(bare)
    saved = await ann.save("Ann has a boat")
    await ann.save("the sea is wide")
    for _ in range(5):
        await ann.recall("boat", limit=1)
    await ann.recall("sea", counts=False)
    await bare.stop("memory")
    written = [
        record
        for record in await records(await bare.bus("admin"))
        if isinstance(record, MemoriesAccessed)
    ]
    assert [record.memory_ids for record in written] == [(saved.id,)]
    await bare.start("memory")
    got = await ann.ask(Get(id=saved.id))
    assert got.memory.accesses == 1


async def test_a_pass_over_one_and_over_all(bare: Stack) -> None:
    """M-6: maintenance prunes and merges, of one owner or of all; a second one finds nothing."""
    await bare.start("memory")
    ann = await asking(bare)
    bob = Asking(ann.bus, BOB)
    soon = datetime.now(UTC) + timedelta(seconds=0.3)
    for asker in (ann, bob):
        await asker.save("gone soon", expires_at=soon)
        await asker.save("stays")
    while datetime.now(UTC) <= soon:
        await asyncio.sleep(0.05)
    done = await ann.ask(Maintain())
    assert (done.pruned, done.merged) == (1, 0)
    assert (await ann.maintain_all(Maintain())).pruned == 1
    assert (await ann.maintain_all(Maintain())).pruned == 0
    assert await ann.listed(with_ended=True) != await ann.listed()
    await ann.until_vectors()
    same = [await ann.save(f"Ann's {cat} is called Mio") for cat in ("cat", "small cat")]
    await ann.until_vectors()
    made = await ann.maintain_all(Maintain(what="association"))
    assert made.associated >= 1
    assert (await ann.ask(Get(id=same[0].id))).edges


async def test_nobody_to_ask_is_told_as_unavailable(bare: Stack) -> None:
    """X-5: without the service a question fails at once, not after a timeout."""
    ann = await asking(bare)
    with pytest.raises(Unavailable, match="nobody listens"):
        await ann.save("x")


async def test_many_questions_at_once(bare: Stack) -> None:
    """M-2: writers and readers at the same time; every save is there, and nothing is refused."""
    await bare.start("memory")
    ann = await asking(bare)

    async def work(number: int) -> None:
        await ann.save(f"item {number}")
        await ann.ask(Recall(query=f"item {number}", limit=5), timeout_s=20.0)

    await asyncio.gather(*(work(number) for number in range(40)))
    assert sorted(await ann.listed()) == sorted(f"item {number}" for number in range(40))
