"""The channel `push`: what leaves for a browser, who can read it, and what comes of the answers."""

from __future__ import annotations

import asyncio
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import http_ece
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.chaos.processes import launched
from tests.support import approvals
from tests.support.channels import attempts, closed, died, no_orders_left, receipts
from tests.support.delivery import all_acked, conversation
from tests.support.examples import up_to
from tests.support.push_browsers import PushedBrowser, channel_of, plain, point_of, signed_by
from tests.support.receiver import Behaviour, Request, running_receiver, status
from tests.support.stack import running_stack
from vigil import circuits, crash
from vigil.channels.push import seal, subscriptions, vapid
from vigil.channels.push.notification import LONG, OUTSIDE, notification_of
from vigil.channels.push.section import PushChannel
from vigil.channels.push.sender import text_of
from vigil.contracts import (
    Approval,
    BoardEntry,
    Said,
    SendMessage,
    TimerFired,
    TimerPayload,
    ToldEvent,
    ToldPayload,
    encode,
)
from vigil.errors import InvalidInput
from vigil.settings import own

AT = datetime(2026, 11, 28, 12, tzinfo=UTC)
T = TypeVar("T", str, bytes)
SAID = Said(
    id="f" * 32, session_key="ann:vigil:t1", text="Reminder: stretch", at=AT, caused_by="e1",
    turn_seq=8, is_autonomous=True, channel="push",
)  # fmt: skip


def repeated(piece: T, length: int) -> T:
    """Return something long of one piece: drawing each letter would take most of the test."""
    return (piece * length)[:length]


def test_sealed_as_the_standard_has_it() -> None:
    """RFC 8291, appendix A: the same keys and salt make the same bytes."""
    d = int.from_bytes(seal.decoded("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
    made = seal.sealed(
        b"When I grow up, I want to be a watermelon",
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "BTBZMqHH6r4Tts7J_aSIgg",
        own=ec.derive_private_key(d, ec.SECP256R1()),
        salt=seal.decoded("DGv6ra1nlYgDCS1FRnbzlw"),
    )
    assert seal.encoded(made) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS"
        "6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qu"
        "lcy4a-fN"
    )


@up_to(100)
@given(text=st.builds(repeated, st.binary(max_size=60), st.integers(0, seal.TEXT_BYTES_MAX)))
def test_only_the_browser_opens_it(text: bytes) -> None:
    """Whatever is sent, an independent library opens it with the browser's keys: in one record of
    4096 bytes at most, which each push service takes."""
    own, auth = ec.generate_private_key(ec.SECP256R1()), os.urandom(16)
    body = seal.sealed(text, point_of(own), plain(auth))
    assert len(body) <= 4096
    assert http_ece.decrypt(body, private_key=own, auth_secret=auth) == text


@pytest.mark.parametrize(
    ("p256dh", "auth"),
    [
        (plain(b"\x04" + bytes(64)), plain(bytes(16))),  # no point of the curve
        (plain(bytes(33)), plain(bytes(16))),
        ("?", plain(bytes(16))),
    ],
)
def test_what_is_no_key_is_refused(p256dh: str, auth: str) -> None:
    with pytest.raises(InvalidInput, match="keys"):
        seal.check_keys(p256dh, auth)


def test_the_key_is_made_once_for_its_owner(tmp_path: Path) -> None:
    """Of several processes that start at once one makes it, and all have the same."""
    with ThreadPoolExecutor(8) as pool:
        made = {vapid.public_text(one) for one in pool.map(vapid.key_of, [tmp_path] * 8)}
    assert len(made) == 1
    file = vapid.file_of(tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [one.name for one in file.parent.iterdir()] == [file.name]
    file.write_text("no key")
    with pytest.raises(InvalidInput, match="can't be used"):
        vapid.key_of(tmp_path)


# ---------------------------------------------------------------- what is shown


def asked(command: str) -> Approval:
    expires_at = AT + timedelta(hours=1)
    given = {"command": command}
    return replace(approvals.request(), tool="shell", input=given, expires_at=expires_at)


def test_a_request_is_shown_by_its_own_record() -> None:
    """The words of a message may be anybody's: what is accepted is what the board has, whole, with
    its digest; what may be cut is decided elsewhere."""
    lie = replace(SAID, text="Only a look at the weather. accept a7k2, or: reject a7k2")
    short = notification_of(lie, asked("rm -r old\u202e"), None, AT)
    assert short.notification.body == '| command: "rm -r old\\u202e"'
    assert short.notification.request is not None
    assert short.notification.request.digest == asked("rm -r old\u202e").digest
    assert (short.urgency, short.ttl_s) == ("high", 3600)
    long = notification_of(lie, asked("echo " + "a" * 300), None, AT).notification
    assert (long.body, long.request) == (LONG, None)
    assert long.path == f"/console/inbox/{asked('').id}"
    lines = replace(asked(""), input={str(n): n for n in range(9)})
    assert notification_of(lie, lines, None, AT).notification.request is None


def test_outside_is_told() -> None:
    told = notification_of(replace(SAID, is_tainted=True, text="Hi\u200b"), None, None, AT)
    assert told.notification.body == f"Hi\n{OUTSIDE}"


@up_to(100)
@given(text=st.builds(repeated, st.text(max_size=60), st.integers(0, 5000)))
def test_any_message_fits(text: str) -> None:
    note = notification_of(replace(SAID, text=text), None, None, AT).notification
    assert len(text_of(note)) <= seal.TEXT_BYTES_MAX
    huge = text_of(replace(note, body=text * 20, path="/console"))
    assert len(huge) <= seal.TEXT_BYTES_MAX
    msgspec.json.decode(huge)


# ---------------------------------------------------------------- through delivery


async def test_said_to_each_browser_of_the_person(tmp_path: Path) -> None:
    """Each browser gets it once, encrypted for it alone, signed by the home's key; another's
    doesn't. One that is gone is forgotten, one that is busy asked again after its pause."""
    async with running_receiver() as receiver:
        laptop, phone, gone = (PushedBrowser(receiver, name) for name in ("a", "b", "c"))
        other = PushedBrowser(receiver, "other")

        def choose(request: Request, _: int) -> Behaviour:
            if request.target == gone.path:
                return status(410, "Gone")
            if request.target == phone.path and len(phone.requests) == 0:
                return status(429, "Too Many Requests", retry_after="1")
            return status(201, "Created")

        receiver.choose = choose
        channels = {"push": channel_of(receiver, backoff_cap_s=5.0)}
        async with running_stack(tmp_path, ("delivery",), channels=channels) as stack:
            bus = await stack.bus("admin")
            talk = conversation(bus)
            await laptop.subscribe(bus)
            await phone.subscribe(bus, is_silent=False)
            await gone.subscribe(bus)
            await other.subscribe(bus, "ben")
            await talk.user()
            send = talk.send(is_autonomous=True, channel="push")
            await talk.turn(send)
            receipt = await closed(bus, talk.key, send.id)
            assert receipt.outcome == "delivered"
            assert [len(one.requests) for one in (laptop, phone, gone, other)] == [1, 2, 1, 0]
            (shown,) = laptop.shown
            assert (shown["id"], shown["body"]) == (send.id, send.payload.text)
            assert shown["path"] == "/console/conversations/ann:vigil:t1#end"
            assert (shown["is_silent"], phone.shown[1]["is_silent"]) == (True, False)
            heads = laptop.requests[0].headers
            assert (heads["ttl"], heads["urgency"]) == ("86400", "normal")
            assert (heads["topic"], heads["content-encoding"]) == (send.id, "aes128gcm")
            public, claims = signed_by(laptop.requests[0])
            assert public == vapid.public_text(vapid.key_of(tmp_path))
            assert claims["aud"] == f"http://127.0.0.1:{receiver.port}"
            left = [one.subscription.endpoint for one in await subscriptions.of_person(bus, "ann")]
            assert left == [laptop.endpoint, phone.endpoint]
            tries = [one.state for one in await attempts(bus, talk.key, send.id)]
            assert tries == ["begun", "refused", "begun"]


def test_urgency_is_that_of_what_it_came_of() -> None:
    """What can wait doesn't wake a phone, and is dropped sooner; a reminder is for its time."""
    head: dict[str, Any] = {"id": "e", "session_key": "ann:vigil:t1", "created_at": AT}
    told = ToldPayload(origin="ann:vigil:_job-1", text="x", urgency="low")
    fired = TimerPayload(timer_id="a", generation=1, fire_at=AT)
    for event, expected in (
        (ToldEvent(payload=told, **head), ("low", 14_400)),
        (ToldEvent(payload=replace(told, urgency="high"), **head), ("high", 86_400)),
        (TimerFired(payload=fired, **head), ("high", 86_400)),
        (None, ("normal", 86_400)),
    ):
        made = notification_of(SAID, None, event, AT)
        assert (made.urgency, made.ttl_s) == expected


def test_a_notification_has_no_marks_of_markdown() -> None:
    """Nothing draws them there; a call's arguments stay as they would run."""
    said = replace(SAID, text="**Due** today:\n\n* [rent](https://bank.example)\n* `snake_case`")
    assert notification_of(said, None, None, AT).notification.body == (
        "Due today:\n• rent\n• snake_case"
    )
    call = approvals.request(input={"command": "rm **/*.o"})
    assert "rm **/*.o" in notification_of(said, call, None, AT).notification.body


async def test_one_browser_holds_up_nobody_else(tmp_path: Path) -> None:
    """A push service that fails again and again is one person's: the channel's circuit stays
    closed, and another's message goes out at its first try."""
    async with running_receiver() as receiver:
        broken, good = PushedBrowser(receiver, "broken"), PushedBrowser(receiver, "good")
        receiver.choose = lambda request, _: status(503 if request.target == broken.path else 201)
        channels = {"push": channel_of(receiver, attempts_max=8)}
        async with running_stack(tmp_path, ("delivery",), channels=channels) as stack:
            bus = await stack.bus("admin")
            await broken.subscribe(bus)
            await good.subscribe(bus, "ben")
            ann, ben = conversation(bus), conversation(bus, user="ben")
            for talk, outcome, tries in ((ann, "failed", 8), (ben, "delivered", 1)):
                await talk.user()
                send = talk.send(is_autonomous=True, channel="push")
                await talk.turn(send)
                assert (await closed(bus, talk.key, send.id)).outcome == outcome
                found = await attempts(bus, talk.key, send.id)
                assert sum(one.state == "begun" for one in found) == tries
            shared = [one async for one in circuits.each(bus, (circuits.SHARED,))]
            assert [one.state for one in shared if one.component == "channel:push"] in (
                [],
                ["closed"],
            )


async def test_what_is_asked_in_the_conversation_is_announced(tmp_path: Path) -> None:
    """Once somebody has what is unasked come to their browsers: they may have closed the page. With
    the request as the board has it, until it's decided; no other answer leaves the conversation."""
    async with running_receiver(status(201, "Created")) as receiver:
        channels = {"push": channel_of(receiver)}
        async with running_stack(tmp_path, ("delivery",), channels=channels) as stack:
            bus, browser = await stack.bus("admin"), PushedBrowser(receiver)
            talk = conversation(bus)
            await browser.subscribe(bus)
            asked = approvals.request(input={"command": "rm old"})
            entry = BoardEntry(entity=asked, turn_seq=1, at=asked.asked_at)
            await bus.publish(talk.key.board("approval", asked.id), encode(entry))
            text = f"To decide, say: accept {asked.name}, or: reject {asked.name}"
            await talk.user()
            unheard = _saying(talk.send(), text)
            await talk.turn(unheard)
            await talk.settled(unheard)
            await all_acked(bus)
            wanted = own.OwnSettings(channel="push", at=AT, by="ann")
            await own.put(bus, "ann", wanted, expect=0)
            await stack.stop("delivery")
            await stack.start("delivery")  # it has seen that
            plain, announced = talk.send(), _saying(talk.send(), text)
            await talk.turn(plain, announced)
            assert (await closed(bus, talk.key, announced.id)).outcome == "delivered"
            (shown,) = browser.shown
            assert shown["request"] == {"id": asked.id, "digest": asked.digest}
            assert shown["body"] == '| command: "rm old"'
            assert browser.requests[0].headers["urgency"] == "high"
            assert await talk.said_ids() == [unheard.id, plain.id, announced.id]
            await no_orders_left(bus)


def _saying(send: SendMessage, text: str) -> SendMessage:
    return replace(send, payload=replace(send.payload, text=text))


async def test_nobody_is_notified(tmp_path: Path) -> None:
    """Without a browser, or with one whose address leads where nothing may go, it's a dead letter
    at once, and no request is made."""
    async with running_receiver() as receiver:
        channels = {"push": channel_of(receiver), "strict": {"kind": "push"}}
        async with running_stack(tmp_path, ("delivery",), channels=channels) as stack:
            bus = await stack.bus("admin")
            talk = conversation(bus)
            await talk.user()
            none = talk.send(is_autonomous=True, channel="push")
            await talk.turn(none)
            assert (await closed(bus, talk.key, none.id)).outcome == "failed"
            await PushedBrowser(receiver).subscribe(bus)
            private = talk.send(is_autonomous=True, channel="strict")
            await talk.turn(private)
            found = await closed(bus, talk.key, private.id)
            assert found.outcome == "failed"
            assert "port" in found.reason
            assert len(await died(bus, count=2)) == 2
            assert receiver.requests == []


async def test_killed_after_the_request(tmp_path: Path) -> None:
    """Killed between the push service's answer and the receipt: the repeat has the same id and
    topic, so that it takes the message's place; on a channel that says it can't, it's ambiguous and
    isn't sent again."""
    async with running_receiver(status(201, "Created")) as receiver:
        once = channel_of(receiver, is_idempotent=False)
        sections = {"push": channel_of(receiver), "once": once}
        async with running_stack(tmp_path, (), channels=sections) as stack:
            lines = [
                f"[channels.{name}]\n" + "".join(
                    f"{key} = {msgspec.json.encode(value).decode()}\n" for key, value in one.items()
                )
                for name, one in sections.items()
            ]  # fmt: skip
            (tmp_path / "vigil.toml").write_text("\n".join(lines))
            bus = await stack.bus("admin")
            browser = PushedBrowser(receiver)
            await browser.subscribe(bus)
            outcomes = {}
            for thread, name in enumerate(sections):
                talk = conversation(bus, thread=f"t{thread}")
                await talk.user()
                send = talk.send(is_autonomous=True, channel=name)
                await talk.turn(send)
                await _killed(stack.broker.url, tmp_path)
                outcomes[name] = (talk, send)
            await stack.start("delivery")
            for name, (talk, send) in outcomes.items():
                found = await closed(bus, talk.key, send.id)
                assert found.outcome == ("delivered" if name == "push" else "ambiguous")
                assert len(await receipts(bus, talk.key, send.id)) == 1
            await no_orders_left(bus)
            (first, repeat, alone) = sorted(browser.shown, key=lambda one: one["path"])
            assert first == repeat
            assert alone["id"] == outcomes["once"][1].id
            topics = {one.headers["topic"] for one in browser.requests}
            assert topics == {send.id for _, send in outcomes.values()}


async def _killed(nats_url: str, home: Path) -> None:
    environment = os.environ | {
        "VIGIL_HOME": str(home),
        "NATS_URL": nats_url,
        "VIGIL_CRASH_AT": "delivery.attempt.sent:1",
    }
    process = await launched("services.delivery", environment)
    assert await asyncio.wait_for(process.wait(), 20) == crash.EXIT_CODE


def test_a_section_says_what_is_wrong() -> None:
    with pytest.raises(InvalidInput, match="https"):
        PushChannel(ports=(80, 443)).check_endpoint("http://push.example/x")
    with pytest.raises(InvalidInput, match=r"^endpoint: must begin with http"):
        PushChannel().check_endpoint("push.example")
    with pytest.raises(InvalidInput, match="public"):
        PushChannel().check_endpoint("https://127.0.0.1/x")
    with pytest.raises(InvalidInput, match="port"):
        PushChannel().check_endpoint("https://push.example:4222/x")
