"""/api/cron: whose it is, and what is refused (SPEC J-2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.support.delivery import Conversation, send_of
from tests.support.gateway import Gate, running_gateway
from vigil.board.kept import ROWS, KeptBoard
from vigil.board.kinds.task import TASKS
from vigil.contracts import Cause, Change, Receipt, SlotEntry, decode_turn, encode
from vigil.subjects import Scope, SessionKey
from vigil.timetable.ledger import RUNNING_MAX, ended
from vigil.timetable.log import Placed, SlotLog

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH: Final = "/api/cron"
ROW: Final[dict[str, Any]] = {"name": "briefing", "prompt": "Look", "interval_s": 3600}
FOLLOWS: Final = {"interval_s": None, "after": "1f" * 16}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gate]:
    home: Path = tmp_path_factory.mktemp("home")
    async with running_gateway(home) as running:
        yield running


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"interval_s": 0}, "interval_s"),
        ({"interval_s": None}, "cron"),
        ({"cron": "0 9 * * *"}, "cron"),
        ({"interval_s": None, "cron": "nonsense"}, "expression"),
        ({"interval_s": None, "cron": "0 9 31 2 *"}, "expression"),
        ({"interval_s": None, "cron": "0 9 * * *", "zone": "Mars/Phobos"}, "zone"),
        ({"zone": "../etc/passwd"}, "zone"),
        ({"zone": "europe/berlin"}, "did you mean Europe/Berlin?"),
        ({"zone": "localtime"}, "zone"),
        ({"interval_s": None, "cron": "*/90 * * * *"}, "--every 90m"),
        ({"interval_s": None, "at": "tomorrow"}, "at"),
        ({"interval_s": None, "at": "2020-01-01T09:00"}, "at"),
        ({"interval_s": None, "at": "0001-01-01T00:00", "zone": "Asia/Tokyo"}, "at"),
        ({"active_hours": "9 to 5"}, "active_hours"),
        ({"active_hours": "09:00Z-17:00Z"}, "active_hours"),
        ({"active_hours": "09:00-17:00+02:00"}, "active_hours"),
        ({"interval_s": None, "at": "9999-12-31T23:59:59-14:00"}, "at"),
        ({"interval_s": None, "at": "0001-01-01T00:00:00+14:00"}, "at"),
        ({"interval_s": None, "at": "2020-01-01T00:00:00Z"}, "at"),
        ({"target": "bob:vigil:t1"}, "target"),
        ({"target": "ann:vigil:_cron-1f"}, "target"),
        ({"target": "pigeon"}, "target"),
        ({"model": "pigeon"}, "model"),
        ({"daily_tokens": -1}, "daily_tokens"),
        ({"after": "1f" * 16}, "cron"),
        (FOLLOWS, "after"),
        ({"interval_s": None, "after": "../x"}, "after"),
        (
            {"interval_s": None, "after": "1f" * 16, "watch": {"kind": "files", "glob": "*"}},
            "watch",
        ),
        ({"soonest_s": 60, "latest_s": 120}, "interval_s"),
        ({"latest_s": 10**9}, "latest_s"),
        ({"prompt": "", "skill": "no-such"}, "skill"),
        ({"facts": {"ci": "text"}}, "facts.ci"),
        ({"facts": {"C I": "yes_no"}}, "facts"),
        ({"name": " "}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"name": "n" * 101}, "name"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": "p" * 8001}, "prompt"),
        ({"timeout_s": 1}, "timeout_s"),
        ({"jitter_s": -1}, "jitter_s"),
        ({"grace_s": 10**9}, "grace_s"),
        ({"misfire": "whenever"}, "misfire"),
    ],
)
async def test_bad_input_is_refused_by_name(gate: Gate, change: dict[str, Any], field: str) -> None:
    ann = await gate.person("ann")
    body = {name: value for name, value in (ROW | change).items() if value is not None}
    answer = await ann.post(PATH, json=body)
    assert (answer.status_code, field in answer.json()["detail"]) == (422, True), answer.text


async def test_a_prompt_of_a_megabyte_is_too_large(gate: Gate) -> None:
    ann = await gate.person("ann")
    assert (await ann.post(PATH, json=ROW | {"prompt": "p" * 2**20})).status_code in (413, 422)


async def test_the_names_of_the_specification_are_taken_too(gate: Gate) -> None:
    """SPEC P-5: {id, prompt, cron? + timezone? | interval_secs?, delivery_target, …, userId}."""
    ida = await gate.person("ida")
    body = {
        "id": "briefing", "prompt": "What is new?", "cron": "0 9 * * *", "timezone": "Asia/Tokyo",
        "delivery_target": "ida:vigil:news", "active_hours": "08:00-18:00", "run_once": True,
        "stateful": True, "misfire": "skip", "userId": "ida", "agentId": "vigil",
    }  # fmt: skip
    made = await ida.post(PATH, json=body)
    assert made.status_code == 201, made.text
    row = made.json()
    assert (row["name"], row["zone"], row["target"]) == ("briefing", "Asia/Tokyo", "ida:vigil:news")
    assert (row["runs_once"], row["is_stateful"], row["owner"]) == (True, True, "ida")
    change = {"interval_secs": 7200, "stateful": False, "run_once": False}
    changed = (await ida.patch(f"{PATH}/{row['id']}", json=change)).json()
    assert (changed["when"], changed["is_stateful"]) == ("every 2 h", False)
    for wrong, status, field in (
        ({"zone": "UTC"}, 422, "timezone"),
        ({"userId": "jo"}, 403, "userId"),
        ({"time_zone": "UTC"}, 422, "time_zone"),
    ):
        refused = await ida.post(PATH, json=body | {"id": "other"} | wrong)
        assert (refused.status_code, refused.json().get("field")) == (status, field), refused.text
    goal = {
        "description": "Keep up", "priority": 2, "check_interval_secs": 86_400,
        "success_criteria": "It is so", "userId": "ida", "agentId": "vigil",
    }  # fmt: skip
    assert (await ida.post("/api/goals", json=goal)).status_code == 201
    job = {"goal": "Water the plants", "input": "well", "userId": "ida"}
    assert (await ida.post("/api/jobs", json=job)).status_code == 202


async def test_what_is_odd_but_right_is_taken(gate: Gate) -> None:
    """A day that only some years have, an hour that one day lacks, a name with what it likes."""
    bea = await gate.person("bea")
    odd = {"name": "n/a 🦊", "prompt": "Look", "zone": "Europe/Berlin"}
    leap = (await bea.post(PATH, json=odd | {"cron": "0 9 29 2 *"})).json()
    assert leap["next_at"][0].startswith("2028-02-29T08:00")
    night = await bea.post(PATH, json=odd | {"cron": "30 2 * * *", "name": "night"})
    assert night.status_code == 201
    same = await bea.post(PATH, json=odd | {"interval_s": 60})
    assert (same.status_code, same.json()["field"]) == (422, "name")
    renamed = await bea.patch(f"{PATH}/{leap['id']}", json={"name": "night"})
    assert (renamed.status_code, renamed.json()["field"]) == (422, "name")


async def test_a_time_without_an_offset_is_on_the_clocks_of_the_zone_or_of_the_person(
    gate: Gate,
) -> None:
    """Issue 32: it was UTC, even beside a zone."""
    ivy = await gate.person("ivy")
    await ivy.patch("/api/person", json={"timezone": "Asia/Tokyo"})
    year = datetime.now(UTC).year + 1
    nine = f"{year}-12-01T09:00"
    wanted = {"name": "a", "prompt": "Look", "at": nine, "zone": "America/New_York"}
    there = (await ivy.post(PATH, json=wanted)).json()
    assert there["next_at"] == [f"{year}-12-01T14:00:00Z"]
    assert there["when"] == f"once, at {year}-12-01 09:00:00 (America/New_York)"
    here = (await ivy.post(PATH, json={"name": "b", "prompt": "Look", "at": nine})).json()
    assert here["next_at"] == [f"{year}-12-01T00:00:00Z"]
    exact = {"name": "c", "prompt": "Look", "at": f"{nine}+01:00"}
    assert (await ivy.post(PATH, json=exact)).json()["next_at"] == [f"{year}-12-01T08:00:00Z"]
    moved = await ivy.patch(f"{PATH}/{there['id']}", json={"zone": "Europe/Berlin"})
    assert moved.json()["next_at"] == [f"{year}-12-01T08:00:00Z"]
    later = await ivy.patch(f"{PATH}/{there['id']}", json={"at": f"{year}-12-01T10:30"})
    assert later.json()["next_at"] == [f"{year}-12-01T09:30:00Z"]


async def test_there_are_at_most_100(gate: Gate) -> None:
    cat = await gate.person("cat")
    for number in range(100):
        answer = await cat.post(PATH, json=ROW | {"name": f"row {number}"})
        assert answer.status_code == 201, answer.text
    assert (await cat.post(PATH, json=ROW | {"name": "one more"})).status_code == 422
    first = (await cat.get(PATH)).json()["rows"][0]
    assert (await cat.delete(f"{PATH}/{first['id']}")).status_code == 200
    assert (await cat.post(PATH, json=ROW | {"name": "one more"})).status_code == 201


async def test_of_rows_that_want_one_name_at_the_same_moment_one_has_it(gate: Gate) -> None:
    """Whether the name is free is looked at as it is stored, whoever else writes then."""
    gus = await gate.person("gus")
    made = [(await gus.post(PATH, json=ROW | {"name": f"row {n}"})).json() for n in range(5)]
    renaming = [gus.patch(f"{PATH}/{one['id']}", json={"name": "news"}) for one in made]
    making = [gus.post(PATH, json=ROW | {"name": "news"}) for _ in range(2)]
    answers = await asyncio.gather(*renaming, *making)
    kept = [one for one in answers if one.is_success]
    assert [one.json()["name"] for one in kept] == ["news"]
    refused = [one for one in answers if not one.is_success]
    assert {(one.status_code, "another row" in one.json()["detail"]) for one in refused} == {
        (422, True)
    }
    names = [one["name"] for one in (await gus.get(PATH)).json()["rows"]]
    assert names.count("news") == 1

    # One that is removed leaves its name, and one that keeps its name needs no leave of others.
    removed = await gus.delete(f"{PATH}/{kept[0].json()['id']}")
    again = await gus.post(PATH, json=ROW | {"name": "news"})
    paused = await gus.patch(f"{PATH}/{again.json()['id']}", json={"is_enabled": False})
    assert (removed.status_code, again.status_code, paused.status_code) == (200, 201, 200)


async def test_by_hand_no_more_run_at_a_time_than_by_the_schedule(gate: Gate) -> None:
    """Each that runs is in every entry of the ledger until it ends, also if all are ordered at
    once: none is refused for that others came between."""
    fay = await gate.person("fay")
    row = (await fay.post(PATH, json=ROW | {"may_overlap": True})).json()
    path, count = f"{PATH}/{row['id']}/runs", RUNNING_MAX + 1
    answers = await asyncio.gather(*(fay.post(path) for _ in range(count)))
    assert sorted(one.status_code for one in answers) == [202] * RUNNING_MAX + [409]
    (refused,) = (one.json()["detail"] for one in answers if one.status_code == 409)
    assert refused == "a run of it is still going on"


async def test_what_became_of_a_result_is_told_and_what_reached_nobody_is_wrong(
    gate: Gate,
) -> None:
    """J-4: execution and delivery are two things, and each is seen."""
    gil = await gate.person("gil")
    made = (await gil.post(PATH, json=ROW)).json()
    log, bus, whose = SlotLog(gate.admin), gate.admin, Scope("vigil", "gil")
    home, now = SessionKey("gil", "vigil", "main"), datetime.now(UTC)
    begun = SlotEntry(row=made["id"], due_at=now, state="running", at=now, session="gil:vigil:_c-1")
    last = await log.append(whose, Placed(), begun)
    (run,) = last.ledger.running
    end = ended(made["id"], run, now, delivery="told", told="e" * 32, told_to=str(home))
    await log.append(whose, last, end)

    async def arrival() -> str:
        answer = await gil.get("/api/slots", params={"row": made["id"]})
        newest = answer.json()["slots"][0]
        assert (newest["state"], newest["delivery"]) == ("ran", "told")
        return str(newest["arrival"])

    async def untold() -> int:
        found = (await gil.get("/api/slots/findings")).json()["findings"]
        return [one["what"] for one in found].count("untold")

    assert await arrival() == ""  # nothing of it is kept
    seq = (await bus.publish(home.in_event(f"told.{end.told}"), b"{}")).seq
    assert await arrival() == "waiting"
    send = send_of(home, 1, fence=0, channel="mail")
    decided = decode_turn(Conversation(bus, home).encoded(send))
    turn = msgspec.structs.replace(decided, event=Cause(id="e", seq=seq, type="told"))
    queued = msgspec.structs.replace(turn, outcome="queued", effects=())
    await bus.publish(home.turn_for("s"), encode(queued))
    assert await arrival() == "waiting"
    await bus.publish(home.turn_for("s"), encode(turn))
    await bus.publish(home.out_said(send.id), b"{}")
    assert (await arrival(), await untold()) == ("said", 0)
    receipt = Receipt(effect_id=send.id, session_key=str(home), outcome="failed", at=now)
    await bus.publish(home.receipt(send.id), encode(receipt))
    assert (await arrival(), await untold()) == ("failed", 1)


async def test_the_ledger_is_read_by_pages(gate: Gate) -> None:
    """Of several rows together, the newest first; what is told meanwhile changes no page behind."""
    ida = await gate.person("ida")
    log, whose, now = SlotLog(gate.admin), Scope("vigil", "ida"), datetime.now(UTC)
    rows = [(await ida.post(PATH, json=ROW | {"name": name})).json()["id"] for name in ("a", "b")]
    last = dict.fromkeys(rows, Placed())

    async def skip(number: int) -> None:
        row, at = rows[number % 2], now + timedelta(seconds=number)
        entry = SlotEntry(row=row, due_at=at, state="skipped", reason="paused", at=at)
        last[row] = await log.append(whose, last[row], entry)

    async def page(**wanted: Any) -> dict[str, Any]:
        answer = await ida.get("/api/slots", params=wanted)
        assert answer.status_code == 200, answer.text
        return answer.json()  # type: ignore[no-any-return]

    for number in range(5):
        await skip(number)
    whole = await page()
    assert "next_before" not in whole
    assert len(whole["slots"]) == 5
    first = await page(limit=2)
    await skip(5)
    second = await page(limit=2, before=first["next_before"], state="skipped")
    third = await page(limit=2, before=second["next_before"])
    assert [*first["slots"], *second["slots"], *third["slots"]] == whole["slots"]
    assert "next_before" not in third
    assert (await page(before=1))["slots"] == []


async def test_nobody_reaches_anothers(gate: Gate) -> None:
    """But for an admin, who may pause and remove."""
    dee, eve = await gate.person("dee"), await gate.person("eve")
    admin = await gate.person("root", is_admin=True)
    row = (await dee.post(PATH, json=ROW)).json()
    url = f"{PATH}/{row['id']}"
    for answer in (
        await eve.get(url),
        await eve.patch(url, json={"is_enabled": False}),
        await eve.delete(url),
        await eve.post(f"{url}/runs"),
        await eve.get("/api/slots", params={"row": row["id"]}),
    ):
        assert answer.status_code == 404
    assert (await admin.post(f"{url}/runs")).status_code == 403
    assert (await admin.patch(url, json={"prompt": "Do mine"})).status_code == 403
    assert (await admin.patch(url, json={"is_enabled": False})).status_code == 200
    assert (await dee.post(f"{url}/runs")).status_code == 202
    assert (await dee.post(f"{url}/runs")).status_code == 409
    assert (await admin.delete(url)).json()["is_removed"]


async def test_an_admins_own_is_found_before_another_of_the_same_id(gate: Gate) -> None:
    """What one took along is imported for somebody else in the same home, ids and all."""
    root, now = await gate.person("root", is_admin=True), datetime.now(UTC)
    mine = (await root.post(PATH, json=ROW | {"name": "mine"})).json()
    task = (await root.post("/api/tasks", json={"title": "Weed"})).json()
    for kind, id_ in ((ROWS, mine["id"]), (TASKS, task["id"])):
        board: KeptBoard[Any] = KeptBoard(gate.admin, kind)
        found = await board.find([Scope("vigil", "root")], id_)
        assert found is not None
        copy = replace(found.entity, owner="tim")
        await board.replace(0, copy, Change(by="tim", why="imported"), now)
    one = f"{PATH}/{mine['id']}"
    assert (await root.get(one)).json()["owner"] == "root"
    assert (await root.patch(one, json={"prompt": "Look twice"})).status_code == 200
    assert (await root.post(f"{one}/runs")).status_code == 202
    assert "You put the task" in (await root.get(f"/api/why/{task['id']}")).text
    tim = await gate.person("tim")
    theirs = (await tim.get(one)).json()
    assert (theirs["owner"], theirs["prompt"]) == ("tim", ROW["prompt"])
