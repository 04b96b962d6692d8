"""The bus: publish with expectations, read single messages, follow, pull. Nothing else.

A thin layer over one nats-py connection, shaped by what the broker was measured to do:

* A publish that timed out has an UNKNOWN outcome (`OutcomeUnknown`), and a lost
  compare-and-set is an error of its own (`WrongLastSequence`).
* All answers, and what is pulled, come in on one wildcard inbox and are handed on without a
  task each. A follower has a subscription of its own: the broker doesn't deliver to a subject
  that only a wildcard matches.
* A follower (ordered consumer) checks the consumer's sequence itself and starts again from
  the last message it saw, at once after a reconnect; nats-py's own took over 4 s
  (RELIABILITY 0.10).

It knows no record types; those are in :mod:`vigil.contracts`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from base64 import b64decode
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, cast

import msgspec
import nats
import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from .errors import OutcomeUnknown, Unavailable, VigilError, WrongLastSequence
from .topology import SECOND_NS, Consumer, inbox_prefix

log = structlog.get_logger("vigil.bus")

MSG_ID: Final = "Nats-Msg-Id"
EXPECT_SEQ: Final = "Nats-Expected-Last-Subject-Sequence"
EXPECT_SUBJECT: Final = "Nats-Expected-Last-Subject-Sequence-Subject"
ERR_WRONG_LAST_SEQ: Final = 10071
ERR_NO_MESSAGE: Final = 10037
HEARTBEAT_S: Final = 5.0
HEARTBEATS_MISSED_MAX: Final = 2.5
PULL_BATCH: Final = 256
PULL_EXPIRES_S: Final = 30.0


class BusError(VigilError):
    """The broker refused a request; the caller asked for something it may not or can't have."""

    def __init__(self, code: int, description: str) -> None:
        super().__init__(f"{description} ({code})")
        self.code = code


class Ack(msgspec.Struct, frozen=True):
    """Where a publish was stored. `is_duplicate`: the broker had that message id already."""

    seq: int
    is_duplicate: bool = False


class _PubError(msgspec.Struct):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _PubReply(msgspec.Struct):
    seq: int = 0
    duplicate: bool = False
    error: _PubError | None = None


_pub_reply = msgspec.json.Decoder(_PubReply).decode


class Message:
    """A message of a stream, as delivered or as read. `seq` is its stream sequence."""

    __slots__ = ("_reply", "data", "delivered", "headers", "pending", "seq", "subject")

    def __init__(
        self,
        subject: str,
        data: bytes,
        headers: dict[str, str],
        seq: int,
        delivered: int = 1,
        pending: int = 0,
        reply: str = "",
    ) -> None:
        self.subject = subject
        self.data = data
        self.headers = headers
        self.seq = seq
        self.delivered = delivered
        """How often it was delivered, this time included."""
        self.pending = pending
        """How many more the consumer had when it sent this one."""
        self._reply = reply

    def __repr__(self) -> str:
        return f"Message({self.subject!r}, seq={self.seq}, {len(self.data)} bytes)"

    @property
    def token(self) -> str:
        """The acknowledgement subject."""
        return self._reply


def _from_delivery(msg: Msg) -> tuple[Message, int, str]:
    """Parse a delivery -> (message, consumer sequence, consumer name)."""
    # $JS.ACK.<stream>.<consumer>.<delivered>.<sseq>.<cseq>.<ts>.<pending>, or the form with
    # domain and account hash in front of the stream (NATS ADR-15).
    tokens = msg.reply.split(".")
    if len(tokens) > 9:
        tokens = tokens[2:]
    message = Message(
        msg.subject, msg.data, msg.headers or {}, int(tokens[5]), int(tokens[4]),
        int(tokens[8]), msg.reply,
    )  # fmt: skip
    return message, int(tokens[6]), tokens[3]


class Bus:
    """One connection of one service."""

    def __init__(self, connection: Client, role: str) -> None:
        self._nc = connection
        self.role = role
        self._inbox = f"{inbox_prefix(role)}.{connection._nuid.next().decode()}"
        self._next = 0
        self._futures: dict[str, asyncio.Future[Msg]] = {}
        self._deadlines: deque[tuple[float, str]] = deque()
        self._handlers: dict[str, Callable[[Msg], None]] = {}
        self._consumers: dict[str, Callable[[Message, int, str], None]] = {}
        self._restarts: dict[str, Callable[[], None]] = {}
        self._sweeper: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self.violations: list[str] = []
        """Permission errors the broker reported; any is a fault of the deployment."""

    @classmethod
    async def connect(cls, url: str, *, role: str, seed: bytes | None, wait_s: float = 10.0) -> Bus:
        """Connect with the nkey seed of `role`; once connected, keep reconnecting for good.

        Raises:
            Unavailable: no broker answered within `wait_s` seconds, or it refused the seed.
        """
        holder: list[Bus] = []

        async def on_error(error: Exception) -> None:
            if holder:
                holder[0]._on_error(error)

        async def on_reconnect() -> None:
            if holder:
                holder[0]._on_reconnect()

        async def on_disconnect() -> None:
            if holder:
                holder[0]._on_disconnect()

        options: dict[str, Any] = {}
        if seed is not None:
            options["nkeys_seed_str"] = seed.decode()
        try:
            connecting = nats.connect(
                url,
                name=f"vigil-{role}",
                inbox_prefix=inbox_prefix(role).encode(),
                max_reconnect_attempts=-1,
                reconnect_time_wait=0.1,
                connect_timeout=2,
                ping_interval=10,
                max_outstanding_pings=2,
                error_cb=on_error,
                reconnected_cb=on_reconnect,
                disconnected_cb=on_disconnect,
                pending_size=16 * 1024 * 1024,
                **options,
            )
            # With endless reconnects nats-py would try the first connection for ever, too.
            connection = await asyncio.wait_for(connecting, wait_s)
        except (TimeoutError, OSError, nats.errors.Error) as error:
            raise Unavailable(f"no broker at {url} for {role}: {error!r}") from error
        bus = cls(connection, role)
        holder.append(bus)
        await connection.subscribe(
            f"{bus._inbox}.>", cb=bus._dispatch, pending_msgs_limit=0, pending_bytes_limit=0
        )
        await connection.flush()
        bus._sweeper = asyncio.create_task(bus._sweep(), name=f"bus-sweeper-{role}")
        return bus

    @property
    def is_connected(self) -> bool:
        return bool(self._nc.is_connected)

    async def close(self) -> None:
        """Flush what was published, then disconnect."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        with contextlib.suppress(nats.errors.Error, asyncio.TimeoutError, OSError):
            if self._nc.is_connected:
                await self._nc.flush(timeout=2)
        with contextlib.suppress(nats.errors.Error, asyncio.TimeoutError, OSError):
            await self._nc.close()
        self._fail_futures(Unavailable("the connection was closed"))

    # ------------------------------------------------------------ write

    async def publish(
        self,
        subject: str,
        data: bytes,
        headers: dict[str, str] | None = None,
        *,
        expect: int | None = None,
        expect_subject: str | None = None,
        msg_id: str | None = None,
        timeout: float = 5.0,
    ) -> Ack:
        """Store a message; with `expect`, only if that is the last sequence.

        Args:
            expect: the last sequence on `expect_subject` (a wildcard may be given), or on
                `subject` itself; 0 means that there is none yet.
            msg_id: dropped as a duplicate if the stream saw it within two minutes.
            timeout: seconds until the outcome counts as unknown.

        Raises:
            WrongLastSequence: another write came first.
            OutcomeUnknown: no answer; it may be stored. Read back before repeating.
            BusError: refused for another reason.
        """
        headers = dict(headers) if headers else {}
        if expect is not None:
            headers[EXPECT_SEQ] = str(expect)
            if expect_subject is not None:
                headers[EXPECT_SUBJECT] = expect_subject
        if msg_id is not None:
            headers[MSG_ID] = msg_id
        msg = await self._request(subject, data, headers or None, timeout)
        reply = _pub_reply(msg.data)
        if reply.error is not None:
            if reply.error.err_code == ERR_WRONG_LAST_SEQ:
                raise WrongLastSequence(f"{subject}: {reply.error.description}")
            if reply.error.code == 503:
                raise Unavailable(f"{subject}: {reply.error.description}")
            raise BusError(reply.error.err_code, f"{subject}: {reply.error.description}")
        return Ack(reply.seq, reply.duplicate)

    async def send(self, subject: str, data: bytes, reply: str = "") -> None:
        """Publish without storing or waiting: tokens, acknowledgements, answers."""
        try:
            await self._nc.publish(subject, data, reply)
        except nats.errors.Error as error:
            raise Unavailable(f"{subject}: {error!r}") from error

    async def ack(self, message: Message) -> None:
        await self.send(message.token, b"")

    async def nak(self, message: Message, delay_s: float) -> None:
        """Give it back, to be delivered again after `delay_s` seconds."""
        await self.send(message.token, b'-NAK {"delay":%d}' % int(delay_s * SECOND_NS))

    async def in_progress(self, message: Message) -> None:
        """Ask for another ack_wait."""
        await self.send(message.token, b"+WPI")

    # ------------------------------------------------------------ read

    async def api(self, subject: str, request: dict[str, Any], timeout: float = 5.0) -> Any:
        """Call the JetStream API. Raises: BusError, OutcomeUnknown."""
        body = json.dumps(request).encode()
        msg = await self._request(f"$JS.API.{subject}", body, None, timeout)
        reply = json.loads(msg.data)
        if "error" in reply:
            error = reply["error"]
            raise BusError(error.get("err_code", 0), error.get("description", ""))
        return reply

    async def get_last(self, stream: str, subject: str) -> Message | None:
        """Return the newest message on `subject` (may be a wildcard), from the leader."""
        return await self._get(stream, {"last_by_subj": subject})

    async def get(self, stream: str, seq: int) -> Message | None:
        """Return the message with that sequence, from the leader."""
        return await self._get(stream, {"seq": seq})

    async def get_next(self, stream: str, subject: str, seq: int) -> Message | None:
        """Return the first message on `subject` at or after `seq`, from the leader."""
        return await self._get(stream, {"next_by_subj": subject, "seq": seq})

    async def _get(self, stream: str, request: dict[str, Any]) -> Message | None:
        try:
            found = (await self.api(f"STREAM.MSG.GET.{stream}", request))["message"]
        except BusError as error:
            if error.code == ERR_NO_MESSAGE:
                return None
            raise
        headers: dict[str, str] = {}
        if "hdrs" in found:
            for line in b64decode(found["hdrs"]).decode("utf-8", "replace").split("\r\n")[1:]:
                name, colon, value = line.partition(":")
                if colon:
                    headers[name] = value.strip()
        data = b64decode(found["data"]) if "data" in found else b""
        return Message(found["subject"], data, headers, found["seq"])

    async def read(
        self, stream: str, filters: Sequence[str], start: int = 1, *, limit: int = 0
    ) -> list[Message]:
        """Return what is stored now on `filters` from sequence `start` on, in order.

        `limit` 0 reads all of it. What is stored while it reads may be missing.
        """
        follower = await self.follow(stream, filters, start)
        messages: list[Message] = []
        try:
            if follower.waiting == 0:
                return messages
            async for message in follower:
                messages.append(message)
                if message.pending == 0 or len(messages) == limit:
                    break
            return messages
        finally:
            await follower.close()

    async def follow(self, stream: str, filters: Sequence[str], start: int) -> Follower:
        """Follow `filters` from sequence `start` on, in order, without gaps or repeats.

        `start` 0 begins with the last message of each subject (for a bucket).
        """
        follower = Follower(self, stream, filters, start)
        await follower.open()
        return follower

    async def pull(self, consumer: Consumer) -> Puller:
        """Pull from a durable consumer that the replicas of a service share."""
        puller = Puller(self, consumer)
        await puller.open()
        return puller

    # ------------------------------------------------------------ questions

    async def ask_all(
        self, subject: str, data: bytes, *, count: int, timeout: float
    ) -> list[bytes]:
        """Ask every listener of `subject`: return once `count` answered or `timeout` passed."""
        answers: list[bytes] = []
        enough = asyncio.Event()

        def on_answer(msg: Msg) -> None:
            if msg.headers and "Status" in msg.headers:
                enough.set()
                return
            answers.append(msg.data)
            if len(answers) >= count:
                enough.set()

        token, inbox = self.register(on_answer)
        try:
            await self.send(subject, data, inbox)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(enough.wait(), timeout)
        finally:
            self.unregister(token)
        return answers

    async def listen(self, subject: str, handle: Callable[[Msg], Awaitable[None]]) -> Any:
        """Subscribe to a plain NATS subject; returns the subscription (`unsubscribe()`)."""
        subscription = await self._nc.subscribe(subject, cb=handle)
        await self._nc.flush()
        return subscription

    @property
    def connection(self) -> Client:
        """The nats-py connection, for its micro-service API."""
        return self._nc

    # ------------------------------------------------------------ inside

    def register(self, handle: Callable[[Msg], None]) -> tuple[str, str]:
        """Reserve an inbox for deliveries: (token to unregister, subject)."""
        self._next += 1
        token = f"d{self._next}"
        self._handlers[token] = handle
        return token, f"{self._inbox}.{token}"

    def unregister(self, token: str) -> None:
        self._handlers.pop(token, None)

    async def subscribe_inbox(self, inbox: str) -> Any:
        """Subscribe to one literal inbox, for a consumer that pushes to it."""
        return await self._nc.subscribe(
            inbox, cb=self._dispatch, pending_msgs_limit=0, pending_bytes_limit=0
        )

    def route(self, consumer: str, deliver: Callable[[Message, int, str], None] | None) -> None:
        """Hand deliveries of `consumer` to `deliver`; None stops that."""
        if deliver is None:
            self._consumers.pop(consumer, None)
        else:
            self._consumers[consumer] = deliver

    def on_restart(self, token: str, restart: Callable[[], None] | None) -> None:
        """Call `restart` after each reconnect; None stops that."""
        if restart is None:
            self._restarts.pop(token, None)
        else:
            self._restarts[token] = restart

    async def _request(
        self, subject: str, data: bytes, headers: dict[str, str] | None, timeout: float
    ) -> Msg:
        self._next += 1
        token = f"r{self._next}"
        future: asyncio.Future[Msg] = self._loop.create_future()
        self._futures[token] = future
        self._deadlines.append((self._loop.time() + timeout, token))
        try:
            await self._nc.publish(subject, data, f"{self._inbox}.{token}", headers)
            msg = await future
        except nats.errors.Error as error:
            raise Unavailable(f"{subject}: {error!r}") from error
        finally:
            self._futures.pop(token, None)
        if msg.headers and msg.headers.get("Status") == "503":
            raise Unavailable(f"{subject}: nobody listens (no stream, or no leader)")
        return msg

    async def _dispatch(self, msg: Msg) -> None:
        if msg.reply.startswith("$JS.ACK."):
            # A delivery keeps the subject it was stored under; its consumer is in the reply.
            delivery = _from_delivery(msg)
            consumer = self._consumers.get(delivery[2])
            if consumer is not None:
                consumer(*delivery)
            return
        token = msg.subject.split(".")[2]
        if token[0] == "r":
            future = self._futures.get(token)
            if future is not None and not future.done():
                future.set_result(msg)
            return
        handler = self._handlers.get(token)
        if handler is not None:
            handler(msg)

    async def _sweep(self) -> None:
        """Give up on requests that nobody answered; one timer for all of them."""
        while True:
            await asyncio.sleep(0.5)
            now = self._loop.time()
            # Deadlines are nearly sorted: almost all requests use the same timeout.
            while self._deadlines:
                due_at, token = self._deadlines[0]
                future = self._futures.get(token)
                if future is None or future.done():
                    self._deadlines.popleft()
                elif due_at <= now:
                    self._deadlines.popleft()
                    future.set_exception(OutcomeUnknown("the broker did not answer in time"))
                else:
                    break

    def _fail_futures(self, error: VigilError) -> None:
        for future in list(self._futures.values()):
            if not future.done():
                future.set_exception(error)

    def _on_disconnect(self) -> None:
        # What was in flight may or may not have arrived: waiting longer tells nothing.
        self._fail_futures(OutcomeUnknown("the connection to the broker was lost"))

    def _on_reconnect(self) -> None:
        log.info("reconnected", action="bus.reconnected", role=self.role)
        for restart in list(self._restarts.values()):
            restart()

    def _on_error(self, error: Exception) -> None:
        text = str(error) or repr(error)
        if "permissions violation" in text.lower():
            self.violations.append(text)
        log.warning("bus error", action="bus.error", role=self.role, error=text)


class _Deliveries:
    """Shared by follower and puller: a queue of deliveries that an iterator drains."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._queue: deque[Message | Awaitable[None]] = deque()
        self._arrived = asyncio.Event()
        self._is_closed = False
        self._restart_task: asyncio.Task[None] | None = None
        self._watchdog: asyncio.TimerHandle | None = None
        self._last_seen = 0.0
        self._token, self._inbox = bus.register(self._handle)

    def _handle(self, msg: Msg) -> None:
        """Take a status message: heartbeat, flow control, end of a request."""
        raise NotImplementedError  # pragma: no cover - both subclasses define it

    def _deliver(self, message: Message, consumer_seq: int, consumer: str) -> None:
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
                await item
            if self._is_closed:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()

    async def arrived(self) -> None:
        """Wait until `take_nowait` has a message; cancelling it loses none."""
        while not (self._queue and isinstance(self._queue[0], Message)):
            if self._queue:
                await cast(Awaitable[None], self._queue.popleft())
                continue
            self._arrived.clear()
            await self._arrived.wait()

    def take_nowait(self) -> Message | None:
        """Return the next message that is already here, or None."""
        if self._queue and isinstance(self._queue[0], Message):
            item = self._queue.popleft()
            assert isinstance(item, Message)  # noqa: S101 - narrows the type
            return item
        return None

    def _put(self, item: Message | Awaitable[None]) -> None:
        self._queue.append(item)
        self._arrived.set()

    def _arm(self) -> None:
        loop = asyncio.get_running_loop()
        self._last_seen = loop.time()
        if self._watchdog is None:
            self._watchdog = loop.call_later(HEARTBEAT_S, self._check)

    def _check(self) -> None:
        """Begin again if the broker fell silent: no heartbeat for 2.5 intervals."""
        self._watchdog = None
        if self._is_closed:
            return
        loop = asyncio.get_running_loop()
        if loop.time() - self._last_seen > HEARTBEATS_MISSED_MAX * HEARTBEAT_S:
            self.restart()
            self._last_seen = loop.time()
        self._watchdog = loop.call_later(HEARTBEAT_S, self._check)

    def restart(self) -> None:
        """Begin again after a gap, silence or a reconnect; harmless if it happens twice."""
        if self._is_closed or (self._restart_task and not self._restart_task.done()):
            return
        self._restart_task = asyncio.create_task(self._restart())

    async def _restart(self) -> None:
        delay_s = 0.05
        while not self._is_closed:
            try:
                await self._begin()
            except VigilError as error:
                log.info("retrying", action="bus.restart", error=str(error), role=self._bus.role)
                await asyncio.sleep(delay_s)
                delay_s = min(delay_s * 2, 1.0)
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
        for item in self._queue:
            if not isinstance(item, Message) and asyncio.iscoroutine(item):
                item.close()
        self._queue.clear()


class Follower(_Deliveries):
    """An ordered consumer: ephemeral, in memory, no acks; an async iterator of messages."""

    def __init__(self, bus: Bus, stream: str, filters: Sequence[str], start: int) -> None:
        super().__init__(bus)
        self._stream = stream
        self._filters = list(filters)
        self._next_seq = start
        self._consumer = ""
        self._generation = 0
        self._expected = 1
        self._subscription: Any = None
        self.waiting = 0
        """How many messages were stored when it was opened."""

    async def open(self) -> None:
        try:
            self._inbox += ".p"
            self._subscription = await self._bus.subscribe_inbox(self._inbox)
            await self._begin()
        except BaseException:
            await self.close()
            raise
        self._bus.on_restart(self._token, self.restart)

    async def _begin(self) -> None:
        stale = self._consumer
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
            "idle_heartbeat": int(HEARTBEAT_S * SECOND_NS),
            "inactive_threshold": 30 * SECOND_NS,
            "mem_storage": True,
            "num_replicas": 1,
        }
        if self._next_seq == 0:
            config["deliver_policy"] = "last_per_subject"
            del config["opt_start_seq"]
        where = f"CONSUMER.CREATE.{self._stream}.{name}"
        if len(self._filters) == 1:
            config["filter_subject"] = self._filters[0]
            where += f".{self._filters[0]}"
        else:
            config["filter_subjects"] = self._filters
        self._bus.route(name, self._deliver)
        if stale:
            self._bus.route(stale, None)
            with contextlib.suppress(VigilError):
                await self._bus.send(f"$JS.API.CONSUMER.DELETE.{self._stream}.{stale}", b"")
        info = await self._bus.api(
            where, {"stream_name": self._stream, "config": config, "action": "create"}
        )
        self.waiting = info["num_pending"] + info["delivered"]["consumer_seq"]
        self._arm()

    def _handle(self, msg: Msg) -> None:
        self._last_seen = asyncio.get_running_loop().time()
        headers = msg.headers
        if headers and headers.get("Status") == "100":
            if msg.reply:  # flow control: answered once what came before it was taken
                self._put(self._bus.send(msg.reply, b""))
            elif stalled := headers.get("Nats-Consumer-Stalled"):
                self._put(self._bus.send(stalled, b""))
            elif int(headers.get("Nats-Last-Consumer", "0")) >= self._expected:
                self.restart()

    def _deliver(self, message: Message, consumer_seq: int, consumer: str) -> None:
        self._last_seen = asyncio.get_running_loop().time()
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
        self._bus.route(consumer, None)
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
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{consumer.stream}.{consumer.name}"
        self._consumer = consumer.name
        self._asked = 0
        """Messages asked for and not yet delivered."""
        self._request = json.dumps(
            {
                "batch": PULL_BATCH,
                "expires": int(PULL_EXPIRES_S * SECOND_NS),
                "idle_heartbeat": int(HEARTBEAT_S * SECOND_NS),
            }
        ).encode()
        self._is_asking = False

    async def open(self) -> None:
        self._bus.route(self._consumer, self._deliver)
        await self._begin()
        self._bus.on_restart(self._token, self.restart)

    async def close(self) -> None:
        self._bus.route(self._consumer, None)
        await super().close()

    async def _begin(self) -> None:
        self._asked = 0
        await self._ask()
        self._arm()

    async def _ask(self) -> None:
        self._asked += PULL_BATCH
        await self._bus.send(self._subject, self._request, self._inbox)

    def _handle(self, msg: Msg) -> None:
        self._last_seen = asyncio.get_running_loop().time()
        headers = msg.headers
        if headers and (status := headers.get("Status")):
            if status == "100":
                return
            # 404, 408: this request is over; 409: the consumer or its leader moved.
            self._asked = 0
            if status == "409":
                log.info("asking again", action="bus.pull", reason=headers.get("Description", ""))
            self.restart()

    def _deliver(self, message: Message, consumer_seq: int, consumer: str) -> None:
        self._last_seen = asyncio.get_running_loop().time()
        self._asked -= 1
        self._put(message)

    async def __anext__(self) -> Message:
        """Return the next message, asking for more before they run out."""
        if self._asked < PULL_BATCH // 2 and len(self._queue) < PULL_BATCH:
            await self._ask()
        return await super().__anext__()
