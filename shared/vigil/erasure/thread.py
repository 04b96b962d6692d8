"""Deleting what is stored of one conversation; the active scheduler does (docs/adr/0047).

First it is read what goes with it: the sessions that it started, and theirs, and which files it
names. That is written into its mark, since it can't be told any more once the records are gone.
Then they are deleted (:mod:`.sweep`), again and again, until a while has passed in which nothing
came. Killed anywhere, the next call begins anew and finds less.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from .. import crash
from ..bus.bus import Bus, Message
from ..clock import Clock
from ..contracts import SpawnSession, decode_turn
from ..errors import InvalidInput
from ..marks import thread_mark
from ..marks.thread_mark import SWEEP, Deletion
from ..subjects import SessionKey
from .board_parts import BoardParts
from .sweep import QUIET_S, Sweeper

PAGE: Final = 500
HASH: Final = re.compile(rb'"hash":"([0-9a-f]{64})"')
"""How a record names a file."""


def filters_of_thread(sessions: Iterable[SessionKey]) -> dict[str, list[str]]:
    """Return where the records of sessions are, by stream.

    >>> filters_of_thread([SessionKey("ann", "vigil", "t1")])["SESSIONS"]
    ['session.vigil.ann.t1.>']
    """
    found: dict[str, list[str]] = {}
    for key in sessions:
        tail = f"{key.agent}.{key.user}.{key.thread}"
        found.setdefault(key.stream, []).append(key.everything)
        found.setdefault("TIMERS", []).extend([f"timer.{key.root}.*", f"due.{key.root}.*"])
        found.setdefault("DEAD", []).append(f"dead.*.{tail}")
        found.setdefault("SIGNALS", []).append(f"signal.{key.agent}.{key.user}.*.*.{key.thread}")
    return found


def without_report(step: str, count: int) -> None:
    """Tell nobody how far it is: nobody waits for it."""


class ThreadEraser:
    """Deletes one conversation. Raises, from `run`: Unavailable, BusError: call again."""

    def __init__(self, bus: Bus, mark: Deletion, clock: Clock) -> None:
        self._bus = bus
        self._mark = mark
        self._key = SessionKey.parse(mark.session)
        self._clock = clock
        self._deleted: Counter[str] = Counter(mark.deleted)

    async def run(self, *, quiet_s: float = QUIET_S) -> Deletion:
        """Do all of it, and close the mark; return it.

        Raises:
            WrongLastSequence: somebody else does it, too, or its person was erased.
        """
        found, revision = await thread_mark.last(self._bus, self._key)
        if found is None or not found.is_open:
            return found or self._mark
        self._mark = found
        while True:
            revision = await self._note_parts(revision)
            crash.point("thread.looked")
            if not await self._sweep():
                if quiet_s <= 0:
                    break
                await asyncio.sleep(quiet_s)
                revision = await self._note_parts(revision)
                if not await self._sweep():
                    break
        crash.point("thread.swept")
        await self._delete_files()
        crash.point("thread.before_done")
        done = msgspec.structs.replace(
            self._mark,
            done_at=self._clock.now(),
            deleted=dict(self._deleted),
            parts=(),
            files=(),
            sweep=SWEEP,
        )
        await thread_mark.put(self._bus, done, expect=revision)
        return done

    @property
    def _sessions(self) -> list[SessionKey]:
        """Those that go; who started another comes after it."""
        return [*(SessionKey.parse(one) for one in reversed(self._mark.parts)), self._key]

    async def _note_parts(self, revision: int) -> int:
        """Write into the mark what is new of what goes with it; return its revision."""
        parts, files = dict.fromkeys(self._mark.parts), set(self._mark.files)
        waiting = self._sessions
        while waiting:
            key = waiting.pop()
            for message in await self._bus.read(key.stream, [key.everything]):
                files.update(one.decode() for one in HASH.findall(message.data))
                for child in children_in(key, message):
                    if str(child) not in parts:
                        parts[str(child)] = None
                        waiting.append(child)
        known = tuple(parts), tuple(sorted(files))
        if known == (self._mark.parts, self._mark.files):
            return revision
        self._mark = msgspec.structs.replace(self._mark, parts=known[0], files=known[1])
        return await thread_mark.put(self._bus, self._mark, expect=revision)

    async def _sweep(self) -> int:
        sweeper = Sweeper(self._bus, filters_of_thread(self._sessions), without_report)
        found = await sweeper.pass_once()
        self._deleted.update(sweeper.swept.deleted)
        on_board = await BoardParts(self._bus, self._key.scope, self._sessions).sweep()
        self._deleted["BOARD"] += on_board
        return found + on_board

    async def _delete_files(self) -> None:
        """Delete the files that no record of the person names any more."""
        left = set(self._mark.files)
        user = self._key.user
        for name, where in (("SESSIONS", "session"), ("SYSTEM", "system"), ("BOARD", "board")):
            for stream in (await self._bus.layout()).streams(name):
                start, has_more = 1, bool(left)
                while has_more and left:
                    page, has_more = await self._bus.page(
                        stream, [f"{where}.*.{user}.>"], start, limit=PAGE
                    )
                    for message in page:
                        left -= {one for one in left if one.encode() in message.data}
                    start = page[-1].seq + 1 if page else start
                    has_more = has_more and bool(page)
        for hash_ in sorted(left):
            where_kept = {
                "FILES": [f"file.{user}.{hash_}.*"],
                "UPLOADS": [f"upload.{user}.{hash_}.*"],
            }
            sweeper = Sweeper(self._bus, where_kept, without_report)
            await sweeper.pass_once()
            self._deleted.update(sweeper.swept.deleted)


async def sweep_left(bus: Bus, mark: Deletion) -> int:
    """Delete what an older version left of a conversation that it deleted; return how many records
    it were.

    Raises: Unavailable, BusError, WrongLastSequence: call again.
    """
    key = SessionKey.parse(mark.session)
    found, revision = await thread_mark.last(bus, key)
    if found is None or found.done_at is None or found.sweep >= SWEEP:
        return 0
    count = await BoardParts(bus, key.scope, [key]).sweep_left(found.done_at)
    deleted = Counter(found.deleted) + Counter(BOARD=count)
    swept = msgspec.structs.replace(found, deleted=dict(deleted), sweep=SWEEP)
    await thread_mark.put(bus, swept, expect=revision)
    return count


def children_in(key: SessionKey, message: Message) -> list[SessionKey]:
    """Return the sessions that a turn starts; of another record, or one that can't be read, none.

    Those that are on the board by themselves, as jobs and tasks are, aren't started by a turn.
    """
    if not key.is_turn(message.subject):
        return []
    try:
        effects = decode_turn(message.data).effects
    except InvalidInput:
        return []
    spawned = (one for one in effects if isinstance(one, SpawnSession))
    return [key.of_kind(one.payload.kind, one.id) for one in spawned]
