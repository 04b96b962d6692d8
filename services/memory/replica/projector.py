"""Following the log: what is stored in MEMORIES goes into SQLite, in order, once.

What is here is taken as one batch, and goes in with its position as one transaction, so after a
kill it begins behind the last batch that is in whole. What can't be read becomes a dead letter
and is passed over: one such record must not stop what everybody remembers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from vigil import crash
from vigil.bus.bus import Bus, Follower, Message
from vigil.clock import Clock
from vigil.contracts import MemoriesMerged, MemoryRecord, MemorySaved, decode_memory
from vigil.errors import InvalidInput, Unavailable
from vigil.observe import metrics
from vigil.observe.metrics import Metrics
from vigil.subjects import MEMORIES_ALL, Scope

from ..config import Limits
from ..recall import terms
from ..recall.words import Words
from ..store.store import Entry, Store
from ..store.writes import STREAM, op_of

log = structlog.get_logger("vigil.memory")

IN_THREAD_FROM: Final = 2000
"""From so many bytes on they are taken apart in a thread: it takes a millisecond, here or there."""
Bury = Callable[[Message, str], Awaitable[None]]
"""Stores a dead letter; repeats that until it is stored."""


class Projector:
    """Fills one store. `position` is what is in it."""

    def __init__(
        self,
        bus: Bus,
        store: Store,
        words: Words,
        bury: Bury,
        limits: Limits,
        clock: Clock,
        counts: Metrics | None = None,
    ) -> None:
        self._bus = bus
        self._store = store
        self._words = words
        self._bury = bury
        self._limits = limits
        self._clock = clock
        self._counts = counts
        self._moved = asyncio.Condition()
        self._awaited = asyncio.Event()
        """Set while somebody waits for what comes in."""
        self._waiting = 0
        self.total: int | None = None
        """The last sequence of the log when it began to read; None: not known yet."""
        self.caught_up = asyncio.Event()
        """Set once everything is in that was stored when it began."""
        self.problem = ""
        """Why nothing comes in: the broker is away, or the disk is full."""
        self._is_unwritten = False
        """Whether that is for the disk: then a broker that answers ends no problem."""
        self.on_applied: Callable[[], None] = lambda: None
        """Called after each batch, and when there is a problem."""

    @property
    def position(self) -> int:
        return self._store.position

    async def run(self) -> None:
        """Follow until cancelled. Raises only what is a fault of ours."""
        failures = 0
        while True:
            position = self.position
            try:
                await self._follow_once()
            except Unavailable as error:
                if self.position > position:
                    failures = 0
                self.problem = str(error)
                log.warning("can't follow", action="memory.follow", error=self.problem)
                self.on_applied()
                failures += 1
                await asyncio.sleep(self._limits.again.after(failures))

    async def _follow_once(self) -> None:
        follower = await self._bus.follow(STREAM, [MEMORIES_ALL], self.position + 1)
        if self.problem and not self._is_unwritten:
            self.problem = ""
            self.on_applied()
        try:
            await self._follow(follower)
        finally:
            await follower.close()

    async def _follow(self, follower: Follower) -> None:
        loop = asyncio.get_running_loop()
        begun_at = 0.0
        while True:
            if not self.caught_up.is_set() and not await self._has_more(follower):
                continue
            await follower.arrived()
            if self.caught_up.is_set():
                await self._gather(begun_at + self._limits.gather_s - loop.time())
            begun_at = loop.time()
            await self._apply(self._batch(follower))

    async def _gather(self, pause_s: float) -> None:
        """Let more come in, shortly after another batch, unless somebody waits for this one."""
        if pause_s > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._awaited.wait()

    async def _has_more(self, follower: Follower) -> bool:
        """Tell, on the way to the end of the log, whether something arrived; find the end."""
        with contextlib.suppress(Unavailable, TimeoutError):
            if self.total is None:
                self.total = await self._newest()
            if self.position >= self.total:
                log.info("caught up", action="memory.caught_up", position=self.position)
                self.caught_up.set()
                return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.idle_s):
                await follower.arrived()
                return True
        self.total = None  # the record it would end on may be gone: ask anew
        return False

    async def _newest(self) -> int:
        found = await self._bus.get_last(STREAM, MEMORIES_ALL)
        return 0 if found is None else found.seq

    def _batch(self, follower: Follower) -> list[Message]:
        """Take what is here already, up to the limits."""
        batch: list[Message] = []
        size = 0
        while len(batch) < self._limits.batch_records and size < self._limits.batch_bytes:
            message = follower.take_nowait()
            if message is None:
                break
            batch.append(message)
            size += len(message.data)
        return batch

    async def _apply(self, batch: Sequence[Message]) -> None:
        records: list[tuple[int, MemoryRecord]] = []
        for message in batch:
            try:
                records.append((message.seq, read_record(message)))
            except InvalidInput as error:
                log.error(
                    "can't be read",
                    action="memory.unreadable",
                    subject=message.subject,
                    seq=message.seq,
                    error=str(error),
                )
                await self._bury(message, str(error))
        if sum(len(message.data) for message in batch) >= IN_THREAD_FROM:
            entries = await asyncio.to_thread(self._entries, records)
        else:
            entries = self._entries(records)
        crash.point("memory.batch.before")
        self._is_unwritten = True
        await self._store.apply(entries)
        crash.point("memory.batch.applied")
        await self._store.skip_to(batch[-1].seq)
        self._is_unwritten, self.problem = False, ""
        if self._counts is not None:
            now = self._clock.now()
            for message in batch:
                lag_s = (now - message.stored_at).total_seconds()
                self._counts.observe(metrics.MEMORY_LAG, metrics.seconds(lag_s))
        self.on_applied()
        async with self._moved:
            self._moved.notify_all()

    def _entries(self, records: Sequence[tuple[int, MemoryRecord]]) -> list[Entry]:
        return [entry_of(seq, record, self._words) for seq, record in records]

    async def at_least(self, seq: int, *, timeout_s: float) -> bool:
        """Wait until everything up to `seq` is in; return whether it is."""
        if self.position >= seq:
            return True
        self._waiting += 1
        self._awaited.set()
        try:
            async with asyncio.timeout(timeout_s), self._moved:
                await self._moved.wait_for(lambda: self.position >= seq)
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._awaited.clear()
        return True


def entry_of(seq: int, record: MemoryRecord, words: Words) -> Entry:
    """Return a record with what its text is made into.

    Of a summary of a merge nothing is: its members are found, and words that stand in both would
    count twice. (With them, R@10 fell by a point.)
    """
    if not isinstance(record, MemorySaved | MemoriesMerged):
        return Entry(seq, record)
    memory = record.memory
    if isinstance(record, MemoriesMerged) and memory.type == "summary":
        return Entry(seq, record)
    happened_at = memory.occurred_at or memory.created_at
    return Entry(
        seq, record, terms.index_terms(memory.content, happened_at), words.tokens(memory.content)
    )


def read_record(message: Message) -> MemoryRecord:
    """Decode a record that lies where it belongs.

    Raises:
        InvalidInput: it can't be decoded, or says something else than its subject.
    """
    scope = Scope.of_subject(message.subject)
    record = decode_memory(message.data)
    if message.subject != scope.record(op_of(record)):
        raise InvalidInput("op", f"{op_of(record)!r} does not belong on {message.subject}")
    if (record.agent, record.owner) != (scope.agent, scope.owner):
        raise InvalidInput("owner", f"does not belong on {message.subject}")
    return record
