"""Consumers: following a stream in order, and pulling from a durable consumer.

Both are async iterators of messages that begin again by themselves after a gap, silence or a
reconnect. A follower is ephemeral and needs no acks; what is pulled must be acked or nak'ed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import nats.errors
import structlog

from ..backoff import Backoff
from ..clock import until_next
from ..errors import VigilError
from ..topology import CONSUMED, SECOND_NS, Consumer
from .connection import heartbeat_s
from .message import Message

if TYPE_CHECKING:
    from .bus import Bus

log = structlog.get_logger("vigil.bus")

BEGIN_TIMEOUT_S: Final = 2.0
HEARTBEATS_MISSED_MAX: Final = 2.5
PULL_BATCH: Final = 256
PULL_HEARTBEAT_ALONE_S: Final = 60.0  # whoever pulls is told at once of a deleted consumer
PULL_EXPIRES_S: Final = 600.0  # the broker refuses one of less than two heartbeats
PULL_FIRST_EXPIRES_S: Final = 1.0
PULL_ANSWERED_S: Final = 3.0
"""After which a first request was lost, or the broker is away."""
PULL_AGAIN_S: Final = 0.2
RESTARTS: Final = Backoff(0.05, 1.0)
DRAIN_TIMEOUT_S: Final = 2.0


class _Deliveries:
    """Shared by follower and puller: a queue of deliveries that an iterator drains."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Message | str] = deque()
        """A subject is to be answered once what came before it was taken (flow control)."""
        self._arrived = asyncio.Event()
        self._is_closed = False
        self._restart_task: asyncio.Task[None] | None = None
        self._watchdog: asyncio.TimerHandle | None = None
        self._last_seen = 0.0
        self._heartbeat_s = heartbeat_s(bus.followers, is_cluster=bus.is_cluster)
        self._token, self._inbox = bus.register(self._handle)

    def _handle(self, reply: str, headers: dict[str, str]) -> None:
        """Take a status message: heartbeat, flow control, end of a request."""
        raise NotImplementedError  # pragma: no cover - both subclasses define it

    def _deliver(self, message: Message, consumer_seq: int) -> None:
        raise NotImplementedError  # pragma: no cover - both subclasses define it

    async def _begin(self) -> None:
        raise NotImplementedError  # pragma: no cover - both subclasses define it

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        while True:
            while self._queue:
                item = self._queue.popleft()
                if isinstance(item, Message):
                    return item
                await self._bus.send(item, b"")
            if self._is_closed:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()

    async def arrived(self) -> None:
        """Wait until `take_nowait` has a message; cancelling it loses none."""
        while not (self._queue and isinstance(self._queue[0], Message)):
            if self._queue:
                await self._bus.send(cast(str, self._queue.popleft()), b"")
                continue
            self._arrived.clear()
            await self._arrived.wait()

    async def next_within(self, seconds: float) -> Message | None:
        """Return the next message, or None if there is none for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.arrived()
        return self.take_nowait()

    def take_nowait(self) -> Message | None:
        """Return the next message that is already here, or None."""
        if self._queue and isinstance(self._queue[0], Message):
            return cast(Message, self._queue.popleft())
        return None

    def _put(self, item: Message | str) -> None:
        self._queue.append(item)
        self._arrived.set()

    def _arm(self) -> None:
        self._last_seen = self._loop.time()
        if self._watchdog is None:
            self._check()

    def _check(self) -> None:
        """Begin again if the broker fell silent: no heartbeat for 2.5 intervals."""
        self._watchdog = None
        if self._is_closed:
            return
        if self._loop.time() - self._last_seen > HEARTBEATS_MISSED_MAX * self._heartbeat_s:
            self.restart()
            self._last_seen = self._loop.time()
        wait_s = until_next(self._heartbeat_s, self._loop.time())
        self._watchdog = self._loop.call_later(wait_s, self._check)

    def restart(self) -> None:
        """Begin again after a gap, silence or a reconnect; harmless if it happens twice."""
        if self._is_closed or (self._restart_task and not self._restart_task.done()):
            return
        self._restart_task = asyncio.create_task(self._restart())

    async def _restart(self) -> None:
        failures = 0
        while not self._is_closed and not self._bus.is_closed:
            try:
                await self._begin()
            except VigilError as error:
                log.info("retrying", action="bus.restart", error=str(error), role=self._bus.role)
                failures += 1
                await asyncio.sleep(RESTARTS.after(failures))
            else:
                return

    async def close(self) -> None:
        self._is_closed = True
        self._arrived.set()
        self._bus.on_restart(self._token, None)
        self._bus.unregister(self._token)
        if self._watchdog is not None:
            self._watchdog.cancel()
        if self._restart_task is not None:
            self._restart_task.cancel()
        self._queue.clear()


class Follower(_Deliveries):
    """An ordered consumer: ephemeral, in memory, no acks; an async iterator of messages."""

    def __init__(
        self, bus: Bus, stream: str, filters: Sequence[str], start: int, at_most: int = 0
    ) -> None:
        super().__init__(bus)
        self._stream = stream
        self._filters = list(filters)
        self._next_seq = start
        self._at_most = at_most
        self._consumer = ""
        self._generation = 0
        self._expected = 1
        self._subscription: Any = None
        self.restarts = 0
        """How often it had to begin again: after a reconnect, a gap or silence."""
        self.waiting = 0
        """How many messages were stored when it was opened."""
        self._take: Callable[[Message], None] | None = None
        self._answering: asyncio.Future[None] | None = None

    async def open(self) -> None:
        try:
            self._inbox = self._bus.push_inbox(self._token)
            self._subscription = await self._bus.subscribe_inbox(self._inbox)
            await self._begin()
        except BaseException:
            await self.close()
            raise
        self._bus.on_restart(self._token, self.restart)

    async def _begin(self) -> None:
        self._stream, filters = await self._bus.locate(self._stream, self._filters)
        stale = self._consumer
        self.restarts = self._generation
        self._generation += 1
        name = f"{self._bus._inbox.rsplit('.', 1)[1]}{self._token}g{self._generation}"
        self._consumer = name
        self._expected = 1
        config: dict[str, Any] = {
            "name": name,
            "deliver_subject": self._inbox,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": max(self._next_seq, 1),
            "ack_policy": "none",
            "max_deliver": 1,
            "replay_policy": "instant",
            "flow_control": True,
            "idle_heartbeat": int(self._heartbeat_s * SECOND_NS),
            "inactive_threshold": 30 * SECOND_NS,
            "mem_storage": True,
            # Where messages go once all have them, it must have as many as the stream: 0.
            "num_replicas": 0 if self._stream in CONSUMED else 1,
        }
        if self._at_most and self._stream not in CONSUMED:
            # Nothing is acknowledged, so the broker stops there; else it sends up to 2 MiB ahead.
            config |= {"ack_policy": "explicit", "max_ack_pending": self._at_most}
        if self._next_seq == 0:
            config["deliver_policy"] = "last_per_subject"
            del config["opt_start_seq"]
        where = f"CONSUMER.CREATE.{self._stream}.{name}"
        if len(filters) == 1:
            config["filter_subject"] = filters[0]
            where += f".{filters[0]}"
        else:
            config["filter_subjects"] = filters
        self._bus.route((self._stream, name), self._deliver)
        if stale:
            self._bus.route((self._stream, stale), None)
            with contextlib.suppress(VigilError):
                await self._bus.send(f"$JS.API.CONSUMER.DELETE.{self._stream}.{stale}", b"")
        info = await self._bus.api(
            where,
            {"stream_name": self._stream, "config": config, "action": "create"},
            BEGIN_TIMEOUT_S if self._bus.is_cluster else 5.0,
        )
        self.waiting = info["num_pending"] + info["delivered"]["consumer_seq"]
        self._arm()

    def _handle(self, reply: str, headers: dict[str, str]) -> None:
        self._last_seen = self._loop.time()
        if headers.get("Status") == "100":
            if reply:  # flow control
                self._put(reply)
            elif stalled := headers.get("Nats-Consumer-Stalled"):
                self._put(stalled)
            elif int(headers.get("Nats-Last-Consumer", "0")) >= self._expected:
                self.restart()

    def hand_on(self, take: Callable[[Message], None]) -> None:
        """Call `take` with each message as it comes, from now on, instead of having it waited for.

        It must not wait, nor hold messages without a bound: nobody tells the broker to go slower.
        """
        self._take = take
        waiting, self._queue = self._queue, deque()
        for item in waiting:
            self._put(item)

    def _put(self, item: Message | str) -> None:
        if self._take is None:
            super()._put(item)
        elif isinstance(item, Message):
            self._take(item)
        else:
            self._answering = asyncio.ensure_future(self._answer(item))

    async def _answer(self, flow_control: str) -> None:
        with contextlib.suppress(VigilError):  # then it's silent, and begins again
            await self._bus.send(flow_control, b"")

    def _deliver(self, message: Message, consumer_seq: int) -> None:
        self._last_seen = self._loop.time()
        if consumer_seq != self._expected:
            self.restart()
            return
        self._expected += 1
        if message.seq < self._next_seq:
            return
        self._next_seq = message.seq + 1
        self._put(message)

    async def close(self) -> None:
        consumer, self._consumer = self._consumer, ""
        self._bus.route((self._stream, consumer), None)
        await super().close()
        if self._subscription is not None:
            with contextlib.suppress(nats.errors.Error):
                await self._subscription.unsubscribe()
        if consumer and self._bus.is_connected:
            with contextlib.suppress(VigilError):
                await self._bus.send(f"$JS.API.CONSUMER.DELETE.{self._stream}.{consumer}", b"")


class Puller(_Deliveries):
    """A durable pull consumer, kept fed: an async iterator of messages to ack or nak."""

    def __init__(self, bus: Bus, consumer: Consumer) -> None:
        super().__init__(bus)
        self._heartbeat_s = self._heartbeat_s if bus.is_cluster else PULL_HEARTBEAT_ALONE_S
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{consumer.stream}.{consumer.name}"
        self._consumer = consumer.stream, consumer.name
        self._asked = 0
        """Messages asked for and not yet delivered."""
        self.interrupted = asyncio.Event()
        """Set when nobody could be asked for a while: what was stored meanwhile comes late."""
        self._is_heard = False
        """Whether the broker has answered since it began."""
        self._subscription: Any = None

    def restart(self) -> None:
        self._is_heard = False
        self.interrupted.set()
        super().restart()

    async def open(self) -> None:
        self._bus.route(self._consumer, self._deliver)
        try:
            await self._open()
        except BaseException:
            await self.close()
            raise
        self._bus.on_restart(self._token, self.restart)

    async def _open(self) -> None:
        # An inbox of its own: unsubscribing ends the open request, or the broker would go on
        # answering it, and what it sends would be out of reach for a whole ack_wait.
        self._inbox = self._bus.push_inbox(self._token)
        self._subscription = await self._bus.subscribe_inbox(self._inbox)
        await self._begin()

    async def close(self) -> None:
        """End the request, and give back at once what was not taken."""
        if self._subscription is not None:
            await self._bus.connection.end(self._subscription, DRAIN_TIMEOUT_S)
        left = [item for item in self._queue if isinstance(item, Message)]
        self._bus.route(self._consumer, None)
        await super().close()
        for message in left:
            with contextlib.suppress(VigilError):  # then it comes again after ack_wait
                await self._bus.nak(message, 0)

    async def _begin(self) -> None:
        self._asked = 0
        await self._ask()
        if not self._is_heard:
            self._loop.call_later(PULL_ANSWERED_S, self._begin_unless_heard)
        self._arm()

    def _begin_unless_heard(self) -> None:
        if not self._is_heard:
            self.restart()

    async def _ask(self) -> None:
        """Ask for more; first for a moment only, so that there is an answer in any case.

        A request that reaches a consumer while it's being deleted is taken and never answered, and
        nobody would notice for 2.5 heartbeats.
        """
        self._asked += PULL_BATCH
        expires_s = PULL_EXPIRES_S if self._is_heard else PULL_FIRST_EXPIRES_S
        wanted = {"batch": PULL_BATCH, "expires": int(expires_s * SECOND_NS)}
        if self._is_heard:
            wanted["idle_heartbeat"] = int(self._heartbeat_s * SECOND_NS)
        await self._bus.send(self._subject, json.dumps(wanted).encode(), self._inbox)

    def _handle(self, reply: str, headers: dict[str, str]) -> None:
        self._last_seen = self._loop.time()
        if status := headers.get("Status"):
            self._is_heard = status in ("100", "404", "408")
            if status == "100":
                return
            self._asked = 0
            if status == "503" or headers.get("Description") == "Consumer Deleted":
                # Asked at once it would say so thousands of times, or be deleted with the request.
                self.interrupted.set()
                self._loop.call_later(PULL_AGAIN_S, self.restart)
            elif self._is_heard:  # this request is over
                super().restart()
            else:  # 409: the consumer or its leader moved
                log.info("asking again", action="bus.pull", reason=headers.get("Description", ""))
                self.restart()

    def _deliver(self, message: Message, consumer_seq: int) -> None:
        self._last_seen = self._loop.time()
        self._is_heard = True
        self._asked -= 1
        self._put(message)

    async def __anext__(self) -> Message:
        """Return the next message, asking for more before they run out."""
        if self._asked < PULL_BATCH // 2 and len(self._queue) < PULL_BATCH:
            await self._ask()
        return await super().__anext__()
