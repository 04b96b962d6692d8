"""/api/tasks: whose they are, which moves there are, and which revision is changed (SPEC C-8)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.support.gateway import Gate, assert_problem
from vigil.board.kept import KeptBoard
from vigil.board.kinds.task import TASKS
from vigil.contracts import Change
from vigil.subjects import Scope

PATH: Final = "/api/tasks"
BODY: Final[dict[str, Any]] = {"title": "Compare three backup tools"}


async def test_a_task_is_its_owners_alone(gate: Gate) -> None:
    """X-4: an admin sees it and may end it; only its owner says what is done."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    made = await ann.post(PATH, json=BODY | {"priority": "high", "why": "the disk died"})
    assert made.status_code == 201, made.text
    one = made.json()
    assert (one["owner"], one["status"], one["created_by"]) == ("ann", "ready", "person")
    assert made.headers["etag"] == f'"{one["revision"]}"'
    path = f"{PATH}/{one['id']}"
    assert (await ann.get(path)).json() == one
    (listed,) = (await ann.get(PATH)).json()["tasks"]
    assert listed["id"] == one["id"]
    assert (await bob.get(PATH)).json() == {"tasks": []}
    assert_problem(await bob.get(path), 404)
    assert_problem(await bob.patch(path, json={"status": "backlog"}), 404)
    assert_problem(await bob.get(f"{PATH}?user=ann"), 403, "user")
    assert_problem(await bob.post(PATH, json=BODY | {"owner": "ann"}), 422)
    assert_problem(await (await gate.http()).post(PATH, json=BODY), 401)
    admin = await gate.person("root", is_admin=True)
    assert [found["id"] for found in (await admin.get(PATH)).json()["tasks"]] == [one["id"]]
    for change in ({"status": "ready"}, {"title": "x"}, {"status": "backlog", "priority": "low"}):
        assert_problem(await admin.patch(path, json=change), 403, "status")
    ended = (await admin.patch(path, json={"status": "backlog", "why": "not here"})).json()
    steps = [(step["status"], step["by"], step["why"]) for step in ended["history"]]
    assert steps == [("ready", "ann", "the disk died"), ("backlog", "root", "not here")]


async def test_the_revision_that_was_read_is_changed_or_none(gate: Gate) -> None:
    """L-15: If-Match of yesterday is 412, and of many at once one is taken."""
    ann = await gate.person("ann")
    one = (await ann.post(PATH, json=BODY)).json()
    path = f"{PATH}/{one['id']}"
    yesterday = {"If-Match": f'"{one["revision"] - 1}"'}
    assert_problem(await ann.patch(path, json={"priority": "low"}, headers=yesterday), 412,
                   "If-Match")  # fmt: skip
    now = {"If-Match": f'"{one["revision"]}"'}
    answers = await asyncio.gather(
        *(ann.patch(path, json={"title": f"T{n}"}, headers=now) for n in range(8))
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 7
    (taken,) = [answer.json() for answer in answers if answer.status_code == 200]
    assert (await ann.get(path)).json() == taken
    assert (await ann.patch(path, json={})).json() == taken, "nothing is changed"


async def test_who_names_no_revision_changes_whatever_is_there(gate: Gate) -> None:
    """Of many at once that name none all are taken: each is decided on what came before it."""
    ann = await gate.person("ann")
    one = (await ann.post(PATH, json=BODY)).json()
    path, titles = f"{PATH}/{one['id']}", [f"T{n}" for n in range(8)]
    answers = await asyncio.gather(*(ann.patch(path, json={"title": title}) for title in titles))
    assert [(answer.status_code, answer.json()["title"]) for answer in answers] == [
        (200, title) for title in titles
    ]
    revisions = {answer.json()["revision"] for answer in answers}
    assert len(revisions) == 8, "each is a revision of its own"
    assert (await ann.get(path)).json()["revision"] == max(revisions)


async def test_a_move_that_there_is_not_names_those_that_there_are(gate: Gate) -> None:
    """C-8: 422, both states and what is allowed; nothing is stored."""
    ann = await gate.person("ann")
    one = (await ann.post(PATH, json=BODY | {"status": "backlog"})).json()
    path = f"{PATH}/{one['id']}"
    refused = assert_problem(await ann.patch(path, json={"status": "done"}), 422, "status")
    assert "from backlog to done; it may go to ready" in refused["detail"]
    assert_problem(await ann.patch(path, json={"status": "backlog"}), 422, "status")
    ready = (await ann.patch(path, json={"status": "ready"})).json()
    assert ready["moves"] == ["backlog"], "a worker makes the other"
    assert_problem(await ann.patch(path, json={"status": "in_progress"}), 422, "status")
    assert [step["status"] for step in (await ann.get(path)).json()["history"]] == [
        "backlog", "ready",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"title": ""}, 422, "title"),
        ({"title": "x" * 201}, 422, "title"),
        ({"description": "x" * 8_001}, 422, "description"),
        ({"description": "x" * 1_000_000}, 413, "body"),
        ({"status": "pending_approval"}, 422, "status"),
        ({"status": "asleep"}, 422, "status"),
        ({"priority": "asap"}, 422, "priority"),
        ({"agentId": "a.b"}, 422, "agentId"),
        ({"why": "x" * 501}, 422, "why"),
        ({"is_tainted": False}, 422, None),
    ],
)
async def test_bad_input_names_field_and_reason(
    gate: Gate, changes: dict[str, Any], status: int, field: str | None
) -> None:
    """X-6: also a task of 1 MB; nothing is stored."""
    ann = await gate.person("ann")
    problem = assert_problem(await ann.post(PATH, json=BODY | changes), status)
    assert field is None or problem["field"] == field
    assert (await ann.get(PATH)).json() == {"tasks": []}


async def test_two_hundred_are_open_and_the_next_is_refused(gate: Gate) -> None:
    """L-16: those that ended don't count, and none comes back beyond the bound."""
    ann = await gate.person("ann")
    first = (await ann.post(PATH, json=BODY)).json()
    board, now = KeptBoard(gate.admin, TASKS), datetime.now(UTC)
    found = await board.find([Scope("*", "ann")], first["id"])
    assert found is not None
    done = replace(found.entity, status="done")
    await board.replace(found.number, done, Change(by="ann"), now)
    others = (replace(found.entity, id=f"{number:032x}") for number in range(200))
    await asyncio.gather(*(board.replace(0, one, Change(by="ann"), now) for one in others))
    refused = assert_problem(await ann.post(PATH, json=BODY), 422, "task")
    assert "200" in refused["detail"]
    path = f"{PATH}/{first['id']}"
    assert_problem(await ann.patch(path, json={"status": "ready"}), 422, "task")
    assert (await ann.patch(f"{PATH}/{'0' * 31}1", json={"status": "backlog"})).status_code == 200
    ended = await board.find([Scope("*", "ann")], f"{1:032x}")
    assert ended is not None
    await board.replace(ended.number, replace(ended.entity, status="done"), Change(by="ann"), now)
    yesterday = {"If-Match": f'"{found.number}"'}
    assert_problem(await ann.patch(path, json={"status": "ready"}, headers=yesterday), 412)
    assert (await ann.patch(path, json={"status": "ready"})).json()["status"] == "ready"
    assert len((await ann.get(f"{PATH}?limit=500")).json()["tasks"]) == 200
    # Whoever has too many that they don't want isn't made to have them done.
    two = f"{PATH}/{2:032x}"
    assert_problem(await ann.delete(two), 422, "status")
    assert (await ann.patch(two, json={"status": "backlog"})).status_code == 200
    assert_problem(await ann.delete(two, headers=yesterday), 412)
    removed = (await ann.delete(two)).json()
    assert (removed["is_removed"], removed["moves"]) == (True, [])
    assert [one["why"] for one in removed["history"]][-1] == "removed"
    assert_problem(await ann.patch(two, json={"status": "ready"}), 409)
    assert_problem(await ann.delete(two), 409)
    assert (await ann.post(PATH, json=BODY)).status_code == 201
    there = (await ann.get(f"{PATH}?limit=500")).json()["tasks"]
    assert removed["id"] not in {one["id"] for one in there}
    assert (await ann.get(f"/api/why/{removed['id']}")).json()["summary"] == "The task was removed."
