"""A broker that stands still, and goes on: nobody stays deaf after it (SPEC X-5)."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import nats.errors
import pytest

from tests.support.pauses import pauses
from tests.support.stack import Stack
from vigil.bus import bus as bus_module
from vigil.bus import connection, consumers
from vigil.bus.bus import Bus
from vigil.errors import Unavailable
from vigil.subjects import SessionKey
from vigil.topology import DELIVERY_TURNS, SCHEDULER_TURNS, WAKE

KEY = SessionKey("ann", "vigil", "t1")


async def publish(bus: Bus, data: bytes) -> None:
    """Publish to the session until somebody confirms it."""
    while True:
        with contextlib.suppress(Unavailable):
            await bus.publish(KEY.turn, data, msg_id=data.decode())
            return


@pytest.mark.usefixtures("own_broker")
async def test_who_gave_up_waiting_in_a_stall_makes_nobody_deaf(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to a ping whose sender is gone came in, and ended the reading for 25 s."""
    monkeypatch.setattr(consumers, "DRAIN_TIMEOUT_S", 0.01)
    bus = await bare.bus("admin")
    follower = await bus.follow("SESSIONS", [KEY.turn], 1)
    pullers = [await bus.pull(one) for one in (SCHEDULER_TURNS, DELIVERY_TURNS)]
    leaving = [await bus.pull(WAKE) for _ in range(3)]
    before = len(bus.connection._subs)
    await bare.broker.pause()
    try:
        await asyncio.gather(*(one.close() for one in leaving))
    finally:
        await bare.broker.unpause()
    async with asyncio.timeout(10):
        await publish(bus, b"after")
        got = [await anext(one) for one in (follower, *pullers)]
    assert {message.data for message in got} == {b"after"}
    assert bus.reconnects == 0
    assert len(bus.connection._subs) == before - len(leaving)


async def test_a_connection_that_nobody_reads_is_made_anew(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fault ends the reading: it doesn't take missing pongs, and 30 s, to see it."""
    bus = await bare.bus("admin")
    follower = await bus.follow("SESSIONS", [KEY.turn], 1)

    def fail(data: bytes) -> bytes:
        monkeypatch.undo()
        raise RuntimeError("a fault in the parser")

    async def end(data: bytes) -> None:
        fail(data)

    for name, fault in (("take", fail), ("parse", end)):
        monkeypatch.setattr(bus.connection._arrivals, name, fault)
        before = bus.reconnects
        with contextlib.suppress(nats.errors.Error, TimeoutError):
            await bus.connection.flush(timeout=0.3)  # its pong is no message, and so is parsed
        async with asyncio.timeout(10):
            await publish(bus, name.encode())
            assert (await anext(follower)).data == name.encode()
        assert bus.reconnects == before + 1


@pytest.mark.usefixtures("own_broker")
async def test_nobody_listens_after_a_stall_cut_the_asking_short(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or who tries again would hear everything twice."""
    monkeypatch.setattr(bus_module, "LISTEN_TIMEOUT_S", 0.05)
    bus = await bare.bus("admin")
    heard: list[Any] = []

    async def hear(msg: Any) -> None:
        heard.append(msg.data)

    await bare.broker.pause()
    try:
        with pytest.raises(Unavailable):
            await bus.listen("live.a.b.c", hear)
    finally:
        await bare.broker.unpause()
    monkeypatch.setattr(bus_module, "LISTEN_TIMEOUT_S", 5.0)
    async with asyncio.timeout(10):
        await bus.listen("live.a.b.c", hear)
        await bus.send("live.a.b.c", b"once")
        await bus.connection.flush()
        while not heard:
            await bus.connection.flush()
    assert heard == [b"once"]


@pytest.mark.usefixtures("own_broker")
async def test_a_broker_that_answers_no_ping_is_left(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After two that nobody answered the connection is made anew, whatever its socket says."""
    monkeypatch.setattr(connection, "until_next", lambda *_: 0.05)
    bus = await bare.bus("admin")
    pause_s = pauses()
    await bare.broker.pause()
    try:
        async with asyncio.timeout(10):
            while bus.is_connected:
                await asyncio.sleep(next(pause_s))
    finally:
        await bare.broker.unpause()
    async with asyncio.timeout(10):
        while not bus.is_connected:
            await asyncio.sleep(next(pause_s))
        await publish(bus, b"after")


async def test_a_flush_confirms_what_was_sent_before_it(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listener that is confirmed hears; its ping went first, and who asked met nobody."""
    bus = await bare.bus("admin")
    await bus.connection.flush()
    sent: list[bytes] = []
    transport: Any = bus.connection._transport
    write, writelines = transport.write, transport.writelines

    def note(data: bytes) -> None:
        sent.append(data)
        write(data)

    def note_lines(lines: list[bytes]) -> None:
        sent.extend(lines)
        writelines(lines)

    monkeypatch.setattr(transport, "write", note)
    monkeypatch.setattr(transport, "writelines", note_lines)
    await bus.connection.subscribe("live.a.b.c")
    await bus.connection.flush()
    assert [line.split()[0] for line in sent] == [b"SUB", b"PING"]


async def test_a_cancellation_in_the_moment_of_an_answer_is_heeded(bare: Stack) -> None:
    """Before Python 3.12 `asyncio.wait_for` returned the answer, and what was cancelled went on:
    a scheduler that was stopped while it took up its work never ended."""
    bus = await bare.bus("admin")
    flush = asyncio.create_task(bus.connection.flush())
    pongs: Any = bus.connection._pongs
    while not pongs:
        await asyncio.sleep(0)
    pongs[0].set_result(True)
    flush.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flush


async def test_what_waits_for_a_lost_socket_does_not_keep_the_close_from_its_end(
    bare: Stack,
) -> None:
    """X-5: the watch over a broker that dies closes such a connection, and ended of it."""
    bus = await bare.bus("admin")
    connection: Any = bus.connection
    await bus.listen("rpc.health", lambda _: asyncio.sleep(0))
    connection._transport._io_writer.transport.abort()
    connection._pending, connection._pending_data_size = [b"PING\r\n"], 6
    await connection.close()
    assert connection.is_closed
    assert not connection._subs


async def test_who_stops_waiting_for_a_broker_leaves_no_connection() -> None:
    """A service that is ended while it connects: the connection would be made anew for good."""
    asked, ended = asyncio.Event(), asyncio.Event()

    async def stand_still(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"s","version":"2.11.0","max_payload":1024,"proto":1}\r\n')
        pings = 0
        while line := await reader.readline():
            pings += line == b"PING\r\n"
            if pings == 1 and line == b"PING\r\n":
                writer.write(b"PONG\r\n")
            elif pings == 2:
                asked.set()
        ended.set()
        writer.close()

    server = await asyncio.start_server(stand_still, "127.0.0.1", 0)
    async with server, asyncio.timeout(10):
        port = server.sockets[0].getsockname()[1]
        url = f"nats://127.0.0.1:{port}"
        connecting = asyncio.create_task(Bus.connect(url, role="cortex", seed=None))
        await asked.wait()
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await ended.wait()
