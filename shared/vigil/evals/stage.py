"""A story as it's played: what happens in it, how time goes on, and the log as it grows."""

from __future__ import annotations

import asyncio
import contextlib
import time
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import msgspec

from ..addressees import is_turn
from ..background.end import end_tasks
from ..bus.bus import Bus, Message
from ..clock import new_id
from ..contracts import Said, Turn, decode_said, decode_timer, decode_turn, encode
from ..contracts.events import (
    Control,
    ControlPayload,
    Decision,
    External,
    ExternalPayload,
    UserMessage,
    UserMessagePayload,
)
from ..errors import VigilError
from ..memory.client import MemoryClient
from ..memory.operations.list import ListMemories
from ..memory.operations.save import Save
from ..settings.config import Settings
from ..subjects import Scope, SessionKey
from ..topology import CONSUMERS

POLL_S: Final = 0.05
STILL_POLLS: Final = 6
"""Looks in a row at which nothing happened, after which time may go on: all services run in this
process, so where the machine is busy they are as late as the looks."""
HOP: Final = timedelta(minutes=30)
HOPS_MAX: Final = 48
"""Time goes on from one timer that is due to the next, and by half an hour at most, or a part of a
long time: what else is due, as a row of the timetable, is late by no more than that."""
_STREAMS: Final = ("SESSIONS", "SYSTEM")
_IGNORED: Final = ("gateway-events", "scheduler-due")
"""Consumers of a service that doesn't run, and one that is late by design."""


class StoryClock:
    """Wall time that stands still until the story moves it; durations are real."""

    def __init__(self, at: datetime) -> None:
        self._now = at

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return time.monotonic()

    def set(self, at: datetime) -> None:
        self._now = max(at, self._now)


class StageOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What stories are played with."""

    settings: Settings
    """Of the person: which models there are, and the keys."""
    agent: str = "vigil"
    tape: Any = None
    """A `Tape` of the cortex, if answers are recorded, or come from a recording (`tape`)."""
    patience_s: float = 600.0
    """So long a step may take in real time."""


class StoryStuck(VigilError):
    """A step of a story came to no end in time."""


class Stage:
    """A story's services, its log as it grows, and its clock."""

    def __init__(
        self, admin: Bus, clock: StoryClock, key: SessionKey, options: StageOptions
    ) -> None:
        self.clock = clock
        self.pages: dict[str, str] = {}
        self.services: list[asyncio.Task[None]] = []
        """They go on for as long as the story does."""
        self.turns: list[Turn] = []
        self.said: list[Said] = []
        self._admin = admin
        self._key = key
        self._options = options
        self._newest: dict[str, Turn] = {}
        self._seen = dict.fromkeys(_STREAMS, 0)
        self._tasks: list[asyncio.Task[None]] = []

    # ------------------------------------------------------------ what happens

    async def say(self, text: str, thread: str) -> None:
        """Store what the person says, as the gateway does."""
        key = self._thread(thread)
        event = UserMessage(
            id=new_id(),
            session_key=str(key),
            created_at=self.clock.now(),
            payload=UserMessagePayload(text=text),
        )
        await self._admin.publish(key.in_user, encode(event), msg_id=event.id)

    async def decide(self, verdict: Literal["accept", "reject"]) -> None:
        """Store the person's verdict on all that waits for one, as the gateway does."""
        asked = [
            (turn.session_key, one)
            for turn in self._newest.values()
            for one in turn.state.approvals.values()
            if one.state == "open"
        ]
        for session, one in asked:
            key = SessionKey.parse(session)
            decision = Decision(
                approval_id=one.id, verdict=verdict, digest=one.digest, by=self._key.user
            )
            event = Control(
                id=new_id(),
                session_key=session,
                created_at=self.clock.now(),
                payload=ControlPayload(op="approval", decision=decision),
            )
            await self._admin.publish(key.in_event("control"), encode(event), msg_id=event.id)

    async def outside(self, source: str, kind: str, content: str) -> None:
        """Store what comes from outside, as the gateway does."""
        event = External(
            id=new_id(),
            session_key=str(self._key),
            created_at=self.clock.now(),
            payload=ExternalPayload(source=source, kind=kind, content=content),
        )
        await self._admin.publish(self._key.in_event("external"), encode(event), msg_id=event.id)

    async def remember(self, content: str) -> None:
        await self._memory(Save(content=content, by=f"user:{self._key.user}", source="story"))

    async def memories(self) -> tuple[str, ...]:
        """Return what the agent remembers now."""
        found: list[str] = []
        after = ""
        while True:
            page = await self._memory(ListMemories(limit=50, after=after))
            found += (one.content for one in page.memories)
            if page.next_after is None:
                return tuple(found)
            after = page.next_after

    @property
    def planned(self) -> tuple[str, ...]:
        """Return the reasons of all follow-ups that are open."""
        turns = self._newest.values()
        return tuple(one.reason for turn in turns for one in turn.state.follow_ups.values())

    # ------------------------------------------------------------ time

    async def settle(self) -> None:
        """Wait until nobody has anything left to do. Raises: StoryStuck."""
        deadline = time.monotonic() + self._options.patience_s
        still = 0
        seen = self._seen.copy()
        while still < STILL_POLLS:
            for service in self.services:
                if service.done():
                    raise StoryStuck(f"{service.get_name()} ended: {service.exception()}")
            if time.monotonic() > deadline:
                raise StoryStuck(f"not done after {self._options.patience_s:g} s")
            # The broker is asked at the first look and the last; in between the log tells enough.
            is_asked = still in (0, STILL_POLLS - 1)
            is_same = seen == self._seen and self._are_sessions_at_rest()
            still = still + 1 if is_same and (not is_asked or await self._is_at_rest()) else 0
            seen = self._seen.copy()
            await asyncio.sleep(POLL_S)

    async def pass_until(self, at: datetime) -> None:
        """Let time go on, with all that is due on the way."""
        hop = max(HOP, (at - self.clock.now()) / HOPS_MAX)
        while self.clock.now() < at:
            due = await self._next_due()
            self.clock.set(min(at, self.clock.now() + hop, *([] if due is None else [due])))
            await self.settle()

    async def _next_due(self) -> datetime | None:
        now = self.clock.now()
        held = [decode_timer(one.data).fire_at for one in await self._timers()]
        return min((one for one in held if one > now), default=None)

    async def _timers(self) -> list[Message]:
        """Return what TIMERS holds; none if it changed meanwhile, since then it's not at rest."""
        with contextlib.suppress(TimeoutError, VigilError):
            async with asyncio.timeout(2):
                return await self._admin.read("TIMERS", ["timer.>"])
        return []

    async def _is_at_rest(self) -> bool:
        with contextlib.suppress(VigilError):
            before = await self._counts()
            if before != self._seen or not self._are_sessions_at_rest():
                return False
            now = self.clock.now()
            if any(decode_timer(one.data).fire_at <= now for one in await self._timers()):
                return False
            for consumer in CONSUMERS:
                if consumer.name in _IGNORED:
                    continue
                path = f"CONSUMER.INFO.{consumer.stream}.{consumer.name}"
                info = await self._admin.api(path, {})
                if info["num_pending"] + info["num_ack_pending"]:
                    return False
            return before == await self._counts() == self._seen
        return False

    def _are_sessions_at_rest(self) -> bool:
        """Whether no exchange is open, but for those that wait for a person. One whose model failed
        is asked again later, and time goes on to then."""
        for turn in self._newest.values():
            loop = turn.state.loop
            if loop is None:
                continue
            if loop.retry is not None and loop.retry.due_at > self.clock.now():
                self.clock.set(loop.retry.due_at)
                return False
            waiting = loop.waiting.calls if loop.waiting else ()
            if not waiting or any(call.service != "person" for call in waiting):
                return False
        return True

    # ------------------------------------------------------------ the log

    async def follow(self) -> None:
        """Begin to follow the log."""
        for stream in _STREAMS:
            self._tasks.append(asyncio.create_task(self._follow(stream), name=f"story-{stream}"))

    async def close(self) -> None:
        await end_tasks(*self._tasks)

    async def _follow(self, stream: str) -> None:
        root = "system" if stream == "SYSTEM" else "session"
        async for message in await self._admin.follow(stream, [f"{root}.>"], 1):
            if is_turn(message.subject):
                self._take(decode_turn(message.data))
            elif message.subject.split(".")[4:6] == ["out", "said"]:
                self.said.append(decode_said(message.data))
            self._seen[stream] = message.seq

    def _take(self, turn: Turn) -> None:
        self.turns.append(turn)
        self._newest[turn.session_key] = turn

    async def _counts(self) -> dict[str, int]:
        infos = [await self._admin.api(f"STREAM.INFO.{name}", {}) for name in _STREAMS]
        return {name: info["state"]["last_seq"] for name, info in zip(_STREAMS, infos, strict=True)}

    def _thread(self, thread: str) -> SessionKey:
        return SessionKey.of(self._key.user, self._key.agent, thread)

    async def _memory(self, question: Any) -> Any:
        scope = Scope.of(self._key.agent, self._key.user)
        return await MemoryClient(self._admin).ask(scope, question, timeout_s=30.0)
