"""The log of the sessions in partitions: nobody but the bus sees them, and nothing gets lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stack import Stack, running_broker, running_stack
from tests.support.talk import Talk
from tests.support.timers import until
from vigil.broker.process import Broker
from vigil.broker.provision import provision
from vigil.bus.bus import Bus
from vigil.clock import SystemClock
from vigil.contracts import decode_signal
from vigil.erasure.erase import Eraser
from vigil.errors import WrongLastSequence
from vigil.layout import LAYOUT_STREAM, PARTITIONS_MAX, LogLayout, filter_in, name_of, named
from vigil.settings.sections import Nats
from vigil.subjects import SessionKey
from vigil.topology import WAKE
from vigil.worker.consumer_loop import consuming

PARTITIONS = 4
KEYS = [SessionKey("ann", "vigil", f"t{number}") for number in range(16)]
_PARTS = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)
_KEYS = st.builds(SessionKey, _PARTS, _PARTS, _PARTS.filter(lambda part: part[0] != "_"))


# ---------------------------------------------------------------- where a session is


@given(_KEYS, st.integers(1, PARTITIONS_MAX))
def test_all_of_a_session_is_in_one_partition_and_has_its_name_back(
    key: SessionKey, partitions: int
) -> None:
    layout = LogLayout(partitions)
    subjects = [key.in_user, key.turn_for("st"), key.out_said("e"), key.turns, key.everything]
    assert len({layout.stream_of(subject) for subject in subjects}) == 1
    (stream,) = {layout.stream_of(subject) for subject in subjects}
    assert stream in layout.logs
    assert name_of(stream) == key.stream
    for subject in subjects:
        assert named(layout.stored(subject)) == subject
        assert filter_in(stream, subject) == layout.stored(subject)


def test_where_sessions_are_never_changes() -> None:
    """These stand in logs that exist."""
    where = {str(key): LogLayout(8).stream_of(key.in_user) for key in KEYS[:4]}
    assert where == WHERE


WHERE = {
    "ann:vigil:t0": "SESSIONS_2",
    "ann:vigil:t1": "SESSIONS_4",
    "ann:vigil:t2": "SESSIONS_6",
    "ann:vigil:t3": "SESSIONS_0",
}


def test_sessions_spread_evenly() -> None:
    keys = (SessionKey("ann", "vigil", f"t{number}") for number in range(8000))
    counts = Counter(LogLayout(8).stream_of(key.in_user) for key in keys)
    assert len(counts) == 8
    assert max(counts.values()) < 1.2 * min(counts.values())


# ---------------------------------------------------------------- the bus


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with running_broker(tmp_path, Nats(partitions=PARTITIONS)) as made:
        yield made


@pytest.fixture
async def bus(broker: Broker) -> AsyncIterator[Bus]:
    made = await broker.admin()
    yield made
    await made.close()


async def test_a_session_is_written_and_read_as_if_there_was_one_log(bus: Bus) -> None:
    seqs = {key: (await bus.publish(key.in_user, str(key).encode())).seq for key in KEYS}
    assert {await bus.log_of(key) for key in KEYS} == set(LogLayout(PARTITIONS).logs)
    for key, seq in seqs.items():
        found = [
            await bus.get_last(key.stream, key.in_all),
            await bus.get_next(key.stream, key.in_all, 1),
            await bus.get_of(key, seq),
            *await bus.read(key.stream, [key.in_user, key.turns]),
        ]
        assert [(one.subject, one.seq, one.data) for one in found if one is not None] == [
            (key.in_user, seq, str(key).encode())
        ] * 4
        assert {one.stream for one in found if one is not None} == {await bus.log_of(key)}


async def test_an_expectation_is_kept_there(bus: Bus) -> None:
    for key in KEYS[:6]:
        first = await bus.publish(key.turn_for("s"), b"", expect=0, expect_subject=key.turns)
        with pytest.raises(WrongLastSequence):
            await bus.publish(key.turn_for(""), b"", expect=0, expect_subject=key.turns)
        await bus.publish(key.turn_for(""), b"", expect=first.seq, expect_subject=key.turns)


async def test_what_is_in_every_partition_is_asked_of_each(bus: Bus) -> None:
    for key in KEYS:
        await bus.publish(key.in_user, b"")
    with pytest.raises(ValueError, match="every partition"):
        await bus.read("SESSIONS", ["session.*.*.*.in.>"])
    found = [
        m.subject for log in LogLayout(PARTITIONS).logs for m in await bus.read(log, ["session.>"])
    ]
    assert sorted(found) == sorted(key.in_user for key in KEYS)
    assert await bus.subjects("SESSIONS", "session.*.ann.*.in.said.user") == {
        key.in_user: 1 for key in KEYS
    }


async def test_consumers_bring_what_is_in_all_of_them(bus: Bus, broker: Broker) -> None:
    for key in KEYS:
        await bus.publish(key.in_user, b"")
    came: list[str] = []

    async def take(message: object) -> None:
        came.append(message.subject)  # type: ignore[attr-defined]
        await bus.ack(message)  # type: ignore[arg-type]

    async with consuming(bus, "cortex", WAKE) as loops:
        tasks = [asyncio.create_task(loop.run(take)) for loop in loops]

        async def are_all_there() -> bool:
            return len(came) == len(KEYS)

        await until(are_all_there)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert sorted(came) == sorted(key.in_user for key in KEYS)


# ---------------------------------------------------------------- how many


async def test_what_was_begun_stays(bus: Bus, broker: Broker) -> None:
    await bus.publish(KEYS[0].in_user, b"kept")
    await provision(bus, nats=Nats(partitions=2))
    other = await broker.admin()
    assert (await other.layout()).partitions == PARTITIONS
    assert await other.get_last("SESSIONS", KEYS[0].in_user) is not None
    await other.close()


async def test_a_log_of_before_partitions_stays_one_stream(tmp_path: Path) -> None:
    """Carried over as it is: nothing says how many there are, and SESSIONS has what was said."""
    async with running_broker(tmp_path) as broker:
        admin = await broker.admin()
        await admin.publish(KEYS[0].in_user, b"kept")
        config = (await admin.api(f"STREAM.INFO.{LAYOUT_STREAM}", {}))["config"]
        await admin.api(f"STREAM.UPDATE.{LAYOUT_STREAM}", config | {"metadata": {}})
        await provision(admin, nats=Nats(partitions=PARTITIONS))
        cortex = await broker.admin()
        assert await cortex.layout() == LogLayout(1)
        found = await cortex.get_last("SESSIONS", KEYS[0].in_user)
        assert found is not None
        assert found.data == b"kept"
        await cortex.close()
        await admin.close()


async def test_a_log_whose_layout_was_lost_is_found_as_it_is(bus: Bus, broker: Broker) -> None:
    """Without its bucket the log was begun anew beside the one that has what was said."""
    await bus.publish(KEYS[0].in_user, b"kept")
    await bus.api(f"STREAM.DELETE.{LAYOUT_STREAM}", {})
    await provision(bus, nats=Nats(partitions=2))
    other = await broker.admin()
    assert (await other.layout()).partitions == PARTITIONS
    assert await other.get_last("SESSIONS", KEYS[0].in_user) is not None
    await other.close()


# ---------------------------------------------------------------- services


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    async with running_stack(
        tmp_path, ("cortex", "scheduler", "delivery"), nats={"partitions": PARTITIONS}
    ) as made:
        yield made


async def signals(admin: Bus) -> list[str]:
    return [decode_signal(m.data).id for m in await admin.read("SIGNALS", ["signal.>"])]


async def test_conversations_in_all_partitions_are_served_told_and_erased(stack: Stack) -> None:
    talks = [await Talk.open(stack, str(key)) for key in KEYS[:8]]
    for talk in talks:
        await talk.ended(await talk.say("hi"))
    admin = await stack.bus("admin")

    async def are_told() -> bool:
        told = await signals(admin)
        return sum(one.endswith("turn.committed") for one in told) >= len(talks)

    await until(are_told)
    before = await signals(admin)
    assert len(before) == len(set(before))
    assert {one.partition("-")[0] for one in before} == {
        await admin.log_of(key) for key in KEYS[:8]
    }
    await stack.stop("cortex")
    await stack.start("cortex")
    await talks[0].ended(await talks[0].say("hi again"))

    async def is_told() -> bool:
        return len(await signals(admin)) > len(before)

    await until(is_told)
    after = await signals(admin)
    assert after[: len(before)] == before
    assert len(after) == len(set(after)), "nothing is told twice by whoever goes on"
    for service in ("cortex", "scheduler", "delivery"):
        await stack.stop(service)
    eraser = Eraser(admin, "ann", SystemClock(), lambda step, done: None)
    await eraser.sweep(quiet_s=0)
    assert await eraser.left() == {}
    assert eraser.swept.deleted["SESSIONS"] > 8
