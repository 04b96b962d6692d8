"""Tasks that workers do, one after the other, through all services (SPEC C-8, LOOPS L-15, L-16)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
import pytest_asyncio

from services.cortex.model import ModelAnswer, ModelError, ModelRequest
from tests.support.agent import Agent, ask
from tests.support.pauses import pauses
from tests.support.scripted_model import say
from tests.support.world import Person, StoppedClock, World, running_world
from vigil.contracts import ToolUseBlock, Usage

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH: Final = "/api/tasks"
PATIENCE_S: Final = 40.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        home: Path = tmp_path_factory.mktemp("home")
        async with running_world(home, patch, has_hands=True) as running:
            yield running


async def made(http: httpx2.AsyncClient, title: str, **fields: Any) -> str:
    answer = await http.post(PATH, json={"title": title, **fields})
    assert answer.status_code == 201, answer.text
    id_: str = answer.json()["id"]
    return id_


async def moved(http: httpx2.AsyncClient, id_: str, status: str) -> dict[str, Any]:
    answer = await http.patch(f"{PATH}/{id_}", json={"status": status})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def until(http: httpx2.AsyncClient, id_: str, **wanted: Any) -> dict[str, Any]:
    """Wait until a task is so."""
    task: dict[str, Any] = {}
    try:
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while True:
                task = (await http.get(f"{PATH}/{id_}")).json()
                if all(task.get(name) == value for name, value in wanted.items()):
                    return task
                await asyncio.sleep(next(pause_s))
    except TimeoutError:
        raise AssertionError(f"it isn't {wanted}: {task}") from None


def steps(task: dict[str, Any]) -> list[str]:
    return [step["status"] for step in task["history"]]


async def told(world: World, person: Person, count: int = 1) -> list[str]:
    """What the person's home said of tasks."""
    home = world.talk(f"{person.key.partition(':')[0]}:vigil:main")
    await home.until(lambda: len(home.said) >= count)
    await world.at_rest()
    return [said.text for said in home.said]


async def test_what_the_agent_made_is_done_once_the_person_lets_it_begin(world: World) -> None:
    """C-8, L-12: it waits; then a worker does it, who knows nothing else; the home is told once."""
    ann = await world.person("ann:vigil:t1", has_socket=False)
    await ann.exchange(ask(("task_create", {"title": "Tidy up", "description": "the notes"})))
    ((task,),) = [(await ann.http.get(PATH)).json()["tasks"]]
    assert (task["status"], task["created_by"]) == ("pending_approval", "agent")
    assert task["session_key"] == ann.key
    await moved(ann.http, task["id"], "ready")
    done = await until(ann.http, task["id"], status="done")
    assert steps(done) == ["pending_approval", "ready", "in_progress", "done"]
    assert [step["by"] for step in done["history"]] == ["vigil", "ann", "scheduler", "vigil"]
    assert done["result"]["text"] == "re: Tidy up\n\nthe notes"
    assert await told(world, ann) == ["The task 'Tidy up' is done.\n\nre: Tidy up\n\nthe notes"]
    for id_ in (task["id"], done["worker"].rpartition("-")[2]):
        story = (await ann.http.get(f"/api/why/{id_}")).json()
        assert story["verdict"] == "done", story
        texts = [step["text"] for step in story["steps"]]
        assert any("A worker began the task" in text and "Tidy up" in text for text in texts)
    whole = [s["text"] for s in (await ann.http.get(f"/api/why/{task['id']}")).json()["steps"]]
    assert whole[0].startswith("You wrote:"), whole
    assert whole[-1] == "The task “Tidy up” is done."
    assert "You moved the task “Tidy up” to ready." in whole
    assert "Try 1 of the task “Tidy up” began." in whole


async def test_they_run_one_at_a_time_by_priority_and_then_age(world: World) -> None:
    """C-8: for each person and agent; another's isn't held up."""
    bob = await world.person("bob:vigil:t1", has_socket=False)
    cid = await world.person("cid:vigil:t1", has_socket=False)
    assert isinstance(world.clock, StoppedClock)
    world.agent.gate.clear()
    world.agent.held = {"first"}
    first = await made(bob.http, "first", priority="low")
    await until(bob.http, first, status="in_progress")
    wanted = {"late": "low", "second": "medium", "urgent": "critical", "third": "medium"}
    ids = {}
    for title, priority in wanted.items():
        world.clock.move(1)
        ids[title] = await made(bob.http, title, priority=priority)
    later = await made(bob.http, "later", status="backlog")
    await until(cid.http, await made(cid.http, "other"), status="done")
    there = {one["id"]: one["status"] for one in (await bob.http.get(PATH)).json()["tasks"]}
    assert there == {first: "in_progress", later: "backlog"} | dict.fromkeys(ids.values(), "ready")
    world.agent.gate.set()
    tasks = [await until(bob.http, id_, status="done") for id_ in (first, *ids.values())]
    spans = sorted(
        (task["history"][1]["revision"], task["history"][2]["revision"], task["title"])
        for task in tasks
    )
    assert [title for _, _, title in spans] == ["first", "urgent", "second", "third", "late"]
    assert all(end < begin for (_, end, _), (begin, _, _) in pairwise(spans))


async def test_one_that_fails_is_tried_three_times_and_told_once(world: World) -> None:
    """C-8: each time by a worker of its own; made ready again, it has three tries again."""
    dan = await world.person("dan:vigil:t1", has_socket=False)
    behave = world.agent.behave

    def fail(request: ModelRequest) -> Any:
        if request.session_key.startswith("dan:vigil:_worker"):
            raise ModelError("401", is_retryable=False)
        return behave(request)

    world.agent.behave = fail
    id_ = await made(dan.http, "levitate")
    failed = await until(dan.http, id_, status="failed")
    world.agent.behave = behave
    assert steps(failed) == [*(["ready", "in_progress"] * 3), "failed"]
    assert (failed["tries"], failed["result"]["text"]) == (3, "401")
    (text,) = await told(world, dan)
    assert text.startswith("The task 'levitate' failed after 3 tries.")
    await moved(dan.http, id_, "ready")
    done = await until(dan.http, id_, status="done")
    assert (done["tries"], len(await told(world, dan, 2))) == (1, 2)


@pytest.mark.parametrize("status", ["backlog", "failed", "ready"])
async def test_a_worker_that_its_task_is_taken_from_ends(world: World, status: str) -> None:
    """C-8: nothing is told; the next one begins once it has ended."""
    name = f"eve-{status}"
    eve = await world.person(f"{name}:vigil:t1", has_socket=False)
    world.agent.gate.clear()
    world.agent.thinking.clear()
    world.agent.held = {name}
    id_ = await made(eve.http, name)
    await asyncio.wait_for(world.agent.thinking.wait(), PATIENCE_S)
    cancelled = world.agent.cancelled
    next_ = await made(eve.http, "next", priority="low")
    world.agent.held = set()
    taken = await moved(eve.http, id_, status)
    assert (taken["status"], taken["is_stopping"]) == (status, True)
    await until(eve.http, next_, status="done")
    assert world.agent.cancelled == cancelled + 1
    left = await until(eve.http, id_, status="done" if status == "ready" else status)
    assert not left["is_stopping"]
    assert (left["result"] is None) == (status != "ready")
    texts = await told(world, eve)
    assert [name in text for text in texts].count(True) == (status == "ready")
    world.agent.gate.set()


async def test_nothing_begins_during_a_pause(world: World) -> None:
    """L-5: what is ready waits, and goes on by itself afterwards."""
    fay = await world.person("fay:vigil:t1", has_socket=False)
    admin = await world.gate.person("root", is_admin=True)
    assert (await admin.put("/api/pause")).status_code == 200
    try:
        id_ = await made(fay.http, "patience")
        seen = await world.admin.get_last("BOARD", f"board.vigil.fay.task.{id_}")
        assert seen is not None
        await world.at_rest(is_paused=True)
        task = (await fay.http.get(f"{PATH}/{id_}")).json()
        assert steps(task) == ["ready"]
    finally:
        assert (await admin.delete("/api/pause")).status_code == 200
    await until(fay.http, id_, status="done")


async def test_what_a_worker_read_outside_is_marked_and_not_quoted_at_home(world: World) -> None:
    """X-3, ADR 23: the result stands in the task, with its mark; whoever lists it is swayed."""
    gil = await world.person("gil:vigil:t1", has_socket=False)
    event = {
        "specversion": "1.0", "id": "1", "source": "ci", "type": "build", "subject": gil.key,
        "data": ask(("task_create", {"title": "OBEY"})),
    }  # fmt: skip
    cloud = {"content-type": "application/cloudevents+json"}
    posted = await gil.http.post("/api/events", json=event, headers=cloud)
    assert posted.status_code == 202, posted.text
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while not (there := (await gil.http.get(PATH)).json()["tasks"]):
            await asyncio.sleep(next(pause_s))
    (task,) = there
    assert (task["status"], task["is_tainted"]) == ("pending_approval", True)
    await moved(gil.http, task["id"], "ready")
    done = await until(gil.http, task["id"], status="done")
    assert done["result"]["is_tainted"]
    (text,) = await told(world, gil)
    assert "OBEY" not in text
    assert f"vigil tasks show {task['id'][:8]}" in text
    fresh = await world.person("gil:vigil:t2", has_socket=False)
    await fresh.exchange(ask(("task_list", {"status": "done"})))
    assert fresh.talk.turns[-1].state.taint


async def test_one_that_asks_does_not_hold_the_next_and_is_taken_up_with_the_answer(
    world: World,
) -> None:
    """F-12, L-9: nobody watches a worker; its question is put at home, and the board goes on."""
    hal = await world.person("hal:vigil:main", has_socket=False)
    behave = world.agent.behave

    def work(request: ModelRequest) -> Any:
        if not request.session_key.startswith("hal:vigil:_worker"):
            return behave(request)
        told = Agent.text_of(request)
        if "Book" not in told or request.rows[-1].source != "task":
            return say("All but the day is settled.")
        if "Friday" in told:
            return say("Booked for Friday.")
        use = ToolUseBlock(id="call_1", name="ask_user", input={"question": "Which day?"})
        usage = Usage(model="agent", input_tokens=1, output_tokens=1)
        return ModelAnswer(blocks=(use,), stop_reason="tool_use", usage=usage)

    world.agent.behave = work
    asks, next_ = await made(hal.http, "Book a table"), await made(hal.http, "Sweep")
    first = await until(hal.http, asks, status="done")
    assert first["result"]["text"] == "All but the day is settled."
    await until(hal.http, next_, status="done")
    ((request,),) = [(await hal.http.get("/api/approvals")).json()["approvals"]]
    assert (request["tool"], request["state"]) == ("ask_user", "open")
    await world.advance(30)  # what is asked at one time is one message
    said = [one.text for one in hal.talk.said]
    assert any("I have a question: Which day?" in text for text in said), said
    await hal.exchange(f"answer {request['name']} Friday")
    await world.at_rest()
    world.agent.behave = behave
    assert hal.talk.said[-1].text.endswith("which you answered: Booked for Friday.")
