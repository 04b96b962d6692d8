"""web_search over HTTP, against a server that answers as SearXNG does, and as it shouldn't."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from services.executor.builtin import shelf_of
from services.executor.own_tools.web_search import NO_JSON, Searcher
from services.executor.tools.source import ToolOutput
from tests.executor.test_fetch import page
from tests.support.hands import NO_SANDBOX
from tests.support.receiver import Behaviour, Flood, raw, running_receiver, silence, status
from vigil.clock import SystemClock
from vigil.errors import ConfigError
from vigil.settings.config import Config
from vigil.settings.sections import SearchSection

RESULTS = [
    {
        "url": "https://tea.example/new",
        "title": "New  tea",
        "content": "It is\ngreen.",
        "publishedDate": "2026-11-20T08:00:00",
        "engine": "x",
    },
    {"url": "javascript:alert(1)", "title": "Bad"},
    {"url": "https://b.example/", "title": None, "content": None},
]


def found(results: Any = RESULTS) -> Behaviour:
    return page(json.dumps({"query": "tea", "results": results}).encode(), "application/json")


async def search(behaviour: Behaviour, **config: Any) -> tuple[ToolOutput, str]:
    """Search for tea; return what was told, and what the endpoint was asked."""
    async with running_receiver(behaviour) as receiver:
        url = f"http://127.0.0.1:{receiver.port}/searxng/"
        searcher = Searcher(SearchSection(url=url, **config))
        try:
            told = await searcher.run("green tea & more", 2)
        finally:
            await searcher.close()
        return told, receiver.requests[0].target if receiver.requests else ""


async def test_what_is_found_is_listed_and_from_outside() -> None:
    """L-6, X-3: at an endpoint of the person's own network, under whatever path."""
    told, target = await search(found())
    assert told == ToolOutput(
        content="1. New tea\nhttps://tea.example/new (2026-11-20)\nIt is green.\n\n"
        "2. \nhttps://b.example/",
        is_tainted=True,
    )
    parts = urlsplit(target)
    assert parts.path == "/searxng/search"
    assert parse_qs(parts.query) == {
        "q": ["green tea & more"],
        "format": ["json"],
        "pageno": ["2"],
    }


async def test_no_more_than_was_wanted() -> None:
    many = [{"url": f"https://{n}.example/", "title": "x" * 5000} for n in range(100)]
    told, _ = await search(found(many), results_max=3)
    assert told.content.count("https://") == 3
    assert len(told.content) < 1000


async def test_nothing_found_is_said() -> None:
    assert (await search(found([])))[0].content == "Nothing was found."


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (status(403), NO_JSON),
        (status(429), "answered 429"),
        (status(302, location="http://169.254.169.254/"), "answered 302"),
        (page(b"<html>no</html>"), "no search result in JSON"),
        (page(b'{"results": 5}', "application/json"), "no search result in JSON"),
        (page(b'{"results": [{"url": "\xff"}]}', "application/json"), "no search result in JSON"),
        (raw(b"what?\r\n\r\n"), "RemoteProtocolError"),
        (Flood(), "more than 2097152 bytes"),
        (silence, "did not answer in time"),
    ],
    ids=["no-json", "busy", "redirect", "html", "shape", "utf8", "not-http", "flood", "silence"],
)
async def test_what_goes_wrong_is_named(behaviour: Behaviour, words: str) -> None:
    told, _ = await search(behaviour, timeout_s=1.0)
    assert told.is_error
    assert told.is_tainted
    assert words in told.content


def test_it_is_offered_only_with_an_endpoint() -> None:
    choice, clock = NO_SANDBOX, SystemClock()
    assert "web_search" not in {t.name for t in shelf_of(choice, Config(), clock).tools}
    with_one = Config(search=SearchSection(url="http://localhost:8888"))
    (search_,) = [t for t in shelf_of(choice, with_one, clock).tools if t.name == "web_search"]
    assert search_.profiles == ("reader",)


@pytest.mark.parametrize("url", ["ftp://x", "localhost:8888", "http://ann:pw@x.example"])
def test_an_endpoint_that_cannot_be_used_stops_the_start(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^search\.url: "):
        Searcher(SearchSection(url=url))
