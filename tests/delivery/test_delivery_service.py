"""Delivery against the real broker: said once, in order, or void."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from tests.support.channels import closed, died
from tests.support.delivery import (
    STREAM,
    Conversation,
    all_acked,
    conversation,
    has_unacked,
    held,
    redeliver,
    until,
)
from tests.support.examples import repeats
from tests.support.stack import Stack
from vigil.bus.bus import Bus, Message
from vigil.contracts import decode_dead_letter
from vigil.observe import trace


async def test_a_send_is_said_with_all_its_facts(bare: Stack) -> None:
    """S-5, S-10: the claim is the message itself, in the trace of its turn."""
    await bare.start("delivery")
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    send = talk.send()
    turn_seq = await talk.turn(send)
    await talk.settled(send)

    (said,) = await talk.said()
    assert said.id == send.id
    assert said.text == send.payload.text
    assert said.caused_by == send.payload.caused_by
    assert said.turn_seq == turn_seq
    assert said.session_key == str(talk.key)
    assert not said.is_autonomous
    turn = await talk.message(turn_seq)
    claim = await talk.bus.get_last(STREAM, talk.key.out_said(send.id))
    assert claim is not None
    assert claim.headers[trace.HEADER][:35] == turn.headers[trace.HEADER][:35]
    assert claim.headers[trace.HEADER] != turn.headers[trace.HEADER]
    await all_acked(talk.bus)
    assert not bare.contexts["delivery"].bus.violations


@pytest.mark.parametrize("header", ["", "t", None])
async def test_turns_that_say_nothing_are_acknowledged(bare: Stack, header: str | None) -> None:
    """S-5: an older writer's turn without sends costs one acknowledgement."""
    await bare.start("delivery")
    talk = conversation(await bare.bus("admin"))
    await talk.old_turn(header=header)
    await all_acked(talk.bus)
    assert await talk.transcript() == []


async def test_a_turn_without_header_is_looked_into(bare: Stack) -> None:
    """S-5: the letters are a hint; an older writer's turn is said too."""
    await bare.start("delivery")
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    send = talk.send()
    await talk.old_turn(send, header=None)
    await talk.settled(send)
    assert await talk.said_ids() == [send.id]


@pytest.mark.parametrize("letters", ["", "t", "mx"])
async def test_what_is_for_others_is_not_even_brought(bare: Stack, letters: str) -> None:
    """ARCHITECTURE 4: the broker counts no delivery, and nothing waits."""
    await bare.start("delivery")
    talk = conversation(await bare.bus("admin"))
    await talk.turn(letters=letters)
    last = await talk.turn(talk.send(), letters=f"s{letters}")
    floor: dict[str, Any] = {}

    async def is_acked() -> bool:
        info = await talk.bus.api("CONSUMER.INFO.SESSIONS.delivery-turns", {})
        floor.update(info["ack_floor"])
        return bool(floor["stream_seq"] >= last)

    await until(is_acked, within_s=20, what="the turn acknowledged")
    assert (floor["consumer_seq"], floor["stream_seq"]) == (1, last)


async def test_a_redelivered_turn_is_not_said_twice(bare: Stack) -> None:
    """S-5: an effect whose key was executed is skipped, however late the repeat."""
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    sends = [talk.send() for _ in range(3)]
    turns = [await talk.turn(send) for send in sends]
    for replica in ("delivery", "delivery:2"):
        await bare.start(replica)
        await talk.settled(*sends)
        await all_acked(talk.bus)
        await bare.stop(replica)
        await redeliver(talk.bus, turns)
    assert await talk.said_ids() == [send.id for send in sends]


async def test_a_repeat_to_the_same_replica_is_not_said_twice(bare: Stack) -> None:
    """S-5: with what the replica remembers of the session, too."""
    await bare.start("delivery")
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    sends = [talk.send() for _ in range(3)]
    for send in sends:
        await talk.turn(send)
    await talk.settled(*sends)
    # The same turns stored once more: first deliveries, so nothing marks them as repeats.
    for send in sends:
        await talk.turn(send)
    await all_acked(talk.bus)
    assert await talk.said_ids() == [send.id for send in sends]


async def test_an_autonomous_send_is_void_after_a_user_message(bare: Stack) -> None:
    """S-6: void, recorded as such, and for good."""
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    follow_up = talk.send(is_autonomous=True)
    turn = await talk.turn(follow_up)
    await talk.user("wait")
    await bare.start("delivery")
    await talk.settled(follow_up)
    await all_acked(talk.bus)

    for replica in ("delivery:2", "delivery:3"):
        await redeliver(talk.bus, [turn])
        await bare.start(replica)
        await all_acked(talk.bus)
    (receipt,) = await talk.receipts()
    assert (receipt.effect_id, receipt.outcome) == (follow_up.id, "void")
    assert await talk.transcript() == ["user", "user"]


async def test_an_autonomous_send_before_the_user_message_stays(bare: Stack) -> None:
    """S-6: what was said before the person spoke stays, in its place."""
    await bare.start("delivery")
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    follow_up = talk.send(is_autonomous=True)
    turn = await talk.turn(follow_up)
    await talk.settled(follow_up)
    await talk.user("thanks")
    await bare.stop("delivery")
    await redeliver(talk.bus, [turn])
    await bare.start("delivery:2")
    await all_acked(talk.bus)
    assert await talk.transcript() == ["user", follow_up.id, "user"]
    assert await talk.receipts() == []


async def test_a_direct_reply_is_said_after_a_newer_user_message(bare: Stack) -> None:
    """S-6: direct replies are never void, and come after what the person said meanwhile."""
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    reply = talk.send()
    await talk.turn(reply)
    await talk.user("and another thing")
    await bare.start("delivery")
    await talk.settled(reply)
    assert await talk.transcript() == ["user", "user", reply.id]
    assert await talk.receipts() == []


async def test_a_reply_said_late_does_not_hide_the_user_message(bare: Stack) -> None:
    """S-6: the claim of a direct reply after a newer user message is no fence for what follows."""
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    reply, follow_up = talk.send(), talk.send(is_autonomous=True)
    await talk.turn(reply)
    await talk.turn(follow_up)
    await talk.user("wait")
    await bare.start("delivery")
    await talk.settled(reply, follow_up)
    assert await talk.transcript() == ["user", "user", reply.id]
    assert [r.effect_id for r in await talk.receipts()] == [follow_up.id]


async def test_several_sends_of_one_turn_are_said_in_order(bare: Stack) -> None:
    """S-5, S-10: also after a void one."""
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    stale = talk.send(is_autonomous=True)
    await talk.turn(stale)
    await talk.user("hello?")
    sends = [talk.send() for _ in range(4)]
    await talk.turn(*sends)
    await bare.start("delivery")
    await talk.settled(stale, *sends)
    assert await talk.transcript() == ["user", "user", *[send.id for send in sends]]


async def test_a_send_waits_for_the_one_before_it(bare: Stack) -> None:
    """S-10: order holds when an earlier turn comes later; other sessions don't wait."""
    bus = await bare.bus("admin")
    talk, other = conversation(bus), conversation(bus, "other")
    await talk.user()
    first, second, third = talk.send(), talk.send(), talk.send()
    async with held(bare, talk, await talk.turn(first), delay_s=1):
        await talk.turn(second)
        await talk.turn(third)
        await bare.start("delivery")
        await other.user()
        meanwhile = other.send()
        await other.turn(meanwhile)
        await other.settled(meanwhile)
        assert await talk.said_ids() == []
    await talk.settled(first, second, third)
    assert await talk.said_ids() == [first.id, second.id, third.id]


async def test_a_predecessor_that_no_turn_holds_counts_as_closed(bare: Stack) -> None:
    """S-10: nothing waits for ever on a send that can never be said."""
    await bare.start("delivery")
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    talk.send()  # decided, but its turn is unreadable
    await talk.bus.publish(talk.key.turn, b"{not json", {"Vigil-Effects": "s"})
    send = talk.send()
    await talk.turn(send)
    await talk.settled(send, within_s=30)
    assert await talk.said_ids() == [send.id]


async def test_an_unreadable_turn_is_a_dead_letter(bare: Stack) -> None:
    """S-10, X-4: poison on the bus is kept with its cause, and the session goes on."""
    await bare.start("delivery")
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    poison = b'{"type": "nonsense", "v": 99}'
    seq = (await talk.bus.publish(talk.key.turn, poison, {"Vigil-Effects": "s"})).seq
    send = talk.send()
    await talk.turn(send)
    await talk.settled(send)
    await all_acked(talk.bus)
    (dead,) = await talk.bus.read("DEAD", [talk.key.dead("delivery")])
    letter = decode_dead_letter(dead.data)
    assert (letter.seq, letter.data, letter.service) == (seq, poison, "delivery")
    assert "version 99" in letter.cause
    assert not bare.contexts["delivery"].bus.violations


async def test_an_effect_id_that_is_no_token_is_a_dead_letter(bare: Stack) -> None:
    """S-2, X-4: no id from a record reaches a subject unchecked."""
    await bare.start("delivery")
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    send = talk.send()
    data = talk.encoded(send).replace(send.id.encode(), b"x.*.>")
    await talk.bus.publish(talk.key.turn, data, {"Vigil-Effects": "s"})
    await all_acked(talk.bus)
    assert await talk.transcript() == ["user"]
    assert len(await talk.bus.read("DEAD", [talk.key.dead("delivery")])) == 1


async def test_what_is_for_a_channel_that_is_no_more_is_said_here(bare: Stack) -> None:
    """S-10, D-2: the person reads it in order, and the failure is recorded and a dead letter."""
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    before, lost, after = talk.send(), talk.send(channel="pigeon"), talk.send()
    async with held(bare, talk, await talk.turn(before), delay_s=0.5):
        await talk.turn(lost)
        await talk.turn(after)
        await bare.start("delivery")
    await talk.settled(before, lost, after)
    assert await talk.said_ids() == [before.id, lost.id, after.id]
    receipt = await closed(talk.bus, talk.key, lost.id)
    assert (receipt.outcome, receipt.reason) == ("failed", "no channel named 'pigeon'")
    await all_acked(talk.bus)
    (letter,) = await died(talk.bus)
    assert letter.effect_id == lost.id


async def test_what_is_in_hand_at_the_end_is_given_back(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-10: what a replica that stops has not finished doesn't wait for ack_wait."""
    talk = conversation(await bare.bus("admin"))
    await talk.user()
    first, second = talk.send(), talk.send()
    async with held(bare, talk, await talk.turn(first), delay_s=0.1):
        await bare.start("delivery")
        given_back: list[int] = []
        bus = bare.contexts["delivery"].bus
        nak = bus.nak

        async def recording_nak(turn: Message, delay_s: float) -> None:
            given_back.append(turn.seq)
            await nak(turn, delay_s)

        monkeypatch.setattr(bus, "nak", recording_nak)
        seq = await talk.turn(second)
        await until(lambda: has_unacked(talk.bus, 2), what="both turns in hand")
        await bare.stop("delivery")
        assert given_back == [seq]
    await bare.start("delivery:2")
    await talk.settled(first, second)
    assert await talk.said_ids() == [first.id, second.id]


async def _commit(talk: Conversation, count: int) -> list[str]:
    """Commit `count` sends of a session, a user message before every third."""
    ids = []
    for number in range(count):
        if number % 3 == 0:
            await talk.user(str(number))
        send = talk.send()
        await talk.turn(send)
        ids.append(send.id)
    return ids


@pytest.mark.repeated
async def test_two_replicas_share_fifty_sessions(bare: Stack) -> None:
    """S-5, S-10: everything once and in order, whoever gets which turn."""
    await bare.start("delivery", "delivery:2")
    bus = await bare.bus("admin")
    talks = [conversation(bus, f"t{n}") for n in range(repeats(50, fast=20))]
    committed = await asyncio.gather(*(_commit(talk, 10) for talk in talks))
    await all_acked(bus, within_s=40)
    for talk, ids in zip(talks, committed, strict=True):
        assert await talk.said_ids() == ids


async def test_a_replica_that_stops_under_load_hands_over(bare: Stack) -> None:
    """S-10: stopped in the middle, everything is said once and in order by the other."""
    bus = await bare.bus("admin")
    talks = [conversation(bus, f"t{n}") for n in range(30)]
    committed = await asyncio.gather(*(_commit(talk, 10) for talk in talks))
    await bare.start("delivery", "delivery:2")
    await until(lambda: _has_said(talks[0], 2))
    await bare.stop("delivery")
    await all_acked(bus, within_s=40)
    for talk, ids in zip(talks, committed, strict=True):
        assert await talk.said_ids() == ids


async def _has_said(talk: Conversation, count: int) -> bool:
    return len(await talk.said_ids()) >= count


async def _is_back(stack: Stack, bus: Bus, pid: int | None) -> bool:
    return stack.broker.pid != pid and bus.is_connected


@pytest.mark.usefixtures("own_broker")
async def test_a_killed_broker_loses_nothing_and_doubles_nothing(bare: Stack) -> None:
    """S-5, S-10: killed in the middle, twice; everything is said once and in order."""
    bare.broker.watch()
    bus = await bare.bus("admin")
    talks = [conversation(bus, f"t{n}") for n in range(20)]
    committed = await asyncio.gather(*(_commit(talk, 10) for talk in talks))
    await bare.start("delivery", "delivery:2")
    for part in (3, 6):
        await until(partial(_has_said, talks[0], part))
        pid = bare.broker.pid
        bare.broker.kill()
        await until(partial(_is_back, bare, bus, pid), what="the broker is back")
    await all_acked(bus, within_s=60)
    for talk, ids in zip(talks, committed, strict=True):
        assert await talk.said_ids() == ids
