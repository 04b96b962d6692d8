"""Turns with timer effects, put on the bus by hand, and what became of them in the log."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import uuid4

from tests.support.pauses import FIRST_S, pauses
from vigil import contracts
from vigil.bus.bus import Bus, Message
from vigil.contracts import (
    CancelTimer,
    CancelTimerPayload,
    Effect,
    Event,
    ScheduleTimer,
    ScheduleTimerPayload,
    State,
    TimerFired,
    TimerKind,
    Turn,
    decode_event,
    effect_id,
)
from vigil.errors import Unavailable, VigilError
from vigil.observe import trace
from vigil.subjects import SessionKey

IN_TIMER_ALL: Final = "session.*.*.*.in.timer"


def now() -> datetime:
    return datetime.now(UTC)


def after(seconds: float, start: datetime | None = None) -> datetime:
    """Return the instant so many seconds after `start` (now)."""
    return (start or now()) + timedelta(seconds=seconds)


def session(thread: str = "t1", user: str = "ann") -> SessionKey:
    return SessionKey.of(user, "vigil", thread)


def schedule(
    key: SessionKey,
    timer_id: str,
    fire_at: datetime,
    *,
    generation: int = 1,
    kind: TimerKind = "follow_up",
) -> ScheduleTimer:
    payload = ScheduleTimerPayload(
        timer_id=timer_id, generation=generation, fire_at=fire_at, kind=kind
    )
    id_ = effect_id(str(key), generation, 0, "schedule_timer", payload, "")
    return ScheduleTimer(id=id_, ordinal=0, payload=payload)


def cancel(key: SessionKey, timer_id: str, *, generation: int = 1) -> CancelTimer:
    payload = CancelTimerPayload(timer_id=timer_id, generation=generation)
    id_ = effect_id(str(key), generation, 0, "cancel_timer", payload, "")
    return CancelTimer(id=id_, ordinal=0, payload=payload)


def turn_of(key: SessionKey, effects: Sequence[Effect], ordinal: int = 1) -> Turn:
    return Turn(
        id=str(uuid4()),
        session_key=str(key),
        ordinal=ordinal,
        event=None,
        outcome="answered",
        state=State(position=ordinal, turns=ordinal),
        created_at=now(),
        effects=tuple(effects),
    )


async def commit(admin: Bus, key: SessionKey, *effects: Effect) -> int:
    """Store a turn with these effects, as the cortex would; return its sequence."""
    headers = {trace.HEADER: trace.new()}
    data = contracts.encode(turn_of(key, effects))
    return (await admin.publish(key.turn_for("t"), data, headers)).seq


async def fired(admin: Bus, key: SessionKey | None = None) -> list[TimerFired]:
    """Return the timer events in the log, in order."""
    return [event for event, _ in await fired_with_messages(admin, key)]


async def fired_with_messages(
    admin: Bus, key: SessionKey | None = None
) -> list[tuple[TimerFired, Message]]:
    """Return the timer events in the log with their messages, in order."""
    subject = IN_TIMER_ALL if key is None else key.in_event("timer")
    found: list[tuple[TimerFired, Message]] = []
    for message in await admin.read("SESSIONS", [subject]):
        event: Event = decode_event(message.data)
        assert isinstance(event, TimerFired)
        found.append((event, message))
    return found


async def pending(admin: Bus) -> list[Message]:
    """Return what lies in TIMERS: schedules, and what the broker fired.

    Raises: Unavailable, if what was to be read last vanished meanwhile; ask again.
    """
    try:
        async with asyncio.timeout(2):
            return await admin.read("TIMERS", ["timer.>", "due.>"])
    except TimeoutError as error:
        raise Unavailable("TIMERS changed while it was read") from error


async def unread_turns(admin: Bus) -> int:
    """Return how many turns the scheduler has not acknowledged."""
    info = await admin.api("CONSUMER.INFO.SESSIONS.scheduler-turns", {})
    return int(info["num_pending"] + info["num_ack_pending"])


async def until(
    condition: Callable[[], Awaitable[bool]], *, timeout_s: float = 10.0, first_s: float = FIRST_S
) -> None:
    """Wait until `condition` holds; a broker that is away means no.

    Raises: AssertionError, if it never does.
    """
    deadline = asyncio.get_running_loop().time() + timeout_s
    pause_s = pauses(first_s)
    while True:
        with contextlib.suppress(VigilError):
            if await condition():
                return
        assert asyncio.get_running_loop().time() < deadline, "the condition never held"
        await asyncio.sleep(next(pause_s))


async def until_fired(
    admin: Bus, count: int, key: SessionKey | None = None, *, timeout_s: float = 10.0
) -> list[TimerFired]:
    """Wait until so many timer events are stored, and return them."""

    async def enough() -> bool:
        return len(await fired(admin, key)) >= count

    await until(enough, timeout_s=timeout_s)
    return await fired(admin, key)


async def until_settled(admin: Bus, *, timeout_s: float = 10.0) -> None:
    """Wait until every turn is carried out and TIMERS is empty."""

    async def settled() -> bool:
        return await unread_turns(admin) == 0 and not await pending(admin)

    await until(settled, timeout_s=timeout_s)
