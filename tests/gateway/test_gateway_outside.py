"""Events of programs on the bus, from EVENTS into sessions (SPEC P-7, X-3, X-6)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nats.js.errors
import pytest

from services.gateway.events import cloud_events, from_bus
from services.gateway.events import endpoint as events
from services.gateway.http.problem import Problem
from tests.support.gateway import Gate, running_gateway, until
from tests.support.programs import Program, admit, are_taken_in, connect
from vigil.contracts import DeadLetter, External, State, decode_dead_letter, decode_event
from vigil.errors import InvalidInput
from vigil.settings.config import Config
from vigil.settings.sections import Agent
from vigil.topology import MIB

pytestmark = pytest.mark.usefixtures("own_broker")
ANN = "ann:vigil:t1"
LIMITS = cloud_events.EventLimits(content_bytes_max=1000, json_depth_max=8)


@pytest.fixture
async def ci(gate: Gate) -> AsyncIterator[Program]:
    """A program with a credential of ann's."""
    program = await connect(gate.stack, await admit(gate.stack, "ann"))
    yield program
    await program.close()


def event(**changes: Any) -> bytes:
    full = {
        "specversion": "1.0", "id": "42", "source": "https://ci.example/7",
        "type": "build.failed", "subject": ANN, "data": {"status": "red"},
    } | changes  # fmt: skip
    return json.dumps({n: v for n, v in full.items() if v is not None}).encode()


async def stored(gate: Gate, session: str = ANN) -> list[External]:
    messages = await gate.stored(session)
    found = [decode_event(m.data) for m in messages if m.subject.endswith(".in.external")]
    return [one for one in found if isinstance(one, External)]


async def letters(gate: Gate) -> list[tuple[str, DeadLetter]]:
    messages = await gate.admin.read("DEAD", ["dead.>"])
    return [(message.subject, decode_dead_letter(message.data)) for message in messages]


async def taken(gate: Gate) -> None:
    await until(lambda: are_taken_in(gate.admin), "all events are taken in")


async def test_an_event_arrives_in_the_session(gate: Gate, ci: Program) -> None:
    """SPEC P-7, X-3: published with plain nats-py; acknowledged means stored; untrusted."""
    ack = await ci.js.publish("event.ann.ci", event())
    assert ack.stream == "EVENTS"
    await taken(gate)
    (message,) = await gate.stored(ANN)
    (found,) = await stored(gate)
    assert message.subject == "session.vigil.ann.t1.in.external"
    assert set(message.headers) == {"traceparent", "Nats-Msg-Id"}
    assert found.payload.source == "bus:ci"
    assert found.payload.content == '{"status": "red"}'
    assert (found.payload.kind, found.payload.origin_id) == ("build.failed", "42")
    assert found.payload.is_trusted is False


@pytest.mark.parametrize(
    ("user", "subject", "is_theirs"),
    [
        ("ann", "ann:vigil:t1", True), ("ann", "team:desk:t1", True),
        ("ann", "ann:desk:t1", False), ("ann", "bob:vigil:t1", False),
        ("bob", "team:desk:t1", False), ("bob", "bob:desk:t1", False),
        ("bob", "team:vigil:t1", False),
    ],
)  # fmt: skip
def test_it_is_for_ones_own_sessions_and_ones_teams(
    user: str, subject: str, *, is_theirs: bool
) -> None:
    """X-4, L-17."""
    told = cloud_events.structured(event(subject=subject), LIMITS)
    config = Config(agents={"desk": Agent(kind="team", members=("ann",))})
    if is_theirs:
        assert str(events.session_for(told, user, config)) == subject
    else:
        with pytest.raises(InvalidInput, match="of another user"):
            events.session_for(told, user, config)


async def test_no_header_of_a_program_goes_any_further(gate: Gate, ci: Program) -> None:
    """RELIABILITY S5: also of those that the broker took."""
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    headers = {
        "traceparent": trace, "x": "y", "Vigil-Position": "9", "Nats-Msg-Id": "m",
    }  # fmt: skip
    await ci.js.publish("event.ann.ci", event(), headers=headers)
    await taken(gate)
    (message,) = await gate.stored(ANN)
    assert set(message.headers) == {"traceparent", "Nats-Msg-Id"}
    assert message.headers["traceparent"].startswith(f"00-{'a' * 32}-")
    assert message.headers["Nats-Msg-Id"] != "m"


async def test_a_senders_repeat_is_stored_once(gate: Gate, ci: Program) -> None:
    """RELIABILITY S6: also after the broker's own window; another body with that id is dead."""
    for _ in range(3):
        await ci.js.publish("event.ann.ci", event())
        await taken(gate)
    assert len(await stored(gate)) == 1
    await ci.js.publish("event.ann.ci", event(data="x"))
    await ci.js.publish("event.ann.ci", event(source="other"))
    await taken(gate)
    assert len(await stored(gate)) == 2
    ((_, letter),) = await letters(gate)
    assert "used before" in letter.cause


async def test_a_program_keeps_no_event_of_another_out(gate: Gate, ci: Program) -> None:
    """RELIABILITY 0.6, S6: by its message id, or by the id of the event."""
    other = await connect(gate.stack, await admit(gate.stack, "bob", "evil"))
    try:
        await other.js.publish(
            "event.bob.evil", event(subject="bob:vigil:t"), headers={"Nats-Msg-Id": "m1"}
        )
        await asyncio.sleep(0.15)  # the window of EVENTS, as short as the broker allows
        ack = await ci.js.publish("event.ann.ci", event(), headers={"Nats-Msg-Id": "m1"})
        assert not ack.duplicate
        await taken(gate)
        assert len(await stored(gate)) == 1
    finally:
        await other.close()


SHELF = "dead.gateway._.ann.ci"
"""Where the letters of a credential lie, whatever its events name."""
BAD: list[tuple[bytes, str]] = [
    (b"", "JSON"),
    (b"\xff\xfe", "JSON"),
    (b"[]", "JSON"),
    (b'{"a":' * 20_000 + b"1" + b"}" * 20_000, "nested"),
    (event(subject=None), "subject: is required"),
    (event(subject="ann:vigil:a.b"), "subject: threadId"),
    (event(subject=ANN, time="yesterday"), "time: must be an instant"),
    (event(subject="bob:vigil:t1"), "another user"),
    (event(subject="ann:vigil:_mind"), "must not start"),
    (event(subject=ANN, agentid="x"), "agentid"),
    (event(subject="ann:vigl:t1"), "subject: agentId must be one that there is, and none"),
    (event(id=None), "id: is required"),
    (event(data="x" * 70_000), "at most 65536"),
]


async def test_a_program_cannot_fill_the_disk_that_all_share(gate: Gate, ci: Program) -> None:
    """RELIABILITY S16: what is too large is refused, and so is what comes when EVENTS is full."""
    with pytest.raises(nats.js.errors.APIError, match="maximum"):
        await ci.js.publish("event.ann.ci", event(data="x" * 300_000))
    admin = await gate.stack.bus("admin")
    events = (await admin.api("STREAM.INFO.EVENTS", {}))["config"]
    assert (events["max_bytes"], events["discard"]) == (256 * MIB, "new")
    dead = (await admin.api("STREAM.INFO.DEAD", {}))["config"]
    assert (dead["max_bytes"], dead["max_msgs_per_subject"]) == (128 * MIB, 1000)
    # The bound itself, made small: the program is told, and nobody else is hindered.
    await admin.api("STREAM.UPDATE.EVENTS", events | {"max_bytes": 2000})

    async def flood() -> None:
        for number in range(100):
            await ci.js.publish("event.ann.ci", event(id=f"e{number}"))

    with pytest.raises(nats.js.errors.APIError, match="maximum bytes"):
        await flood()
    bob = await gate.person("bob")
    answer = await bob.post("/api/sessions/bob:vigil:t/messages", json={"text": "hi"})
    assert answer.status_code == 202


async def flood(program: Program, subject: str, data: bytes) -> int:
    """Publish until the broker refuses; return how many it took."""
    for taken_in in range(1000):
        try:
            await program.js.publish(subject, data)
        except nats.js.errors.APIError:
            return taken_in
    raise AssertionError("never refused")


async def test_a_flood_of_one_credential_leaves_room_for_the_others(
    gate: Gate, ci: Program
) -> None:
    """RELIABILITY S16: what waits is bounded for each; what was taken in takes no room."""
    evil = await connect(gate.stack, await admit(gate.stack, "bob", "evil"))
    dead = (await gate.admin.api("STREAM.INFO.DEAD", {}))["config"]
    await gate.admin.api("STREAM.UPDATE.DEAD", dead | {"max_msgs_per_subject": 10})
    await ci.js.publish("event.ann.ci", b"a letter")
    await taken(gate)
    await gate.stack.stop("gateway")
    try:
        assert await flood(evil, "event.bob.evil", event(subject="bob:vigil:_no")) == 256
        with pytest.raises(nats.js.errors.APIError, match="maximum messages per subject"):
            await evil.js.publish("event.bob.evil", event())
        await ci.js.publish("event.ann.ci", event())
        await gate.stack.start("gateway")
        await taken(gate)
        assert len(await stored(gate)) == 1
        state = (await gate.admin.api("STREAM.INFO.EVENTS", {}))["state"]
        assert state["messages"] == 0
        await evil.js.publish("event.bob.evil", event(subject="bob:vigil:t"))
        await taken(gate)
        assert len(await stored(gate, "bob:vigil:t")) == 1
        shelves = [subject for subject, _ in await letters(gate)]
        assert (shelves.count("dead.gateway._.bob.evil"), shelves.count(SHELF)) == (10, 1)
    finally:
        await evil.close()


async def test_nobody_waits_behind_the_events_of_another(
    gate: Gate, ci: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long those take: each credential has a lane of its own, and keeps its order."""
    evil = await connect(gate.stack, await admit(gate.stack, "bob", "evil"))
    real, is_done = events.take, asyncio.Event()

    async def take(*args: Any, **named: Any) -> Any:
        if named["source"] == "bus:evil":
            await is_done.wait()
        return await real(*args, **named)

    monkeypatch.setattr(events, "take", take)
    try:
        for number in range(3):
            await evil.js.publish("event.bob.evil", event(id=str(number), subject="bob:vigil:t"))
        await ci.js.publish("event.ann.ci", event())

        async def is_stored() -> bool:
            return len(await stored(gate)) == 1

        await until(is_stored, "the quiet one's event is in its session")
        assert await stored(gate, "bob:vigil:t") == []
        is_done.set()
        await taken(gate)
        found = await stored(gate, "bob:vigil:t")
        assert [one.payload.origin_id for one in found] == ["0", "1", "2"]
    finally:
        await evil.close()


async def test_waiting_is_no_fault(gate: Gate, ci: Program, monkeypatch: Any) -> None:
    """SPEC X-6: an event that waited long is buried only for its own faults."""
    real, faults = events.take, iter([Problem(429, "wait")] * 6 + [ZeroDivisionError("once")])

    async def take(*args: Any, **named: Any) -> Any:
        fault = next(faults, None)
        if fault is not None:
            raise fault
        return await real(*args, **named)

    monkeypatch.setattr(events, "take", take)
    monkeypatch.setattr(from_bus, "BUSY_DELAY_S", 0.05)
    await ci.js.publish("event.ann.ci", event())
    await taken(gate)
    assert await letters(gate) == []
    assert len(await stored(gate)) == 1


async def test_what_cannot_even_be_buried_does_not_end_the_gateway(
    gate: Gate, ci: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC X-6: the broker refuses the dead letter; the event waits, the next one is taken."""
    monkeypatch.setattr(from_bus, "STUCK_DELAY_S", 0.2)
    admin = await gate.stack.bus("admin")
    dead = (await admin.api("STREAM.INFO.DEAD", {}))["config"]
    await admin.api("STREAM.UPDATE.DEAD", dead | {"max_msg_size": 10})
    await ci.js.publish("event.ann.ci", b"bad")
    await ci.js.publish("event.ann.ci", event())

    async def is_stored() -> bool:
        return len(await stored(gate)) == 1

    await until(is_stored, "the next event is taken")
    await admin.api("STREAM.UPDATE.DEAD", dead)
    await taken(gate)
    assert len(await letters(gate)) == 1


async def test_what_cannot_be_used_is_dead_lettered_with_its_cause(gate: Gate, ci: Program) -> None:
    """SPEC X-6: once each, under the publishing user, and the next one is taken as ever."""
    for data, _ in BAD:
        await ci.js.publish("event.ann.ci", data)
    await ci.js.publish("event.ann.ci", event())
    await taken(gate)
    found = await letters(gate)
    assert {subject for subject, _ in found} == {SHELF}
    for number, ((_, letter), (data, cause)) in enumerate(zip(found, BAD, strict=True), 1):
        assert cause in letter.cause, (letter.cause, cause)
        assert (letter.id, letter.seq) == (f"EVENTS-{number}", number)
        assert (letter.service, letter.subject) == ("gateway", "event.ann.ci")
        assert letter.data == data[: from_bus.KEPT_BYTES_MAX]
    assert len(await stored(gate)) == 1
    assert await gate.stored("bob:vigil:t1") == []
    assert gate.stack.contexts["gateway"].bus.violations == []


async def test_of_an_agent_that_there_isnt_nothing_is_made(gate: Gate, ci: Program) -> None:
    """SPEC P-7, X-6: its letter has the whole event, and which agent was likely meant; sent again
    once somebody has talked with that agent, it's taken."""
    mistyped = event(subject="ann:choach:t1")
    ann = await gate.person("ann")
    said = await ann.post("/api/sessions/ann:coach:t1/messages", json={"text": "Hello"})
    assert said.status_code == 202
    await ci.js.publish("event.ann.ci", mistyped)
    await ci.js.publish("event.ann.ci", event(id="43", subject="ann:coach:t1"))
    await taken(gate)
    ((_, letter),) = await letters(gate)
    assert letter.cause.endswith("none is called choach; did you mean coach?")
    assert letter.data == mistyped
    assert await gate.stored("ann:choach:t1") == []
    assert len(await stored(gate, "ann:coach:t1")) == 1
    said = await ann.post("/api/sessions/ann:choach:t1/messages", json={"text": "Hello"})
    assert said.status_code == 202
    await ci.js.publish("event.ann.ci", mistyped)
    await taken(gate)
    assert len(await stored(gate, "ann:choach:t1")) == 1
    assert len(await letters(gate)) == 1


async def test_a_session_that_is_behind_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ARCHITECTURE 3: beyond the backlog an event comes again later, and others aren't held up."""
    monkeypatch.setattr(from_bus, "BUSY_DELAY_S", 0.1)
    async with running_gateway(tmp_path, backlog_max=80) as gate:
        program = await connect(gate.stack, await admit(gate.stack, "ann"))
        for number in range(50):
            await program.js.publish("event.ann.ci", event(id=str(number)))
        await program.js.publish("event.ann.ci", event(id="x", subject="ann:vigil:t2"))

        async def is_other_taken() -> bool:
            return len(await stored(gate, "ann:vigil:t2")) == 1

        await until(is_other_taken, "the other session has its event")
        assert len(await stored(gate)) == 41
        assert not await are_taken_in(gate.admin)
        await gate.turn(ANN, State(position=10**6, turns=1))
        await taken(gate)
        assert {one.payload.origin_id for one in await stored(gate)} == {str(n) for n in range(50)}
        assert await letters(gate) == []
        await program.close()


async def test_a_fault_of_ours_is_no_crash_loop(
    gate: Gate, ci: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC X-6: an event that makes the code fail is tried again, then buried; the rest goes on."""
    monkeypatch.setattr(from_bus, "AWAY_DELAY_S", 0.05)
    real = from_bus.cloud_events.structured

    def failing(data: bytes, limits: Any) -> Any:
        if b"poison" in data:
            raise ZeroDivisionError("a fault")
        return real(data, limits)

    monkeypatch.setattr(from_bus.cloud_events, "structured", failing)
    await ci.js.publish("event.ann.ci", event(data="poison"))
    await ci.js.publish("event.ann.ci", event(id="43"))
    await taken(gate)
    ((_, letter),) = await letters(gate)
    assert "5 tries: ZeroDivisionError" in letter.cause
    assert len(await stored(gate)) == 1


async def test_events_wait_for_a_gateway(gate: Gate, ci: Program) -> None:
    """SPEC X-5: what was acknowledged while no gateway ran is taken in by the next one."""
    await gate.stack.stop("gateway")
    await ci.js.publish("event.ann.ci", event())
    assert await stored(gate) == []
    await gate.stack.start("gateway", "gateway:2")
    await taken(gate)
    assert len(await stored(gate)) == 1
