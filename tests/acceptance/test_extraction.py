"""What else a run of the timetable came across, kept after its end was told (SPEC J-3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from services.cortex.core.cycles.extraction import PURPOSE
from services.cortex.model import ModelAnswer, ModelError, ModelRequest
from tests.acceptance.test_cron import called, made, move, said, slots, until
from tests.support.pauses import pauses
from tests.support.scripted_model import say
from tests.support.world import Person, World, running_world
from vigil.contracts import ToolResultBlock

pytestmark = pytest.mark.asyncio(loop_scope="module")

SEEN: Final = "Build 4711 of Marigold failed at night."
KNOWN: Final = "Build 4711 of Marigold failed on 3 May 2026."
GROUND: Final = f"{KNOWN} (from spawn_worker)"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        home: Path = tmp_path_factory.mktemp("home")
        async with running_world(home, patch, has_hands=True) as running:
            yield running


class Runs:
    """The runs of one person: each has a worker look, and says so; then it's asked for facts."""

    def __init__(self, world: World, user: str) -> None:
        self.asked: list[ModelRequest] = []
        """For facts."""
        self.begun: list[str] = []
        """What each run was shown of those before."""
        self.facts: Callable[[], ModelAnswer] = lambda: say(json.dumps({"memories": []}))
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self._user = user
        self._behave = world.agent.behave
        world.agent.behave = self._answer

    async def _answer(self, request: ModelRequest) -> ModelAnswer:
        if not request.session_key.startswith(f"{self._user}:"):
            answer: Any = self._behave(request)
            return await answer if asyncio.iscoroutine(answer) else answer
        if request.purpose == PURPOSE:
            self.asked.append(request)
            await self.may_answer.wait()
            return self.facts()
        if "_worker" in request.session_key:
            return say(SEEN)
        results = results_of(request)
        if any(SEEN in one for one in results):
            return say("I looked.")
        self.begun.append("\n".join(results))
        return called("spawn_worker", {"task": "Look at CI"}, 1)


def results_of(request: ModelRequest) -> list[str]:
    blocks = (block for row in request.rows for block in row.blocks)
    return [block.content for block in blocks if isinstance(block, ToolResultBlock)]


def fails() -> ModelAnswer:
    raise ModelError("the model is gone", is_retryable=False)


async def kept(
    person: Person, row: dict[str, Any], count: int, kind: str = "cron"
) -> list[dict[str, Any]]:
    """Wait until memory has so many of a row, and return them, the oldest first."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(40):
        pause_s = pauses()
        while len(found) < count:
            await asyncio.sleep(next(pause_s))
            params = {"source": f"{kind}:{row['id']}"}
            found = (await person.http.get("/api/memories", params=params)).json()["memories"]
    return sorted(found, key=lambda one: one["type"], reverse=True)


async def story(person: Person, row: dict[str, Any]) -> dict[str, Any]:
    """Why, of the newest run."""
    session = (await slots(person.http, row))[-1]["session"]
    found: dict[str, Any] = (await person.http.get(f"/api/why/{session.rpartition('-')[2]}")).json()
    return found


async def test_facts_are_kept_after_the_result_went_its_way(world: World) -> None:
    """J-3: with their ground, and of this row; the next run is shown them beside the results."""
    ann = await world.person("ann:vigil:main", has_socket=False)
    runs = Runs(world, "ann")
    runs.facts = lambda: say(json.dumps({"memories": ["All is well.", KNOWN]}))
    runs.may_answer.clear()
    row = await made(ann.http, "ci", is_stateful=True)
    ended = await until(ann.http, row, "running", "ran")
    await world.until(lambda: bool(world.talk("ann:vigil:main").said))
    assert [one["delivery"] for one in ended] == ["", "told"], "though nobody named a fact yet"
    runs.may_answer.set()
    result, fact = await kept(ann, row, 2)
    assert (result["type"], result["content"]) == ("observation", "I looked.")
    assert (fact["type"], fact["content"], fact.get("is_tainted", False)) == ("fact", GROUND, False)
    assert await said(world, ann) == ["I looked."]
    (request,) = runs.asked
    assert (request.tier, request.tools) == ("cheap", ())
    assert SEEN in world.agent.text_of(request)
    why = await story(ann, row)
    assert why["verdict"] == "done", why
    assert any("what else it came across: 1 memory" in one["text"] for one in why["steps"])

    runs.facts = fails
    move(world, 3600)
    again = await until(ann.http, row, "running", "ran", "running", "ran")
    assert GROUND in runs.begun[1]
    assert "I looked." in runs.begun[1]
    assert await said(world, ann) == ["I looked."] * 2
    why = await story(ann, row)
    assert why["verdict"] == "done", why
    assert any("nothing more was kept: the model is gone" in one["text"] for one in why["steps"])
    assert {one["tokens"] for one in again if one["state"] == "ran"} == {ended[-1]["tokens"]}, (
        "what comes after its end is no part of it"
    )


async def test_what_is_outside_marks_them_and_a_run_that_is_shown_nothing_is_not_asked(
    world: World,
) -> None:
    """J-3, X-3."""
    bob = await world.person("bob:vigil:main", has_socket=False)
    runs = Runs(world, "bob")
    runs.facts = lambda: say(json.dumps({"memories": [KNOWN]}))
    news = world.stack.settings.workspaces / "vigil" / "bob" / "news.md"
    news.parent.mkdir(parents=True)
    news.write_text("calm")
    watch = {"kind": "files", "glob": "*.md"}
    row = await made(bob.http, "watcher", watch=watch, is_stateful=True)
    await until(bob.http, row, "skipped")
    news.write_text("storm")
    move(world, 3600)
    await until(bob.http, row, "skipped", "running", "ran")
    found = await kept(bob, row, 2, "watch")
    assert [(one["type"], one.get("is_tainted", False)) for one in found] == [
        ("observation", True), ("fact", True),
    ]  # fmt: skip

    plain = await made(bob.http, "plain", runs_once=True)
    await until(bob.http, plain, "running", "ran")
    await world.at_rest()
    assert len(runs.asked) == 1, "of a row that doesn't remember"
    behave = world.agent.behave
    world.agent.behave = lambda request: (
        say("Nothing new.") if "_cron-" in request.session_key else behave(request)
    )
    quiet = await made(bob.http, "quiet", is_stateful=True, runs_once=True)
    await until(bob.http, quiet, "running", "ran")
    await kept(bob, quiet, 1)
    await world.at_rest()
    assert len(runs.asked) == 1, "of one that called for nothing"
