"""Who is let in: tokens, tickets, own sessions, Host and Origin."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from services.gateway.app import MESSAGES_PATH, endpoints
from tests.support.gateway import Gate, assert_problem, frame_of, running_gateway, until
from vigil.errors import ConfigError, InvalidInput
from vigil.settings import tokens

ANN = "ann:vigil:t1"
EVERYWHERE = "0.0.0.0"  # noqa: S104
BOB = "bob:vigil:t1"


class SetClock:
    """A clock that stands where it is set."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC)
        self.seconds = 0.0

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.seconds


def _paths(session: str) -> Iterator[tuple[str, str]]:
    """Every route with a session in its path, so that a new one can't forget whose it is."""
    served = [(one.method, one.path) for one in endpoints()]
    for method, path in [*served, ("POST", MESSAGES_PATH)]:
        if "{key}" in path:
            yield method, path.replace("{key}", session).replace("{timer_id:path}", "tea")


async def test_without_a_valid_token_only_the_public_paths_answer(gate: Gate) -> None:
    """SPEC X-4; RELIABILITY S1: no token, wrong, truncated, another scheme, unknown path."""
    token = await gate.token("ann")
    bad = [None, "", "Bearer", "Bearer x", f"Bearer {token[:-1]}", f"Basic {token}", token]
    for header in bad:
        client = await gate.http(**({} if header is None else {"Authorization": header}))
        for method, path in [("GET", "/api/me"), ("GET", "/nowhere"), *_paths(ANN)]:
            answer = await client.request(method, path, json={"text": "hi"})
            assert answer.status_code in (401, 429), (header, path)
            if answer.status_code == 401:
                assert_problem(answer, 401)
                assert answer.headers["www-authenticate"].startswith("Bearer")
    anonymous = await gate.http()
    assert (await anonymous.get("/healthz")).status_code == 200
    assert (await anonymous.get("/readyz")).status_code == 503
    assert (await anonymous.get("/openapi.json")).status_code == 200
    assert (await anonymous.get("/asyncapi.json")).status_code == 200
    assert_problem(await anonymous.get("/docs"), 401)
    assert await gate.stored(ANN) == []


async def test_guessing_is_slowed_down_but_never_locks_a_valid_token_out(gate: Gate) -> None:
    """SPEC X-4: bad tokens are limited by address."""
    guesser = await gate.http("pat_" + "x" * 43)
    answers = [(await guesser.get("/api/me")).status_code for _ in range(40)]
    assert answers[0] == 401
    assert answers[-1] == 429
    token = await gate.token("ann")
    client = await gate.http(token)

    async def is_known() -> bool:
        return (await client.get("/api/me")).status_code == 200

    await until(is_known, "a token made while guesses are limited comes by the watch")


async def test_an_expired_or_revoked_token_ends(tmp_path: Path) -> None:
    """SPEC X-4; RELIABILITY S1: expiry, and revocation within moments, also of open sockets."""
    clock = SetClock()
    async with running_gateway(tmp_path, clock=clock) as gate:
        short = await gate.token("ann", expires_at=clock.at + timedelta(seconds=60))
        long = await gate.token("ann")
        first, second = await gate.http(short), await gate.http(long)
        assert (await first.get("/api/me")).json() == {
            "user": "ann",
            "is_admin": False,
            "home_thread": "main",
        }
        clock.at += timedelta(seconds=60)
        assert_problem(await first.get("/api/me"), 401)
        assert (await second.get("/api/me")).status_code == 200
        socket = await gate.socket(long, ANN)
        await tokens.revoke(gate.operator, long)
        with pytest.raises(ConnectionClosed) as closed:
            await asyncio.wait_for(socket.recv(), 5)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008
        assert_problem(await second.get("/api/me"), 401)


async def test_tokens_are_stored_as_hashes_only(gate: Gate) -> None:
    """SPEC X-4; RELIABILITY S1: who reads the bucket learns no token."""
    token = await gate.token("ann", name="laptop")
    found = await gate.admin.read("KV_TOKENS", ["$KV.TOKENS.>"])
    assert [m.subject for m in found] == [f"$KV.TOKENS.{tokens.token_id_of(token)}"]
    assert token.encode() not in found[0].data
    assert msgspec.json.decode(found[0].data)["name"] == "laptop"
    with pytest.raises(InvalidInput):
        await gate.token("a.b")
    with pytest.raises(InvalidInput):
        await tokens.revoke(gate.operator, "everything.>")


async def test_a_token_that_cannot_be_read_or_has_no_known_scope_grants_nothing(
    gate: Gate,
) -> None:
    """SPEC X-6: a poisoned record in TOKENS neither lets in nor ends the watch."""
    poison, narrow = "pat_" + "p" * 43, "pat_" + "n" * 43
    await gate.admin.publish(f"$KV.TOKENS.{tokens.token_id_of(poison)}", b"{nonsense")
    token = tokens.Token(user="ann", created_at=datetime.now(UTC), scopes=("later",))
    await gate.admin.publish(f"$KV.TOKENS.{tokens.token_id_of(narrow)}", msgspec.json.encode(token))
    for text in (poison, narrow):
        assert_problem(await (await gate.http(text)).get("/api/me"), 401)
    assert (await (await gate.person("ann")).get("/api/me")).status_code == 200


async def test_a_token_in_a_url_is_refused_with_the_reason(gate: Gate) -> None:
    """RELIABILITY S1: a token in a URL query is refused, also where the header is right."""
    token = await gate.token("ann")
    for query in (f"token={token}", "access_token=x", f"x={token}", "Authorization=y"):
        for client in (await gate.http(), await gate.http(token)):
            problem = assert_problem(await client.get(f"/api/me?{query}"), 401)
            assert "URL" in problem["detail"]
    with pytest.raises(InvalidStatus) as refused:
        await gate.socket(None, ANN, token=token)
    assert refused.value.response.status_code == 401


async def test_a_person_reaches_only_their_own_sessions(gate: Gate) -> None:
    """SPEC X-4; RELIABILITY S1: 404 for paths, 403 for bodies; nothing is written."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    assert (await bob.post(f"/api/sessions/{BOB}/messages", json={"text": "x"})).status_code == 202
    before = len(await gate.stored(BOB))
    for method, path in _paths(BOB):
        assert_problem(await ann.request(method, path, json={"text": "hi"}), 404)
    chat = await ann.post("/api/chat", json={"message": "hi", "userId": "bob", "threadId": "t1"})
    assert_problem(chat, 403, "userId")
    assert_problem(await ann.post("/api/tickets", json={"session": BOB}), 404)
    assert_problem(await ann.get("/api/sessions?user=bob"), 403, "user")
    with pytest.raises(InvalidStatus) as refused:
        await gate.socket(await gate.token("ann"), BOB)
    assert refused.value.response.status_code == 404
    assert refused.value.response.headers["content-type"] == "application/problem+json"
    assert len(await gate.stored(BOB)) == before
    assert (await ann.get("/api/sessions")).json()["sessions"] == []


async def test_an_admin_reaches_everybody_and_only_an_admin_pauses(gate: Gate) -> None:
    """SPEC X-4, S-11."""
    ann, root = await gate.person("ann"), await gate.person("root", is_admin=True)
    accepted = await root.post(f"/api/sessions/{ANN}/messages", json={"text": "from above"})
    assert accepted.status_code == 202
    assert len((await root.get(f"/api/sessions/{ANN}")).json()["messages"]) == 1
    assert [s["session_key"] for s in (await root.get("/api/sessions")).json()["sessions"]] == [ANN]
    for method in ("PUT", "DELETE"):
        assert_problem(await ann.request(method, "/api/pause"), 403)
    paused = await root.put("/api/pause")
    assert paused.json()["paused"]["by"] == "root"

    async def is_paused() -> bool:
        return (await ann.get("/api/status")).json()["paused"] is not None

    await until(is_paused, "the pause is seen")
    assert (await root.delete("/api/pause")).json() == {"paused": None}


async def test_a_ticket_opens_one_socket_of_one_session(tmp_path: Path) -> None:
    """SPEC X-4; RELIABILITY S2: single use, 30 s, bound to session and token."""
    clock = SetClock()
    async with running_gateway(tmp_path, clock=clock) as gate:
        token = await gate.token("ann")
        ann = await gate.http(token)

        async def ticket() -> str:
            given = (await ann.post("/api/tickets", json={"session": ANN})).json()
            assert given["expires_in_s"] == 30
            return str(given["ticket"])

        async def refused(session: str, ticket: str) -> int:
            with pytest.raises(InvalidStatus) as refusal:
                await gate.socket(None, session, ticket=ticket)
            return int(refusal.value.response.status_code)

        used = await ticket()
        socket = await gate.socket(None, ANN, ticket=used)
        await socket.send('{"type":"message","text":"hi","id":"1"}')
        assert (await frame_of(socket))["type"] == "accepted"
        assert await refused(ANN, used) == 401
        assert await refused("ann:vigil:t2", await ticket()) == 401
        assert await refused(ANN, "made-up") == 401
        old = await ticket()
        clock.seconds += 30
        assert await refused(ANN, old) == 401
        orphan = await ticket()
        await tokens.revoke(gate.operator, token)

        async def is_revoked() -> bool:
            return (await ann.get("/api/me")).status_code == 401

        await until(is_revoked, "the token ended")
        assert await refused(ANN, orphan) == 401


async def test_a_rebound_host_is_refused(gate: Gate) -> None:
    """SPEC X-4; RELIABILITY S2: a name rebound to loopback doesn't reach the gateway."""
    token = await gate.token("ann")
    upgrade = (
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    )
    bad = ["evil.example", "127.0.0.1.evil.example", "localhost.", "127.0.0.1:x", "a b", "[::1"]
    for host in [*bad, EVERYWHERE]:
        head = f"Host: {host}\r\nAuthorization: Bearer {token}\r\n"
        answer = await gate.raw(f"GET /api/me HTTP/1.1\r\n{head}\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 421"), answer
        assert b"application/problem+json" in answer
        request = f"GET /api/ws?session={ANN} HTTP/1.1\r\n{upgrade}{head}\r\n"
        assert (await gate.raw(request.encode())).startswith(b"HTTP/1.1 421")


async def test_a_missing_or_doubled_host_is_refused(gate: Gate) -> None:
    """RELIABILITY S2."""
    assert (await gate.raw(b"GET /healthz HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 421")
    doubled = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"
    assert (await gate.raw(doubled)).startswith(b"HTTP/1.1 400")


ORIGINS = {
    "http://localhost:3000": 200,
    "https://127.0.0.1": 200,
    "http://[::1]:8420": 200,
    "https://good.example": 200,
    "https://evil.example": 403,
    "https://localhost.evil.example": 403,
    "null": 403,
    "file://localhost": 403,
    "http://localhost@evil.example": 403,
}


async def test_only_pages_of_known_hosts_may_call(tmp_path: Path) -> None:
    """SPEC X-4; RELIABILITY S2: a foreign Origin is refused, for HTTP and for sockets."""
    async with running_gateway(tmp_path, allowed_hosts=["good.example"]) as gate:
        token = await gate.token("ann")
        client = await gate.http(token)
        for origin, status in ORIGINS.items():
            headers = {"Origin": origin}
            answer = await client.get("/api/me", headers=headers)
            assert answer.status_code == status, origin
            if status == 200:
                await gate.socket(token, ANN, headers=headers)
                continue
            assert_problem(answer, 403)
            with pytest.raises(InvalidStatus) as refused:
                await gate.socket(token, ANN, headers=headers)
            assert refused.value.response.status_code == 403


async def test_a_configured_host_name_is_served(tmp_path: Path) -> None:
    """SPEC X-4: gateway.allowed_hosts."""
    async with running_gateway(tmp_path, allowed_hosts=["Good.Example"]) as gate:
        client = await gate.http(Host="good.example:443")
        assert (await client.get("/healthz")).status_code == 200


async def test_a_public_address_needs_the_switch(tmp_path: Path) -> None:
    """RELIABILITY S1: refuse to start on an address that is not loopback."""
    with pytest.raises(ConfigError, match="allow_public"):
        async with running_gateway(tmp_path / "a", host=EVERYWHERE):
            pass
    async with running_gateway(tmp_path / "b", host=EVERYWHERE, allow_public=True) as gate:
        assert (await (await gate.http()).get("/healthz")).status_code == 200


async def test_a_taken_port_is_a_clear_error(tmp_path: Path, gate: Gate) -> None:
    """SPEC X-6: refuse to start, saying why."""
    with pytest.raises(ConfigError, match="can't listen"):
        async with running_gateway(tmp_path / "other", port=gate.port):
            pass
