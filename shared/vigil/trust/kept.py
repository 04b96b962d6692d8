"""Which sources people trust now: the entries of the bucket CONFIG that say so."""

from __future__ import annotations

from typing import Final

import msgspec
import structlog

from ..bus.bus import Bus
from ..bus.kv import KeyValue
from ..subjects import Scope, token_of
from .sources import PREFIX, Trusted, key_of, of_owner

log = structlog.get_logger("vigil.switches")

BUCKET: Final = "CONFIG"


class TrustedSources:
    """What is trusted now, by everybody."""

    def __init__(self) -> None:
        self._known: dict[str, Trusted] = {}

    def take(self, key: str, value: bytes | None) -> None:
        """Know what an entry holds; None or empty, or what can't be read: nothing is trusted."""
        try:
            found = msgspec.json.decode(value, type=Trusted) if value else None
        except msgspec.MsgspecError as error:
            log.error("switch unreadable", action="switches.unreadable", error=str(error))
            found = None
        # What stands elsewhere than it says was put there by nobody who knows the form.
        if found is not None and key_of(Scope(found.agent, found.owner), found.source) == key:
            self._known[key] = found
        else:
            self._known.pop(key, None)

    def know(self, trusted: Trusted) -> None:
        """Know it at once, where it was stored."""
        self._known[key_of(Scope(trusted.agent, trusted.owner), trusted.source)] = trusted

    def forget(self, trusted: Trusted) -> None:
        """Likewise, where it was removed."""
        self._known.pop(key_of(Scope(trusted.agent, trusted.owner), trusted.source), None)

    def has(self, whose: Scope, source: str) -> bool:
        """Whether an owner trusts exactly that source, with an agent."""
        found = self._known.get(key_of(whose, source)) if self._known and source else None
        return found is not None and found.source == source

    def of(self, whose: Scope) -> list[Trusted]:
        """Return what an owner trusts with an agent, by name."""
        found = [one for key, one in self._known.items() if key.startswith(of_owner(whose))]
        return sorted(found, key=lambda one: one.source)


async def add(bus: Bus, trusted: Trusted) -> None:
    """Have a source trusted, on every replica."""
    key = key_of(Scope(trusted.agent, trusted.owner), trusted.source)
    await KeyValue(bus, BUCKET).put(key, msgspec.json.encode(trusted))


async def remove(bus: Bus, whose: Scope, source: str) -> bool:
    """End that a source is trusted; whether it was."""
    bucket, key = KeyValue(bus, BUCKET), key_of(whose, source)
    if await bucket.get(key) is None:
        return False
    await bucket.delete(key)
    return True


async def forget(bus: Bus, user: str) -> None:
    """Remove what a person trusted."""
    person = f"{PREFIX}{token_of('person', user)}."
    for message in await bus.read(f"KV_{BUCKET}", [f"$KV.{BUCKET}.{PREFIX}>"]):
        key = message.subject.removeprefix(f"$KV.{BUCKET}.")
        if message.data and key.startswith(person):
            await KeyValue(bus, BUCKET).delete(key)
