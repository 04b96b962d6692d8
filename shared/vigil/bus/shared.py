"""One follower of a log for all its sessions, shared by those who each want what one of them holds.

A consumer for each session costs memory in the broker, and time: to find its next message, the
broker looks at each that all other sessions stored meanwhile.

Joins are exact. Who joins is handed what is stored after the last message that the shared follower
has handed out; what is older they read from the log. What comes twice by that is known by its
sequence. Who takes too slowly is let go, and joins again once all that waits is taken.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final

import structlog

from ..errors import VigilError
from ..layout import of_all
from ..subjects import SessionKey
from .consumers import RESTARTS, Follower
from .message import Message

if TYPE_CHECKING:
    from .bus import Bus

log = structlog.get_logger("vigil.bus")

WAITING_MAX: Final = 64
"""Messages of one session that wait here; what comes after them is read from the log later."""
SINGLY_MAX: Final = 3
"""So many missed messages are asked for one by one: cheaper than a consumer."""
PAGE: Final = 64
PAGE_BYTES_MAX: Final = 1024 * 1024


class SharedFollower:
    """Follows the same subjects of all sessions.

    Args:
        subject_of: what is followed of a session.
    """

    def __init__(self, bus: Bus, subject_of: Callable[[SessionKey], str]) -> None:
        self._bus = bus
        self._subject_of = subject_of
        self._logs: dict[str, _Log] = {}

    async def follow(self, key: SessionKey, start: int) -> SessionFollower:
        """Follow one session from sequence `start` on, in order, without gaps or repeats.

        Raises:
            BusError, Unavailable: the broker can't be asked.
        """
        stream, subject = await self._bus.log_of(key), self._subject_of(key)
        if stream not in self._logs:
            self._logs[stream] = _Log(self._bus, stream, of_all(subject))
        follower = SessionFollower(self._bus, self._logs[stream], key, subject, start)
        await follower.open()
        return follower

    async def close(self) -> None:
        """End it; nothing is handed out any more."""
        for each in self._logs.values():
            await each.close()


class _Log:
    """One stream, followed from when somebody first wanted something of it."""

    def __init__(self, bus: Bus, stream: str, subject: str) -> None:
        self._bus = bus
        self._stream = stream
        self._subject = subject
        self._members: dict[str, list[SessionFollower]] = {}
        self._lock = asyncio.Lock()
        self._follower: Follower | None = None
        self.seen = 0
        """Sequence of the last message that was handed out: all after it will be, too."""

    async def open(self) -> None:
        """Raises: BusError, Unavailable."""
        if self._follower is not None:
            return
        async with self._lock:
            if self._follower is None:
                last = await self._bus.get_last(self._stream, self._subject)
                self.seen = 0 if last is None else last.seq
                follower = await self._bus.follow(self._stream, [self._subject], self.seen + 1)
                follower.hand_on(self._take)
                self._follower = follower

    async def close(self) -> None:
        if self._follower is not None:
            await self._follower.close()

    def _take(self, message: Message) -> None:
        self.seen = message.seq
        root = ".".join(message.subject.split(".", 4)[:4])
        for member in tuple(self._members.get(root, ())):
            member.take(message)

    def join(self, root: str, member: SessionFollower) -> None:
        """Hand it what comes for that session from now on."""
        self._members.setdefault(root, []).append(member)

    def leave(self, root: str, member: SessionFollower) -> None:
        """Hand it nothing any more; harmless to repeat."""
        members = self._members.get(root, [])
        if member in members:
            members.remove(member)
            if not members:
                del self._members[root]


class SessionFollower:
    """What one session's subjects hold from a sequence on: an async iterator of messages."""

    def __init__(self, bus: Bus, log: _Log, key: SessionKey, subject: str, start: int) -> None:
        self._bus = bus
        self._log = log
        self._key = key
        self._subject = subject
        self._next = start
        """No message before this one is still to be queued."""
        self._queue: deque[Message] = deque()
        self._early: deque[Message] = deque()
        """What was handed out while it reads what it missed."""
        self._arrived = asyncio.Event()
        self._catching_up = asyncio.Lock()
        self._is_joined = False
        self._is_live = False
        """Whether the queue has all that was handed out."""
        self.opened_at = 0
        """What it holds up to this sequence was stored when it was opened."""

    async def open(self) -> None:
        """Raises: BusError, Unavailable."""
        await self._log.open()
        self.opened_at = self._log.seen
        await self._catch_up()

    async def close(self) -> None:
        self._leave()
        self._queue.clear()

    @property
    def has_any(self) -> bool:
        """Whether something waits to be taken."""
        return bool(self._queue) or not self._is_live

    # ------------------------------------------------------------ taking

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        await self.arrived()
        return self._queue.popleft()

    async def arrived(self) -> None:
        """Wait until `take_nowait` has a message; cancelling it loses none."""
        failures = 0
        while not self._queue:
            if self._is_live:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            try:
                await self._catch_up()
            except VigilError as error:
                failures += 1
                log.info("retrying", action="bus.restart", error=str(error), role=self._bus.role)
                await asyncio.sleep(RESTARTS.after(failures))

    async def next_within(self, seconds: float) -> Message | None:
        """Return the next message, or None if there is none for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.arrived()
        return self.take_nowait()

    def take_nowait(self) -> Message | None:
        """Return the next message that is already here, or None."""
        return self._queue.popleft() if self._queue else None

    # ------------------------------------------------------------ joining

    def take(self, message: Message) -> None:
        """Take what is handed out, unless too much waits already."""
        if message.seq < self._next:
            return
        waiting = self._queue if self._is_live else self._early
        if len(waiting) >= WAITING_MAX:
            self._leave()
            return
        waiting.append(message)
        if self._is_live:
            self._next = message.seq + 1
            self._arrived.set()

    def _leave(self) -> None:
        self._log.leave(self._key.root, self)
        self._is_joined = self._is_live = False
        self._early.clear()
        self._arrived.set()

    async def _catch_up(self) -> None:
        """Join, and read what came before; more than a page of it is read page by page."""
        async with self._catching_up:  # the one before, cancelled, may not have left yet
            if not self._is_live:
                await self._join()

    async def _join(self) -> None:
        self._log.join(self._key.root, self)
        self._is_joined = True
        try:
            missed, is_all = await self._missed(self._log.seen)
        except BaseException:
            self._leave()
            raise
        self._queue_all(missed)
        if not (is_all and self._is_joined):
            self._leave()
            return
        self._queue_all(self._early)
        self._early.clear()
        self._is_live = True

    def _queue_all(self, messages: list[Message] | deque[Message]) -> None:
        for message in messages:
            if message.seq >= self._next:
                self._queue.append(message)
                self._next = message.seq + 1

    async def _missed(self, seen: int) -> tuple[list[Message], bool]:
        """Return what is stored up to `seen`, and maybe more -> (messages, whether it is all)."""
        missed: list[Message] = []
        start, stream = self._next, self._key.stream
        while len(missed) < SINGLY_MAX and start <= seen:
            found = await self._bus.get_next(stream, self._subject, start)
            if found is None:
                return missed, True
            missed.append(found)
            start = found.seq + 1
        if start > seen:
            return missed, True
        page, is_more = await self._bus.page(
            stream, [self._subject], start, limit=PAGE, bytes_max=PAGE_BYTES_MAX
        )
        return missed + page, not is_more
