"""Claims under races, answers that never come, and a broker that refuses."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from services.delivery import decide
from services.delivery.claims import Claims
from services.delivery.config import DeliveryLimits
from services.delivery.handlers import Speech
from tests.support.delivery import STREAM, Conversation, conversation
from tests.support.examples import repeats
from tests.support.stack import Stack
from vigil.backoff import Backoff
from vigil.bus.bus import Ack, Bus, BusError, Message
from vigil.clock import SystemClock
from vigil.contracts import SendMessage
from vigil.errors import OutcomeUnknown, Unavailable
from vigil.observe import trace
from vigil.subjects import SessionKey
from vigil.worker.effects import InHand

LIMITS = DeliveryLimits(after_failure=Backoff(0.01, 0.01), failures_max=3)


async def _no_wait(key: SessionKey, effect_id: str) -> decide.Tail:
    raise AssertionError(f"nothing to wait for: {effect_id}")


def _claims(bus: Any, limits: DeliveryLimits = LIMITS) -> Claims:
    return Claims(cast(Bus, bus), SystemClock(), limits)


class FaultyBus:
    """A bus whose publishes fail as told: before they are sent, or after they are stored."""

    def __init__(self, bus: Bus, *faults: Exception | None, is_stored: bool = True) -> None:
        self._bus = bus
        self._faults = list(faults)
        self._is_stored = is_stored
        self.publishes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    async def publish(self, subject: str, *args: Any, **kwargs: Any) -> Ack:
        self.publishes += 1
        fault = self._faults.pop(0) if self._faults else None
        if fault is None or self._is_stored:
            ack = await self._bus.publish(subject, *args, **kwargs)
        if fault is not None:
            raise fault
        return ack


async def _committed(talk: Conversation, **how: Any) -> tuple[SendMessage, Message]:
    send = talk.send(**how)
    return send, await talk.message(await talk.turn(send))


@pytest.mark.repeated
async def test_of_fifty_racing_claims_one_is_said(bare: Stack) -> None:
    """S-5: fifty replicas with the same send."""
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    buses = await asyncio.gather(*(bare.bus("delivery") for _ in range(repeats(50, fast=20))))
    for _ in range(3):
        send, turn = await _committed(talk)

        async def wait(key: SessionKey, effect_id: str) -> decide.Tail:
            return decide.Tail(effect_id)

        tails = await asyncio.gather(
            *(_claims(bus).settle(talk.key, send, turn, wait) for bus in buses)
        )
        assert len({tail.seq for tail in tails}) == 1
    assert len(await talk.said()) == 3
    assert not any(bus.violations for bus in buses)


@pytest.mark.repeated
async def test_racing_claims_and_a_person_who_speaks(bare: Stack) -> None:
    """S-6: said before the person spoke, or void; never both, never neither."""
    bus = await bare.bus("admin")
    replicas = [_claims(await bare.bus("delivery")) for _ in range(4)]
    for number in range(repeats(60, fast=24)):
        talk = conversation(bus, f"t{number}")
        await talk.user()
        send, turn = await _committed(talk, is_autonomous=True)
        settling = [
            asyncio.ensure_future(replica.settle(talk.key, send, turn, _no_wait))
            for replica in replicas
        ]
        if number % 2:
            await asyncio.sleep(0.0002 * (number % 8))
        await asyncio.gather(talk.user("stop"), *settling)
        transcript = await talk.transcript()
        receipts = [receipt.outcome for receipt in await talk.receipts()]
        assert (transcript, receipts) in (
            (["user", send.id, "user"], []),
            (["user", "user"], ["void"]),
        )


async def test_an_unknown_outcome_is_read_back(bare: Stack) -> None:
    """S-5: stored without an answer is said, and not again."""
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    bus = FaultyBus(await bare.bus("delivery"), OutcomeUnknown("no answer"))
    claims = _claims(bus)
    first, turn = await _committed(talk)
    await claims.settle(talk.key, first, turn, _no_wait)
    assert bus.publishes == 1
    second, turn = await _committed(talk)
    await claims.settle(talk.key, second, turn, _no_wait)
    assert await talk.said_ids() == [first.id, second.id]


async def test_a_claim_that_never_arrived_is_repeated(bare: Stack) -> None:
    """S-10: read back first, then claimed again."""
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    lost = OutcomeUnknown("no answer")
    bus = FaultyBus(await bare.bus("delivery"), lost, lost, is_stored=False)
    send, turn = await _committed(talk)
    await _claims(bus).settle(talk.key, send, turn, _no_wait)
    assert bus.publishes == 3
    assert await talk.said_ids() == [send.id]


async def test_a_receipt_without_an_answer_is_written_once(bare: Stack) -> None:
    """S-6: void stays void when its receipt's answer is lost."""
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    send, turn = await _committed(talk, is_autonomous=True)
    await talk.user("wait")
    # The claim is refused before its answer is lost, so the second fault strikes the receipt.
    bus = FaultyBus(await bare.bus("delivery"), *[OutcomeUnknown("no answer")] * 2)
    claims = _claims(bus)
    await claims.settle(talk.key, send, turn, _no_wait)
    assert len(await talk.receipts()) == 1
    assert await talk.said() == []


async def test_an_absent_broker_ends_the_attempt(bare: Stack) -> None:
    """S-10: bounded attempts; the turn is given back."""
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    send, turn = await _committed(talk)
    away = [Unavailable("away")] * 9
    bus = FaultyBus(await bare.bus("delivery"), *away, is_stored=False)
    with pytest.raises(Unavailable):
        await _claims(bus).settle(talk.key, send, turn, _no_wait)
    assert bus.publishes == LIMITS.failures_max + 1


async def test_a_repeat_is_looked_up_before_it_is_claimed(bare: Stack) -> None:
    """S-10: a send that was given up stays closed when its turn comes again."""
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    send, turn = await _committed(talk)
    claims = _claims(await bare.bus("delivery"))
    await claims.close(talk.key, send.id, decide.Close("failed", "refused"), trace.new())
    repeat = await talk.message(turn.seq, delivered=2)
    await claims.settle(talk.key, send, repeat, _no_wait)
    assert await talk.said() == []


async def test_a_long_transcript_is_read_in_pages(bare: Stack) -> None:
    """S-6: own send found behind many user messages; the reading stays bounded."""
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    send, turn = await _committed(talk)
    for number in range(12):
        await talk.user(str(number))
    limits = DeliveryLimits(page_messages=5)
    bus = await bare.bus("delivery")
    for _ in range(2):
        await _claims(bus, limits).settle(talk.key, send, turn, _no_wait)
    assert await talk.said_ids() == [send.id]
    assert (await talk.transcript())[-1] == send.id


async def test_memory_of_sessions_is_bounded(bare: Stack) -> None:
    """S-10: a session that was forgotten is looked up in the log."""
    bus = await bare.bus("admin")
    claims = _claims(await bare.bus("delivery"), DeliveryLimits(tails_max=2))
    talks = [conversation(bus, f"t{n}") for n in range(4)]
    for _ in range(2):
        for talk in talks:
            await talk.user()
            send, turn = await _committed(talk)

            async def wait(key: SessionKey, effect_id: str) -> decide.Tail:
                tail = await claims.find(key, effect_id)
                assert tail is not None
                return tail

            await claims.settle(talk.key, send, turn, wait)
            assert len(claims._tails) <= 2
    for talk in talks:
        assert len(await talk.said()) == 2


async def test_a_refused_send_is_given_up_after_some_tries(bare: Stack) -> None:
    """S-10: no retry storm: backoff, then a failed receipt, and no second one."""
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    send, turn = await _committed(talk)
    bus = FaultyBus(await bare.bus("delivery"), BusError(10054, "too big"), is_stored=False)
    speech = Speech(cast(Bus, bus), SystemClock(), LIMITS)
    in_hand = InHand(talk.key, turn, None)
    with pytest.raises(BusError):
        await speech.carry_out(in_hand, send)
    await speech.give_up(in_hand, send, "too big")
    await speech.give_up(in_hand, send, "once more")
    (receipt,) = await talk.receipts()
    assert receipt.outcome == "failed"
    assert "too big" in receipt.reason
    assert await talk.bus.get_last(STREAM, talk.key.out_said(send.id)) is None
