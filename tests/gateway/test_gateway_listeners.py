"""Listeners of channels: whatever becomes of one, it is begun again, by one replica at a time."""

from __future__ import annotations

import asyncio
import email.errors
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import pytest

from services.gateway.events import listeners
from services.gateway.events.listeners import Listening
from services.gateway.http.problem import Problem
from tests.support.stack import Stack
from vigil.bus import lease
from vigil.bus.lease import Leases
from vigil.channels.contract import Ear, Inbound
from vigil.subjects import token_of

WAIT_S: Final = 20.0
KEY: Final = f"channel.{token_of('channel', 'post')}"


class Scripted:
    """A listener that ends each time as it is told to, and listens on after that."""

    def __init__(self, *ends: BaseException) -> None:
        self.ends = list(ends)
        self.begun = 0
        self.is_listening = asyncio.Event()

    async def listen(self, ear: Ear) -> None:
        self.begun += 1
        ear.show("listening", "", {})
        if self.ends:
            raise self.ends.pop(0)
        self.is_listening.set()
        await asyncio.Event().wait()


async def listening_on(bare: Stack, instance: str, listener: Scripted) -> Listening:
    config = SimpleNamespace(nats=SimpleNamespace(replicas=1), text_bytes_max=10_000,
                             attachment_bytes_max=1_000)  # fmt: skip
    context: Any = SimpleNamespace(
        bus=await bare.bus("gateway"), instance=instance, facts={}, warnings={},
        settings=SimpleNamespace(config=config),
    )  # fmt: skip
    edge: Any = SimpleNamespace(
        context=context, listeners={"post": listener}, config=config, transcriber=None
    )
    return Listening(edge)


@pytest.mark.parametrize(
    "end",
    [
        asyncio.CancelledError(),
        ExceptionGroup("parts", [OSError("away")]),
        email.errors.MessageError("no mail"),
        AssertionError("never"),
    ],
    ids=["cancelled", "group", "of a library", "assertion"],
)
async def test_whatever_a_listener_raises_it_listens_again(
    bare: Stack, monkeypatch: pytest.MonkeyPatch, end: BaseException
) -> None:
    """A kind of channel need not be ours: neither does it end the gateway, nor fall silent."""
    monkeypatch.setattr(lease, "STANDBY_S", 0.01)
    listener = Scripted(end)
    running = asyncio.create_task((await listening_on(bare, "one", listener)).run())
    try:
        async with asyncio.timeout(WAIT_S):
            await asyncio.wait(
                (running, asyncio.create_task(listener.is_listening.wait())),
                return_when=asyncio.FIRST_COMPLETED,
            )
        assert not running.done(), running.exception()
        assert listener.begun == 2
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert not await Leases(await bare.bus("admin"), "test").is_live(KEY), "it is given back"


class Heard(Scripted):
    """A listener that hears three messages, one after the other."""

    async def listen(self, ear: Ear) -> None:
        self.begun += 1
        ear.show("listening", "", {"outside": 7})
        for number in range(3):
            await ear.hear(Inbound(id=f"m{number}", user="ann", thread="t1", text="hello"))
        self.is_listening.set()
        await asyncio.Event().wait()


async def test_what_can_not_be_stored_now_waits_and_the_other_side_is_not_asked_anew(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-2: with 200 unanswered messages in a conversation a server was logged in to every three
    seconds, and it was said that nobody listens."""
    taken: list[str] = []
    has_room = asyncio.Event()

    async def take(_edge: object, _name: str, heard: Inbound, _proof: object) -> None:
        if heard.id == "m1" and not has_room.is_set():
            raise Problem(429, "the session has too many unanswered messages; wait for them")
        taken.append(heard.id)

    monkeypatch.setattr(listeners, "BUSY_S", 0.01)
    monkeypatch.setattr(listeners.channels, "take", take)
    heard = Heard()
    listening = await listening_on(bare, "one", heard)
    facts: Any = listening._edge.context.facts
    running = asyncio.create_task(listening.run())
    try:
        async with asyncio.timeout(WAIT_S):
            while facts.get("hears", {}).get("post", {}).get("state") != "waiting":
                await asyncio.sleep(0.01)
        told = facts["hears"]["post"]
        assert ("too many unanswered" in told["problem"], told["outside"]) == (True, 7)
        assert taken == ["m0"]
        has_room.set()
        async with asyncio.timeout(WAIT_S):
            await heard.is_listening.wait()
        assert taken == ["m0", "m1", "m2"]
        assert (heard.begun, facts["hears"]["post"]["state"]) == (1, "listening")
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_who_gets_no_answer_stops_before_the_lease_may_be_anothers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a broker that is frozen, or out of reach from here; nor is it waited for at the end."""
    never, asked = asyncio.Event(), list[str]()

    async def ask(what: str, *_: object, **__: object) -> int:
        asked.append(what)
        await never.wait()
        return 0

    bucket: Any = SimpleNamespace(put=partial(ask, "renew"), delete=partial(ask, "release"))
    for name, short_s in (
        ("RENEW_S", 0.01),
        ("RENEW_TIMEOUT_S", 0.05),
        ("RELEASE_TIMEOUT_S", 0.05),
    ):
        monkeypatch.setattr(lease, name, short_s)
    ear: Any = SimpleNamespace(show=lambda *_: None)
    one = lease.Lease(bucket, KEY, b"one", 1)
    async with asyncio.timeout(WAIT_S):
        await one.held(Scripted().listen(ear), name="it", on_renewed=never.set)
    assert asked == ["renew", "release"]
