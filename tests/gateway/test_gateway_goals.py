"""/api/goals, /api/preferences, /api/actions: whose they are, and what may become of them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.support.gateway import Gate, assert_problem
from tests.support.goal_records import action_of
from vigil.actions import log
from vigil.board.kept import KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.board.kinds.goal import GOALS
from vigil.board.kinds.preference import PREFERENCES
from vigil.contracts import Change
from vigil.subjects import Scope

GOAL: Final = "/api/goals"
LIKED: Final = "/api/preferences"
DONE: Final = "/api/actions"
BODY: Final[dict[str, Any]] = {"description": "Keep the inbox clean", "check_interval_secs": 3600}
SHORT: Final = {"category": "communication", "key": "answers", "value": "short"}
SOON: Final = (datetime.now(UTC) + timedelta(days=400)).isoformat()


# ---------------------------------------------------------------- goals


async def test_a_goal_is_its_owners_and_goes_its_way(gate: Gate) -> None:
    """G-2, L-15: standing or timed, paused and resumed, put away; an admin may end it."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    made = await ann.post(GOAL, json=BODY | {"userId": "ann", "why": "it is full"})
    assert made.status_code == 201, made.text
    one = made.json()
    assert (one["kind"], one["status"], one["origin"]) == ("standing", "active", "explicit")
    assert one["next_check_at"] == one["created_at"], "it was never looked at"
    assert one["moves"] == ["paused", "archived"]
    assert made.headers["etag"] == f'"{one["revision"]}"'
    path = f"{GOAL}/{one['id']}"
    for refused in (
        await bob.get(path),
        await bob.patch(path, json={"status": "paused"}),
        await bob.delete(path),
        await bob.post(f"{path}/parts", json={"parts": []}),
    ):
        assert_problem(refused, 404)
    assert (await bob.get(GOAL)).json() == {"goals": []}
    assert_problem(await bob.post(GOAL, json=BODY | {"userId": "ann"}), 403, "userId")
    assert_problem(await bob.post(GOAL, json=BODY | {"parent": one["id"]}), 422, "parent")
    yesterday = {"If-Match": f'"{one["revision"] - 1}"'}
    assert_problem(await ann.patch(path, json={"priority": 5}, headers=yesterday), 412, "If-Match")
    refused = assert_problem(await ann.patch(path, json={"status": "completed"}), 422, "status")
    assert "standing goal can't go from active to completed" in refused["detail"]
    admin = await gate.person("root", is_admin=True)
    assert_problem(await admin.patch(path, json={"strategy": "x"}), 403, "status")
    paused = (await admin.patch(path, json={"status": "paused", "why": "a holiday"})).json()
    assert (paused["next_check_at"], paused["moves"]) == (None, ["active", "archived"])
    assert (await ann.patch(path, json={"status": "active"})).json()["status"] == "active"
    timed = (await ann.patch(path, json={"deadline_at": SOON})).json()
    assert (timed["kind"], "completed" in timed["moves"]) == ("timed", True)
    away = (await ann.delete(path)).json()
    assert [(step["status"], step["by"]) for step in away["history"]] == [
        ("active", "ann"),
        ("paused", "root"),
        ("active", "ann"),
        ("active", "ann"),
        ("archived", "ann"),
    ]
    assert (await ann.get(GOAL)).json() == {"goals": []}
    assert [g["id"] for g in (await ann.get(f"{GOAL}?status=archived")).json()["goals"]] == [
        one["id"]
    ]
    story = (await ann.get(f"/api/why/{one['id']}")).json()
    assert (story["kind"], story["summary"]) == ("goal", "The goal is put away.")
    assert story["steps"][0]["text"] == "You set the goal “Keep the inbox clean”: “it is full”"
    assert (
        story["steps"][1]["text"] == "root made the goal “Keep the inbox clean” paused: “a holiday”"
    )


async def test_parts_find_room_together_and_none_is_a_part_of_itself(gate: Gate) -> None:
    """G-2, L-16: 50 are active, whoever writes at the same moment."""
    ann = await gate.person("ann")
    whole = (await ann.post(GOAL, json=BODY | {"deadline_at": SOON, "priority": 4})).json()
    path = f"{GOAL}/{whole['id']}"
    parts = {"parts": [{"description": "Tests"}, {"description": "Notes"}]}
    split = await ann.post(f"{path}/parts", json=parts)
    assert split.status_code == 201, split.text
    tests, notes = split.json()["goals"]
    for one in (tests, notes):
        assert (one["parent"], one["priority"], one["deadline_at"]) == (
            whole["id"],
            4,
            whole["deadline_at"],
        )
    below = {"parent": notes["id"]}
    assert (await ann.patch(f"{GOAL}/{tests['id']}", json=below)).status_code == 200
    for id_, above in (
        (whole["id"], tests["id"]),
        (notes["id"], notes["id"]),
        (notes["id"], tests["id"]),
    ):
        refused = assert_problem(
            await ann.patch(f"{GOAL}/{id_}", json={"parent": above}), 422, "parent"
        )
        assert "a part of itself" in refused["detail"]
    board, now = KeptBoard(gate.admin, GOALS), datetime.now(UTC)
    found = await board.find([Scope("*", "ann")], whole["id"])
    assert found is not None
    many = (replace(found.entity, id=f"{n:032x}", parent="") for n in range(46))
    await asyncio.gather(*(board.replace(0, one, Change(by="ann"), now) for one in many))
    full = assert_problem(await ann.post(f"{path}/parts", json=parts), 422, "goal")
    assert "ann has 49 of 50: there is no room for 2" in full["detail"]
    at_once = await asyncio.gather(*(ann.post(GOAL, json=BODY) for _ in range(4)))
    assert sorted(answer.status_code for answer in at_once) == [201, 422, 422, 422]
    last = assert_problem(await ann.post(GOAL, json=BODY), 422, "goal")
    assert "ann has 50 already; end one that isn't needed" in last["detail"]
    assert (await ann.patch(path, json={"status": "paused"})).status_code == 200
    assert (await ann.post(GOAL, json=BODY)).status_code == 201
    assert_problem(await ann.patch(path, json={"status": "active"}), 422, "goal")


@pytest.mark.parametrize(
    ("path", "body", "status", "field"),
    [
        (GOAL, BODY | {"description": "x" * 1_000_000}, 413, "body"),
        (GOAL, BODY | {"description": "x" * 2_001}, 422, "description"),
        (GOAL, BODY | {"deadline_at": "0000-01-01T00:00:00Z"}, 422, None),
        (GOAL, BODY | {"deadline_at": "0001-01-01T00:00:00Z"}, 422, "deadline_at"),
        (GOAL, BODY | {"deadline_at": "9999-12-31T23:59:59-12:00"}, 422, None),
        (GOAL, BODY | {"deadline_at": "9999-01-01T00:00:00Z"}, 422, "deadline_at"),
        (GOAL, BODY | {"deadline_at": "2030-01-01T00:00:00"}, 422, None),
        (GOAL, BODY | {"check_interval_secs": 59}, 422, "check_interval_secs"),
        (GOAL, BODY | {"priority": 6}, 422, "priority"),
        (GOAL, BODY | {"parent": "../x"}, 422, "parent"),
        (GOAL, BODY | {"is_tainted": False}, 422, None),
        (GOAL, BODY | {"origin": "self"}, 422, None),
        (LIKED, SHORT | {"key": "An swers"}, 422, "key"),
        (LIKED, SHORT | {"key": "a>b"}, 422, "key"),
        (LIKED, SHORT | {"value": None}, 422, "value"),
        (LIKED, SHORT | {"value": "x" * 1_000_000}, 413, "body"),
        (LIKED, SHORT | {"value": ["x" * 1_000]}, 422, "value"),
        (LIKED, SHORT | {"category": "music"}, 422, "category"),
        (LIKED, SHORT | {"confidence": 1}, 422, None),
        (LIKED, SHORT | {"learned_from": "x" * 501}, 422, "learned_from"),
    ],
)
async def test_bad_input_names_field_and_reason(
    gate: Gate, path: str, body: dict[str, Any], status: int, field: str | None
) -> None:
    """X-6: nothing is stored."""
    ann = await gate.person("ann")
    problem = assert_problem(await ann.post(path, json=body), status)
    assert field is None or problem["field"] == field
    assert list((await ann.get(path)).json().values()) == [[]]


# ---------------------------------------------------------------- preferences


async def test_what_a_person_says_is_believed_and_may_be_taken_back(gate: Gate) -> None:
    """G-3: one for each key; a correction replaces it, and stands until they say otherwise."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    made = await ann.post(LIKED, json=SHORT | {"learned_from": "I read on a phone"})
    assert made.status_code == 201, made.text
    one = made.json()
    path = f"{LIKED}/{one['id']}"
    assert (one["confidence"], one["level"]) == (0.9, "conviction")
    assert [lesson["how"] for lesson in one["learned_from"]] == ["said"]
    assert (await bob.get(LIKED)).json() == {"preferences": []}
    assert_problem(await bob.get(path), 404)
    assert_problem(await bob.patch(path, json={"is_confirmed": True}), 404)
    theirs = (await bob.post(LIKED, json=SHORT)).json()
    assert theirs["id"] != one["id"], "keys are each owner's own"
    again = await ann.post(LIKED, json=SHORT)
    assert (again.status_code, again.json()["confidence"]) == (200, 0.925)
    sure = (await ann.patch(path, json={"is_confirmed": True, "category": "code"})).json()
    assert (sure["confidence"], sure["category"]) == (0.94375, "code")
    corrected = (await ann.post(LIKED, json=SHORT | {"is_negative": True})).json()
    assert (corrected["id"], corrected["confidence"]) == (one["id"], 0.9)
    assert corrected["is_negative"]
    assert_problem(
        await ann.patch(
            path, json={"is_confirmed": True}, headers={"If-Match": f'"{one["revision"]}"'}
        ),
        412,
    )
    admin = await gate.person("root", is_admin=True)
    assert_problem(await admin.patch(path, json={"is_confirmed": True}), 403)
    assert (await ann.delete(path)).json()["is_removed"]
    assert (await ann.get(LIKED)).json() == {"preferences": []}
    assert_problem(await ann.delete(path), 409)
    new = await ann.post(LIKED, json=SHORT | {"value": {"sentences": 3}})
    assert (new.status_code, new.json()["value"]) == (200, {"sentences": 3})
    assert [step["is_negative"] for step in new.json()["history"]] == [
        False,
        False,
        False,
        True,
        True,
        False,
    ]
    story = (await ann.get(f"/api/why/{one['id']}")).json()
    assert story["steps"][0]["text"] == (
        'You noted for answers: “"short"”, as sure as 0.9; from “I read on a phone”'
    )


async def test_five_hundred_are_known_and_what_is_forgotten_makes_room(gate: Gate) -> None:
    """L-16"""
    ann = await gate.person("ann")
    one = (await ann.post(LIKED, json=SHORT)).json()
    board, now = KeptBoard(gate.admin, PREFERENCES), datetime.now(UTC)
    found = await board.find([Scope("*", "ann")], one["id"])
    assert found is not None
    many = [replace(found.entity, id=f"{n:032x}", key=f"k{n}") for n in range(499)]
    await asyncio.gather(*(board.replace(0, each, Change(by="ann"), now) for each in many))
    refused = assert_problem(await ann.post(LIKED, json=SHORT | {"key": "more"}), 422, "preference")
    assert "ann has 500 already" in refused["detail"]
    assert (await ann.post(LIKED, json=SHORT)).status_code == 200
    old = replace(many[0], confidence=0.3, last_confirmed_at=now - timedelta(days=181))
    kept = await board.find([Scope("*", "ann")], many[0].id)
    assert kept is not None
    await board.replace(kept.number, old, Change(by="ann"), now)
    assert (await ann.post(LIKED, json=SHORT | {"key": "more"})).status_code == 201


# ---------------------------------------------------------------- actions


async def test_the_newest_actions_are_kept_and_a_person_judges_them(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G-5: bounded in number; a repeat of one is stored once."""
    monkeypatch.setattr(log, "KEPT_MAX", 5)
    ann, board = await gate.person("ann"), KeptBoard(gate.admin, ACTIONS)
    scope, by, at = Scope("vigil", "ann"), Change(by="vigil"), datetime.now(UTC)
    for number in (*range(12), 11):
        one = action_of(id=f"{number:032x}", created_at=at + timedelta(seconds=number))
        await board.create(lambda _, one=one: one, scope, by, at)  # type: ignore[misc]
    listed = (await ann.get(DONE)).json()["actions"]
    assert [int(each["id"], 16) for each in listed] == [11, 10, 9, 8, 7]
    assert [each["number"] for each in listed] == [12, 11, 10, 9, 8]
    path = f"{DONE}/{listed[0]['id']}"
    assert_problem(await ann.get(f"{DONE}/{0:032x}"), 404)
    judged = (await ann.patch(path, json={"is_good": False, "text": "ask first"})).json()
    assert (judged["feedback"]["is_good"], judged["feedback"]["by"]) == (False, "ann")
    assert (await ann.get(path)).json() == judged
    assert_problem(await ann.patch(path, json={"is_good": True, "text": "x" * 1_001}), 422, "text")
    assert_problem(await (await gate.person("bob")).get(path), 404)
    admin = await gate.person("root", is_admin=True)
    assert_problem(await admin.patch(path, json={"is_good": True}), 403)
    assert (await admin.get(f"{DONE}?user=ann&limit=1")).json()["actions"][0] == judged
    found = await board.find([scope], listed[0]["id"])
    assert found is not None
    assert len(await board.history(found)) == 2, "what stood there before is another's"
