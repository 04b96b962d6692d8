"""The bus against the real broker: expectations, unknown outcomes, followers, pulls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.pauses import pauses
from tests.support.stack import Stack
from vigil.broker.provision import provision
from vigil.bus.bus import Bus, Follower, Message
from vigil.bus.kv import KeyValue
from vigil.bus.lease import Leases
from vigil.errors import OutcomeUnknown, Unavailable, WrongLastSequence
from vigil.settings.sections import Nats, Retention
from vigil.subjects import SessionKey
from vigil.topology import WAKE

KEY = SessionKey("ann", "vigil", "t1")


async def take(follower: Follower, count: int) -> list[Message]:
    async with asyncio.timeout(10):
        return [await follower.__anext__() for _ in range(count)]


async def test_an_expectation_lets_one_of_many_through(bare: Stack) -> None:
    """S-4: compare-and-set on a wildcard."""
    buses = [await bare.bus("admin") for _ in range(5)]
    first = await buses[0].publish(KEY.in_user, b"")

    async def claim(bus: Bus) -> bool:
        try:
            await bus.publish(
                KEY.out_said("e"), b"", expect=first.seq, expect_subject=KEY.transcript
            )
        except WrongLastSequence:
            return False
        return True

    won = await asyncio.gather(*(claim(bus) for bus in buses for _ in range(10)))
    assert sum(won) == 1


async def test_a_message_id_is_stored_once(bare: Stack) -> None:
    bus = await bare.bus("admin")
    first = await bus.publish(KEY.in_user, b"a", msg_id="m")
    again = await bus.publish(KEY.in_user, b"a", msg_id="m")
    assert (again.seq, again.is_duplicate) == (first.seq, True)


@pytest.mark.usefixtures("own_broker")
async def test_a_publish_without_an_answer_has_an_unknown_outcome(bare: Stack) -> None:
    bus = await bare.bus("admin")
    await bare.broker.pause()
    try:
        with pytest.raises(OutcomeUnknown):
            await bus.publish(KEY.in_user, b"late", timeout=0.3)
    finally:
        await bare.broker.unpause()
    # A timeout always means unknown: here it was stored after all.
    async with asyncio.timeout(10):
        pause_s = pauses()
        while await bus.get_last("SESSIONS", KEY.in_user) is None:
            await asyncio.sleep(next(pause_s))


async def test_listening_on_a_closed_connection_is_an_error_of_ours(bare: Stack) -> None:
    """X-5: a service that is cut off meanwhile ends its term, not its process."""
    bus = await bare.bus("scheduler")
    await bus.close()

    async def handle(_: Any) -> None: ...

    with pytest.raises(Unavailable):
        await bus.listen("rpc.health", handle)


async def test_nobody_listening_is_told_apart(bare: Stack) -> None:
    bus = await bare.bus("admin")
    with pytest.raises(Unavailable, match="nobody listens"):
        await bus.publish("no.stream.has.this", b"")


async def test_single_messages_are_read_from_the_leader(bare: Stack) -> None:
    bus = await bare.bus("admin")
    assert await bus.get_last("SESSIONS", KEY.turn) is None
    one = await bus.publish(KEY.turn, b"one", {"Vigil-Position": "3"})
    two = await bus.publish(KEY.turn, b"two")
    last = await bus.get_last("SESSIONS", KEY.turn)
    assert last is not None
    assert (last.seq, last.data) == (two.seq, b"two")
    first = await bus.get("SESSIONS", one.seq)
    assert first is not None
    assert first.headers["Vigil-Position"] == "3"
    following = await bus.get_next("SESSIONS", KEY.turn, one.seq + 1)
    assert following is not None
    assert following.seq == two.seq
    assert await bus.get("SESSIONS", 999) is None


@pytest.mark.usefixtures("own_broker")
async def test_a_follower_sees_everything_in_order_over_a_broker_restart(bare: Stack) -> None:
    """RELIABILITY 0.10: it resumes at once, without gap or repeat."""
    bus, other = await bare.bus("admin"), await bare.bus("admin")
    for i in range(50):
        await other.publish(KEY.in_user, b"%d" % i)
    follower = await bus.follow("SESSIONS", [KEY.in_all], 1)
    assert follower.waiting == 50
    got = await take(follower, 30)
    bare.broker.watch()
    bare.broker.kill()
    for i in range(50, 60):
        await publish_until_stored(other, b"%d" % i)
    got += await take(follower, 30)
    assert [m.data for m in got] == [b"%d" % i for i in range(60)]
    await follower.close()


async def publish_until_stored(bus: Bus, data: bytes) -> None:
    async with asyncio.timeout(20):
        pause_s = pauses()
        while True:
            try:
                await bus.publish(KEY.in_user, data, msg_id=data.decode())
                return
            except Unavailable:
                await asyncio.sleep(next(pause_s))


async def test_every_message_is_delivered_once(bare: Stack) -> None:
    """A delivery that comes twice looks like a gap, and costs a new consumer each time."""
    bus = await bare.bus("admin")
    follower = await bus.follow("SESSIONS", [KEY.in_all], 1)
    for i in range(200):
        await bus.publish(KEY.in_user, b"%d" % i)
    got = await take(follower, 200)
    assert [m.data for m in got] == [b"%d" % i for i in range(200)]
    assert follower.restarts == 0
    await follower.close()


async def test_a_slow_follower_gets_everything(bare: Stack) -> None:
    """Flow control: what isn't taken waits in the broker, and nothing is dropped."""
    bus = await bare.bus("admin")
    data = b"x" * 100_000
    for _ in range(300):
        await bus.publish(KEY.in_user, data)
    follower = await bus.follow("SESSIONS", [KEY.in_all], 1)
    seqs = []
    async with asyncio.timeout(20):
        async for message in follower:
            seqs.append(message.seq)
            await asyncio.sleep(0.0005)
            if message.pending == 0:
                break
    assert seqs == list(range(1, 301))
    await follower.close()


async def test_reading_what_is_stored(bare: Stack) -> None:
    bus = await bare.bus("admin")
    for i in range(5):
        await bus.publish(KEY.in_user, b"%d" % i)
        await bus.publish(KEY.turn, b"t")
    assert await bus.read("SESSIONS", ["session.vigil.bob.*.in.>"]) == []
    messages = await bus.read("SESSIONS", [KEY.in_all], 3)
    assert [m.seq for m in messages] == [3, 5, 7, 9]
    assert len(await bus.read("SESSIONS", [KEY.in_all, KEY.turn])) == 10
    assert len(await bus.read("SESSIONS", [KEY.in_all], limit=2)) == 2


async def test_what_is_pulled_and_not_acked_comes_again(bare: Stack) -> None:
    bus = await bare.bus("cortex")
    admin = await bare.bus("admin")
    await admin.publish(KEY.in_user, b"body")
    puller = await bus.pull(WAKE)
    async with asyncio.timeout(10):
        wake = await puller.__anext__()
        assert (wake.seq, wake.delivered, wake.data) == (1, 1, b"")
        await bus.nak(wake, 0.05)
        again = await puller.__anext__()
        assert (again.seq, again.delivered) == (1, 2)
        await bus.ack(again)
    await puller.close()


@pytest.mark.usefixtures("own_broker")
async def test_pulling_goes_on_after_a_broker_restart(bare: Stack) -> None:
    bus, admin = await bare.bus("cortex"), await bare.bus("admin")
    puller = await bus.pull(WAKE)
    bare.broker.watch()
    bare.broker.kill()
    await publish_until_stored(admin, b"1")
    async with asyncio.timeout(10):
        wake = await puller.__anext__()
    assert wake.seq == 1
    await puller.close()


@pytest.mark.usefixtures("own_broker")
async def test_pulling_goes_on_when_the_consumer_is_made_anew(bare: Stack) -> None:
    """Long before the next heartbeat: the broker tells that it was deleted."""
    bus, admin = await bare.bus("cortex"), await bare.bus("admin")
    puller = await bus.pull(WAKE)
    await admin.api(f"CONSUMER.DELETE.{WAKE.stream}.{WAKE.name}", {})
    await provision(admin, Retention(), Nats())
    stored = await admin.publish(KEY.in_user, b"")
    async with asyncio.timeout(10):
        wake = await puller.__anext__()
    assert wake.seq == stored.seq
    await puller.close()


async def test_a_request_that_nobody_answers_is_made_again(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As is one that reaches a consumer while it's being deleted; and what was answered once waits
    in silence."""
    bus, admin = await bare.bus("cortex"), await bare.bus("admin")
    send, sent = bus.send, 0

    async def lose_the_first(*given: Any) -> None:
        nonlocal sent
        sent += 1
        if sent > 1:
            await send(*given)

    monkeypatch.setattr(bus, "send", lose_the_first)
    puller = await bus.pull(WAKE)
    stored = await admin.publish(KEY.in_user, b"")
    async with asyncio.timeout(10):
        wake = await puller.__anext__()
    assert wake.seq == stored.seq
    await asyncio.sleep(3)  # longer than a first request lasts
    assert sent == 3, "lost; answered, and over; the one that waits"
    await puller.close()


async def test_more_than_one_batch_is_pulled(bare: Stack) -> None:
    bus, admin = await bare.bus("cortex"), await bare.bus("admin")
    puller = await bus.pull(WAKE)
    await asyncio.gather(*(admin.publish(KEY.in_user, b"") for _ in range(1500)))
    async with asyncio.timeout(20):
        for _ in range(1500):
            await bus.ack(await puller.__anext__())
    await puller.close()


async def test_a_bucket_compares_and_sets(bare: Stack) -> None:
    bucket = KeyValue(await bare.bus("admin"), "CONFIG")
    assert await bucket.get("a") is None
    revision = await bucket.create("a", b"1")
    with pytest.raises(WrongLastSequence):
        await bucket.create("a", b"2")
    with pytest.raises(WrongLastSequence):
        await bucket.put("a", b"2", expect=revision - 1)
    revision = await bucket.put("a", b"2", expect=revision)
    await bucket.delete("a", expect=revision)
    assert await bucket.get("a") is None
    await bucket.create("a", b"3")
    entry = await bucket.get("a")
    assert entry is not None
    assert entry.value == b"3"


async def test_a_watch_reports_what_is_there_and_each_change(bare: Stack) -> None:
    bucket = KeyValue(await bare.bus("admin"), "CONFIG")
    await bucket.put("old", b"1")
    seen: dict[str, bytes | None] = {}
    changed = asyncio.Event()

    def on_change(key: str, value: bytes | None) -> None:
        seen[key] = value
        changed.set()

    watch = await bucket.watch(on_change)
    assert seen == {"old": b"1"}
    changed.clear()
    await bucket.delete("old")
    await asyncio.wait_for(changed.wait(), 5)
    assert seen == {"old": None}
    await watch.close()


async def test_a_lease_is_held_by_one_and_expires(bare: Stack) -> None:
    """ARCHITECTURE 3, lease."""
    bus = await bare.bus("admin")
    one, two = Leases(bus, "one"), Leases(bus, "two")
    lease = await one.acquire("vigil.ann.t1")
    assert lease is not None
    assert await two.acquire("vigil.ann.t1") is None
    await lease.renew()
    await lease.release()
    second = await two.acquire("vigil.ann.t1")
    assert second is not None
    async with asyncio.timeout(10):
        while await one.acquire("vigil.ann.t1") is None:
            await asyncio.sleep(0.1)


async def test_reading_ends_also_if_the_last_message_vanishes(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker fires timers while they are read; a start must not hang on that."""
    bus, admin = await bare.bus("scheduler"), await bare.bus("admin")
    doomed = SessionKey("ann", "vigil", "t2")
    kept = [(await admin.publish(KEY.timer(f"t{n}", 1), b"x")).seq for n in range(10)]
    for n in range(100):
        await admin.publish(doomed.timer(f"t{n}", 1), b"x" * 100_000)
    follow = bus.follow

    async def follow_and_purge(
        stream: str, filters: Sequence[str], start: int, at_most: int = 0
    ) -> Follower:
        follower = await follow(stream, filters, start, at_most)
        take = follower.next_within

        async def take_and_purge(seconds: float) -> Message | None:
            message = await take(seconds)
            if message is not None and message.seq == kept[-1] + 1:
                # Flow control: the broker has sent a part, and waits for the reader.
                await admin.api("STREAM.PURGE.TIMERS", {"filter": f"timer.{doomed.root}.>"})
            return message

        monkeypatch.setattr(follower, "next_within", take_and_purge)
        return follower

    monkeypatch.setattr(bus, "follow", follow_and_purge)
    async with asyncio.timeout(10):
        messages = await bus.read("TIMERS", ["timer.>", "due.>"])
    assert [m.seq for m in messages][:10] == kept
    assert len(messages) < 110
    assert messages[-1].pending > 0


async def test_a_page_has_no_more_sent_than_it_holds(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a long log, too: what comes after it stays with the broker."""
    bus = await bare.bus("admin")
    acks = [await bus.publish(KEY.in_user, b"%d" % n) for n in range(400)]
    sent, deliver = [], Follower._deliver

    def counted(self: Follower, message: Message, consumer_seq: int) -> None:
        sent.append(message.seq)
        deliver(self, message, consumer_seq)

    monkeypatch.setattr(Follower, "_deliver", counted)
    page, has_more = await bus.page("SESSIONS", [KEY.everything], acks[100].seq, limit=20)
    await bus.get_last("SESSIONS", KEY.in_user)  # whatever was on its way is here by now
    assert [one.seq for one in page] == sent == [ack.seq for ack in acks[100:120]]
    assert has_more
    whole, has_more = await bus.page("SESSIONS", [KEY.everything], acks[380].seq, limit=20)
    assert (len(whole), has_more) == (20, False)


async def test_closing_takes_no_cancellation_of_what_reconnected_for_its_own(bare: Stack) -> None:
    """Cancelled while it waits for the old socket's end, reconnecting leaves that end cancelled."""
    bus = await bare.bus("admin")
    transport = bus.connection._transport
    assert transport is not None
    reconnecting = asyncio.create_task(transport.wait_closed())
    await asyncio.sleep(0)
    reconnecting.cancel()
    await asyncio.wait({reconnecting})
    await bus.close()
    assert bus.is_closed


@pytest.mark.usefixtures("own_broker")
async def test_closing_ends_also_what_reconnects(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client's task may drop a cancellation, and would look for its broker for ever."""
    bus = await bare.bus("admin")
    client = bus.connection
    select, begun, dropped = client._select_next_server, asyncio.Event(), asyncio.Event()

    async def select_and_drop() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            dropped.set()
        await select()

    monkeypatch.setattr(client, "_select_next_server", select_and_drop)
    bare.broker.kill()
    async with asyncio.timeout(10):
        await begun.wait()
        await bus.close()
    assert dropped.is_set()
    assert client._reconnection_task.done()
    assert bus.is_closed
