"""What is quick: sessions started, told and ended, and the board; in order, and harmless twice."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from random import Random
from typing import Any

import msgspec
import pytest

from services.executor import work
from services.executor.config import ExecutorLimits
from services.executor.effects import Carrying
from tests.support.executing import call, has_begun, open_gate, session_of
from tests.support.memories import KEY, Session, until
from tests.support.stack import Stack
from vigil import topology
from vigil.bus.bus import Bus, BusError
from vigil.bus.lease import Leases
from vigil.contracts import (
    Approval,
    BoardChange,
    BoardChangePayload,
    CancelCall,
    CancelCallPayload,
    Control,
    Effect,
    Job,
    SpawnSession,
    SpawnSessionPayload,
    TellParent,
    TellParentPayload,
    ToolResultEvent,
    decode_board,
    decode_dead_letter,
    decode_event,
    effect_id,
    encode,
)
from vigil.subjects import SessionKey
from vigil.worker import turns

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WORKER = SessionKey("ann", "vigil", "_worker-1f")


def effect_of(kind: Any, payload: Any, ordinal: int, key: SessionKey = KEY) -> Any:
    tag = kind.__struct_config__.tag
    id_ = effect_id(str(key), 1, ordinal, tag, payload, "")
    return kind(id=id_, ordinal=ordinal, payload=payload)


def spawn(ordinal: int = 1, **fields: Any) -> SpawnSession:
    payload = SpawnSessionPayload(
        **(
            {"kind": "worker", "prompt": "look", "caused_by": "event-1", "root_id": "event-1"}
            | {"depth": 1, "allowance": 3}
            | fields
        )
    )
    made: SpawnSession = effect_of(SpawnSession, payload, ordinal)
    return made


def tell(state: Any, ordinal: int = 1, **fields: Any) -> TellParent:
    payload = TellParentPayload(
        **({"parent": str(KEY), "call_id": "1f", "state": state, "content": "42"} | fields)
    )
    made: TellParent = effect_of(TellParent, payload, ordinal, WORKER)
    return made


def end(child: SessionKey | str, ordinal: int = 1) -> CancelCall:
    payload = CancelCallPayload(call_id="1f", tool="spawn_worker", child=str(child), reason="stop")
    made: CancelCall = effect_of(CancelCall, payload, ordinal)
    return made


def job_of(status: Any, **fields: Any) -> Job:
    defaults = {"id": "j1", "session_key": str(KEY), "status": status, "created_at": NOW}
    return Job(**(defaults | fields))


def change(entity: Job | Approval, ordinal: int = 1) -> BoardChange:
    made: BoardChange = effect_of(BoardChange, BoardChangePayload(entity=entity), ordinal)
    return made


async def events(bus: Bus, key: SessionKey) -> list[Any]:
    return [decode_event(m.data) for m in await bus.read(key.stream, [key.in_all])]


async def done(session: Session, *effects: Effect, times: int = 1) -> int:
    """Commit a turn with these effects, and wait until they are carried out."""
    seq = 0
    for _ in range(times):
        seq = await session.turn(*effects)
    await session.all_acked()
    return seq


async def buried(bus: Bus) -> list[str]:
    return [decode_dead_letter(m.data).cause for m in await bus.read("DEAD", ["dead.executor.>"])]


# ---------------------------------------------------------------- sessions


@pytest.mark.parametrize("kind", ["worker", "branch"])
async def test_a_session_is_started_once(stack: Stack, kind: Any) -> None:
    """C-1, S-5: with everything it needs, from the effect alone; a repeat starts nothing."""
    session = await session_of(stack)
    effect = spawn(kind=kind, is_ordered=True, is_tainted=True)
    seq = await session.turn(effect)
    await done(session, effect, times=3)
    (event,) = await events(session.bus, KEY.of_kind(kind, effect.id))
    assert isinstance(event, Control)
    start = event.payload.start
    assert (event.payload.op, event.caused_by) == ("start", "event-1")
    assert start is not None
    assert (start.prompt, start.parent, start.call_id) == ("look", str(KEY), effect.id)
    assert (start.parent_turn, start.root_id, start.depth, start.allowance) == (
        seq,
        "event-1",
        1,
        3,
    )
    assert (start.is_ordered, start.is_tainted) == (True, True)


async def test_a_cancel_that_comes_first_is_a_tombstone(stack: Stack) -> None:
    """ARCHITECTURE 4: a child that was cancelled before it began never begins."""
    session, effect = await session_of(stack), spawn()
    child = KEY.of_kind("worker", effect.id)
    await done(session, end(child))
    await done(session, effect, times=2)
    (event,) = await events(session.bus, child)
    assert event.payload.op == "cancel"
    assert event.payload.reason == "stop"


async def test_a_child_is_cancelled(stack: Stack) -> None:
    """S-12: started, then ended; a repeat tells it once."""
    session, effect = await session_of(stack), spawn()
    child = KEY.of_kind("worker", effect.id)
    await done(session, effect)
    await done(session, end(child), times=3)
    assert [e.payload.op for e in await events(session.bus, child)] == ["start", "cancel"]


@pytest.mark.parametrize(("state", "is_error"), [("done", False), ("failed", True)])
async def test_a_parent_gets_the_result(stack: Stack, state: Any, is_error: bool) -> None:
    """C-1: as the answer to the call that started it, once."""
    child = await session_of(stack, WORKER)
    await done(child, tell(state, is_tainted=True), times=3)
    (event,) = await events(child.bus, KEY)
    assert isinstance(event, ToolResultEvent)
    payload = event.payload
    assert (payload.call_id, payload.content, payload.is_error) == ("1f", "42", is_error)
    assert payload.is_tainted


@pytest.mark.parametrize("state", ["running", "asking"])
async def test_a_parent_is_told_how_it_goes(stack: Stack, state: Any) -> None:
    """C-1, C-5: each status once, in order."""
    child = await session_of(stack, WORKER)
    statuses = [tell(state, n, content=f"step {n}") for n in range(3)]
    for status in statuses:
        await done(child, status, times=2)
    told = await events(child.bus, KEY)
    assert [e.payload.op for e in told] == ["status"] * 3
    assert [e.payload.status.text for e in told] == ["step 0", "step 1", "step 2"]
    assert {(e.payload.status.state, e.payload.status.call_id) for e in told} == {(state, "1f")}


@pytest.mark.parametrize(
    "effect",
    [
        tell("done", parent="bob:vigil:t1"),
        tell("done", parent="ann:other:t1"),
        tell("running", parent="no key"),
        end("bob:vigil:_worker-1f"),
        end(KEY),
        end("ann:vigil:*"),
        msgspec.structs.replace(spawn(), id="x" * 64),
        effect_of(CancelCall, CancelCallPayload(call_id="a.>", tool="x"), 1),
    ],
)
async def test_what_reaches_beyond_its_person_is_a_dead_letter(stack: Stack, effect: Any) -> None:
    """X-6, RELIABILITY S4: with its cause, and what else the turn asks is done."""
    session = await session_of(stack, WORKER)
    one = call("count", 9, key=WORKER)
    await session.turn(effect, one, change(job_of("queued"), 8))
    await session.result(one)
    await session.all_acked()
    assert len(await buried(session.bus)) == 1
    assert await session.bus.read("SESSIONS", ["session.>"]) == []
    assert len(await session.bus.read("BOARD", ["board.>"])) == 1


async def test_a_turn_with_a_dead_letter_stays_in_hand_while_its_calls_run(stack: Stack) -> None:
    """S-12: acknowledged too early, a crash would leave its session without an answer."""
    session = await session_of(stack, WORKER)
    one = call("count", 9, key=WORKER, gate="gate")
    await session.turn(tell("running", parent="no key"), one)
    await has_begun(stack, one)

    async def is_buried() -> bool:
        return len(await buried(session.bus)) == 1

    await until(is_buried, "there is a dead letter")
    consumer = topology.EXECUTOR_TURNS_SYSTEM
    info = await session.bus.api(f"CONSUMER.INFO.{consumer.stream}.{consumer.name}", {})
    assert info["num_ack_pending"] == 1
    open_gate(stack)
    await session.result(one)
    await session.all_acked()
    assert len(await buried(session.bus)) == 1


# ---------------------------------------------------------------- the board


async def test_the_board_shows_the_newest(stack: Stack) -> None:
    """J-1, X-2: an entity has a subject of its own; a repeat stores nothing."""
    session = await session_of(stack)
    seq = 0
    for number, status in enumerate(("queued", "running", "succeeded")):
        seq = await done(session, change(job_of(status), number))
    found = await session.bus.read("BOARD", [KEY.board("job", "j1")])
    entries = [decode_board(m.data) for m in found]
    assert [e.entity.status for e in entries if isinstance(e.entity, Job)] == [
        "queued", "running", "succeeded",
    ]  # fmt: skip
    assert entries[-1].turn_seq == seq


async def test_of_two_changes_in_a_turn_the_last_one_stands(stack: Stack) -> None:
    """J-1: they have the same turn, so the order within it must count."""
    session = await session_of(stack)
    other = msgspec.structs.replace(job_of("queued"), id="j2")
    await done(session, change(job_of("queued"), 1), change(other, 2), change(job_of("failed"), 3))
    (entry,) = [
        decode_board(m.data).entity
        for m in await session.bus.read("BOARD", [KEY.board("job", "j1")])
    ]
    assert isinstance(entry, Job)
    assert entry.status == "failed"


async def test_an_older_turn_never_overwrites_a_newer(stack: Stack) -> None:
    """RELIABILITY 0.5: redelivered in any order, by several at once: the newest stands."""
    admin = await stack.bus("admin")
    context = msgspec.structs.replace(stack.contexts["executor"], bus=admin)
    many = [Carrying(context, ExecutorLimits(), lambda _: None) for _ in range(4)]
    turns = list(range(1, 21)) * 3
    Random(5).shuffle(turns)

    async def write(carrying: Carrying, mine: list[int]) -> None:
        for seq in mine:
            effect = change(job_of("running", runs=seq), seq)
            await carrying.carry_out(KEY, effect, seq)

    await asyncio.gather(*(write(one, turns[n::4]) for n, one in enumerate(many)))
    found = await admin.read("BOARD", [KEY.board("job", "j1")])
    seqs = [decode_board(m.data).turn_seq for m in found]
    assert seqs == sorted(set(seqs))
    assert seqs[-1] == 20


async def test_an_unreadable_entry_is_replaced(stack: Stack) -> None:
    """X-6."""
    session = await session_of(stack)
    await session.bus.publish(KEY.board("job", "j1"), b"{")
    await done(session, change(job_of("queued")))
    newest = await session.bus.get_last("BOARD", KEY.board("job", "j1"))
    assert newest is not None
    assert isinstance(decode_board(newest.data).entity, Job)


async def test_an_entity_with_an_id_that_is_no_part_is_a_dead_letter(stack: Stack) -> None:
    """RELIABILITY S4."""
    session = await session_of(stack)
    await done(session, *(change(job_of("queued", id=i), n) for n, i in enumerate(("*", "a.b"))))
    assert await session.bus.read("BOARD", ["board.>"]) == []
    assert len(await buried(session.bus)) == 1


async def test_what_is_refused_is_given_up(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """X-6: by the broker, or by a bug: tried some times, then a dead letter; calls are answered
    with an error, and the session goes on."""
    carry_out, tries = Carrying.carry_out, 0

    async def broken(self: Carrying, key: SessionKey, effect: Any, seq: int) -> None:
        nonlocal tries
        if isinstance(effect, BoardChange):
            tries += 1
            raise BusError(413, "too large")
        await carry_out(self, key, effect, seq)

    monkeypatch.setattr(Carrying, "carry_out", broken)
    session, one = await session_of(stack), call("count", 2)
    await session.turn(change(job_of("queued")), one)
    assert (await session.result(one)).payload.is_error
    await session.all_acked()
    assert tries == ExecutorLimits().turns.refusals_max
    assert "too large" in (await buried(session.bus))[0]
    after = call("count", 3)
    await session.turn(after)
    assert not (await session.result(after)).payload.is_error


# ---------------------------------------------------------------- order


async def test_quick_effects_don_t_wait_for_calls(stack: Stack) -> None:
    """C-1: a turn whose call runs for long has told its parent, and the next one, too."""
    session = await session_of(stack, WORKER)
    slow = call("count", 1, key=WORKER, gate="never")
    await session.turn(slow, tell("running", 2))
    await has_begun(stack, slow)
    await session.turn(slow, tell("running", 3), change(job_of("running"), 4))
    while len(await events(session.bus, KEY)) < 2 or not await session.bus.read(
        "BOARD", ["board.>"]
    ):
        await asyncio.sleep(0.01)
    open_gate(stack, "never")  # or the executor would wait for it as it ends


async def test_a_turn_that_waits_for_another_replica_tells_its_parent_once(stack: Stack) -> None:
    """S-5: it comes again every moment, for longer than the broker remembers an id."""
    session = await session_of(stack, WORKER)
    lease = await Leases(session.bus, "other").acquire("executor.other")
    assert lease is not None
    one, status = call("count", 1, key=WORKER), tell("running", 2)
    claim = turns.claim_of(WORKER, one, by="other", now=NOW)
    await session.bus.publish(WORKER.call(one.id), encode(claim), expect=0)
    published: list[str] = []
    bus = stack.contexts["executor"].bus
    publish = bus.publish

    async def noting(subject: str, *args: Any, **options: Any) -> Any:
        published.append(subject)
        return await publish(subject, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bus, "publish", noting)
        await session.turn(one, status)

        async def has_come_again() -> bool:
            await lease.renew()
            return published.count(WORKER.call(one.id)) >= 3

        await until(has_come_again, "the turn came again")
    assert published.count(KEY.in_event("control")) == 1


def test_ids_of_a_repeat_are_the_same() -> None:
    """S-5: whichever replica builds it, and whenever."""
    later = datetime(2027, 1, 1, tzinfo=UTC)
    for effect in (tell("done"), tell("running")):
        ids = {work.report_of(KEY, effect, now=now).id for now in (NOW, later)}
        assert len(ids) == 1
    assert (
        work.start_of(KEY, spawn(), 1, now=NOW).id == work.start_of(KEY, spawn(), 1, now=later).id
    )
