"""What a person set for themselves, over what vigil.toml says of them; it holds without a restart.

One entry per person in the bucket CONFIG, which each service watches (`Switches`). It changes by
compare-and-set, and tells who changed it, and when.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from ..bus.bus import Bus
from ..bus.kv import KeyValue
from ..contracts import SOCKET, Instant
from ..errors import ConfigError, InvalidInput
from ..subjects import token_of
from .hours import digest_time_of, quiet_hours_of, zone_of
from .sections import LANGUAGE, Person

BUCKET: Final = "CONFIG"
PREFIX: Final = "person."
NAMES: Final = ("timezone", "language", "quiet_hours", "channel", "digest_at")
"""What a person may set."""
PARSED: Final[dict[str, Callable[[Person], object]]] = {
    "timezone": zone_of,
    "quiet_hours": quiet_hours_of,
    "digest_at": digest_time_of,
}


def hash_of(user: str) -> str:
    """Return what stands for a person's name in a key, which outlives what was stored under it."""
    return token_of("person", user)


class OwnSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is set; None: as configured."""

    timezone: str | None = None
    language: str | None = None
    quiet_hours: str | None = None
    channel: str | None = None
    digest_at: str | None = None
    at: Instant
    by: str


class StoredSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is set, and its revision; 0: nothing ever was."""

    own: OwnSettings | None = None
    revision: int = 0


def over(configured: Person, own: OwnSettings | None) -> Person:
    """Return what holds for a person.

    >>> from datetime import UTC
    >>> own = OwnSettings(timezone="Asia/Tokyo", at=datetime(2026, 1, 5, tzinfo=UTC), by="ann")
    >>> over(Person(quiet_hours="22:00-07:00"), own).timezone
    'Asia/Tokyo'
    """
    return configured if own is None else replace(configured, **values(own))


def values(own: OwnSettings | None) -> dict[str, str]:
    """Return what is set, by name."""
    found = {name: getattr(own, name, None) for name in NAMES}
    return {name: value for name, value in found.items() if value is not None}


def check(own: OwnSettings, channels: Iterable[str]) -> OwnSettings:
    """Return it, if each value can be used. Raises: InvalidInput, naming the field."""
    person = over(Person(), own)
    for field, parse in PARSED.items():
        try:
            parse(person)
        except ConfigError as error:
            raise InvalidInput(field, str(error).removeprefix(f"{field} ")) from error
    if not re.fullmatch(LANGUAGE, person.language):
        raise InvalidInput("language", f"{person.language!r} is no language tag, as de-AT")
    known = (SOCKET, *channels)
    if person.channel not in known:
        raise InvalidInput("channel", f"there is: {', '.join(known)}")
    return own


def read(data: bytes) -> OwnSettings:
    """Return what an entry holds. Raises: InvalidInput."""
    try:
        own = msgspec.json.decode(data, type=OwnSettings)
    except (msgspec.MsgspecError, ValueError) as error:
        raise InvalidInput("person", str(error)) from error
    return check(own, () if own.channel is None else (own.channel,))


async def find(bus: Bus, user: str) -> StoredSettings:
    """Return what a person set. Raises: InvalidInput, Unavailable."""
    entry = await KeyValue(bus, BUCKET).get(PREFIX + hash_of(user))
    if entry is None:
        return StoredSettings()
    return StoredSettings(own=read(entry.value), revision=entry.revision)


async def put(bus: Bus, user: str, own: OwnSettings, *, expect: int) -> StoredSettings:
    """Store what a person set.

    Args:
        expect: the revision that was read; 0: there is none.

    Raises:
        WrongLastSequence: there is a newer one.
    """
    bucket, key, data = KeyValue(bus, BUCKET), PREFIX + hash_of(user), msgspec.json.encode(own)
    if expect:
        return StoredSettings(own=own, revision=await bucket.put(key, data, expect=expect))
    return StoredSettings(own=own, revision=await bucket.create(key, data))


async def forget(bus: Bus, user: str) -> None:
    """Remove what a person set."""
    bucket, key = KeyValue(bus, BUCKET), PREFIX + hash_of(user)
    if await bucket.get(key) is not None:
        await bucket.delete(key)


def changed(
    found: StoredSettings, wanted: dict[str, str | None], now: datetime, by: str
) -> OwnSettings:
    """Return what holds after a change; None: as configured again."""
    return OwnSettings(**{**values(found.own), **wanted}, at=now, by=by)
