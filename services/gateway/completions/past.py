"""Which conversation a request goes on: by what was said before, over all replicas.

Five kinds of marks stand in the bucket of cursors, by hashes alone (X-8). Of a conversation as far
as it was answered: which thread it is, and what was said next. Of an answer that programs know by
its id: which conversation it ends, and where it stands. Of a call of a tool of
the program's: what it is of. Of a whole request: how often it was answered. The same request
again is a repeat, and told the same, until it was answered; then it asks for another answer. A mark
that is lost begins a conversation anew.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from vigil.bus.bus import Bus
from vigil.bus.kv import KeyValue
from vigil.subjects import Scope, token_of

BUCKET: Final = "CURSORS"
T = TypeVar("T")
_ANY: Final = Scope("", "")
"""In the keys of what is named without its agent."""


class ThreadPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a conversation stands."""

    thread: str
    next_seq: int = 0
    """Stream sequence of the message that was said next; 0: none was."""


class CallPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a call of a program's tool stands, with those of the same answer."""

    thread: str
    event_id: str
    """The message that is being answered."""
    calls: tuple[str, ...]
    """Ids of all calls of that answer, as the program has them."""
    request: str
    count: int
    """Of the request that it all began with, and how often that was answered before."""


class ResponsePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where an answer stands that its program knows by an id."""

    owner: str
    agent: str
    thread: str
    event_id: str
    """The message that is answered."""
    seq: int
    """Stream sequence of what was new: the message, or what came of calls."""
    created: int
    """Seconds since 1970."""
    previous: str | None = None
    """The answer that it follows."""


class Past:
    """The marks of one person: of a team's agent, too, nobody goes on what another one began.

    Raises, from each method: Unavailable.
    """

    def __init__(self, bus: Bus, user: str) -> None:
        self._bucket = KeyValue(bus, BUCKET)
        self._user = user

    async def place(self, whose: Scope, past: str) -> ThreadPlace | None:
        """Return where a conversation stands of which that is the digest; None: nobody knows it."""
        return await self._get(self._key(whose, "past", past), ThreadPlace)

    async def note(self, whose: Scope, past: str, place: ThreadPlace) -> None:
        """Note where it stands."""
        await self._bucket.put(self._key(whose, "past", past), msgspec.json.encode(place))

    async def of_id(self, whose: Scope, id_: str) -> str | None:
        """Return the digest of what was said up to an answer; None: nobody knows it."""
        return await self._get(self._key(whose, "id", id_), str)

    async def note_id(self, whose: Scope, id_: str, past: str) -> None:
        """Note what was said up to an answer."""
        await self._bucket.put(self._key(whose, "id", id_), msgspec.json.encode(past))

    async def response(self, id_: str) -> ResponsePlace | None:
        """Return where an answer stands, of whichever agent; None: nobody knows it."""
        return await self._get(self._key(_ANY, "response", id_), ResponsePlace)

    async def note_response(self, id_: str, place: ResponsePlace) -> None:
        """Note where an answer stands."""
        await self._bucket.put(self._key(_ANY, "response", id_), msgspec.json.encode(place))

    async def call(self, whose: Scope, call_id: str) -> CallPlace | None:
        """Return where a call stands; None: nobody knows it."""
        return await self._get(self._key(whose, "call", call_id), CallPlace)

    async def note_calls(self, whose: Scope, place: CallPlace) -> None:
        """Note where the calls of an answer stand."""
        for one in place.calls:
            await self._bucket.put(self._key(whose, "call", one), msgspec.json.encode(place))

    async def answered(self, whose: Scope, whole: str) -> int:
        """Return how often a request was answered."""
        return await self._get(self._key(whose, "asked", whole), int) or 0

    async def note_answered(self, whose: Scope, whole: str, count: int) -> None:
        """Note that it was answered so often."""
        await self._bucket.put(self._key(whose, "asked", whole), b"%d" % count)

    async def _get(self, key: str, kind: type[T]) -> T | None:
        entry = await self._bucket.get(key)
        try:
            return None if entry is None else msgspec.json.decode(entry.value, type=kind)
        except msgspec.MsgspecError:
            return None

    def _key(self, whose: Scope, kind: str, digest: str) -> str:
        return f"{token_of(self._user)}.{token_of(whose.agent, digest, kind)}"
