"""What a person set for themselves, over what vigil.toml says of them; it holds without a restart.

One entry per person in the bucket CONFIG, which each service watches (`Switches`). It changes by
compare-and-set, and tells who changed it, and when.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec.structs import replace

from ..bus.bus import Bus
from ..bus.kv import KeyValue
from ..contracts import SOCKET, Instant
from ..errors import ConfigError, InvalidInput
from ..subjects import token_of
from ..words.nearest import did_you_mean
from ..zones import moments
from ..zones.database import refusal_of, zone_named
from .hours import PARSED, pause_of
from .sections import LANGUAGE, Person

BUCKET: Final = "CONFIG"
PREFIX: Final = "person."
Name = Literal["timezone", "language", "quiet_hours", "channel", "digest_at", "pause"]
"""What a person may set."""
NAMES: Final[tuple[Name, ...]] = get_args(Name)
CALLS_MAX: Final = 16


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
    pause: str | None = None
    at: Instant
    """Later than any before."""
    by: str
    calls: tuple[str, ...] = ()
    """The newest tool calls that changed them: one that comes again changes nothing, whatever was
    set since."""


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
    if person.channel and person.channel not in known:
        hint = did_you_mean(person.channel, known)
        raise InvalidInput("channel", f"must be one of {', '.join(known)}{hint}")
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


async def standing(bus: Bus, user: str, configured: Person) -> Person:
    """Return what holds for a person now. Raises: InvalidInput, Unavailable."""
    return over(configured, (await find(bus, user)).own)


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


def has_run(found: StoredSettings, call: str) -> bool:
    """Whether a tool call changed them before."""
    return found.own is not None and call in found.own.calls


def is_so(found: StoredSettings, wanted: Mapping[str, str | None]) -> bool:
    """Whether that is what they set already."""
    return all(values(found.own).get(name) == one for name, one in wanted.items())


def changed(
    found: StoredSettings,
    wanted: Mapping[str, str | None],
    now: datetime,
    by: str,
    configured: Person,
    channels: Iterable[str],
    call: str = "",
) -> OwnSettings:
    """Return what holds after a change; a pause that is over goes.

    Args:
        wanted: by name; None: as configured again.
        channels: those that there are.
        call: the tool call that changes it, if one does.

    Raises:
        InvalidInput: a value can't be used; it names the field.
    """
    if reason := refusal_of(wanted.get("timezone") or "UTC"):
        raise InvalidInput("timezone", reason)
    at = now if found.own is None else max(now, found.own.at + timedelta(microseconds=1))
    before = over(configured, found.own)
    kept = {
        n: one for n, one in values(found.own).items() if n != "pause" or not _is_over(before, now)
    }
    calls = () if found.own is None else found.own.calls
    calls = (*calls, call)[-CALLS_MAX:] if call else calls
    # A channel that was taken out since is no reason to refuse something else.
    wanted = {**wanted, **_pause(wanted, kept, configured, now)}
    known = (*channels, *([] if "channel" in wanted else [kept.get("channel") or SOCKET]))
    own = check(OwnSettings(**{**kept, **wanted}, at=at, by=by, calls=calls), known)
    after = over(configured, own)
    if wanted.get("pause") and _is_over(after, now):
        raise InvalidInput("pause", f"{after.pause!r} is over already")
    return own


def _pause(
    wanted: Mapping[str, str | None], kept: Mapping[str, Any], configured: Person, now: datetime
) -> dict[str, str]:
    """Return the pause as it is kept, if it is said by the person's clocks: ``tomorrow 9:00``."""
    said, zone = wanted.get("pause"), wanted.get("timezone", kept.get("timezone"))
    local = zone_named(zone or configured.timezone)
    wall = moments.wall_of("pause", said, now, local) if said else None
    return {} if wall is None else {"pause": wall.isoformat(timespec="minutes")}


def _is_over(person: Person, now: datetime) -> bool:
    until = pause_of(person)
    return until is not None and until <= now
