"""What is watched, looked at: feeds, files, commands, tools, by the real ones (issue 15, L-3)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from msgspec.structs import replace

from services.executor.builtin import Builtin
from services.executor.mcp.manager import Servers
from services.executor.probes import command, files
from services.executor.probes.watcher import Watcher
from services.executor.tools.registry import Registry
from tests.support.mcp_client import nasty, sandbox
from tests.support.receiver import Receiver, raw, running_receiver, status
from tests.support.stack import settings_of, some_broker
from vigil import runtime
from vigil.bus.micro import Refusal
from vigil.contracts import SlotRun
from vigil.contracts.board import (
    LastSeen,
    SourceFacts,
    Watched,
    WatchedCommand,
    WatchedFeed,
    WatchedFiles,
    WatchedTool,
    WatchedUrl,
)
from vigil.facts.observed import facts_observed
from vigil.facts.shape import read_shapes
from vigil.facts.taken import taken
from vigil.net.ssrf import Rules
from vigil.runtime import Context
from vigil.timetable.probe import CHANGE_LENGTH_MAX, TEXT_LENGTH_MAX, ProbeAnswer, ProbeQuestion
from vigil.trust.kept import TrustedSources
from vigil.trust.sources import Trusted
from vigil.watching.watched import what_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

MINE: Final = Path("workspaces/vigil/ann")
AT: Final = datetime(2026, 5, 1, tzinfo=UTC)
TRUSTED: Final = "command:echo all is well"


def question_of(
    user: str, watch: Watched, seen: LastSeen | None = None, *, is_ordered: bool = True
) -> ProbeQuestion:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    slot = SlotRun(row="1f" * 16, name="n", due_at=at, timeout_s=60, is_ordered=is_ordered)
    return ProbeQuestion(
        session=f"{user}:vigil:_cron-1", slot=slot, watch=watch, seen=seen, after=0
    )


class Prober:
    """A watcher as the executor has it, and who asks it."""

    def __init__(self, home: Path) -> None:
        self.folder = home / MINE
        self.erasing: set[str] = set()
        self.trusted = TrustedSources()
        self.watcher: Watcher
        self.own: Builtin

    async def __call__(
        self,
        watch: Watched,
        seen: LastSeen | None = None,
        *,
        user: str = "ann",
        is_ordered: bool = True,
    ) -> ProbeAnswer:
        return await self.watcher.probe(question_of(user, watch, seen, is_ordered=is_ordered))

    async def seen(self, watch: Watched) -> LastSeen:
        told = await self(watch)
        assert not told.problem, told.problem
        assert not told.change
        return told.seen

    async def change(self, watch: Watched, seen: LastSeen) -> str:
        told = await self(watch, seen)
        assert not told.problem, told.problem
        return told.change

    def write(self, path: str, text: str) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Receiver]:
    async with running_receiver() as found:
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def prober(site: Receiver, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Prober]:
    home, choice = tmp_path_factory.mktemp("home"), await sandbox()
    prober, is_ready, done = Prober(home), asyncio.Event(), asyncio.Event()

    async def serve(context: Context) -> None:
        rules = Rules(ports=(site.port,), allow_private=True)
        registry = Registry(context.bus, context.clock)
        own = Builtin(context.settings, context.clock, choice, context.bus, rules=rules)
        registry.set(own)
        servers = Servers(context, registry, choice, own.disk)
        await servers.start()
        prober.own = own
        prober.watcher = Watcher(
            context, own, registry, lambda user: user in prober.erasing, prober.trusted
        )
        is_ready.set()
        await done.wait()
        await servers.close()
        await own.close()

    server = nasty(risks={"add": "read"})
    trusted = {"source": TRUSTED, "user": "ann", "is_trusted": True}
    settings = settings_of(home, mcp={"nasty": server}, watch={"echo": trusted})
    async with some_broker(home) as broker:
        task = asyncio.create_task(runtime.run("executor", settings, broker.url, serve=serve))
        ready = asyncio.create_task(is_ready.wait())
        await asyncio.wait((task, ready), return_when=asyncio.FIRST_COMPLETED)
        yield prober
        done.set()
        await task


@pytest.fixture
def page(site: Receiver) -> Iterator[Callable[[str, str], None]]:
    """What the site shows from now on, and as what."""

    def show(body: str, kind: str) -> None:
        data = body.encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n\r\n"
        site.behaviours = [raw(head.encode() + data)]

    yield show
    site.behaviours = [status(404)]


# ---------------------------------------------------------------- pages


def article(price: str, ad: str) -> str:
    return (
        f"<html><head><title>Shop</title><script>track('{ad}')</script></head><body>"
        f"<nav>Menu {ad}</nav><aside>{ad}</aside><article><h1>Prices</h1><p>Tea costs {price}.</p>"
        f"<p>{'We sell tea. ' * 30}</p></article><footer>{ad}</footer></body></html>"
    )


async def test_a_page_that_changes_its_ads_only_has_not_changed(
    prober: Prober, site: Receiver, page: Callable[[str, str], None]
) -> None:
    """What counts is the text of its main part."""
    watch = WatchedUrl(url=site.url())
    page(article("3 EUR", "Buy a boat!"), "text/html")
    seen = await prober.seen(watch)
    page(article("3 EUR", "Buy a house, now for less!"), "text/html")
    assert await prober.change(watch, seen) == ""
    page(article("4 EUR", "Buy a car!"), "text/html")
    change = await prober.change(watch, seen)
    assert "-Tea costs 3 EUR." in change
    assert "+Tea costs 4 EUR." in change
    assert "Buy" not in change


async def test_of_ten_megabytes_a_bounded_part_is_compared(
    prober: Prober, site: Receiver, page: Callable[[str, str], None]
) -> None:
    watch = WatchedUrl(url=site.url())
    page("calm\n" * 2_000_000, "text/plain")
    told = await prober(watch)
    assert not told.problem
    page("storm\n" * 2_000_000, "text/plain")
    told = await prober(watch, told.seen)
    assert told.change
    assert len(told.change) <= CHANGE_LENGTH_MAX + 20
    assert len(told.seen.text) <= TEXT_LENGTH_MAX


# ---------------------------------------------------------------- feeds


def rss(*numbers: int) -> str:
    items = "".join(
        f"<item><guid>urn:{n}</guid><title>Entry {n}</title><link>https://a.example/{n}</link>"
        f"<description>&lt;p&gt;About &lt;b&gt;{n}&lt;/b&gt;&lt;/p&gt;</description></item>"
        for n in numbers
    )
    return f'<rss version="2.0"><channel><title>News</title>{items}</channel></rss>'


def atom(*numbers: int) -> str:
    entries = "".join(
        f"<entry><id>urn:{n}</id><title>Entry {n}</title><updated>2026-03-0{n}T00:00:00Z</updated>"
        f"</entry>"
        for n in numbers
    )
    return f'<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title>{entries}</feed>'


@pytest.mark.parametrize("feed", [rss, atom])
async def test_new_entries_of_a_feed_are_the_difference(
    prober: Prober,
    site: Receiver,
    page: Callable[[str, str], None],
    feed: Callable[..., str],
) -> None:
    """By id: one that went and came back isn't new, and neither is the order."""
    watch = WatchedFeed(url=site.url())
    page(feed(1, 2), "application/rss+xml")
    seen = await prober.seen(watch)
    assert await prober.change(watch, seen) == ""
    page(feed(2), "application/rss+xml")
    told = await prober(watch, seen)
    assert told.change == ""
    page(feed(2, 1, 3), "application/rss+xml")
    change = await prober.change(watch, told.seen)
    assert "Entry 3" in change
    assert "Entry 1" not in change
    assert "<" not in change


async def test_a_feed_that_is_html_is_told_as_that(
    prober: Prober, site: Receiver, page: Callable[[str, str], None]
) -> None:
    page("<html><body><h1>News</h1><p>We have a feed, too.</p></body></html>", "text/html")
    told = await prober(WatchedFeed(url=site.url()))
    assert told.problem == "the url leads to no feed, RSS or Atom: it is an HTML page"
    page("", "")
    told = await prober(WatchedFeed(url=site.url()))
    assert "leads to no feed" in told.problem


async def test_a_feed_that_the_parser_fails_at_is_told_as_that(
    prober: Prober,
    site: Receiver,
    page: Callable[[str, str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And not as one that takes too long: time may help there, and here it doesn't."""
    module = tmp_path / "lib" / "feedparser" / "__init__.py"
    module.parent.mkdir(parents=True)
    module.write_text("def parse(*given, **options):\n    raise KeyError('links')\n")
    spec = spec_from_file_location("feedparser", module)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    page(rss(1), "text/xml")
    told = await prober(WatchedFeed(url=site.url()))
    assert told.problem == "the feed can't be read: something in it is broken"


async def test_a_feed_of_a_stranger_costs_no_more_than_its_limits(
    prober: Prober, site: Receiver, page: Callable[[str, str], None]
) -> None:
    """Entities that grow, and more entries than are kept: a bounded difference, or a problem."""
    watch = WatchedFeed(url=site.url())
    page(rss(1), "text/xml")
    seen = await prober.seen(watch)
    page(rss(*range(1_100)), "text/xml")
    told = await prober(watch, seen)
    assert not told.problem
    assert len(told.change) <= CHANGE_LENGTH_MAX + 20
    assert len(told.seen.parts) <= 1_000
    grown = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    page(
        f'<!DOCTYPE rss [<!ENTITY e0 "x">{grown}]><rss version="2.0"><channel><item><guid>'
        "1</guid><title>&e11;</title></item></channel></rss>",
        "text/xml",
    )
    told = await prober(watch, seen)
    assert len(told.change) + len(told.seen.text) < 20_000


# ---------------------------------------------------------------- facts


async def facts(prober: Prober, watch: Watched, seen: LastSeen | None = None, **of: str) -> Any:
    """Return what is seen, and what a look tells of facts that are found so."""
    told, found = await prober.watcher.observe(question_of("ann", watch, seen))
    return told.seen, facts_observed(of, found, None)


async def test_a_look_at_a_feed_tells_facts_without_a_model(
    prober: Prober, site: Receiver, page: Callable[[str, str], None]
) -> None:
    """F-9: how many entries are new, when the newest was made, and whether it works."""
    watch = WatchedFeed(url=site.url())
    of = {"n": "new", "up": "works", "at": "newest", "is": "changed", "status": "status"}
    page(atom(1, 3), "application/atom+xml")
    seen, told = await facts(prober, watch, **of)
    newest = "2026-03-03T00:00:00+00:00"
    assert told == {"n": 0, "up": "yes", "at": newest, "is": "no", "status": 200}
    page(atom(1, 3, 2, 4), "application/atom+xml")
    _, told = await facts(prober, watch, seen, **of)
    newest = "2026-03-04T00:00:00+00:00"
    assert told == {"n": 2, "up": "yes", "at": newest, "is": "yes", "status": 200}
    site.behaviours = [status(503)]
    _, told = await facts(prober, watch, seen, **of)
    assert told == {"up": "no", "status": 503}


async def test_a_look_at_json_tells_what_stands_there(
    prober: Prober, site: Receiver, page: Callable[[str, str], None]
) -> None:
    """F-9: other values than the one that counts; what isn't there isn't told."""
    watch = WatchedUrl(url=site.url(), pointer="/version")
    of = {"open": "/issues/open", "main": "/ci/main", "gone": "/ci/dev", "lines": "new"}
    page('{"version": 3, "issues": {"open": 12}, "ci": {"main": "failing"}}', "application/json")
    seen, told = await facts(prober, watch, **of)
    assert told == {"open": 12, "main": "failing", "lines": 0}
    page('{"version": 4, "issues": {"open": 13}, "ci": {"main": 7}}', "application/json")
    _, told = await facts(prober, watch, seen, **of)
    assert told == {"open": 13, "main": 7, "lines": 1}


async def test_a_page_that_is_as_before_tells_what_it_told(prober: Prober, site: Receiver) -> None:
    """Its server says so and sends no document: what stood there stands there yet."""
    head = b"HTTP/1.1 304 Not Modified\r\nlast-modified: Fri, 20 Nov 2026 08:30:00 GMT\r\n\r\n"
    site.behaviours = [raw(head)]
    watch = WatchedUrl(url=site.url())
    before = LastSeen(what=what_of(watch), etag='"1"', digest="1f", text="{}")
    told, found = await prober.watcher.observe(question_of("ann", watch, before))
    assert not told.problem
    shapes = read_shapes({"open": "count", "at": "instant", "status": "count", "is": "yes_no"})
    of = {"open": "/issues/open", "at": "newest", "status": "status", "is": "changed"}
    known = taken(
        SourceFacts(id="1f" * 16, owner="ann", agent="vigil"), shapes, {"open": 12}, AT,
        bits_max=512, cause="e1",
    )  # fmt: skip
    assert facts_observed(of, found, known) == {
        "open": "12", "at": "2026-11-20T08:30:00+00:00", "status": 200, "is": "no",
    }  # fmt: skip
    site.behaviours = [status(404)]


# ---------------------------------------------------------------- files


async def test_files_are_added_changed_and_removed(prober: Prober) -> None:
    watch = WatchedFiles(glob="notes/**/*.md")
    assert (await prober.seen(watch)).parts == {}
    one, two = prober.write("notes/a.md", "one"), prober.write("notes/deep/er/b.md", "two")
    prober.write("notes/c.txt", "no note")
    prober.write("notes/.hidden/d.md", "begins with a dot")
    seen = await prober.seen(watch)
    assert set(seen.parts) == {"notes/a.md", "notes/deep/er/b.md"}
    assert await prober.change(watch, seen) == ""
    os.utime(one, ns=(1, 1))
    told = await prober(watch, seen)
    assert (told.change, told.seen.digest) == ("", seen.digest)
    one.write_text("ones")
    two.unlink()
    prober.write("notes/new\nline.md", "three")
    assert (await prober.change(watch, told.seen)).splitlines() == [
        "changed: notes/a.md, 4 bytes",
        "removed: notes/deep/er/b.md",
        "added: notes/new?line.md, 5 bytes",
    ]
    assert (await facts(prober, watch, told.seen, n="new"))[1] == {"n": 3}


async def test_no_link_leads_a_watcher_outside(prober: Prober, tmp_path: Path) -> None:
    """X-3: neither a link to a file nor one to a folder is followed; a pipe isn't opened."""
    (tmp_path / "secret.md").write_text("secret")
    prober.write("links/plain.md", "mine")
    links = prober.folder / "links"
    (links / "file.md").symlink_to(tmp_path / "secret.md")
    (links / "folder").symlink_to(tmp_path)
    (prober.folder / "away").symlink_to(tmp_path)
    os.mkfifo(links / "pipe.md")
    assert set((await prober.seen(WatchedFiles(glob="links/**/*.md"))).parts) == {"links/plain.md"}
    assert (await prober.seen(WatchedFiles(glob="away/*.md"))).parts == {}


async def test_too_many_files_are_a_problem_and_not_a_part_of_them(prober: Prober) -> None:
    for number in range(files.FILES_MAX + 1):
        prober.write(f"many/{number}", "")
    told = await prober(WatchedFiles(glob="many/*"))
    assert told.problem == "the glob names more than 200 files"
    assert not told.seen.digest


# ---------------------------------------------------------------- commands


async def test_a_command_is_watched_by_what_it_writes(prober: Prober) -> None:
    prober.write("state", "calm\n")
    watch = WatchedCommand(command="cat state; id -u >/dev/null")
    seen = await prober.seen(watch)
    assert await prober.change(watch, seen) == ""
    prober.write("state", "storm\n")
    assert await prober.change(watch, seen) == "-calm\n+storm"


async def test_a_command_that_fails_or_never_ends_is_a_failing_look(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = await prober(WatchedCommand(command="echo half; echo gone >&2; exit 3"))
    assert told.problem == "the command ended with exit code 3: gone"
    monkeypatch.setattr(command, "TIMEOUT_S", 0.3)
    told = await prober(WatchedCommand(command="while true; do sleep 1; done"))
    assert told.problem == "the command ended after 0.3 s: it took too long"


async def test_what_nobody_ordered_runs_no_command_and_asks_no_tool(prober: Prober) -> None:
    for watch in (WatchedCommand(command="touch ran"), WatchedTool(tool="nasty__add")):
        told = await prober(watch, is_ordered=False)
        assert "needs somebody who ordered it" in told.problem
    assert not (prober.folder / "ran").exists()


# ---------------------------------------------------------------- tools


async def test_a_tool_is_watched_if_it_only_reads(prober: Prober) -> None:
    """By the class that the configuration gives it, whatever the server says of it."""
    watch = WatchedTool(tool="nasty__add", arguments={"a": 1, "b": 2})
    seen = await prober.seen(watch)
    assert seen.text == "3"
    assert await prober.change(watch, seen) == ""
    old = replace(seen, text="2", digest="0" * 64)
    assert await prober.change(watch, old) == "-2\n+3"
    other = await prober(WatchedTool(tool="nasty__poke"))
    assert "is of class 'external'; only 'read' may be watched" in other.problem
    gone = await prober(WatchedTool(tool="nasty__nothing"))
    assert "there is no tool 'nasty__nothing' at present; to be watched: nasty__add" in gone.problem
    wrong = await prober(WatchedTool(tool="nasty__add", arguments={"a": 1, "b": 2}, pointer="/a"))
    assert "leads to nothing" in wrong.problem


# ---------------------------------------------------------------- trust, and an end


async def test_trusted_is_what_the_configuration_names_and_nothing_else(prober: Prober) -> None:
    """L-19: of that person, that source, and while nothing from outside is in their workspace."""
    trusted = WatchedCommand(command="echo all is well")
    assert (await prober(trusted)).is_trusted
    assert not (await prober(trusted, user="bob")).is_trusted
    assert not (await prober(WatchedCommand(command="echo is_trusted = true"))).is_trusted
    assert not (await prober(WatchedTool(tool="nasty__add", arguments={"a": 1, "b": 1}))).is_trusted
    (prober.folder.parent / "ann.marks.json").write_text('{"paths": ["page.html"]}')
    assert not (await prober(trusted)).is_trusted


async def test_a_person_trusts_an_address_that_answers_itself_and_a_server(
    prober: Prober, site: Receiver, page: Callable[[str, str], None]
) -> None:
    """F-15: exactly that, with that agent; until it is ended. A detour may lead to anybody."""
    page("calm", "text/plain")
    url, longer = WatchedUrl(url=site.url()), WatchedUrl(url=f"{site.url()}?more")
    tool = WatchedTool(tool="nasty__add", arguments={"a": 1, "b": 1})
    assert not (await prober(url)).is_trusted
    sources = (f"url:{site.url()}", "mcp:nasty")
    known = [Trusted(owner="ann", agent="vigil", source=one, at=AT, by="ann") for one in sources]
    for one in known:
        prober.trusted.know(one)
    assert (await prober(url)).is_trusted
    assert (await prober(tool)).is_trusted
    assert not (await prober(longer)).is_trusted
    assert not (await prober(url, user="bob")).is_trusted
    assert not (await prober(tool, user="bob")).is_trusted
    site.behaviours = [status(302, location=f"{site.url()}?more"), *site.behaviours]
    moved = await prober(url)
    assert (moved.problem, moved.is_trusted) == ("", False)
    for one in known:
        prober.trusted.forget(one)
    assert not (await prober(url)).is_trusted
    assert not (await prober(tool)).is_trusted


async def test_a_look_for_who_is_being_erased_is_ended(prober: Prober) -> None:
    """X-8: nothing of it works in their folder when that is removed."""
    watch = WatchedCommand(command="touch begun; sleep 60")
    folder = prober.folder.parent / "eve"
    begun = asyncio.create_task(prober.watcher._observe(question_of("eve", watch), "eve"))
    async with asyncio.timeout(20):
        while not (folder / "begun").exists():
            await asyncio.sleep(0.02)
    prober.erasing.add("eve")
    await prober.watcher.erased()
    with pytest.raises(Refusal, match="409"):
        await begun
