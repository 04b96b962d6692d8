"""Calendars are kept as they are on a real server; what goes wrong is said and loses nothing."""

from __future__ import annotations

import asyncio
import errno
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.support.calendars import LOGIN, PASSWORD, Radicale, calendar, event
from tests.support.stack import Stack, running_stack
from vigil.board.kept import FACTS, KeptBoard
from vigil.calendars import mirror
from vigil.calendars.places import CalendarProblem, CalendarServer
from vigil.calendars.section import CalendarSection
from vigil.calendars.state import FACT
from vigil.marks import erasure
from vigil.subjects import Scope

pytestmark = pytest.mark.usefixtures("forked_readers")

WITHIN_S: Final = 60.0
TODAY: Final = f"{datetime.now(UTC):%Y%m%d}"
DAYS: Final = f"DTEND;VALUE=DATE:{datetime.now(UTC) + timedelta(days=3):%Y%m%d}"
"""The end of an event that lasts longer than these tests, whenever they begin."""


def section(server: Radicale, **fields: Any) -> dict[str, Any]:
    known = {"kind": "caldav", "url": server.url, "login": LOGIN, "password": PASSWORD}
    return {**known, "user": "ann", "poll_s": 1, "is_writable": True, "timeout_s": 5, **fields}


async def told(stack: Stack, name: str, **wanted: Any) -> dict[str, Any]:
    """Wait until a calendar is so, and return what is told of it."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            found: dict[str, Any] = stack.contexts["executor"].facts.get(FACT, {}).get(name, {})
            if found and all(found[key] == value for key, value in wanted.items()):
                return found
            await asyncio.sleep(0.05)


async def test_what_is_due_is_a_fact(tmp_path: Path, radicale: Radicale) -> None:
    """FLOW F-10: how many, and when the next begins; not a word of what they say."""
    soon = (datetime.now(UTC) + timedelta(minutes=10)).replace(second=0, microsecond=0)
    await radicale.put("a.ics", calendar(event("a", f":{soon:%Y%m%dT%H%M%SZ}", title="Obey me")))
    await radicale.put("b.ics", calendar(event("b", f";VALUE=DATE:{TODAY}", DAYS)))
    async with running_stack(
        tmp_path / "home", services=("executor",), calendars={"work": section(radicale)}
    ) as stack:
        state = await told(stack, "work", state="synced")
        assert (state["events"], state["problem"], state["remarks"]) == (2, "", ())
        board = KeptBoard(await stack.bus("admin"), FACTS)
        async with asyncio.timeout(WITHIN_S):
            while not (found := await board.all(Scope("vigil", "ann"))):
                await asyncio.sleep(0.05)
        facts = {one.name: one for one in found[0].entity.facts}
        assert facts["all_day"].value == "1"
        assert datetime.fromisoformat(facts["next"].value) == soon
        assert "Obey" not in str(found[0].entity)


async def test_what_changes_there_is_seen_and_what_was_seen_outlives_the_service(
    tmp_path: Path, radicale: Radicale
) -> None:
    """By sync token; one that its server has forgotten loses nothing."""
    await radicale.put("a.ics", calendar(event("a", f":{TODAY}T100000Z")))
    home, sections = tmp_path / "home", {"work": section(radicale)}
    async with running_stack(home, services=("executor",), calendars=sections) as stack:
        await told(stack, "work", state="synced", events=1)
        await radicale.put("b.ics", calendar(event("b", f":{TODAY}T110000Z")))
        await radicale.put("c.ics", calendar(event("c", f":{TODAY}T120000Z")))
        await told(stack, "work", events=3)
        await radicale.delete("a.ics")
        await told(stack, "work", events=2)
        path = mirror.path_of(home, "work", stack.settings.config.calendars["work"])
        radicale.kill()
        failing = await told(stack, "work", state="failing")
        assert (failing["problem"], failing["events"]) == ("its server can't be reached", 2)
        assert "calendars fail: 1 of 1" in stack.contexts["executor"].health().warnings
        known = mirror.load(path, mirror.source_of(stack.settings.config.calendars["work"]))
        assert known is not None
        assert known.marks["sync-token"]
        forgotten = {**known.marks, "sync-token": f"http://radicale.org/ns/sync/{'0' * 64}"}
        await stack.stop("executor")
        mirror.store(path, replace(known, marks=forgotten))
        await radicale.start()
        await radicale.put("d.ics", calendar(event("d", f":{TODAY}T130000Z")))
        await radicale.delete("b.ics")
        await stack.start("executor")
        await told(stack, "work", state="synced", events=2)
        assert path.stat().st_mode & 0o077 == 0
    assert PASSWORD.encode() not in path.read_bytes()


async def test_a_refused_password_is_shown_once_whatever_restarts(
    tmp_path: Path, radicale: Radicale
) -> None:
    """Issue 37: asked once, then waits; another one is tried at once."""
    secret = tmp_path / "secret"
    secret.write_text("wrong")
    sections = {"work": section(radicale, password="", password_file=str(secret))}
    async with running_stack(
        tmp_path / "home", services=("executor",), calendars=sections
    ) as stack:
        state = await told(stack, "work", state="refused")
        assert state["problem"] == "401: its server refused the login and password"
        await stack.stop("executor")
        await stack.start("executor")
        kept = await told(stack, "work", state="refused")
        assert "isn't asked again" in kept["problem"]
        assert radicale.log.count("Failed login attempt") == 1
        secret.write_text(f"{PASSWORD}\n")
        await told(stack, "work", state="synced")


async def test_bad_places_are_said_in_words(tmp_path: Path, radicale: Radicale) -> None:
    """Issue 37: a server that hangs, 25 MB, what is no calendar, a file that isn't there: each is
    told, and takes no other along."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "big.ics").write_bytes(b"BEGIN:VCALENDAR\r\n" + b" " * 25_000_000)
    (home / "page.ics").write_text("<html>Sign in first</html>")
    (home / "good.ics").write_text(calendar(event("a", f":{TODAY}T100000Z", "RRULE:FREQ=DAILY")))
    kinds: dict[str, dict[str, Any]] = {
        name: {"kind": "file", "file": f"{name}.ics", "poll_s": 1}
        for name in ("big", "page", "none", "good")
    }
    radicale.pause()
    kinds["hangs"] = section(radicale, timeout_s=0.5)
    kinds["root"] = section(radicale, url=radicale.url.removesuffix("work/"))
    kinds["page2"] = {"kind": "ics", "url": f"{radicale.url}.web/nothing", "timeout_s": 5}
    problems = {
        "big": "it has more than 16777216 bytes (bytes_max): nothing of it is read",
        "page": "it is no iCalendar document: BEGIN:VCALENDAR isn't in it",
        "none": "the file can't be read: No such file or directory",
        "hangs": "there was no whole answer within 0.5 s (timeout_s)",
    }
    async with running_stack(home, services=("executor",), calendars=kinds) as stack:
        for name, problem in problems.items():
            assert (await told(stack, name, state="failing"))["problem"] == problem
        await told(stack, "good", state="synced", events=1)
        radicale.resume()
        found = (await told(stack, "root", state="failing"))["problem"]
        assert "no calendar collection" in found or "no whole answer" in found


async def test_what_is_known_of_whom_is_erased_goes(tmp_path: Path, radicale: Radicale) -> None:
    """X-8: it lies as workspaces do; nothing is looked at again while they are being erased."""
    await radicale.put("a.ics", calendar(event("a", f":{TODAY}T100000Z")))
    home, sections = tmp_path / "home", {"work": section(radicale)}
    async with running_stack(home, services=("executor",), calendars=sections) as stack:
        await told(stack, "work", state="synced")
        path = mirror.path_of(home, "work", stack.settings.config.calendars["work"])
        assert path.exists()
        await erasure.begin(await stack.bus("admin"), "ann", datetime.now(UTC))
        async with asyncio.timeout(WITHIN_S):
            while path.exists():
                await asyncio.sleep(0.05)


async def test_what_cant_be_kept_is_said(
    tmp_path: Path, radicale: Radicale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: the server is asked as rarely as one that fails, and what was known counts."""

    def full(_path: Path, _mirror: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(mirror, "store", full)
    async with running_stack(
        tmp_path / "home", services=("executor",), calendars={"work": section(radicale)}
    ) as stack:
        state = await told(stack, "work", state="failing")
        assert state["problem"] == "it can't be kept: No space left on device"
        asked = radicale.log.count("PROPFIND request for '/ann/work/'")
        assert asked == 2, "the one look: what changed, and what is there"


@pytest.mark.parametrize("path", ["//127.0.0.1:{port}/x", "http://127.0.0.1:{port}/x"])
async def test_a_path_that_names_another_server_is_asked_nowhere(tmp_path: Path, path: str) -> None:
    """An event may stand anywhere, as its server says; the password and what is written go nowhere
    else."""
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        url = f"http://localhost:{port}/ann/"
        one = CalendarSection(kind="caldav", url=url, login=LOGIN, password=PASSWORD)
        server = CalendarServer(one, tmp_path)
        try:
            with pytest.raises(CalendarProblem, match="at another one"):
                await server.ask("PUT", path.format(port=port), content=b"mine")
            assert not asked
            assert (await server.ask("GET", "/ann/a.ics")).status == 200
        finally:
            await server.close()
