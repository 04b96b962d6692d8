"""Every named crash point: the process ends exactly there, while people talk."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.chaos import (
    test_budget_kills,
    test_calendar_kills,
    test_channel_kills,
    test_mail_kills,
    test_mailbox_kills,
    test_matrix_kills,
    test_reflecting_kills,
    test_slot_kills,
    test_task_kills,
    test_thread_kills,
)
from tests.chaos.arena import Arena, Prepare, running_arena
from tests.chaos.clients import Client
from tests.chaos.processes import Step
from tests.gateway import test_gateway_attachments
from vigil.backup import rearm
from vigil.crash import POINTS
from vigil.subjects import SessionKey

pytestmark = pytest.mark.chaos

# In two parts, so that the short form can run them side by side. Within a part each service
# has its own order, and goes on to its next point as soon as it ended at one. Order matters
# twice: a takeover needs an event that was open when the cortex died, and the broker fires by
# itself only what was stored and not yet due when the scheduler died.
FIRST: Final[Mapping[str, tuple[str, ...]]] = {
    "gateway": (
        "gateway.message.before_publish",
        "gateway.cursor.after_send",
        "gateway.event.stored",
    ),
    "cortex": (
        "cortex.wake.received",
        "cortex.state.loaded",
        "cortex.event.read",
        "cortex.model.after_call",
        "cortex.commit.after",
        "cortex.takeover.after_commit",
        "cortex.signal.received",
    ),
    "delivery": ("delivery.turn.received", "delivery.claim.after"),
    "scheduler": (
        "scheduler.turn.received",
        "scheduler.schedule.after",
        "scheduler.due.before_ack",
        "scheduler.promote.before",
    ),
}
SECOND: Final[Mapping[str, tuple[str, ...]]] = {
    "gateway": (
        "gateway.message.after_publish",
        "gateway.event.received",
        "gateway.event.buried",
    ),
    "cortex": (
        "cortex.lease.acquired",
        "cortex.model.before_call",
        "cortex.commit.before",
        "cortex.wake.before_ack",
        "cortex.dead.after_publish",
        "cortex.signal.before_publish",
        "cortex.signal.after_publish",
        "cortex.release.before",
    ),
    "delivery": (
        "delivery.claim.before",
        "delivery.void.after_receipt",
        "delivery.turn.before_ack",
    ),
    "scheduler": (
        "scheduler.schedule.before",
        "scheduler.turn.before_ack",
        "scheduler.promote.after",
        "scheduler.remove.after",
        "scheduler.rearm.before_done",
    ),
}
RARE: Final = frozenset({"takeover", "dead", "void", "due", "signal", "rearm", "event"})
"""Steps that are passed once in a while: these end at the first passage."""
OPENING: Final = frozenset({"lease", "state", "release"})
"""Steps that a session passes once each time that it is opened, not for each event."""


def test_every_point_is_covered() -> None:
    """RELIABILITY 3.2: a new crash point without a kill here fails."""
    covered = [p for part in (FIRST, SECOND) for points in part.values() for p in points]
    # Those of a message on a channel, and of a requeue, need a receiver and a wish.
    covered += test_channel_kills.POINTS
    covered += (*test_mail_kills.POINTS, *test_mailbox_kills.POINTS, *test_calendar_kills.POINTS)
    covered += test_budget_kills.POINTS
    covered += test_matrix_kills.POINTS
    covered += test_reflecting_kills.POINTS
    covered += test_slot_kills.POINTS
    covered += test_task_kills.POINTS
    covered += [point for point in test_thread_kills.POINTS if point.startswith("thread.")]
    covered += [point for point in test_gateway_attachments.POINTS if point not in covered]
    covered.append("scheduler.slot.missed")  # tests/scheduler/test_absences.py
    covered.append("gateway.job.stored")  # tests/gateway/test_gateway_jobs.py
    covered.append("gateway.hook.stored")  # tests/gateway/test_gateway_hooks.py
    # tests/gateway/test_gateway_repeats.py
    covered += [f"gateway.key.{step}" for step in ("reserved", "looked", "noted")]
    # Those of `vigil erase` end a command, not a service: tests/keeping/test_erase.py. Those of
    # imports, tasks of MCP servers, memory and the executor have what they need in
    # tests/keeping/test_import_conversations.py, tests/executor/test_mcp_tasks.py,
    # tests/memory/test_memory_kills.py and
    # tests/executor/test_executor_kills.py.
    others = ("erase.", "import.", "mcp.", "memory.", "executor.")
    ours = [point for point in POINTS if not point.startswith(others)]
    assert sorted(covered) == sorted(ours)


class Conditions:
    """Builds what a point needs that ordinary talk doesn't bring, while its service is away."""

    def __init__(self, arena: Arena, racer: Client) -> None:
        self._arena = arena
        self._racer = racer
        self._quiet: Client | None = None
        self._was_overdue = False

    def of(self, point: str) -> Prepare | None:
        return {
            "cortex.dead.after_publish": self._poison,
            "delivery.void.after_receipt": self._race,
            "scheduler.due.before_ack": self._overdue,
            "gateway.event.received": self._outside,
            "gateway.event.stored": self._outside,
            "gateway.event.buried": self._outside_poison,
            "scheduler.rearm.before_done": self._rearm,
        }.get(point)

    async def _poison(self) -> None:
        """An event that can't be decoded, in a session of its own."""
        self._arena.planted += 1
        root = f"session.vigil.poisoned.t{self._arena.planted}"
        await self._arena.admin.publish(f"{root}.in.said.user", b'{"type":"user_message"')

    async def _race(self) -> None:
        """A follow-up that is decided and not yet said when the person writes."""
        log = self._arena.histories.of

        def is_decided() -> bool:
            sends = log(self._racer.records.session).sends()
            settled = log(self._racer.records.session).settled()
            return any(s.payload.is_voidable and s.id not in settled for _, s in sends)

        while not is_decided():
            await self._racer.say("check back in 1 seconds about {m}")
            for _ in range(150):
                if is_decided():
                    break
                await asyncio.sleep(0.1)
        await self._racer.say("hello, this is {m}")

    async def _rearm(self) -> None:
        """What a restore asks of the scheduler that becomes active next."""
        await rearm.request(self._arena.admin)

    async def _outside(self) -> None:
        """What a program publishes, for a session of its own user."""
        event = {
            "specversion": "1.0", "id": str(self._arena.planted), "source": "urn:chaos",
            "type": "build.failed", "subject": "outsider:vigil:t", "data": "red",
        }  # fmt: skip
        await self._arena.admin.publish("event.outsider.ci", json.dumps(event).encode())

    async def _outside_poison(self) -> None:
        """The same, which nobody can use."""
        self._arena.planted += 1
        await self._arena.admin.publish("event.outsider.ci", b'{"specversion":"1.0"')

    async def _overdue(self) -> None:
        """A timer that the broker had to fire by itself.

        What those who talk have planned is there at once, but may be gone again: what they say
        takes it back. So if that was in vain, it's a reminder of somebody who says nothing more.
        """
        fired = partial(self._arena.admin.get_last, "TIMERS")
        if not self._was_overdue:
            self._was_overdue = True
            for _ in range(100):
                if await fired("due.>") is not None:
                    return
                await asyncio.sleep(0.1)
        quiet = self._quiet = self._quiet or await self._arena.client("quiet")
        root = SessionKey.parse(quiet.records.session).root

        async def is_planned() -> bool:
            # Said while the scheduler runs: it fires itself what it hears of too late.
            await quiet.say("remind me in 3 seconds to feed {m}")
            for _ in range(60):
                # The deadline of a pause in what was said before isn't it.
                there = await self._arena.admin.read("TIMERS", [f"timer.{root}.>"])
                if any(b'"kind":"follow_up"' in one.data for one in there):
                    return True
                await asyncio.sleep(0.05)
            return False

        await self._arena.processes.run_until("scheduler", is_planned)
        while await fired(f"due.{root}.>") is None:
            await asyncio.sleep(0.1)


def _passage(point: str, sessions: int, random: Random) -> int:
    """Draw at which passage of `point` its service ends.

    The cortex gets on far enough for everybody to be answered first. One that ends in its very
    first steps again and again counts five attempts at innocent messages and gives them up.
    """
    service, step, _ = point.split(".")
    if step in RARE:
        return 1
    if service != "cortex":
        return random.randint(1, sessions)
    if step in OPENING:
        return sessions + random.randint(1, 3)
    return 2 * sessions + random.randint(0, sessions)


def _steps(
    points: tuple[str, ...], times: int, sessions: int, conditions: Conditions, random: Random
) -> list[Step]:
    """Return the kills of one service."""
    return [
        Step(
            point=point,
            passage=_passage(point, sessions, random),
            prepare=conditions.of(point),
        )
        for _ in range(times)
        for point in points
    ]


async def _kill_at(
    home: Path, seed: int, *parts: Mapping[str, tuple[str, ...]], times: int, sessions: int
) -> None:
    async with running_arena(home, seed) as arena:
        conditions = Conditions(arena, await arena.client("racer"))
        planned: list[str] = []
        for service in ("gateway", "cortex", "delivery", "scheduler"):
            points = tuple(p for part in parts for p in part[service])
            steps = _steps(points, times, sessions, conditions, arena.random)
            planned += [step.point for step in steps]
            arena.processes.start(service, steps)
        await arena.talk(sessions)
        await arena.processes.plans_over(within_s=45.0 + 9.0 * times * len(planned))
        await arena.hush()
        wrong = await arena.verdict()
        assert not wrong, wrong
        crashed = [e.crash_at.partition(":")[0] for e in arena.processes.exits if e.is_crash]
        assert sorted(crashed) == sorted(planned)
        kills = sum(not e.is_crash for e in arena.processes.exits)
        print(f"\ncrash points: {len(crashed)} crashes, {kills} kills to get there")
        print(arena.counts())


async def test_killed_at_every_point(tmp_path: Path, seed: int, is_long: bool) -> None:
    """S-1, S-4, S-5, S-6, S-7, S-8, S-10, S-12, X-5: ended at each step, nothing is broken.

    Long: 3 times each while 20 sessions talk. Short: once each.
    """
    if is_long:
        await _kill_at(tmp_path, seed, FIRST, SECOND, times=3, sessions=20)
        return
    async with asyncio.TaskGroup() as group:
        for number, part in enumerate((FIRST, SECOND)):
            home = tmp_path / str(number)
            group.create_task(_kill_at(home, seed + number, part, times=1, sessions=4))
