"""Wakes that cross each other while a session's lease is elsewhere."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from services.cortex import __main__ as cortex
from services.cortex.session import engine
from services.cortex.session import log as session_log
from services.cortex.session.session import Session
from tests.support.stack import Stack
from tests.support.talk import Talk
from vigil.addressees import is_turn
from vigil.bus.bus import Bus, Message
from vigil.bus.lease import Lease, Leases
from vigil.marks import erasure
from vigil.subjects import SessionKey
from vigil.topology import WAKE

ANSWERED_WITHIN_S = 4.0
"""Much less than ack_wait, after which a lost wake comes back."""


async def test_a_wake_that_comes_while_another_is_judged_is_not_lost(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-1, X-5: found by the kill tests: the second wake was dropped for a whole ack_wait."""
    talk = await Talk.open(bare, "ann:vigil:t1")
    foreign = await Leases(await bare.bus("admin"), "another").acquire(talk.key.kv_key)
    assert foreign is not None
    judging, arrived, tries = asyncio.Event(), asyncio.Event(), 0
    acquire, on_wake, is_settled = Leases.acquire, engine.Engine._on_wake, session_log.is_settled

    async def slow_acquire(self: Leases, key: str) -> Lease | None:
        nonlocal tries
        tries += 1
        lease = await acquire(self, key)
        if tries == 2:  # until the first wake is dealt with
            await asyncio.sleep(0.3)
        return lease

    async def watched(self: engine.Engine, wake: Message) -> None:
        await on_wake(self, wake)
        if judging.is_set():
            arrived.set()

    async def slow_judgement(*arguments: Any) -> bool:
        judging.set()
        await asyncio.wait_for(arrived.wait(), 10)
        return await is_settled(*arguments)

    monkeypatch.setattr(engine, "NAK_DELAY_S", 0.2)
    monkeypatch.setattr(Leases, "acquire", slow_acquire)
    monkeypatch.setattr(engine.Engine, "_on_wake", watched)
    monkeypatch.setattr(session_log, "is_settled", slow_judgement)
    await bare.start("cortex")
    await talk.say("one")
    await asyncio.wait_for(judging.wait(), 10)
    last = await talk.say("two")
    await asyncio.wait_for(arrived.wait(), 10)
    await foreign.release()
    async with asyncio.timeout(ANSWERED_WITHIN_S):
        await talk.ended(last)
    await talk.close()


@pytest.mark.parametrize("root", ["session.vigil.ann._worker-1f", "system.vigil.ann.t1"])
async def test_a_thread_in_the_wrong_stream_is_no_session(bare: Stack, root: str) -> None:
    """C-1, X-6: threads that begin with '_' are the cortex's own, in a stream of their own."""
    admin = await bare.bus("admin")
    await bare.start("cortex")
    await admin.publish(f"{root}.in.control", b"{}")
    talk = await Talk.open(bare, "ann:vigil:other")
    await talk.ended(await talk.say("hello"))
    for stream, consumer in (("SESSIONS", "cortex-wake"), ("SYSTEM", "cortex-wake-system")):
        async with asyncio.timeout(10):
            while True:
                info = await admin.api(f"CONSUMER.INFO.{stream}.{consumer}", {})
                if info["num_ack_pending"] + info["num_pending"] == 0:
                    break
                await asyncio.sleep(0.05)
    turns = [m.subject for m in await admin.read("SESSIONS", ["session.>"])]
    turns += [m.subject for m in await admin.read("SYSTEM", ["system.>"])]
    assert [s for s in turns if is_turn(s) and not talk.key.is_turn(s)] == []


async def test_no_session_of_who_is_being_erased_is_opened(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-8: also if the mark comes between the look at it and the lease."""
    talk, admin = await Talk.open(bare, "ann:vigil:t1"), await bare.bus("admin")
    acquire, close_gone = Leases.acquire, engine.Engine.close_gone
    marked, opened = asyncio.Event(), list[str]()

    async def late_acquire(self: Leases, key: str) -> Lease | None:
        if key == talk.key.kv_key and not marked.is_set():
            await erasure.begin(admin, "ann", datetime.now(UTC))
            await asyncio.wait_for(marked.wait(), 10)
        return await acquire(self, key)

    def watched(self: engine.Engine) -> None:
        close_gone(self)
        marked.set()

    class Noted(Session):
        async def run(self, *, is_takeover: bool) -> None:
            opened.append(str(self.key))
            await super().run(is_takeover=is_takeover)

    monkeypatch.setattr(Leases, "acquire", late_acquire)
    monkeypatch.setattr(engine.Engine, "close_gone", watched)
    monkeypatch.setattr(cortex, "Session", Noted)
    await bare.start("cortex")
    await talk.say("hello")
    async with asyncio.timeout(10):
        while await is_waiting(admin) or not marked.is_set():
            await asyncio.sleep(0.01)
    assert not opened
    assert not await Leases(admin, "test").is_live(talk.key.kv_key)


async def test_a_session_that_is_closed_before_it_begins_keeps_no_place(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-1: it would be one less for as long as the process lives."""
    talk, engines = await Talk.open(bare, "ann:vigil:t1"), list[engine.Engine]()
    take = engine.Engine._take

    async def take_and_close(self: engine.Engine, key: SessionKey) -> float | None:
        delay_s = await take(self, key)
        if not engines:
            engines.append(self)
            monkeypatch.setattr(self, "_is_gone", lambda key: True)
            self.close_gone()
        return delay_s

    monkeypatch.setattr(engine.Engine, "_take", take_and_close)
    await bare.start("cortex")
    await talk.say("hello")
    async with asyncio.timeout(10):
        while not engines or engines[0].open_count:
            await asyncio.sleep(0.01)
    assert not engines[0]._shares._busy


async def is_waiting(admin: Bus) -> bool:
    info = await admin.api(f"CONSUMER.INFO.{WAKE.stream}.{WAKE.name}", {})
    return bool(info["num_pending"] or info["num_ack_pending"])
