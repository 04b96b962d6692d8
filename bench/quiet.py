"""What an hour costs in which nothing happens, for one person and for 50, and what a cycle adds.

Each has an agent that keeps up by itself, and a mind with a goal that isn't due.

All services run in this process, with a clock that is moved. CPU is that of an idle system, which
is measured in real time, and of the looks of an hour, which are measured by moving it.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from bench.numbers import report
from services.cortex.model import ModelAnswer, ModelRequest
from tests.support.agent import Agent
from tests.support.due import row_of
from tests.support.remembering import save
from tests.support.scripted_model import say
from tests.support.world import Person, StoppedClock, World, running_world
from vigil.contracts import decode_slot

HOURS: Final = 6
HALF_HOUR_S: Final = 1800.0
YEAR_S: Final = 31_536_000
NOTICED_S: Final = 1.5
"""In which a clock that was moved is noticed, and what is due is looked at."""
IDLE_S: Final = 30.0
"""In it, CPU that is told in hundredths of a second comes to 1.2 s an hour."""
RELEASED_S: Final = 12.0
"""After which no session is open any more: see `sessions.idle_release_s`."""
MANY: Final = 50
RUNS: Final = 15
WITHIN_S: Final = 60.0
STREAMS: Final = ("SYSTEM", "BOARD", "SLOTS", "TIMERS", "MEMORIES", "SIGNALS")


async def measure(home: Path) -> None:
    """Report calls, CPU and what is stored in a quiet hour, and how long cycles and texts take."""
    clock = StoppedClock()
    with pytest.MonkeyPatch.context() as patch:
        cortex = {"autonomy_enabled": True, "bulletin_synthesis": True}
        sections = {"cortex": cortex, "mind": {"enabled": True}}
        async with running_world(home, patch, clock, has_hands=True, **sections) as world:
            world.agent.behave = _answer
            quiet = Quiet(world, clock)
            await quiet.join(1)
            await quiet.tell("quiet_hour", 1)
            await quiet.tell_runs()
            await quiet.join(MANY)
            await quiet.tell("quiet_hour_50_owners", MANY)


def _answer(request: ModelRequest) -> ModelAnswer:
    if request.purpose == "mind":
        return say('{"decisions": [{"type": "no_action", "because": "fine", "confidence": 1}]}')
    if request.purpose == "report":
        return say('{"checked": [], "found": [], "deferred": [], "recheck": []}')
    return say("That is so.")


class Quiet:
    """A number of people who say nothing any more."""

    def __init__(self, world: World, clock: StoppedClock) -> None:
        self._world = world
        self._clock = clock
        self._people: list[Person] = []
        self._processes = psutil.Process()

    async def join(self, count: int) -> None:
        """Have so many people, about whom all is known and looked at that there is."""
        for number in range(len(self._people), count):
            person = await self._world.person(f"u{number}:vigil:main", has_socket=False)
            await person.exchange("Hello")
            await save(person.http, f"Number {number} likes tea", type="fact")
            goal = {"description": "Keep the tea warm", "check_interval_secs": YEAR_S}
            (await person.http.post("/api/goals", json=goal)).raise_for_status()
            await row_of(person.http, "bulletin")
            self._people.append(person)
        asked = -1
        while asked != len(self._agent.requests):
            asked = len(self._agent.requests)
            for _ in range(4):
                await self._pass()
            await self._world.at_rest()
        await asyncio.sleep(RELEASED_S)

    @property
    def _agent(self) -> Agent:
        return self._world.agent

    async def _pass(self) -> None:
        self._clock.move(HALF_HOUR_S)
        await asyncio.sleep(NOTICED_S)

    async def tell(self, name: str, owners: int) -> None:
        """Report a quiet hour."""
        begun = self._cpu_s()
        await asyncio.sleep(IDLE_S)
        idle_per_s = (self._cpu_s() - begun) / IDLE_S
        calls, stored, begun = len(self._agent.requests), await self._stored(), self._cpu_s()
        begun_at = time.monotonic()
        for _ in range(2 * HOURS):
            await self._pass()
        looks_s = self._cpu_s() - begun - idle_per_s * (time.monotonic() - begun_at)
        calls = len(self._agent.requests) - calls
        if owners == 1:
            report(f"{name}_calls", calls / HOURS, "calls", aim="0")
            report(f"{name}_kb", (await self._stored() - stored) / HOURS / 1024, "KiB")
        elif calls:
            raise RuntimeError(f"{calls} calls were made in {HOURS} quiet hours")
        report(
            f"{name}_cpu_s",
            idle_per_s * 3600 + max(looks_s, 0.0) / HOURS,
            "s",
            looks_s=round(looks_s / HOURS, 3),
            owners=owners,
        )

    def _cpu_s(self) -> float:
        family = [self._processes, *self._processes.children(recursive=True)]
        times = [one.cpu_times() for one in family]
        return float(sum(one.user + one.system for one in times))

    async def _stored(self) -> float:
        found = 0
        for name in (*(await self._world.admin.layout()).logs, *STREAMS):
            info = await self._world.admin.api(f"STREAM.INFO.{name}", {})
            found += info["state"]["bytes"]
        return found

    async def tell_runs(self) -> None:
        """Report how long a cycle takes, and a text of a bulletin, with a model that answers at
        once: from the entry that begins it to the one that ends it."""
        for kind, name in (("autonomy", "cycle_overhead_ms"), ("bulletin", "bulletin_ms")):
            row = await row_of(self._people[0].http, kind)
            lasted = [await self._run(row) for _ in range(RUNS)]
            report(name, statistics.median(lasted), "ms", runs=RUNS, calls=2 - (kind != "autonomy"))

    async def _run(self, row: dict[str, Any]) -> float:
        subject = f"slot.vigil.u0.{row['id']}"
        last = await self._world.admin.get_last("SLOTS", subject)
        start = 1 if last is None else last.seq + 1
        self._clock.move(1)  # two orders of one moment are one
        answer = await self._people[0].http.post(f"/api/cron/{row['id']}/runs")
        answer.raise_for_status()
        begun_at = 0.0
        async with asyncio.timeout(WITHIN_S):
            follower = await self._world.admin.follow("SLOTS", [subject], start)
            try:
                async for message in follower:
                    entry = decode_slot(message.data)
                    if entry.state == "running":
                        begun_at = time.monotonic()
                    elif entry.state == "ran":
                        return (time.monotonic() - begun_at) * 1000
            finally:
                await follower.close()
        raise RuntimeError(f"{row['kind']} did not run")
