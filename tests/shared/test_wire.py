"""What comes in over a connection is parted right wherever a read ends."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import nats.errors
import pytest

from tests.support.stack import Stack
from vigil.bus.bus import BusError
from vigil.bus.connection import Connection
from vigil.bus.wire import AtOnce
from vigil.errors import Unavailable

CAME = (
    b"MSG a.b 1 5\r\nhello\r\n"
    b"HMSG a.c 1 re.ply 18 20\r\nNATS/1.0\r\nk: v\r\n\r\nhi\r\n"
    b"PING\r\n"
    b"MSG a.\x0b 1 4\r\n\r\n\r\n\r\n"
    b"HMSG a.d 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"
)
HEARD = [
    ("a.b", "", b"hello", b""),
    ("a.c", "re.ply", b"hi", b"NATS/1.0\r\nk: v\r\n\r\n"),
    ("a.\x0b", "", b"\r\n\r\n", b""),
    ("a.d", "", b"", b"NATS/1.0 503\r\n\r\n"),
]


def listening(heard: list[Any], pings: list[Any]) -> Connection:
    connection = Connection()
    connection.hearers[1] = lambda *message: heard.append(message)

    async def ping() -> None:
        pings.append(len(heard))

    connection._process_ping = ping  # type: ignore[method-assign]
    return connection


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, 1000])
async def test_messages_are_parted_wherever_a_read_ends(size: int) -> None:
    heard: list[Any] = []
    pings: list[Any] = []
    connection = listening(heard, pings)
    for at in range(0, len(CAME), size):
        await connection._ps.parse(CAME[at : at + size])
    assert heard == HEARD
    assert pings == [2]


@pytest.mark.parametrize("line", [b"MSG a.b 1\r\n", b"MSG a.b x 5\r\nhello\r\n", b"NONSENSE\r\n"])
async def test_what_is_no_protocol_is_told(line: bytes) -> None:
    with pytest.raises(nats.errors.ProtocolError):
        await listening([], [])._ps.parse(line)


@pytest.mark.parametrize("seed", range(20))
async def test_what_comes_at_once_keeps_its_order(seed: int) -> None:
    """Messages that are heard overtake nothing else, be it parsed already or not."""
    chance = random.Random(seed)
    came: list[tuple[str, bytes]] = []
    connection = Connection()
    connection.hearers[1] = lambda subject, reply, data, headers: came.append((subject, data))

    async def ping() -> None:
        await asyncio.sleep(0)
        came.append(("PING", b""))

    async def unheard(sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        await asyncio.sleep(0)
        came.append((subject.decode(), data))

    connection._process_ping = ping  # type: ignore[method-assign]
    connection._process_msg = unheard  # type: ignore[assignment]
    reader = asyncio.StreamReader()
    socket = AtOnce(connection._arrivals, reader, asyncio.StreamReaderProtocol(reader))

    async def parse() -> None:
        while data := await reader.read(32):
            await connection._arrivals.parse(data)

    parsing = asyncio.create_task(parse())
    sent = [(chance.choice(("heard", "PING", "unheard")), b"%d" % n) for n in range(60)]
    whole = b"".join(
        b"PING\r\n" if kind == "PING"
        else b"MSG %s %d %d\r\n%s\r\n" % (kind.encode(), 1 + (kind == "unheard"), len(data), data)
        for kind, data in sent
    )  # fmt: skip
    while whole:
        size = chance.choice((1, 5, 20, 100, 300))
        socket.data_received(whole[:size])
        whole = whole[size:]
        for _ in range(chance.choice((0, 0, 1, 5))):
            await asyncio.sleep(0)
    reader.feed_eof()
    await parsing
    assert came == [(kind, b"" if kind == "PING" else data) for kind, data in sent]


async def test_what_came_in_part_is_forgotten_with_its_connection() -> None:
    heard: list[Any] = []
    connection = listening(heard, [])
    await connection._ps.parse(b"MSG a.b 1 500\r\nhel")
    connection._ps.reset()
    await connection._ps.parse(b"MSG a.b 1 2\r\nhi\r\n")
    assert heard == [("a.b", "", b"hi", b"")]


async def test_a_fault_of_who_hears_loses_nothing_that_follows() -> None:
    heard: list[Any] = []
    connection = listening(heard, [])
    told: list[Exception] = []

    def fail(*_: Any) -> None:
        raise RuntimeError("a fault")

    async def tell(error: Exception) -> None:
        told.append(error)

    connection.hearers[2] = fail
    connection._error_cb = tell
    await connection._ps.parse(b"MSG a.b 2 2\r\nhi\r\nMSG a.b 1 2\r\nhi\r\n")
    assert [str(error) for error in told] == ["a fault"]
    assert len(heard) == 1


async def test_more_than_a_socket_takes_is_all_stored(bare: Stack) -> None:
    """X-5: what is written faster than it's taken waits, and keeps its order."""
    bus = await bare.bus("admin")
    data = bytes(100_000)
    acks = await asyncio.gather(
        *(bus.publish(f"session.vigil.a.t.in.said.s{n}", data) for n in range(100))
    )
    assert [ack.seq for ack in acks] == sorted(ack.seq for ack in acks)
    stored = await bus.read("SESSIONS", ["session.vigil.a.t.in.>"])
    assert [m.subject.rpartition(".")[2] for m in stored] == [f"s{n}" for n in range(100)]
    assert all(m.data == data for m in stored)


async def test_a_header_ends_no_line_and_a_subject_no_command(bare: Stack) -> None:
    bus = await bare.bus("admin")
    subject = "session.vigil.a.t.in.said.user"
    await bus.publish(subject, b"x", {"mode": " a\r\nNats-TTL: 1s\n "})
    found = await bus.get_last("SESSIONS", subject)
    assert found is not None
    assert found.headers == {"mode": "a  Nats-TTL: 1s"}
    for bad in ("", "a b", "a\r\nPUB b"):
        with pytest.raises(Unavailable):
            await bus.publish(bad, b"x")
    with pytest.raises(Unavailable):
        await bus.publish(subject, b"x", {"a b": "c"})
    with pytest.raises(Unavailable):
        await bus.send(subject, b"x", "re ply")
    with pytest.raises((BusError, Unavailable)):
        await bus.publish("no.stream.here", b"x")
