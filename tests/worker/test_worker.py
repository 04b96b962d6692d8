"""The worker at each of its fault points, with a real broker: nothing lost, nothing stuck.

What a service adds is played here by `Lines`, which writes down what it was asked to carry out.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
import pytest

from tests.support.delivery import Conversation, conversation, held, until
from tests.support.stack import Stack
from vigil import topology
from vigil.backoff import Backoff
from vigil.bus.bus import Bus, BusError, Message
from vigil.clock import SystemClock
from vigil.contracts import SendMessage, decode_dead_letter, decode_turn
from vigil.errors import InvalidInput, Unavailable
from vigil.observe import trace
from vigil.observe.metrics import Metrics
from vigil.runtime import Context
from vigil.subjects import SessionKey
from vigil.worker import requeue, turns
from vigil.worker.effects import InHand, Tasks, WorkLimits
from vigil.worker.outcomes import Overtaken, Terminal, TryLater
from vigil.worker.requeue import RequeueQuestion
from vigil.worker.turns import session_of
from vigil.worker.worker import Worker

QUICK = WorkLimits(
    in_hand_max=100, give_back_delay_s=0.05, after_refusal=Backoff(0.02, 0.05),
    refusals_max=3, stop_grace_s=5.0,
)  # fmt: skip


class Lines:
    """Carries out sends by writing down their texts; fails as told before."""

    service = "delivery"
    name = "delivery.turn"
    letter = "s"
    tags = (b'"send_message"',)

    def __init__(self) -> None:
        self.done: list[str] = []
        self.delivered: dict[str, int] = {}
        self.given_up: list[str] = []
        self.faults: dict[str, list[Exception]] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self.begun: dict[str, asyncio.Event] = {}
        self.beside: dict[str, list[Callable[[], Any]]] = {}
        self.give_up_faults: list[Exception] = []

    def lane_of(self, message: Message) -> str:
        return session_of(message.subject)

    def wanted(self, message: Message) -> list[SendMessage]:
        sends = [e for e in decode_turn(message.data).effects if isinstance(e, SendMessage)]
        turns.read_turn(message.subject, message.data, lambda _: sends)
        return sends

    async def carry_out(self, turn: InHand, effect: SendMessage) -> Tasks:
        text = effect.payload.text
        if begun := self.begun.get(text):
            begun.set()
        if gate := self.gates.get(text):
            await gate.wait()
            if turn.is_overtaken:
                raise Overtaken(text)
        if faults := self.faults.get(text):
            raise faults.pop(0)
        if beside := self.beside.get(text):
            return [asyncio.create_task(beside.pop(0)())]
        self.done.append(text)
        self.delivered[text] = turn.message.delivered
        return []

    async def give_up(self, turn: InHand, effect: SendMessage, cause: str) -> None:
        if self.give_up_faults:
            raise self.give_up_faults.pop(0)
        self.given_up.append(effect.payload.text)


class Town:
    """A broker, a conversation, and a worker that may be started and stopped."""

    def __init__(self, stack: Stack, bus: Bus, talk: Conversation) -> None:
        self.stack = stack
        self.bus = bus
        self.talk = talk
        self.lines = Lines()
        self.gone: set[SessionKey] = set()
        self.worker: Worker[SendMessage]

    def make(self, bus: Bus, limits: WorkLimits = QUICK, **more: Any) -> Worker[SendMessage]:
        context = Context(
            service="delivery", settings=self.stack.settings, bus=bus, clock=SystemClock(),
            new_id=lambda: "id", ready=asyncio.Event(), instance="one",
            metrics=Metrics("delivery"),
        )  # fmt: skip
        return Worker(context, self.lines, limits, self.gone.__contains__, **more)

    @contextlib.asynccontextmanager
    async def working(self, limits: WorkLimits = QUICK, **more: Any) -> AsyncIterator[None]:
        """Run a worker, and stop it as SIGTERM would."""
        bus = await self.stack.bus("delivery")
        self.worker = self.make(bus, limits, **more)
        async with self.worker.consuming(topology.DELIVERY_TURNS) as loops:
            task = asyncio.create_task(self.worker.run(loops))
            try:
                yield
            finally:
                task.cancel()
                await asyncio.wait({task})
        if not task.cancelled():
            task.result()

    async def turn(self, *texts: str, talk: Any = None) -> int:
        """Store a turn that says `texts`."""
        talk = talk or self.talk
        return int(await talk.turn(*self._sends(talk, texts)))

    async def old_turn(self, *texts: str, header: str | None) -> None:
        """Store it as older versions did."""
        await self.talk.old_turn(*self._sends(self.talk, texts), header=header)

    def _sends(self, talk: Any, texts: Sequence[str]) -> list[SendMessage]:
        return [_with_text(talk.send(), text) for text in texts]

    async def all_acked(self) -> None:
        async def is_idle() -> bool:
            info = await self.bus.api("CONSUMER.INFO.SESSIONS.delivery-turns", {})
            return bool(info["num_pending"] == 0 and info["num_ack_pending"] == 0)

        await until(is_idle, what="all acknowledged")

    async def letters(self) -> list[str]:
        found = await self.bus.read("DEAD", ["dead.>"])
        return [decode_dead_letter(message.data).cause for message in found]


def _with_text(send: SendMessage, text: str) -> SendMessage:
    return msgspec.structs.replace(send, payload=msgspec.structs.replace(send.payload, text=text))


def _holds(condition: Callable[[], bool]) -> Callable[[], Any]:
    async def ask() -> bool:
        return condition()

    return ask


@pytest.fixture
async def town(bare: Stack) -> Town:
    bus = await bare.bus("admin")
    talk = conversation(bus)
    await talk.user()
    return Town(bare, bus, talk)


async def test_what_is_for_others_is_acknowledged_and_the_rest_done_in_order(town: Town) -> None:
    """S-10: also of turns of older versions, which say it in a header, or not at all; in one order
    with those that name their letters."""
    await town.old_turn("not ours", header="t")
    await town.old_turn("a", header="s")
    await town.turn("b")
    await town.old_turn("c", header=None)
    async with town.working():
        await town.all_acked()
    assert town.lines.done == ["a", "b", "c"]


async def test_a_turn_nobody_can_read_is_a_dead_letter(town: Town) -> None:
    """RELIABILITY S4: with the cause; what comes after it goes on."""
    key = town.talk.key
    await town.bus.publish(key.turn, b"not a turn", {"Vigil-Effects": "s"})
    await town.turn("after")
    async with town.working():
        await town.all_acked()
    assert len(await town.letters()) == 1
    assert town.lines.done == ["after"]


async def test_a_subject_that_names_no_session_gets_into_no_other(town: Town) -> None:
    """RELIABILITY 0.9: the broker stores a literal `*`; its dead letter would be everybody's."""
    await town.bus.publish("session.vigil.*.t1.turn", b"x", {"Vigil-Effects": "s"})
    async with town.working():
        await town.all_acked()
    assert await town.letters() == []


async def test_an_effect_that_can_t_be_used_keeps_no_other_from_being_done(town: Town) -> None:
    """S-10: the dead letter tells of the first."""
    town.lines.faults = {"a": [InvalidInput("text", "no")], "b": [Terminal("never")]}
    await town.turn("a", "b", "c")
    async with town.working():
        await town.all_acked()
    assert town.lines.done == ["c"]
    assert await town.letters() == ["text: no"]


async def _working_on(town: Town, *texts: str) -> None:
    """Let the first of `texts` go on once all of them are in its lane."""
    await town.lines.begun[texts[0]].wait()
    lanes, lane = town.worker._lanes, town.talk.key.root
    await until(_holds(lambda: lanes.size_of(lane) == len(texts)))
    town.lines.gates[texts[0]].set()


async def test_a_turn_that_can_t_be_done_now_goes_back_with_those_behind_it(town: Town) -> None:
    """S-10: the order of a session holds; another session doesn't wait."""
    other = conversation(town.bus, "t2")
    await other.user()
    town.lines.gates, town.lines.begun = {"a": asyncio.Event()}, {"a": asyncio.Event()}
    town.lines.faults = {"a": [Unavailable("not now")]}
    for text in ("a", "b", "c"):
        await town.turn(text)
    await town.turn("elsewhere", talk=other)
    async with town.working():
        await _working_on(town, "a", "b", "c")
        await town.all_acked()
    assert town.lines.delivered == {"a": 2, "b": 2, "c": 2, "elsewhere": 1}


async def test_what_is_to_come_later_holds_up_nobody(town: Town) -> None:
    """S-12: nothing is wrong with it, and what is in order is done."""
    town.lines.gates, town.lines.begun = {"a": asyncio.Event()}, {"a": asyncio.Event()}
    town.lines.faults = {"a": [TryLater(0.05)]}
    await town.turn("a")
    await town.turn("b")
    async with town.working():
        await _working_on(town, "a", "b")
        await town.all_acked()
    assert town.lines.delivered == {"a": 2, "b": 1}


async def test_what_the_broker_refuses_is_given_up_after_some_tries(town: Town) -> None:
    """S-10: whoever waits is told, once that can be stored; then a dead letter."""
    town.lines.faults = {"a": [BusError(10054, "too big") for _ in range(9)]}
    town.lines.give_up_faults = [Unavailable("no broker")]
    await town.turn("a")
    await town.turn("b")
    async with town.working():
        await town.all_acked()
    assert len(town.lines.faults["a"]) == 9 - QUICK.refusals_max - 1  # type: ignore[operator]
    assert town.lines.given_up == ["a"]
    assert "too big" in (await town.letters())[0]
    assert town.lines.done == ["b"]


async def test_a_turn_that_waits_lets_an_older_one_go_first(town: Town) -> None:
    """S-10: redelivered, the older one comes behind it."""
    town.lines.gates = {"newer": asyncio.Event()}
    town.lines.begun = {"newer": asyncio.Event()}
    older = await town.turn("older")
    async with contextlib.AsyncExitStack() as stack:
        async with held(town.stack, town.talk, older, delay_s=0):
            await town.turn("newer")
            await stack.enter_async_context(town.working())
            await town.lines.begun["newer"].wait()
        lanes = town.worker._lanes
        await until(_holds(lambda: lanes.has_older(town.talk.key.root, older + 1)))
        town.lines.gates.pop("newer").set()
        await town.all_acked()
    assert town.lines.done == ["older", "newer"]


async def test_nothing_is_done_in_what_is_being_deleted(town: Town) -> None:
    """M-9, X-8: neither what comes, nor the rest of what was begun."""
    town.lines.gates = {"a": asyncio.Event()}
    town.lines.begun = {"a": asyncio.Event()}
    await town.turn("a", "b")
    await town.turn("c")
    async with town.working():
        await town.lines.begun["a"].wait()
        town.gone.add(town.talk.key)
        town.lines.gates["a"].set()
        await town.all_acked()
    assert town.lines.done == ["a"]
    assert await town.letters() == []


async def test_a_stop_finishes_what_was_begun_and_gives_back_the_rest(town: Town) -> None:
    """X-5: and the next replica has it at once, not after the ack wait."""
    town.lines.gates = {"a": asyncio.Event()}
    town.lines.begun = {"a": asyncio.Event()}
    await town.turn("a")
    await town.turn("b")
    async with town.working():
        await town.lines.begun["a"].wait()
        asyncio.get_running_loop().call_later(0.05, town.lines.gates["a"].set)
    assert town.lines.done == ["a"]
    async with asyncio.timeout(topology.DELIVERY_TURNS.ack_wait_s / 2), town.working():
        await town.all_acked()
    assert town.lines.done == ["a", "b"]


async def test_a_stop_cuts_off_what_takes_too_long(town: Town) -> None:
    """X-5: given back, and done by the next replica."""
    town.lines.gates = {"a": asyncio.Event()}
    town.lines.begun = {"a": asyncio.Event()}
    await town.turn("a")
    limits = WorkLimits(in_hand_max=10, stop_grace_s=0.05)
    async with town.working(limits):
        await town.lines.begun["a"].wait()
    assert town.lines.done == []
    town.lines.gates["a"].set()
    async with asyncio.timeout(topology.DELIVERY_TURNS.ack_wait_s / 2), town.working():
        await town.all_acked()
    assert town.lines.done == ["a"]


async def test_what_goes_on_beside_holds_its_turn_and_not_its_lane(town: Town) -> None:
    """X-1: acknowledged when it has ended; a fault of it counts as one of the turn."""
    go_on, ends = asyncio.Event(), list[str]()

    async def fail() -> None:
        await go_on.wait()
        raise Unavailable("another replica is at it")

    async def end() -> None:
        ends.append("ended")

    town.lines.beside = {"a": [fail, end]}
    await town.turn("a")
    await town.turn("b")
    async with town.working():
        await until(_holds(lambda: town.lines.done == ["b"]))
        info = await town.bus.api("CONSUMER.INFO.SESSIONS.delivery-turns", {})
        assert info["num_ack_pending"] >= 1
        go_on.set()
        await town.all_acked()
    assert ends == ["ended"]


async def test_at_a_stop_what_goes_on_beside_is_ended_and_its_turn_given_back(town: Town) -> None:
    """X-5: cancelled, so that nobody knows; another replica finds out."""
    started: list[asyncio.Task[None]] = []

    async def hang() -> None:
        task = asyncio.current_task()
        assert task is not None
        started.append(task)
        await asyncio.Event().wait()

    async def end_beside() -> None:
        for task in started:
            task.cancel()

    town.lines.beside = {"a": [hang]}
    await town.turn("a")
    async with town.working(end_beside=end_beside):
        await until(_holds(lambda: bool(started)))
    async with asyncio.timeout(topology.DELIVERY_TURNS.ack_wait_s / 2), town.working():
        await town.all_acked()
    assert town.lines.done == ["a"]


async def test_what_is_held_comes_to_no_other_replica(town: Town) -> None:
    """X-1: for as long as it's told so; counted in deliveries, not in time."""
    town.lines.gates = {"a": asyncio.Event()}
    town.lines.begun = {"a": asyncio.Event()}
    bus = await town.stack.bus("delivery")
    told, said = 0, bus.in_progress

    async def in_progress(message: Message) -> None:
        nonlocal told
        told += 1
        if told == 1:
            raise Unavailable("no broker")
        await said(message)

    bus.in_progress = in_progress  # type: ignore[method-assign]
    worker = town.make(bus, WorkLimits(in_hand_max=10, hold_every_s=0.01, stop_grace_s=1.0))
    await town.turn("a")
    async with worker.consuming(topology.DELIVERY_TURNS) as loops:
        task = asyncio.create_task(worker.run(loops))
        await town.lines.begun["a"].wait()
        await until(_holds(lambda: told > 3))
        town.lines.gates["a"].set()
        await town.all_acked()
        count = told
        task.cancel()
        await asyncio.wait({task})
    assert count > 3
    assert len(worker._hold) == 0


async def test_a_lane_that_is_full_gives_back_what_comes(town: Town) -> None:
    """S-12: one slow receiver doesn't fill the hands of a replica."""
    town.lines.gates = {"a": asyncio.Event()}
    limits = WorkLimits(
        in_hand_max=10, lane_max=2, overflow_delay_s=0.05, abreast=2, stop_grace_s=1.0
    )
    for text in ("a", "b", "c", "d"):
        await town.turn(text)
    async with town.working(limits):
        await until(_holds(lambda: set(town.lines.done) == {"b", "c", "d"}))
        town.lines.gates["a"].set()
        await town.all_acked()
    assert len(town.lines.done) == 4


async def test_a_dead_letter_is_tried_again_when_a_person_asks(town: Town) -> None:
    """S-10: done, refused with the reason, or later; what is gone is gone."""
    town.lines.faults = {"a": [InvalidInput("text", "no")] * 2 + [Terminal("never")]}
    seq = await town.turn("a")
    subject = town.talk.key.turn_for("s")
    question = RequeueQuestion(letter_id="l", stream="SESSIONS", seq=seq, subject=subject, by="ann")
    async with town.working():
        await town.all_acked()
        bus = await town.stack.bus("delivery")
        async with requeue.answering(bus, "delivery", town.worker.again):

            async def ask(asked: RequeueQuestion) -> tuple[str, str]:
                msg = await town.bus.ask(
                    requeue.subject_of("delivery"), requeue.encode(asked), timeout=5.0
                )
                reply = requeue.decode_reply(msg.data)
                return reply.outcome, reply.reason

            assert await ask(question) == ("refused", "still can't be read: text: no")
            assert await ask(question) == ("refused", "never")
            town.lines.faults = {"a": [TryLater(1.0, "no room")]}
            assert await ask(question) == ("later", "no room")
            town.lines.faults = {"a": [ZeroDivisionError()]}
            assert await ask(question) == ("refused", requeue.FAULT)
            assert await ask(question) == ("done", "")
            for gone in (
                RequeueQuestion(
                    letter_id="l", stream="SESSIONS", seq=seq + 9, subject=subject, by="ann"
                ),
                RequeueQuestion(letter_id="l", stream="SYSTEM", seq=seq, subject=subject, by="ann"),
                RequeueQuestion(letter_id="l", stream="SESSIONS", seq=1, subject=subject, by="ann"),
            ):
                assert await ask(gone) == ("refused", requeue.GONE.reason)
    assert town.lines.done == ["a"]


async def test_the_trace_of_a_turn_goes_on_in_what_is_done(town: Town) -> None:
    """X-7: whatever lane or task it is done in."""
    seen: list[str | None] = []
    carry_out = town.lines.carry_out

    async def noting(turn: InHand, effect: SendMessage) -> Tasks:
        seen.append(trace.current.get())
        return await carry_out(turn, effect)

    town.lines.carry_out = noting  # type: ignore[method-assign]
    seq = await town.turn("a")
    async with town.working():
        await town.all_acked()
    stored = await town.bus.get("SESSIONS", seq)
    assert stored is not None
    assert seen == [trace.passed_on(stored.headers[trace.HEADER])]
