"""The WebSocket: what a client gets, once, over any number of connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from services.gateway.state import edge
from services.gateway.state.cursors import Cursors
from tests.support.gateway import Gate, frame_of, running_gateway, until
from vigil.contracts import UserMessage, decode_event
from vigil.topology import CONSUMERS

ANN = "ann:vigil:t1"
LIVE = "live.vigil.ann.t1"


async def _send(socket: ClientConnection, **frame: Any) -> None:
    await socket.send(json.dumps(frame))


async def _messages(socket: ClientConnection, count: int) -> list[dict[str, Any]]:
    return [await frame_of(socket, "message") for _ in range(count)]


async def _until_closed(socket: ClientConnection) -> AsyncIterator[str | bytes]:
    with contextlib.suppress(ConnectionClosed):
        async for frame in socket:
            yield frame


async def _is_quiet(socket: ClientConnection) -> bool:
    """Whether nothing more comes: an unusable frame of ours is answered after all before it."""
    await socket.send("?")
    frame = await frame_of(socket)
    return bool(frame["type"] == "error")


async def _cursors(gate: Gate) -> list[int]:
    found = await gate.admin.read("KV_CURSORS", ["$KV.CURSORS.>"])
    return [int(message.data) for message in found]


async def test_a_message_is_accepted_and_an_answer_arrives(gate: Gate) -> None:
    """SPEC P-5, S-9: message in, accepted with its place; message out with tag and cursor."""
    socket = await gate.socket(await gate.token("ann"), ANN)
    await _send(socket, type="message", text="hello", id="m1")
    accepted = await frame_of(socket)
    (stored,) = await gate.stored(ANN)
    event = decode_event(stored.data)
    assert isinstance(event, UserMessage)
    assert event.payload.text == "hello"
    assert event.payload.is_keyed
    assert accepted == {
        "type": "accepted", "id": "m1", "event_id": event.id, "seq": stored.seq,
    }  # fmt: skip
    ack = await gate.say(ANN, "hi", effect_id="e1", caused_by=event.id, tag="Agent follow-up")
    frame = await frame_of(socket)
    assert frame.pop("at")
    assert frame == {
        "type": "message", "id": "e1", "text": "hi", "cursor": ack.seq, "caused_by": event.id,
        "tag": "Agent follow-up",
    }  # fmt: skip


async def test_a_repeated_id_is_stored_once_also_over_http(gate: Gate) -> None:
    """SPEC X-5: the id of a frame is an idempotency key."""
    token = await gate.token("ann")
    answers = []
    for _ in range(2):
        socket = await gate.socket(token, ANN)
        await _send(socket, type="message", text="hello", id="m1")
        answers.append(await frame_of(socket))
        await socket.close()
    client = await gate.http(token)
    keyed = {"text": "hello", "idempotency_key": "m1"}
    third = (await client.post(f"/api/sessions/{ANN}/messages", json=keyed)).json()
    assert answers[0] == answers[1]
    assert third["event_id"] == answers[0]["event_id"]
    assert len(await gate.stored(ANN)) == 1
    socket = await gate.socket(token, ANN)
    await _send(socket, type="message", text="another", id="m1")
    refused = await frame_of(socket)
    assert (refused["type"], refused["field"], refused["id"]) == ("error", "id", "m1")


async def test_messages_wait_for_each_client_and_come_once(gate: Gate) -> None:
    """SPEC S-10: with the socket closed they wait; every client has a cursor of its own."""
    token = await gate.token("ann")
    seqs = [(await gate.say(ANN, str(n), effect_id=f"e{n}")).seq for n in range(4)]
    phone = await gate.socket(token, ANN, client="phone")
    assert [frame["cursor"] for frame in await _messages(phone, 4)] == seqs
    await _send(phone, type="ack", cursor=seqs[1])
    await phone.close()
    await gate.say(ANN, "4", effect_id="e4")
    phone = await gate.socket(token, ANN, client="phone")
    assert [frame["text"] for frame in await _messages(phone, 3)] == ["2", "3", "4"]
    assert await _is_quiet(phone)
    laptop = await gate.socket(token, ANN, client="laptop")
    assert [frame["text"] for frame in await _messages(laptop, 5)] == list("01234")
    nameless = await gate.socket(token, ANN)
    assert len(await _messages(nameless, 5)) == 5


async def test_only_an_acknowledgement_moves_the_cursor_and_only_forward(gate: Gate) -> None:
    """SPEC S-10: what was sent and not acknowledged comes again; an old ack changes nothing."""
    token = await gate.token("ann")
    seqs = [(await gate.say(ANN, str(n), effect_id=f"e{n}")).seq for n in range(3)]
    socket = await gate.socket(token, ANN)
    await _messages(socket, 3)
    await socket.close()
    socket = await gate.socket(token, ANN)
    await _messages(socket, 3)
    await _send(socket, type="ack", cursor=seqs[2])
    await _send(socket, type="ack", cursor=seqs[0])
    assert await _is_quiet(socket)
    await until(lambda: _has_cursor(gate, seqs[2]), "the cursor is written behind")
    await _send(socket, type="ack", cursor=seqs[1])
    await socket.close()
    socket = await gate.socket(token, ANN)
    assert await _is_quiet(socket)
    assert await _cursors(gate) == [seqs[2]]


async def _has_cursor(gate: Gate, seq: int) -> bool:
    return await _cursors(gate) == [seq]


async def test_a_cursor_in_the_url_overrides(gate: Gate) -> None:
    """SPEC P-5: ?cursor="""
    token = await gate.token("ann")
    seqs = [(await gate.say(ANN, str(n), effect_id=f"e{n}")).seq for n in range(3)]
    socket = await gate.socket(token, ANN, cursor=seqs[1])
    assert [frame["text"] for frame in await _messages(socket, 1)] == ["2"]
    assert await _is_quiet(socket)
    for bad in ("-1", "x", "1e3", "9" * 20, "٣"):
        with pytest.raises(InvalidStatus) as refused:
            await gate.socket(token, ANN, cursor=bad)
        assert refused.value.response.status_code == 422


async def test_an_ack_beyond_what_was_sent_is_refused(gate: Gate) -> None:
    """SPEC S-10: a client can't skip what it never got."""
    socket = await gate.socket(await gate.token("ann"), ANN)
    ack = await gate.say(ANN, "x", effect_id="e1")
    await _messages(socket, 1)
    for cursor in (ack.seq + 1, 2**53, -1, 2**70, "1", None, 1.5):
        await _send(socket, type="ack", cursor=cursor)
        assert (await frame_of(socket))["field"] == "cursor"


async def test_tokens_stream_to_all_sockets_of_the_session(gate: Gate) -> None:
    """SPEC I-3: as they come, to each; a broken one is dropped; the session's own only."""
    token = await gate.token("ann")
    sockets = [await gate.socket(token, ANN, client=str(n)) for n in range(2)]
    other = await gate.socket(token, "ann:vigil:t2")
    await gate.admin.send(LIVE, b'{"turn":3,"attempt":1,"text":"Hel"}')
    await gate.admin.send(LIVE, b"{broken")
    await gate.admin.send(LIVE, b'{"turn":3,"attempt":1,"text":"lo"}')
    for socket in sockets:
        texts = [await frame_of(socket) for _ in range(2)]
        assert texts[0] == {"type": "token", "turn": 3, "attempt": 1, "text": "Hel"}
        assert texts[1]["text"] == "lo"
    assert await _is_quiet(other)


async def test_how_far_a_call_is_passes_by(gate: Gate) -> None:
    """X-1: told to sockets of the session as it comes, in a line, and stored nowhere."""
    socket = await gate.socket(await gate.token("ann"), ANN)
    other = await gate.socket(await gate.token("ann"), "ann:vigil:t2", client="other")
    told = {"call_id": "c", "tool": "files__index", "done": 3, "total": 4, "text": "<b>a.txt"}
    for more in (b"{broken", json.dumps(told).encode()):
        await gate.admin.send("doing.vigil.ann.t1", more)
    assert await frame_of(socket) == {
        "type": "progress", "call_id": "c", "tool": "files__index", "text": "75 %: <b>a.txt",
    }  # fmt: skip
    await gate.admin.send("doing.vigil.ann.t1", json.dumps(told | {"is_over": True}).encode())
    assert (await frame_of(socket))["is_over"]
    assert await _is_quiet(other)
    assert await gate.stored(ANN) == []


async def test_sockets_share_a_consumer_and_closing_frees_everything(gate: Gate) -> None:
    """All sockets of a gateway have one consumer; no subscription outlives its socket."""
    token = await gate.token("ann")

    async def consumers() -> list[str]:
        names = await gate.admin.api("CONSUMER.NAMES.SESSIONS", {})
        durable = {consumer.name for consumer in CONSUMERS}
        return [name for name in names["consumers"] if name not in durable]

    sockets = [await gate.socket(token, ANN, client=str(n)) for n in range(3)]
    shared = await consumers()
    assert len(shared) == 1
    await sockets[0].close()
    await gate.admin.send(LIVE, b'{"turn":1,"attempt":1,"text":"x"}')
    assert (await frame_of(sockets[1]))["text"] == "x"
    sockets[1].transport.abort()
    await sockets[2].close()
    again = await gate.socket(token, ANN)
    await gate.admin.send(LIVE, b'{"turn":2,"attempt":1,"text":"y"}')
    assert (await frame_of(again))["text"] == "y"
    assert await consumers() == shared


BAD_FRAMES: list[tuple[str | bytes, str]] = [
    ("", "body"),
    ("no json", "body"),
    ("[]", "body"),
    ("{}", "type"),
    ('{"type":"launch"}', "type"),
    ('{"type":"subscribe","session":"bob:vigil:t1"}', "type"),
    ('{"type":"message"}', "text"),
    ('{"type":"message","text":""}', "text"),
    ('{"type":"message","text":"a","session":"bob:vigil:t1"}', "session"),
    ('{"type":"message","text":"\\ud800"}', "body"),
    ('{"type":"message","text":"a","id":""}', "id"),
    ('{"type":"ack"}', "cursor"),
    ('{"type":"message","text":' + "[" * 5000, "text"),
    (b'{"type":"message","text":"binary"}', "frame"),
    ('{"type":"message","text":"' + "x" * 70_000 + '"}', "text"),
]


async def test_a_broken_frame_is_answered_and_the_socket_stays(gate: Gate) -> None:
    """SPEC X-6; RELIABILITY S2: also an attempt to reach another session mid-socket."""
    socket = await gate.socket(await gate.token("ann"), ANN)
    for frame, field in BAD_FRAMES:
        await socket.send(frame)
        answer = await frame_of(socket)
        assert answer["type"] == "error"
        assert answer["field"] == field, answer
        assert answer["detail"]
    await _send(socket, type="message", text="still here", id="1")
    assert (await frame_of(socket))["type"] == "accepted"
    assert len(await gate.stored(ANN)) == 1
    assert await gate.stored("bob:vigil:t1") == []


async def test_a_frame_too_large_closes(gate: Gate) -> None:
    """SPEC X-6."""
    socket = await gate.socket(await gate.token("ann"), ANN)
    await socket.send("x" * 300_000)
    with pytest.raises(ConnectionClosed) as closed:
        await asyncio.wait_for(socket.recv(), 5)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


async def test_sockets_that_cannot_be(gate: Gate) -> None:
    """SPEC S-2, X-6."""
    token = await gate.token("ann")
    bad = ["", "ann", "ann:vigil:*", "ann:vigil:_mind"]
    for session, client in [*((key, "") for key in bad), (ANN, "c" * 257)]:
        with pytest.raises(InvalidStatus) as refused:
            await gate.socket(token, session, client=client)
        assert refused.value.response.status_code == 422


async def test_the_rate_holds_on_a_socket_too(tmp_path: Path) -> None:
    """SPEC X-6."""
    async with running_gateway(tmp_path, rate_per_s=0.1, rate_burst=3) as gate:
        socket = await gate.socket(await gate.token("ann"), ANN)
        for n in range(3):
            await _send(socket, type="message", text="x", id=str(n))
        frames = [await frame_of(socket) for _ in range(3)]
        assert [frame["type"] for frame in frames] == ["accepted", "accepted", "error"]
        assert frames[2]["status"] == 429


async def test_a_slow_reader_is_closed_and_loses_nothing(tmp_path: Path) -> None:
    """SPEC S-10; RELIABILITY S2: bounded, closed with 1013, and all there on the next visit."""
    async with running_gateway(tmp_path, socket_queue_max=10) as gate:
        token = await gate.token("ann")
        slow = await gate.socket(token, ANN, max_queue=1)
        for batch in range(20):
            numbers = range(batch * 20, batch * 20 + 20)
            await asyncio.gather(*(gate.say(ANN, "x" * 60_000, effect_id=f"e{n}") for n in numbers))
        async with asyncio.timeout(20):
            got = [json.loads(frame) async for frame in _until_closed(slow)]
        assert slow.close_code == 1013
        assert 0 < len(got) < 400
        again = await gate.socket(token, ANN, cursor=got[-1]["cursor"])
        rest = await _messages(again, 400 - len(got))
        ids = [frame["id"] for frame in got + rest]
        assert len(set(ids)) == 400


async def test_catching_up_goes_at_the_readers_pace(tmp_path: Path) -> None:
    """SPEC S-10: more waits than the queue holds, and a reader that reads gets it all."""
    async with running_gateway(tmp_path, socket_queue_max=5) as gate:
        for n in range(300):
            await gate.say(ANN, str(n), effect_id=f"e{n}")
        socket = await gate.socket(await gate.token("ann"), ANN)
        texts = [frame["text"] for frame in await _messages(socket, 300)]
        assert texts == [str(n) for n in range(300)]


async def test_an_unreadable_record_is_skipped(gate: Gate) -> None:
    """SPEC X-6: poison on the bus doesn't stop what comes after it."""
    await gate.admin.publish("session.vigil.ann.t1.out.said.bad", b"\xff{nonsense")
    await gate.say(ANN, "good", effect_id="e1")
    socket = await gate.socket(await gate.token("ann"), ANN)
    assert (await frame_of(socket))["text"] == "good"
    client = await gate.person("ann")
    found = (await client.get(f"/api/sessions/{ANN}")).json()["messages"]
    assert [message["text"] for message in found] == ["good"]
    records = (await client.get(f"/api/sessions/{ANN}/timeline")).json()["records"]
    assert set(records[0]["data"]) == {"unreadable"}


async def test_a_cursor_never_goes_back_whoever_writes(gate: Gate) -> None:
    """SPEC S-10: two gateways and one client: the later cursor stays."""
    one, two = Cursors(gate.admin), Cursors(await gate.stack.bus("gateway"))
    assert [await one.load("a.b.c.d"), await two.load("a.b.c.d")] == [0, 0]
    for cursors, seq in [(one, 5), (two, 9), (one, 7), (two, 3)]:
        cursors.move("a.b.c.d", seq)
        await cursors.write()
    assert await Cursors(gate.admin).load("a.b.c.d") == 9
    one.move("a.b.c.d", 12)
    await one.release("a.b.c.d")
    assert await two.load("a.b.c.d") == 12


async def test_nobody_takes_all_the_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RELIABILITY S16: sockets and streams count together, and each gives its place back."""
    monkeypatch.setattr(edge, "OPEN_OF_USER_MAX", 2)
    monkeypatch.setattr(edge, "OPEN_MAX", 3)
    async with running_gateway(tmp_path) as gate:
        ann, bob = await gate.token("ann"), await gate.token("bob")
        first = await gate.socket(ann, ANN)
        client = await gate.http(ann)
        async with client.stream("GET", "/api/signals") as stream:
            assert stream.status_code == 200
            with pytest.raises(InvalidStatus) as refused:
                await gate.socket(ann, ANN)
            assert refused.value.response.status_code == 429
            await gate.socket(bob, "bob:vigil:t1")
            with pytest.raises(InvalidStatus) as refused:
                await gate.socket(bob, "bob:vigil:t2")
            assert refused.value.response.status_code == 503
        await first.close()

        async def is_let_in() -> bool:
            try:
                await gate.socket(ann, ANN)
            except InvalidStatus:
                return False
            return True

        await until(is_let_in, "the places are free again")
