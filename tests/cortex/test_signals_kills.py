"""The projector, killed and killed again: each signal exactly once, and in order (SPEC C-4)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import pytest

from services.cortex.signals import tail
from services.cortex.signals.projector import LEASE, Run, SignalProjector
from tests.support import signals
from tests.support.circuits import circuits_of
from tests.support.examples import repeats
from tests.support.projecting import Nursery
from tests.support.stack import Stack, running_stack
from vigil import crash
from vigil.bus.batches import BATCH_MIN, BatchEntry, append, last_sequence
from vigil.bus.bus import Ack, Bus
from vigil.bus.kv import KeyValue
from vigil.clock import SystemClock, new_id
from vigil.contracts import (
    BoardEntry,
    Cause,
    Job,
    JobStatus,
    MemoriesAccessed,
    MemoriesMerged,
    MemoriesUndone,
    Memory,
    MemoryForgotten,
    MemoryRecord,
    MemorySaved,
    Note,
    Receipt,
    Said,
    Signal,
    SignalSource,
    Start,
    State,
    TellParent,
    TellParentPayload,
    Turn,
    encode,
)
from vigil.errors import VigilError, WrongLastSequence
from vigil.signals.sources import place_of, project
from vigil.subjects import Scope, SessionKey
from vigil.teams import TEAM

KILLS = repeats(200, fast=22)
SLOTS = 2
"""Projectors that run at once, and get in each other's way."""
SESSIONS = 20
POINTS = [point for point in crash.POINTS if point.startswith("cortex.signal.")]
LIFE_S = (0.02, 0.12)
"""How long a projector lives, from its fork on."""
PATIENCE_S = 3.0


def turn(number: int, notes: int = 0, at: datetime | None = None) -> tuple[str, bytes]:
    """Return a turn of one of the sessions; `notes` follow-ups are void with it."""
    key = SessionKey("ann", "vigil", f"t{number % SESSIONS}")
    record = Turn(
        id=f"turn-{number}",
        session_key=str(key),
        ordinal=number // SESSIONS + 1,
        event=Cause(id=f"e{number}", seq=1, type="user_message"),
        outcome="answered",
        state=State(),
        created_at=at or datetime.now(UTC),
        notes=tuple(Note(code="void", text="", subject=f"f{n}") for n in range(notes)),
    )
    return key.turn, encode(record)


async def store(bus: Bus, number: int, random: Random) -> None:
    """Store a turn and what comes of it: sometimes few signals, sometimes a batch."""
    subject, data = turn(number, random.choice((0, 0, 0, 1, 5, BATCH_MIN + 10)))
    await bus.publish(subject, data)
    key, at = SessionKey.of_subject(subject), datetime.now(UTC)
    effect = f"{number:032x}"
    if number % 3 == 0:
        said = Said(
            id=effect, session_key=str(key), text="hi", at=at, caused_by="e", turn_seq=1
        )  # fmt: skip
        await bus.publish(key.out_said(effect), encode(said))
    elif number % 7 == 0:
        receipt = Receipt(effect_id=effect, session_key=str(key), outcome="void", at=at)
        await bus.publish(key.receipt(effect), encode(receipt))
    elif number % 50 == 1:
        await bus.publish(key.turn, b"not a turn")
    if number % 4 == 0:
        subject, data = memory(number)
        await bus.publish(subject, data if number % 100 else b"not a memory")
    if number % 5 == 0:
        await bus.publish(*child(number))
    if number % 6 == 0:
        await bus.publish(*on_board(number))


def child(number: int, at: datetime | None = None) -> tuple[str, bytes]:
    """Return one turn of a worker or a branch: its first, its last, or one that gives no signal."""
    call, at = f"{number:032x}", at or datetime.now(UTC)
    key = SessionKey("ann", "vigil", "t1").of_kind(("worker", "branch")[number % 2], call)
    told = TellParentPayload(parent="ann:vigil:t1", call_id=call, state="done", content="CANARY")
    record = Turn(
        id=f"child-{number}", session_key=str(key), ordinal=1 + number // 5 % 3, event=None,
        outcome="answered", state=State(start=Start(prompt="CANARY", call_id=call)), created_at=at,
        effects=(TellParent(id="e", ordinal=1, payload=told),) if number // 5 % 3 else (),
    )  # fmt: skip
    return key.turn, encode(record)


def on_board(number: int, at: datetime | None = None) -> tuple[str, bytes]:
    """Return one state of a job; some give no signal."""
    id_, at = f"{number:032x}", at or datetime.now(UTC)
    key = SessionKey("ann", "vigil", "t1").of_kind("planner", id_)
    states: tuple[JobStatus, ...] = ("queued", "running", "succeeded", "failed", "cancelled")
    job = Job(
        id=id_, session_key=str(key), goal="CANARY", status=states[number // 6 % 5], created_at=at
    )
    return key.board("job", id_), encode(BoardEntry(entity=job, turn_seq=number, at=at))


def memory(number: int, at: datetime | None = None) -> tuple[str, bytes]:
    """Return one record of a memory, of each kind in turn; some give no signal."""
    scope, at = Scope("vigil", ("ann", TEAM)[number % 8 == 0]), at or datetime.now(UTC)
    envelope: dict[str, Any] = {
        "id": f"m{number}", "agent": scope.agent, "owner": scope.owner, "at": at, "by": "user:ann",
    }  # fmt: skip
    one = Memory(id=f"{number:032x}", content="CANARY", created_at=at)
    records: list[tuple[str, MemoryRecord]] = [
        ("save", MemorySaved(**envelope, memory=one)),
        ("save", MemorySaved(**envelope, memory=one)),
        ("access", MemoriesAccessed(**envelope, memory_ids=(one.id,))),
        ("merge", MemoriesMerged(**envelope, memory=one, merged_ids=("a", "b"))),
        ("forget", MemoryForgotten(**envelope, memory_ids=("a", "b"), reason="decayed")),
        ("undo", MemoriesUndone(**envelope, source="x", memory_ids=("a",))),
    ]
    op, record = records[number // 4 % len(records)]
    return scope.record(op), encode(record)


class Slot:
    """A place where one projector after the other is started and killed."""

    def __init__(self, nursery: Nursery, random: Random) -> None:
        self._nursery = nursery
        self._random = random
        self.killed = 0
        self.crashed: set[str] = set()

    async def run(self, kills: int) -> None:
        for number in range(kills):
            if number % 3:
                pid = await self._nursery.start()
                await asyncio.sleep(self._random.uniform(*LIFE_S))
                await self._kill(pid)
            else:
                await self._crash(POINTS[number // 3 % len(POINTS)])

    async def _crash(self, point: str) -> None:
        """Let one end at a crash point; two that fight may take too long to get there."""
        pid = await self._nursery.start(f"{point}:{self._random.randint(1, 3)}")
        ending = asyncio.ensure_future(self._nursery.wait(pid))
        await asyncio.wait({ending}, timeout=PATIENCE_S)
        if not ending.done():
            os.kill(pid, signal.SIGKILL)
        code = await ending
        assert code in (crash.EXIT_CODE, -signal.SIGKILL)
        self.killed += 1
        if code == crash.EXIT_CODE:
            self.crashed.add(point)

    async def _kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        assert await self._nursery.wait(pid) == -signal.SIGKILL
        self.killed += 1


@contextlib.asynccontextmanager
async def nurseries(stack: Stack, count: int) -> AsyncIterator[list[Nursery]]:
    opened: list[Nursery] = []
    try:
        for _ in range(count):
            opened.append(await Nursery.open(stack.settings.home, stack.broker.url))
        yield opened
    finally:
        for nursery in opened:
            await nursery.close()


@pytest.mark.repeated
async def test_many_kills_of_the_projector(bare: Stack) -> None:
    """C-4, X-5: two projectors at once, killed at crash points and at random while turns and
    memories are stored; in the end each signal is there exactly once, in the order of its log."""
    random = Random(7)
    bus = await bare.bus("admin")
    is_over = asyncio.Event()

    async def live() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            await store(bus, number, random)
            await asyncio.sleep(random.uniform(0, 0.01))

    async with nurseries(bare, SLOTS) as opened:
        living = asyncio.create_task(live())
        slots = [Slot(nursery, Random(n)) for n, nursery in enumerate(opened)]
        await asyncio.gather(*(slot.run(KILLS // SLOTS) for slot in slots))
        is_over.set()
        await living
        assert sum(slot.killed for slot in slots) == KILLS
        await opened[0].start()
        stored = await signals.settled(bus)
    wanted = await signals.expected(bus)
    assert signals.wrong(wanted, stored) == []
    assert signals.ids_by_source(stored) == wanted
    assert_whole(stored)
    assert set().union(*(slot.crashed for slot in slots)) == set(POINTS)
    assert len(wanted) > KILLS
    kinds = {one.kind for one in stored}
    assert kinds >= {"worker.started", "worker.completed", "branch.completed"}
    assert kinds >= {"job.started", "job.completed", "job.failed", "job.cancelled"}
    assert kinds >= {"session.started", "message.sent", "message.dropped"}
    assert kinds >= {"memory.saved", "memory.merged", "memory.forgotten"}


def assert_whole(stored: Sequence[Signal]) -> None:
    """The signals of one record are never apart: nothing comes between them."""
    runs = [source for source, _ in groupby(one.source for one in stored)]
    assert len(runs) == len({(source.stream, source.seq) for source in runs})


# ---------------------------------------------------------------- where it begins


async def projected(bus: Bus, **options: Any) -> list[Signal]:
    """Run a projector until everything is told."""

    async def run() -> None:
        while True:
            with contextlib.suppress(VigilError):
                kept = options.get("kept", timedelta(days=7))
                async for _ in Run(bus, SystemClock(), new_id, kept, 0.01).each():
                    pass

    running = asyncio.create_task(run())
    try:
        return await signals.settled(bus)
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def put(bus: Bus, number: int, **options: Any) -> Ack:
    subject, data = turn(number, **options)
    return await bus.publish(subject, data)


@pytest.mark.usefixtures("own_broker")
async def test_a_projection_again_adds_nothing(bare: Stack) -> None:
    """C-4: also long after any window in which the broker knows repeats."""
    admin, cortex = await bare.bus("admin"), await bare.bus("cortex")
    for number in range(30):
        await put(admin, number, notes=number % 4)
    first = await projected(cortex)
    await admin.api("STREAM.UPDATE.SIGNALS", await _config(admin, duplicate_window=100_000_000))
    bare.broker.watch()
    old = bare.broker.pid
    bare.broker.kill()
    async with asyncio.timeout(signals.WAIT_S):
        while bare.broker.pid == old:
            await asyncio.sleep(0.02)
    again = await projected(cortex)
    assert [one.id for one in again] == [one.id for one in first]
    assert await last_sequence(cortex, "SIGNALS") == len(first)


async def _config(admin: Bus, **changes: Any) -> dict[str, Any]:
    info = await admin.api("STREAM.INFO.SIGNALS", {})
    return dict(info["config"]) | changes


async def test_half_of_a_record_is_completed(bare: Stack) -> None:
    """C-4: killed between two signals of one turn, the second half follows."""
    admin, cortex = await bare.bus("admin"), await bare.bus("cortex")
    ack = await put(admin, 5, notes=6)
    subject, data = turn(5, notes=6)
    made = project("SESSIONS", ack.seq, subject, data)
    key = SessionKey.of_subject(subject)
    half = [BatchEntry(key.signal(one.kind), encode(one), {}) for one in made[:3]]
    await append(cortex, half, expect=0, batch_id="b")
    stored = await projected(cortex)
    assert [one.id for one in stored] == [one.id for one in made]


async def test_a_late_append_is_refused(bare: Stack) -> None:
    """C-4: of a projector that slept while another did its work, few signals and many."""
    admin, cortex = await bare.bus("admin"), await bare.bus("cortex")
    await put(admin, 1)
    asleep = await tail.find(cortex, datetime.now(UTC))
    stored = await projected(cortex)
    for count in (1, BATCH_MIN, 3 * BATCH_MIN):
        entries = [
            (
                SignalSource(stream="SESSIONS", seq=1),
                BatchEntry("signal.vigil.ann.turn.committed.t1", b"{}", {}),
            )
        ] * count
        with pytest.raises(WrongLastSequence):
            await tail.SignalTail(cortex, asleep, new_id).append(entries)
    assert [one.id for one in await signals.stored(admin)] == [one.id for one in stored]


async def test_of_racing_appends_each_is_whole(bare: Stack) -> None:
    """C-4: whoever is refused has stored nothing in between."""
    cortex = await bare.bus("cortex")

    async def write(name: str, size: int) -> None:
        entries = [
            BatchEntry(f"signal.vigil.ann.turn.committed.{name}", b"%d" % n, {})
            for n in range(size)
        ]
        for _ in range(8):
            while True:
                try:
                    last = await last_sequence(cortex, "SIGNALS")
                    await append(cortex, entries, expect=last, batch_id=new_id())
                except WrongLastSequence:
                    # One by one, some may be stored when another writer comes between.
                    assert size >= BATCH_MIN or size == 1
                    continue
                break

    await asyncio.gather(write("a", BATCH_MIN), write("b", 2 * BATCH_MIN), write("c", 1))
    admin = await bare.bus("admin")
    found = await admin.read("SIGNALS", ["signal.>"])
    assert len(found) == 8 * (3 * BATCH_MIN + 1)
    runs: list[list[int]] = []
    for message in found:
        if int(message.data) == 0:
            runs.append([])
        runs[-1].append(int(message.data))
    assert all(run == list(range(len(run))) for run in runs)
    assert sorted(map(len, runs)) == [1] * 8 + [BATCH_MIN] * 8 + [2 * BATCH_MIN] * 8


async def test_without_signals_it_begins_with_what_would_still_be_kept(bare: Stack) -> None:
    """C-4: an installation with a long log, and one whose signals all expired, tell the last
    days; the sequence goes on where it was."""
    admin, cortex = await bare.bus("admin"), await bare.bus("cortex")
    long_ago = datetime.now(UTC) - timedelta(days=30)
    for number in range(40):
        await put(admin, number, at=long_ago)
    young = [(await put(admin, number)).seq for number in range(40, 43)]
    position = await tail.find(cortex, datetime.now(UTC) - timedelta(days=7))
    assert position.begins["SESSIONS"] in (young[0], young[0] - 1)
    await admin.api("STREAM.PURGE.SIGNALS", {"seq": 100})
    filler = [BatchEntry("signal.vigil.ann.turn.committed.t1", b"{}", {})] * 3
    await append(cortex, filler, expect=await last_sequence(cortex, "SIGNALS"), batch_id="b")
    await admin.api("STREAM.PURGE.SIGNALS", {})
    position = await tail.find(cortex, datetime.now(UTC) - timedelta(days=7))
    assert position.last >= 3
    running = asyncio.create_task(_run_once(cortex))
    try:
        async with asyncio.timeout(signals.WAIT_S):
            while len(stored := await signals.stored(admin)) < len(young):
                await asyncio.sleep(0.02)
    finally:
        running.cancel()
    assert [one.source.seq for one in stored] == young


async def test_each_source_goes_on_where_its_own_signals_end(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-4: also if its last signal lies far behind those of the other, or went by age."""
    monkeypatch.setattr(tail, "READ_MAX", 200)
    admin, cortex = await bare.bus("admin"), await bare.bus("cortex")
    for number in range(0, 24, 4):
        subject, data = memory(number)
        last = await admin.publish(subject, data)
    await projected(cortex)
    flood = 2 * tail.READ_MAX // 100
    for number in range(flood):
        await put(admin, number, notes=100)
    await projected(cortex)
    position = await tail.find(cortex, datetime.now(UTC) - timedelta(days=7))
    assert {one.source.stream for one in position.newest} == {"SESSIONS"}
    assert position.begins["MEMORIES"] == last.seq + 1
    stored = await projected(cortex)
    assert signals.ids_by_source(stored) == await signals.expected(admin)
    # All signals of one source went by age: told again is what is young enough to be kept.
    old = [memory(n, datetime.now(UTC) - timedelta(days=30)) for n in range(0, 48, 4)]
    for subject, data in old:
        last = await admin.publish(subject, data)
    await projected(cortex)
    await admin.api("STREAM.PURGE.SIGNALS", {"filter": "signal.*.*.memory.>"})
    position = await tail.find(cortex, datetime.now(UTC) - timedelta(minutes=-6))
    assert last.seq <= position.begins["MEMORIES"] <= last.seq + 1
    assert position.begins["SESSIONS"] == stored[-1].source.seq + 1


async def test_a_quiet_partition_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-4: nothing in a subject says of which partition a signal tells; also if somebody whose
    signals were all the newest was erased."""
    monkeypatch.setattr(tail, "READ_MAX", 200)
    async with running_stack(tmp_path, (), nats={"partitions": 4}) as stack:
        admin, cortex = await stack.bus("admin"), await stack.bus("cortex")
        seqs = [(await put(admin, number)).seq for number in range(SESSIONS)]
        logs = [await admin.log_of(SessionKey("ann", "vigil", f"t{n}")) for n in range(SESSIONS)]
        assert len(set(logs)) > 1
        before = await projected(cortex)
        for number in range(2 * tail.READ_MAX // 100):
            subject, data = turn(number * SESSIONS, notes=100)
            bobs = subject.replace(".ann.", ".bob."), data.replace(b"ann:", b"bob:")
            last = await admin.publish(*bobs)
        await projected(cortex)
        oldest = datetime.now(UTC) + timedelta(minutes=6)
        begins = (await tail.find(cortex, oldest)).begins
        busy = await admin.log_of(SessionKey("bob", "vigil", "t0"))
        newest = dict(zip(logs, seqs, strict=True)) | {busy: last.seq}
        assert {log: begins[log] for log in newest} == {log: s + 1 for log, s in newest.items()}
        for stream in ("SIGNALS", busy):
            await admin.api(f"STREAM.PURGE.{stream}", {"filter": "*.*.bob.>"})
        assert await projected(cortex) == before


async def test_what_a_worker_does_moves_no_other_source(bare: Stack) -> None:
    """C-4: SYSTEM and BOARD go on behind their own last signals, whatever the others did since."""
    admin, cortex = await bare.bus("admin"), await bare.bus("cortex")
    told = {
        "SYSTEM": (await admin.publish(*child(0))).seq,
        "BOARD": (await admin.publish(*on_board(12))).seq,
    }
    for number in range(4):
        await put(admin, number, notes=3)
    await projected(cortex)
    position = await tail.find(cortex, datetime.now(UTC) - timedelta(days=7))
    assert {name: position.begins[name] for name in told} == {n: s + 1 for n, s in told.items()}
    # Without any of theirs, each begins with what is young enough to be kept.
    old = datetime.now(UTC) - timedelta(days=30)
    last = [
        (await admin.publish(*make(n, old))).seq for make in (child, on_board) for n in (30, 60)
    ]
    await admin.api("STREAM.PURGE.SIGNALS", {"filter": "signal.*.*.worker.>"})
    await admin.api("STREAM.PURGE.SIGNALS", {"filter": "signal.*.*.branch.>"})
    await admin.api("STREAM.PURGE.SIGNALS", {"filter": "signal.*.*.job.>"})
    position = await tail.find(cortex, datetime.now(UTC) - timedelta(minutes=-6))
    assert last[1] <= position.begins["SYSTEM"] <= last[1] + 1
    assert last[3] <= position.begins["BOARD"] <= last[3] + 1


async def test_signals_of_a_record_are_never_apart(bare: Stack) -> None:
    """C-4: a record that was told in part is completed before what else waits."""
    admin, cortex = await bare.bus("admin"), await bare.bus("cortex")
    ack = await put(admin, 5, notes=6)
    subject, data = turn(5, notes=6)
    made = project("SESSIONS", ack.seq, subject, data)
    key = SessionKey.of_subject(subject)
    half = [BatchEntry(key.signal(one.kind), encode(one), {}) for one in made[:3]]
    await append(cortex, half, expect=0, batch_id="b")
    for number in (4, 16):
        await admin.publish(*memory(number))
    await put(admin, 6)
    stored = await projected(cortex)
    assert [one.id for one in stored[: len(made)]] == [one.id for one in made]
    assert signals.ids_by_source(stored) == await signals.expected(admin)


async def _run_once(bus: Bus) -> None:
    async for _ in Run(bus, SystemClock(), new_id, timedelta(days=7), 0.01).each():
        pass


async def test_signals_that_were_erased_stay_away(bare: Stack) -> None:
    """X-8: with the records of a person gone from both streams, nobody tells them again."""
    admin, cortex = await bare.bus("admin"), await bare.bus("cortex")
    for number in range(10):
        await put(admin, number)
    other = SessionKey("bob", "vigil", "t1")
    _, data = turn(3)
    ack = await admin.publish(other.turn, data)
    await projected(cortex)
    await admin.api("STREAM.MSG.DELETE.SESSIONS", {"seq": ack.seq})
    for message in await admin.read("SIGNALS", ["signal.*.bob.>"]):
        await admin.api("STREAM.MSG.DELETE.SIGNALS", {"seq": message.seq})
    await put(admin, 11)
    stored = await projected(cortex)
    assert {one.owner for one in stored} == {"ann"}
    assert [one.id for one in stored] == await signals.expected(admin)


async def test_what_cannot_be_read_stops_it(bare: Stack) -> None:
    """S-14: after a downgrade, rather no signals than all of them once more."""
    admin, cortex = await bare.bus("admin"), await bare.bus("cortex")
    await put(admin, 1)
    await admin.publish("signal.vigil.ann.turn.committed.t1", b'{"v": 99}')
    with pytest.raises(VigilError, match="version 99"):
        await tail.find(cortex, datetime.now(UTC))


# ---------------------------------------------------------------- replicas


async def test_a_second_replica_stands_by_and_takes_over(bare: Stack) -> None:
    """C-4: one projects at a time, by lease; the other goes on where it stopped."""
    admin = await bare.bus("admin")
    contexts = [await signals.context_of(bare, name) for name in ("one", "two")]
    first, second = (asyncio.create_task(SignalProjector(c).run()) for c in contexts)
    try:
        await put(admin, 1)
        await signals.settled(admin)
        active = [c for c in contexts if "patterns" in c.facts]
        assert len(active) == 1
        (first if active[0] is contexts[0] else second).cancel()
        await put(admin, 2)
        stored = await signals.settled(admin)
        assert [one.id for one in stored] == await signals.expected(admin)
        assert "patterns" not in active[0].facts
    finally:
        for task in (first, second):
            task.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
    assert await KeyValue(admin, "LEASES").get(LEASE) is None


async def test_what_the_window_finds_is_told_by_the_health(bare: Stack) -> None:
    """C-4, X-7: an error loop, also after a restart."""
    admin = await bare.bus("admin")
    at = datetime.now(UTC)
    for number in range(6):
        subject, _ = turn(0)
        record = Turn(
            id=f"turn-{number}", session_key="ann:vigil:t0", ordinal=number + 1, event=None,
            outcome="waiting", state=State(), created_at=at,
            notes=(Note(code="model_failed", text="400"),),
        )  # fmt: skip
        await admin.publish(subject, encode(record))
    for name in ("one", "two"):
        context = await signals.context_of(bare, name)
        running = asyncio.create_task(SignalProjector(context).run())
        try:
            async with asyncio.timeout(signals.WAIT_S):
                while not (context.facts.get("patterns") and await circuits_of(bare)):
                    await asyncio.sleep(0.02)
        finally:
            running.cancel()
            (found,) = context.facts["patterns"]
            await asyncio.gather(running, return_exceptions=True)
        assert (found["kind"], found["session_key"]) == ("error_loop", "ann:vigil:t0")
        assert found["count"] == 6
        assert context.health().facts == {}
    (opened,) = await circuits_of(bare)
    assert (opened.component, opened.state) == ("session:ann:vigil:t0", "open")


async def test_who_finds_a_pattern_and_dies_of_it_leaves_it_to_the_next(bare: Stack) -> None:
    """C-4: signals that are stored already open the circuit at the next start."""
    admin = await bare.bus("admin")
    at = datetime.now(UTC)
    for number in range(3):
        error = Signal(
            id=f"SESSIONS.{number + 1}.error.event", kind="error.event", agent="vigil",
            owner="ann", at=at, source=SignalSource(stream="SESSIONS", seq=number + 1),
            session_key="ann:vigil:t0",
        )  # fmt: skip
        await admin.publish(place_of(error), encode(error))
    running = asyncio.create_task(SignalProjector(await signals.context_of(bare, "one")).run())
    try:
        async with asyncio.timeout(signals.WAIT_S):
            while not (found := await circuits_of(bare)):
                await asyncio.sleep(0.02)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert [one.component for one in found] == ["session:ann:vigil:t0"]


def test_a_signal_names_its_source() -> None:
    """C-4: the id is the record's place and the kind."""
    subject, data = turn(1)
    for one in project("SESSIONS", 9, subject, data):
        assert one.source == SignalSource(stream="SESSIONS", seq=9)
        assert one.id == f"SESSIONS-9-{one.kind}"
