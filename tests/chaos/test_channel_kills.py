"""Delivery and the gateway killed at each step of a message on a channel, with a real receiver.

The receiver counts bodies by webhook id and knows which of them it took. So at the end the log is
compared with what really happened outside.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec
import pytest

from tests.chaos.processes import Processes, Step
from tests.support.channels import (
    channel_of,
    closed,
    dead_letters,
    died,
    no_orders_left,
    orders,
    receipts,
    wish,
)
from tests.support.delivery import Conversation, all_acked, conversation
from tests.support.receiver import (
    OK,
    Behaviour,
    Receiver,
    Request,
    running_receiver,
    status,
    verified,
)
from tests.support.stack import running_broker, settings_of
from vigil.broker.ports import free_port
from vigil.broker.process import Broker
from vigil.bus.bus import Bus
from vigil.contracts import DeadLetter, UserMessage, UserMessagePayload, encode
from vigil.errors import VigilError
from vigil.local.home import ensure_home
from vigil.minds import mind_of
from vigil.settings import credentials, tokens
from vigil.subjects import SessionKey

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

CARRYING: Final = (
    "delivery.dispatch.before",
    "delivery.dispatch.after",
    "delivery.dispatch.next",
    "delivery.attempt.received",
    "delivery.attempt.begun",
    "delivery.attempt.sent",
    "delivery.attempt.ended",
    "delivery.attempt.closed",
    "delivery.attempt.buried",
    "delivery.attempt.told",
    "delivery.attempt.before_ack",
)
REQUEUEING: Final = ("delivery.requeue.after_dispatch", "gateway.requeue.before_end")
POINTS: Final = (*CARRYING, *REQUEUEING)

BUSY_ONCE, GONE, MOVED = "busy at first", "gone", "moved"
MIND: Final = mind_of(SessionKey("ann", "vigil", "t1").scope)


class World:
    """A broker, a receiver, services as processes, and what was said."""

    def __init__(self, home: Path, broker: Broker, bus: Bus, receiver: Receiver) -> None:
        self.home = home
        self.broker = broker
        self.bus = bus
        self.receiver = receiver
        self.port = free_port()
        thinks = {"VIGIL_MIND__ENABLED": "true", "VIGIL_AUTONOMY__ENABLED": "true"}
        environment = {"NATS_URL": broker.url, "VIGIL_PORT": str(self.port), **thinks}
        self.processes = Processes(home, environment)
        self.said: list[tuple[Conversation, str]] = []
        """(session, effect) of everything that goes over the channel."""
        self.taken: Counter[str] = Counter()
        """How often the receiver took each message."""
        receiver.choose = self._choose

    def _choose(self, request: Request, before: int) -> Behaviour:
        text = msgspec.json.decode(verified(request))["text"]
        if text == GONE or (text == MOVED and before == 0):
            return status(410, "Gone")
        if text == BUSY_ONCE and before == 0:
            return status(503, "Busy")
        self.taken[request.id] += 1
        return OK

    async def say(self, text: str = "hello") -> tuple[Conversation, str]:
        """Decide a message that goes over the channel, in a session of its own."""
        talk = conversation(self.bus, f"t{len(self.said)}")
        await talk.user()
        send = talk.send(channel="ops", is_autonomous=True)
        otherwise = ("spare",) if text == MOVED else ()
        payload = msgspec.structs.replace(send.payload, text=text, otherwise=otherwise)
        send = msgspec.structs.replace(send, payload=payload)
        await talk.turn(send)
        self.said.append((talk, send.id))
        return self.said[-1]

    async def settled(self) -> None:
        """Wait until every message has its receipt and nothing is in hand."""
        for talk, effect in self.said:
            await closed(self.bus, talk.key, effect, within_s=60)
        await no_orders_left(self.bus, within_s=60)
        await all_acked(self.bus, within_s=60)

    async def check(self, *, is_idempotent: bool) -> None:
        """Compare the log with what the receiver knows."""
        outcomes: Counter[str] = Counter()
        for talk, effect in self.said:
            assert await talk.said_ids() == [effect]
            ways = [order.channel for order in await orders(self.bus, talk.key, effect)]
            assert ways in (["ops"], ["ops", "spare"])
            (receipt,) = await receipts(self.bus, talk.key, effect)
            outcomes[receipt.outcome] += 1
            taken = self.taken[effect]
            assert taken <= 1 or is_idempotent, f"{effect} was taken {taken} times"
            assert taken >= 1 or receipt.outcome != "delivered"
            assert taken == 0 or receipt.outcome != "failed"
            assert receipt.outcome != "ambiguous" or not is_idempotent
        for effect, bodies in self.receiver.bodies.items():
            assert len(bodies) == 1, f"{effect} came with different bodies"
        dead = {letter.effect_id for letter in await dead_letters(self.bus)}
        assert len(dead) == outcomes["failed"] + outcomes["ambiguous"]
        told = await self.bus.read("SYSTEM", [MIND.in_event("told.*")])
        assert len(told) == outcomes["failed"], "the mind is told once of what reached nobody"
        assert not self.processes.faults()
        print(f"\n{'idempotent' if is_idempotent else 'not idempotent'}: {dict(outcomes)}")


@contextlib.asynccontextmanager
async def running_world(home: Path, *, is_idempotent: bool) -> AsyncIterator[World]:
    settings = settings_of(home)
    ensure_home(settings)
    async with running_receiver() as receiver, running_broker(home) as broker:
        channel = channel_of(receiver, is_idempotent=is_idempotent)
        lines = [
            f"{name} = {msgspec.json.encode(value).decode()}" for name, value in channel.items()
        ]
        sections = [["[channels.ops]", *lines], ["[channels.spare]", *lines]]
        settings.file.write_text("\n".join(line for section in sections for line in section))
        bus = await broker.admin()
        world = World(home, broker, bus, receiver)
        try:
            yield world
        finally:
            await world.processes.stop()
            await bus.close()


def _prepared(world: World, point: str) -> Callable[[], Awaitable[None]]:
    """Return what says the message that brings delivery to `point`."""
    text = {
        "delivery.attempt.ended": BUSY_ONCE,
        "delivery.attempt.buried": GONE,
        "delivery.attempt.told": GONE,
        "delivery.dispatch.next": MOVED,
    }.get(point)

    async def prepare() -> None:
        await world.say(text or "hello")

    return prepare


async def _kill_at_each_step(home: Path, *, is_idempotent: bool, times: int) -> None:
    async with running_world(home, is_idempotent=is_idempotent) as world:
        steps = [
            Step(point=point, prepare=_prepared(world, point))
            for _ in range(times)
            for point in CARRYING
        ]
        world.processes.start("delivery", steps)
        await world.processes.plans_over(within_s=60.0 + 25.0 * len(steps))
        await world.settled()
        await world.check(is_idempotent=is_idempotent)
        crashed = [e.crash_at.partition(":")[0] for e in world.processes.exits if e.is_crash]
        assert sorted(crashed) == sorted(CARRYING * times)


async def test_killed_at_each_step_of_a_message_on_a_channel(tmp_path: Path, is_long: bool) -> None:
    """S-10, D-2, X-5: at least once with one id and body, or at most once and else ambiguous."""
    times = 5 if is_long else 1
    async with asyncio.TaskGroup() as group:
        for name, is_idempotent in (("once", False), ("again", True)):
            work = _kill_at_each_step(tmp_path / name, is_idempotent=is_idempotent, times=times)
            group.create_task(work)


# ---------------------------------------------------------------- requeue


async def _until_done(ask: Callable[[], Awaitable[str]]) -> None:
    """Ask again until it's done, as a person would."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(VigilError, AssertionError, httpx2.HTTPError):
                if await ask() == "done":
                    return
            await asyncio.sleep(0.2)


async def test_killed_after_the_new_order_and_before_the_answer(tmp_path: Path) -> None:
    """S-10, X-5: whoever asks again is told that it is done; there is one new order."""
    async with running_world(tmp_path, is_idempotent=True) as world:
        talk, effect = await world.say(GONE)
        world.processes.start("delivery", [Step(point="delivery.requeue.after_dispatch")])
        (letter,) = await died(world.bus)
        seed = credentials.load(world.home / "nkeys", "gateway")
        gateway = await Bus.connect(world.broker.url, role="gateway", seed=seed)

        async def ask() -> str:
            return (await wish(gateway, letter)).outcome

        await _until_done(ask)
        await world.processes.plans_over(within_s=60)
        await gateway.close()
        await closed(world.bus, talk.key, effect, times=2, within_s=60)
        await no_orders_left(world.bus, within_s=60)
        assert [o.requeued_by for o in await orders(world.bus, talk.key, effect)] == [None, "ann"]
        assert [e.crash_at for e in world.processes.exits if e.is_crash] == [
            "delivery.requeue.after_dispatch:1"
        ]


async def test_killed_after_the_copy_and_before_the_end(tmp_path: Path) -> None:
    """S-10, X-5: the letter is still open; whoever asks again ends it, and there is one copy."""
    async with running_world(tmp_path, is_idempotent=True) as world:
        key = SessionKey("ann", "vigil", "t1")
        now = datetime.now(UTC)
        event = UserMessage(
            id="e1", session_key=str(key), created_at=now, payload=UserMessagePayload(text="hi")
        )
        letter = DeadLetter(
            id="SESSIONS-9", service="cortex", stream="SESSIONS", subject=key.in_user, seq=9,
            cause="tried too often", data=encode(event), at=now,
        )  # fmt: skip
        await world.bus.publish(key.dead("cortex"), encode(letter))
        token = await tokens.create(world.bus, user="ann", now=now)
        world.processes.start("gateway", [Step(point="gateway.requeue.before_end")])
        answers: list[Any] = []

        async def ask() -> str:
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{world.port}") as client:
                answer = await client.post(
                    "/api/dead/SESSIONS-9/requeue",
                    headers={"Authorization": f"Bearer {token}"},
                )
            answers.append(answer.json())
            return "done" if answer.status_code == 200 else ""

        await _until_done(ask)
        await world.processes.plans_over(within_s=60)
        (copy,) = await world.bus.read("SESSIONS", [key.in_user])
        assert msgspec.json.decode(copy.data)["id"] == answers[-1]["event_id"]
        assert len(await world.bus.read("DEAD", [key.dead("ended")])) == 1
        assert [e.crash_at for e in world.processes.exits if e.is_crash] == [
            "gateway.requeue.before_end:1"
        ]
