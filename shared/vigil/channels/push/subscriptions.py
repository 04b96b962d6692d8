"""Which browsers are notified, and of whom: what a browser gave when its person pressed the button.

Entries of the bucket CONFIG, by person and browser. An address is one browser's alone, so it's one
person's: whoever subscribes there last. An entry goes as its person signs out there, with the token
that let them in, as the push service says that it's gone, and with its person.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from ...bus.kv import KeyValue
from ...contracts import Instant
from ...errors import InvalidInput, WrongLastSequence
from ...subjects import token_of

if TYPE_CHECKING:
    from ...bus.bus import Bus

BUCKET: Final = "CONFIG"
PREFIX: Final = "push.browser."
BROWSERS_MAX: Final = 20
"""Of a person."""
READ_S: Final = 5.0
"""An entry that is replaced meanwhile is waited for in vain."""
NAME_LENGTH_MAX: Final = 80


class Subscription(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A browser that is notified."""

    user: str
    endpoint: str
    """The address of its push service for it; whoever has it and the key of this home may send."""
    p256dh: str
    """Its public key, as base64url."""
    auth: str
    """Its secret, likewise."""
    name: str
    """What it is: "Firefox on Linux"."""
    at: Instant
    is_silent: bool = True
    browser_id: str = ""
    """Where its person is signed in to the console with it; empty: it came over the API."""
    token_id: str = ""
    """The hash of the token that let them in."""

    @property
    def id(self) -> str:
        return id_of(self.endpoint)


class StoredSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription, and its revision."""

    subscription: Subscription
    revision: int


def id_of(endpoint: str) -> str:
    """Return the id of a browser: it tells nothing of its address."""
    return hashlib.sha256(endpoint.encode()).hexdigest()[:32]


def _start_of(user: str) -> str:
    return f"{PREFIX}{token_of('person', user)}."


def key_of(one: Subscription) -> str:
    """Return where it stands; names are hashed: they outlive in keys what was stored there."""
    return f"{_start_of(one.user)}{one.id}"


async def of_person(bus: Bus, user: str) -> list[StoredSubscription]:
    """Return a person's browsers, the oldest first. Raises: Unavailable, BusError."""
    return await _read(bus, f"{_start_of(user)}*")


async def everybodys(bus: Bus) -> list[StoredSubscription]:
    """Return all browsers. Raises: Unavailable, BusError."""
    return await _read(bus, f"{PREFIX}>")


async def _read(bus: Bus, keys: str) -> list[StoredSubscription]:
    found: dict[str, StoredSubscription] = {}
    for message in await bus.read(f"KV_{BUCKET}", [f"$KV.{BUCKET}.{keys}"], timeout=READ_S):
        key = message.subject.removeprefix(f"$KV.{BUCKET}.")
        one = _decoded(message.data)
        # What stands elsewhere than it says was put there by nobody who knows the form.
        if one is not None and key_of(one) == key:
            found[key] = StoredSubscription(subscription=one, revision=message.seq)
        else:
            found.pop(key, None)
    return sorted(found.values(), key=lambda each: each.subscription.at)


def _decoded(data: bytes | None) -> Subscription | None:
    try:
        return msgspec.json.decode(data, type=Subscription) if data else None
    except msgspec.MsgspecError:
        return None


async def store(bus: Bus, one: Subscription) -> None:
    """Have a browser notified, for that person and nobody else; harmless to repeat.

    Raises:
        InvalidInput: the person has too many already.
        Unavailable, BusError: nobody knows whether it is stored.
    """
    own = await of_person(bus, one.user)
    if len(own) >= BROWSERS_MAX and all(each.subscription.id != one.id for each in own):
        raise InvalidInput("endpoint", f"you have {BROWSERS_MAX} browsers already; remove one")
    await take_over(bus, one.endpoint, one.user)
    await KeyValue(bus, BUCKET).put(key_of(one), msgspec.json.encode(one))


async def take_over(bus: Bus, endpoint: str, user: str) -> int:
    """Have nobody but that person notified in a browser; return how many were.

    Raises:
        Unavailable, BusError: nobody knows.
    """
    there = await _read(bus, f"{PREFIX}*.{id_of(endpoint)}")
    others = [each for each in there if each.subscription.user != user]
    return sum([await remove(bus, each) for each in others])


async def keep_with(bus: Bus, endpoint: str, user: str, *, browser_id: str, token_id: str) -> None:
    """Have that person's browser end with this sign-in: the one that it came with may be over.

    Raises:
        Unavailable, BusError: nobody knows whether it does.
    """
    for one in await _read(bus, f"{_start_of(user)}{id_of(endpoint)}"):
        kept = msgspec.structs.replace(one.subscription, browser_id=browser_id, token_id=token_id)
        if kept != one.subscription:
            with contextlib.suppress(WrongLastSequence):  # it subscribed anew, or is gone
                value = msgspec.json.encode(kept)
                await KeyValue(bus, BUCKET).put(key_of(kept), value, expect=one.revision)


async def remove(bus: Bus, one: StoredSubscription) -> bool:
    """Have a browser notified no more, unless it subscribed anew since; whether it was removed.

    Raises:
        Unavailable, BusError: nobody knows.
    """
    try:
        await KeyValue(bus, BUCKET).delete(key_of(one.subscription), expect=one.revision)
    except WrongLastSequence:
        return False
    return True


async def remove_where(bus: Bus, is_gone: Callable[[Subscription], bool]) -> int:
    """Remove the browsers for which that holds; return how many. Raises: Unavailable, BusError."""
    count = 0
    for one in await everybodys(bus):
        if is_gone(one.subscription):
            count += await remove(bus, one)
    return count


async def forget(bus: Bus, user: str) -> None:
    """Remove a person's browsers."""
    for one in await of_person(bus, user):
        await remove(bus, one)
