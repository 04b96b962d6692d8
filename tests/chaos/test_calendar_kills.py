"""Events that agents make, while the calendar's server and the executor are killed: each is made
once, and what is said of each is so."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.chaos.killable import NO_SANDBOX, assert_each_was_killed, killable, steps_of
from tests.support.calendars import LOGIN, PASSWORD, Radicale, running_radicale
from tests.support.examples import repeats
from tests.support.executing import has_offered, session_on
from tests.support.memories import call_of
from tests.support.pauses import pauses
from vigil.contracts import CallTool
from vigil.subjects import SessionKey

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.repeated,
    pytest.mark.usefixtures("halved_times"),
]

KILLS: Final = repeats(40, fast=2)
EVENTS: Final = KILLS
WITHIN_S: Final = 240.0
POINTS: Final = ("calendar.seen", "calendar.write.before", "calendar.write.after")
PLAN: Final = {"executor": POINTS}
MADE: Final = "Made in work"
DAY: Final = datetime.now(UTC).date() + timedelta(days=30)


def create(number: int, key: SessionKey) -> CallTool:
    given = {"title": f"event-{number}", "begins": f"{DAY}T{number % 24:02}:00"}
    return call_of("calendar_create", given, number, key=key, service="executor", risk="external")


async def killed(radicale: Radicale, dice: Random) -> None:
    """Kill the server again and again; it comes back soon."""
    for _ in range(KILLS):
        await asyncio.sleep(dice.uniform(0.1, 0.9))
        radicale.kill()
        await asyncio.sleep(dice.uniform(0.0, 0.4))
        await radicale.start()


def made_of(said: dict[str, str]) -> int:
    """Return how many were said to be made."""
    return sum(answer.startswith(MADE) for answer in said.values())


async def test_each_event_is_made_once_whatever_is_killed(tmp_path: Path) -> None:
    """Issue 37: kill -9 of the server and of the executor in between."""
    home = tmp_path / "home"
    home.mkdir()
    async with running_radicale(tmp_path / "radicale") as radicale:
        (home / "vigil.toml").write_text(
            f'[calendars.work]\nkind = "caldav"\nurl = "{radicale.url}"\nuser = "ann"\n'
            f'login = "{LOGIN}"\npassword = "{PASSWORD}"\nis_writable = true\ntimeout_s = 20\n'
        )
        async with killable(home, steps_of(PLAN), NO_SANDBOX) as (stack, processes):
            bus = await stack.bus("admin")
            await has_offered(bus)
            killing = asyncio.create_task(killed(radicale, Random(37)))
            plan = asyncio.create_task(processes.plans_over(WITHIN_S))
            said: dict[str, str] = {}
            async with asyncio.timeout(WITHIN_S):
                # More, if it was killed at fewer points, or half weren't made: a server that is
                # away gets nothing.
                while not (len(said) >= EVENTS and plan.done() and made_of(said) >= EVENTS // 2):
                    number = len(said) + 1
                    key = SessionKey("ann", "vigil", f"t{number}")
                    session, call = session_on(bus, key), create(number, key)
                    await session.turn(call)
                    pause_s = pauses()
                    while call.id not in (found := await session.results()):
                        processes.check()
                        await asyncio.sleep(next(pause_s))
                    said[f"event-{number}"] = found[call.id].payload.content
                await killing
            await plan
            assert_each_was_killed(processes, PLAN)
        text = await radicale.all()
    made = {title: text.count(f"SUMMARY:{title}\r\n") for title in said}
    for title, answer in said.items():
        if answer.startswith(MADE):
            assert made[title] == 1, answer
        elif answer.startswith("Not made"):
            assert made[title] == 0, answer
        else:
            assert answer.startswith("It isn't known whether that was done"), answer
            assert made[title] <= 1
