"""What recurs, run by an agent when it is due, through all services (SPEC J-2, J-4, J-5)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import httpx2
import pytest
import pytest_asyncio

from services.cortex.core.work.routing import ONLY_THE_PERSON
from services.cortex.model import ModelAnswer, ModelError, ModelRequest
from tests.support.agent import ask, ask_in_steps
from tests.support.pauses import pauses
from tests.support.scripted_model import say
from tests.support.world import Person, StoppedClock, World, running_world
from vigil.contracts import (
    Control,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    decode_event,
    decode_signal,
)
from vigil.subjects import SessionKey, signals_of
from vigil.timetable import reasons

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH: Final = "/api/cron"
PATIENCE_S: Final = 40.0
DAY_S: Final = 86_400
BERLIN: Final = ZoneInfo("Europe/Berlin")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        home: Path = tmp_path_factory.mktemp("home")
        async with running_world(home, patch, has_hands=True) as running:
            yield running


async def made(http: httpx2.AsyncClient, name: str = "briefing", **fields: Any) -> dict[str, Any]:
    body = {"name": name, "prompt": "Look around", **fields}
    if not {"cron", "interval_s", "at", "after"} & set(body):
        body["interval_s"] = 3600
    answer = await http.post(PATH, json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def slots(http: httpx2.AsyncClient, row: dict[str, Any]) -> list[dict[str, Any]]:
    """The ledger of a row, the oldest entry first."""
    answer = await http.get("/api/slots", params={"row": row["id"]})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["slots"]
    return found[::-1]


async def until(http: httpx2.AsyncClient, row: dict[str, Any], *states: str) -> Any:
    """Wait until a row's ledger has these states, and no others."""
    found: list[dict[str, Any]] = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while [one["state"] for one in found] != list(states):
                await asyncio.sleep(next(pause_s))
                found = await slots(http, row)
    except TimeoutError:
        raise AssertionError(f"it isn't {states}: {found}") from None
    return found


async def said(world: World, person: Person, thread: str = "main") -> list[str]:
    await world.at_rest()
    user = person.key.partition(":")[0]
    return [said.text for said in world.talk(f"{user}:vigil:{thread}").said]


def move(world: World, seconds: float) -> None:
    assert isinstance(world.clock, StoppedClock)
    world.clock.move(seconds)


async def test_a_run_has_readers_workers_and_branches(world: World) -> None:
    """J-2: side by side; it had none, and what took long took all of its steps."""
    ida = await world.person("ida:vigil:main", has_socket=False)
    prompt = ask(
        ("research", {"task": "what is new"}),
        ("spawn_worker", {"task": "count the mails"}),
        ("branch", {"prompt": "which of them matter"}),
    )
    row = await made(ida.http, prompt=prompt)
    await until(ida.http, row, "running", "ran")
    done = signals_of("ida", agent="vigil")
    wanted = {"reader.completed", "worker.completed", "branch.completed"}
    kinds: set[str] = set()
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while not kinds >= wanted:
            await asyncio.sleep(next(pause_s))
            stored = await world.admin.read("SIGNALS", [done])
            kinds = {decode_signal(one.data).kind for one in stored}
    assert len(await said(world, ida)) == 1


async def test_what_is_due_is_run_and_told_at_home(world: World) -> None:
    """J-2: an interval begins at once; each run is a fresh session; the person can answer."""
    ann = await world.person("ann:vigil:main", has_socket=False)
    row = await made(ann.http, prompt="What is new?")
    assert (row["when"], row["made_by"]) == ("every 1 h", "person")
    first = await until(ann.http, row, "running", "ran")
    assert [one["delivery"] for one in first] == ["", "told"]
    assert {one["trigger"] for one in first} == {"scheduled"}
    await world.at_rest()
    assert [one["arrival"] for one in await slots(ann.http, row)] == ["", "said"]
    assert [one["tokens"] for one in first] == [0, 2]
    move(world, 3600)
    both = await until(ann.http, row, "running", "ran", "running", "ran")
    assert len({one["session"] for one in both}) == 2
    assert both[-1]["session"].startswith("ann:vigil:_cron-")
    assert await said(world, ann) == ["re: What is new?"] * 2
    await ann.exchange("and now?")
    assert (await said(world, ann))[-1] == "re: and now?"
    shown = (await ann.http.get(f"{PATH}/{row['id']}")).json()
    assert (shown["runs"], shown["running"], len(shown["next_at"])) == (2, 0, 5)
    for id_ in (row["id"], both[-1]["session"].rpartition("-")[2]):
        story = (await ann.http.get(f"/api/why/{id_}")).json()
        assert (story["verdict"], story["kind"]) == ("done", "cron"), story
        assert any("of the timetable was due" in s["text"] for s in story["steps"])


async def test_a_result_goes_to_its_target_and_an_empty_one_nowhere(world: World) -> None:
    """J-2, J-5."""
    bob = await world.person("bob:vigil:t1", has_socket=False)
    row = await made(bob.http, target="bob:vigil:news", runs_once=True)
    await until(bob.http, row, "running", "ran")
    assert await said(world, bob, "news") == ["re: Look around"]
    behave = world.agent.behave
    world.agent.behave = lambda request: (
        say("") if "_cron-" in request.session_key else behave(request)
    )
    quiet = await made(bob.http, "quiet", runs_once=True)
    found = await until(bob.http, quiet, "running", "ran")
    world.agent.behave = behave
    assert found[-1]["delivery"] == "silent"
    assert await said(world, bob) == []
    move(world, 7200)
    assert (await bob.http.get(f"{PATH}/{row['id']}")).json()["next_at"] == []


async def test_a_run_by_hand_takes_no_slot(world: World) -> None:
    """J-4: it is an entry of its own; a second one waits for its end."""
    cid = await world.person("cid:vigil:t1", has_socket=False)
    row = await made(cid.http, cron="0 9 1 1 *", zone="Europe/Berlin")
    assert row["next_at"][0].endswith("-01-01T08:00:00Z")
    answer = await cid.http.post(f"{PATH}/{row['id']}/runs")
    assert answer.status_code == 202, answer.text
    found = await until(cid.http, row, "running", "ran")
    assert [one["is_by_hand"] for one in found] == [True, True]
    after = (await cid.http.get(f"{PATH}/{row['id']}")).json()
    assert (after["runs"], after["next_at"]) == (0, row["next_at"])


async def test_one_that_always_fails_is_told_once_and_paused_at_last(world: World) -> None:
    """J-4, L-13: execution and delivery have outcomes of their own."""
    dan = await world.person("dan:vigil:t1", has_socket=False)
    behave = world.agent.behave

    def fail(request: ModelRequest) -> Any:
        if request.session_key.startswith("dan:vigil:_cron"):
            raise ModelError("401", is_retryable=False)
        return behave(request)

    world.agent.behave = fail
    row = await made(dan.http, "levitate")
    states = ["running", "failed"]
    for _ in range(9):
        await until(dan.http, row, *states)
        move(world, 3600)
        states += ["running", "failed"]
    found = await until(dan.http, row, *states)
    world.agent.behave = behave
    assert {one["reason"] for one in found[1::2]} == {"401"}
    first, *others = await said(world, dan)
    assert first == "The job 'levitate' failed: 401."
    arrivals = [one["arrival"] for one in await slots(dan.http, row)][1::2]
    assert (arrivals[0], arrivals[1], arrivals[-1]) == ("said", "digest", "said")
    paused = "It failed 10 times, one after the other, so it's paused now."
    # Depending on the time of day, the hour of the digest comes in between, or last.
    digests = [text for text in others if not text.endswith(paused)]
    assert len(others) - len(digests) == 1
    assert len(digests) <= 1
    assert all("more times)" in text for text in digests)
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while (shown := (await dan.http.get(f"{PATH}/{row['id']}")).json())["is_enabled"]:
            await asyncio.sleep(next(pause_s))
    assert shown["history"][-1]["by"] == "scheduler"


async def test_over_budget_is_no_failure(world: World) -> None:
    """L-3, L-21: a day at the cap is skipped, told once by whose cap it is, and pauses no row."""
    nan = await world.person("nan:vigil:t1", has_socket=False)
    behave, reason = world.agent.behave, "the daily limit of 10 tokens is reached"

    def stop(request: ModelRequest) -> Any:
        if not request.session_key.startswith("nan:vigil:_cron"):
            return behave(request)
        tomorrow = world.clock.now() + timedelta(days=1)
        raise ModelError(reason, is_retryable=False, budget_at=tomorrow)

    world.agent.behave = stop
    row = await made(nan.http, "hourly")
    states = ["running", "skipped"]
    for _ in range(11):
        await until(nan.http, row, *states)
        move(world, 3600)
        states += ["running", "skipped"]
    found = await until(nan.http, row, *states)
    assert {one["reason"] for one in found[1::2]} == {reason}
    assert await said(world, nan) == []
    world.agent.behave = behave
    move(world, 3600)
    await until(nan.http, row, *states, "running", "ran")
    shown = (await nan.http.get(f"{PATH}/{row['id']}")).json()
    assert (shown["is_enabled"], shown["runs"], shown["failures"]) == (True, 1, 0)


async def test_what_is_paused_is_skipped_and_says_so(world: World) -> None:
    """L-5, L-4: a row's own pause is one entry, however long."""
    eve = await world.person("eve:vigil:t1", has_socket=False)
    row = await made(eve.http, cron="0 * * * *")
    url = f"{PATH}/{row['id']}"
    paused = await eve.http.patch(url, json={"is_enabled": False, "why": "holidays"})
    assert (paused.status_code, paused.json()["next_at"]) == (200, [])
    move(world, 5 * 3600)
    stale = await eve.http.patch(url, json={"is_enabled": True}, headers={"If-Match": '"1"'})
    assert stale.status_code == 412
    assert (await eve.http.patch(url, json={"is_enabled": True})).status_code == 200
    (entry,) = await until(eve.http, row, "skipped")
    assert (entry["count"], entry["reason"]) == (5, "the row was paused")
    assert (await eve.http.delete(url)).json()["is_removed"]
    listing = (await eve.http.get(PATH)).json()["rows"]
    assert [one["id"] for one in listing] == []
    assert (await eve.http.patch(url, json={"name": "again"})).status_code == 409


async def test_what_was_missed_while_off_is_told_with_the_next_digest(world: World) -> None:
    """J-4, L-13: it stood in the ledger, where nobody looks. A repeat of it isn't told twice."""
    zoe = await world.person("zoe:vigil:t1", has_socket=False)
    digest = f"{world.clock.now() + timedelta(hours=14):%H:%M}"
    assert (await zoe.http.patch("/api/person", json={"digest_at": digest})).status_code == 200
    brief = await made(zoe.http, "morning brief", cron="0 * * * *")
    other = await made(zoe.http, "backup", cron="30 * * * *", misfire="skip")
    now = datetime.fromisoformat(brief["next_at"][0])
    await world.stack.stop("scheduler")
    move(world, (now - world.clock.now()).total_seconds() + 2 * 3600 + 120)
    await world.stack.start("scheduler")
    await until(zoe.http, brief, "coalesced", "running", "late")
    await until(zoe.http, other, "missed")
    for row in (brief, other):
        assert (await zoe.http.delete(f"{PATH}/{row['id']}")).status_code == 200
    again = await made(zoe.http, "night look", cron="0 * * * *", misfire="skip")
    for _ in range(2):  # the machine sleeps twice
        await world.stack.stop("scheduler")
        move(world, 3 * 3600)
        await world.stack.start("scheduler")
        slept = [one["state"] for one in await slots(zoe.http, again)]
        await until(zoe.http, again, *slept, "missed")
    assert (await zoe.http.delete(f"{PATH}/{again['id']}")).status_code == 200
    before = len(await said(world, zoe))
    move(world, 14 * 3600)
    home = world.talk("zoe:vigil:main")
    await home.until(lambda: len(home.said) > before)
    digest = (await said(world, zoe))[-1]
    assert "- 3 runs of morning brief were missed while off: one was made up for." in digest
    assert "- 2 runs of backup were missed while off: none was made up for." in digest
    assert "- 6 runs of night look were missed while off: none was made up for." in digest


async def test_one_that_takes_too_long_is_ended(world: World) -> None:
    """J-2: after its timeout; what was due meanwhile was skipped."""
    fay = await world.person("fay:vigil:t1", has_socket=False)
    world.agent.gate.clear()
    world.agent.held = {"dawdle"}
    row = await made(fay.http, prompt="dawdle", interval_s=60, timeout_s=90)
    await until(fay.http, row, "running")
    move(world, 61)
    await until(fay.http, row, "running", "skipped")
    move(world, 30)
    found = await until(fay.http, row, "running", "skipped", "failed")
    world.agent.gate.set()
    assert found[1]["reason"] == "the run before was still going on"
    assert found[2]["reason"] == "it took longer than the 90 s that it has"


async def test_a_machine_that_slept_through_a_run_has_its_end_told(world: World) -> None:
    """J-2, J-5: nobody told it to end in time, so it may yet tell of it."""
    ulf = await world.person("ulf:vigil:t1", has_socket=False)
    world.agent.gate.clear()
    world.agent.held = {"slumber"}
    row = await made(ulf.http, "night look", prompt="slumber", interval_s=86_400, timeout_s=90)
    await until(ulf.http, row, "running")
    move(world, 10 * 3600)
    found = await until(ulf.http, row, "running", "failed")
    world.agent.gate.set()
    assert found[1]["reason"] == "it took longer than the 90 s that it has"
    home = world.talk("ulf:vigil:main")
    told = "The job 'night look' failed: it took longer than the 90 s that it has."
    await home.until(lambda: told in [one.text for one in home.said])


async def test_what_a_person_asks_for_recurs_and_outside_content_makes_nothing(
    world: World,
) -> None:
    """J-2, X-3: by telling the agent; it is told when, and lists what there is."""
    ivy = await world.person("ivy:vigil:t1", has_socket=False)
    job = {"action": "create", "name": "look", "prompt": "What is new?", "interval_s": 86_400}
    await ivy.exchange(ask_in_steps([("cron", job)], [("cron_list", {})]))
    made_of, listed = [results_of(r) for r in world.agent.requests if r.session_key == ivy.key][-2:]
    assert "every 1 d; next: " in made_of
    assert "look (" in listed
    (row,) = (await ivy.http.get(PATH)).json()["rows"]
    assert (row["made_by"], row["session_key"]) == ("agent", ivy.key)
    await until(ivy.http, row, "running", "ran")
    assert await said(world, await world.person("ivy:vigil:main", has_socket=False)) == [
        "re: What is new?"
    ]
    await ivy.talk.ended(await ivy.talk.outside(ask(("cron", job | {"name": "evil"}))))
    rows = (await ivy.http.get(PATH)).json()["rows"]
    assert [one["name"] for one in rows] == ["look"]
    assert ONLY_THE_PERSON in results_of(world.agent.requests[-1])


async def test_a_briefing_at_nine_names_what_earlier_ones_found(world: World) -> None:
    """Scenario 1 of seed 000 from the morning on, J-3, J-2: the third names what the first two
    found, and nothing of another row; it is told at home, where an answer knows of it."""
    gus = await world.person("gus:vigil:t1", has_socket=False)
    behave, asked = world.agent.behave, dict[str, ModelRequest]()

    def work(request: ModelRequest) -> Any:
        """Look at the tracker, and name beside it what was found before."""
        if not request.session_key.startswith("gus:vigil:_cron"):
            return behave(request)
        asked[request.session_key] = request
        news = f"#{400 + len(asked)}"
        before = sorted(set(re.findall(r"#4\d\d", results_of(request))))
        return say(f"New: {news}. Before: {', '.join(before) or 'nothing'}.")

    world.agent.behave = work
    other = await made(gus.http, "other", is_stateful=True, runs_once=True)
    await until(gus.http, other, "running", "ran")
    await found(gus.http, other, 1)
    row = await made(
        gus.http, prompt="What is new?", is_stateful=True, cron="0 9 * * *", zone="Europe/Berlin"
    )
    assert {at.astimezone(BERLIN).hour for at in next_of(row)} == {9}
    states: list[str] = []
    for number in (1, 2, 3):
        due_at = next_of((await gus.http.get(f"{PATH}/{row['id']}")).json())[0]
        move(world, (due_at - world.clock.now()).total_seconds())
        states += ["running", "ran"]
        entries = await until(gus.http, row, *states)
        assert [entries[-1]["due_at"], entries[-1]["delivery"]] == [wire(due_at), "told"]
        await found(gus.http, row, number)
    world.agent.behave = behave
    told = await said(world, gus)
    assert told == [
        "New: #401. Before: nothing.",
        "New: #402. Before: nothing.",
        "New: #403. Before: #402.",
        "New: #404. Before: #402, #403.",
    ]
    home = await world.person("gus:vigil:main", has_socket=False)
    await home.exchange("which one is urgent?")
    assert (await said(world, home))[-1] == "re: which one is urgent?"
    (request,) = [r for r in world.agent.requests if r.session_key == home.key]
    assert told[-1] in world.agent.text_of(request)


def results_of(request: ModelRequest) -> str:
    """Return what the calls of a session came to."""
    blocks = [block for row in request.rows for block in row.blocks]
    return "\n".join(block.content for block in blocks if isinstance(block, ToolResultBlock))


def next_of(row: dict[str, Any]) -> list[datetime]:
    return [datetime.fromisoformat(at) for at in row["next_at"]]


def wire(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


async def found(http: httpx2.AsyncClient, row: dict[str, Any], count: int) -> None:
    """Wait until memory has what so many runs found."""
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while True:
            params = {"source": f"cron:{row['id']}"}
            memories = (await http.get("/api/memories", params=params)).json()["memories"]
            if len(memories) >= count:
                return
            await asyncio.sleep(next(pause_s))


async def test_one_runs_after_another_with_what_it_came_to(world: World) -> None:
    """L-1: each end of a run is a slot of the row that follows; none follows itself."""
    kim = await world.person("kim:vigil:t1", has_socket=False)
    backup = await made(kim.http, "backup", prompt="Back up", cron="0 3 1 1 *")
    report = await made(kim.http, "report", prompt="Sum up", after=backup["id"], after_on="any")
    never = await made(kim.http, "never", prompt="Mend it", after=backup["id"], after_on="failure")
    assert (report["when"], report["next_at"]) == ("after each run of 'backup'", [])
    refused = await kim.http.patch(f"{PATH}/{backup['id']}", json={"after": report["id"]})
    assert (refused.status_code, refused.json()["field"]) == (422, "after")
    assert "that is a circle" in refused.json()["detail"]
    for number in (1, 2):
        assert (await kim.http.post(f"{PATH}/{backup['id']}/runs")).status_code == 202
        by_hand = await until(kim.http, backup, *["running", "ran"] * number)
        chained = await until(kim.http, report, *["running", "ran"] * number)
        assert {one["trigger"] for one in by_hand} == {"manual"}
        assert {one["trigger"] for one in chained} == {"chained"}, "its end, too"
        move(world, 60)
    told = await said(world, kim)
    assert told[::2] == ["re: Back up"] * 2
    assert all(text.startswith("re: Sum up\n\n[What the job before") for text in told[1::2])
    assert all(text.endswith("\n| re: Back up") for text in told[1::2])
    assert await slots(kim.http, never) == []
    assert (await kim.http.delete(f"{PATH}/{backup['id']}")).status_code == 200
    found = (await kim.http.get("/api/slots/findings")).json()["findings"]
    assert {(one["name"], one["what"]) for one in found} == {
        ("report", "cut_off"), ("never", "cut_off"),
    }  # fmt: skip


async def test_a_run_chooses_when_the_next_is_and_outside_content_may_not_put_it_off(
    world: World,
) -> None:
    """L-1: within limits, counted from its end; what is watched can't have itself watched less."""
    lea = await world.person("lea:vigil:t1", has_socket=False)
    news = world.stack.settings.workspaces / "vigil" / "lea" / "news.md"
    news.parent.mkdir(parents=True)
    news.write_text("calm")
    behave = world.agent.behave

    def choose(request: ModelRequest) -> Any:
        if "next_look" not in {tool.name for tool in request.tools}:
            return behave(request)
        asked = [b for r in request.rows for b in r.blocks if isinstance(b, ToolUseBlock)]
        if len(asked) < len(wanted):
            call = {"in_seconds": wanted[len(asked)], "reason": "it moves"}
            return called("next_look", call, len(asked))
        return say(results_of(request))

    world.agent.behave = choose
    limits = {"interval_s": 3600, "soonest_s": 600, "latest_s": DAY_S}
    wanted = [10 * DAY_S, DAY_S]
    plain = await made(lea.http, "plain", **limits)
    await until(lea.http, plain, "running", "ran")
    assert (await said(world, lea))[-1] == (
        f"in_seconds must be from 600 to {DAY_S}.\nIt runs again 1 d after this run ends."
    )
    assert await next_in(world, lea.http, plain) == DAY_S
    watch = {"kind": "files", "glob": "*.md"}
    watcher = await made(lea.http, "watcher", watch=watch, **limits)
    follower = await made(lea.http, "follower", after=watcher["id"])
    await until(lea.http, watcher, "skipped")
    news.write_text("storm")
    wanted = [DAY_S, 900]
    move(world, 3600)
    await until(lea.http, watcher, "skipped", "running", "ran")
    begun, _ = await until(lea.http, follower, "running", "ran")
    world.agent.behave = behave
    told = next(text for text in await said(world, lea) if "may not put" in text)
    assert told.splitlines()[-1] == "It runs again 15 min after this run ends."
    assert await next_in(world, lea.http, watcher) == 900
    subject = SessionKey.parse(begun["session"]).in_event("control")
    (message,) = await world.admin.read("SYSTEM", [subject])
    event = decode_event(message.data)
    assert isinstance(event, Control)
    assert event.payload.start is not None
    assert event.payload.start.is_tainted  # what had a part in the one has in the next


def called(tool: str, given: dict[str, Any], number: int) -> ModelAnswer:
    """An answer that calls a tool."""
    use = ToolUseBlock(id=f"call_{number}", name=tool, input=given)
    usage = Usage(model="agent", input_tokens=1, output_tokens=1)
    return ModelAnswer(blocks=(use,), stop_reason="tool_use", usage=usage)


async def next_in(world: World, http: httpx2.AsyncClient, row: dict[str, Any]) -> float:
    """Return in how many seconds a row is due next, which is all that is known."""
    (at,) = next_of((await http.get(f"{PATH}/{row['id']}")).json())
    return round((at - world.clock.now()).total_seconds())


async def test_a_clock_that_is_set_back_has_rows_run_by_it(world: World) -> None:
    """Issue 32: nothing ran until it had caught up, though `next_at` named instants before."""
    wim = await world.person("wim:vigil:t1", has_socket=False)
    row = await made(wim.http, "minutely", interval_s=60)
    await until(wim.http, row, "running", "ran")
    move(world, 3600)
    await until(wim.http, row, "running", "ran", "coalesced", "running", "ran")
    move(world, -1800)
    ahead = ("running", "ran", "coalesced", "running", "ran", "skipped")
    back = await until(wim.http, row, *ahead)
    assert back[-1]["reason"] == reasons.SET_BACK
    move(world, 60)
    found = await until(wim.http, row, *ahead, "running", "ran")
    assert (found[-1]["due_at"] < found[-4]["due_at"], found[-1]["session"] != "") == (True, True)
    wrong = (await wim.http.get("/api/slots/findings")).json()["findings"]
    assert [one["what"] for one in wrong if one["row"] == row["id"]].count("clock") == 1
    move(world, 1800)
