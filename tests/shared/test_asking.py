"""Questions over the bus: what stays behind of them."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.support.stack import Stack
from vigil.bus.bus import Bus
from vigil.errors import OutcomeUnknown, Unavailable
from vigil.subjects import Scope

SUBJECT = Scope("vigil", "ann").question("stats")
TOO_LARGE = b"x" * (2 * 1024 * 1024)


def subscriptions(bus: Bus) -> int:
    return len(bus._nc._subs)


async def test_a_question_that_cannot_be_asked_leaves_nothing_behind(bare: Stack) -> None:
    """S12: neither a subscription nor somebody who waits, whyever it failed."""
    bus = await bare.bus("gateway")
    with pytest.raises(Unavailable):
        await bus.ask(SUBJECT, b"{}", timeout=5)
    before = subscriptions(bus)
    for _ in range(5):
        with pytest.raises(Unavailable):
            await bus.ask_all(SUBJECT, TOO_LARGE, count=1, timeout=5)
        with pytest.raises(Unavailable):
            await bus.ask(SUBJECT, TOO_LARGE, timeout=5)
        assert await bus.ask_all(SUBJECT, b"{}", count=1, timeout=5) == []
    assert subscriptions(bus) == before
    assert not bus._asker._waiting


async def test_whoever_stops_waiting_is_forgotten(bare: Stack) -> None:
    """S12: by a timeout or because it was cancelled; an answer that is late reaches nobody else."""
    bus, answering = await bare.bus("gateway"), await bare.bus("memory")
    asked: asyncio.Queue[str] = asyncio.Queue()
    connection = answering._nc
    heard = await connection.subscribe(SUBJECT)
    await connection.flush()
    with pytest.raises(OutcomeUnknown):
        await bus.ask(SUBJECT, b"1", timeout=0.05)
    waiting = asyncio.create_task(bus.ask(SUBJECT, b"2", timeout=30))
    asked.put_nowait((await heard.next_msg(5)).reply)
    asked.put_nowait((await heard.next_msg(5)).reply)
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    assert not bus._asker._waiting
    last = asyncio.create_task(bus.ask(SUBJECT, b"3", timeout=30))
    reply = (await heard.next_msg(5)).reply
    while not asked.empty():
        await connection.publish(asked.get_nowait(), b"late")
    await connection.publish(reply, b"right")
    await connection.publish(reply, b"a second answer")
    assert (await last).data == b"right"
