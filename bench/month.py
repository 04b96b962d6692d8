"""What three agents of one person cost in 30 days: simulated, by cause (LOOPS L-21).

What is decided, asked and counted is the system's own: all services run, with a clock that is
moved, and their requests go to a local server that answers by a script and counts by the provider's
rule of caching. What happens, how long answers are, and prices are assumed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import msgspec
import pytest

from bench.month_script import Script
from bench.numbers import report
from services.scheduler.timetable import clock as timetable
from tests.support.messages_api import Reply, messages_api
from tests.support.prompt_cache import PromptCache
from tests.support.world import Person, StoppedClock, World, running_world
from vigil.contracts import External, ExternalPayload, encode
from vigil.settings.memory import MemorySection

DAYS: Final = 30
STEP_S: Final = 1800.0
WEEK_STEPS: Final = int(7 * 86_400 / STEP_S)
DAY_H: Final = (7, 20)
NIGHT_STEP_H: Final = 2
POLL_S: Final = 0.02
AGENTS: Final = ("vigil", "ops", "scout")
MODELS: Final[dict[str, dict[str, float]]] = {
    "main": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75},
    "cheap": {"input": 1, "output": 5, "cache_read": 0.1, "cache_write": 1.25},
}
"""USD for a million tokens: assumed, of the order of what providers ask in 2026."""
SAID: Final = (
    "What do I have to know before the meeting about the new office?",
    "Draft an answer to the landlord: we take the rooms from March on, if the lift is repaired.",
    "I moved the review to Thursday at ten, and Ben comes instead of Carla.",
    "Which of the open tasks can wait until next week?",
)
REPORTS: Final = {
    "ok": "Build of main passed: 412 tests, 6 min.",
    "failed": "Build of main failed: test_checkout times out after 30 s.",
}
GOALS: Final = (
    {"description": "Keep the plan of the move to the new office in order"},
    {"description": "Know each day what the review on Thursday still needs", "priority": 4},
)
NOTE: Final = "The lift was out of order at {hour}, and who came had to take the stairs."
HEARD: Final = "Thank you, I look into it."
MAIL: Final = "From: {who}\nSubject: {what}\n\nDear all, here is what we agreed upon. {what}."


async def measure(home: Path) -> None:
    """Report the sums, and a line for each agent, cause and tier."""
    clock = StoppedClock()
    _to_monday(clock)
    cache = PromptCache(lambda: clock.now().timestamp())
    script = Script(clock.now)

    def behave(body: dict[str, Any]) -> Reply:
        reply = script.reply(body)
        usage = cache.usage_of(body) | {"output_tokens": script.output_tokens(reply)}
        return msgspec.structs.replace(reply, usage=usage)

    async with messages_api(behave) as api:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(timetable, "POLL_S", POLL_S)
            async with running_world(
                home, patch, clock, has_agent=False, has_hands=True, **_sections(api.url)
            ) as world:
                month = Month(world, home)
                await month.begin()
                for step in range(int(DAYS * 86_400 / STEP_S)):
                    await month.step(step)
                    api.requests.clear()
                    if (step + 1) % WEEK_STEPS == 0:
                        await month.tell_sum((step + 1) // WEEK_STEPS * 7)
                await month.tell()


def _to_monday(clock: StoppedClock) -> None:
    now = clock.now()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    clock.move((midnight + timedelta(days=7 - now.weekday()) - now).total_seconds())


def _sections(url: str) -> dict[str, Any]:
    memory = MemorySection()
    return {
        "cortex": {
            "autonomy_enabled": True,
            "bulletin_synthesis": True,
            "summary_rewriting": True,
        },
        "mind": {"enabled": True},
        "memory": {"recall_tokens": memory.recall_tokens, "pause_s": memory.pause_s},
        "model": {"main": "main", "cheap": "cheap"},
        "models": {
            name: {
                "model": f"claude-{name}",
                "base_url": url,
                "prices": [{"since": "2026-01-01", **prices}],
            }
            for name, prices in MODELS.items()
        },
    }


class Month:
    """What happens to one person and three agents."""

    def __init__(self, world: World, home: Path) -> None:
        self._world = world
        self._begun_at = world.clock.now()
        self._random = random.Random(30)
        self._folder = home / "workspaces" / "ops" / "ann"
        self._people: dict[str, Person] = {}

    async def begin(self) -> None:
        for agent in AGENTS:
            person = await self._world.person(f"ann:{agent}:main", has_socket=False)
            self._people[agent] = person
            await person.exchange("Hello")
        self._people["ci"] = await self._world.person("ann:ops:ci", has_socket=False)
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "releases.md").write_text("1.0: the first one\n")
        rows = (
            {
                "name": "briefing",
                "prompt": "Brief me on the day.",
                "cron": "0 9 * * 1-5",
                "is_stateful": True,
                "agentId": "vigil",
            },
            {
                "name": "digest",
                "prompt": "Sum up the mail of the day.",
                "cron": "0 18 * * *",
                "is_stateful": True,
                "agentId": "scout",
            },
            {
                "name": "releases",
                "prompt": "What is new?",
                "interval_s": 3600,
                "agentId": "ops",
                "watch": {"kind": "files", "glob": "*.md"},
            },
        )
        for row in rows:
            answer = await self._people["vigil"].http.post("/api/cron", json=row)
            if answer.status_code != 201:
                raise RuntimeError(answer.text)
        for goal in GOALS:
            answer = await self._people["vigil"].http.post("/api/goals", json=goal)
            if answer.status_code != 201:
                raise RuntimeError(answer.text)

    async def step(self, number: int) -> None:
        """Let half an hour pass, and then happen what happens: at night nothing, and then only
        every two hours is looked whether cycles wanted to look at something again."""
        day, slot = divmod(number + 1, int(86_400 / STEP_S))
        hour, is_workday = slot / 2, day % 7 < 5
        if not DAY_H[0] <= hour <= DAY_H[1] and hour % NIGHT_STEP_H:
            return
        until = self._begun_at + timedelta(seconds=(number + 1) * STEP_S)
        await self._pass((until - self._world.clock.now()).total_seconds())
        if hour == DAY_H[0]:  # what the scheduler has done every six hours of a clock that goes
            await (await self._world.admin_client()).post("/api/maintenance")
        if is_workday and hour in (8.5, 13, 17):
            await self._talk("vigil", self._random.randint(2, 4))
            note = {"content": NOTE.format(hour=hour), "stability": "volatile", "threadId": "log"}
            await self._people["vigil"].http.post("/api/memories", json=note)
        if day % 7 in (0, 3) and hour == 10:
            await self._talk("ops", 2)
        if day % 7 in (1, 4) and hour == 11:
            await self._talk("scout", 2)
        if is_workday and hour in (10.5, 14.5, 16.5):
            which = "failed" if self._random.random() < 0.1 else "ok"
            await self._event("ops", "ci", REPORTS[which])
            if which == "failed":
                await self._people["ci"].exchange(HEARD)
        if DAY_H[0] <= hour < DAY_H[1] and self._random.random() < (0.3 if is_workday else 0.1):
            who, what = self._random.choice(("landlord", "Ben", "bank")), f"Matter {number}"
            await self._event("scout", "mail", MAIL.format(who=who, what=what))
        if day % 7 == 2 and hour == 15:
            with (self._folder / "releases.md").open("a") as file:
                file.write(f"1.{day}: mends what was found in week {day // 7}\n")

    async def _pass(self, seconds: float) -> None:
        await self._world.advance(seconds)
        client = self._people["vigil"].http
        while True:
            await asyncio.sleep(4 * POLL_S)
            await self._world.at_rest()
            rows = (await client.get("/api/cron", params={"all": True})).json()["rows"]
            if not any(row["running"] for row in rows):
                return

    async def _talk(self, agent: str, messages: int) -> None:
        for _ in range(messages):
            await self._people[agent].exchange(self._random.choice(SAID))
            await self._pass(90)

    async def _event(self, agent: str, thread: str, content: str) -> None:
        talk = self._world.talk(f"ann:{agent}:{thread}")
        event = External(
            id=str(uuid4()),
            session_key=str(talk.key),
            created_at=self._world.clock.now(),
            payload=ExternalPayload(source=f"hook:{thread}", content=content),
        )
        await talk.ended(await talk.store(talk.key.in_event("external"), encode(event), event.id))

    async def tell_sum(self, days: int) -> None:
        """Report what all came to so far."""
        _tell("month_cost_usd_so_far", await self._lines(), days=days)

    async def _lines(self) -> list[dict[str, Any]]:
        wanted = {"days": DAYS + 2, "by": ["agent", "cause", "tier"]}
        answer = await self._people["vigil"].http.get("/api/cost", params=wanted)
        lines: list[dict[str, Any]] = answer.json()["lines"]
        return lines

    async def tell(self) -> None:
        """Report what each cause came to."""
        client = self._people["vigil"].http
        listed = (await client.get("/api/cron", params={"all": True})).json()["rows"]
        names = {row["id"]: row["name"] for row in listed}
        lines = await self._lines()
        for line in lines:
            cause = names.get(line["cause"], line["cause"])
            _tell("month_cost_usd", [line], agent=line["agent"], cause=cause, tier=line["tier"])
        _tell("month_cost_usd_all", lines)
        merges = ("vigil", "maintenance")  # of the others nothing is merged
        quiet = [
            row["name"]
            for row in listed
            if not row["runs"] and (row["kind"] != merges[1] or row["agent_id"] == merges[0])
        ]
        if quiet or not lines:
            raise RuntimeError(f"never ran: {', '.join(quiet) or 'anything'}")


def _tell(name: str, lines: Iterable[dict[str, Any]], **context: object) -> None:
    sums = {
        key: sum(line[key] for line in lines)
        for key in (
            "calls",
            "input_tokens",
            "output_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "micro_usd",
        )
    }
    sent = sums["input_tokens"] + sums["cache_read_tokens"] + sums["cache_write_tokens"]
    report(
        name,
        sums["micro_usd"] / 1e6,
        "USD",
        **context,
        calls=sums["calls"],
        sent_tokens=sent,
        written_tokens=sums["output_tokens"],
        cached_pct=round(100 * sums["cache_read_tokens"] / max(sent, 1), 1),
    )
