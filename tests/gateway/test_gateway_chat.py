"""POST /api/chat: waiting for what comes of a message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway import Gate, assert_problem, running_gateway, until
from vigil.contracts import State
from vigil.subjects import SessionKey
from vigil.topology import CONSUMERS

ANN = "ann:vigil:t1"
CHAT = {"message": "hi", "userId": "ann", "threadId": "t1"}


@pytest.fixture
async def patient(tmp_path: Path) -> AsyncIterator[Gate]:
    async with running_gateway(tmp_path, chat_wait_s=0.5) as gate:
        yield gate


async def _event(gate: Gate, session: str = ANN) -> tuple[str, int]:
    """Wait for the newest user message -> (its id, its sequence)."""
    key = SessionKey.parse(session)
    found: list[Any] = []

    async def has_come() -> bool:
        message = await gate.admin.get_last(key.stream, key.in_user)
        found.append(message)
        return message is not None

    await until(has_come, "the message is stored")
    return found[-1].headers["Nats-Msg-Id"], found[-1].seq


async def test_the_answer_is_all_that_was_said_because_of_it(gate: Gate) -> None:
    """SPEC I-5: over several turns, in order, without what others caused or what is void."""
    ann = await gate.person("ann")
    waiting = asyncio.create_task(ann.post("/api/chat", json=CHAT))
    event_id, seq = await _event(gate)
    state = State(position=seq, turns=1)
    await gate.turn(ANN, state, sends={"one": event_id, "alien": "x"})
    await gate.say(ANN, "One moment.", effect_id="one", caused_by=event_id)
    await gate.say(ANN, "not mine", effect_id="alien", caused_by="x")
    await gate.turn(ANN, state, sends={"two": event_id, "void": event_id}, ended=(event_id,))
    await gate.receipt(ANN, "void", "void")
    assert not waiting.done()
    await gate.say(ANN, "Done.", effect_id="two", caused_by=event_id)
    answer = await waiting
    assert answer.status_code == 200
    body = answer.json()
    assert body["response"] == "One moment.\n\nDone."
    assert [message["id"] for message in body["messages"]] == ["one", "two"]
    assert (body["session_key"], body["threadId"]) == (ANN, "t1")
    assert (body["event_id"], body["seq"]) == (event_id, seq)


async def test_silence_is_an_answer(gate: Gate) -> None:
    """SPEC I-5: an exchange may end with nothing said."""
    ann = await gate.person("ann")
    waiting = asyncio.create_task(ann.post("/api/chat", json=CHAT))
    event_id, seq = await _event(gate)
    await gate.turn(ANN, State(position=seq, turns=1), ended=(event_id,))
    answer = await waiting
    assert (answer.status_code, answer.json()["response"]) == (200, "")
    assert answer.json()["messages"] == []


async def test_after_the_wait_comes_202_and_the_message_stays(patient: Gate) -> None:
    """SPEC I-5: at most `chat_wait_s`, then the event id; the answer follows on the session."""
    ann = await patient.person("ann")
    answer = await ann.post("/api/chat", json=CHAT)
    assert answer.status_code == 202
    (stored,) = await patient.stored(ANN)
    body = answer.json()
    assert body == {
        "event_id": stored.headers["Nats-Msg-Id"], "seq": stored.seq, "session_key": ANN,
        "threadId": "t1",
    }  # fmt: skip


async def test_a_chat_without_a_thread_gets_a_new_one(patient: Gate) -> None:
    """SPEC S-2: unique each time; agentId defaults to vigil."""
    ann = await patient.person("ann")
    keys = set()
    for _ in range(2):
        body = (await ann.post("/api/chat", json={"message": "hi", "userId": "ann"})).json()
        assert body["session_key"] == f"ann:vigil:{body['threadId']}"
        assert len(await patient.stored(body["session_key"])) == 1
        keys.add(body["session_key"])
    assert len(keys) == 2


async def test_who_hangs_up_frees_what_waited(gate: Gate) -> None:
    """No consumer outlives its request."""
    ann = await gate.person("ann")
    waiting = asyncio.create_task(ann.post("/api/chat", json=CHAT))
    await _event(gate)

    async def consumers() -> int:
        info = await gate.admin.api("STREAM.INFO.SESSIONS", {})
        durable = sum(consumer.stream == "SESSIONS" for consumer in CONSUMERS)
        return int(info["state"]["consumer_count"]) - durable

    async def is_waiting() -> bool:
        return await consumers() == 1

    async def is_free() -> bool:
        return await consumers() == 0

    await until(is_waiting, "the request follows the session")
    waiting.cancel()
    await until(is_free, "the consumer is gone")


async def test_a_gateway_that_stops_lets_nobody_wait(gate: Gate) -> None:
    """SPEC X-5: the message is stored, so the answer is 202 and not a broken connection."""
    ann = await gate.person("ann")
    waiting = asyncio.create_task(ann.post("/api/chat", json=CHAT))
    event_id, _ = await _event(gate)
    await gate.stack.stop("gateway")
    answer = await waiting
    assert (answer.status_code, answer.json()["event_id"]) == (202, event_id)


BAD_CHATS: list[tuple[dict[str, Any], str]] = [
    ({"userId": "ann"}, "message"),
    ({"message": "hi"}, "userId"),
    ({"message": "hi", "user_id": "ann"}, "user_id"),
    ({"message": " ", "userId": "ann"}, "message"),
    ({"message": "hi", "userId": "ann", "threadId": ""}, "threadId"),
    ({"message": "hi", "userId": "ann", "threadId": 5}, "threadId"),
    ({"message": "hi", "userId": "ann", "agentId": "a.b"}, "agentId"),
]


async def test_chats_that_cannot_be(gate: Gate) -> None:
    """SPEC X-6."""
    ann = await gate.person("ann")
    for body, field in BAD_CHATS:
        assert_problem(await ann.post("/api/chat", json=body), 422, field)
