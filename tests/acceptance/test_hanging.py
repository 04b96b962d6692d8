"""What hangs is seen, ended or opened anew, and what waits for it goes on (SPEC C-4, C-5)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from services.cortex import __main__ as cortex
from services.cortex.model import ModelAnswer, ModelRequest
from services.cortex.session import rounds
from services.scheduler.timetable.kinds.autonomy import FIRST_AFTER
from tests.support.agent import Agent
from tests.support.cli import Cli
from tests.support.pauses import pauses
from tests.support.scripted_model import say
from tests.support.signals import settled
from tests.support.world import Person, StoppedClock, World, running_world
from vigil.contracts import ToolUseBlock, Usage

PATIENCE_S = 40.0
LOOK = "https://silent.example/status"
REPORT = {"checked": ["CI"], "found": ["no news of CI"], "deferred": ["CI"], "recheck": []}


def _calls(*calls: tuple[str, str]) -> ModelAnswer:
    blocks = [
        ToolUseBlock(id=f"call_{name}", name=name, input={"task": task}) for name, task in calls
    ]
    usage = Usage(model="agent", input_tokens=1, output_tokens=1)
    return ModelAnswer(blocks=tuple(blocks), stop_reason="tool_use", usage=usage)


async def _rows(person: Person) -> list[dict[str, Any]]:
    """The rows by which cycles are run."""
    rows = (await person.http.get("/api/cron", params={"all": True})).json()["rows"]
    return [row for row in rows if row["kind"] == "autonomy"]


async def _entries(person: Person, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    (row,) = await _rows(person)
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while len(found) < count:
            await asyncio.sleep(next(pause_s))
            found = (await person.http.get("/api/slots", params={"row": row["id"]})).json()["slots"]
    return found[::-1]


async def _vigil(world: World, person: Person, home: Path, *args: str, code: int = 0) -> str:
    url = f"http://127.0.0.1:{world.gate.port}"
    cli = Cli(home / "cli", VIGIL_URL=url, VIGIL_TOKEN=person.token)
    done = await asyncio.to_thread(cli, *args, code=code)
    return done.stdout + done.stderr


async def test_workers_and_looks_that_hang_are_ended_and_their_cycle_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-5, L-7: after 300 s without a word; the cycle is told, and reports."""
    hanging: list[str] = []
    told: list[str] = []
    tasks: list[str] = []

    async def behave(request: ModelRequest) -> ModelAnswer:
        if ":_worker-" in request.session_key or ":_reader-" in request.session_key:
            hanging.append(Agent.text_of(request))
            await asyncio.Event().wait()
        if ":_autonomy-" not in request.session_key:
            return say("Hello.")
        if request.purpose == "report":
            return say(json.dumps(REPORT))
        if request.rows[-1].source == "task":
            tasks.append(Agent.text_of(request))
            return _calls(("spawn_worker", "Look at CI"), ("research", LOOK))
        told.append(str(request.rows))
        return say("That was all.")

    keeping_up = {"autonomy_enabled": True}
    async with running_world(
        tmp_path, monkeypatch, has_hands=True, cortex=keeping_up, agent={"looks": [LOOK]}
    ) as world:
        assert isinstance(world.clock, StoppedClock)
        world.agent.behave = behave
        ann = await world.person("ann:vigil:main", has_socket=False)
        await ann.exchange("hello")
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while not await _rows(ann):
                await asyncio.sleep(next(pause_s))
        world.clock.move(FIRST_AFTER.total_seconds())
        await world.until(lambda: len(hanging) == 2)
        assert LOOK in hanging
        assert tasks[0].endswith(f"is put off:\n- {LOOK}")
        await world.advance(301)
        entries = await _entries(ann, 2)
        assert [one["state"] for one in entries] == ["running", "ran"]
        (words,) = told
        assert words.count("There was no word of it in time") == 2
        kinds = [one.kind for one in await settled(world.admin)]
        assert "worker.failed" in kinds


async def test_a_session_that_hangs_is_opened_anew_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-5: seen at a round, in status and as signals; its message is answered."""
    monkeypatch.setattr(rounds, "ROUND_S", 0.1)
    monkeypatch.setattr(cortex, "stuck_after", lambda _: 0.4)
    hanging = 1
    async with running_world(tmp_path, monkeypatch) as world:

        async def behave(request: ModelRequest) -> ModelAnswer:
            nonlocal hanging
            if hanging:
                hanging -= 1
                await asyncio.Event().wait()
            answer: ModelAnswer = say(f"re: {Agent.text_of(request)}")
            return answer

        world.agent.behave = behave
        ann = await world.person()
        await ann.say("hello")
        await world.until(lambda: ann.talk.texts == ["re: hello"])
        await world.at_rest()
        async with asyncio.timeout(PATIENCE_S):
            found: list[str] = []
            pause_s = pauses()
            while "circuit.closed" not in found:
                await asyncio.sleep(next(pause_s))
                told = [one for one in await settled(world.admin) if one.kind[:8] == "circuit."]
                found = [one.kind for one in told]
        assert found == ["circuit.opened", "circuit.closed"]
        assert "nothing moved for" in told[0].text
        assert told[0].data["component"] == f"session:{ann.key}"


async def test_rounds_name_sessions_that_are_nearly_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-5: to whom they are, and how long branches take."""
    monkeypatch.setattr(rounds, "ROUND_S", 0.1)
    async with running_world(tmp_path, monkeypatch, model={"context_tokens": 20_000}) as world:

        def behave(_: ModelRequest) -> ModelAnswer:
            answer: ModelAnswer = say("Well.")
            usage = Usage(model="agent", input_tokens=100, cache_read_tokens=15_900)
            return ModelAnswer(blocks=answer.blocks, stop_reason="end_turn", usage=usage)

        world.agent.behave = behave
        ann, ben = await world.person(), await world.person("ben:vigil:t1")
        await ann.exchange("hello")
        async with asyncio.timeout(PATIENCE_S):
            while not (shown := (await ann.http.get("/api/health")).json())["sessions"]:
                await asyncio.sleep(0.1)
        assert shown["sessions"] == [{"session_key": ann.key, "fill": 0.8}]
        assert shown["branches"] is None
        told = await _vigil(world, ann, tmp_path, "health")
        assert f"session {ann.key} fills 80% of the context window" in told
        told = await _vigil(world, ann, tmp_path, "status", code=3)  # without hands
        assert "sessions that nearly fill their window: 1" in told
        assert (await ben.http.get("/api/health")).json()["sessions"] == []
        facts = [one["facts"] for one in (await ben.http.get("/api/status")).json()["services"]]
        assert all(not one.get("sessions") for one in facts)
