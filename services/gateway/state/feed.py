"""What comes into SIGNALS, from the bus to everybody who reads it here.

One follower for the whole process, for as long as anybody reads; each signal is encoded once,
and a reader is a filter and a queue. The newest signals are kept for a while, so that a reader
who catches up from the log can step over without a gap.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Final

import structlog

from vigil.background.end import end_tasks
from vigil.bus.bus import Bus, Message
from vigil.errors import InvalidInput
from vigil.subjects import SIGNALS_ALL

from .selection import Event, Selection, event_of

log = structlog.get_logger("vigil.gateway")

STREAM: Final = "SIGNALS"
RECENT_MAX: Final = 2000
YIELD_EVERY: Final = 100
HEARTBEAT_S: Final = 15.0
HEARTBEAT: Final = b":\n\n"


class SignalReader:
    """One who reads along: what waits for them, and whether it became too much."""

    __slots__ = ("_arrived", "_queue", "_queue_max", "has_overflown", "seen_to", "selection")

    def __init__(self, selection: Selection, queue_max: int) -> None:
        self.selection = selection
        self.has_overflown = False
        """More came than may wait, or the feed failed: the reader must begin again."""
        self.seen_to = 0
        """What they read of the log by themselves, which may be ahead of the feed."""
        self._queue: list[bytes] = []
        self._queue_max = queue_max
        self._arrived = asyncio.Event()

    def offer(self, event: Event) -> None:
        """Queue a signal that was selected, if it was not read before."""
        if event.seq > self.seen_to:
            self.put(event.chunk)

    def put(self, chunk: bytes) -> None:
        """Queue a chunk; never waits."""
        if len(self._queue) >= self._queue_max:
            self.has_overflown = True
            self._queue.clear()
        if not self.has_overflown:
            self._queue.append(chunk)
        self._arrived.set()

    def wake(self) -> None:
        """Let `take` return: something other than signals is to be looked at."""
        self._arrived.set()

    async def take(self) -> bytes:
        """Wait for something, and return all that is there; it may be nothing."""
        await self._arrived.wait()
        self._arrived.clear()
        taken = b"".join(self._queue)
        self._queue.clear()
        return taken


class Feed:
    """The newest signals, and who reads them."""

    def __init__(self, bus: Bus, stopping: asyncio.Event) -> None:
        self._bus = bus
        self._stopping = stopping
        self._task: asyncio.Task[None] | None = None
        self._beginning: asyncio.Task[None] | None = None
        self.users = 0
        """How many streams are open, those included that still catch up."""
        self._readers: dict[str, dict[Selection, set[SignalReader]]] = {}
        """By the owner of the signals that they want (`*`: everybody), then by what they selected:
        whether a signal is part of it is asked once for all who selected the same."""
        self._recent: deque[Event] = deque()
        self._gone = 0
        """Up to this sequence `_recent` isn't complete."""
        self.seq = 0
        """Everything up to this sequence was handed out."""

    @property
    def readers(self) -> int:
        """How many read along now."""
        return len(self._all())

    async def open(self) -> None:
        """Follow SIGNALS, if nobody does yet; `close` as often as it was opened.

        Raises:
            BusError, Unavailable: it can't be followed.
        """
        self.users += 1
        try:
            if self._task is None or self._task.done():
                # Of all who wait one asks: one after the other, a silent broker would hold up each.
                if self._beginning is None or self._beginning.done():
                    self._beginning = asyncio.create_task(self._begin(), name="gateway-feed-begin")
                await asyncio.shield(self._beginning)
        except BaseException:
            await self.close()
            raise

    async def newest(self) -> int:
        """Return the place of the newest signal, for whoever wants all that come after it.

        Raises:
            BusError, Unavailable: the broker can't tell.
        """
        last = await self._bus.get_last(STREAM, SIGNALS_ALL)
        return 0 if last is None else last.seq

    async def _begin(self) -> None:
        self.seq = self._gone = await self.newest()
        self._recent.clear()
        follower = await self._bus.follow(STREAM, [SIGNALS_ALL], self.seq + 1)

        async def run() -> None:
            beating = asyncio.create_task(self._beat(), name="gateway-signals-beat")
            try:
                async for message in follower:
                    self._hand_out(message)
                    if not self.seq % YIELD_EVERY:
                        await asyncio.sleep(0)  # or a burst would fill queues that are read
            except Exception as error:
                log.error("feed failed", action="gateway.feed.failed", error=repr(error))
            finally:
                beating.cancel()
                await follower.close()
                self._dismiss_all()

        if not self.users:  # they have all gone meanwhile
            await follower.close()
            return
        self._task = asyncio.create_task(run(), name="gateway-signals")

    async def close(self) -> None:
        """Undo one `open`; the last one ends the following."""
        self.users -= 1
        task = self._task
        if self.users > 0 or task is None:
            return
        self._task = None
        await end_tasks(task)

    @property
    def is_alive(self) -> bool:
        """Whether what comes is handed out."""
        return self._task is not None and not self._task.done() and not self._stopping.is_set()

    def join(self, reader: SignalReader, seen_to: int) -> bool:
        """Hand the reader everything after `seen_to`, from now on.

        False: what came after it is no longer all here; read more of the log first.
        """
        if seen_to < self._gone:
            return False
        reader.seen_to = seen_to
        selection = reader.selection
        for event in filter(selection.takes, self._recent):
            reader.offer(event)
        for owner in _owners(reader):
            self._readers.setdefault(owner, {}).setdefault(selection, set()).add(reader)
        return True

    def leave(self, reader: SignalReader) -> None:
        """Hand the reader no more; harmless if they never joined."""
        for owner in _owners(reader):
            selected = self._readers.get(owner, {})
            readers = selected.get(reader.selection, set())
            readers.discard(reader)
            if not readers:
                selected.pop(reader.selection, None)
            if not selected:
                self._readers.pop(owner, None)

    def _all(self) -> set[SignalReader]:
        return set().union(*(set().union(*one.values()) for one in self._readers.values()))

    def _hand_out(self, message: Message) -> None:
        self.seq = message.seq
        try:
            event = event_of(message.seq, message.subject, message.data)
        except InvalidInput as error:
            log.warning(
                "unreadable", action="gateway.unreadable", seq=message.seq, error=str(error)
            )
            return
        self._recent.append(event)
        if len(self._recent) > RECENT_MAX:
            self._gone = self._recent.popleft().seq
        for whose in (event.session.user, "*"):
            for selection, readers in self._readers.get(whose, {}).items():
                if selection.takes(event):
                    for reader in readers:
                        reader.offer(event)

    async def _beat(self) -> None:
        """Show everybody that the connection lives, until the process is about to end."""
        with contextlib.suppress(asyncio.CancelledError):
            while not self._stopping.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(HEARTBEAT_S):
                        await self._stopping.wait()
                for reader in self._all():
                    reader.put(HEARTBEAT)

    def wake(self) -> None:
        """Let every reader look whether they may go on: a token ended, or the feed did."""
        for reader in self._all():
            reader.wake()

    def _dismiss_all(self) -> None:
        """End everybody's reading: whoever follows next begins where SIGNALS ends then."""
        for reader in self._all():
            reader.has_overflown = True
        self.wake()
        self._readers.clear()


def _owners(reader: SignalReader) -> set[str]:
    return {one.owner for one in reader.selection.whose}
