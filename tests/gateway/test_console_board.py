"""The console's pages of what is to be done, what is known, what it cost, and what runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.support import approvals
from tests.support.console import HERE, Reader, Shown, pages, signed_in
from tests.support.gateway import Gate, until
from tests.support.goal_records import action_of
from tests.support.hands_records import SHELF
from tests.support.remembering import running_memories, save
from vigil.board.kept import KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.bus.kv import KeyValue
from vigil.contracts import (
    Change,
    DeadLetter,
    ExternalBlock,
    ExternalPayload,
    Row,
    SlotEntry,
    State,
    decode_event,
    decode_pins,
    encode,
)
from vigil.contracts.costs import Account, CostRow, DayOfCosts
from vigil.contracts.events import LetterName
from vigil.contracts.history import LetterHead
from vigil.marks import agent_pause
from vigil.settings.tokens import token_id_of
from vigil.subjects import Scope, SessionKey, token_of
from vigil.timetable.log import SlotLog
from vigil.trust.letters import digest_of
from vigil.zones.database import zone_named

pytestmark = pytest.mark.asyncio(loop_scope="module")
HOSTILE: Final = (
    "</textarea><script>alert(1)</script><img src=x onerror=alert(2)>\"'\x1b[2J\u202etxt"
)
ROW: Final = {"name": "News", "prompt": "Read them", "cron": "0 9 * * *"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: Any) -> AsyncIterator[Gate]:
    home: Path = tmp_path_factory.mktemp("home")
    async with running_memories(home) as gate:
        yield gate


class Person:
    """Somebody with a browser and a token; and somebody else, signed in, too."""

    def __init__(self, reader: Reader, api: httpx2.AsyncClient, stranger: Reader) -> None:
        self.reader = reader
        self.api = api
        self.stranger = stranger


_STRANGERS: Final[dict[int, Reader]] = {}
"""By the port of a gateway: it lets in only so many browsers at once."""


async def person(gate: Gate, user: str) -> Person:
    if gate.port not in _STRANGERS:
        _STRANGERS[gate.port] = await signed_in(gate, "stan")
    return Person(await signed_in(gate, user), await gate.person(user), _STRANGERS[gate.port])


def form_of(page: Shown, **fields: str) -> dict[str, str]:
    """Return the form of a page that has these fields."""
    found = [one for one in page.forms if fields.items() <= one.items()]
    assert len(found) == 1, found
    return {name: value for name, value in found[0].items() if name != "action"}


async def test_a_letter_is_replied_to_and_its_source_trusted(gate: Gate) -> None:
    """F-2, F-15: from the conversation, and ended on a page of its own; a stranger sees neither."""
    lea, key = await person(gate, "lea"), "lea:vigil:t1"
    assert (
        "which the agent sees closed" not in (await lea.reader.page(f"/conversations/{key}")).text
    )
    at, told = datetime.now(UTC), f"red\u3164 {HOSTILE}"
    event = ExternalPayload(source="hook:ci", content=told)
    rows = (
        Row(
            role="user",
            source="external",
            blocks=(ExternalBlock(event_id="e", event=event),),
            at=at,
        ),
    )
    heads = [
        LetterHead(
            handle="a1",
            what="an event from hook:ci",
            source="hook:ci",
            size=len(told),
            at=at,
            digest=digest_of(told),
        ),
        LetterHead(handle="b1", what=f"what you {HOSTILE}", size=9, at=at),
    ]
    await gate.turn(key, State(position=1, turns=1), letters=tuple(heads), rows=rows)
    page = await lea.reader.page(f"/conversations/{key}")
    assert "an event from hook:ci" in page.text
    form = form_of(page, source="hook:ci")
    replying = await lea.reader.page(f"/conversations/{key}?reply=a1")
    assert "open a1: " in replying.text
    hostile = await lea.reader.page(f"/conversations/{key}?reply=obey")
    assert "open obey" not in hostile.text
    assert page.strange() == replying.strange() == []
    talk = f"/console/conversations/{key}"
    assert not [one for one in page.forms if "letter" in one], (
        "nobody vouches for what they don't see"
    )
    reading = await lea.reader.page(f"/conversations/{key}?letter=a1")
    assert "red\\u3164" in reading.text, "with what it hides"
    assert reading.strange() == []
    fine = form_of(reading, letter="a1")
    assert await lea.reader.did(f"/conversations/{key}", **fine) == (
        f"{talk}?undo=letter/{key}/a1#letters"
    )
    order = await gate.admin.get_last("SESSIONS", SessionKey.parse(key).in_event("control"))
    assert order is not None
    name = LetterName(handle="a1", digest=digest_of(told))
    assert decode_event(order.data).payload.letter == name
    state = State(position=2, turns=2, vouched=(name,))
    await gate.turn(key, state, letters=())
    closing = form_of(await lea.reader.page(f"/conversations/{key}?letter=a1"), do="unvouch")
    assert await lea.reader.did(f"/conversations/{key}", **closing) == f"{talk}#letters"
    for wrong in ("b1", "z9", "obey"):
        nothing = await lea.reader.page(f"/conversations/{key}?letter={wrong}")
        assert "whole:</p>" not in nothing.text
    led = await lea.reader.did(f"/conversations/{key}", **form)
    assert re.fullmatch(rf"{talk}\?undo=trust/[\w-]+/vigil#letters", led)
    assert "trusted by now" in (await lea.reader.page(f"/conversations/{key}")).text
    shown = await lea.reader.page("/trust")
    assert "hook:ci counts as your own from now on" in shown.text
    assert "hook:ci" not in (await lea.stranger.page("/trust")).text
    assert await lea.reader.did("/trust", **form_of(shown, do="end")) == "/console/trust"
    assert "You trust no source" in (await lea.reader.page("/trust")).text
    watch = {"kind": "feed", "url": "https://news.example.org/feed"}
    made = (await lea.api.post("/api/cron", json=ROW | {"watch": watch})).json()
    row = await lea.reader.page(f"/timetable/{made['id']}")
    trusting = form_of(row, source="feed:https://news.example.org/feed")
    assert (await lea.reader.did("/trust", **trusting)).startswith("/console/trust?undo=trust/")
    row = await lea.reader.page(f"/timetable/{made['id']}")
    assert "content from outside" not in row.text
    assert not [one for one in row.forms if "source" in one]
    added = form_of(await lea.reader.page("/trust"), do="trust") | {"source": "mcp:mail"}
    assert (await lea.reader.did("/trust", **added)).startswith("/console/trust?undo=trust/")
    assert "mcp:mail" in (await lea.reader.page("/trust")).text


async def test_a_run_is_one_row_with_the_state_that_it_is_in(gate: Gate) -> None:
    """Its beginning stays in the ledger for good; what is shown is what is true of it now."""
    una, api = await signed_in(gate, "una"), await gate.person("una")
    made = (await api.post("/api/cron", json=ROW)).json()
    log, whose, now = SlotLog(gate.admin), Scope("vigil", "una"), datetime.now(UTC)
    begun = SlotEntry(row=made["id"], due_at=now, state="running", at=now, session="una:vigil:_c-1")
    later = replace(begun, due_at=now + timedelta(hours=1), session="una:vigil:_c-2")
    last = await log.last(whose, made["id"])
    for entry in (begun, replace(begun, state="failed", reason="too slow"), later):
        last = await log.append(whose, last, entry)

    async def states(path: str, **query: str) -> list[str]:
        page = (await una.client.get(f"/console{path}", params=query)).text
        table = page.rpartition("What became of it")[2]
        return re.findall(r'<td><span class="tag[^"]*">(\w+)</span>', table)

    assert await states("/timetable") == ["running", "failed"]
    assert await states("/timetable", state="running") == ["running"]
    assert await states("/timetable", state="failed") == ["failed"]
    assert await states(f"/timetable/{made['id']}") == ["running", "failed"]


async def test_the_timetable_runs_and_pauses_rows(gate: Gate) -> None:
    ann = await person(gate, "ann")
    made = (await ann.api.post("/api/cron", json=ROW)).json()
    page = await ann.reader.page("/timetable")
    assert "News" in page.text
    form = form_of(page, id=made["id"])
    assert await ann.reader.did("/timetable", **form | {"do": "run"}) == "/console/timetable"
    shown = (await ann.reader.page(f"/timetable/{made['id']}")).text
    assert "by hand" in shown
    assert "Read them" in shown
    chained = {"name": "next", "prompt": "p", "after": made["id"]}
    follower = (await ann.api.post("/api/cron", json=chained)).json()
    assert "as that one ends" in (await ann.reader.page("/timetable")).text
    shown = (await ann.reader.page(f"/timetable/{follower['id']}")).text
    assert "As a run of that row ends" in shown
    await ann.reader.did("/timetable", **form | {"do": "pause"})
    assert (await ann.reader.send("/timetable", **form | {"do": "pause"})).status_code == 412
    assert "paused" in (await ann.reader.page("/timetable")).text
    assert "running" in (await ann.reader.page("/timetable", state="running")).text
    refused = await ann.stranger.send("/timetable", **form | {"do": "run"})
    assert refused.status_code == 404
    assert (await ann.stranger.client.get(f"/console/timetable/{made['id']}")).status_code == 404


async def test_rows_are_made_edited_and_removed_by_forms(gate: Gate) -> None:
    """Days are ticked with a time, or one of three ways to say when is written; what a form leaves
    alone stays. Five instants are told."""
    abe = await person(gate, "abe")
    form = form_of(await abe.reader.page("/timetable"), do="make")
    form |= {"name": "Plants", "prompt": "Water them", "zone": "Europe/Vienna"}
    form["misfire"] = "latest"
    for wrong in ({"time": ""}, {"cron": "0 9 * * *", "interval_s": "60"}, {"at": "soon"},
                  {"interval_s": "x"}):  # fmt: skip
        assert (await abe.reader.send("/timetable", **form | wrong)).status_code == 422, wrong
    ticked = await abe.reader.did("/timetable", **form | {"name": "", "time": "08:30"})
    below = ticked.removeprefix("/console")
    row = (await abe.api.get(f"/api/cron{below[10:]}")).json()
    assert (row["name"], row["schedule"]["expression"]) == ("Water them", "30 8 * * 1-5")
    form_there = form_of(await abe.reader.page(below), do="change")
    assert {f"day_{day}" for day in range(1, 6)} <= form_there.keys()
    del form_there["day_3"]
    await abe.reader.did(below, **form_there | {"prompt": "Water them", "misfire": "latest"})
    row = (await abe.api.get(f"/api/cron{below[10:]}")).json()
    assert row["schedule"]["expression"] == "30 8 * * 1,2,4,5"
    where = await abe.reader.did("/timetable", **form | {"cron": "0 9 * * *"})
    below = where.removeprefix("/console")
    page = await abe.reader.page(below)
    assert len((await abe.api.get(f"/api/cron{below[10:]}")).json()["next_at"]) == 5
    form = form_of(page, do="change") | {"prompt": "Water them"}
    assert (form["cron"], form["zone"]) == ("0 9 * * *", "Europe/Vienna")
    edited = {"cron": "", "interval_s": "3600", "active_hours": "08:00-20:00"}
    assert await abe.reader.did(below, **form | edited | {"misfire": "skip"}) == where
    row = (await abe.api.get(f"/api/cron{below[10:]}")).json()
    assert (row["schedule"], row["misfire"], row["prompt"]) == (
        {"kind": "every", "interval_s": 3600}, "skip", "Water them",
    )  # fmt: skip
    late = form | edited | {"misfire": "all"}
    assert (await abe.reader.send(below, **late)).status_code == 412
    form = form_of(await abe.reader.page(below), do="remove")
    assert (await abe.stranger.send(below, **form)).status_code == 404
    assert await abe.reader.did(below, **form) == "/console/timetable"
    assert where not in (await abe.reader.page("/timetable")).links


async def test_a_row_that_was_removed_has_its_name_where_it_ran(gate: Gate) -> None:
    """In the week, in what became of it, and on Today: it stood there as eight hex digits."""
    gil = await person(gate, "gil")
    row = (await gil.api.post("/api/cron", json=ROW | {"name": "Water"})).json()
    now, whose, log = datetime.now(UTC), Scope("vigil", "gil"), SlotLog(gate.admin)
    ran = SlotEntry(row=row["id"], due_at=now, state="ran", at=now)
    await log.append(whose, await log.last(whose, row["id"]), ran)
    (await gil.api.delete(f"/api/cron/{row['id']}")).raise_for_status()
    (slot,) = (await gil.api.get("/api/slots")).json()["slots"]
    assert (slot["name"], slot["owner"], slot["agent_id"]) == ("Water", "gil", "vigil")
    shown = (await gil.reader.page("/timetable")).text
    assert (shown.count("Water"), row["id"][:8] in shown) == (2, False)
    assert "Water ran" in (await gil.reader.page()).text


async def test_tasks_and_goals_are_made_and_moved(gate: Gate) -> None:
    """As they were shown: who moved first wins, and whoever is late reads it again."""
    ben = await person(gate, "ben")
    made = {"title": "Water", "description": "all", "priority": "high"}
    task = await ben.reader.did("/tasks", do="make", **made)
    goal = await ben.reader.did("/goals", do="make", description="Keep the plants alive")
    for path, text, to in ((task, "Water", "backlog"), (goal, "plants alive", "paused")):
        below = path.removeprefix("/console")
        page = await ben.reader.page(below)
        assert text in page.text
        form = form_of(page, status=to)
        led = await ben.reader.did(below, **form)
        assert led.startswith(f"{path}?undo=")
        assert (await ben.reader.send(below, **form)).status_code == 412
        assert to in (await ben.reader.page(below)).text
        assert (await ben.stranger.client.get(path)).status_code == 404
        assert (await ben.stranger.send(below, **form)).status_code == 404
        board, id_ = below.rpartition("/")[::2]
        on_board = await ben.reader.page(board)
        assert path in on_board.links
        form = form_of(on_board, id=id_) | {"status": "ready" if to == "backlog" else "active"}
        assert (await ben.reader.did(board, **form)).startswith(f"/console{board}?undo=")
        assert (await ben.reader.send(board, **form)).status_code == 412
        assert (await ben.stranger.send(board, **form)).status_code == 404
    below = task.removeprefix("/console")
    await ben.reader.did(below, **form_of(await ben.reader.page(below), status="backlog"))
    await ben.reader.did(below, **form_of(await ben.reader.page(below), do="remove"))
    assert task not in (await ben.reader.page("/tasks")).links
    bad = await ben.reader.send("/tasks", do="make", **made | {"title": ""})
    assert bad.status_code == 422


async def test_what_can_be_undone_is_and_what_can_not_is_asked_about(gate: Gate) -> None:
    """Each form as a page has it: nothing is done before the answer, and an undo brings it back."""
    may, api = await signed_in(gate, "may"), await gate.person("may")
    client, made = may.client, {"title": "Rake", "description": "x", "priority": "low"}

    async def press(path: str, **fields: str) -> httpx2.Response:
        return await client.post(path, data=fields, headers=HERE)

    async def undone(location: str) -> None:
        (undo,) = [
            form
            for form in Shown((await client.get(location)).text).forms
            if form.get("sure") == "yes"
        ]
        answer = await press(undo.pop("action"), **undo)
        assert answer.status_code == 303, answer.text

    task = (await may.did("/tasks", do="make", **made)).rpartition("/")[2]
    form = form_of(await may.page(f"/tasks/{task}"), status="backlog")
    await undone((await press(f"/console/tasks/{task}", **form)).headers["location"])
    assert (await api.get(f"/api/tasks/{task}")).json()["status"] == "ready"
    await undone((await press("/console/pause", whose="mine", to="on")).headers["location"])
    assert (await api.get("/api/person")).json()["pause"] == ""
    row = {"name": "Rain", "prompt": "Look", "cron": "0 9 * * *"}
    id_ = (await api.post("/api/cron", json=row)).json()["id"]
    on_board = form_of(await may.page("/timetable"), id=id_)
    paused = await press("/console/timetable", **on_board | {"do": "pause"})
    await undone(paused.headers["location"])
    assert (await api.get(f"/api/cron/{id_}")).json()["is_enabled"]
    memory = await save(api, "Likes <b>rain</b>")
    root = await signed_in(gate, "root", is_admin=True)
    for path, fields, told in (
        (f"/tasks/{task}", {"do": "remove", "revision": "1"}, "Remove this task?"),
        (f"/memories/{memory}", {"agentId": "vigil"}, "Likes <b>rain</b>"),
        ("/memories", {"source": "notes", "agentId": "vigil"}, "All that came of 'notes'"),
        (f"/timetable/{id_}", {"do": "remove", "revision": "1"}, "'Rain' is run no more"),
        ("/timetable", {"do": "unlink", "link": "x"}, "End this link?"),
    ):
        asked = await press(f"/console{path}", **fields)
        assert asked.status_code == 200
        shown = Shown(asked.text)
        assert told in shown.text
        (sure,) = shown.forms
        assert fields.items() <= sure.items()
    switch = {"whose": "all", "to": "on"}
    asked = await root.client.post("/console/pause", data=switch, headers=HERE)
    assert "Pause everything?" in asked.text
    assert "Everything that agents do" not in (await may.page()).text
    assert (await api.get(f"/api/memories/{memory}")).status_code == 200
    assert (await api.get(f"/api/cron/{id_}")).status_code == 200


async def test_a_grant_is_ended(gate: Gate) -> None:
    cat = await person(gate, "cat")
    body = {"tool": "shell", "constraints": [{"kind": "argv", "argv": ["df"]}]}
    made = (await cat.api.post("/api/grants", json=body)).json()
    assert '"df"' in (await cat.reader.page("/grants")).text
    shelf = replace(SHELF, tools=(replace(SHELF.tools[0], description=HOSTILE),))
    await KeyValue(gate.admin, "TOOLS").put("files", encode(shelf))
    page = await cat.reader.page("/tools")
    assert page.strange() == []
    for text in ("files__read", "alert(1)", "files__write", "a tool is not what was approved"):
        assert text in page.text
    assert not [one for one in page.forms if "digest" in one]
    root = await signed_in(gate, "root", is_admin=True)
    form = form_of(await root.page("/tools"), tool="files__write")
    assert (await cat.reader.send("/tools", **form)).status_code == 403
    assert (await root.send("/tools", **form | {"digest": "3" * 64})).status_code == 409
    assert (await root.send("/tools", **form | {"tool": "files__x"})).status_code == 404
    await root.did("/tools", **form)
    (kept,) = (await gate.admin.read("KV_PINS", ["$KV.PINS.files"]))[-1:]
    assert decode_pins(kept.data).tools["files__write"].digest == "1" * 64
    assert (await cat.stranger.send("/grants", id=made["id"])).status_code == 404
    await cat.reader.did("/grants", id=made["id"])
    assert "Nothing is allowed" in (await cat.reader.page("/grants")).text
    assert "ended" in (await cat.reader.page("/grants", state="all")).text


async def test_memory_is_searched_forgotten_and_undone(gate: Gate) -> None:
    dan = await person(gate, "dan")
    tea = await save(dan.api, "Dan prefers green tea", source="notes")
    chess = await save(dan.api, "Dan plays chess", source="import-7")
    edge = {"from_id": tea, "to_id": chess, "relation": "part_of"}
    assert (await dan.api.post("/api/memories/associate", json=edge)).is_success
    found = await dan.reader.page("/memories", q="tea")
    assert "Dan prefers green tea" in found.text
    assert "found by" in found.text
    link = f"/memories/{tea}?agentId=vigil"
    assert f"/console{link}" in found.links
    shown = (await dan.reader.page(link)).text
    assert "notes" in shown
    assert "part of Dan plays chess" in shown
    assert (await dan.stranger.client.get(f"/console{link}")).status_code == 404
    refused = await dan.stranger.send(f"/memories/{tea}", agentId="vigil")
    assert refused.status_code == 404
    await dan.reader.did(f"/memories/{tea}", agentId="vigil")
    await dan.reader.did("/memories", source="import-7", agentId="vigil")
    left = (await dan.reader.page("/memories")).text
    assert "green tea" not in left
    assert "chess" not in left


async def test_cost_health_and_settings(gate: Gate) -> None:
    eli = await person(gate, "eli")
    names = {"agent": "vigil", "cause": "t1", "tier": "main", "model": "m"}
    spent = DayOfCosts(user="eli", rows=(CostRow(**names, calls=3, micro_usd=4_200_000),))
    bucket = KeyValue(await gate.stack.bus("cortex"), "BUDGETS")
    now = datetime.now(UTC)
    zone = "Pacific/Kiritimati" if now.hour >= 10 else "Pacific/Pago_Pago"  # of another date
    assert (await eli.api.patch("/api/person", json={"timezone": zone})).status_code == 200
    day = now.astimezone(zone_named(zone)).date()
    assert "Nothing was spent today." in (await eli.reader.page()).text
    unpriced = DayOfCosts(user="eli", rows=(CostRow(**names, calls=3, calls_unpriced=3),))
    await bucket.put(f"{day}.costs.{token_of('eli')}", msgspec.json.encode(unpriced))
    shown = (await eli.reader.page()).text
    assert "3 calls went to models without a price today." in " ".join(shown.split())
    assert "Nothing was spent" not in shown, "nobody knows that"
    await bucket.put(f"{day}.costs.{token_of('eli')}", msgspec.json.encode(spent))
    assert "$4.20" in (await eli.reader.page("/cost", by_model="1", by_day="1")).text
    assert (await eli.reader.page()).text.count("$4.20") == 3, "today, twice, and in seven days"
    account = Account(used=700, used_micro_usd=4_200_000, reserved=9)
    await bucket.put(f"{day}.owner.{token_of('eli')}", msgspec.json.encode(account))
    left = (await eli.api.get("/api/budget")).json()
    assert (left["tokens_used"], left["tokens_max"], left["micro_usd_max"]) == (700, 10**7, None)
    assert "700 of 10,000,000 tokens, 9 more set aside" in (await eli.reader.page("/cost")).text
    form = form_of(await eli.reader.page("/cost"), times="1")
    assert await eli.reader.did("/cost", **form) == "/console/cost?undo=cap/0"
    shown = await eli.reader.page("/cost")
    assert "700 of 20,000,000 tokens" in shown.text
    assert "may not be raised further today" in shown.text
    assert "of 10,000,000 tokens" in (await eli.stranger.page("/cost")).text
    assert "700 of" not in (await eli.stranger.page("/cost")).text
    assert "$4.20" not in (await eli.stranger.page("/cost")).text
    key = SessionKey("eli", "vigil", "t1")
    letter = DeadLetter(
        id="cortex-SESSIONS-9", service="cortex", stream="SESSIONS", subject=key.in_user, seq=9,
        cause=HOSTILE, at=datetime.now(UTC), data=b"{",
    )  # fmt: skip
    await gate.admin.publish(key.dead("cortex"), encode(letter))
    form = form_of(await eli.reader.page("/deliveries"), id=letter.id)
    assert (await eli.stranger.send("/deliveries", **form | {"do": "discard"})).status_code == 404
    await eli.reader.did("/deliveries", **form | {"do": "discard"})
    assert letter.id not in (await eli.reader.page("/deliveries")).text
    refused = await eli.reader.send("/health", do="reset", name="model:m")
    assert refused.status_code == 403
    assert "Who has a token" not in (await eli.reader.page("/settings")).text
    assert (await eli.api.get("/api/tokens")).status_code == 403
    token = await gate.token("root", is_admin=True, name=HOSTILE[:40])
    root = await signed_in(gate, "root", is_admin=True)
    shown = await root.page("/settings")
    assert "eli" in shown.text
    assert shown.strange() == []
    assert token not in str(shown.tags) + shown.text
    form = {"do": "make", "user": "zoe", "name": "phone", "days": "2"}
    assert (await eli.reader.send("/settings", **form)).status_code == 403
    for wrong in ({"user": "a b"}, {"days": "0"}, {"name": "a\u202e"}, {"user": ""}):
        assert (await root.send("/settings", **form | wrong)).status_code == 422, wrong
    made = await root.send("/settings", **form)
    assert "Their clocks go by UTC, until they set another zone" in made.text
    assert made.headers["cache-control"] == "no-store"
    (text,) = set(re.findall(r"pat_[\w-]{43}", made.text))
    zoe = await gate.http(text)
    assert (await zoe.get("/api/me")).json()["user"] == "zoe"
    assert text not in (await root.page("/settings")).text
    ends = form_of(await root.page("/settings"), token=token_id_of(text)[:12])
    assert (await eli.reader.send("/settings", **ends)).status_code == 403
    await root.did("/settings", **ends)
    await until(lambda: _refused(zoe), "the token ends")
    assert (await root.send("/settings", **ends)).status_code == 404
    health = (await root.page("/health")).text
    for text in ("cortex-wake", "SESSIONS", "config", "GiB free"):
        assert text in health
    assert "cortex-wake" not in (await eli.reader.page("/health")).text
    for path in ("/api/streams", "/api/doctor"):
        assert (await eli.api.get(path)).status_code == 403
    settings = form_of(await eli.reader.page("/settings"), quiet_hours="")
    assert settings["do"] == "set"
    await eli.reader.did("/settings", **settings | {"timezone": "Asia/Tokyo"})
    assert (await eli.reader.send("/settings", **settings)).status_code == 412
    kept = form_of(await eli.reader.page("/settings"), timezone="Asia/Tokyo")
    bad = await eli.reader.send("/settings", **kept | {"timezone": "Mars/Base"})
    assert bad.status_code == 422


async def _refused(api: httpx2.AsyncClient) -> bool:
    return (await api.get("/api/me")).status_code == 401


async def test_the_link_of_a_calendar_is_made_and_ended(gate: Gate) -> None:
    gus = await signed_in(gate, "gus")
    assert (await gus.send("/timetable", do="link", name="phone")).status_code == 200
    made = (await gus.send("/timetable", do="link", name="tablet")).text
    link = made.partition("http://")[2].partition("<")[0]
    assert link.startswith(f"127.0.0.1:{gate.port}/calendar/cal_")
    path = "/" + link.partition("/")[2]
    nobody = await gate.http()
    assert (await nobody.get(path)).status_code == 200
    while "tablet" not in (page := await gus.page("/timetable")).text:
        await asyncio.sleep(0)
    assert link not in page.text
    for id_ in [one["link"] for one in page.forms if "link" in one]:
        await gus.did("/timetable", do="unlink", link=id_)
    while (await nobody.get(path)).status_code != 404:
        await asyncio.sleep(0)


async def test_one_agent_is_paused_and_goes_on(gate: Gate) -> None:
    """L-5: for oneself by anybody, for all by an admin; the page says which holds."""
    gus, root = await signed_in(gate, "gus"), await signed_in(gate, "root2", is_admin=True)

    async def told(reader: Reader, text: str) -> None:
        async def is_there() -> bool:
            return text in (await reader.page("/autonomy")).text

        await until(is_there, text)

    sent = {"agent": "vigil", "whose": "mine"}
    assert "Pause vigil for me" in (await gus.page("/autonomy")).text
    assert "Pause vigil for all" not in (await gus.page("/autonomy")).text
    await gus.did("/autonomy", **sent, to="on")
    await told(gus, "Let vigil go on for me")
    entry = await KeyValue(gate.admin, "CONFIG").get(agent_pause.key_of("vigil", "gus"))
    assert entry is not None
    assert "Pause vigil for me" in (await root.page("/autonomy")).text
    await gus.did("/autonomy", **sent, to="off")
    await told(gus, "Pause vigil for me")
    assert (await gus.send("/autonomy", agent="vigil", whose="all", to="on")).status_code == 403
    await root.did("/autonomy", agent="vigil", whose="all", to="on")
    await told(gus, "paused for all since")
    await root.did("/autonomy", agent="vigil", whose="all", to="off")
    await told(root, "Pause vigil for all")


async def test_autonomy_is_an_admins(gate: Gate) -> None:
    fay = await signed_in(gate, "fay")
    assert not [one for one in (await fay.page("/autonomy")).forms if "interval" in one]
    assert (await fay.send("/autonomy", interval="60", revision="0")).status_code == 403
    root = await signed_in(gate, "root", is_admin=True)
    (form,) = [one for one in (await root.page("/autonomy")).forms if "interval" in one]
    sent = {"revision": form["revision"], "interval": "7200"}
    await root.did("/autonomy", **sent)
    assert "7200" in (await root.page("/autonomy")).text
    assert (await root.send("/autonomy", **sent)).status_code == 412


async def test_a_line_of_a_megabyte_breaks_no_page(gate: Gate) -> None:
    """Each field refuses it and says which one is too long, or shows of it what a page holds."""
    hal, line = await person(gate, "hal"), "<b>" + "x" * 1_000_000
    key = SessionKey("hal", "vigil", "t1")
    sent = {
        "/api/tasks": {"title": "t", "description": line},
        "/api/goals": {"description": line},
        "/api/cron": ROW | {"prompt": line},
        "/api/memories": {"content": line},
        "/api/grants": {"tool": "x", "why": line,
                        "constraints": [{"kind": "equal", "field": "f", "value": line}]},
        f"/api/sessions/{key}/messages": {"text": line},
    }  # fmt: skip
    for path, body in sent.items():
        answer = await hal.api.post(path, json=body)
        assert answer.status_code in (413, 422), (path, answer.status_code)
    # What services write may be as long as a record.
    await gate.say(str(key), line[:900_000], effect_id="7" * 32)
    asked = approvals.request(key, "6" * 32, reason=line[:100_000], input={"x": line[:600_000]})
    await approvals.list_on_board(gate, asked, 1)
    tool = replace(SHELF.tools[0], description=line[:900_000])
    await KeyValue(gate.admin, "TOOLS").put("long", encode(replace(SHELF, tools=(tool,))))
    for path in (*pages(), f"/conversations/{key}", f"/conversations/{key}/timeline"):
        page = await hal.reader.page(path)
        assert page.strange() == [], path
        assert len(page.text) < 200_000, path
    await KeyValue(gate.admin, "TOOLS").delete("long")


async def test_what_others_wrote_is_text_on_each_page(gate: Gate) -> None:
    """In every field: nothing of it is markup, runs, ends a field, or turns a line around."""
    gus = await person(gate, "gus")
    api = gus.api
    row = (await api.post("/api/cron", json=ROW | {"name": HOSTILE[:60], "prompt": HOSTILE})).json()
    task = (
        await api.post("/api/tasks", json={"title": HOSTILE[:60], "description": HOSTILE})
    ).json()
    goal = (await api.post("/api/goals", json={"description": HOSTILE})).json()
    memory = await save(api, HOSTILE.replace("\x1b", ""), source="notes")
    grant = {"tool": "x", "constraints": [{"kind": "equal", "field": "f", "value": HOSTILE}]}
    await api.post("/api/grants", json=grant | {"why": HOSTILE})
    action = action_of(id="9" * 32, owner="gus", agent="vigil", description=HOSTILE)
    board = KeptBoard(gate.admin, ACTIONS)
    await board.create(
        lambda _: action, Scope("vigil", "gus"), Change(by="vigil"), datetime.now(UTC)
    )
    key = SessionKey("gus", "vigil", "t1")
    await api.post(f"/api/sessions/{key}/messages", json={"text": HOSTILE})
    said = await gate.say(str(key), HOSTILE, effect_id="8" * 32, tag=HOSTILE[:40])
    talk = f"/conversations/{key}"
    below = [f"/timetable/{row['id']}", f"/tasks/{task['id']}", f"/goals/{goal['id']}"]
    below += [f"/memories/{memory}", talk, f"{talk}/timeline", f"{talk}/records/{said.seq}"]
    below += ["/memories?q=alert", f"/why?id={'8' * 32}"]
    seen, links = "", set[str]()
    for path in (*pages(), *below):
        page = await gus.reader.page(path)
        assert page.strange() == [], path
        assert not set(page.told) & {"\x1b", "\u202e"}, path
        seen += page.text
        links |= {link for link in page.links if link.startswith("/console")}
    assert seen.count("alert(1)") >= 12
    for link in links:
        answer = await gus.reader.client.get(link)
        assert answer.status_code == 200, (link, answer.text)
