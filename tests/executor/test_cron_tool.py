"""Rows of the timetable, made by talking: the tools `cron` and `cron_list` (J-2, L-1, X-6)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from msgspec.structs import replace

from services.cortex.core.tools.arguments import fitted
from services.executor.builtin import Builtin
from services.executor.tools.declaration import declared
from services.executor.tools.source import ToolOutput
from tests.support.hands import NO_SANDBOX, call_of, settings_of
from tests.support.stack import Stack
from tests.support.world import StoppedClock
from vigil.board.kept import ROWS, KeptBoard
from vigil.contracts import Change, TimetableRow
from vigil.errors import InvalidInput
from vigil.settings import own
from vigil.subjects import Scope
from vigil.timetable.ledger import ended
from vigil.timetable.log import SlotLog

ANN = Scope("vigil", "ann")
BRIEFING: dict[str, Any] = {
    "action": "create",
    "name": "briefing",
    "prompt": "What is new in the tracker?",
    "cron": "0 9 * * 1-5",
}
FRIDAY: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Desk:
    """The tools, a broker, and a person in Berlin."""

    def __init__(self, stack: Stack, source: Builtin, admin: Any) -> None:
        self.stack, self.source, self.admin = stack, source, admin

    async def call(self, call_id: str = "", /, **given: Any) -> ToolOutput:
        config = settings_of(self.stack.settings.home).config
        tool = "cron" if given else "cron_list"
        return await self.source.run(call_of(tool, config, given, call_id=call_id))

    async def text(self, call_id: str = "", /, **given: Any) -> str:
        return (await self.call(call_id, **given)).content

    async def rows(self) -> list[TimetableRow]:
        found = await KeptBoard(self.admin, ROWS).all(ANN)
        return [one.entity for one in found]


@pytest.fixture
async def desk(bare: Stack) -> AsyncIterator[Desk]:
    settings = settings_of(bare.settings.home)
    bus, admin, clock = await bare.bus("executor"), await bare.bus("admin"), StoppedClock(FRIDAY)
    person, zone = settings.config.person_of("ann"), {"timezone": "Europe/Berlin"}
    mine = own.changed(own.StoredSettings(), zone, clock.now(), "ann", person, ())
    await own.put(admin, "ann", mine, expect=0)
    source = Builtin(settings, clock, NO_SANDBOX, bus)
    yield Desk(bare, source, admin)
    await source.close()


async def test_every_weekday_at_nine_is_repeated_with_its_next_times_and_zone(desk: Desk) -> None:
    """Issue 15: in the person's zone, unless another is named."""
    said = await desk.text(**BRIEFING, is_stateful=True)
    assert "At 09:00 on Monday through Friday (Europe/Berlin); next: " in said
    assert "Mon 2026-11-23 09:00, Tue 2026-11-24 09:00, Wed 2026-11-25 09:00" in said
    (row,) = await desk.rows()
    assert (row.made_by, row.session_key, row.is_ordered) == ("agent", "ann:vigil:t1", True)
    assert (row.work.is_stateful, row.zone, row.owner) == (True, "Europe/Berlin", "ann")
    there = await desk.text()
    assert there.startswith(f"briefing ({row.id[:8]}): At 09:00 on Monday through Friday")
    assert there.endswith("What is new in the tracker?")


async def test_facts_are_named_by_talking_and_repeated(desk: Desk) -> None:
    """F-9: what the model wrote is checked, and the person hears which they are."""
    facts = ["ci=one_of[passing, failing]", "open=count[0..99 issues]"]
    said = await desk.text(**BRIEFING, facts=facts)
    assert "; tells ci one_of[passing, failing], open count[0..99 issues]. Repeat" in said
    assert "; tells ci" in await desk.text()
    with pytest.raises(InvalidInput, match="is no shape"):
        await desk.call(action="update", row="briefing", facts=["ci=what the page says"])
    await desk.text(action="update", row="briefing", facts=[])
    (row,) = await desk.rows()
    assert row.work == replace(row.work, facts={})


async def test_the_names_of_the_specification_are_taken_too(desk: Desk) -> None:
    """SPEC P-5 and P-6: the core hands them on by the names of the schema."""
    given = {
        "action": "create", "id": "briefing", "prompt": "What is new?", "interval_secs": 7200,
        "timezone": "Asia/Tokyo", "stateful": True,
    }  # fmt: skip
    config = settings_of(desk.stack.settings.home).config
    arguments, problem = fitted(declared()["cron"].tool(config), given)
    assert problem is None
    assert "every 2 h" in await desk.text(**arguments)
    (row,) = await desk.rows()
    assert (row.name, row.zone, row.work.is_stateful) == ("briefing", "Asia/Tokyo", True)


async def test_a_call_that_comes_again_changes_nothing(desk: Desk) -> None:
    """S6: the executor died before it could tell that it ran."""
    steps: list[Callable[[], Awaitable[str]]] = [
        lambda: desk.text("c1", **BRIEFING),
        lambda: desk.text("c2", action="update", row="briefing", name="news", interval_s=3600),
        lambda: desk.text("c3", action="pause", row="news"),
        lambda: desk.text("c4", action="resume", row="news"),
        lambda: desk.text("c5", action="run", row="news"),
        lambda: desk.text("c6", action="remove", row="news"),
    ]
    for step in steps:
        await step()
        last = await KeptBoard(desk.admin, ROWS).last(ANN)
        await step()
        assert await KeptBoard(desk.admin, ROWS).last(ANN) == last
    (row,) = await desk.rows()
    assert (row.name, row.is_removed, row.is_enabled) == ("news", True, True)
    entries = [entry async for entry in SlotLog(desk.admin).newest(ANN, row.id)]
    assert [(entry.state, entry.is_by_hand) for entry in entries] == [("running", True)]
    assert await desk.text() == "None."


async def test_a_run_by_hand_waits_for_the_one_before(desk: Desk) -> None:
    await desk.text(**BRIEFING)
    await desk.text("c1", action="run", row="briefing")
    with pytest.raises(InvalidInput, match="still going on"):
        await desk.call("c2", action="run", row="briefing")
    (row,), log = await desk.rows(), SlotLog(desk.admin)
    last = await log.last(ANN, row.id)
    (run,) = last.ledger.running
    await log.append(ANN, last, ended(row.id, run, run.at))
    assert "runs now" in await desk.text("c1", action="run", row="briefing")
    assert (await log.last(ANN, row.id)).ledger.running == ()
    await desk.call("c2", action="run", row="briefing")
    assert len((await log.last(ANN, row.id)).ledger.running) == 1


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (BRIEFING | {"cron": "every day"}, "expression"),
        (BRIEFING | {"cron": "30 9 30 2 *"}, "expression"),
        (BRIEFING | {"zone": "Mars/Olympus"}, "zone"),
        (BRIEFING | {"interval_s": 60}, "cron"),
        (BRIEFING | {"cron": None, "interval_s": 0}, "interval_s"),
        (BRIEFING | {"name": ""}, "name"),
        (BRIEFING | {"name": "a\nb"}, "name"),
        (BRIEFING | {"prompt": "x" * 10**6}, "input"),
        (BRIEFING | {"active_hours": "9 to 5"}, "active_hours"),
        (BRIEFING | {"watch": "http://127.0.0.1/"}, "url"),
        (BRIEFING | {"watch_pointer": "/a"}, "watch"),
        (BRIEFING | {"watch": "files:*.md", "watch_pointer": "/a"}, "pointer"),
        (BRIEFING | {"watch": "files:../x"}, "glob"),
        (BRIEFING | {"watch": "command:df"}, "command"),
        (BRIEFING | {"watch": "mcp:tracker__open"}, "tool"),
        (BRIEFING | {"watch": "feed:ftp://a.example/"}, "url"),
        (BRIEFING | {"row": "news"}, "row"),
        (BRIEFING | {"cron": None, "after": "news"}, "after"),
        (BRIEFING | {"after_on": "any"}, "after"),
        (BRIEFING | {"latest_s": 86_400}, "interval_s"),
        (BRIEFING | {"cron": None, "interval_s": 60, "soonest_s": 1}, "soonest_s"),
        (BRIEFING | {"skill": "no-such"}, "skill"),
        (BRIEFING | {"skill": "../etc"}, "name"),
        (BRIEFING | {"owner": "eve"}, "input"),
        ({"action": "update", "row": "news", "cron": "@daily"}, "row"),
        ({"action": "pause"}, "row"),
        ({"action": "burn", "row": "news"}, "input"),
    ],
)
async def test_what_can_not_be_is_told_by_its_field(
    desk: Desk, given: dict[str, Any], field: str
) -> None:
    """X-6: nothing is stored."""
    with pytest.raises(InvalidInput) as caught:
        await desk.call(**given)
    assert caught.value.field == field
    assert await desk.rows() == []


async def test_a_name_is_one_line_of_whatever_letters_and_of_one_row(desk: Desk) -> None:
    await desk.text(**(BRIEFING | {"name": "a/b ☕"}))
    with pytest.raises(InvalidInput, match="another row"):
        await desk.call(**(BRIEFING | {"name": "a/b ☕"}))
    await desk.text(action="update", row="a/b ☕", prompt="What else?")
    (row,) = await desk.rows()
    assert row.work.prompt == "What else?"
    with pytest.raises(InvalidInput, match="changes nothing else"):
        await desk.call(action="pause", row="a/b ☕", prompt="Never mind")


async def test_a_job_after_another_is_told_by_name_and_no_circle_is_made(desk: Desk) -> None:
    await desk.text(**BRIEFING)
    said = await desk.text(
        action="create", name="mend", prompt="Mend it", after="briefing", after_on="failure"
    )
    assert "after each run of 'briefing' that fails. " in said
    assert "after each run of 'briefing' that fails" in await desk.text()
    with pytest.raises(InvalidInput, match="'briefing' after 'mend' after 'briefing'"):
        await desk.call(action="update", row="briefing", after="mend")
    chosen = await desk.text(action="update", row="mend", interval_s=3600, latest_s=86_400)
    assert "or as its runs choose: 1 h to 1 d after they end; next: Fri 2026-11-20 14:00" in chosen


async def test_there_are_a_hundred_at_most(desk: Desk) -> None:
    """Issue 15: the person is told to end one."""
    await desk.text(**BRIEFING)
    (row,) = await desk.rows()
    board, now = KeptBoard(desk.admin, ROWS), row.made_at
    for number in range(99):
        other = replace(row, id=f"{number:032x}", name=f"row {number}")
        await board.replace(0, other, Change(by="ann"), now)
    told = await desk.call(**(BRIEFING | {"name": "one more"}))
    assert (told.is_error, "100 already" in told.content) == (True, True)
    assert len(await desk.rows()) == 100
