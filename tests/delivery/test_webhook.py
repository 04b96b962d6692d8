"""The webhook channel against a real receiver: RELIABILITY S8, and S9 where it connects."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from tests.support.receiver import (
    OK,
    SECRET,
    TLS,
    Flood,
    Receiver,
    drip,
    lose_connections,
    raw,
    running_receiver,
    silence,
    status,
    verified,
)
from vigil.broker.ports import free_port
from vigil.channels.answers import Answer, NotTaken, Taken, Unclear
from vigil.channels.webhook_sender import MessageSent, WebhookSender, body_of
from vigil.clock import SystemClock
from vigil.contracts import Said
from vigil.net.guard import GuardedTransport
from vigil.net.ssrf import Rules

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SAID = Said(
    id="f" * 32, session_key="ann:vigil:t1", text="Привет 👋", at=AT, caused_by="e1", turn_seq=8,
    tag="Agent follow-up", is_autonomous=True, channel="ops",
)  # fmt: skip
BODY = body_of(SAID, 9)
PUBLIC = "93.184.215.14"


class Names:
    """A resolver that gives one answer after the other."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        return self.answers.pop(0)


def channel(
    url: str, *ports: int, allow_private: bool = True, timeout_s: float = 5.0,
    ports_never: tuple[int, ...] = (), resolve: Names | None = None,
    tls: ssl.SSLContext | None = None,
) -> WebhookSender:  # fmt: skip
    rules = Rules(ports=ports, ports_never=ports_never, allow_private=allow_private)
    more = {} if resolve is None else {"resolve": resolve}
    return WebhookSender(url, SECRET, rules, SystemClock(), timeout_s=timeout_s, tls=tls, **more)


@contextlib.contextmanager
def full_backlog(host: str, port: int) -> Iterator[None]:
    """An address where a connection is neither accepted nor refused."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((host, port))
        server.listen(0)
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex((host, port))
        yield


async def send(receiver: Receiver, url: str | None = None, **options: object) -> Answer:
    sender = channel(url or receiver.url(), receiver.port, **options)  # type: ignore[arg-type]
    try:
        return await sender.send(SAID, 9)
    finally:
        await sender.close()


# ---------------------------------------------------------------- the request


async def test_the_request_is_signed_and_says_all() -> None:
    """D-1, S8: a receiver verifies it with the library of Standard Webhooks."""
    async with running_receiver() as receiver:
        assert await send(receiver) == Taken(reason="204 No Content")
    (request,) = receiver.requests
    assert verified(request) == BODY
    assert request.id == SAID.id
    assert request.target == "/in?key=k3y"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"].startswith("Vigil/")
    assert msgspec.json.decode(request.body) == {
        "type": "message.sent",
        "id": SAID.id,
        "session_key": "ann:vigil:t1",
        "seq": 9,
        "text": "Привет 👋",
        "at": "2026-03-01T12:00:00Z",
        "caused_by": "e1",
        "tag": "Agent follow-up",
        "is_autonomous": True,
        "is_tainted": False,
    }
    assert msgspec.json.decode(request.body, type=MessageSent).seq == 9


async def test_a_retry_has_the_same_id_and_bytes() -> None:
    """S8: so a receiver can drop repeats."""
    async with running_receiver(status(500), OK) as receiver:
        sender = channel(receiver.url(), receiver.port)
        assert await sender.send(SAID, 9) == NotTaken(reason="500 Whatever", status=500)
        assert await sender.send(SAID, 9) == Taken(reason="204 No Content")
        await sender.close()
    assert {request.id: verified(request) for request in receiver.requests} == {SAID.id: BODY}
    assert receiver.connections == 2  # one for each: nothing is known about an old connection


async def test_nothing_of_an_answer_is_kept_for_the_next_request() -> None:
    """S8: a receiver could fill our memory with cookies, and make its requests differ."""
    async with running_receiver(status(500, set_cookie="a=" + "x" * 3000), OK) as receiver:
        sender = channel(receiver.url(), receiver.port)
        await sender.send(SAID, 9)
        await sender.send(SAID, 9)
        await sender.close()
    assert ["cookie" in request.headers for request in receiver.requests] == [False, False]


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (status(410, "Gone"), NotTaken(reason="410 Gone", status=410, is_final=True)),
        (status(429, "Slow", retry_after="7"), NotTaken(reason="429 Slow", status=429, wait_s=7)),
        (
            status(302, "Found", location="http://169.254.169.254/latest/?key=k3y"),
            NotTaken(
                reason="302 Found: redirects are not followed (to 169.254.169.254)",
                status=302,
                is_final=True,
            ),
        ),
        (status(504, "Timeout"), Unclear(reason="504 Timeout", status=504)),
    ],
)
async def test_what_an_answer_becomes(behaviour: Callable[..., object], expected: Answer) -> None:
    """S8: redirects are not followed, whatever they lead to."""
    async with running_receiver(behaviour) as receiver:  # type: ignore[arg-type]
        assert await send(receiver) == expected
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("behaviour", [silence, drip])
async def test_no_answer_in_time_is_unclear(behaviour: Callable[..., object]) -> None:
    """S8, D-2: the receiver has the request, and nobody knows what it did with it."""
    async with running_receiver(behaviour) as receiver:  # type: ignore[arg-type]
        answer = await send(receiver, timeout_s=0.3)
    assert answer == Unclear(reason="no answer within 0.3 s")
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "data", [b"", b"HTTP/1.1 200 OK\r\ncontent-le", b"SSH-2.0-nothing\r\n\r\n"]
)
async def test_an_answer_cut_off_is_unclear(data: bytes) -> None:
    """S8, D-2: cut before the end of its head, a 200 is no promise."""
    async with running_receiver(raw(data)) as receiver:
        answer = await send(receiver)
    assert isinstance(answer, Unclear)
    assert len(receiver.requests) == 1


async def test_a_200_counts_though_its_body_is_cut() -> None:
    """S8: a complete head is the answer; nobody needs what follows."""
    cut = raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhal")
    async with running_receiver(cut) as receiver:
        assert await send(receiver) == Taken(reason="200 OK")


async def test_a_gigabyte_of_answer_is_not_read() -> None:
    """S8: 64 KiB of it are, and what the system had buffered."""
    flood = Flood()
    async with running_receiver(flood) as receiver:
        assert await send(receiver) == Taken(reason="200 OK")
    assert flood.taken < 32 * 1024 * 1024


async def test_a_body_that_never_ends_holds_nobody_up() -> None:
    """S8: the status has said all."""

    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 503 Busy\r\ncontent-length: 1000\r\n\r\n")
        await silence(writer)

    async with running_receiver(endless) as receiver, asyncio.timeout(4):
        answer = await send(receiver, timeout_s=30)
    assert answer == NotTaken(reason="503 Busy", status=503)


async def test_nobody_there_is_refused_and_says_no_more() -> None:
    """S15: neither the URL's path nor its query gets into a reason."""
    port = free_port()
    sender = channel(f"http://127.0.0.1:{port}/secret-path?key=k3y", port)
    answer = await sender.send(SAID, 9)
    await sender.close()
    assert isinstance(answer, NotTaken)
    assert not answer.is_final
    assert "secret-path" not in answer.reason
    assert "k3y" not in answer.reason + repr(sender)


# ---------------------------------------------------------------- TLS


async def test_an_unknown_certificate_is_refused_before_anything_is_sent() -> None:
    """S8: TLS is verified; it may be put right, so it's tried again."""
    async with running_receiver(tls=True) as receiver:
        answer = await send(receiver, receiver.url(scheme="https"))
    assert isinstance(answer, NotTaken)
    assert not answer.is_final
    assert "certificate" in answer.reason.lower()
    assert receiver.requests == []


async def test_the_certificate_is_verified_against_the_name() -> None:
    """S9: connected to the address, yet the handshake is with the name."""
    trusting = ssl.create_default_context(cafile=str(TLS / "receiver.pem"))
    async with running_receiver(tls=True) as receiver:
        options = {"tls": trusting, "resolve": Names(["127.0.0.1"], ["127.0.0.1"])}
        answer = await send(receiver, receiver.url("receiver.test", "https"), **options)
        other = await send(receiver, receiver.url("other.test", "https"), **options)
    assert answer == Taken(reason="204 No Content")
    assert receiver.requests[0].headers["host"] == f"receiver.test:{receiver.port}"
    assert isinstance(other, NotTaken)
    assert receiver.names == ["receiver.test", "other.test"]
    assert len(receiver.requests) == 1


# ---------------------------------------------------------------- where it connects


async def test_a_name_is_looked_up_once_and_that_is_connected_to() -> None:
    """S8, S9: a resolver that changes its mind between check and connect changes nothing."""
    rebinding = Names(["127.0.0.1"], ["127.0.0.2"], ["127.0.0.2"])
    async with running_receiver() as receiver:
        await send(receiver, receiver.url("hooks.example"), resolve=rebinding)
        assert len(receiver.requests) == 1
        assert rebinding.asked == ["hooks.example"]
        # The next try looks it up again, and goes where it is told now: nobody is there.
        assert isinstance(
            await send(receiver, receiver.url("hooks.example"), resolve=rebinding), NotTaken
        )
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["169.254.169.254"], [PUBLIC, "127.0.0.1"], ["::ffff:127.0.0.1"], ["::1"], []],
)
async def test_what_a_name_leads_to_is_judged(addresses: list[str]) -> None:
    """S9: for good, and without a connection."""
    async with running_receiver() as receiver:
        url = receiver.url("metadata.example")
        answer = await send(receiver, url, allow_private=False, resolve=Names(addresses))
    assert isinstance(answer, NotTaken)
    assert answer.is_final
    assert receiver.connections == 0


async def test_the_port_of_the_broker_is_never_asked() -> None:
    """S9"""
    async with running_receiver() as receiver:
        answer = await send(receiver, ports_never=(receiver.port,))
    assert isinstance(answer, NotTaken)
    assert answer.is_final
    assert receiver.connections == 0


async def test_a_name_that_does_not_resolve_is_tried_again() -> None:
    class Down(Names):
        async def __call__(self, host: str, port: int) -> list[str]:
            raise OSError(-3, "Temporary failure in name resolution")

    async with running_receiver() as receiver:
        answer = await send(receiver, receiver.url("hooks.example"), resolve=Down())
    assert isinstance(answer, NotTaken)
    assert not answer.is_final
    assert answer.reason == "the name can't be looked up now"


async def test_names_that_hang_hold_up_no_other_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    """S-10: a system resolver that doesn't answer for one name is asked for others all the same."""
    real, over = socket.getaddrinfo, threading.Event()

    def resolve(host: str, *args: Any, **options: Any) -> Any:
        if host == "hanging.example":
            over.wait(30)
        return real("127.0.0.1", *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    async with running_receiver() as receiver:
        hanging = channel(receiver.url("hanging.example"), receiver.port, timeout_s=0.2)
        tries = 2 * (os.cpu_count() or 1) + 40
        await asyncio.gather(*(hanging.send(SAID, 9) for _ in range(tries)))
        answer = await send(receiver, receiver.url("a.example"), timeout_s=2.0)
        over.set()
        await hanging.close()
    assert isinstance(answer, Taken)


async def test_the_next_address_is_taken_if_nobody_is_at_the_first() -> None:
    async with running_receiver() as receiver:
        both = Names(["127.0.0.77", "127.0.0.1"])
        assert isinstance(await send(receiver, receiver.url("a.example"), resolve=both), Taken)


async def test_the_next_address_is_taken_if_the_first_never_answers() -> None:
    """S-10: an address that drops what comes leaves time for the others."""
    async with running_receiver() as receiver:
        with full_backlog("127.0.0.77", receiver.port):
            both = Names(["127.0.0.77", "127.0.0.1"])
            url = receiver.url("a.example")
            answer = await send(receiver, url, resolve=both, timeout_s=2.0)
    assert isinstance(answer, Taken)


async def test_the_environment_puts_no_proxy_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """S9: a proxy would connect to where nobody judged."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with running_receiver() as receiver:
        assert isinstance(await send(receiver), Taken)


async def test_the_guard_judges_each_hop_of_a_client_that_follows() -> None:
    """S9: re-check each redirect, for whoever lets a client follow them."""
    async with running_receiver(status(302, location="http://169.254.169.254/")) as receiver:
        rules = Rules(ports=(receiver.port, 80), allow_private=True)
        async with httpx2.AsyncClient(
            transport=GuardedTransport(rules), follow_redirects=True, trust_env=False
        ) as client:
            with pytest.raises(Exception, match="not a public address"):
                await client.get(receiver.url())


async def test_a_connection_that_is_lost_as_it_is_opened_sent_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """D-2: so that each who uses the guard may try again."""
    async with running_receiver() as receiver:
        rules = Rules(ports=(receiver.port,), allow_private=True)
        async with httpx2.AsyncClient(transport=GuardedTransport(rules)) as client:
            with monkeypatch.context() as patch:
                lose_connections(patch)
                with pytest.raises(httpx2.ConnectError, match="lost as it was opened"):
                    await client.get(receiver.url())
            assert receiver.requests == []
            assert (await client.get(receiver.url())).is_success


async def test_the_client_tells_no_urls(caplog: pytest.LogCaptureFixture) -> None:
    """S15: a URL may hold a secret."""
    from services.delivery.channels import build
    from services.delivery.config import DeliveryLimits

    build({}, SystemClock(), DeliveryLimits(), home=Path())
    with caplog.at_level(logging.INFO):
        async with running_receiver() as receiver:
            await send(receiver)
    assert "k3y" not in caplog.text
