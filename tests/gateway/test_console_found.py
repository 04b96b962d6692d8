"""What of everything is told on Today, and found from one field."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.support import approvals
from tests.support.console import signed_in
from tests.support.gateway import Gate
from tests.support.goal_records import action_of
from tests.support.remembering import running_memories, save
from tests.support.timetable_records import ROW as ROW_OF_ANN
from vigil.board.kept import ROWS, KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.board.kinds.task import TASKS
from vigil.contracts import BoardTask, Change, FollowUp, SlotEntry, State
from vigil.contracts.board import TaskResult
from vigil.subjects import Scope, SessionKey
from vigil.timetable.log import SlotLog

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROW: Final = {"name": "News", "prompt": "Read them", "cron": "0 9 * * *"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: Any) -> AsyncIterator[Gate]:
    home: Path = tmp_path_factory.mktemp("home")
    async with running_memories(home) as gate:
        yield gate


async def test_today_tells_in_words_and_in_order_what_happened(gate: Gate) -> None:
    """Said, done, found, failed, each once and each a link; what is older stands apart."""
    uma, api, now = await signed_in(gate, "uma"), await gate.person("uma"), datetime.now(UTC)
    whose, change = Scope("vigil", "uma"), Change(by="vigil")
    row = (await api.post("/api/cron", json=ROW)).json()

    def ago(minutes: int) -> datetime:
        return now - timedelta(minutes=minutes)

    begun = SlotEntry(row=row["id"], due_at=ago(41), state="running", at=ago(41))
    log = SlotLog(gate.admin)
    last = await log.append(whose, await log.last(whose, row["id"]), begun)
    ended = replace(begun, state="failed", reason="too slow", at=ago(40), session="uma:vigil:_c-1")
    await log.append(whose, last, ended)
    task = BoardTask(
        id="7" * 32, owner="uma", agent="vigil", title="Repot <b>Bruno</b>", status="done",
        created_at=ago(60), moved_at=ago(30), created_by="person",
        result=TaskResult(text="it stands in clay", at=ago(30)),
    )  # fmt: skip
    await KeptBoard(gate.admin, TASKS).create(lambda _: task, whose, change, now)
    for number, minutes, text in (("8", 20, "turned the lamp on"), ("9", 60 * 30, "looked twice")):
        action = action_of(
            id=number * 32, owner="uma", agent="vigil", description=text, created_at=ago(minutes)
        )
        await KeptBoard(gate.admin, ACTIONS).create(
            lambda _, made=action: made,
            whose,
            change,
            now,  # type: ignore[misc]
        )
    body = {"category": "workflow", "key": "plants", "value": "at noon"}
    assert (await api.post("/api/preferences", json=body)).status_code == 201
    await gate.say("uma:vigil:main", "It **rains** tonight", effect_id="5" * 32, tag="Follow-up")
    await api.post("/api/sessions/uma:vigil:talk/messages", json={"text": "# Which _tea_?"})
    await gate.say("uma:vigil:talk", "Mint", effect_id="6" * 32)
    page = await uma.page()
    assert page.strange() == []
    happened, _, before = page.text.partition("Before that")
    happened = happened.partition("What failed")[2]
    assert happened.index("News failed: too slow") < happened.index("What happened")
    places = [happened.index(one) for one in (
        "News failed: too slow", "Task done: Repot <b>Bruno</b>: it stands in clay",
        "turned the lamp on", "Learnt how you like it: plants: at noon", "It rains tonight",
        "Something new in: Which tea?",
    )]  # fmt: skip
    assert places == sorted(places)
    assert happened.count("News") == 1
    assert "looked twice" in before
    for link in ("/conversations/uma:vigil:_c-1", f"/tasks/{task.id}",
                 "/conversations/uma:vigil:talk#end"):  # fmt: skip
        assert f"/console{link}" in page.links


async def test_today_begins_with_what_needs_somebody_and_what_failed(gate: Gate) -> None:
    """What expires first, first; what failed in the night isn't lost among what went well, of which
    many of a kind are one line; and a briefing is told once, with its words."""
    una, api, now = await signed_in(gate, "una"), await gate.person("una"), datetime.now(UTC)
    for number, hours, what in (("1", 5, "later"), ("2", 1, "sooner")):
        asked = approvals.request(
            SessionKey("una", "vigil", "t1"), number * 32, reason=what,
            expires_at=now + timedelta(hours=hours),
        )  # fmt: skip
        await approvals.list_on_board(gate, asked)
    log, whose, rows = SlotLog(gate.admin), Scope("vigil", "una"), {}
    for name in ("Hourly", "Briefing", "Backup"):
        rows[name] = (await api.post("/api/cron", json=ROW | {"name": name})).json()["id"]
    kept = replace(
        ROW_OF_ANN, id="3" * 32, owner="una", name="Upkeep", made_by="system", is_removed=False
    )
    await KeptBoard(gate.admin, ROWS).create(lambda _: kept, whose, Change(by="vigil"), now)
    rows["Upkeep"] = kept.id
    runs = [("Hourly", "ran", n, "") for n in range(8)] + [("Backup", "failed", 300, "disk full")]
    told = {"told": "4" * 32, "told_to": "una:vigil:main", "delivery": "told"}
    for name, state, minutes, reason in (
        *runs,
        ("Briefing", "ran", 20, ""),
        ("Upkeep", "ran", 0, ""),
    ):
        at, last = now - timedelta(minutes=minutes), await log.last(whose, rows[name])
        entry = SlotEntry(
            row=rows[name], due_at=at, at=at, state=state, reason=reason,  # type: ignore[arg-type]
            **(told if name == "Briefing" else {}),  # type: ignore[arg-type]
        )  # fmt: skip
        await log.append(whose, last, entry)
    briefing = {"effect_id": "5" * 32, "caused_by": f"told-{'4' * 32}"}
    await gate.say("una:vigil:main", "**Two** things are due today", **briefing)
    ended = {"effect_id": "6" * 32, "caused_by": f"told-{'5' * 32}"}
    await gate.say("una:vigil:main", "The task 'Repot' is done.", **ended)
    tea = FollowUp(
        fire_at=now + timedelta(hours=1), generation=1, reason="r", message="Water it", keep=True
    )
    await api.post("/api/sessions/una:vigil:talk/messages", json={"text": "Remind me"})
    await gate.turn("una:vigil:talk", State(turns=1, follow_ups={"tea": tea}))
    page = await una.page()
    text = " ".join(page.text.split())
    places = [text.index(one) for one in (
        "sooner", "later", "What failed", "Backup failed: disk full", "What happened",
        "Hourly ran 8 times", "Two things are due today", "What comes next", "reminder Water it",
    )]  # fmt: skip
    assert places == sorted(places)
    assert "/console/conversations/una:vigil:talk#to-come" in page.links
    happened = text.partition("What happened")[2].partition("What comes next")[0]
    assert "The task" not in happened
    assert "Upkeep" not in happened  # as each half hour
    week = (await una.page("/timetable")).text.partition("The week")[2].partition("Rows")[0]
    assert ("Hourly" in week, "Upkeep" in week) == (True, False)
    assert "What failed" not in (await (await signed_in(gate, "ute")).page()).text


async def test_of_many_requests_in_a_talk_the_newest_are_whole(gate: Gate) -> None:
    """All can be decided there; every other way is on the page of each: forty took 180 kB."""
    many = await signed_in(gate, "many")
    key = SessionKey("many", "vigil", "t1")
    await gate.say(str(key), "I ask for much", effect_id="9" * 32)
    for number in range(5):
        asked = approvals.request(key, f"{number:032x}", input={"command": f"ls {number}"})
        await approvals.list_on_board(gate, asked, 1)
    page = await many.page(f"/conversations/{key}")
    assert page.text.count("Accept this call") == 5
    assert page.text.count("Run it with other arguments") == 3
    assert page.text.count("With other arguments, a result of yours") == 2


async def test_all_is_found_by_its_words_from_one_field(gate: Gate) -> None:
    """Pages, conversations, tasks, preferences and memories of one's own, each a link; nothing of
    others'. A memory is forgotten from there."""
    ida, stranger = await signed_in(gate, "ida"), await signed_in(gate, "stan")
    api = await gate.person("ida")
    await api.post("/api/sessions/ida:vigil:t1/messages", json={"text": "Basil: which soil?"})
    task = await ida.did("/tasks", do="make", title="Buy basil", description="", priority="high")
    memory = await save(api, "The basil stands at the window", source="notes")
    liked = {"category": "workflow", "key": "basil_soil", "value": "without peat"}
    preference = (await api.post("/api/preferences", json=liked)).json()["id"]
    found = await ida.page("/find", q="basil")
    below = (f"/memories/{memory}?agentId=vigil", f"/preferences?about={preference}")
    talk = "/console/conversations/ida:vigil:t1"
    assert {talk, task, *(f"/console{one}" for one in below)} <= set(found.links)
    assert "/console/trust" in (await ida.page("/find", q="trust")).depths
    nothing = await stranger.page("/find", q="basil")
    assert "Nothing has these words." in nothing.text
    asked = await ida.page("/memories", q="basil")
    assert "because it" in asked.text
    (form,) = [one for one in found.forms if one["action"] == f"/console/memories/{memory}"]
    fields = {"agentId": form["agentId"], "back": form["back"]}
    assert (await ida.did(f"/memories/{memory}", **fields)) == "/console/find?q=basil"
    assert memory not in "".join((await ida.page("/find", q="basil")).links)


async def test_a_preference_is_confirmed_corrected_refused_and_forgotten(gate: Gate) -> None:
    """With how sure, since when and from what; as it was shown; nobody else's."""
    pru, stranger = await signed_in(gate, "pru"), await signed_in(gate, "stan")
    api = await gate.person("pru")
    await pru.did("/preferences", do="say", category="schedule", key="report_at", value="8 o'clock")
    body = {"category": "code", "key": "line_length", "value": 88, "learned_from": "of the linter"}
    assert (await api.post("/api/preferences", json=body)).status_code == 201
    page = await pru.page("/preferences")
    for text in ("report at", "8 o'clock", "of the linter", "since", "you said it"):
        assert text in page.text
    assert "report at" not in (await stranger.page("/preferences")).text

    async def held() -> dict[str, dict[str, Any]]:
        found = (await api.get("/api/preferences")).json()["preferences"]
        return {one["key"]: one for one in found}

    before = (await held())["line_length"]
    form = next(one for one in page.forms if one.get("revision") and one["id"] == before["id"])
    del form["action"]
    right = form | {"do": "right"}
    assert (await stranger.send("/preferences", **right)).status_code == 404
    await pru.did("/preferences", **right)
    assert (await held())["line_length"]["confidence"] > before["confidence"]
    assert (await pru.send("/preferences", **right)).status_code == 412  # not as it was shown
    await pru.did("/preferences", id=before["id"], do="say", value="100")
    assert (await held())["line_length"]["value"] == 100
    assert (await pru.send("/preferences", id=before["id"], do="say", value="{")).status_code == 422
    await pru.did("/preferences", id=before["id"], do="never", value="79")
    never = (await held())["line_length"]
    assert (never["value"], never["is_negative"]) == (79, True)
    assert "never" in (await pru.page("/preferences")).text
    last = {"id": before["id"], "revision": str(never["revision"]), "do": "forget"}
    await pru.did("/preferences", **last)
    assert set(await held()) == {"report_at"}
    for path, text in (("/agents", "vigil"), ("/models", "What was asked in 30 days")):
        shown = await pru.page(path)
        assert text in shown.text
        assert shown.strange() == []
