"""Calls that an MCP server does as tasks, which outlive this executor (X-1, X-5, S-12)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from services.executor.mcp.client import tasks
from services.executor.tools.source import CallTask, ToolOutput
from tests.chaos.processes import Processes, Step
from tests.executor.test_mcp_web import Site, answer, serving, using
from tests.support.executing import call, has_offered, session_of
from tests.support.mcp_client import NASTY, Hands, hands, nasty, sandbox
from tests.support.memories import until
from tests.support.stack import Stack
from vigil.contracts.tools import ServerAnswer

COOK = "nasty__cook"


class TaskParams(types.RequestParams):
    task_id: str


class UpdateParams(TaskParams):
    input_responses: dict[str, Any]


class Noted:
    """What a call as a task is told, and tells."""

    def __init__(self, id_: str = "") -> None:
        self.ids: list[str] = []
        self.said: list[str | None] = []
        self.has_begun, self.is_at_it = asyncio.Event(), asyncio.Event()
        self.is_withdrawn = False
        self.task = CallTask(id=id_, begun=self._begun, is_withdrawn=lambda: self.is_withdrawn)

    async def _begun(self, id_: str) -> None:
        self.ids.append(id_)
        self.has_begun.set()

    async def progress(self, done: float, total: float | None, text: str | None) -> None:
        self.said.append(text)
        self.is_at_it.set()


async def cook(
    found: Hands, what: str, noted: Noted, answered: ServerAnswer | None = None
) -> ToolOutput:
    tool = found.tool(COOK)
    return await found.run(
        tool, {"what": what}, answered, task=noted.task, on_progress=noted.progress
    )


def kept(home: Path, name: str) -> list[str]:
    path = home / "mcp" / "nasty" / name
    return path.read_text().splitlines() if path.exists() else []


async def test_it_is_waited_for_and_looked_after_by_whoever_comes(tmp_path: Path) -> None:
    """Its id is told at once; who is given that makes no other one, and is told what it came to,
    although its server was started anew, too."""
    first, second = Noted(), Noted("t0")
    choice = await sandbox()
    async with hands(tmp_path, choice, nasty=nasty("tasks")) as found:
        waiting = asyncio.create_task(cook(found, "soup", first))
        async with asyncio.timeout(20):
            await first.is_at_it.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert first.ids == ["t0"]
    assert set(first.said) == {"stirring the soup\u202e"}
    assert kept(tmp_path, "cancel") == [], "who stops may come back"
    (tmp_path / "mcp" / "nasty" / "ready").touch()
    async with hands(tmp_path, choice, nasty=nasty("tasks")) as found:
        told = await cook(found, "soup", second)
        assert told.content == "soup is done, 1 made, []"
        assert (told.is_tainted, told.origin) == (True, "mcp:nasty")
        assert second.ids == []


async def test_nobody_waits_for_it_any_more(tmp_path: Path) -> None:
    """It is told to stop: withdrawn, too late, or wanting what it does not get."""
    noted = Noted()
    async with hands(tmp_path, await sandbox(), nasty=nasty("tasks", timeout_s=1)) as found:
        waiting = asyncio.create_task(cook(found, "soup", noted))
        await noted.has_begun.wait()
        noted.is_withdrawn = True
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert len(kept(tmp_path, "cancel")) == 1
        late = await cook(found, "stew", Noted())
        assert "did not end in time" in late.content
        assert "ambiguous" in late.content
        wanting = await cook(found, "secret", Noted())
        assert wanting.wanted is None
        async with asyncio.timeout(10):
            while len(kept(tmp_path, "cancel")) < 3:
                await asyncio.sleep(0.01)


async def test_how_else_it_may_end(tmp_path: Path) -> None:
    ends = {
        "burnt": "smoke",
        "dropped": tasks.CANCELLED,
        "strange": "is no result by the protocol",
    }
    async with hands(tmp_path, await sandbox(), nasty=nasty("tasks")) as found:
        for what, told in ends.items():
            output = await cook(found, what, Noted())
            assert output.is_error
            assert told in output.content


async def test_its_server_knows_nothing_of_it_any_more(tmp_path: Path) -> None:
    """S-12: then nobody knows what became of it."""
    async with hands(tmp_path, await sandbox(), nasty=nasty("tasks")) as found:
        output = await cook(found, "soup", Noted("t77"))
        assert tasks.UNKNOWN in output.content
        assert output.content.startswith("ambiguous")


async def test_it_may_want_something_of_the_person(tmp_path: Path) -> None:
    """X-2: as a call may; the answer goes to the task, whose id stands in the next call's claim."""
    (tmp_path / "mcp" / "nasty").mkdir(parents=True)
    (tmp_path / "mcp" / "nasty" / "ready").touch()
    async with hands(tmp_path, await sandbox(), nasty=nasty("tasks")) as found:
        asked = await cook(found, "salted", Noted())
        assert asked.wanted is not None
        assert asked.wanted.state == "task:t0"
        given: Any = {"name": asked.wanted.name, "state": asked.wanted.state, "answered": 1}
        answered = ServerAnswer(action="accept", content={"nights": 3}, **given)
        noted = Noted()
        told = await cook(found, "salted", noted, answered)
        assert "salted is done, 1 made" in told.content
        assert "'nights': 3" in told.content
        assert noted.ids == ["t0"]


async def test_it_takes_an_answer_in_no_words_of_the_protocol(tmp_path: Path) -> None:
    """S-12: whether it has the answer isn't known, so nobody knows what becomes of the call."""
    async with hands(tmp_path, await sandbox(), nasty=nasty("tasks")) as found:
        asked = await cook(found, "sour", Noted())
        assert asked.wanted is not None
        answered = ServerAnswer(
            action="accept", name=asked.wanted.name, state=asked.wanted.state, answered=1
        )
        told = await cook(found, "sour", Noted(), answered)
        assert tasks.STRANGE in told.content
        assert told.content.startswith("ambiguous")


async def test_a_call_that_can_not_be_followed_is_told_to_stop(tmp_path: Path) -> None:
    async with hands(tmp_path, await sandbox(), nasty=nasty("tasks")) as found:
        output = await found.call(COOK, what="soup")
        assert "can't be followed" in output.content
        assert len(kept(tmp_path, "cancel")) == 1


class Kitchen(Site):
    """A server of the official SDK over HTTP, which does each call as a task."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.is_done = False

    def equip(self, server: Server[Any]) -> None:
        server.extensions[tasks.EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self.get_task)

    async def call_tool(self, context: Any, params: types.CallToolRequestParams) -> Any:
        self.calls += 1
        return self._state() | {"resultType": "task"}

    async def get_task(self, context: Any, params: TaskParams) -> Any:
        assert params.task_id == "t 1"
        self.asked += 1
        return self._state()

    def _state(self) -> dict[str, Any]:
        at = "2026-11-20T09:00:00Z"
        told = {"taskId": "t 1", "createdAt": at, "lastUpdatedAt": at, "ttlMs": None}
        result = {"content": [{"type": "text", "text": "done"}]}
        return told | (
            {"status": "completed", "result": result}
            if self.is_done
            else {"status": "working", "pollIntervalMs": 1}
        )


async def test_over_http_its_server_may_be_away_meanwhile(tmp_path: Path) -> None:
    """X-5: who asks goes on asking, and nothing is made twice."""
    kitchen, noted = Kitchen(), Noted()
    async with serving(kitchen) as url, using(tmp_path, url) as found:
        running = found.run(found.tool("site__big"), {}, task=noted.task)
        waiting = asyncio.create_task(running)
        async with asyncio.timeout(20):
            while kitchen.asked < 2:
                await asyncio.sleep(0.01)
            kitchen.instead, before = answer(503, {}), len(kitchen.seen)
            while len(kitchen.seen) < before + 2:
                await asyncio.sleep(0.01)
            kitchen.instead, kitchen.is_done = None, True
            told = await waiting
    assert (told.content, kitchen.calls, noted.ids) == ("done", 1, ["t 1"])


class Counter(Kitchen):
    """A server whose tasks want two things of the person, one after the other, and which takes no
    answer that it didn't ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[str] = []
        self.refused: list[str] = []

    def equip(self, server: Server[Any]) -> None:
        super().equip(server)
        server.add_request_handler("tasks/update", UpdateParams, self.update)

    async def update(self, context: Any, params: UpdateParams) -> Any:
        (name,) = params.input_responses
        if name != self._wanted:
            self.refused.append(name)
            raise MCPError(types.INVALID_PARAMS, f"{name} isn't wanted")
        self.taken.append(name)
        return {}

    @property
    def _wanted(self) -> str:
        return f"question-{len(self.taken) + 1}"

    def _state(self) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"nights": {"type": "integer"}}}
        params = {"mode": "form", "message": self._wanted, "requestedSchema": schema}
        asked = {self._wanted: {"method": "elicitation/create", "params": params}}
        return super()._state() | {"status": "input_required", "inputRequests": asked}


async def test_who_takes_a_call_over_does_not_answer_a_second_time(tmp_path: Path) -> None:
    """X-5: killed after the answer, its call is looked after by the next one: what is wanted by
    then is asked, and what was said to the first question is no answer to that."""
    counter = Counter()
    async with serving(counter) as url, using(tmp_path, url) as found:
        tool = found.tool("site__big")
        asked = await found.run(tool, {}, task=Noted().task)
        assert asked.wanted is not None
        answered = ServerAnswer(
            action="accept", name=asked.wanted.name, state=asked.wanted.state, answered=1
        )
        for id_ in ("", "t 1"):
            told = await found.run(tool, {}, answered, task=Noted(id_).task)
            assert told.wanted is not None, told.content
            assert told.wanted.name == "question-2"
    assert (counter.taken, counter.refused, counter.calls) == (["question-1"], [], 1)


@pytest.mark.usefixtures("halved_times")
async def test_the_executor_is_killed_while_it_waits(bare: Stack) -> None:
    """X-5, S-12: kill -9 once the task is known; the next one looks after it, and nothing is made
    twice, although the tool may not run again."""
    await sandbox()
    home = bare.settings.home
    (home / "vigil.toml").write_text(
        f"[mcp.nasty]\ncommand = '{sys.executable}'\nargs = ['{NASTY}', 'tasks']\nrisk = 'write'\n"
    )
    processes = Processes(home, {"NATS_URL": bare.broker.url})
    try:
        processes.start("executor", [Step(point="mcp.task.begun")])
        await has_offered(await bare.bus("admin"), "nasty")
        session = await session_of(bare)
        one = call(COOK, what="soup")
        await session.turn(one)

        async def is_killed() -> bool:
            return any(one.is_crash for one in processes.exits)

        await until(is_killed, "it is killed", within_s=60)
        assert kept(home, "made") == ["t0 soup"]
        (home / "mcp" / "nasty" / "ready").touch()
        result = await session.result(one)
        assert result.payload.content == "soup is done, 1 made, []"
        assert not result.payload.is_error
    finally:
        await processes.stop()
