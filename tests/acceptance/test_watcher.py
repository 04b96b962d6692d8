"""What is looked at without a model, and has an agent run only if it has changed (LOOPS L-3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
import pytest_asyncio

from services.cortex.model import ModelRequest
from services.executor import builtin
from services.executor.own_tools.http_get import Fetcher
from services.executor.probes import watcher
from services.scheduler.timetable import watch as watch_rules
from tests.support.mcp_client import sandbox
from tests.support.pauses import pauses
from tests.support.world import Person, StoppedClock, World, running_world
from vigil.contracts import SlotEntry
from vigil.errors import Unavailable
from vigil.marks import erasure
from vigil.net.ssrf import Rules
from vigil.subjects import Scope
from vigil.timetable.log import Placed, SlotLog
from vigil.timetable.probe import FAILURES_TOLD
from vigil.watching import watched

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH: Final = "/api/cron"
PATIENCE_S: Final = 40.0
DAY_S: Final = 86_400


class Document:
    """A site with one document, which says what version of it one has."""

    def __init__(self) -> None:
        self.text = "one\ntwo\nthree"
        self.type = "text/plain"
        self.status = "200 OK"
        self.sent = 0
        self.waiting = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        self.waiting += not self.gate.is_set()
        await self.gate.wait()
        tag = f'"{hash(self.text):x}"'
        if f"if-none-match: {tag}" in head:
            writer.write(b"HTTP/1.1 304 Not Modified\r\nconnection: close\r\n\r\n")
        else:
            self.sent += 1
            body = self.text.encode()
            lines = (
                f"HTTP/1.1 {self.status}",
                f"content-type: {self.type}",
                f"etag: {tag}",
                f"content-length: {len(body)}",
                "connection: close",
            )
            writer.write("\r\n".join((*lines, "", "")).encode() + body)
        await writer.drain()
        writer.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Document]:
    found = Document()
    server = await asyncio.start_server(found.answer, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    async with server:
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(site: Document, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        home: Path = tmp_path_factory.mktemp("home")
        rules = Rules(ports=(site.port,), allow_private=True)
        # All of it is as it is, but for where it may look: the site is on this machine.
        patch.setattr(builtin, "Fetcher", lambda _, **more: Fetcher(rules, **more))
        patch.setattr(watched, "PUBLIC", rules)
        async with running_world(home, patch, has_hands=True) as running:
            yield running


async def made(http: httpx2.AsyncClient, name: str, watch: dict[str, str]) -> Any:
    body = {"name": name, "prompt": "Tell me", "interval_s": DAY_S, "watch": watch}
    answer = await http.post(PATH, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def entries(http: httpx2.AsyncClient, row: Any) -> list[dict[str, Any]]:
    answer = await http.get("/api/slots", params={"row": row["id"], "limit": 500})
    found: list[dict[str, Any]] = answer.json()["slots"]
    return found[::-1]


async def until(
    http: httpx2.AsyncClient, row: Any, state: str, count: int = 1
) -> list[dict[str, Any]]:
    """Wait until so many entries of a row say that, the newest one of them."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while [one["state"] for one in found].count(state) < count or found[-1]["state"] != state:
            await asyncio.sleep(next(pause_s))
            found = await entries(http, row)
    return found


def move(world: World, days: float) -> None:
    assert isinstance(world.clock, StoppedClock)
    world.clock.move(days * DAY_S)


async def remove(http: httpx2.AsyncClient, row: Any) -> None:
    assert (await http.delete(f"{PATH}/{row['id']}")).status_code == 200


async def test_a_month_without_a_change_takes_no_model_and_one_change_one_run(
    world: World, site: Document
) -> None:
    ann = await world.person("ann:vigil:main", has_socket=False)
    asked: list[str] = []
    behave = world.agent.behave

    def answer(request: ModelRequest) -> Any:
        asked.append(request.session_key)
        return behave(request)

    world.agent.behave = answer
    row = await made(ann.http, "news", {"kind": "url", "url": site.url})
    found = await until(ann.http, row, "skipped")
    assert found[0]["reason"] == watch_rules.FIRST
    for day in range(30):
        move(world, 1)
        found = await until(ann.http, row, "skipped", day + 2)
    assert site.sent == 1
    assert asked == []
    site.text = "one\ntwo\nfour"
    move(world, 1)
    found = await until(ann.http, row, "ran")
    await world.at_rest()
    world.agent.behave = behave
    assert asked == [found[-1]["session"]]
    quiet = [one for one in found if one["reason"] == watch_rules.UNCHANGED]
    assert sum(one["count"] for one in quiet) == 30
    assert [one["state"] for one in found if one not in quiet] == ["skipped", "running", "ran"]
    (said,) = world.talk("ann:vigil:main").said
    for line in ("-three", "+four"):
        assert line in said.text
    assert " one" not in said.text
    why = (await ann.http.get(f"/api/why/{row['id']}")).json()
    assert why["verdict"] == "done", why
    await remove(ann.http, row)


async def test_what_cannot_be_seen_is_told_once_and_once_when_it_can(
    world: World, site: Document
) -> None:
    bob = await world.person("bob:vigil:main", has_socket=False)
    site.text, site.type = '{"items": [{"version": 3}]}', "application/json"
    row = await made(
        bob.http, "version", {"kind": "url", "url": site.url, "pointer": "/items/0/version"}
    )
    await until(bob.http, row, "skipped")
    site.text = "{}"
    for number in range(FAILURES_TOLD + 2):
        move(world, 1)
        found = await until(bob.http, row, "failed", number + 1)
    assert "'/items/0/version' leads to nothing" in found[-1]["reason"]
    site.text = '{"items": [{"version": 4}]}'
    move(world, 1)
    await until(bob.http, row, "ran")
    await world.at_rest()
    texts = [one.text for one in world.talk("bob:vigil:main").said]
    assert "couldn't look 3 times" in texts[0]
    assert texts[1] == "The watcher 'version' works again."
    assert "+4" in texts[2]
    assert len(texts) == 3
    await remove(bob.http, row)


def feed(*numbers: int) -> str:
    items = "".join(f"<item><guid>{n}</guid><title>Entry {n}</title></item>" for n in numbers)
    return f'<rss version="2.0"><channel><title>News</title>{items}</channel></rss>'


async def test_each_kind_is_quiet_until_it_changes_and_then_runs_once(
    world: World, site: Document
) -> None:
    """Files, a command and a feed; by hand it's shown what is there, and a watch can be ended."""
    await sandbox()
    hal = await world.person("hal:vigil:main", has_socket=False)
    note = world.stack.settings.workspaces / "vigil" / "hal" / "notes" / "a.md"
    note.parent.mkdir(parents=True)
    note.write_text("calm\n")
    site.text, site.type = feed(1), "application/rss+xml"
    watched: dict[str, dict[str, str]] = {
        "notes": {"kind": "files", "glob": "notes/*.md"},
        "weather": {"kind": "command", "command": "cat notes/a.md"},
        "news": {"kind": "feed", "url": site.url},
    }
    rows = {name: await made(hal.http, name, watch) for name, watch in watched.items()}
    for day in range(3):
        for row in rows.values():
            found = await until(hal.http, row, "skipped", day + 1)
            assert found[-1]["reason"] in (watch_rules.FIRST, watch_rules.UNCHANGED)
        move(world, 1)
    for row in rows.values():
        await until(hal.http, row, "skipped", 4)
    assert world.talk("hal:vigil:main").said == []
    note.write_text("storm ahead\n")
    site.text = feed(2, 1)
    move(world, 1)
    for row in rows.values():
        await until(hal.http, row, "ran")
    await world.at_rest()
    texts = "\n".join(one.text for one in world.talk("hal:vigil:main").said)
    for line in ("changed: notes/a.md, 12 bytes", "-calm", "+storm ahead", "Entry 2"):
        assert texts.count(line) == 1, texts
    assert "Entry 1" not in texts
    await by_hand_and_without(world, hal, rows["weather"])
    for row in rows.values():
        await remove(hal.http, row)


async def by_hand_and_without(world: World, hal: Person, row: Any) -> None:
    """A run by hand looks, and runs in any case; a row that watches nothing any more, too."""
    count = len(world.talk("hal:vigil:main").said)
    assert (await hal.http.post(f"{PATH}/{row['id']}/runs")).status_code == 202
    await until(hal.http, row, "ran", 2)
    await world.at_rest()
    said = world.talk("hal:vigil:main").said[count].text
    assert watch_rules.NOW in said
    assert "| storm ahead" in said
    answer = await hal.http.patch(f"{PATH}/{row['id']}", json={"prompt": "Hello"})
    assert answer.json()["watch"] == {"kind": "command", "command": "cat notes/a.md"}
    answer = await hal.http.patch(f"{PATH}/{row['id']}", json={"watch": None})
    assert answer.json()["watch"] is None
    move(world, 1)
    await until(hal.http, row, "ran", 3)
    await world.at_rest()


async def test_a_change_whose_run_could_not_be_stored_is_seen_again(
    world: World, site: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker was away, or another wrote the ledger, between the look and the order to run."""
    dan = await world.person("dan:vigil:main", has_socket=False)
    site.text, site.type = "one", "text/plain"
    row = await made(dan.http, "news", {"kind": "url", "url": site.url})
    await until(dan.http, row, "skipped")
    refused: list[str] = []
    append = SlotLog.append

    async def append_but_once(self: SlotLog, whose: Scope, last: Placed, entry: SlotEntry) -> Any:
        if entry.state == "running" and not refused:
            refused.append(entry.change)
            raise Unavailable("no answer")
        return await append(self, whose, last, entry)

    monkeypatch.setattr(SlotLog, "append", append_but_once)
    site.text = "two"
    move(world, 1)
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while not refused:
            await asyncio.sleep(next(pause_s))
    move(world, 0.0001)
    await until(dan.http, row, "ran")
    await world.at_rest()
    (said,) = world.talk("dan:vigil:main").said
    assert "+two" in said.text
    await remove(dan.http, row)


async def test_a_page_that_never_comes_is_a_look_that_failed(
    world: World, site: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long a request may take: the scheduler doesn't wait for longer than a look has."""
    monkeypatch.setattr(watcher, "PROBE_TIMEOUT_S", 0.1)
    site.gate.clear()
    eve = await world.person("eve:vigil:main", has_socket=False)
    row = await made(eve.http, "news", {"kind": "url", "url": site.url})
    (failed,) = await until(eve.http, row, "failed")
    assert "no whole answer in time" in failed["reason"]
    site.gate.set()
    await remove(eve.http, row)


async def test_a_look_that_ends_after_its_person_was_erased_harms_nobody(
    world: World, site: Document
) -> None:
    fay, gil = [
        await world.person(f"{name}:vigil:main", has_socket=False) for name in ("fay", "gil")
    ]
    site.gate.clear()
    waited = site.waiting
    await made(fay.http, "news", {"kind": "url", "url": site.url})
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while site.waiting == waited:
            await asyncio.sleep(next(pause_s))
    begun = await erasure.begin(world.admin, "fay", world.clock.now())
    move(world, 1)
    row = await made(gil.http, "news", {"kind": "url", "url": site.url})
    site.gate.set()
    await until(gil.http, row, "skipped")
    move(world, 1)
    await until(gil.http, row, "skipped", 2)
    await erasure.end(world.admin, "fay", begun, world.clock.now())
    await remove(gil.http, row)


@pytest.mark.parametrize(
    ("watch", "field"),
    [
        ({"kind": "url", "url": "ftp://a.example/"}, "url"),
        ({"kind": "url", "url": "http://127.0.0.1:1/"}, "url"),
        ({"kind": "url", "url": "https://ann:secret@a.example/"}, "url"),
    ],
)
async def test_what_may_not_be_watched_is_refused(
    world: World, watch: dict[str, str], field: str
) -> None:
    cid = await world.person("cid:vigil:main", has_socket=False)
    body = {"name": "n", "prompt": "p", "interval_s": DAY_S, "watch": watch}
    answer = await cid.http.post(PATH, json=body)
    assert answer.status_code == 422
    assert field in answer.text


async def test_a_pointer_that_is_none_is_refused(world: World, site: Document) -> None:
    cid = await world.person("cid:vigil:main", has_socket=False)
    watch = {"kind": "url", "url": site.url, "pointer": "version"}
    body = {"name": "n", "prompt": "p", "interval_s": DAY_S, "watch": watch}
    answer = await cid.http.post(PATH, json=body)
    assert answer.status_code == 422
    assert "must begin with /" in answer.text
