"""Messages over a channel: delivery, the real broker, and a real receiver."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.delivery import outbox
from services.delivery.channels import build
from services.delivery.config import DeliveryLimits
from tests.support.channels import (
    attempts,
    channel_of,
    closed,
    dead_letters,
    died,
    no_orders_left,
    orders,
    receipts,
    running_channel,
    wish,
)
from tests.support.circuits import circuits_of
from tests.support.delivery import (
    STREAM,
    all_acked,
    conversation,
    redeliver,
    until,
)
from tests.support.receiver import (
    OK,
    SECRET,
    raw,
    running_receiver,
    silence,
    status,
    verified,
)
from tests.support.stack import Stack, running_stack
from vigil import contracts, runtime
from vigil.channels.webhook import Webhook, secret_of
from vigil.clock import SystemClock
from vigil.contracts import encode
from vigil.edits import toml_sections
from vigil.errors import ConfigError, OutcomeUnknown
from vigil.settings import config
from vigil.settings.live import followed
from vigil.subjects import SessionKey
from vigil.worker.requeue import RequeueReply


async def test_what_is_said_over_a_channel_arrives_there(tmp_path: Path) -> None:
    """D-1, S-10: in the transcript, and signed at the receiver, with every step recorded."""
    async with running_channel(tmp_path) as (stack, receiver, talk):
        await talk.user()
        send = talk.send(channel="ops")
        await talk.turn(send)
        receipt = await closed(talk.bus, talk.key, send.id)
        assert (receipt.outcome, receipt.reason) == ("delivered", "204 No Content")
        (request,) = receiver.requests
        body = msgspec.json.decode(verified(request))
        said = await talk.bus.get_last(STREAM, talk.key.out_said(send.id))
        assert said is not None
        assert (body["id"], body["text"]) == (send.id, send.payload.text)
        assert (request.id, body["seq"]) == (send.id, said.seq)
        (order,) = await orders(talk.bus, talk.key, send.id)
        assert (order.channel, order.said_seq) == ("ops", said.seq)
        (begun,) = await attempts(talk.bus, talk.key, send.id)
        assert (begun.state, begun.number) == ("begun", 1)
        await no_orders_left(talk.bus)
        assert not stack.contexts["delivery"].bus.violations


async def test_the_socket_needs_no_order(tmp_path: Path) -> None:
    """S-10: for the socket, the claim is the delivery."""
    async with running_channel(tmp_path) as (_, receiver, talk):
        await talk.user()
        send = talk.send()
        await talk.turn(send)
        await all_acked(talk.bus)
        assert await talk.said_ids() == [send.id]
        assert await orders(talk.bus, talk.key, send.id) == []
        assert receiver.requests == []


async def test_a_failure_that_may_pass_is_tried_again(tmp_path: Path) -> None:
    """S-10, S8: 500, then 200: the same id and bytes, after a pause."""
    async with running_channel(tmp_path, status(500), OK) as (_, receiver, talk):
        await talk.user()
        send = talk.send(channel="ops")
        await talk.turn(send)
        assert (await closed(talk.bus, talk.key, send.id)).outcome == "delivered"
        (bodies,) = receiver.bodies.values()
        assert list(bodies.values()) == [2]
        found = await attempts(talk.bus, talk.key, send.id)
        assert [(a.number, a.state, a.status) for a in found] == [
            (1, "begun", None), (1, "refused", 500), (2, "begun", None),
        ]  # fmt: skip
        assert found[1].next_at is not None
        assert found[2].at >= found[1].next_at
        assert await dead_letters(talk.bus) == []


@pytest.mark.parametrize(("is_ordered", "wanted"), [(True, [0, 0, 1, 2]), (False, [0, 1, 2, 0])])
async def test_where_order_is_kept_what_fails_holds_up_what_was_said_after_it(
    tmp_path: Path, is_ordered: bool, wanted: list[int]
) -> None:
    """D-2: what was said later isn't tried while the first waits for its next try; what went over
    the socket in between holds nothing up. Without `is_ordered` it overtakes the first."""
    async with running_channel(
        tmp_path, status(500), OK, is_ordered=is_ordered, backoff_base_s=2.0, backoff_cap_s=2.0
    ) as (_, receiver, talk):
        await talk.user()
        first, unheard, second = (talk.send(channel=one) for one in ("ops", "socket", "ops"))
        await talk.turn(first)
        await receiver.arrived(1)
        await talk.turn(unheard, second)
        third = talk.send(channel="ops")
        await talk.turn(third)
        await receiver.arrived(4)
        ids = [first.id, second.id, third.id]
        assert [ids.index(one.id) for one in receiver.requests] == wanted


@pytest.mark.parametrize(
    ("code", "tries", "reason"), [(410, 1, "410 Gone; 1 try"), (503, 3, "503 Gone; 3 tries")]
)
async def test_what_is_given_up_is_a_dead_letter(
    tmp_path: Path, code: int, tries: int, reason: str
) -> None:
    """S-10: at once if it's final, else after bounded tries; a person sees it."""
    async with running_channel(tmp_path, status(code, "Gone")) as (_, receiver, talk):
        await talk.user()
        send = talk.send(channel="ops")
        await talk.turn(send)
        receipt = await closed(talk.bus, talk.key, send.id)
        assert (receipt.outcome, receipt.reason) == ("failed", reason)
        await no_orders_left(talk.bus)
        assert len(receiver.requests) == tries
        (letter,) = await died(talk.bus)
        assert (letter.effect_id, letter.session_key) == (send.id, str(talk.key))
        assert (letter.cause, letter.subject) == (f"failed: {reason}", talk.key.send(send.id))


@pytest.mark.parametrize("behaviour", [silence, raw(b"HTTP/1.1 200 OK\r\n")])
async def test_an_unknown_outcome_is_ambiguous_without_idempotency(
    tmp_path: Path, behaviour: Any
) -> None:
    """D-2: shown to a person, never sent again by itself."""
    settings = {"is_idempotent": False, "timeout_s": 0.3}
    async with running_channel(tmp_path, behaviour, **settings) as (_, receiver, talk):
        await talk.user()
        send = talk.send(channel="ops")
        await talk.turn(send)
        assert (await closed(talk.bus, talk.key, send.id)).outcome == "ambiguous"
        await no_orders_left(talk.bus)
        assert len(receiver.requests) == 1
        (letter,) = await died(talk.bus)
        assert letter.effect_id == send.id


async def test_a_broker_that_falls_silent_before_the_try_is_no_unknown_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-2: what we stored ourselves without hearing of it is no other replica's try."""
    async with running_channel(tmp_path, is_idempotent=False) as (stack, receiver, talk):
        bus = stack.contexts["delivery"].bus
        publish, get_last = bus.publish, bus.get_last
        silenced: list[str] = []

        async def store_in_silence(subject: str, *args: Any, **options: Any) -> Any:
            ack = await publish(subject, *args, **options)
            if ".attempt." in subject and not silenced:
                silenced.append(subject)
                raise OutcomeUnknown("the broker did not answer in time")
            return ack

        async def stay_silent(stream: str, subject: str) -> Any:
            if silenced.count(subject) == 1:
                silenced.append(subject)
                raise OutcomeUnknown("the broker did not answer in time")
            return await get_last(stream, subject)

        monkeypatch.setattr(bus, "publish", store_in_silence)
        monkeypatch.setattr(bus, "get_last", stay_silent)
        await talk.user()
        send = talk.send(channel="ops")
        await talk.turn(send)
        assert (await closed(talk.bus, talk.key, send.id)).outcome == "delivered"
        assert len(silenced) == 2
        assert len(receiver.requests) == 1
        assert [a.state for a in await attempts(talk.bus, talk.key, send.id)] == ["begun"]


async def test_an_unknown_outcome_is_tried_again_with_idempotency(tmp_path: Path) -> None:
    """S8: the receiver drops repeats of the id."""
    async with running_channel(tmp_path, silence, OK, timeout_s=0.3) as (_, receiver, talk):
        await talk.user()
        send = talk.send(channel="ops")
        await talk.turn(send)
        assert (await closed(talk.bus, talk.key, send.id)).outcome == "delivered"
        (bodies,) = receiver.bodies.values()
        assert list(bodies.values()) == [2]


async def test_a_retry_is_dropped_once_the_person_has_spoken(tmp_path: Path) -> None:
    """S-6: a follow-up doesn't come out of place; a direct reply is tried on."""
    pause = status(503, retry_after="1")
    async with running_channel(
        tmp_path, pause, pause, OK, backoff_cap_s=1.0
    ) as (_, receiver, talk):  # fmt: skip
        await talk.user()
        reply = talk.send(channel="ops")
        follow_up = talk.send(channel="ops", is_autonomous=True)
        await talk.turn(reply)
        await talk.turn(follow_up)
        await receiver.arrived(2)
        await talk.user("wait")
        dropped = await closed(talk.bus, talk.key, follow_up.id)
        assert dropped.outcome == "dropped"
        assert "the person has spoken" in dropped.reason
        assert (await closed(talk.bus, talk.key, reply.id)).outcome == "delivered"
        await no_orders_left(talk.bus)
        assert [r.id for r in receiver.requests].count(follow_up.id) == 1
        assert await dead_letters(talk.bus) == []


async def test_repeats_of_turn_and_order_add_nothing(tmp_path: Path) -> None:
    """S-5: an effect whose key was executed is skipped, however late the repeat."""
    async with running_channel(tmp_path) as (stack, receiver, talk):
        await talk.user()
        send = talk.send(channel="ops")
        turn = await talk.turn(send)
        await closed(talk.bus, talk.key, send.id)
        await no_orders_left(talk.bus)
        await stack.stop("delivery")
        await redeliver(talk.bus, [turn])
        await redeliver(talk.bus, [turn], name="delivery-sends")
        await stack.start("delivery:2")
        await all_acked(talk.bus)
        await no_orders_left(talk.bus)
        assert len(receiver.requests) == 1
        assert len(await orders(talk.bus, talk.key, send.id)) == 1
        assert len(await receipts(talk.bus, talk.key, send.id)) == 1


async def test_a_turn_whose_order_is_missing_gets_it(tmp_path: Path) -> None:
    """S-10: the claim was stored, then the replica ended: the repeat of the turn orders it."""
    async with running_channel(tmp_path, services=()) as (stack, receiver, talk):
        await talk.user()
        send = talk.send(channel="ops")
        turn = await talk.turn(send)
        from services.delivery import decide

        said = decide.said(talk.key, send, turn_seq=turn, now=SystemClock().now())
        await talk.bus.publish(talk.key.out_said(send.id), encode(said))
        await stack.start("delivery")
        assert (await closed(talk.bus, talk.key, send.id)).outcome == "delivered"
        assert len(await talk.said_ids()) == 1
        assert len(receiver.requests) == 1


async def test_a_channel_that_is_gone_fails_what_waits_for_it(tmp_path: Path) -> None:
    """D-2: recorded, and a person can requeue it once the channel is back."""
    async with running_channel(tmp_path, status(503, retry_after="60"), backoff_cap_s=60.0) as (
        stack,
        receiver,
        talk,
    ):
        await talk.user()
        send = talk.send(channel="ops")
        turn = await talk.turn(send)
        await receiver.arrived(1)
        await until(lambda: _has_attempts(talk, send.id, 2), what="the end of the first try")
        await stack.stop("delivery")
        stack.settings = msgspec.structs.replace(stack.settings, config=config.Config())
        await redeliver(talk.bus, [turn], name="delivery-sends")
        await stack.start("delivery")
        receipt = await closed(talk.bus, talk.key, send.id)
        assert (receipt.outcome, receipt.reason) == ("failed", "no channel named 'ops'")
        assert len(await died(talk.bus)) == 1


async def test_what_is_ordered_of_a_channel_that_comes_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others took the change in before, or delivery can't use it until its secret is there, and
    that is enough."""
    monkeypatch.setattr(followed, "POLL_S", 0.02)
    monkeypatch.setattr(outbox, "COMING_S", 0.1)
    async with running_receiver() as receiver, running_stack(tmp_path, ("delivery",)) as stack:
        first = stack.contexts["delivery"]
        values = channel_of(receiver, kind="webhook") | {"secret_file": "ops.secret"}
        del values["secret"]
        toml_sections.add(tmp_path / "vigil.toml", "channels", "ops", values)
        await until(lambda: _is_refused(stack, first), what="a warning")
        talk = conversation(await stack.bus("admin"))
        await talk.user()
        send = talk.send(channel="ops")
        await talk.turn(send)
        await until(lambda: _is_ordered(talk, send.id), what="an order")
        (tmp_path / "ops.secret").write_text(SECRET)
        assert (await closed(talk.bus, talk.key, send.id)).outcome == "delivered"


async def _is_refused(stack: Stack, first: runtime.Context) -> bool:
    now = stack.contexts["delivery"]
    return now is not first and bool(now.health().warnings)


async def _is_ordered(talk: Any, effect: str) -> bool:
    return bool(await orders(talk.bus, talk.key, effect))


async def _has_attempts(talk: Any, effect: str, count: int) -> bool:
    return len(await attempts(talk.bus, talk.key, effect)) >= count


async def test_a_slow_receiver_holds_up_nobody_else(tmp_path: Path) -> None:
    """S-10: other channels and sessions go on, however much waits for the slow one."""
    is_over = asyncio.Event()

    async def wait(_: asyncio.StreamWriter) -> None:
        await is_over.wait()

    async with running_receiver(wait) as slow, running_receiver() as quick:
        channels = {
            "slow": channel_of(slow, timeout_s=60.0),
            "quick": channel_of(quick),
        }
        async with running_stack(tmp_path, services=("delivery",), channels=channels) as stack:
            bus = await stack.bus("admin")
            for number in range(100):  # more than a channel may have in hand
                talk = conversation(bus, f"s{number}")
                await talk.user()
                await talk.turn(talk.send(channel="slow"))
            await slow.arrived(DeliveryLimits().sends.abreast)
            talk = conversation(bus, "other")
            await talk.user()
            send = talk.send(channel="quick")
            await talk.turn(send)
            assert (await closed(bus, talk.key, send.id, within_s=5)).outcome == "delivered"
            assert len(slow.requests) == DeliveryLimits().sends.abreast
            is_over.set()


async def test_a_channel_that_is_down_is_left_alone_and_orders_wait(tmp_path: Path) -> None:
    """C-5: after three tries without success none is made, and none used up, until a trial."""
    down = [status(503, "Down")] * 3
    async with running_receiver(*down, OK) as receiver:
        channels = {"ops": channel_of(receiver, backoff_base_s=60.0, backoff_cap_s=60.0)}
        async with running_stack(
            tmp_path, services=("delivery",), channels=channels, health={"circuit_open_s": 2.0}
        ) as stack:
            bus = await stack.bus("admin")

            async def ordered(thread: str) -> tuple[SessionKey, str]:
                talk = conversation(bus, thread)
                await talk.user()
                send = talk.send(channel="ops")
                await talk.turn(send)
                return talk.key, send.id

            for number in range(3):
                await ordered(f"t{number}")
            await receiver.arrived(3)

            async def is_open() -> bool:
                return bool(await circuits_of(stack))

            await until(is_open, what="an open circuit")
            (found,) = await circuits_of(stack)
            assert (found.component, found.state) == ("channel:ops", "open")
            key, effect = await ordered("t3")
            assert (await closed(bus, key, effect)).outcome == "delivered"
            assert [one.number for one in await attempts(bus, key, effect)] == [1]
            (found,) = await circuits_of(stack)
            assert found.state == "closed"
            assert len(receiver.requests) == 4


async def test_two_replicas_send_each_message_once(tmp_path: Path) -> None:
    """S-10: whoever gets which order."""
    async with running_channel(tmp_path, is_idempotent=False) as (stack, receiver, talk):
        await stack.start("delivery:2")
        talks = [conversation(talk.bus, f"t{number}") for number in range(20)]
        sends = []
        for one in talks:
            await one.user()
            send = one.send(channel="ops")
            await one.turn(send)
            sends.append(send)
        for one, send in zip(talks, sends, strict=True):
            assert (await closed(one.bus, one.key, send.id)).outcome == "delivered"
        assert sorted(r.id for r in receiver.requests) == sorted(s.id for s in sends)


async def test_an_order_that_says_nothing_is_a_dead_letter(tmp_path: Path) -> None:
    """X-6: kept with its cause; never a crash loop."""
    async with running_channel(tmp_path) as (stack, receiver, talk):
        await talk.bus.publish(talk.key.send("e1"), b'{"v":99}')
        (letter,) = await died(talk.bus)
        assert "version 99" in letter.cause
        await no_orders_left(talk.bus)
        reply = await wish(await stack.bus("gateway"), letter)
        assert (reply.outcome, "version 99" in reply.reason) == ("refused", True)
        assert receiver.requests == []


# ---------------------------------------------------------------- requeue


async def test_a_person_requeues_what_failed(tmp_path: Path) -> None:
    """S-10: new tries with new numbers, the same id and bytes; asked for twice, it's one order."""
    async with running_channel(tmp_path, status(410), OK) as (stack, receiver, talk):
        await talk.user()
        send = talk.send(channel="ops", is_autonomous=True)
        await talk.turn(send)
        await closed(talk.bus, talk.key, send.id)
        await no_orders_left(talk.bus)
        await talk.user("a message that would void a retry")
        (letter,) = await died(talk.bus)
        gateway = await stack.bus("gateway")
        replies = await asyncio.gather(*(wish(gateway, letter) for _ in range(3)))
        assert replies == [RequeueReply(outcome="done")] * 3
        assert (await closed(talk.bus, talk.key, send.id, times=2)).outcome == "delivered"
        await no_orders_left(talk.bus)
        assert [o.requeued_by for o in await orders(talk.bus, talk.key, send.id)] == [None, "ann"]
        numbers = [(a.number, a.state) for a in await attempts(talk.bus, talk.key, send.id)]
        assert numbers == [(1, "begun"), (1, "refused"), (1, "begun")]
        (bodies,) = receiver.bodies.values()
        assert list(bodies.values()) == [2]
        assert not stack.contexts["delivery"].bus.violations


async def test_what_fails_again_is_another_dead_letter(tmp_path: Path) -> None:
    async with running_channel(tmp_path, status(410)) as (stack, _, talk):
        await talk.user()
        send = talk.send(channel="ops")
        await talk.turn(send)
        await closed(talk.bus, talk.key, send.id)
        await no_orders_left(talk.bus)
        (letter,) = await died(talk.bus)
        await wish(await stack.bus("gateway"), letter)
        await closed(talk.bus, talk.key, send.id, times=2)
        await no_orders_left(talk.bus)
        first, second = await died(talk.bus, count=2)
        assert first.id != second.id
        assert first.effect_id == second.effect_id == send.id


async def test_what_is_not_dead_is_not_requeued(tmp_path: Path) -> None:
    """What is being tried, was delivered, or isn't there: with the reason."""
    async with running_channel(tmp_path, status(410), OK) as (stack, _, talk):
        await talk.user()
        send = talk.send(channel="ops")
        await talk.turn(send)
        await closed(talk.bus, talk.key, send.id)
        await no_orders_left(talk.bus)
        (letter,) = await died(talk.bus)
        gateway = await stack.bus("gateway")
        await wish(gateway, letter)
        await closed(talk.bus, talk.key, send.id, times=2)
        newest = await talk.bus.get_last(STREAM, talk.key.send(send.id))
        assert newest is not None
        later = msgspec.structs.replace(letter, seq=newest.seq)
        assert (await wish(gateway, later)).reason == "it ended as delivered"
        for wrong in ({"seq": 1}, {"seq": 999_999}, {"stream": "TIMERS"}, {"subject": "a.b"}):
            reply = await wish(gateway, msgspec.structs.replace(letter, **wrong))
            assert (reply.outcome, reply.reason) == ("refused", "it is no longer in the log")


async def test_a_turn_that_can_be_read_now_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-10, S-14: after an upgrade, say."""
    async with running_channel(tmp_path) as (stack, _, talk):
        await talk.user()
        send = talk.send()
        data = talk.encoded(send)[:-1].replace(b'"v":2', b'"v":99') + b"}"
        await talk.bus.publish(talk.key.turn, data, {"Vigil-Effects": "s"})
        (letter,) = await died(talk.bus)
        gateway = await stack.bus("gateway")
        refused = await wish(gateway, letter)
        assert refused.outcome == "refused"
        assert "still can't be read" in refused.reason
        monkeypatch.setitem(contracts.VERSIONS, "turn", 99)
        assert await wish(gateway, letter) == RequeueReply(outcome="done")
        assert await talk.said_ids() == [send.id]
        assert await wish(gateway, letter) == RequeueReply(outcome="done")
        assert await talk.said_ids() == [send.id]
        assert len(await died(talk.bus)) == 1


# ---------------------------------------------------------------- configuration

GOOD: dict[str, Any] = {"url": "https://hooks.example/in", "secret": SECRET}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"url": "ftp://hooks.example/"}, "channels.ops.url: must begin with http"),
        ({"url": "http://localhost/"}, "channels.ops.url: 'localhost' is a private name"),
        ({"url": "http://127.0.0.1/"}, "channels.ops.url: leads to 127.0.0.1"),
        ({"url": "https://a:b@hooks.example/"}, "channels.ops.url: must not contain a user name"),
        ({"url": "https://hooks.example:8443/"}, "channels.ops.url: port 8443 is not allowed"),
        ({"url": "https://hooks.example:4222/", "ports": [4222]}, "port 4222 is not allowed"),
        ({"secret": ""}, "channels.ops.secret: is missing"),
        ({"secret": "topsecret"}, "channels.ops.secret: must be whsec_ and base64"),
        ({"secret": "whsec_t*psecret"}, "channels.ops.secret: must be whsec_ and base64"),
        ({"secret": "whsec_dG9wc2VjcmV0"}, "channels.ops.secret: must have 24 to 64 bytes"),
        ({"secret_file": "f"}, "channels.ops.secret: is given twice"),
        (
            {"secret": "", "secret_file": "/nowhere/s"},
            "secret_file: /nowhere/s can't be read: No such file",
        ),
    ],
)
def test_a_channel_that_cannot_work_is_refused(changes: dict[str, Any], complaint: str) -> None:
    """X-6: field and reason, and never the secret."""
    one = msgspec.convert(GOOD | changes, Webhook)
    with pytest.raises(ConfigError) as refused:
        build({"ops": one}, SystemClock(), DeliveryLimits(), home=Path("/"), ports_never={4222})
    assert complaint in str(refused.value)
    assert "secret:" not in complaint or "t*psecret" not in str(refused.value)
    assert "dG9wc2" not in str(refused.value)


def test_every_mistake_is_told_at_once_and_a_name_is_taken() -> None:
    one = msgspec.convert(GOOD | {"secret": ""}, Webhook)
    with pytest.raises(ConfigError) as refused:
        build({"a": one, "socket": one, "b": one}, SystemClock(), DeliveryLimits(), home=Path("/"))
    assert len(str(refused.value).splitlines()) == 3
    assert "channels.socket: this name is taken" in str(refused.value)


@pytest.mark.parametrize("place", ["ops.secret", "{home}/ops.secret"])
def test_the_secret_may_be_in_a_file(tmp_path: Path, place: str) -> None:
    """S15: wherever the service was started, as a hook's file is found."""
    (tmp_path / "ops.secret").write_text(f"{SECRET}\n")
    raw_ = GOOD | {"secret": "", "secret_file": place.format(home=tmp_path)}
    one = msgspec.convert(raw_, Webhook)
    assert secret_of(one, tmp_path) == SECRET
    assert set(build({"ops": one}, SystemClock(), DeliveryLimits(), home=tmp_path)) == {"ops"}


async def test_delivery_refuses_to_start(bare: Stack) -> None:
    """X-6, S9: also for the broker's own port, whatever is allowed."""
    port = bare.broker.port
    for changes, complaint in (
        ({"url": "http://127.0.0.1/"}, "leads to 127.0.0.1"),
        ({"url": f"http://127.0.0.1:{port}/", "ports": [port], "allow_private": True},
         f"port {port} is not allowed"),
    ):  # fmt: skip
        channels = {"ops": msgspec.convert(GOOD | changes, Webhook)}
        settings = msgspec.structs.replace(
            bare.settings, config=msgspec.structs.replace(bare.settings.config, channels=channels)
        )
        with pytest.raises(ConfigError, match=rf"channels\.ops\.url: {complaint}"):
            await runtime.run("delivery", settings, bare.broker.url)
