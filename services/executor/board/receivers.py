"""Who is told what comes of a row, and what the row is called there."""

from __future__ import annotations

import contextlib

from vigil.bus.bus import Bus
from vigil.contracts import SlotRun, ToldEvent, encode
from vigil.errors import InvalidInput, WrongLastSequence
from vigil.minds import KIND as MIND
from vigil.minds import mind_of
from vigil.observe import trace
from vigil.settings.config import Config
from vigil.settings.homes import homes_of
from vigil.settings.switches import has_mind
from vigil.subjects import SessionKey
from vigil.teams import TEAM
from vigil.timetable.check import is_channel

from .. import work


def homes_for(config: Config, key: SessionKey, slot: SlotRun) -> tuple[SessionKey, ...]:
    """Return who is told: the conversation that the row names, or the mind, if there is one that is
    on; else its owner's home.

    Raises:
        InvalidInput: it's none of the same person.
    """
    if slot.target == MIND and has_mind(config, key.agent):
        return (mind_of(key.scope),)
    if slot.target == MIND or not slot.target or is_channel(slot.target):
        return homes_of(config, key)
    found = work.relative_of(key, slot.target)
    if found.is_system:
        raise InvalidInput("target", f"{found} is no conversation")
    return (found,)


def reaches_one(config: Config, key: SessionKey, slot: SlotRun) -> bool:
    """Whether one conversation is told, or the mind, and not each member of a team at home: what
    one of them wrote for the team, the name of a row even, orders nothing there."""
    if key.user != TEAM:
        return True
    if slot.target == MIND:
        return has_mind(config, key.agent)
    return bool(slot.target) and not is_channel(slot.target)


def called(slot: SlotRun, *, is_for_one: bool) -> str:
    """Return what a row is called where that is told (`reaches_one`)."""
    return slot.name if is_for_one else slot.row[:8]


def channel_of(slot: SlotRun) -> str:
    """Return the channel that a row is told through; empty: as other messages unasked."""
    return slot.target if is_channel(slot.target) else ""


async def put(bus: Bus, event: ToldEvent, name: str) -> None:
    """Store what a conversation is told, once under that name. Raises: Unavailable."""
    home = SessionKey.parse(event.session_key)
    headers = {trace.HEADER: trace.passed_on(trace.current.get())}
    with contextlib.suppress(WrongLastSequence):  # told before
        await bus.publish(home.in_event(f"told.{name}"), encode(event), headers, expect=0)
