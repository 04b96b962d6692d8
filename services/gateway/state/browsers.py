"""Who is signed in with a browser: links that let one in, and what its cookie stands for.

A person with a token asks for a link; the code in it is good once, for two minutes. Whoever uses
it gets a cookie. Neither is a token: both stand for the one that asked, with its rights, and end
with it. The bucket holds hashes, so what is read there lets nobody in.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Final, TypeVar

import msgspec

from vigil.bus.bus import Bus
from vigil.bus.kv import KeyEntry, KeyValue, Watch
from vigil.contracts import Instant
from vigil.errors import WrongLastSequence

BUCKET: Final = "CONSOLE"
LINK_LIFE: Final = timedelta(minutes=2)
LIFE: Final = timedelta(days=7)
"""After which one signs in again. The bucket forgets an entry then, too."""

KNOWN_MAX: Final = 10_000
VISIT: Final = timedelta(minutes=30)
"""Who comes back within that is still on the same visit."""
NOTED: Final = timedelta(minutes=5)
"""A look isn't noted again within that."""


class SignInLink(msgspec.Struct, frozen=True, kw_only=True):
    """What a code is good for."""

    token_id: str
    expires_at: Instant


class Browser(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that is signed in."""

    token_id: str
    """The hash of the token that let it in."""
    name: str
    """What it is: "Firefox on Linux"."""
    created_at: Instant
    expires_at: Instant
    seen_at: Instant | None = None
    """When its person last looked at Today; None: not yet."""
    away_since: Instant | None = None
    """When they had looked before that visit; None: it's their first."""


Entry = TypeVar("Entry", SignInLink, Browser)


def id_of(secret: str) -> str:
    """Return the id of a code or of a cookie's value: 32 hex digits, which tell nothing of it."""
    return hashlib.sha256(secret.encode()).hexdigest()[:32]


class Browsers:
    """The bucket of links and browsers. Raises, from each method: Unavailable."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._bucket = KeyValue(bus, BUCKET)
        self._known: set[str] = set()
        self._ends: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._watch: Watch | None = None
        self._beginning = asyncio.Lock()

    async def follow(self) -> None:
        """From now on hear of browsers that are signed out; harmless if it does already."""
        async with self._beginning:
            if self._watch is None:
                self._watch = await self._bucket.watch(self._on_change)

    async def close(self) -> None:
        if self._watch is not None:
            await self._watch.close()

    def _on_change(self, key: str, value: bytes | None) -> None:
        if value is None:
            for end in self._ends.get(key.removeprefix("browser."), ()):
                end.set()

    @contextlib.asynccontextmanager
    async def end_of(self, id_: str, now: datetime) -> AsyncIterator[asyncio.Event]:
        """Yield what is set once that browser isn't signed in any more, wherever that was done; it
        has to be followed."""
        end = asyncio.Event()
        self._ends[id_].add(end)
        timer: asyncio.TimerHandle | None = None
        try:
            found = await self.find(id_, now)
            life_s = 0.0 if found is None else (found.expires_at - now).total_seconds()
            timer = asyncio.get_running_loop().call_later(life_s, end.set)
            yield end
        finally:
            if timer is not None:
                timer.cancel()
            self._ends[id_].discard(end)
            if not self._ends[id_]:
                del self._ends[id_]

    def is_known(self, id_: str) -> bool:
        """Return whether that browser was found before: looking for it again is no guess."""
        return id_ in self._known

    async def make_link(self, token_id: str, now: datetime) -> tuple[str, datetime]:
        """Return the code of a new link, and until when it's good."""
        code, until = secrets.token_urlsafe(32), now + LINK_LIFE
        link = SignInLink(token_id=token_id, expires_at=until)
        await self._bucket.put(f"link.{id_of(code)}", msgspec.json.encode(link))
        return code, until

    async def link(self, code: str, now: datetime) -> SignInLink | None:
        """Return what a code is good for, without using it up; None: for nothing."""
        found = await self._bucket.get(f"link.{id_of(code)}")
        return _live(found, SignInLink, now)

    async def enter(self, code: str, name: str, now: datetime) -> tuple[str, Browser] | None:
        """Use a code up; return a cookie's value and what it stands for, None: it's no good.

        Of several who use it at once, one gets in.
        """
        key = f"link.{id_of(code)}"
        found = await self._bucket.get(key)
        link = _live(found, SignInLink, now)
        if found is None or link is None:
            return None
        try:
            await self._bucket.delete(key, expect=found.revision)
        except WrongLastSequence:
            return None
        secret = secrets.token_urlsafe(32)
        browser = Browser(token_id=link.token_id, name=name, created_at=now, expires_at=now + LIFE)
        await self._bucket.put(f"browser.{id_of(secret)}", msgspec.json.encode(browser))
        self._learn(id_of(secret))
        return secret, browser

    async def find(self, id_: str, now: datetime) -> Browser | None:
        """Return the browser with that id, if it's still signed in."""
        found = _live(await self._bucket.get(f"browser.{id_}"), Browser, now)
        if found is None:
            self._known.discard(id_)
        else:
            self._learn(id_)
        return found

    async def note_visit(self, id_: str, now: datetime) -> datetime | None:
        """Note that a person looks at Today; return when they were last here before this visit,
        None: never."""
        key = f"browser.{id_}"
        found = await self._bucket.get(key)
        one = _live(found, Browser, now)
        if found is None or one is None:
            return None
        is_new_visit = one.seen_at is None or now - one.seen_at > VISIT
        if one.seen_at is not None and now - one.seen_at < NOTED:
            return one.away_since
        since = one.seen_at if is_new_visit else one.away_since
        seen = msgspec.structs.replace(one, seen_at=now, away_since=since)
        with contextlib.suppress(WrongLastSequence):  # signed out, or noted by another page
            await self._bucket.put(key, msgspec.json.encode(seen), expect=found.revision)
        return since

    def _learn(self, id_: str) -> None:
        if len(self._known) < KNOWN_MAX:
            self._known.add(id_)

    async def all(self, now: datetime) -> dict[str, Browser]:
        """Return everybody's, by id."""
        start = f"$KV.{BUCKET}.browser."
        entries = await self._bus.read(f"KV_{BUCKET}", [f"{start}*"])
        found = (
            (one.subject.removeprefix(start), _live(KeyEntry(one.data, one.seq), Browser, now))
            for one in entries
            if one.data
        )
        return {id_: browser for id_, browser in found if browser is not None}

    async def end(self, id_: str) -> None:
        """Sign a browser out, at once and everywhere. Harmless if it is."""
        await self._bucket.delete(f"browser.{id_}")


def _live(found: KeyEntry | None, kind: type[Entry], now: datetime) -> Entry | None:
    if found is None:
        return None
    entry = msgspec.json.decode(found.value, type=kind)
    return entry if now < entry.expires_at else None
