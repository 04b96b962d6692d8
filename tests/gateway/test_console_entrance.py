"""The console's door: a link that is good once, a cookie, and what other pages may not do."""

from __future__ import annotations

import asyncio
import hashlib
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from services.gateway.console import appearance, site
from services.gateway.console.site import PAGES
from tests.support.cli import Cli
from tests.support.console import HERE, Reader, Shown, browser, link_of, signal, signed_in
from tests.support.gateway import Gate, running_gateway, until
from vigil.settings import tokens
from vigil.subjects import SessionKey

pytestmark = pytest.mark.asyncio(loop_scope="module")
TWICE = (
    ("sec-fetch-site", ("same-origin", "cross-site")),
    ("sec-fetch-dest", ("document", "iframe")),
)
EVIL = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}


async def test_the_address_itself_leads_a_browser_to_the_console(shared_gate: Gate) -> None:
    """As somebody types it; programs are told what they are to send, as before."""
    page = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    async with browser(shared_gate) as one:
        led = await one.get("/", headers=page)
        assert (led.status_code, led.headers["location"]) == (303, "console")
        assert "vigil console" in (await one.get("/", headers=page, follow_redirects=True)).text
        for method, heads in (("GET", {}), ("GET", {"accept": "application/json"}), ("POST", page)):
            answer = await one.request(method, "/", headers=heads)
            assert answer.status_code == 401
            assert answer.headers["content-type"] == "application/problem+json"
        other = await one.get("/api/sessions", headers=page)
        assert other.status_code == 401
        rebound = await one.get("/", headers=page | {"host": "evil.example"})
        assert rebound.status_code == 421
    api = await shared_gate.person("ann")
    assert (await api.get("/", headers=page)).status_code == 404


async def test_a_link_lets_one_browser_in_once(shared_gate: Gate) -> None:
    gate = shared_gate
    token = await gate.token("ann")
    link = await link_of(gate, token)
    assert token not in link
    async with browser(gate) as one, browser(gate) as other:
        out = await one.get("/console")
        assert out.status_code == 401
        assert "vigil console" in out.text
        for _ in range(2):  # looking at it uses nothing up
            offer = await one.get(link)
            assert offer.status_code == 200
            assert "ann" in offer.text
        code = {"code": link.partition("=")[2]}
        answers = await asyncio.gather(
            *(each.post("/console/enter", data=code, headers=HERE) for each in (one, other))
        )
        assert sorted(each.status_code for each in answers) == [303, 410]
        (entered,) = [each for each in answers if each.status_code == 303]
        cookie = entered.headers["set-cookie"]
        assert re.fullmatch(
            r"vigil_console=[\w-]{43}; Path=/console; HttpOnly; SameSite=Strict; Max-Age=604800",
            cookie,
        )
        assert token not in cookie
        assert entered.headers["location"] == "/console"
        assert (await other.get(link)).status_code == 410
        assert (await one.post("/console/enter", data={"code": "x"}, headers=HERE)
                ).status_code == 410  # fmt: skip


async def test_what_other_pages_send_is_refused(shared_gate: Gate) -> None:
    """Cross-site, of another port of this machine, or without a word of where it comes from."""
    ann = await signed_in(shared_gate, "ann")
    host = f"127.0.0.1:{shared_gate.port}"
    wrong: list[dict[str, str]] = [
        EVIL,
        {"origin": "http://localhost:3000"},
        {"sec-fetch-site": "same-site", "origin": "http://localhost:3000"},
        {"origin": "null"},
        {"sec-fetch-site": "none"},
        {},
    ]
    forms = [f"/console{one.path}" for one in PAGES if one.act]
    for path in (*forms, "/console/pause", "/console/leave", "/console/enter"):
        for heads in wrong:
            sent = {"whose": "mine", "to": "on", "code": "x" * 43}
            answer = await ann.client.post(path, data=sent, headers=heads)
            assert answer.status_code == 403, (path, heads)
    assert "End my pause" not in (await ann.page()).text
    assert (await ann.client.get("/console", headers={"sec-fetch-site": "cross-site",
                                                      "sec-fetch-dest": "iframe"})
            ).status_code == 403  # fmt: skip
    for name, values in TWICE:
        twice = [(name, value) for value in values]
        answer = await ann.client.post("/console/pause", data={"to": "on"}, headers=twice)
        assert answer.status_code == 400, "a proxy may go by the other one"
        assert name in answer.text.lower()
    good = await ann.client.post(
        "/console/pause", data={"whose": "mine", "to": "off"}, headers={"origin": f"http://{host}"}
    )
    assert good.status_code == 303


async def test_no_page_may_be_framed_kept_or_run_what_others_wrote(shared_gate: Gate) -> None:
    ann = await signed_in(shared_gate, "ann")
    async with browser(shared_gate) as stranger:
        answers = [await ann.client.get("/console"), await stranger.get("/console"),
                   await stranger.get("/console/enter?code=x")]  # fmt: skip
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "default-src 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "unsafe" not in policy
        scripts = re.findall(r"<script[^>]*>", answer.text)
        nonces = re.findall(r"'nonce-([\w-]+)'", policy)
        assert all(f'nonce="{nonces[0]}"' in one for one in scripts)
        assert len(nonces) == bool(scripts)
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "style=" not in answer.text
        assert not re.search(r"<script(?![^>]* src=)|\son\w+=|https?://", answer.text)
    sheet = re.findall(r'href="([^"]+\.css)"', answers[0].text)[0]
    assert (await ann.client.get(sheet)).headers["cache-control"].endswith("immutable")
    assert (await ann.client.get(sheet.replace("/static/", "/static/0"))).status_code == 404
    packed = await ann.client.get(sheet, headers={"accept-encoding": "gzip"})
    plain = await ann.client.get(sheet, headers={"accept-encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content
    page = await ann.client.get("/console", headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in page.headers


async def test_a_cookie_is_no_token_and_a_token_no_cookie(shared_gate: Gate) -> None:
    ann = await signed_in(shared_gate, "ann")
    cookie = ann.client.cookies["vigil_console"]
    async with browser(shared_gate) as other:
        heads = {"cookie": f"vigil_console={cookie}"}
        assert (await other.get("/console", headers=heads)).status_code == 200
        assert (await other.get("/api/me", headers=heads)).status_code == 401
        as_token = {"authorization": f"Bearer {cookie}"}
        assert (await other.get("/api/me", headers=as_token)).status_code == 401
        token = {"authorization": f"Bearer {await shared_gate.token('ann')}"}
        assert (await other.get("/console", headers=token)).status_code == 401
        twice = {"cookie": f"vigil_console={cookie}; vigil_console={cookie}"}
        assert (await other.get("/console", headers=twice)).status_code == 401


async def test_signing_out_here_and_elsewhere(shared_gate: Gate) -> None:
    gate = shared_gate
    token = await gate.token("olga")
    people = []
    for _ in range(3):
        client = await gate.http()
        code = (await link_of(gate, token)).partition("=")[2]
        await client.post("/console/enter", data={"code": code}, headers=HERE)
        people.append(Reader(client))
    first, second, third = people
    stranger = await signed_in(gate, "stan", is_admin=True)
    shown = await first.page("/browsers")
    ids = [form["id"] for form in shown.forms if "id" in form]
    assert len(ids) == 3
    for id_ in ids:
        assert (await stranger.send("/browsers", id=id_)).status_code == 404
    assert await second.did("/leave") == "/console"
    assert (await second.client.get("/console")).status_code == 401
    api = await gate.http(token)
    there = (await api.get("/api/console/browsers")).json()["browsers"]
    assert len(there) == 2
    await api.delete(f"/api/console/browsers/{there[0]['id']}")
    statuses = [(await one.client.get("/console")).status_code for one in (first, third)]
    assert sorted(statuses) == [200, 401]
    left = first if statuses[0] == 200 else third
    await tokens.revoke(gate.operator, token)

    async def is_out() -> bool:
        return (await left.client.get("/console")).status_code == 401

    await until(is_out, "a browser ends with the token that let it in")


class Tomorrow:
    """A clock that is set."""

    def __init__(self) -> None:
        self.at = datetime(2026, 11, 24, 9, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()


@pytest.mark.asyncio(loop_scope="function")
async def test_links_and_browsers_end(tmp_path: Path) -> None:
    """Two minutes, seven days; whoever guesses is slowed down, and locks nobody out."""
    clock = Tomorrow()
    async with running_gateway(tmp_path, clock=clock) as gate:
        token = await gate.token("ann")
        old = await link_of(gate, token)
        clock.at += timedelta(minutes=2)
        ann = await signed_in(gate, "ann")
        assert (await ann.client.get(old)).status_code == 410
        async with browser(gate) as guesser:
            heads = [{"cookie": f"vigil_console={n:043d}"} for n in range(40)]
            got = [(await guesser.get("/console", headers=one)).status_code for one in heads]
        assert got[0] == 401
        assert got[-1] == 429
        assert (await ann.client.get("/console")).status_code == 200
        clock.at += timedelta(days=7)
        assert (await ann.client.get("/console")).status_code == 401


async def test_a_page_is_told_that_something_changed_and_not_what(shared_gate: Gate) -> None:
    """Of what its reader may see; and not any more once they are signed out for good."""
    gate = shared_gate
    token = await gate.token("ivo")
    client = await gate.http()
    code = (await link_of(gate, token)).partition("=")[2]
    await client.post("/console/enter", data={"code": code}, headers=HERE)
    async with browser(gate) as stranger:
        assert (await stranger.get("/console/live")).status_code == 401
    async with client.stream("GET", "/console/live") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["x-frame-options"] == "DENY"
        lines = stream.aiter_lines()
        assert await anext(lines) == "retry: 1000"
        await signal(gate, SessionKey("bob", "vigil", "t1"), "a secret of bob's")
        seq = await signal(gate, SessionKey("ivo", "vigil", "t1"), "a secret")
        found = [await anext(lines) for _ in range(6)]
        assert found[2:] == [f"id: {seq}", "event: changed", "data: 1", ""]
        await tokens.revoke(gate.operator, token)
        rest = [line async for line in lines]
    assert "secret" not in "".join([*found, *rest])


async def test_an_answer_is_followed_while_it_is_made(shared_gate: Gate) -> None:
    key = SessionKey("ida", "vigil", "t1")
    ida = await signed_in(shared_gate, "ida")
    async with ida.client.stream("GET", f"/console/live/{key}") as stream:
        assert stream.headers["x-frame-options"] == "DENY"
        lines = stream.aiter_lines()
        await anext(lines)
        token = {"turn": 1, "attempt": 0, "text": "Hel\nlo"}
        await shared_gate.admin.send(key.live, msgspec.json.encode(token))
        found = [await anext(lines) for _ in range(3)]
        assert found[1] == "event: token"
        told = msgspec.json.decode(found[2].removeprefix("data: "))
        assert told == token | {"type": "token"}
        await ida.did("/leave")
        assert [line async for line in lines] == [""]  # it ends, though the token goes on


async def test_whoever_signs_out_hears_no_more(shared_gate: Gate) -> None:
    """From elsewhere, too: the stream of that browser ends at once, another's goes on."""
    token = await shared_gate.token("kai")
    clients = [await shared_gate.http() for _ in range(2)]
    for client in clients:
        code = (await link_of(shared_gate, token)).partition("=")[2]
        await client.post("/console/enter", data={"code": code}, headers=HERE)
    api = await shared_gate.http(token)
    newest = (await api.get("/api/console/browsers")).json()["browsers"][0]["id"]
    async with (
        clients[0].stream("GET", "/console/live") as going_on,
        clients[1].stream("GET", "/console/live") as ended,
    ):
        lines = going_on.aiter_lines()
        await anext(lines)
        await api.delete(f"/api/console/browsers/{newest}")
        assert len([line async for line in ended.aiter_lines()]) == 3
        seq = await signal(shared_gate, SessionKey("kai", "vigil", "t1"))
        assert f"id: {seq}" in [await anext(lines) for _ in range(3)]
    # A page hears of what happened since it was made, though its stream began later.
    page = Shown((await clients[0].get("/console")).text)
    (live,) = [found["hx-sse:connect"] for _, found in page.tags if "hx-sse:connect" in found]
    seq = await signal(shared_gate, SessionKey("kai", "vigil", "t1"))
    async with clients[0].stream("GET", str(live)) as stream:
        lines = stream.aiter_lines()
        assert f"id: {seq}" in [await anext(lines) for _ in range(4)]


async def test_the_command_prints_a_link_and_signs_browsers_out(
    shared_gate: Gate, tmp_path: Path
) -> None:
    """Where nobody looks it opens none; the link is the one thing on stdout."""
    gate = shared_gate
    where = {"VIGIL_URL": f"http://127.0.0.1:{gate.port}", "VIGIL_TOKEN": await gate.token("una")}
    cli = Cli(tmp_path / "home", **where)
    link = (await asyncio.to_thread(cli, "console")).stdout.strip()
    assert link.startswith(f"{where['VIGIL_URL']}/console/enter?code=")
    assert where["VIGIL_TOKEN"] not in link
    client = await gate.http()
    heads = HERE | {"user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Firefox/143.0"}
    code = {"code": link.partition("=")[2]}
    await client.post("/console/enter", data=code, headers=heads)
    assert (await client.get("/console")).status_code == 200
    listed = (await asyncio.to_thread(cli, "console", "--browsers", "--json")).stdout
    (one,) = msgspec.json.decode(listed)["browsers"]
    assert one["name"] == "Firefox on Linux"
    told = (await asyncio.to_thread(cli, "console", "--sign-out", one["id"][:8])).stderr
    assert "Signed Firefox on Linux out." in told
    assert (await client.get("/console")).status_code == 401


async def test_whatever_somebody_writes_stays_text() -> None:
    """200 texts, in the place of text and of an attribute: no tag, no handler, nothing unseen."""
    ends = ("", '"', "'", "-->", "]]>", "</p>", "\x00", "\u2028", "{{ 7 * 7 }}", "%22%3E")
    acts = (
        "<script>x()</script>", "<img src=x onerror=x()>", "<svg/onload=x()>", "javascript:x()",
        "<iframe srcdoc='<script>x()</script>'>", "<a href=//evil.example>", "&lt;script&gt;",
        "\x1b]0;x\x07\x1b[2J", "\u202eevil\u2066", "<style>*{display:none}</style>", "\ud800<b",
        "<base href=//evil.example>", "<meta http-equiv=refresh content=0>", "\U000e0041<x>",
        "<form action=//evil.example>", "<math><mi//xlink:href='data:x'>", "\ufeff<!--",
        "<" * 900, "\u200b\u200f<b onclick=x()>", "a" * 30_000,
    )  # fmt: skip
    texts = [end + act for end in ends for act in acts]
    assert len(texts) == 200
    for text in texts:
        for template, names in (("refused", ("title", "detail")), ("enter", ("code", "user"))):
            made, plain = (
                bytes(
                    appearance.html("", f"{template}.html", dict.fromkeys(names, one)).body
                ).decode()
                for one in (text, "x")
            )
            shown = Shown(made)
            assert [tag for tag, _ in shown.tags] == [tag for tag, _ in Shown(plain).tags], text
            assert shown.strange() == []
            assert not re.search("[\x00\x1b\u202e\u2066\u200b\ufeff]", made), text


async def test_scripts_of_others_are_as_they_were_published() -> None:
    folder = Path(site.__file__).parent / "static" / "vendor"
    told = (folder / "README.md").read_text()
    files = sorted(one for one in folder.iterdir() if one.suffix in (".js", ".css"))
    assert [one.name for one in files] == [
        "htmx.js", "hx-csp.js", "hx-sse.js", "uPlot.css", "uPlot.js",
    ]  # fmt: skip
    for one in files:
        assert hashlib.sha256(one.read_bytes()).hexdigest() in told
    assert {one.name for one in folder.glob("LICENSE*")} == {"LICENSE", "LICENSE-uPlot"}
