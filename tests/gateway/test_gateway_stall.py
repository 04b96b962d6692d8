"""A broker that stands still: who comes then waits alone, and nobody waits after it (issue 10)."""

from __future__ import annotations

import asyncio
import time

import websockets

from tests.support.gateway import Gate, assert_problem

ANN = "ann:vigil:t1"
MESSAGES = f"/api/sessions/{ANN}/messages"
READERS = 4


async def test_readers_of_signals_wait_together(gate: Gate) -> None:
    """One after the other they waited a multiple of what one waits."""
    ann = await gate.person("ann")

    async def read() -> int:
        return (await ann.get("/api/signals")).status_code

    await gate.stack.broker.pause()
    try:
        begun_s = time.monotonic()
        readers = [asyncio.create_task(read()) for _ in range(READERS)]
        await asyncio.wait(readers, return_when=asyncio.FIRST_COMPLETED)
        first_s = time.monotonic() - begun_s
        assert await asyncio.gather(*readers) == [503] * READERS
        assert time.monotonic() - begun_s < 2 * first_s
    finally:
        await gate.stack.broker.unpause()


async def test_only_the_first_write_is_patient(gate: Gate) -> None:
    """A full disk, too, makes the broker silent: 503 after one try, for keyed messages as well."""
    ann = await gate.person("ann")

    async def refused_s(**more: str) -> float:
        begun_s = time.monotonic()
        answer = await ann.post(MESSAGES, json={"text": "hi"} | more, timeout=20)
        assert_problem(answer, 503)
        return time.monotonic() - begun_s

    assert (await ann.post(MESSAGES, json={"text": "hi"})).status_code == 202
    await gate.stack.broker.pause()
    try:
        first_s = await refused_s()
        assert await refused_s() < first_s / 2
        assert await refused_s(idempotency_key="k") < first_s / 2
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
