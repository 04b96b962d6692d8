"""Stories of what stands in no session's log: tasks, grants, memories (SPEC D-3, L-8, L-15)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.gateway.test_gateway_why import ANN, why
from tests.support.gateway import Gate, assert_problem
from tests.support.why import Log, at
from vigil.board.kept import KeptBoard
from vigil.board.kinds.grant import USES
from vigil.contracts import (
    Change,
    GrantUse,
    MemoriesMerged,
    MemoriesReplaced,
    MemoriesUndone,
    Memory,
    MemoryForgotten,
    MemoryRecord,
    MemorySaved,
    encode,
)
from vigil.subjects import SessionKey

ID: Final = "c" * 32
OTHER: Final = "d" * 32
NOT_HERE: Final = {"session": "ann:vigil:t2"}


def told(story: dict[str, Any]) -> list[str]:
    return [step["text"] for step in story["steps"]]


async def test_a_task_that_nobody_began(gate: Gate) -> None:
    """C-8: who put it there and why, each change, and what it waits for."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    fields = {"title": "Tidy up", "status": "backlog", "why": "spring"}
    id_ = (await ann.post("/api/tasks", json=fields)).json()["id"]
    story = await why(ann, id_)
    assert (story["kind"], story["session_key"], story["verdict"]) == ("task", "", "pending")
    assert story["summary"] == "The task is kept for later."
    assert told(story) == ["You put the task “Tidy up” on the board, as backlog: “spring”"]
    await ann.patch(f"/api/tasks/{id_}", json={"priority": "low"})
    await ann.patch(f"/api/tasks/{id_}", json={"status": "ready", "why": "now"})
    story = await why(ann, id_)
    assert told(story)[1:] == [
        "You changed the task “Tidy up”.",
        "You moved the task “Tidy up” to ready: “now”",
    ]
    assert story["summary"] == "The task is ready, and waits for its turn."
    assert [step["what"] for step in story["steps"]] == ["task.made", "task.changed", "task.moved"]
    assert {step["stream"] for step in story["steps"]} == {"BOARD"}
    assert_problem(await bob.get(f"/api/why/{id_}"), 404)
    assert_problem(await ann.get(f"/api/why/{id_}", params=NOT_HERE), 404)
    admin = await gate.person("root", is_admin=True)
    assert told(await why(admin, id_))[0].startswith("ann put the task")


async def test_a_grant_its_uses_and_its_end(gate: Gate) -> None:
    """L-8: what is allowed, by whom and why; which call used it; and that it was revoked."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    rule = {"kind": "argv", "argv": ["df", "-h"]}
    body = {"tool": "shell", "constraints": [rule], "uses_max": 2, "why": "the disk"}
    id_ = (await ann.post("/api/grants", json=body)).json()["id"]
    story = await why(ann, id_)
    assert (story["kind"], story["session_key"], story["verdict"]) == ("grant", "", "pending")
    assert story["summary"] == "It stands, for 2 times in all; it was used 0 times."
    (made,) = told(story)
    assert made.startswith("You allowed shell beforehand, with “[{")
    assert '["df","-h"]' in made
    assert made.endswith(": “the disk”")
    once = {**body, "uses_max": 1, "name": "once"}
    id_once = (await ann.post("/api/grants", json=once)).json()["id"]
    story = await why(ann, id_once)
    assert story["summary"] == "It stands, for 1 time in all; it was used 0 times."
    expect = 0
    for count in (1, 2):
        use = GrantUse(
            id=id_,
            owner="ann",
            agent="vigil",
            uses=count,
            last_used_at=at(count),
            tool="shell",
            session_key=ANN,
            calls=(str(count),),
        )
        kept = await KeptBoard(gate.admin, USES).replace(
            expect, use, Change(by="executor", cause=str(count)), at(count)
        )
        expect = kept.number
    story = await why(ann, id_)
    assert told(story)[1:] == [
        f"It let shell run in {ANN}: use 1.",
        f"It let shell run in {ANN}: use 2.",
    ]
    assert (story["verdict"], story["summary"]) == ("done", "It is used up, after 2 uses.")
    assert (await ann.delete(f"/api/grants/{id_}")).status_code == 200
    story = await why(ann, id_)
    assert told(story)[-1] == "You revoked it: “revoked”"
    assert (story["verdict"], story["summary"]) == ("cancelled", "It was revoked, after 2 uses.")
    assert_problem(await bob.get(f"/api/why/{id_}"), 404)


async def remember(gate: Gate, op: str, record: MemoryRecord) -> None:
    await gate.admin.publish(f"memory.vigil.ann.{op}", encode(record))


def memory(id_: str = ID, **fields: Any) -> Memory:
    return Memory(id=id_, content="the code is 4711", created_at=at(2), **fields)


def header(second: int, by: str) -> dict[str, Any]:
    return {"id": f"r{second}", "agent": "vigil", "owner": "ann", "at": at(second), "by": by}


async def test_a_memory_from_what_it_was_made_of_to_its_end(gate: Gate) -> None:
    """D-3, M-4: the message behind it, that it was saved, and each thing that became of it."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    log = Log()
    spoke = log.said_by_person("my code is 4711", "m1")
    log.turn(spoke, "answered", ended=(spoke.id,))
    for subject, data in log.records:
        await gate.admin.publish(subject, data)
    saved = memory(source="chat:t1", provenance=("m1",))
    session = f"session:{SessionKey.parse(ANN)}"
    await remember(gate, "save", MemorySaved(**header(2, session), memory=saved))
    story = await why(ann, ID)
    assert (story["kind"], story["session_key"], story["verdict"]) == ("memory", ANN, "done")
    assert told(story)[0] == "You wrote: “my code is 4711”"
    assert told(story)[-1] == "The agent saved it in memory, as fact from chat:t1."
    assert story["summary"] == "It is remembered."
    merged = MemoriesMerged(
        **header(3, "maintenance"), memory=memory(OTHER), merged_ids=(ID, "e" * 32)
    )
    await remember(gate, "merge", merged)
    assert told(await why(ann, ID))[-1] == f"It was merged into the memory {OTHER}."
    other = await why(ann, OTHER)
    assert told(other) == ["The agent saved it in memory, as fact, in place of 2 others."]
    undone = MemoriesUndone(
        **header(4, "user:ann"), source=OTHER, memory_ids=(OTHER,), restored_ids=(ID,)
    )
    await remember(gate, "undo", undone)
    story = await why(ann, ID)
    assert told(story)[-1] == "It stands again: what had taken its place was reverted."
    assert story["verdict"] == "done"
    assert told(await why(ann, OTHER))[-1] == f"You reverted {OTHER}, and with it this."
    replaced = MemoriesReplaced(**header(5, session), by_id=OTHER, memory_ids=(ID,), is_same=True)
    await remember(gate, "replace", replaced)
    assert told(await why(ann, ID))[-1] == f"The memory {OTHER} stands in its place."
    await remember(gate, "forget", MemoryForgotten(**header(6, "user:ann"), memory_ids=(ID,)))
    story = await why(ann, ID)
    assert told(story)[-1] == "It was forgotten (asked)."
    assert (story["verdict"], story["summary"]) == ("cancelled", "It stands no more.")
    assert_problem(await bob.get(f"/api/why/{ID}"), 404)
    assert_problem(await ann.get(f"/api/why/{ID}", params=NOT_HERE), 404)


@pytest.mark.parametrize("id_", [ID, "f" * 31, "x"])
async def test_what_nobody_remembers(gate: Gate, id_: str) -> None:
    """404 names nothing else."""
    assert_problem(await (await gate.person("ann")).get(f"/api/why/{id_}"), 404)
