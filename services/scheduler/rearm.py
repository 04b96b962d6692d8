"""Making schedules again after a restore: read what waits, store what TIMERS lacks.

Asked for by a mark in CONFIG, which goes only when all is stored, so that a kill in the middle
begins it anew. Storing a schedule twice replaces it by itself.
"""

from __future__ import annotations

from typing import Final

import structlog

from vigil import crash
from vigil.backup import rearm
from vigil.bus.bus import Bus, Message
from vigil.contracts import decode_turn
from vigil.errors import InvalidInput
from vigil.subjects import TURNS_OF_ALL_SESSIONS, TURNS_OF_ALL_SYSTEM

from . import decide
from .expected import may_wait, open_schedules
from .promotion import Promoter
from .store import TimerStore

log = structlog.get_logger("vigil.scheduler")

TURNS: Final = {"SESSIONS": TURNS_OF_ALL_SESSIONS, "SYSTEM": TURNS_OF_ALL_SYSTEM}


async def make_again(bus: Bus, store: TimerStore, promoter: Promoter) -> None:
    """Store the schedules that sessions wait for and TIMERS lacks, if somebody asked for it."""
    mark = await rearm.requested(bus)
    if mark is None:
        return
    count = 0
    layout = await bus.layout()
    for name, turns in TURNS.items():
        for stream in layout.streams(name):
            for last in await _last_turns(bus, stream, turns):
                count += await _of_session(store, promoter, last)
    crash.point("scheduler.rearm.before_done")
    await rearm.done(bus, mark)
    log.info("schedules made again", action="scheduler.rearm", count=count)


async def _last_turns(bus: Bus, stream: str, turns: str) -> list[Message]:
    """Return the last turn of each session that may wait for a timer."""
    follower = await bus.follow(stream, [turns], 0)
    found: list[Message] = []
    try:
        for _ in range(follower.waiting):
            message = await anext(follower)
            if _may_wait(message):
                found.append(message)
            if message.pending == 0:
                break
        return found
    finally:
        await follower.close()


def _may_wait(message: Message) -> bool:
    try:
        return may_wait(decode_turn(message.data))
    except InvalidInput:
        return False  # its session finds that out by itself


async def _of_session(store: TimerStore, promoter: Promoter, last: Message) -> int:
    key = decide.session_of(last.subject)
    changes = await store.changes_after(key, 0)
    count = 0
    for scheduled in open_schedules(key, decode_turn(last.data), changes):
        if promoter.agenda.is_known(scheduled.entry.subject):
            continue
        await store.schedule(scheduled.entry, scheduled.effect_id)
        promoter.add(scheduled.entry)
        count += 1
    return count
