"""Which addresses are whose: a person's own, which they proved by a code; all others are outside.

An address is what a channel's network proves of whom something is: that of a mail, the id of a
user of Matrix; never a name that somebody chose to be shown by. Entries of the bucket CONFIG, by
channel and person. A code is kept as its hash, and holds once, for an hour, and for one address or
for whichever brings it. Who may write the bucket decides who is paired: the operator makes codes
and takes addresses back, the gateway does as well, and takes the message that brings a code.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from ..bus.kv import KeyValue
from ..contracts import Instant
from ..errors import InvalidInput
from ..subjects import token_of

if TYPE_CHECKING:
    from ..bus.bus import Bus

BUCKET: Final = "CONFIG"
PREFIX: Final = "mail.person."
"""Of all channels: it was once mail alone, and what is stored stays where it is."""
PLACE_PREFIX: Final = "mail.place."
"""Begins the keys of how far channels were read: of all, likewise."""
CODE_HOLDS: Final = timedelta(hours=1)
ADDRESSES_MAX: Final = 10
ALPHABET: Final = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""Of codes: nothing that looks like another."""
CODE_LENGTH: Final = 10
READ_S: Final = 5.0
"""An entry that is replaced meanwhile is waited for in vain."""
_CODE: Final = re.compile(rf"\b([{ALPHABET}]{{5}})-([{ALPHABET}]{{5}})\b", re.IGNORECASE)


class PairedAddress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An address that is a person's."""

    address: str
    at: Instant
    room: str = ""
    """Of a network with rooms, the one that is theirs and the agent's alone."""


class PairCode(msgspec.Struct, frozen=True, kw_only=True):
    """A code that makes an address a person's."""

    address: str
    """Empty: of whichever address brings it, where nobody knows theirs by heart."""
    hash: str
    until: Instant


class ChannelPerson(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a person in a channel."""

    user: str
    channel: str
    addresses: tuple[PairedAddress, ...] = ()
    """The newest last."""
    code: PairCode | None = None


# ---------------------------------------------------------------- decisions


def is_same(one: str, other: str) -> bool:
    """Whether two addresses are one: servers of mail may tell the case of names apart, none does;
    Matrix, whose ids begin with @, does.

    >>> is_same("Ann@A.example", "ann@a.EXAMPLE"), is_same("@Ann:a.example", "@ann:a.example")
    (True, False)
    """
    return one == other or (not one.startswith("@") and one.lower() == other.lower())


def user_of(people: Iterable[ChannelPerson], address: str) -> str | None:
    """Return whose address it is; None: nobody's."""
    for person in people:
        if any(is_same(one.address, address) for one in person.addresses):
            return person.user
    return None


def paired_with(person: ChannelPerson | None, wrote_from: str = "") -> PairedAddress | None:
    """Return where a person is reached: at what they wrote from, else what they paired last."""
    if person is None or not person.addresses:
        return None
    same = (one for one in person.addresses if is_same(one.address, wrote_from))
    return next(same, person.addresses[-1])


def address_for(person: ChannelPerson | None, wrote_from: str = "") -> str | None:
    """Return the address of it."""
    found = paired_with(person, wrote_from)
    return None if found is None else found.address


def codes_in(text: str) -> set[str]:
    """Return what of a text may be codes.

    >>> codes_in("my code: abcde-23456.")
    {'ABCDE-23456'}
    """
    return {f"{found[1]}-{found[2]}".upper() for found in _CODE.finditer(text)}


def has_open_code(people: Iterable[ChannelPerson], address: str, now: datetime) -> bool:
    """Whether somebody waits for a code from an address."""
    return any(_waits(one, address, now) for one in people)


def _waits(person: ChannelPerson, address: str, now: datetime) -> bool:
    code = person.code
    if code is None or now >= code.until:
        return False
    return not code.address or is_same(code.address, address)


def paired_by(
    people: Sequence[ChannelPerson], address: str, text: str, now: datetime, room: str = ""
) -> ChannelPerson | None:
    """Return a person as they are with an address that brought their code; None: it didn't."""
    hashes = [hash_of(one) for one in codes_in(text)]
    for person in people:
        code = person.code
        if code is None or not _waits(person, address, now):
            continue
        if user_of(people, address) not in (None, person.user):
            continue
        if any(hmac.compare_digest(code.hash, one) for one in hashes):
            kept = [one for one in person.addresses if not is_same(one.address, address)]
            new = PairedAddress(address=address, at=now, room=room)
            return replace(person, addresses=(*kept, new)[-ADDRESSES_MAX:], code=None)
    return None


def new_code() -> str:
    """Return a code that nobody can guess."""
    letters = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
    return f"{letters[:5]}-{letters[5:]}"


def hash_of(code: str) -> str:
    return token_of("mail code", code)


def key_of(channel: str, user: str) -> str:
    """Return where it stands; names are hashed: they outlive in keys what was stored there."""
    return f"{PREFIX}{token_of('channel', channel)}.{token_of('person', user)}"


# ---------------------------------------------------------------- the bucket


async def people_of(bus: Bus, channel: str) -> list[ChannelPerson]:
    """Return who is paired, or waits for a code, in a channel. Raises: Unavailable, BusError."""
    filters = [f"$KV.{BUCKET}.{PREFIX}{token_of('channel', channel)}.*"]
    return [one for one in await _read(bus, filters) if one.channel == channel]


async def _read(bus: Bus, filters: list[str]) -> list[ChannelPerson]:
    found: dict[str, ChannelPerson] = {}
    for message in await bus.read(f"KV_{BUCKET}", filters, timeout=READ_S):
        person = _decoded(message.data)
        key = message.subject.removeprefix(f"$KV.{BUCKET}.")
        # What stands elsewhere than it says was put there by nobody who knows the form.
        if person is not None and key_of(person.channel, person.user) == key:
            found[key] = person
        else:
            found.pop(key, None)
    return list(found.values())


def _decoded(data: bytes | None) -> ChannelPerson | None:
    try:
        return msgspec.json.decode(data, type=ChannelPerson) if data else None
    except msgspec.MsgspecError:
        return None


async def find(bus: Bus, channel: str, user: str) -> ChannelPerson | None:
    """Return what is known of a person in a channel. Raises: Unavailable."""
    entry = await KeyValue(bus, BUCKET).get(key_of(channel, user))
    return None if entry is None else _decoded(entry.value)


async def ask_for(bus: Bus, channel: str, user: str, address: str, code: str, at: datetime) -> None:
    """Have a code make an address a person's. An older one of theirs no longer does.

    Raises:
        InvalidInput: it is somebody else's already.
        Unavailable: no answer from the broker, or others were always faster.
    """
    owner = user_of(await people_of(bus, channel), address)
    if owner not in (None, user):
        raise InvalidInput("address", "is somebody else's here")
    wanted = PairCode(address=address, hash=hash_of(code), until=at + CODE_HOLDS)
    await _change(bus, channel, user, lambda person: replace(person, code=wanted))


async def store_room(bus: Bus, person: ChannelPerson, address: str, room: str) -> None:
    """Store in which room a person is reached at an address of theirs. Raises: Unavailable."""

    def moved(found: ChannelPerson) -> ChannelPerson:
        known = (
            replace(one, room=room) if is_same(one.address, address) else one
            for one in found.addresses
        )
        return replace(found, addresses=tuple(known))

    await _change(bus, person.channel, person.user, moved)


async def store_paired(bus: Bus, wanted: ChannelPerson) -> None:
    """Store that an address is a person's. Raises: Unavailable, as above."""
    new = wanted.addresses[-1]

    def add(person: ChannelPerson) -> ChannelPerson:
        kept = [one for one in person.addresses if not is_same(one.address, new.address)]
        return replace(person, addresses=(*kept, new)[-ADDRESSES_MAX:], code=None)

    await _change(bus, wanted.channel, wanted.user, add)


class _CodeGone(Exception):
    """A code stands no more: it was used, replaced or taken back meanwhile."""


async def pair(
    bus: Bus,
    people: Sequence[ChannelPerson],
    address: str,
    text: str,
    now: datetime,
    room: str = "",
) -> str | None:
    """Make an address that of whose code it brought; return whose, or None: it brought none.

    A code counts as it stands when that is stored, so it's good once, whoever reads beside us.

    Raises: Unavailable, as above.
    """
    found = paired_by(people, address, text, now, room)
    if found is None:
        return None

    def paired(person: ChannelPerson) -> ChannelPerson:
        new = paired_by([person], address, text, now, room)
        if new is None:
            raise _CodeGone
        return new

    try:
        await _change(bus, found.channel, found.user, paired)
    except _CodeGone:
        return None
    return found.user


async def take_back(bus: Bus, channel: str, user: str, address: str) -> bool:
    """Have an address no longer be a person's, nor become it by a code; whether anything was."""
    before = await find(bus, channel, user)
    if before is None:
        return False

    def without(person: ChannelPerson) -> ChannelPerson:
        kept = tuple(one for one in person.addresses if not is_same(one.address, address))
        code = person.code
        # A code for whoever brings it would be good for that address, too.
        is_asked = code is not None and (not code.address or is_same(code.address, address))
        return replace(person, addresses=kept, code=None if is_asked else code)

    await _change(bus, channel, user, without)
    return without(before) != before


async def _change(
    bus: Bus, channel: str, user: str, change: Callable[[ChannelPerson], ChannelPerson]
) -> None:
    def changed(value: bytes | None) -> bytes:
        person = _decoded(value) or ChannelPerson(user=user, channel=channel)
        return msgspec.json.encode(change(person))

    await KeyValue(bus, BUCKET).revise(key_of(channel, user), changed)


async def forget(bus: Bus, user: str) -> None:
    """Remove what is known of a person, in every channel."""
    for person in await _read(bus, [f"$KV.{BUCKET}.{PREFIX}>"]):
        if person.user == user:
            await KeyValue(bus, BUCKET).delete(key_of(person.channel, user))


async def forget_channel(bus: Bus, channel: str) -> None:
    """Remove who is paired in a channel that is no more, and how far its mailbox was read."""
    of = token_of("channel", channel)
    filters = [f"$KV.{BUCKET}.{start}{of}.*" for start in (PREFIX, PLACE_PREFIX)]
    for message in await bus.read(f"KV_{BUCKET}", filters):
        if message.data:
            await KeyValue(bus, BUCKET).delete(message.subject.removeprefix(f"$KV.{BUCKET}."))
