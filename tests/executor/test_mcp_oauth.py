"""Signing in to MCP servers by OAuth 2.1, at the SDK's own OAuth server, which has another address
than the MCP server: what expires is exchanged; what is taken back, or refused, is told."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull
from msgspec.structs import replace
from pydantic import AnyUrl

from services.gateway.state.server_sign_ins import PendingSignIns
from tests.support.mcp_client import Hands, hands, sandbox
from tests.support.oauth_server import Guarded, guarded
from vigil.broker.ports import free_port
from vigil.cli.accounts import server_sign_in
from vigil.oauth import kept, outlet, words
from vigil.oauth.bearer import Bearer
from vigil.oauth.signing_in import (
    NothingToSignIn,
    SignInFailed,
    SigningIn,
    _CarefulProvider,
    came_back,
)
from vigil.settings.config import Config, Settings
from vigil.settings.servers import McpServer

BACK = "http://127.0.0.1:9/back"
OK = httpx2.Response(200)


@pytest.fixture
async def there() -> AsyncIterator[Guarded]:
    async with guarded() as found:
        yield found


def section(there: Guarded) -> McpServer:
    return McpServer(url=there.url, allow_private=True, timeout_s=10.0)


async def sign_in(there: Guarded, home: Path, wanted: McpServer | None = None) -> None:
    signing_in = SigningIn(home, "far", wanted or section(there), BACK)
    try:
        where = await there.follow(await signing_in.begin())
        assert str(where).startswith(BACK)
        signing_in.come_back(came_back(where.query.decode()))
        await signing_in.finish()
    finally:
        await signing_in.close()


def now(there: Guarded, home: Path) -> kept.KeptSignIn:
    found = kept.read(home, "far", there.url)
    assert found is not None
    return found


def expire(there: Guarded, home: Path) -> None:
    kept.write(home, "far", replace(now(there, home), expires_at=time.time() - 1))


async def test_a_sign_in_lasts(
    there: Guarded,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """One that expires is exchanged where it was given, before it's used, and when it's refused;
    each refresh token once, however many calls come at once; nothing of it is told anywhere."""
    await sign_in(there, tmp_path)
    file = kept.path_of(tmp_path, "far")
    assert file.stat().st_mode & 0o077 == 0
    first = now(there, tmp_path)
    issuer = there.issuer
    async with hands(tmp_path, await sandbox(is_off=True), far=_raw(there)) as found:
        assert (await found.call("far__whoami")).content == "ann"
        assert set(there.seen) == {first.tokens["access_token"]}

        expire(there, tmp_path)
        answers = await asyncio.gather(*(found.call("far__whoami") for _ in range(4)))
        assert [one.content for one in answers] == ["ann"] * 4
        assert issuer.used == [first.tokens["refresh_token"]]
        second = now(there, tmp_path)
        assert set(there.seen[1:]) == {second.tokens["access_token"]}

        issuer.tokens.clear()  # the access token alone, whatever was said of its life
        assert (await found.call("far__whoami")).content == "ann"
        assert issuer.used == [first.tokens["refresh_token"], second.tokens["refresh_token"]]

        issuer.is_out = True  # for a while: nobody has to sign in anew
        issuer.tokens.clear()
        shelf = await _problem_of(found, "renewed just now")
        assert now(there, tmp_path).refused == ""
        issuer.is_out = False
        await found.shelves.until("far", lambda shelf: not shelf.problem)

        issuer.take_back()
        shelf = await _problem_of(found, "sign in again")
        assert "vigil mcp sign-in far" in shelf
        assert "(invalid_grant)" in kept.state_of(tmp_path, "far", there.url)
        count = len(issuer.used)

        await sign_in(there, tmp_path)
        await found.shelves.until("far", lambda shelf: not shelf.problem)
        assert (await found.call("far__whoami")).content == "ann"
        assert (len(issuer.used), len(issuer.clients)) == (count, 1)
    told = caplog.text + "".join(capfd.readouterr())
    for token in (*there.seen, *issuer.used):
        assert token not in told


async def test_that_more_rights_are_wanted_is_known_until_somebody_signs_in(
    there: Guarded, tmp_path: Path
) -> None:
    """X-1: a call that needs them was refused, and a list right after it is not."""
    await sign_in(there, tmp_path)
    wants = {"www-authenticate": 'Bearer error="insufficient_scope", scope="books:write"'}

    async def answered(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(403, headers=wants) if "call" in request.url.path else OK

    bearer = Bearer(tmp_path, "far", there.url, allow_private=True)
    transport = httpx2.MockTransport(answered)
    async with httpx2.AsyncClient(auth=bearer, transport=transport) as client:
        for path in ("list", "call", "list", "list"):
            await client.post(f"http://far.test/{path}")
    assert "(insufficient_scope)" in kept.state_of(tmp_path, "far", there.url)
    assert now(there, tmp_path).scope_wanted == "books:write"
    with pytest.raises(SignInFailed, match="invalid_scope"):  # asked for; this issuer knows none
        await sign_in(there, tmp_path)


async def _problem_of(found: Hands, part: str) -> str:
    """Have it called until its shelf tells that."""
    with_problem = asyncio.create_task(
        found.shelves.until("far", lambda shelf: part in shelf.problem)
    )
    found.servers["far"]._connection._list_soon()
    return (await with_problem).problem


def _raw(there: Guarded) -> dict[str, object]:
    return {"url": there.url, "allow_private": True, "timeout_s": 10.0}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"says_no": "access_denied"}, r"it was refused there \(access_denied\)"),
        ({"says_no": "Go away, and tell nobody"}, "it was refused there"),
        ({"audience": "https://another.example/mcp"}, "is for another server"),
    ],
)
async def test_a_sign_in_that_fails_says_why_and_keeps_nothing(
    there: Guarded, tmp_path: Path, wrong: dict[str, str], why: str
) -> None:
    for name, value in wrong.items():
        setattr(there.issuer, name, value)
    with pytest.raises(SignInFailed, match=why) as caught:
        await sign_in(there, tmp_path)
    assert "hunter2" not in str(caught.value)
    assert not kept.path_of(tmp_path, "far").exists()


async def test_what_comes_back_has_to_be_of_this_sign_in(there: Guarded, tmp_path: Path) -> None:
    signing_in = SigningIn(tmp_path, "far", section(there), BACK)
    await there.follow(await signing_in.begin())
    signing_in.come_back(came_back("code=x&state=of-another"))
    with pytest.raises(SignInFailed, match="isn't of this sign-in"):
        await signing_in.finish()


async def test_where_nobody_signs_in(there: Guarded, tmp_path: Path) -> None:
    """One that lets anybody in; and without `allow_private` nothing but https, and no address of
    this machine, wherever the server sends us."""
    open_ = McpServer(url=f"{there.issuer.url}/.well-known/oauth-authorization-server",
                      allow_private=True)  # fmt: skip
    with pytest.raises(NothingToSignIn):
        await SigningIn(tmp_path, "far", open_, BACK).begin()
    strict = McpServer(url=there.url)
    with pytest.raises(SignInFailed, match="https://"):
        await SigningIn(tmp_path, "far", strict, BACK).begin()


async def test_a_sign_in_is_of_one_server(there: Guarded, tmp_path: Path) -> None:
    """Whose URL changes never gets the tokens that were given for another."""
    await sign_in(there, tmp_path)
    assert kept.read(tmp_path, "far", f"{there.url}/other") is None
    assert kept.state_of(tmp_path, "far", there.url) == "signed in"
    seen = now(there, tmp_path)
    await sign_in(there, tmp_path)
    kept.revise(tmp_path, "far", seen, lambda one: replace(one, refused="late"))
    assert kept.state_of(tmp_path, "far", there.url) == "signed in"


@pytest.mark.parametrize("way", ["loopback", "pasted"])
async def test_by_the_command(
    there: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The browser comes back to this machine; or, from another one, by its pasted address. Who we
    are there may have been made by hand; how it shows its secret is what the server takes."""
    told: asyncio.Queue[str] = asyncio.Queue()
    reading, writing = os.pipe()
    monkeypatch.setattr(server_sign_in.output, "message", told.put_nowait)
    monkeypatch.setattr(sys, "stdin", os.fdopen(reading))
    settings = Settings(config=Config(), home=tmp_path)
    has_secret = way == "pasted"
    (tmp_path / "secret").write_text("s3cret")
    ours = OAuthClientInformationFull(
        client_id="ours",
        client_secret="s3cret" if has_secret else None,
        token_endpoint_auth_method="client_secret_basic" if has_secret else "none",
        scope="notes",
        redirect_uris=[AnyUrl(f"http://127.0.0.1:{free_port()}/back")],
    )
    assert ours.redirect_uris
    await there.issuer.register_client(ours)
    port = ours.redirect_uris[0].port
    assert port is not None
    file = "secret" if has_secret else ""
    wanted = replace(section(there), client_id="ours", client_secret_file=file)
    signing_in = asyncio.create_task(server_sign_in.sign_in_to(settings, "far", wanted, port))
    link = next(word for word in (await told.get()).split() if word.startswith("http"))
    where = await there.follow(link)
    async with httpx2.AsyncClient(trust_env=False) as browser:
        for stray in ("favicon.ico", "back?state=of-another&code=x"):
            assert (await browser.get(f"http://127.0.0.1:{port}/{stray}")).status_code == 404
        if way == "loopback":
            assert "Vigil has it" in (await browser.get(where)).text
        else:
            os.write(writing, f"what?\n{where}\n".encode()[6:])
    await signing_in
    os.close(writing)
    assert kept.state_of(tmp_path, "far", there.url) == "signed in"
    assert list(there.issuer.clients) == ["ours"]


async def test_a_sign_in_to_a_url_that_changed_meanwhile_replaces_no_other(
    there: Guarded, tmp_path: Path
) -> None:
    """Of two people: who began before the URL changed comes back after the other is signed in."""
    slow = SigningIn(tmp_path, "far", section(there), BACK)
    where = await there.follow(await slow.begin())
    fresh = kept.KeptSignIn(url="https://new.example/mcp", client={}, tokens={}, server={})
    kept.write(tmp_path, "far", fresh)
    slow.come_back(came_back(where.query.decode()))
    with pytest.raises(SignInFailed, match="meanwhile"):
        await slow.finish()
    assert kept.read(tmp_path, "far", fresh.url) == fresh
    await sign_in(there, tmp_path)  # begun since: whoever does so means this URL
    assert kept.read(tmp_path, "far", there.url) is not None


def lying(there: Guarded, of: str, **changes: object) -> None:
    """Let the server that gives tokens answer something else at a path."""
    honest = there.issuer.app

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] != of:
            await honest(scope, receive, send)
            return
        sent: list[Any] = []

        async def keep(message: Any) -> None:
            sent.append(message)

        await honest(scope, receive, keep)
        told = json.loads(b"".join(one.get("body", b"") for one in sent))
        heads = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": sent[0]["status"], "headers": heads})
        body = json.dumps(told | changes).encode()
        await send({"type": "http.response.body", "body": body})

    there.issuer.app = app  # type: ignore[assignment]


AUTHORIZATION, TOKEN = "/.well-known/oauth-authorization-server", "/token"


async def test_a_link_asks_what_we_ask(there: Guarded, tmp_path: Path) -> None:
    """Whatever stands in the address that our question is put behind; nothing waits then."""
    pending = PendingSignIns()
    for more in ("#", "?state=mine", "?x=1&redirect_uri=", "?client_id=#a"):
        lying(there, AUTHORIZATION, authorization_endpoint=f"{there.issuer.url}/authorize{more}")
        with pytest.raises(SignInFailed, match="something else than we do"):
            await pending.begin(tmp_path, "far", section(there), BACK, ())
    await pending.close()


async def test_odd_servers_that_give_tokens(there: Guarded, tmp_path: Path) -> None:
    """An address with a question of its own, and a token that is good for longer than any number
    of seconds: one is signed in. A token that is no header: nobody is, and nothing is told of it.
    """
    lying(there, AUTHORIZATION, authorization_endpoint=f"{there.issuer.url}/authorize?tenant=a")
    lying(there, TOKEN, expires_in=10**12)
    await sign_in(there, tmp_path)
    assert (now(there, tmp_path).expires_at or 0) < time.time() + kept.LIFE_MAX_S + 1
    lying(there, TOKEN, access_token="hunter2\nx: y")
    with pytest.raises(SignInFailed, match="can't be reached") as caught:
        await sign_in(there, tmp_path)
    assert "hunter2" not in repr(caught.value)


async def test_whatever_cant_be_read_of_it_is_told(
    there: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when a token is exchanged: calls go on without it, and the server says why."""
    errors = OverflowError("12"), RecursionError("deep"), ValueError("no")
    left = [one for one in errors for _ in range(2)]

    async def read(*_: object) -> bool:
        raise left.pop()

    await sign_in(there, tmp_path)
    expire(there, tmp_path)
    renewals = dict(there.issuer.renewals)
    monkeypatch.setattr(_CarefulProvider, "_handle_token_response", read)
    monkeypatch.setattr(OAuthClientProvider, "_handle_refresh_response", read)
    while left:
        with pytest.raises(SignInFailed, match="can't be read"):
            await sign_in(there, tmp_path)
        there.issuer.renewals |= renewals  # those that were used, and gave what can't be read
        bearer = Bearer(tmp_path, "far", there.url, allow_private=True)
        await anext(bearer.async_auth_flow(httpx2.Request("POST", there.url)))
        assert "can't be renewed just now: what the server that gives tokens says" in bearer.problem
        assert now(there, tmp_path).refused == ""


async def test_a_client_made_by_hand_is_shown_to_one_server_only(
    there: Guarded, tmp_path: Path
) -> None:
    """An MCP server that names another one that gives tokens, later, doesn't get its secret."""
    ours = OAuthClientInformationFull(
        client_id="ours",
        client_secret="s3cret",
        token_endpoint_auth_method="client_secret_basic",
        scope="notes",
        redirect_uris=[AnyUrl(BACK)],
    )
    await there.issuer.register_client(ours)
    (tmp_path / "secret").write_text("s3cret")
    wanted = replace(section(there), client_id="ours", client_secret_file="secret")
    await sign_in(there, tmp_path, wanted)
    await sign_in(there, tmp_path, wanted)  # the same again is fine
    seen = now(there, tmp_path)
    kept.write(
        tmp_path, "far", replace(seen, server=seen.server | {"issuer": "https://was.example"})
    )
    with pytest.raises(SignInFailed, match="names another server"):
        await sign_in(there, tmp_path, wanted)


async def test_an_answer_byte_by_byte_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            async def drip() -> AsyncIterator[bytes]:
                while True:
                    yield b" "
                    await asyncio.sleep(0)

            return httpx2.Response(200, content=drip())

    monkeypatch.setattr(outlet, "WHOLE_S", 0.01)
    with pytest.raises(httpx2.ReadTimeout):
        await outlet._Outlet(Slow(), is_open=True).handle_async_request(
            httpx2.Request("GET", "http://x.example")
        )


def test_a_refusal_that_is_nested_without_end_says_nothing() -> None:
    assert words.code_of(b'{"error_description": ' + b"[" * 5000) == ""
