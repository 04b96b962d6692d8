"""http_get against a real server, and where it must never go: RELIABILITY S9, SPEC X-1, X-3."""

from __future__ import annotations

import gzip
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import msgspec
import pytest

from services.cortex.core.draft.kinds import registered
from services.executor.own_tools.http_get import Fetcher, HttpGet, unpack
from services.executor.site_headers import NO_SITES, READER, SiteHeaders, Way, headers_of
from services.executor.tools.source import ToolOutput
from tests.support.grants import grant_of
from tests.support.hands import call_of
from tests.support.receiver import (
    TLS,
    Behaviour,
    Flood,
    Receiver,
    drip,
    raw,
    running_receiver,
    silence,
    status,
)
from vigil.contracts import Address, Grant
from vigil.errors import ConfigError
from vigil.net.ssrf import RequestRefused, Rules, target_of
from vigil.settings import config
from vigil.settings.config import Config
from vigil.settings.sites import Site
from vigil.subjects import SessionKey
from vigil.texts import excerpt

PUBLIC = "93.184.215.14"
Resolve = Callable[[str, int], Awaitable[list[str]]]


class Names:
    """A resolver that gives one answer after the other, the last one for good."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class PublicInternet:
    """Brings what goes to :data:`PUBLIC` to a server here; everything else is refused and noted."""

    def __init__(self, fetcher: Fetcher, port: int) -> None:
        pool = fetcher._client._transport._connected._pool  # type: ignore[attr-defined]
        self._real = pool._network_backend
        self._port = port
        self.reached: list[tuple[str, int]] = []
        pool._network_backend = self

    async def connect_tcp(self, host: str, port: int, **options: Any) -> Any:
        self.reached.append((host, port))
        assert host == PUBLIC, f"somebody connected to {host}"
        return await self._real.connect_tcp("127.0.0.1", self._port, **options)


def page(body: bytes, kind: str = "text/html; charset=utf-8", /, **headers: str) -> Behaviour:
    lines = ["HTTP/1.1 200 OK", f"content-type: {kind}", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return raw("\r\n".join([*lines, "", ""]).encode() + body)


async def get(
    receiver: Receiver | None, url: str = "http://a.example/", *, names: Resolve | None = None,
    bytes_max: int = 2**20, timeout_s: float = 10.0, offset: int = 0, rules: Rules | None = None,
    tls: ssl.SSLContext | None = None, sites: SiteHeaders = NO_SITES, thread: str = "t1",
    grant: Grant | None = None,
) -> tuple[ToolOutput, list[tuple[str, int]]]:  # fmt: skip
    """Fetch from the public internet -> what was told, and who was connected to."""
    fetcher = Fetcher(
        rules or Rules(), bytes_max=bytes_max, timeout_s=timeout_s,
        resolve=names or Names([PUBLIC]), tls=tls, sites=sites,
    )  # fmt: skip
    internet = PublicInternet(fetcher, receiver.port if receiver else 9)
    try:
        call = msgspec.structs.replace(
            call_of("http_get", Config(), {"url": url}),
            key=SessionKey("ann", "vigil", thread), grant=grant,
        )  # fmt: skip
        return await fetcher.run(HttpGet(url=url, offset=offset), call), internet.reached
    finally:
        await fetcher.close()


# ---------------------------------------------------------------- what it is for


async def test_a_page_comes_as_text_and_is_from_outside() -> None:
    """P-6, X-3."""
    html = (
        b"<title>Hi</title><h1>News</h1><p>One &amp; <a href='/two'>two</a></p><script>x</script>"
    )
    async with running_receiver(page(html)) as receiver:
        told, reached = await get(receiver, "http://a.example/news?x=1")
    assert told == ToolOutput(
        content="200 OK, text/html, http://a.example/news?x=1\n\nTitle: Hi\n\n"
        "# News\n\nOne & two (http://a.example/two)",
        is_tainted=True,
        origin="url:http://a.example/news?x=1",
    )
    assert reached == [(PUBLIC, 80)]
    (request,) = receiver.requests
    assert request.target == "/news?x=1"
    assert request.headers["host"] == "a.example"
    assert request.headers["user-agent"].startswith("Vigil/")
    assert not {"cookie", "authorization", "referer"} & set(request.headers)


async def test_other_text_comes_as_it_is() -> None:
    async with running_receiver(page(b'{"a": "<b>"}', "application/json")) as receiver:
        told, _ = await get(receiver)
    assert told.content.endswith('\n\n{"a": "<b>"}')


async def test_its_character_set_counts() -> None:
    for kind, body in (
        ("text/plain; charset=ISO-8859-1", "grün".encode("latin-1")),
        ("text/html", b"<meta charset=windows-1252><p>gr\xfcn"),
        ("text/plain; charset=no-such", "grün".encode()),
        ("text/plain; charset=base64", "grün".encode()),
        ("text/plain", "grün".encode()),
    ):
        async with running_receiver(page(body, kind)) as receiver:
            told, _ = await get(receiver)
        assert told.content.endswith("grün")


async def test_what_is_no_text_is_not_shown() -> None:
    async with running_receiver(page(b"%PDF-1.7 \0", "application/pdf")) as receiver:
        told, _ = await get(receiver)
    assert told.is_error
    assert "10 bytes that are no text" in told.content


async def test_an_error_of_the_server_is_one() -> None:
    async with running_receiver(status(404, "Not Found")) as receiver:
        told, _ = await get(receiver)
    assert (told.is_error, told.is_tainted) == (True, True)
    assert told.content.startswith("404 Not Found")


async def test_a_redirect_is_followed_and_nothing_taken_along() -> None:
    """S9: no cookies, whoever sets them."""
    moved = status(302, location="http://b.example/two", set_cookie="a=b")
    async with running_receiver(moved, page(b"there", "text/plain")) as receiver:
        names = Names([PUBLIC])
        told, _ = await get(receiver, names=names)
    assert told.content == "200 OK, text/plain, http://b.example/two\n\nthere"
    assert told.origin == "", "F-15: nothing that could be trusted by the address that was asked"
    assert names.asked == ["a.example", "b.example"]
    assert [one.headers["host"] for one in receiver.requests] == ["a.example", "b.example"]
    assert "cookie" not in receiver.requests[1].headers


async def test_the_certificate_is_checked_against_the_name() -> None:
    """S9: connecting to an address must not mean to believe it."""
    trusting = ssl.create_default_context(cafile=str(TLS / "receiver.pem"))
    receiver = Receiver()
    receiver.behaviours = [page(b"safe", "text/plain")]
    async with receiver.listening(tls=True):
        told, _ = await get(receiver, "https://receiver.test/", tls=trusting)
        other, _ = await get(receiver, "https://other.test/", tls=trusting)
    assert told.content.endswith("safe")
    assert other.is_error
    assert "safe" not in other.content


# ---------------------------------------------------------------- what a host is told


TOKEN = "Bearer t0p-secret-token"
SITES = SiteHeaders({"receiver.test": {"Authorization": TOKEN, "X-Key": "k3y"}})


def tells(*behaviours: Behaviour) -> Receiver:
    receiver = Receiver()
    receiver.behaviours = list(behaviours)
    return receiver


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(TLS / "receiver.pem"))
    context.check_hostname = False  # one certificate for all names here
    return context


async def sent(
    receiver: Receiver, url: str, *, tls: bool = True, **options: Any
) -> tuple[ToolOutput, list[str | None]]:
    """Fetch with headers for `receiver.test` -> what was told, and who each request said it was."""
    async with receiver.listening(tls=tls):
        told, _ = await get(receiver, url, tls=trusting(), sites=SITES, **options)
    return told, [one.headers.get("authorization") for one in receiver.requests]


@pytest.mark.parametrize("host", ["receiver.test", "Receiver.TEST", "receiver.test.:443"])
async def test_a_host_is_sent_its_headers_and_nobody_sees_them(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    """L-6, S15: nor what the other side makes of them."""
    echo = page(f"You sent {TOKEN} and t0p-secret-token and k3y.".encode(), "text/plain")
    with caplog.at_level(logging.DEBUG):
        told, asked = await sent(tells(echo), f"https://{host}/v1?a=b")
    assert asked == [TOKEN]
    assert told.content.endswith("You sent [hidden] and [hidden] and [hidden].")
    assert told.is_tainted
    assert "t0p-secret" not in caplog.text + repr(told)


@pytest.mark.parametrize(
    "url", ["https://a.test/", "https://receiver.test.a.test/", "https://a.receiver.test/"]
)
async def test_no_other_host_is_sent_them(url: str) -> None:
    _, asked = await sent(tells(page(b"hi")), url)
    assert asked == [None]


async def test_nobody_is_sent_them_in_the_clear() -> None:
    _, asked = await sent(tells(page(b"hi")), "http://receiver.test/", tls=False)
    assert asked == [None]


@pytest.mark.parametrize(
    ("first", "location", "expected"),
    [
        ("https://receiver.test/", "/two", [TOKEN, TOKEN]),
        ("https://receiver.test/", "https://a.test/", [TOKEN, None]),
        ("https://receiver.test/", "http://receiver.test/", [TOKEN, None]),
        ("https://a.test/", "https://receiver.test/", [None, None]),
        ("http://receiver.test/", "https://receiver.test/", [None, None]),
    ],
)
async def test_what_another_site_leads_to_is_asked_as_by_a_stranger(
    first: str, location: str, expected: list[str | None]
) -> None:
    """L-6: never after a redirect to another host or to http, nor after one from there."""
    way = Way(SITES.headers)
    target = target_of(first, Rules())
    found = [way.headers_to(target), way.headers_to(target_of(urljoin(first, location), Rules()))]
    assert [one.get("Authorization") for one in found] == expected


async def test_a_redirect_takes_no_headers_along() -> None:
    _, asked = await sent(
        tells(status(302, location="https://a.test/"), status(302, location="https://receiver.test/"),
              page(b"hi")),
        "https://receiver.test/",
    )  # fmt: skip
    assert asked == [TOKEN, None, None]


async def test_a_reader_sends_none() -> None:
    """L-6: it may go anywhere, since it holds nothing private; nor may it fetch what is."""
    _, asked = await sent(tells(page(b"hi")), "https://receiver.test/", thread="_reader-1f")
    assert asked == [None]
    free = [one.name for one in registered().values() if "http_get" in one.free]
    assert free == [READER]


async def test_a_granted_call_sends_them_too() -> None:
    rule = Address(host="receiver.test", port=443, path="/v1")
    told, asked = await sent(
        tells(page(b"hi")), "https://receiver.test/v1/a", grant=grant_of("http_get", rule)
    )
    assert (told.is_error, asked) == (False, [TOKEN])


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ("host = 'API.example.org'", "host: must be written as 'api.example.org'"),
        ("host = '*.example.org'", "host: '*.example.org' is not a host name"),
        ("host = 'https://a.test'", "host: 'https://a.test' is not a host name"),
        ("host = 'straße.test'", "host: 'straße.test' is one host to some programs and another"),
        ("host = 'a.test:8443'", "host: 'a.test:8443' is not a host name"),
        ("host = 'a.test'\nheaders = {Host = 'b.test'}", "headers: Host can't be set"),
        ("host = 'a.test'\nheaders = {A = \"s3cret\\nB: c\"}", "headers: the value of A must be"),
        ("host = 'a.test'\nheaders = {'A b' = 's3cret'}", "headers: has a name that no header"),
        ("host = 'a.test'\nurls = ['https://b.test/']", "'https://b.test/' is not of a.test"),
        ("host = 'a.test'\nurls = ['https://u@a.test/']", "must not contain a user name"),
        ("host = 'a.test'\nurls = ['https://a.test/#x']", "has a fragment"),
        ("host = 'a.test'\n[sites.y]\nhost = 'a.test'", "a.test has more than one section"),
    ],
)
def test_a_section_that_cannot_be_meant_stops_the_start(
    section: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "vigil.toml").write_text(f"[sites.x]\n{section}\n")
    with pytest.raises(ConfigError) as error:
        config.load({}, home=tmp_path)
    assert reason in str(error.value)
    assert "s3cret" not in str(error.value)


def test_headers_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.headers").write_text("# mine\nAuthorization: Bearer x\n")
    site = Site(host="a.test", headers_file="a.headers", headers={"X": "1"})
    sites = headers_of({"a": site}, tmp_path)
    assert sites.headers == {"a.test": {"X": "1", "Authorization": "Bearer x"}}
    assert "1" not in repr(site).partition("headers")[2]
    (tmp_path / "a.headers").write_text("Authorization: Bearer \x07s3cret\n")
    with pytest.raises(ConfigError, match=r"^sites\.a\.headers_file: the value of Auth") as error:
        headers_of({"a": site}, tmp_path)
    assert "s3cret" not in str(error.value)


async def test_the_client_tells_no_urls(caplog: pytest.LogCaptureFixture) -> None:
    """S15: a URL may hold a secret."""
    with caplog.at_level(logging.INFO):
        async with running_receiver(page(b"hi", "text/plain")) as receiver:
            await get(receiver, "http://a.example/?key=k3y")
    assert "k3y" not in caplog.text


# ---------------------------------------------------------------- where it must not go


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://127.1/", "http://0x7f000001/", "http://2130706433/",
        "http://0177.0.0.1/", "http://[::ffff:127.0.0.1]/", "http://[::]/", "http://[::1]/",
        "http://0.0.0.0/", "http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/",
        "http://metadata.google.internal/", "http://localhost./", "http://localhost/",
        "http://a.localhost/", "http://user@127.0.0.1/", "http://user:pw@a.example/",
        "http://10.1.2.3/", "http://192.168.0.1/", "http://172.16.0.1/", "http://100.64.0.1/",
        "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://[fe80::1%25eth0]/",
        "file:///etc/passwd", "gopher://a.example/", "ftp://a.example/", "data:text/plain,x",
        "http://a.example:4222/", "http://a.example:22/", "http://127.0.0.1:4222/", "//a.example/",
        "http:///", "http://a.example\\@127.0.0.1/", "http://a b/", "http://a.example/\r\nX: y",
        "http://printer.local/", "http://" + "a" * 3000,
    ],
)  # fmt: skip
async def test_no_form_of_an_address_gets_in(url: str) -> None:
    """S9."""
    told, reached = await get(None, url)
    assert told.is_error
    assert told.content.startswith("not fetched: the URL ")
    assert reached == []


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["10.0.0.7"], ["169.254.169.254"], ["::1"], ["::ffff:10.0.0.1"],
     [PUBLIC, "127.0.0.1"], ["64:ff9b::a00:1"], []],
)  # fmt: skip
async def test_no_name_of_a_private_address_gets_in(addresses: list[str]) -> None:
    """S9: one forbidden address among good ones is enough."""
    told, reached = await get(None, names=Names(addresses))
    assert told.is_error
    assert reached == []


async def test_a_name_that_changes_its_address_is_looked_up_once() -> None:
    """S9: DNS rebinding: the second answer would be this machine."""
    names = Names([PUBLIC], ["127.0.0.1"])
    async with running_receiver(page(b"hi", "text/plain")) as receiver:
        told, reached = await get(receiver, names=names)
    assert told.content.endswith("hi")
    assert names.asked == ["a.example"]
    assert reached == [(PUBLIC, 80)]


@pytest.mark.parametrize(
    "location",
    ["http://127.0.0.1/", "http://169.254.169.254/latest/", "//127.0.0.1/", "http://localhost:4222/",
     "file:///etc/passwd", "gopher://a.example/", "http://user:pw@a.example/", "http://[::1]/",
     "http://2130706433/", "http://a.example:6379/", "javascript:alert(1)", "http://["],
)  # fmt: skip
async def test_no_redirect_leads_in(location: str) -> None:
    """S9: each one is judged anew."""
    async with running_receiver(status(302, location=location)) as receiver:
        told, reached = await get(receiver)
    assert told.is_error
    assert told.content.startswith("not fetched: ")
    assert reached == [(PUBLIC, 80)]


async def test_a_redirect_to_a_name_that_is_private_by_now() -> None:
    """S9: the same name, resolved anew for the second request."""
    names = Names([PUBLIC], ["10.0.0.1"])
    async with running_receiver(status(307, location="/again")) as receiver:
        told, reached = await get(receiver, names=names)
    assert "not a public address" in told.content
    assert reached == [(PUBLIC, 80)]


async def test_redirects_without_end_have_one() -> None:
    async with running_receiver(status(302, location="/")) as receiver:
        told, reached = await get(receiver)
    assert "leads on and on" in told.content
    assert len(reached) == 6


async def test_the_environment_puts_no_proxy_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """S9: a proxy would connect to where nobody judged."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with running_receiver(page(b"hi", "text/plain")) as receiver:
        told, reached = await get(receiver)
    assert told.content.endswith("hi")
    assert reached == [(PUBLIC, 80)]


# ---------------------------------------------------------------- what it must not use up


async def test_a_page_without_end_is_read_up_to_a_limit() -> None:
    """X-1: the size of a body."""
    flood = Flood()
    async with running_receiver(flood) as receiver:
        told, _ = await get(receiver, bytes_max=100_000)
    assert "only the first 100000 bytes" in told.content
    assert flood.taken < 64 * 2**20  # what the sockets between hold, and not a gigabyte
    assert len(told.content) < 70_000


@pytest.mark.parametrize("behaviour", [silence, drip])
async def test_a_slow_page_is_given_up(behaviour: Behaviour) -> None:
    """X-1: the time for all of it."""
    async with running_receiver(behaviour) as receiver:
        begun = time.monotonic()
        told, _ = await get(receiver, timeout_s=0.5)
    assert time.monotonic() - begun < 5
    assert told == ToolOutput(
        content="not fetched: no whole answer within 0.5 s", is_error=True, is_tainted=True
    )


async def test_a_small_body_that_unpacks_to_a_large_one() -> None:
    """X-1: packed although nobody asked for it."""
    bomb = gzip.compress(b"x" * 100_000_000, compresslevel=1)
    async with running_receiver(page(bomb, "text/plain", content_encoding="gzip")) as receiver:
        told, _ = await get(receiver, bytes_max=500_000)
    assert "only the first 500000 bytes" in told.content
    with pytest.raises(RequestRefused):
        unpack(b"", "br", 10)
    assert unpack(gzip.compress(b"short"), "gzip", 100) == (b"short", True)


async def test_a_long_text_is_read_piece_by_piece() -> None:
    text = "".join(f"line {n}\n" for n in range(20_000))
    async with running_receiver(page(text.encode(), "text/plain")) as receiver:
        told, _ = await get(receiver)
        _, _, tail = told.content.rpartition("go on with offset=")
        rest, _ = await get(receiver, offset=int(tail[:-1]))
    shown = told.content.partition("\n\n")[2].rpartition("\n[")[0]
    assert excerpt.in_characters(told.content, excerpt.SHOWN_LENGTH_MAX) == told.content
    assert text.startswith(shown + rest.content.partition("\n\n")[2][:1000])


async def test_a_character_set_that_was_made_to_hold_us_up() -> None:
    """X-1: punycode takes the square of a text's length; no page is written in it."""
    body = b"a" * 60_000 + b"-" + b"b" * 60_000
    async with running_receiver(page(body, "text/plain; charset=punycode")) as receiver:
        told, _ = await get(receiver)
    assert "[120001 characters in all;" in told.content
