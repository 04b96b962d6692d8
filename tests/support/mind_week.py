"""A week of one person with an agent that has a mind: what is said and done, as a transcript.

All services run with a clock that is moved; a local Messages API server answers by a script, so the
real SDK, the schema of a look, budgets and delivery are in it.

    python -m tests.support.mind_week      # writes the transcript into docs/mind.md
"""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from services.scheduler import goals, minds
from services.scheduler.timetable import clock as timetable
from tests.support.agent import Agent
from tests.support.gateway import Gate
from tests.support.messages_api import Behave, MessagesApi, calls, messages_api, says
from tests.support.messages_replies import Reply
from tests.support.pauses import pauses
from tests.support.sources import ROOT
from tests.support.stack import running_stack
from tests.support.world import SERVICES, Person, StoppedClock, World
from vigil.board.kept import KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.contracts import decode_turn
from vigil.minds import mind_of
from vigil.subjects import Scope

MONDAY: Final = datetime(2026, 11, 30, tzinfo=UTC)
PATIENCE_S: Final = 40.0
PAUSE_S: Final = 600
WHOSE: Final = Scope("vigil", "ann")
PAGE: Final = ROOT / "docs" / "mind.md"
RELEASE: Final = "I want to ship the release by Friday, 18:00. Keep an eye on it!"
ANSWERS: Final = {
    RELEASE: "I do, and tell you how it stands.",
    "What is in my calendar?": "Three meetings, the first at ten.",
    "The release is out!": "Congratulations!",
}
BEGIN: Final = "<!-- week: written by tests.support.mind_week -->\n"
_SECTIONS: Final = re.compile(r"^(?:Goals|Other goals|How|What) ", re.M)
_GOAL: Final = re.compile(r"^- ([0-9a-f]{32}): active[^\n]*: ([^\n]*)", re.M)


def decision(kind: str, because: str, confidence: float = 0.9, **of: Any) -> dict[str, Any]:
    return {"type": kind, "because": because, "confidence": confidence, **of}


def decided(report: str) -> list[dict[str, Any]]:
    """Decide as a sensible model might, by the words of a report."""
    came_in = _SECTIONS.split(report.partition("[Report]")[2])[0]
    goals = {text.partition(" Strategy:")[0]: id_ for id_, text in _GOAL.findall(report)}
    found = []
    if "calendar?" in came_in:
        habit = {"category": "workflow", "key": "calendar.summary", "value": "each morning"}
        found.append(decision("learn_preference", "Ann asked for it in the morning.", **habit))
    if "is out" in came_in and "Ship the release" in goals:
        of = {"goal": goals["Ship the release"], "status": "completed"}
        found.append(decision("update_goal", "Ann wrote that it is out.", **of))
    if "Ship the release" in goals and "memory_save" not in report:
        of = {"tool": "memory_save", "input": '{"content": "The release is due on Friday."}'}
        because = "Ann may ask how it stands."
        found.append(decision("tool_call", because, goal=goals["Ship the release"], **of))
    if "build failed" in came_in:
        found.append(decision("respond", "Ann ships this week.", text="The build on main failed."))
    missed = "failed, timed" in report and "Write the report" in report
    if missed and "The report was not done" not in report:
        text = "The report was not done by Wednesday noon. Shall I set another date?"
        found.append(decision("respond", "Its deadline passed.", text=text))
    return found or [decision("no_action", "Nothing needs attention.")]


def behave(body: dict[str, Any]) -> Reply:
    """Answer whoever asks: the mind, a look back, a conversation."""
    text = json.dumps(body["messages"], ensure_ascii=False)
    words = words_of(body)
    usage = {"input_tokens": len(text) // 4, "output_tokens": 80}
    if "[Report]" in words:
        return says(json.dumps({"decisions": decided(words)}), usage=usage)
    offered = {tool["name"] for tool in body.get("tools", ())}
    if "schedule_followup" not in offered:
        return says("Nothing.", usage=usage)
    _, asked = max((words.rfind(question), question) for question in ANSWERS)
    if asked == RELEASE and "goal_create" not in offered:
        return calls("find_tools", {"query": "pursue a goal"}, usage=usage)
    if asked == RELEASE and '"name": "goal_create"' not in text:
        friday = MONDAY + timedelta(days=4, hours=18)
        goal = {"description": "Ship the release", "deadline_at": friday.isoformat()}
        return calls("goal_create", goal, usage=usage)
    return says(ANSWERS[asked], usage=usage)


def words_of(body: dict[str, Any]) -> str:
    """Return the texts of a request's messages."""
    return "\n".join(
        block["text"]
        for message in body["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block.get("type") == "text"
    )


class Week:
    """What happens, line by line."""

    def __init__(self, world: World, ann: Person, api: MessagesApi) -> None:
        self.world = world
        self.ann = ann
        self.api = api
        self.lines: list[str] = []
        self._said = 0
        self._noted: dict[str, str] = {}

    @property
    def _now(self) -> datetime:
        return self.world.clock.now()

    def tell(self, who: str, what: str, at: datetime | None = None) -> None:
        self.lines.append(f"{at or self._now:%a %H:%M}  {who}: {what}")

    @property
    def looks(self) -> int:
        """How often a model was asked by the mind."""
        return sum("[Report]" in json.dumps(request.body) for request in self.api.requests)

    async def until(self, day: int, hour: float) -> None:
        """Let the time pass, and all that is due by then be done: looks are a moment apart."""
        target = MONDAY + timedelta(days=day, hours=hour)
        for seconds in ((target - self._now).total_seconds(), 60.0):
            await self.world.advance(seconds)
            await self.settled()

    async def settled(self) -> None:
        """Wait until the mind has nothing left to do now, and write down what came of it."""
        quiet = 0
        async with asyncio.timeout(PATIENCE_S):
            for pause_s in pauses():
                await self.world.at_rest()
                quiet = quiet + 1 if await self._is_idle() else 0
                if quiet >= 2:
                    break
                await asyncio.sleep(max(pause_s, 0.05))
        await self._write_down()

    async def _is_idle(self) -> bool:
        key = mind_of(WHOSE)
        found = await self.world.admin.get_last("SYSTEM", key.turns)
        state = None if found is None else decode_turn(found.data).state
        newest = await self.world.admin.get_last("SYSTEM", key.in_all)
        is_read = newest is None or (state is not None and state.position >= newest.seq)
        if state is None or state.loop is not None:
            return is_read and state is None
        waits = state.gathering is not None and state.gathering.due_at > self._now
        return is_read and (waits or not state.tasks)

    async def _write_down(self) -> None:
        actions = await KeptBoard(self.world.admin, ACTIONS).all(WHOSE)
        for one in sorted((found.entity for found in actions), key=lambda one: one.number):
            if self._noted.get(one.id) != one.outcome and one.outcome != "pending":
                self._noted[one.id] = one.outcome
                if one.type != "respond":
                    what = f"{one.type}, {one.outcome}: {one.description}"
                    self.tell("mind", what, one.ended_at)
        self._write_said()

    def _write_said(self) -> None:
        said = self.ann.talk.said
        for one in said[self._said :]:
            self.tell("vigil", one.text, one.at)
        self._said = len(said)

    async def say(self, text: str) -> None:
        self.tell("ann", text)
        await self.ann.exchange(text)
        self._write_said()
        await self._write_down()

    async def event(self, text: str) -> None:
        self.tell("ci", text)
        event = {"specversion": "1.0", "id": text, "source": "/ci", "type": "build", "data": text}
        kind = {"content-type": "application/cloudevents+json"}
        answer = await self.ann.http.post("/api/events", json=event, headers=kind)
        assert answer.status_code == 202, answer.text
        await self.settled()

    async def goal(self, description: str, **of: Any) -> str:
        self.tell("ann", f"sets the goal: {description}")
        answer = await self.ann.http.post("/api/goals", json={"description": description} | of)
        assert answer.status_code == 201, answer.text
        await self.settled()
        return str(answer.json()["id"])

    async def goals(self, *statuses: str) -> dict[str, str]:
        found = {}
        for status in statuses:
            there = (await self.ann.http.get("/api/goals", params={"status": status})).json()
            found |= {one["description"]: one["status"] for one in there["goals"]}
        return found


@asynccontextmanager
async def running_week(
    home: Path, monkeypatch: pytest.MonkeyPatch, script: Behave = behave, **more: Any
) -> AsyncIterator[Week]:
    """All services, and Ann at home with an agent that has a mind.

    Args:
        script: what the Messages API server answers.
        more: sections of the configuration.
    """
    importlib.import_module("anthropic")  # before there is anybody whom it holds up
    for module in (timetable, minds, goals):
        monkeypatch.setattr(module, "POLL_S", 0.05)
    clock = StoppedClock()
    clock.move((MONDAY - clock.now()).total_seconds())
    services = (*SERVICES, "executor")
    sections: dict[str, Any] = {
        "model": {"main": "scripted"},
        "mind": {"enabled": True},
        "memory": {"pause_s": PAUSE_S},
        "person": {"quiet_hours": "22:00-07:00", "digest_at": "08:00"},
    } | more
    async with (
        messages_api(script) as api,
        running_stack(home, services, clock, api.url, **sections) as stack,
    ):
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        world = World(gate, Agent(), clock, services)
        following = asyncio.create_task(world.follow())
        try:
            ann = await world.person("ann:vigil:main", has_socket=False)
            yield Week(world, ann, api)
        finally:
            following.cancel()
            await gate.close()


async def live(week: Week) -> None:
    """Let the week go by."""
    for day in range(4):
        await week.until(day, 9)
        if day == 0:
            noon = timedelta(days=2, hours=12)
            await week.say(RELEASE)
            await week.settled()
            await week.goal("Write the report", deadline_at=(MONDAY + noon).isoformat())
        await week.say("What is in my calendar?")
        await week.until(day, 9.5)
        if day == 1:
            await week.until(day, 23)
            await week.event("build failed on main")
            await week.until(day + 1, 7)
        if day == 2:
            await week.until(day, 12.1)
    await week.until(3, 15)
    await week.say("The release is out!")
    await week.until(3, 15.5)
    (stop,) = re.findall(r"say: (stop g\w{3})", "\n".join(week.lines))
    await week.until(4, 9)
    await week.say(stop)
    await week.until(4, 10)


async def costs(http: httpx2.AsyncClient) -> dict[str, tuple[int, int]]:
    """What the week took, by cause: calls of a model, and tokens that were sent."""
    found = (await http.get("/api/cost", params={"by": "cause", "days": 14})).json()
    return {
        one["cause_name"] or one["cause"]: (one["calls"], one["input_tokens"])
        for one in found["lines"]
    }


async def write() -> None:
    """Live through a week and write its transcript into the page."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as home:
        async with running_week(Path(home), patch) as week:
            await live(week)
            put(week.lines)
            print(await costs(week.ann.http))


def put(lines: list[str]) -> None:
    """Put a transcript into the page, in the place of the one that it has."""
    before = PAGE.read_text("utf-8").partition(BEGIN)[0]
    PAGE.write_text(before + BEGIN + block(lines), "utf-8")


def block(lines: list[str]) -> str:
    """Return a transcript as the page has it, with one random id for all.

    >>> block(["Mon 09:00  mind: goal_update, success: goal 0a1b2c3d"])
    '\\n    Mon 09:00  mind: goal_update, success: goal 5f0c61d2\\n'
    """
    short = [re.sub(r"\bgoal [0-9a-f]{8}\b", "goal 5f0c61d2", one) for one in lines]
    return "\n" + "".join(f"    {one}\n" for one in short)


def told(text: str) -> list[str]:
    """Return what a transcript tells, without when: under load that may be noticed later."""
    return sorted(line.strip()[11:] for line in text.splitlines() if line.strip())


if __name__ == "__main__":
    asyncio.run(write())
