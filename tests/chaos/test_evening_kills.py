"""Evenings that nobody watches, while services and the broker are killed at any instant.

What is done and told is judged by the logs, and by the files that commands left (LOOPS L-8, L-9,
L-12, L-15; SPEC C-8, S-12, X-5).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx2
import pytest

from services.cortex.core.work import spoken
from tests.chaos.arena import ENVIRONMENT
from tests.chaos.processes import Processes, Step
from tests.support.evening import Evening, attend, command, running_web, runs
from tests.support.executing import has_offered
from tests.support.messages_api import messages_api
from tests.support.stack import running_broker, settings_of
from vigil.board.kept import KeptBoard
from vigil.board.kinds.task import TASKS
from vigil.broker.ports import free_port
from vigil.broker.process import Broker
from vigil.bus.bus import Bus
from vigil.contracts import (
    CallTool,
    Control,
    Event,
    ToolResultEvent,
    Turn,
    decode_event,
    decode_said,
    decode_turn,
)
from vigil.local.home import ensure_home
from vigil.settings import tokens
from vigil.subjects import ANYBODY, TURNS_OF_ALL_SYSTEM, SessionKey, board_of
from vigil.tasks import lifecycle

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

SERVICES: Final = ("gateway", "cortex", "memory", "scheduler", "executor", "delivery")
TARGETS: Final = (*SERVICES, "broker")
KILLS = 60
PEOPLE = 3
PATIENCE_S: Final = 150.0
POINTS: Final = {
    "gateway": ("gateway.message.before_publish", "gateway.message.after_publish"),
    "cortex": (
        "cortex.event.read", "cortex.commit.before", "cortex.commit.after",
        "cortex.wake.before_ack",
    ),
    "executor": (
        "executor.spawn.after", "executor.tell.after", "executor.board.after",
        "executor.call.claimed", "executor.call.answered", "executor.tell_person.after",
        "executor.turn.before_ack",
    ),
    "scheduler": ("scheduler.schedule.after",),
    "delivery": ("delivery.claim.before", "delivery.claim.after", "delivery.turn.before_ack"),
}  # fmt: skip
"""Where services are killed on the way from a yes over the errand to the home."""
SHORT_POINTS: Final = {
    "gateway": ("gateway.message.after_publish",),
    "cortex": ("cortex.commit.after",),
    "executor": ("executor.call.answered", "executor.board.after", "executor.tell_person.after"),
    "scheduler": ("scheduler.schedule.after",),
    "delivery": ("delivery.claim.after",),
}
"""One of each step of that way; at the others, the short forms of others kill their services."""
SHORT_REQUESTS, LONG_REQUESTS = 3, 8
"""Requests that wait for a yes when the kills begin; services that are left with a point die in
further evenings."""
SETTINGS: Final = {
    "VIGIL_MODEL": "claude-sonnet-5-5",
    "ANTHROPIC_API_KEY": "sk-ant-test-key",
    "VIGIL_MEMORY__RECALL_TOKENS": "0",
    "VIGIL_MEMORY__PAUSE_S": "0",
    "VIGIL_MODEL__TOOL_TIMEOUT_S": "100",
    "VIGIL_AUTONOMY__COOLDOWN_MS": "0",
    "VIGIL_AUTONOMY__MAX_CONSECUTIVE": "1000",
}


class Storm:
    """Kills by the dice; every target at least once."""

    def __init__(self, broker: Broker, processes: Processes, seed: int, kills: int) -> None:
        self._broker = broker
        self._processes = processes
        self._random = Random(seed)
        more = (self._random.choice(TARGETS) for _ in range(kills - len(TARGETS)))
        self.targets = [*TARGETS, *more]
        self._random.shuffle(self.targets)

    async def rage(self) -> None:
        for target in self.targets:
            # Where in an evening a kill falls is up to chance.
            await asyncio.sleep(self._random.uniform(0.1, 2.5))
            if target == "broker":
                self._broker.kill()
            else:
                self._processes.kill(target, away_s=self._random.uniform(0.0, 0.5))


async def spend(evening: Evening) -> None:
    """Let somebody have an evening, from the question to what came of the yes."""
    await ask_for(evening)
    await agree(evening)


async def ask_for(evening: Evening) -> None:
    """Let them have one up to the request."""
    await evening.allow()
    await evening.look_up()
    await evening.findings()
    await evening.task("wait")
    await evening.let_run()
    await evening.done()
    await evening.said_at_home(f"accept {evening.request['name']}")


async def agree(evening: Evening) -> None:
    await evening.accept()
    await evening.decided()


async def live(user: str, http: httpx2.AsyncClient, over: asyncio.Task[None]) -> list[Evening]:
    """Spend one evening after the other for as long as things are killed."""
    evenings: list[Evening] = []
    while not evenings or not over.done():
        evenings.append(Evening(http, user, f"e{len(evenings)}", PATIENCE_S))
        await spend(evenings[-1])
    await evenings[-1].told_of_errands(len(evenings))
    return evenings


class Scene:
    """The broker in this process, each service as one of its own, and people."""

    def __init__(self, broker: Broker, admin: Bus, home: Path, environment: dict[str, str]) -> None:
        self.broker = broker
        self._admin = admin
        self._home = home
        self._environment = environment
        self.processes = Processes(home, environment)
        self.clients: dict[str, httpx2.AsyncClient] = {}

    async def begin(self, plan: Mapping[str, Sequence[str]]) -> None:
        """Start the services, to end at the points of a plan."""
        for service in SERVICES:
            steps = [Step(point=point) for point in plan.get(service, ())]
            self.processes.start(service, steps)
        await has_offered(self._admin)

    async def begin_again(self, plan: Mapping[str, Sequence[str]]) -> None:
        """Let others take the place of all services."""
        await self.processes.stop()
        self.processes = Processes(self._home, self._environment)
        await self.begin(plan)

    async def judged(self, evenings: list[Evening]) -> dict[str, int]:
        """Check what came of them; nothing is killed any more."""
        self.processes.check()
        counts = await judged(self._admin, evenings, settings_of(self._home).workspaces)
        assert self.processes.faults() == []
        return counts

    async def end(self) -> None:
        for one in self.clients.values():
            await one.aclose()
        await self.processes.stop()
        await self._admin.close()


@asynccontextmanager
async def running(home: Path, people: int) -> AsyncIterator[Scene]:
    port = free_port()
    ensure_home(settings_of(home))
    async with (
        running_web(has_pages=False) as web,
        messages_api(attend) as api,
        running_broker(home) as broker,
    ):
        broker.watch()
        admin = await broker.admin()
        environment = ENVIRONMENT | SETTINGS | {
            "ANTHROPIC_BASE_URL": api.url, "NATS_URL": broker.url,
            "VIGIL_PORT": str(port), "VIGIL_SEARCH__URL": web.url,
        }  # fmt: skip
        scene = Scene(broker, admin, home, environment)
        try:
            for user in (f"u{number}" for number in range(people)):
                scene.clients[user] = await client(admin, port, user)
            await scene.begin({})
            yield scene
        finally:
            await scene.end()


@pytest.mark.long
async def test_evenings_survive_random_kills(tmp_path: Path, seed: int) -> None:
    """Each message is told once, each task moved once, each use counted once, no request lost."""
    async with running(tmp_path, PEOPLE) as scene:
        storm = Storm(scene.broker, scene.processes, seed, KILLS)
        raging = asyncio.create_task(storm.rage())
        lives = await asyncio.gather(*(live(*one, raging) for one in scene.clients.items()))
        await raging
        counts = await scene.judged([one for found in lives for one in found])
        print(f"\nevenings (seed {seed}): {KILLS} kills {dict(Counter(storm.targets))}; {counts}")


async def test_a_yes_is_carried_out_and_told_once_whoever_dies_where(
    tmp_path: Path, is_long: bool
) -> None:
    """L-9, L-12: from the yes over the errand to the home, at each point of each service."""
    async with running(tmp_path, 1) as scene:
        ((user, http),) = scene.clients.items()
        requests = LONG_REQUESTS if is_long else SHORT_REQUESTS
        evenings = [Evening(http, user, f"e{n}", PATIENCE_S) for n in range(requests)]
        await asyncio.gather(*map(ask_for, evenings))
        plan = POINTS if is_long else SHORT_POINTS
        await scene.begin_again(plan)
        over = asyncio.create_task(scene.processes.plans_over(PATIENCE_S))
        for count, evening in enumerate(evenings, 1):
            await agree(evening)
            await evening.told_of_errands(count)
        while not over.done() and len(evenings) < LONG_REQUESTS:
            evenings.append(Evening(http, user, f"e{len(evenings)}", PATIENCE_S))
            await spend(evenings[-1])
            await evenings[-1].told_of_errands(len(evenings))
        await over
        await scene.judged(evenings)
        exits = scene.processes.exits
        ends = {one.crash_at.partition(":")[0] for one in exits if one.is_crash}
        assert ends == {point for points in plan.values() for point in points}


async def client(admin: Bus, port: int, user: str) -> httpx2.AsyncClient:
    token = await tokens.create(admin, user=user, now=datetime.now(UTC))
    return httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {token}"},
        timeout=10.0,
    )  # fmt: skip


# ---------------------------------------------------------------- the judgement


async def judged(admin: Bus, evenings: list[Evening], workspaces: Path) -> dict[str, int]:
    """Check all that the logs and the files say; return how much there was."""
    tasks = await _check_moves(admin)
    turns = [decode_turn(m.data) for m in await admin.read("SYSTEM", [TURNS_OF_ALL_SYSTEM])]
    used = await _check_uses(turns, evenings, workspaces)
    unknown = await _check_errands(admin, evenings, workspaces)
    homes = {one.home for one in evenings}
    said = sum([await _check_said(admin, home, evenings) for home in homes])
    return {"evenings": len(evenings), "tasks": tasks, "uses": used, "said at home": said,
            "unknown": unknown}  # fmt: skip


async def _check_moves(admin: Bus) -> int:
    """Each task goes by the moves that there are, and is done at most once."""
    board = KeptBoard(admin, TASKS)
    found = [
        board.read(message) for message in await admin.read("BOARD", [board_of(ANYBODY, "task")])
    ]
    now: dict[str, Any] = {}
    done: Counter[str] = Counter()
    for one in filter(None, found):
        before = now.get(one.entity.id)
        if before is not None and before.status != one.entity.status:
            lifecycle.check_move(before.status, one.entity.status)
            done[one.entity.id] += one.entity.status == "done"
        now[one.entity.id] = one.entity
    titles = Counter((one.owner, one.title) for one in now.values())
    assert set(titles.values()) == {1}, titles
    assert set(done.values()) <= {0, 1}
    assert all(one.status == ("done" if one.title.startswith("run") else "pending_approval")
               for one in now.values())  # fmt: skip
    return len(now)


async def _check_uses(turns: list[Turn], evenings: list[Evening], workspaces: Path) -> int:
    """Each call that the grant let through is counted once, and ran at most once."""
    calls = [e for turn in turns for e in turn.effects if isinstance(e, CallTool)]
    granted = {call.id for call in calls if call.payload.grant_id}
    grants = {one.home: (await one.allow())["uses"] for one in evenings}
    assert sum(grants.values()) <= len(granted)
    assert runs(workspaces, "granted") <= sum(grants.values())
    return sum(grants.values())


async def _check_errands(admin: Bus, evenings: list[Evening], workspaces: Path) -> int:
    """Each request led to one errand; its call ran once, or it is said that nobody knows.

    Returns:
        of how many nobody knows.
    """
    starts = await _errands(admin, "control")
    begun = Counter(
        one.session_key for one in starts if isinstance(one, Control) and one.payload.op == "start"
    )
    assert set(begun.values()) == {1}, begun
    assert len(begun) == len(evenings)
    results = [
        one for one in await _errands(admin, "tool_result") if isinstance(one, ToolResultEvent)
    ]
    assert Counter(one.session_key for one in results) == begun
    unknown = [one for one in results if one.payload.is_error]
    assert all("ambiguous" in one.payload.content for one in unknown), unknown
    ran = [_runs(workspaces, one) for one in evenings]
    assert max(ran) <= 1, "a command ran twice"
    assert len(results) - len(unknown) <= sum(ran)
    return len(unknown)


def _runs(workspaces: Path, evening: Evening) -> int:
    """Return how often what was asked for ran."""
    asked = command("asked", f"{evening.name}-1").split()[-1].rpartition("-")[0]
    return runs(workspaces / "vigil" / evening.home.partition(":")[0], asked)


async def _errands(admin: Bus, kind: str) -> list[Event]:
    """Return all events of a kind that errands got."""
    found = await admin.read("SYSTEM", [f"system.*.*.*.in.{kind}"])
    events = [decode_event(message.data) for message in found]
    return [one for one in events if SessionKey.parse(one.session_key).kind == "errand"]


async def _check_said(admin: Bus, home: str, evenings: list[Evening]) -> int:
    """What the home was told is said once; of each evening what it must be told is there."""
    key = SessionKey.parse(home)
    told = [decode_event(m.data) for m in await admin.read("SESSIONS", [key.in_event("told.*")])]
    assert max(Counter(event.id for event in told).values()) == 1
    texts = [decode_said(m.data).text for m in await admin.read("SESSIONS", [key.out_said("*")])]
    for evening in evenings:
        if evening.home == home:
            asked, done = evening.request["id"], f"vigil tasks show {evening.begun['id'][:8]}"
            told = [text.startswith(spoken.UNREAD) for text in texts if asked in text]
            assert sorted(told) == [False, True], (asked, texts)
            assert [done in text for text in texts].count(True) == 1, (done, texts)
    over = [event.session_key for event in await _errands(admin, "control")]
    of_home = {one for one in over if one.startswith(home.partition("main")[0])}
    for one in of_home:
        assert [one in text for text in texts].count(True) == 1, (one, texts)
    return len(texts)
