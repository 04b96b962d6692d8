"""Hot switches in the bucket CONFIG: what can be changed while everything runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import msgspec
import structlog

from ..bus.bus import Bus
from ..bus.kv import KeyValue, Watch
from ..erasure import mark
from ..erasure.mark import Erasure
from ..errors import InvalidInput
from . import own
from .own import OwnSettings
from .sections import Person

log = structlog.get_logger("vigil.switches")

PAUSED: Final = "paused"


class Paused(msgspec.Struct, frozen=True, kw_only=True):
    """Everything proactive is paused (`vigil pause`)."""

    at: datetime
    by: str


class Switches:
    """The switches as they are now, kept up to date by a watch."""

    def __init__(self) -> None:
        self.paused: Paused | None = None
        self._erasing: frozenset[str] = frozenset()
        self._own: dict[str, OwnSettings] = {}
        self._watch: Watch | None = None
        self._listeners: list[Callable[[], None]] = []

    @classmethod
    async def watch(cls, bus: Bus) -> Switches:
        switches = cls()
        switches._watch = await KeyValue(bus, "CONFIG").watch(switches._on_change)
        return switches

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a switch changed."""
        self._listeners.append(listener)

    @property
    def is_erasing_anybody(self) -> bool:
        return bool(self._erasing)

    def is_erasing(self, user: str) -> bool:
        """Whether that person is being erased: nothing of theirs is touched any more."""
        return bool(self._erasing) and mark.hash_of(user) in self._erasing

    def person(self, user: str, configured: Person) -> Person:
        """Return what holds for a person now."""
        return own.over(configured, self._own.get(own.hash_of(user)) if self._own else None)

    def _on_change(self, key: str, value: bytes | None) -> None:
        if key.startswith(own.PREFIX):
            self._on_person(key.removeprefix(own.PREFIX), value)
            return
        if key.startswith(mark.PREFIX):
            self._on_erasure(key.removeprefix(mark.PREFIX), value)
            return
        if key != PAUSED:
            return
        try:
            self.paused = None if value is None else msgspec.json.decode(value, type=Paused)
        except msgspec.MsgspecError as error:
            # Fail closed: somebody wanted a pause, whatever they wrote.
            log.error("switch unreadable", action="switches.unreadable", error=str(error))
            self.paused = Paused(at=datetime.fromtimestamp(0, UTC), by="unreadable")
        self._tell()

    def _on_person(self, hash_: str, value: bytes | None) -> None:
        self._own.pop(hash_, None)
        if not value:
            return
        try:
            self._own[hash_] = own.read(value)
        except InvalidInput as error:
            log.error("settings unreadable", action="switches.person", error=str(error))

    def _on_erasure(self, hash_: str, value: bytes | None) -> None:
        is_open = False
        if value is not None:
            try:
                is_open = msgspec.json.decode(value, type=Erasure).is_open
            except (msgspec.MsgspecError, ValueError) as error:
                # Fail closed: somebody is to be erased, however far that is.
                log.error("switch unreadable", action="switches.unreadable", error=str(error))
                is_open = True
        before = self._erasing
        self._erasing = before | {hash_} if is_open else before - {hash_}
        if self._erasing != before:
            self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    async def close(self) -> None:
        if self._watch is not None:
            await self._watch.close()


async def pause(bus: Bus, *, at: datetime, by: str) -> None:
    """Pause everything proactive, on every replica."""
    await KeyValue(bus, "CONFIG").put(PAUSED, msgspec.json.encode(Paused(at=at, by=by)))


async def resume(bus: Bus) -> None:
    """End the pause."""
    await KeyValue(bus, "CONFIG").delete(PAUSED)
