"""Whether an agent is paused: for everybody, or for one person (LOOPS L-5).

One entry of the bucket CONFIG each. What ends a pause is written, and nothing removed: what a pause
put off is looked at again as it changes, so the moment of the change has to be known.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec
import structlog

from ..bus.bus import Bus
from ..bus.kv import KeyValue
from ..contracts import Instant
from ..contracts.base import NEVER
from ..errors import WrongLastSequence
from ..subjects import Scope, token_of

log = structlog.get_logger("vigil.switches")

BUCKET: Final = "CONFIG"
PREFIX: Final = "agent."
ALL: Final = "all"
OWNERS_MAX: Final = 4096
"""Whose keys are remembered: each is a hash, and asked for several times a message."""


class AgentPause(msgspec.Struct, frozen=True, kw_only=True):
    """The switch of an agent, as it was last set."""

    is_on: bool
    """Whether it is paused."""
    at: Instant
    by: str


def key_of(agent: str, owner: str | None) -> str:
    """Return where the switch stands.

    Args:
        owner: for whom; None: for everybody.
    """
    return f"{PREFIX}{agent}.{ALL if owner is None else token_of('person', owner)}"


@lru_cache(maxsize=OWNERS_MAX)
def _keys(whose: Scope) -> tuple[str, str]:
    """Return where the switches stand that hold for an owner: for everybody, and for them."""
    return key_of(whose.agent, None), key_of(whose.agent, whose.owner)


class AgentPauses:
    """The switches of agents as they are now."""

    def __init__(self) -> None:
        self._set: dict[str, AgentPause] = {}

    def take(self, key: str, value: bytes | None) -> None:
        """Know what an entry holds; None or empty: it is gone."""
        if not value:
            self._set.pop(key, None)
            return
        try:
            found, known = msgspec.json.decode(value, type=AgentPause), self._set.get(key)
            if known is None or known.at <= found.at:  # it may have been asked for before
                self._set[key] = found
        except msgspec.MsgspecError as error:
            # Fail closed: somebody wanted a pause, whatever they wrote.
            log.error("switch unreadable", action="switches.unreadable", error=str(error))
            self._set[key] = AgentPause(is_on=True, at=NEVER, by="unreadable")

    def of(self, whose: Scope) -> AgentPause | None:
        """Return the pause that an agent is in for an owner; None: it is in none."""
        if not self._set:
            return None
        return next((one for one in self._both(whose) if one.is_on), None)

    def changed_at(self, whose: Scope) -> datetime:
        """Return when its switches were last set; `NEVER`: nobody did."""
        if not self._set:
            return NEVER
        return max((one.at for one in self._both(whose)), default=NEVER)

    def shown_to(self, user: str) -> list[tuple[str, str | None, AgentPause]]:
        """Return the agents that are paused for everybody, or for that user: each, for whom (None:
        for everybody), and since when."""
        owners = {ALL: None, token_of("person", user): user}
        found: list[tuple[str, str | None, AgentPause]] = []
        for key, one in sorted(self._set.items()):
            agent, _, of = key.removeprefix(PREFIX).partition(".")
            if of in owners and one.is_on:
                found.append((agent, owners[of], one))
        return found

    def _both(self, whose: Scope) -> list[AgentPause]:
        return [self._set[key] for key in _keys(whose) if key in self._set]


async def put(
    bus: Bus, agent: str, owner: str | None, *, is_on: bool, at: datetime, by: str
) -> AgentPause:
    """Set a switch, on every replica.

    Args:
        owner: for whom; None: for everybody.
        at: the moment (aware UTC); it's stored as later than any before.

    Raises:
        Unavailable: no answer from the broker, or others were always faster.
    """
    key = key_of(agent, owner)
    pause = AgentPause(is_on=is_on, at=at, by=by)

    def switched(value: bytes | None) -> bytes:
        nonlocal pause
        before = AgentPauses()
        before.take(key, value)
        later = before.changed_at(Scope(agent, owner or "")) + timedelta(microseconds=1)
        pause = AgentPause(is_on=is_on, at=max(at, later), by=by)
        return msgspec.json.encode(pause)

    await KeyValue(bus, BUCKET).revise(key, switched)
    return pause


async def refresh(bus: Bus, pauses: AgentPauses, whose: Scope) -> None:
    """Know the switches of an agent by now. Raises: Unavailable."""
    for key in _keys(whose):
        entry = await KeyValue(bus, BUCKET).get(key)
        pauses.take(key, None if entry is None else entry.value)


async def forget(bus: Bus, user: str) -> None:
    """Remove what a person paused for themselves, and their name from what they paused for all."""
    while not await _forget(bus, user):
        pass


async def _forget(bus: Bus, user: str) -> bool:
    """Do so; whether nobody set a switch meanwhile that names them."""
    is_done = True
    for message in await bus.read(f"KV_{BUCKET}", [f"$KV.{BUCKET}.{PREFIX}>"]):
        key = message.subject.removeprefix(f"$KV.{BUCKET}.")
        if key.endswith(f".{token_of('person', user)}"):
            if message.data:
                await KeyValue(bus, BUCKET).delete(key)
            continue
        try:
            pause = msgspec.json.decode(message.data, type=AgentPause)
        except (msgspec.MsgspecError, ValueError):
            continue
        if pause.by == user:
            unnamed = msgspec.json.encode(msgspec.structs.replace(pause, by="somebody erased"))
            try:
                await KeyValue(bus, BUCKET).put(key, unnamed, expect=message.seq)
            except WrongLastSequence:
                is_done = False
    return is_done
