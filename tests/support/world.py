"""All services, people who talk to them as clients do, and a clock that the test moves.

With a `StoppedClock` the numbers of the specification (30 s, 15 s, days) are exact and cost
nothing: :meth:`World.advance` moves the clock, makes the scheduler look at it, and waits until
nothing is left to do. Then "it never appears" is a fact about the log, not about patience.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import uuid4

import httpx2
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from services.scheduler.timetable import clock as timetable
from tests.support import timers
from tests.support.agent import Agent
from tests.support.gateway import Gate
from tests.support.pauses import pauses
from tests.support.stack import Stack, running_stack
from tests.support.talk import PATIENCE_S, Talk
from vigil.bus.bus import Bus
from vigil.bus.lease import Leases
from vigil.clock import Clock
from vigil.contracts import AGENT_FOLLOW_UP, Said, TimerFired, decode_event, decode_timer
from vigil.errors import VigilError
from vigil.subjects import SessionKey

T = TypeVar("T")
ANN: Final = "ann:vigil:t1"
_LONG_AGO: Final = datetime(2001, 1, 1, tzinfo=UTC)
SERVICES: Final = ("cortex", "memory", "scheduler", "delivery", "gateway")
_CONSUMERS: Final = {
    "cortex-wake": "SESSIONS",
    "memory-turns": "SESSIONS",
    "scheduler-turns": "SESSIONS",
    "delivery-turns": "SESSIONS",
}
_OF_HANDS: Final = {
    "executor-turns": "SESSIONS",
    "executor-turns-system": "SYSTEM",
    "cortex-wake-system": "SYSTEM",
    "memory-turns-system": "SYSTEM",
    "scheduler-turns-system": "SYSTEM",
}
"""Consumers that have something to do only if there is an executor."""


class StoppedClock:
    """Wall time that stands still until a test moves it; durations are real.

    Unless told otherwise it begins at the next 12:34:56, UTC: ahead of the broker's time by less
    than a day, and the same hour whenever the test runs, so that what is due at an hour of the day
    is due in each run or in none.
    """

    def __init__(self, at: datetime | None = None) -> None:
        now = datetime.now(UTC)
        today = now.replace(hour=12, minute=34, second=56, microsecond=0)
        self._now = at or (today if today > now else today + timedelta(days=1))

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return time.monotonic()

    def move(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


class Person:
    """Somebody with a token, in one session: HTTP, a socket, and the session's log."""

    def __init__(self, world: World, key: str, token: str, http: httpx2.AsyncClient) -> None:
        self.world = world
        self.key = key
        self.token = token
        self.http = http
        self.talk = world.talk(key)
        self.frames: list[dict[str, Any]] = []
        """Messages that arrived on the socket, each with `arrived_at`."""
        self._arrived = asyncio.Event()
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None

    async def connect(self, client: str = "default") -> None:
        """Open a socket that acknowledges what comes."""
        self._socket = await self.world.gate.socket(self.token, self.key, client=client)
        self._reader = asyncio.create_task(self._read(self._socket))

    async def _read(self, socket: ClientConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for data in socket:
                frame = json.loads(data)
                if frame["type"] != "message":
                    continue
                self.frames.append(frame | {"arrived_at": datetime.now(UTC)})
                self._arrived.set()
                await socket.send(json.dumps({"type": "ack", "cursor": frame["cursor"]}))

    async def disconnect(self, *, is_abrupt: bool = False) -> None:
        """Close the socket, or let the connection break."""
        assert self._socket is not None
        assert self._reader is not None
        self._reader.cancel()
        if is_abrupt:
            self._socket.transport.abort()
        await self._socket.close()

    async def say(self, text: str, **keyed: Any) -> int:
        """Post a message; returns its place in the log once it is accepted."""
        answer = await self.http.post(
            f"/api/sessions/{self.key}/messages", json={"text": text} | keyed
        )
        assert answer.status_code == 202, answer.text
        seq: int = answer.json()["seq"]
        return seq

    async def exchange(self, text: str, **keyed: Any) -> None:
        """Post a message and wait until the session has done with it."""
        seq = await self.say(text, **keyed)
        await self.talk.ended(seq)
        await self.world.at_rest()

    async def until_frames(self, count: int) -> list[str]:
        """Wait until so many messages arrived on the socket; returns their texts."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.frames) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return [frame["text"] for frame in self.frames]

    async def until_released(self) -> None:
        """Wait until a cortex has had the session open, and none has."""
        key, admin = self.talk.key, self.world.admin
        leases = Leases(admin, "test")
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while await admin.get_last(key.stream, key.turns) is None:
                await asyncio.sleep(next(pause_s))
            pause_s = pauses()
            while await leases.is_live(key.kv_key):
                await asyncio.sleep(next(pause_s))

    async def transcript(self) -> list[dict[str, Any]]:
        """Read what was said over HTTP."""
        answer = await self.http.get(f"/api/sessions/{self.key}")
        assert answer.status_code == 200, answer.text
        lines: list[dict[str, Any]] = answer.json()["messages"]
        return lines

    async def timers(self) -> dict[str, dict[str, Any]]:
        """Read the open timers over HTTP, by id, soonest first."""
        answer = await self.http.get(f"/api/sessions/{self.key}/timers")
        assert answer.status_code == 200, answer.text
        return {timer["timer_id"]: timer for timer in answer.json()["timers"]}

    @property
    def followed_up(self) -> list[str]:
        """What the agent said because of a timer, by its tag."""
        return [said.text for said in self.talk.said if said.tag == AGENT_FOLLOW_UP]

    @property
    def fired(self) -> list[TimerFired]:
        """The timer events of the session, in order."""
        subject = self.talk.key.in_event("timer")
        events = [decode_event(m.data) for m in self.talk.log if m.subject == subject]
        return [event for event in events if isinstance(event, TimerFired)]

    def said_of(self, text: str) -> Said:
        (found,) = [said for said in self.talk.said if said.text == text]
        return found


class World:
    """The running services, everybody's log, and the clock."""

    def __init__(
        self, gate: Gate, agent: Agent, clock: Clock, services: tuple[str, ...] = SERVICES
    ) -> None:
        self.gate = gate
        self.services = services
        self.stack: Stack = gate.stack
        self.admin: Bus = gate.admin
        self.agent = agent
        self.clock = clock
        self._talks: dict[SessionKey, Talk] = {}
        self._seen: Counter[str] = Counter()
        """The last sequence that came, by partition."""

    async def follow(self) -> None:
        """Hand every record of SESSIONS to the log of its session."""
        async with asyncio.TaskGroup() as group:
            for partition in (await self.admin.layout()).logs:
                group.create_task(self._follow(partition))

    async def _follow(self, partition: str) -> None:
        async for message in await self.admin.follow(partition, ["session.>"], 1):
            self.talk(str(SessionKey.of_subject(message.subject))).take(message)
            self._seen[partition] = message.seq

    def talk(self, key: str) -> Talk:
        """Return the log of a session, whole and growing."""
        parsed = SessionKey.parse(key)
        return self._talks.setdefault(parsed, Talk(self.admin, parsed))

    async def person(self, key: str = ANN, *, has_socket: bool = True) -> Person:
        """Return the user of that session, connected."""
        token = await self.gate.token(SessionKey.parse(key).user)
        person = Person(self, key, token, await self.gate.http(token))
        if has_socket:
            await person.connect()
        return person

    async def admin_client(self) -> httpx2.AsyncClient:
        return await self.gate.person("root", is_admin=True)

    # ------------------------------------------------------------ time

    async def advance(self, seconds: float, *, is_paused: bool = False, without: str = "") -> None:
        """Move the stopped clock, and wait until everything that is due then is done.

        `without` names a service that is stopped, so that what it would do isn't waited for.
        """
        assert isinstance(self.clock, StoppedClock)
        self.clock.move(seconds)
        # Something long overdue elsewhere makes the scheduler look at the clock.
        elsewhere = timers.session(f"n{uuid4().hex}", "nobody")
        nudge = timers.schedule(elsewhere, "nudge", _LONG_AGO, kind="deadline")
        await timers.commit(self.admin, elsewhere, nudge)
        await timers.until_fired(self.admin, 1, elsewhere)
        await self.at_rest(is_paused=is_paused, without=without)

    async def restart(self, *, away_s: float) -> None:
        """Stop every service and kill the broker; start all again `away_s` seconds later."""
        assert isinstance(self.clock, StoppedClock)
        for service in reversed(self.services):
            await self.stack.stop(service)
        old = self.stack.broker.pid
        self.stack.broker.watch()
        self.stack.broker.kill()
        await self.until(lambda: self.stack.broker.pid != old)
        self.clock.move(away_s)
        await self.stack.start(*self.services)

    async def at_rest(self, *, is_paused: bool = False, without: str = "") -> None:
        """Wait until no service has anything left to do at this time."""
        known = _CONSUMERS | (_OF_HANDS if "executor" in self.services else {})
        layout = await self.admin.layout()
        consumers = [
            f"{stream}.{name}"
            for name, log in known.items()
            if not without or not name.startswith(without)
            for stream in layout.streams(log)
        ]
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while not await self._is_at_rest(consumers, is_paused=is_paused):
                await asyncio.sleep(next(pause_s))

    async def _is_at_rest(self, consumers: list[str], *, is_paused: bool) -> bool:
        with contextlib.suppress(VigilError):
            before = await self._last_seqs()
            if before != self._seen:
                return False
            if not is_paused and await self._has_due():
                return False
            for consumer in consumers:
                info = await self.admin.api(f"CONSUMER.INFO.{consumer}", {})
                if info["num_pending"] + info["num_ack_pending"]:
                    return False
            return before == await self._last_seqs() == self._seen
        return False

    async def _last_seqs(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for partition in (await self.admin.layout()).logs:
            info = await self.admin.api(f"STREAM.INFO.{partition}", {})
            found[partition] = info["state"]["last_seq"]
        return found

    async def _has_due(self) -> bool:
        """Return whether TIMERS holds something due; also if that can't be told.

        What is removed while TIMERS is read may be waited for in vain, so the read is bounded.
        """
        now = self.clock.now()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                held = await timers.pending(self.admin)
                return any(decode_timer(message.data).fire_at <= now for message in held)
        return True

    async def until(self, condition: Callable[[], T]) -> T:
        """Wait until `condition` holds, for what no log tells."""
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while not (result := condition()):
                await asyncio.sleep(next(pause_s))
            return result


def assert_folded_once_in_order(person: Person) -> None:
    """Check that each event of the session was folded by exactly one turn, in order (SPEC S-1)."""
    turns = person.talk.turns
    assert [turn.ordinal for turn in turns] == list(range(1, len(turns) + 1))
    positions = list(dict.fromkeys(turn.state.position for turn in turns))
    begin = person.talk.key.root + ".in."
    assert positions == [m.seq for m in person.talk.log if m.subject.startswith(begin)]
    ended = [event_id for turn in turns for event_id in turn.ended]
    assert len(ended) == len(set(ended))


@contextlib.asynccontextmanager
async def running_world(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock | None = None,
    has_agent: bool = True,
    has_hands: bool = False,
    **sections: dict[str, Any],
) -> AsyncIterator[World]:
    """All services, with an :class:`Agent` as the model (or the configured one); the clock stands
    still unless one is given. With `has_hands` also the executor."""
    agent = Agent()
    if has_agent:
        agent.install(monkeypatch)
    if clock is None:
        clock = StoppedClock()
        # The timetable looks at the clock so often, and a test would wait as long for each move.
        monkeypatch.setattr(timetable, "POLL_S", 0.05)
    services = (*SERVICES, "executor") if has_hands else SERVICES
    async with running_stack(home, services, clock, None, **sections) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        world = World(gate, agent, clock, services)
        following = asyncio.create_task(world.follow())
        try:
            yield world
        finally:
            following.cancel()
            await gate.close()
