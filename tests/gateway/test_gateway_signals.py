"""GET /api/signals: what a reader gets, once and without a gap, and whose."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec import structs

from services.gateway.insight.status import shown_to
from services.gateway.state import feed
from services.gateway.state.feed import RECENT_MAX, Feed, SignalReader
from services.gateway.state.selection import Selection, event_of
from tests.support.examples import repeats
from tests.support.gateway import WAIT_S, Gate, assert_problem, running_gateway, until
from vigil.contracts import Signal, SignalSource, decode_signal, encode
from vigil.observe.health import Health
from vigil.settings import tokens
from vigil.settings.tokens import Principal
from vigil.signals.kinds import KINDS
from vigil.subjects import Scope, SessionKey

ANN = "ann:vigil:t1"
AT = datetime(2026, 1, 5, tzinfo=UTC)


def signal(session: str, kind: str, number: int, **fields: Any) -> Signal:
    key = SessionKey.parse(session)
    return Signal(
        id=f"SESSIONS-{number}-{kind}",
        kind=kind,
        agent=key.agent,
        owner=key.user,
        at=AT + timedelta(seconds=number),
        source=SignalSource(stream="SESSIONS", seq=number),
        session_key=session,
        **fields,
    )


async def tell(gate: Gate, session: str, kind: str, number: int, **fields: Any) -> int:
    """Store a signal, as the projector does; returns its place."""
    data = encode(signal(session, kind, number, **fields))
    ack = await gate.admin.publish(SessionKey.parse(session).signal(kind), data)
    return ack.seq


class Stream:
    """An open stream, and what came on it."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()
        self.comments = 0

    async def event(self) -> dict[str, str]:
        """Return the next event; EOFError if the stream ends."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(WAIT_S):
            async for line in self._lines:
                if not line and "data" in fields:
                    return fields
                name, _, value = line.partition(": ")
                if line.startswith(":"):
                    self.comments += 1
                elif line and name != "retry":
                    fields[name] = value
        raise EOFError

    async def events(self, count: int) -> list[dict[str, str]]:
        return [await self.event() for _ in range(count)]

    async def ended(self) -> list[dict[str, str]]:
        """Return all events up to the end of the stream."""
        found = []
        with contextlib.suppress(EOFError):
            while True:
                found.append(await self.event())
        return found


@contextlib.asynccontextmanager
async def reading(
    client: httpx2.AsyncClient, headers: dict[str, str] | None = None, **query: Any
) -> AsyncIterator[Stream]:
    async with client.stream("GET", "/api/signals", params=query, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Stream(response)


def numbers(events: list[dict[str, str]]) -> list[int]:
    return [json.loads(event["data"])["source"]["seq"] for event in events]


async def test_an_event_is_a_signal_with_its_place_and_kind(gate: Gate) -> None:
    """SPEC C-4, P-5: id is the sequence of SIGNALS, event the kind, data the signal."""
    client = await gate.person("ann")
    async with reading(client) as stream:
        seq = await tell(gate, ANN, "message.sent", 7, text="The agent answered", subject="e1")
        event = await stream.event()
    assert event["id"] == str(seq)
    assert event["event"] == "message.sent"
    told = signal(ANN, "message.sent", 7, text="The agent answered", subject="e1")
    assert decode_signal(event["data"].encode()) == told


async def test_without_a_place_it_begins_now(gate: Gate) -> None:
    """P-5: what happened before is asked for."""
    client = await gate.person("ann")
    await tell(gate, ANN, "turn.committed", 1)
    async with reading(client) as stream:
        await tell(gate, ANN, "turn.committed", 2)
        assert numbers(await stream.events(1)) == [2]
    async with reading(client, after=0) as stream:
        assert numbers(await stream.events(2)) == [1, 2]


async def test_resuming_has_no_gap_and_no_repeat_while_signals_pour_in(gate: Gate) -> None:
    """C-4: Last-Event-ID, cut off again and again in the middle of everything."""
    client = await gate.person("ann")
    total = 1500

    async def pour() -> None:
        for begin in range(1, total + 1, 50):
            part = range(begin, min(begin + 50, total + 1))
            await asyncio.gather(*(tell(gate, ANN, "turn.committed", n) for n in part))

    pouring = asyncio.create_task(pour())
    seqs: list[int] = []
    last = "0"
    while len(seqs) < total:
        async with reading(client, {"Last-Event-ID": last}, after=0) as stream:
            for event in await stream.events(min(173, total - len(seqs))):
                seqs.append(int(event["id"]))
                last = event["id"]
    await pouring
    assert seqs == list(range(1, total + 1))


async def test_what_is_stored_is_read_to_the_end_and_no_further(gate: Gate) -> None:
    """P-5: follow=false ends; more than one page, and nothing at all."""
    client = await gate.person("ann")
    async with reading(client, follow="false") as stream:
        assert await stream.ended() == []
    await asyncio.gather(*(tell(gate, ANN, "turn.committed", n) for n in range(1100)))
    async with reading(client, follow="false") as stream:
        found = await stream.ended()
    assert [int(event["id"]) for event in found] == list(range(1, 1101))
    async with reading(client, follow="false", after=1095) as stream:
        assert len(await stream.ended()) == 5


async def test_filters(gate: Gate) -> None:
    """P-5: agent, kind (whole or half) and session narrow what is stored and what comes."""
    client = await gate.person("ann")
    sessions = (ANN, "ann:vigil:t2", "ann:other:t1")
    kinds = ("message.sent", "message.blocked", "timer.fired")

    async def all_of_them(begin: int) -> None:
        for number, (session, kind) in enumerate(product(sessions, kinds), start=begin):
            await tell(gate, session, kind, number)

    for query, expected in (
        ({"agent": "other"}, [7, 8, 9]),
        ({"kind": "message.*"}, [1, 2, 4, 5, 7, 8]),
        ({"kind": "timer.fired"}, [3, 6, 9]),
        ({"session": ANN}, [1, 2, 3]),
        ({"session": ANN, "kind": "message.blocked", "agent": "vigil"}, [2]),
    ):
        begin = await _last(gate)
        async with reading(client, **query) as stream:
            await all_of_them(1)
            assert numbers(await stream.events(len(expected))) == expected
        async with reading(client, **query, after=begin, follow="false") as stream:
            assert numbers(await stream.ended()) == expected


async def _last(gate: Gate) -> int:
    message = await gate.admin.get_last("SIGNALS", "signal.>")
    return 0 if message is None else message.seq


async def test_nobody_sees_anothers_signals(gate: Gate) -> None:
    """X-4, C-4: own signals only; an admin sees everybody's, or one user's."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    admin = await gate.person("root", is_admin=True)
    async with reading(ann) as to_ann, reading(admin) as to_admin:
        async with reading(admin, user="bob") as to_bobs_admin:
            await tell(gate, "bob:vigil:t1", "message.sent", 1)
            await tell(gate, ANN, "message.sent", 2)
            await tell(gate, "bob:vigil:t1", "message.sent", 3)
            assert numbers(await to_bobs_admin.events(2)) == [1, 3]
        assert numbers(await to_ann.events(1)) == [2]
        assert numbers(await to_admin.events(3)) == [1, 2, 3]
    for client, expected in ((ann, [2]), (bob, [1, 3]), (admin, [1, 2, 3])):
        async with reading(client, follow="false") as stream:
            assert numbers(await stream.ended()) == expected
    assert_problem(await ann.get("/api/signals", params={"user": "bob"}), 403, "user")
    assert_problem(await ann.get("/api/signals", params={"session": "bob:vigil:t1"}), 404)
    nobody = await gate.http()
    assert_problem(await nobody.get("/api/signals"), 401)


BAD_FILTERS = (
    ({"kind": "message"}, "kind"),
    ({"kind": "message.>"}, "kind"),
    ({"kind": "*.sent"}, "kind"),
    ({"kind": "nothing.*"}, "kind"),
    ({"agent": "a.b"}, "agent"),
    ({"agent": "*"}, "agent"),
    ({"agent": ""}, "agent"),
    ({"session": "ann:vigil"}, "session_key"),
    ({"session": ANN, "agent": "other"}, "session"),
    ({"user": "*"}, "user"),
    ({"after": "-1"}, "after"),
    ({"after": "x"}, "after"),
    ({"follow": "maybe"}, "follow"),
)


async def test_bad_filters_are_refused_by_name(gate: Gate) -> None:
    """X-6, S-2: problem+json, and nothing of it becomes a subject."""
    client = await gate.person("ann")
    for query, field in BAD_FILTERS:
        assert_problem(await client.get("/api/signals", params=query), 422, field)


async def test_a_bad_last_event_id_is_refused(gate: Gate) -> None:
    """X-6: also one of another stream's making."""
    client = await gate.person("ann")
    for bad in ("x", "-3", "1e3", "9" * 20):
        answer = await client.get("/api/signals", headers={"Last-Event-ID": bad})
        assert_problem(answer, 422, "Last-Event-ID")


async def test_a_revoked_token_ends_the_stream(gate: Gate) -> None:
    """X-4: as sockets do, and without another signal coming."""
    token = await gate.token("ann")
    client = await gate.http(token)
    async with reading(client) as stream:
        await tell(gate, ANN, "message.sent", 1)
        await stream.event()
        await tokens.revoke(gate.operator, token)
        assert await stream.ended() == []
    assert_problem(await client.get("/api/signals"), 401)


async def test_a_slow_reader_is_ended_and_loses_nothing(tmp_path: Path) -> None:
    """D-1: what waits is bounded; the reader comes back where they were."""
    total = 600
    async with running_gateway(tmp_path, socket_queue_max=20) as gate:
        client = await gate.person("ann")
        token = await gate.token("ann")
        reader, writer = await asyncio.open_connection("127.0.0.1", gate.port, limit=2**24)
        request = f"GET /api/signals HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}"
        writer.write(f"{request}\r\n\r\n".encode())
        await reader.readuntil(b"id: 0\n\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        for begin in range(0, total, 20):
            part = range(begin, begin + 20)
            await asyncio.gather(
                *(tell(gate, ANN, "message.sent", n, text="x" * 20_000) for n in part)
            )
        async with reading(client, after=0) as other:
            assert len(await other.events(total)) == total
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(WAIT_S):
            body = await reader.readuntil(b"\r\n0\r\n\r\n")
        writer.close()
        ids = [int(line[4:]) for line in body.split(b"\n") if line.startswith(b"id: ")]
        assert ids == list(range(1, len(ids) + 1))
        assert len(ids) < total
        async with reading(client, {"Last-Event-ID": str(ids[-1])}) as stream:
            rest = [int(event["id"]) for event in await stream.events(total - len(ids))]
        assert ids + rest == list(range(1, total + 1))


async def test_streams_end_when_the_gateway_stops_and_share_one_follower(gate: Gate) -> None:
    """X-5: nobody holds up the end; readers of what comes cost the broker nothing each."""
    client = await gate.person("ann")
    async with contextlib.AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(reading(client)) for _ in range(5)]
        seq = await tell(gate, ANN, "message.sent", 1)
        assert [(await stream.event())["id"] for stream in streams] == [str(seq)] * 5
        info = await gate.admin.api("STREAM.INFO.SIGNALS", {})
        assert info["state"]["consumer_count"] == 1
        await gate.stack.stop("gateway")
        assert [await stream.ended() for stream in streams] == [[]] * 5


async def test_the_last_reader_ends_the_following(gate: Gate) -> None:
    """X-7: a gateway that nobody reads from reads nothing."""

    async def consumers(count: int) -> bool:
        info = await gate.admin.api("STREAM.INFO.SIGNALS", {})
        return bool(info["state"]["consumer_count"] == count)

    client = await gate.person("ann")
    for _ in range(2):
        async with reading(client):
            await until(lambda: consumers(1), "followed")
        await until(lambda: consumers(0), "not followed any more")


@pytest.mark.usefixtures("own_broker")
async def test_it_goes_on_over_a_broker_that_was_killed(gate: Gate) -> None:
    """X-5: the stream stays open, and what was stored meanwhile comes."""
    client = await gate.person("ann")
    gate.stack.broker.watch()
    async with reading(client) as stream:
        await tell(gate, ANN, "message.sent", 1)
        await stream.event()
        gate.stack.broker.kill()
        for number in (2, 3):
            await _tell_at_last(gate, number)
        assert sorted({*numbers(await stream.events(2))}) == [2, 3]


async def _tell_at_last(gate: Gate, number: int) -> None:
    async def is_told() -> bool:
        with contextlib.suppress(Exception):
            await tell(gate, ANN, "message.sent", number)
            return True
        return False

    await until(is_told, "the broker is back")


async def test_a_comment_shows_that_the_stream_lives(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-5: proxies and clients end what is silent for long."""
    monkeypatch.setattr(feed, "HEARTBEAT_S", 0.05)
    client = await gate.person("ann")
    async with reading(client) as stream:
        waiting = asyncio.create_task(stream.event())
        await until(lambda: _is(stream.comments >= 3), "three comments")
        await tell(gate, ANN, "message.sent", 1)
        assert json.loads((await waiting)["data"])["source"]["seq"] == 1


async def test_the_document_describes_the_stream(gate: Gate) -> None:
    """P-5: what the events hold, and the parameters."""
    document = (await (await gate.http()).get("/openapi.json")).json()
    operation = document["paths"]["/api/signals"]["get"]
    (media_type,) = operation["responses"]["200"]["content"]
    assert media_type == "text/event-stream"
    names = {parameter["name"] for parameter in operation["parameters"]}
    assert names == {"agent", "kind", "session", "user", "after", "follow", "last-event-id"}
    assert "message.sent" in str(operation["parameters"])
    assert {"id", "kind", "source"} <= set(document["components"]["schemas"]["Signal"]["required"])


# ---------------------------------------------------------------- the parts alone


def test_patterns_of_others_are_not_shown() -> None:
    """X-4: they name sessions; an admin sees them all."""
    found = [{"kind": "flood", "session_key": key} for key in (ANN, "bob:vigil:t1")]
    replica = Health(
        service="cortex", instance="i", pid=1, version="1", ready=True,
        facts={"model": "m", "patterns": found},
    )  # fmt: skip
    bob = Principal(user="bob", is_admin=False, token_id="t")
    assert shown_to(bob, replica).facts == {"model": "m", "patterns": found[1:]}
    assert shown_to(structs.replace(bob, is_admin=True), replica) is replica


@pytest.mark.repeated
def test_the_brokers_filter_and_ours_agree() -> None:
    """C-4: a reader gets the same while catching up and afterwards. In `make test` every kind is in
    one session, and a few are in each."""
    few = [*KINDS][:: repeats(1, fast=8)]
    told = {*product(("a", "b"), ("x", "y"), ("t", "u"), few), *product("b", "y", "t", KINDS)}
    events = [
        event_of(1, SessionKey(user, agent, thread).signal(kind), b"{}")
        for user, agent, thread, kind in sorted(told)
    ]
    halves = {f"{kind.partition('.')[0]}.*" for kind in KINDS}
    choices: tuple[Any, ...] = (
        (None, "a"), (None, "x"), (None, "t"), (None, *KINDS, *halves),
    )  # fmt: skip
    for user, agent, thread, kind in product(*choices):
        more = (Scope("y", "b"),) if user else ()  # a team's
        whose = (Scope(agent or "*", user or "*"), *more)
        selection = Selection(whose=whose, thread=thread, kind=kind)
        for event in events:
            subject = event.session.signal(event.kind)
            assert selection.takes(event) == any(
                matches(one, subject) for one in selection.subjects
            ), selection


def matches(filter_: str, subject: str) -> bool:
    """NATS: `*` stands for one token."""
    pairs = zip(filter_.split("."), subject.split("."), strict=True)
    return all(wanted in ("*", token) for wanted, token in pairs)


async def test_stepping_over_needs_what_came_since(gate: Gate) -> None:
    """C-4: a reader who is too far behind for the newest signals reads the log again."""
    shared = Feed(gate.admin, asyncio.Event())
    await shared.open()
    try:
        count = RECENT_MAX + 10
        await asyncio.gather(*(tell(gate, ANN, "turn.committed", n) for n in range(count)))
        await until(lambda: _is(shared.seq == count), "handed out")
        late = SignalReader(Selection(whose=(Scope("*", "ann"),)), count)
        assert not shared.join(late, 9)
        assert shared.readers == 0
        assert shared.join(late, 10)
        assert (await late.take()).count(b"id: ") == RECENT_MAX
        shared.leave(late)
    finally:
        await shared.close()


async def _is(condition: bool) -> bool:
    return condition
