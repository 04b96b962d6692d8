"""A broker that stands still: who comes then waits alone, and nobody waits after it (issue 10)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import websockets

from tests.support.gateway import Gate, assert_problem

pytestmark = pytest.mark.usefixtures("own_broker")
ANN = "ann:vigil:t1"
MESSAGES = f"/api/sessions/{ANN}/messages"
READERS = 4
OF_A_WRITE = ("session.", "$JS.API.STREAM.INFO.SESSIONS")
"""A keyed message asks for the end of the log first."""


@pytest.fixture
def asked(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The subjects of what the gateway asked the broker for, or had it store."""
    bus = gate.stack.contexts["gateway"].bus
    request, subjects = bus._request, []

    async def noting(subject: str, *rest: Any) -> Any:
        subjects.append(subject)
        return await request(subject, *rest)

    monkeypatch.setattr(bus, "_request", noting)
    return subjects


async def test_readers_of_signals_wait_together(gate: Gate, asked: list[str]) -> None:
    """One after the other they waited a multiple of what one waits."""
    ann = await gate.person("ann")

    async def read() -> int:
        return (await ann.get("/api/signals")).status_code

    # A token that the gateway hasn't heard of yet is asked for.
    assert (await ann.get("/api/sessions")).status_code == 200
    await gate.stack.broker.pause()
    try:
        assert await asyncio.gather(*(read() for _ in range(READERS))) == [503] * READERS
    finally:
        await gate.stack.broker.unpause()
    assert asked.count("$JS.API.STREAM.MSG.GET.SIGNALS") == 1


async def test_only_the_first_write_is_patient(gate: Gate, asked: list[str]) -> None:
    """A full disk, too, makes the broker silent: 503 after one try, for keyed messages as well."""
    ann = await gate.person("ann")

    async def tries(**more: str) -> int:
        asked.clear()
        answer = await ann.post(MESSAGES, json={"text": "hi"} | more, timeout=20)
        assert_problem(answer, 503)
        return sum(subject.startswith(OF_A_WRITE) for subject in asked)

    assert (await ann.post(MESSAGES, json={"text": "hi"})).status_code == 202
    await gate.stack.broker.pause()
    try:
        assert await tries() > 1
        assert await tries() == 1
        assert await tries(idempotency_key="k") == 1
    finally:
        await gate.stack.broker.unpause()


async def test_a_socket_opened_in_a_stall_holds_up_nobody(gate: Gate) -> None:
    """Its client gave up; the others go on with the connection that there is."""
    token = await gate.token("ann")
    ann = await gate.http(token)
    assert (await ann.post(MESSAGES, json={"text": "hi"})).status_code == 202
    await gate.stack.broker.pause()
    try:
        opening = asyncio.create_task(gate.socket(token, ANN))
        answer = await ann.post(MESSAGES, json={"text": "during"}, timeout=20)
        assert answer.status_code == 503
    finally:
        await gate.stack.broker.unpause()
    try:
        socket = await opening
    except (websockets.InvalidStatus, OSError, TimeoutError):
        socket = await gate.socket(token, ANN)
    assert (await ann.post(MESSAGES, json={"text": "after"})).status_code == 202
    await gate.say(ANN, "there", effect_id="e1")
    async with asyncio.timeout(10):
        assert "there" in str(await socket.recv())
    assert gate.stack.contexts["gateway"].bus.reconnects == 0
