"""Connections: strangers a bounded share and little time, each user theirs (issue 10)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from types import SimpleNamespace

import httpx2
import pytest
import websockets

from services.gateway.http import protocol
from services.gateway.http.connections import Bounds, Connections, HttpConnection, bounds_of
from services.gateway.http.problem import Problem
from tests.support.gateway import WAIT_S, Gate, assert_problem, running_gateway

ANN = "ann:vigil:t1"
MESSAGES = f"/api/sessions/{ANN}/messages"
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def silent(gate: Gate, count: int) -> AsyncIterator[list[Stream]]:
    """Connections that say nothing."""
    streams: list[Stream] = []
    try:
        for _ in range(count):
            streams.append(await asyncio.open_connection("127.0.0.1", gate.port))
        yield streams
    finally:
        for _, writer in streams:
            writer.close()


async def ended(streams: Iterable[Stream], count: int) -> int:
    """Wait until at least `count` of the connections ended -> how many did."""
    reading = {asyncio.create_task(_rest(reader)) for reader, _ in streams}
    done: set[asyncio.Task[bytes]] = set()
    async with asyncio.timeout(WAIT_S):
        while len(done) < count:
            done |= (await asyncio.wait(reading - done, return_when="FIRST_COMPLETED"))[0]
    for task in reading - done:
        task.cancel()
    return len(done)


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """Return what comes until the connection ends."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(65536):
            found += chunk
    return found


async def answer_to(gate: Gate, request: bytes, then: bytes = b"") -> bytes:
    """Send `request`, then `then` again and again; return all that comes until the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)

    async def trickle() -> None:
        writer.write(request)
        with contextlib.suppress(ConnectionError):
            while then:
                await writer.drain()
                writer.write(then)
                await asyncio.sleep(0.01)

    task = asyncio.create_task(trickle())
    try:
        async with asyncio.timeout(WAIT_S):
            return await _rest(reader)
    finally:
        task.cancel()
        writer.close()


# ---------------------------------------------------------------- over real sockets


async def test_silent_connections_keep_nobody_out(tmp_path: Path) -> None:
    """Three hundred strangers, room for ninety: who signs in gets in, and stays."""
    async with running_gateway(tmp_path, connections_max=90) as gate:
        token = await gate.token("ann")
        socket = await gate.socket(token, ANN)
        async with silent(gate, 150) as first:
            ann = await gate.http(token)
            assert (await ann.post(MESSAGES, json={"text": "hi"})).status_code == 202
            async with silent(gate, 150) as second:
                assert (await ann.post(MESSAGES, json={"text": "hi"})).status_code == 202
                late = await gate.socket(token, ANN)
                for number, one in enumerate((socket, late)):
                    await one.send(json.dumps({"type": "message", "text": "x", "id": str(number)}))
                    assert "accepted" in str(await one.recv())
                # A third of ninety may be strangers; others that came took places, too.
                assert 270 <= await ended([*first, *second], 270) <= 275


async def test_an_answer_has_the_date_of_its_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long nobody asked anything: it isn't made anew each second."""
    now_s = 784_887_151.9
    monkeypatch.setattr(protocol, "time", SimpleNamespace(time=lambda: now_s))
    async with running_gateway(tmp_path) as gate:
        ann = await gate.http(await gate.token("ann"))
        assert (await ann.get("/healthz")).headers["date"] == "Tue, 15 Nov 1994 08:12:31 GMT"
        now_s += 3600
        assert (await ann.get("/healthz")).headers["date"] == "Tue, 15 Nov 1994 09:12:31 GMT"


async def test_whoever_says_nothing_for_long_goes(tmp_path: Path) -> None:
    """No byte, half a head, or a head byte by byte: one deadline for all of it."""
    async with running_gateway(tmp_path, head_timeout_s=0.2) as gate:
        assert await answer_to(gate, b"") == b""
        for then in (b"", b"x"):
            answer = await answer_to(gate, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nx: ", then)
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert b"application/problem+json" in answer


async def test_a_stranger_may_not_rest_for_long(tmp_path: Path) -> None:
    """Between two requests, and with empty lines meanwhile."""
    async with running_gateway(tmp_path, head_timeout_s=0.2) as gate:
        request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for then in (b"", b"\r\n"):
            assert (await answer_to(gate, request, then)).startswith(b"HTTP/1.1 200 ")


async def test_a_body_has_a_deadline(tmp_path: Path) -> None:
    """Also one that trickles in, and one that nobody reads, since it was refused already."""
    async with running_gateway(tmp_path, body_timeout_s=0.2) as gate:
        token = await gate.token("ann")
        for line, status in ((f"Authorization: Bearer {token}\r\n", b"408"), ("", b"401")):
            head = f"POST {MESSAGES} HTTP/1.1\r\nHost: localhost\r\n{line}Content-Length: 90000\r\n"
            for then in (b"", b" "):
                answer = await answer_to(gate, head.encode() + b"\r\n{", then)
                assert answer.startswith(b"HTTP/1.1 " + status), answer
                assert answer.count(b"HTTP/1.1") == 1
        assert await gate.stored(ANN) == []


async def test_one_user_can_not_take_every_connection(tmp_path: Path) -> None:
    """Nine in all: six of the signed-in, three of one user; resting ones make room."""
    async with running_gateway(tmp_path, connections_max=9) as gate:
        token = await gate.token("ann")
        for _ in range(5):
            async with httpx2.AsyncClient(
                base_url=f"http://127.0.0.1:{gate.port}",
                headers={"Authorization": f"Bearer {token}"},
            ) as client:
                assert (await client.get("/api/me")).status_code == 200
        resting = [await gate.http(token) for _ in range(5)]
        for client in resting:
            assert (await client.get("/api/me")).status_code == 200
        sockets = [await gate.socket(token, ANN) for _ in range(3)]
        with pytest.raises(websockets.InvalidStatus) as refused:
            await gate.socket(token, ANN)
        assert refused.value.response.status_code == 429
        assert_problem(await (await gate.http(token)).get("/api/me"), 429)
        bob = await gate.person("bob")
        assert (await bob.get("/api/me")).status_code == 200
        await sockets[0].close()
        assert (await (await gate.http(token)).get("/api/me")).status_code == 200


async def test_two_authorization_headers(tmp_path: Path) -> None:
    """What a proxy in front checked might be the other one."""
    async with running_gateway(tmp_path) as gate:
        good, other = await gate.token("ann"), await gate.token("bob")
        for name, values in (
            ("Authorization", (f"Bearer {good}", f"Bearer {other}")),
            ("Authorization", (f"Bearer {good}", f"Bearer {good}")),
            ("Origin", ("http://localhost", "http://evil.example")),
        ):
            lines = "".join(f"{name}: {value}\r\n" for value in values)
            request = f"GET /api/me HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n"
            answer = await gate.raw(request.encode())
            assert answer.startswith(b"HTTP/1.1 400 "), answer
            assert name.encode() in answer.partition(b"\r\n\r\n")[2]


# ---------------------------------------------------------------- who goes


class House:
    """Connections with numbers for names."""

    def __init__(self, **bounds: int) -> None:
        every = {"strangers_max": 10, "of_address_max": 10, "known_max": 10, "of_user_max": 10}
        self.all = Connections(Bounds(**(every | bounds)))
        self.gone: list[int] = []
        self.at_s = 0.0

    def open(self, name: int, address: str = "a") -> HttpConnection:
        return self.all.open(address, self.at_s, lambda: self.gone.append(name))


def test_the_oldest_stranger_goes() -> None:
    house = House(strangers_max=2)
    first, *_ = [house.open(number) for number in range(4)]
    assert house.gone == [0, 1]
    assert house.all.strangers == 2
    first.sign_in("ann")  # too late: it ended before its token was looked at
    assert house.all.known == 0


def test_an_address_with_too_many_loses_its_own() -> None:
    house = House(of_address_max=2)
    house.open(1, "b")
    for number in range(10, 15):
        house.open(number, "a")
    assert house.gone == []  # all at once: they had no time to sign in
    house.at_s = 1.0
    house.open(15, "a")
    assert house.gone == [10]


def test_an_address_is_a_network_of_ipv6() -> None:
    house = House(of_address_max=1)
    house.open(1, "2001:db8::1")
    house.at_s = 1.0
    house.open(2, "2001:db8::2")
    house.open(3, "2001:db8:0:1::2")
    assert house.gone == [1]


def test_the_signed_in_are_not_strangers() -> None:
    house = House(strangers_max=1, known_max=2)
    kept = [house.open(number) for number in range(1)]
    kept[0].sign_in("ann")
    house.open(1)
    house.open(2)
    assert house.gone == [1]
    house.all.close(kept[0])
    house.all.close(kept[0])
    assert (house.all.known, house.all.strangers) == (0, 1)


def test_only_resting_ones_make_room() -> None:
    house = House(known_max=2, of_user_max=2)
    ann, bob, third = (house.open(number) for number in range(3))
    ann.sign_in("ann")
    bob.sign_in("bob")
    with pytest.raises(Problem) as refused:
        third.sign_in("carl")
    assert refused.value.status == 503
    house.all.rest(bob)
    third.sign_in("carl")
    assert house.gone == [1]
    fourth = house.open(3)
    house.all.rest(third)
    house.all.work(third)
    with pytest.raises(Problem):
        fourth.sign_in("ann")


def test_a_connection_of_several_users_counts_for_the_last() -> None:
    """A proxy sends requests of many on one connection."""
    house = House(of_user_max=1)
    one, other = house.open(1), house.open(2)
    one.sign_in("ann")
    one.sign_in("bob")
    other.sign_in("ann")
    with pytest.raises(Problem) as refused:
        house.open(3).sign_in("bob")
    assert refused.value.status == 429
    assert house.all.known == 2


@pytest.mark.parametrize("files", [1, 20, 256, 1024, 20_000, 65_536])
def test_bounds_leave_files_for_the_rest(files: int) -> None:
    bounds = bounds_of(0, 256, files)
    assert bounds.strangers_max + bounds.known_max <= max(3, files * 3 // 4)
    assert 1 <= bounds.of_user_max <= bounds.known_max
    assert bounds_of(10**6, 256, files) == bounds
