"""The bus: publish with expectations, read (:mod:`.reads`), follow, pull, ask. Nothing else.

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
import heapq
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import nats.errors
import structlog
from nats.aio.msg import Msg

from ..errors import OutcomeUnknown, Unavailable, VigilError, WrongLastSequence
from ..layout import is_of_session
from ..texts.trouble import reason_of
from ..topology import ADMIN, SECOND_NS, SERVICES, Consumer, inbox_prefix
from .connection import AnothersCredential, Connection
from .consumers import Follower, Puller
from .message import Message, from_delivery
from .reads import Reads
from .replies import (
    ERR_UNDER_WAY,
    ERR_WRONG_LAST_SEQ,
    Ack,
    BusError,
    decode_reply,
    refusal,
)
from .requests import Asker
from .wire import headers_of, is_unheard

__all__ = [
    "ERR_WRONG_LAST_SEQ",
    "Ack",
    "Bus",
    "BusError",
    "Follower",
    "Message",
    "Puller",
]

log = structlog.get_logger("vigil.bus")

MSG_ID: Final = "Nats-Msg-Id"
EXPECT_SEQ: Final = "Nats-Expected-Last-Subject-Sequence"
EXPECT_SUBJECT: Final = "Nats-Expected-Last-Subject-Sequence-Subject"
UNDER_WAY_WAIT_S: Final = 0.005
SWEEP_S: Final = 0.5
"""How often it's looked at most whether requests have had their time."""
EARLY_S: Final = 0.002
"""How much too early a timer may fire: libuv counts whole milliseconds."""
LISTEN_TIMEOUT_S: Final = 10.0
FLUSH_S_MIN: Final = 2
"""How long a broker that took the connection has to answer, at least."""
_ACK: Final = "$JS.ACK."
"""What the reply subject of a delivery begins with."""
VIOLATIONS_MAX: Final = 1000
UNCONFIRMED_S: Final = 10.0
"""How long a write that nobody confirmed counts against the broker."""


def _root(subject: str) -> str:
    """Return what tells streams apart: ``session``, ``$KV.CONFIG``."""
    parts = subject.split(".", 2)
    return ".".join(parts[:2]) if parts[0] == "$KV" else parts[0]


class Bus(Reads):
    """One connection of one service."""

    def __init__(self, connection: Connection, role: str) -> None:
        self._nc = connection
        self.role = role
        self._inbox = f"{inbox_prefix(role)}.{connection._nuid.next().decode()}"
        self._asker = Asker(connection, role)
        self._next = 0
        self._layout = None
        self._futures: dict[str, asyncio.Future[bytes | None]] = {}
        self._deadlines: list[tuple[float, str]] = []
        self._handlers: dict[str, Callable[[str, dict[str, str]], None]] = {}
        self._consumers: dict[tuple[str, str], Callable[[Message, int], None]] = {}
        self._restarts: dict[str, Callable[[], None]] = {}
        self._silent: dict[str, float] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        """None: nothing is waited for, and nothing wakes."""
        self._loop = asyncio.get_running_loop()
        self.violations: list[str] = []
        """Permission errors the broker reported; any is a fault of the deployment."""
        self.reconnects = 0
        self._is_loss_told = False
        self.unknown_outcomes = 0
        """Requests that nobody answered in time, or whose connection was lost meanwhile."""

    @classmethod
    async def connect(cls, url: str, *, role: str, seed: bytes | None, wait_s: float = 10.0) -> Bus:
        """Connect with the nkey seed of `role`; once connected, keep reconnecting for good.

        Args:
            url: of the broker; of a cluster, several with commas between them: any one will do.

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

        options: dict[str, Any] = {"reconnect_time_wait": 0.1}
        options |= {} if seed is None else {"nkeys_seed_str": seed.decode()}
        connection = Connection()
        try:
            connecting = connection.connect(
                [one.strip() for one in url.split(",") if one.strip()],
                name=f"vigil-{role}",
                inbox_prefix=inbox_prefix(role).encode(),
                max_reconnect_attempts=-1,
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
            give_up_at = asyncio.get_running_loop().time() + wait_s
            async with asyncio.timeout_at(give_up_at):
                await connecting
        except (TimeoutError, OSError, nats.errors.Error) as error:
            raise connection.unavailable(error, f"no broker at {url} for {role}") from error
        bus = cls(connection, role)
        holder.append(bus)
        try:
            await bus.subscribe_inbox(f"{bus._inbox}.>")
            left_s = math.ceil(give_up_at - asyncio.get_running_loop().time())
            await connection.flush(timeout=max(left_s, FLUSH_S_MIN))
            await bus._begin()
        except (asyncio.CancelledError, TimeoutError, OSError, nats.errors.Error) as error:
            await connection.close()  # or it would reconnect for good
            if isinstance(error, asyncio.CancelledError):
                raise
            raise connection.unavailable(error, f"no answer from {url} for {role}") from error
        return bus

    async def _begin(self) -> None:
        if any("_inbox" in one.lower() for one in self.violations):
            raise AnothersCredential  # nobody's answer would be heard
        if self.role in (*SERVICES, ADMIN):
            with contextlib.suppress(VigilError):  # then whoever needs it asks again
                await self.layout()

    @property
    def broker_ports(self) -> frozenset[int]:
        """The ports of every broker that this connection knows."""
        return frozenset(url.port for url in self._nc.servers if url.port is not None)

    @property
    def is_connected(self) -> bool:
        return bool(self._nc.is_connected)

    @property
    def is_cluster(self) -> bool:
        """Whether the broker is a node of a cluster: leaders of streams may be elsewhere."""
        return bool(self._nc._server_info.get("cluster"))

    @property
    def version(self) -> str:
        """The broker's."""
        return str(self._nc._server_info.get("version", ""))

    @property
    def unconfirmed(self) -> list[str]:
        """First parts of the subjects where the last write met silence, a few seconds ago.

        A stream that met a full disk doesn't refuse: it doesn't answer, and all others do. After
        some seconds it counts as well again, or nobody would ever try.
        """
        since = self._loop.time() - UNCONFIRMED_S
        return sorted(root for root, at in self._silent.items() if at > since)

    @property
    def followers(self) -> int:
        """How many followers and pullers are open."""
        return len(self._restarts)

    @property
    def is_closed(self) -> bool:
        return bool(self._nc.is_closed)

    async def close(self) -> None:
        """Flush what was published, then disconnect."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        with contextlib.suppress(nats.errors.Error, asyncio.TimeoutError, OSError):
            if self._nc.is_connected:
                await self._nc.flush(timeout=2)
        await self._end_reconnecting()
        try:
            await self._nc.close()
        except (nats.errors.Error, TimeoutError, OSError):
            pass
        except asyncio.CancelledError:
            # Reconnecting was ended while it waited for the old socket's end, which was cancelled
            # with it: whoever waits for that end again gets the cancellation, which is not theirs.
            if (current := asyncio.current_task()) is not None and current.cancelling():
                raise
        self._fail_futures(Unavailable("the connection was closed"))

    async def _end_reconnecting(self) -> None:
        """End nats-py's reconnecting, or it may go on for good after the close.

        `close` cancels it once, and it has awaits that drop a cancellation: then it connects
        again, and looks for a broker that is gone for as long as the process lives.
        """
        task = self._nc._reconnection_task
        while task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=0.1)

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
        if is_of_session(subject):
            layout = self._layout or await self.layout()
            subject = layout.stored(subject)
            expect_subject = layout.stored(expect_subject) if expect_subject else None
        if expect is not None:
            headers[EXPECT_SEQ] = str(expect)
            if expect_subject is not None:
                headers[EXPECT_SUBJECT] = expect_subject
        if msg_id is not None:
            headers[MSG_ID] = msg_id
        deadline = self._loop.time() + timeout
        while True:
            left_s = max(deadline - self._loop.time(), UNDER_WAY_WAIT_S)
            try:
                answer = await self._request(subject, data, headers or None, left_s)
            except OutcomeUnknown:
                if self.is_connected:
                    self._silent[_root(subject)] = self._loop.time()
                raise
            if self._silent:
                self._silent.pop(_root(subject), None)
            reply = decode_reply(answer)
            if reply.error is None:
                return Ack(reply.seq, reply.duplicate)
            if reply.error.err_code not in ERR_UNDER_WAY or self._loop.time() > deadline:
                raise refusal(subject, reply.error)
            # Ours was refused. The other one may still fail, so it has not come first yet.
            await asyncio.sleep(UNDER_WAY_WAIT_S)

    async def append(
        self,
        subject: str,
        data: bytes,
        headers: dict[str, str] | None = None,
        *,
        among: str,
        msg_id: str,
        timeout: float = 5.0,
    ) -> Ack:
        """Store a message whatever came before, for all who expect something of `among` to see.

        In a cluster, an expectation on a wildcard overlooks what is under way to the subjects
        that it matches: a claim was stored behind a message of the person in 247 of 400 races
        (measured). Only writes that expect something of the very same wildcard wait for each
        other, so this one does, and learns from each refusal what to expect (ADR 15).

        Raises:
            OutcomeUnknown: no answer; it may be stored, and may be repeated with its `msg_id`.
            Unavailable: others came first until `timeout` had passed.
            BusError: refused for another reason.
        """
        if not self.is_cluster:
            return await self.publish(subject, data, headers, msg_id=msg_id, timeout=timeout)
        deadline = self._loop.time() + timeout
        last = 0
        while (left_s := deadline - self._loop.time()) > 0:
            try:
                return await self.publish(
                    subject, data, headers,
                    expect=last, expect_subject=among, msg_id=msg_id, timeout=left_s,
                )  # fmt: skip
            except WrongLastSequence as error:
                last = error.last
        raise Unavailable(f"{subject}: others came first for {timeout:g} s")

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

    async def follow(
        self, stream: str, filters: Sequence[str], start: int, at_most: int = 0
    ) -> Follower:
        """Follow `filters` from sequence `start` on, in order, without gaps or repeats.

        `start` 0 begins with the last message of each subject (for a bucket). With `at_most` no
        more than so many come.
        """
        follower = Follower(self, stream, filters, start, at_most)
        await follower.open()
        return follower

    async def pull(self, consumer: Consumer) -> Puller:
        """Pull from a durable consumer that the replicas of a service share."""
        puller = Puller(self, consumer)
        await puller.open()
        return puller

    # ------------------------------------------------------------ questions

    async def ask(
        self, subject: str, data: bytes, *, timeout: float, headers: dict[str, str] | None = None
    ) -> Msg:
        """Ask whoever listens to `subject`; return the first answer. See :class:`Asker`."""
        return await self._asker.ask(subject, data, timeout=timeout, headers=headers)

    async def ask_all(
        self, subject: str, data: bytes, *, count: int, timeout: float
    ) -> list[bytes]:
        """Ask every listener of `subject`: return once `count` answered or `timeout` passed."""
        return await self._asker.ask_all(subject, data, count=count, timeout=timeout)

    async def listen(
        self, subject: str, handle: Callable[[Msg], Awaitable[None]], *, queue: str = ""
    ) -> Any:
        """Subscribe to a plain NATS subject; returns the subscription (`unsubscribe()`).

        Of those who listen with the same `queue`, each message goes to one.

        What a consumer delivers there is dropped: whoever may follow a stream could have its
        messages pushed into any subject that somebody listens to (docs/adr/0014).

        Raises:
            Unavailable: the connection is closed, or the broker doesn't answer.
        """

        async def on_message(msg: Msg) -> None:
            if not msg.reply.startswith(_ACK):
                await handle(msg)

        try:
            subscription = await self._nc.subscribe(subject, queue=queue, cb=on_message)
        except nats.errors.Error as error:
            raise Unavailable(f"{subject}: {error!r}") from error
        async with contextlib.AsyncExitStack() as undo:
            undo.push_async_callback(self._nc.end, subscription, 0)
            try:
                async with asyncio.timeout(LISTEN_TIMEOUT_S):
                    await self._nc.flush()
            except (nats.errors.Error, TimeoutError) as error:
                raise Unavailable(f"{subject}: {error!r}") from error
            undo.pop_all()
        return subscription

    @property
    def connection(self) -> Connection:
        """The nats-py connection, for its micro-service API."""
        return self._nc

    # ------------------------------------------------------------ inside

    def register(self, handle: Callable[[str, dict[str, str]], None]) -> tuple[str, str]:
        """Reserve an inbox for deliveries: (token to unregister, subject).

        `handle` gets what is none there: where an answer goes, and the headers.
        """
        self._next += 1
        token = f"d{self._next}"
        self._handlers[token] = handle
        return token, f"{self._inbox}.{token}"

    def unregister(self, token: str) -> None:
        self._handlers.pop(token, None)

    def push_inbox(self, token: str) -> str:
        """Return an inbox outside of the wildcard, or every delivery would come twice."""
        return f"{self._inbox}p.{token}"

    async def subscribe_inbox(self, inbox: str) -> Any:
        """Subscribe to an inbox; a consumer that pushes needs a literal one of its own."""
        return await self._nc.hear(inbox, self._dispatch)

    def route(
        self, consumer: tuple[str, str], deliver: Callable[[Message, int], None] | None
    ) -> None:
        """Hand deliveries of `consumer`, a stream and a name, to `deliver`; None stops that."""
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
    ) -> bytes:
        self._next += 1
        token = f"r{self._next}"
        future: asyncio.Future[bytes | None] = self._loop.create_future()
        self._futures[token] = future
        while self._deadlines and self._deadlines[0][1] not in self._futures:
            heapq.heappop(self._deadlines)  # it was answered
        deadline = self._loop.time() + timeout
        heapq.heappush(self._deadlines, (deadline, token))
        if self._sweeper is None or deadline < self._sweeper.when():
            self._sweep_later()
        try:
            await self._nc.publish(subject, data, f"{self._inbox}.{token}", headers)
            answer = await future
        except nats.errors.MaxPayloadError as error:
            raise BusError(413, f"{subject}: {len(data)} bytes are too many") from error
        except nats.errors.Error as error:
            raise Unavailable(f"{subject}: {error!r}") from error
        finally:
            self._futures.pop(token, None)
        if answer is None:
            raise Unavailable(f"{subject}: nobody listens (no stream, or no leader)")
        return answer

    def _dispatch(self, subject: str, reply: str, data: bytes, headers: bytes) -> None:
        if reply.startswith(_ACK):
            # A delivery keeps the subject it was stored under; its consumer is in the reply.
            message, number, consumer = from_delivery(subject, reply, data, headers)
            deliver = self._consumers.get(consumer)
            if deliver is not None:
                deliver(message, number)
            return
        token = subject.split(".")[2]
        if token[0] == "r":
            future = self._futures.get(token)
            if future is not None and not future.done():
                future.set_result(None if is_unheard(headers) else data)
            return
        handler = self._handlers.get(token)
        if handler is not None:
            handler(reply, headers_of(headers))

    def _sweep(self) -> None:
        """Give up on requests that nobody answered; one timer for all of them, while there are."""
        now = self._loop.time() + EARLY_S
        while self._deadlines:
            deadline, token = self._deadlines[0]
            future = self._futures.get(token)
            is_over = future is None or future.done()
            if not is_over and deadline > now:
                break
            heapq.heappop(self._deadlines)
            if future is not None and not is_over:
                self.unknown_outcomes += 1
                future.set_exception(OutcomeUnknown("the broker did not answer in time"))
        self._sweeper = None
        if self._deadlines:
            self._sweep_later()

    def _sweep_later(self) -> None:
        """Sweep when the first request is to be given up, but not at once again."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        at_s = max(self._deadlines[0][0], self._loop.time() + SWEEP_S)
        self._sweeper = self._loop.call_at(at_s, self._sweep)

    def _fail_futures(self, error: VigilError) -> None:
        for future in list(self._futures.values()):
            if not future.done():
                self.unknown_outcomes += isinstance(error, OutcomeUnknown)
                future.set_exception(error)

    def _on_disconnect(self) -> None:
        # What was in flight may or may not have arrived: waiting longer tells nothing.
        self._fail_futures(OutcomeUnknown("the connection to the broker was lost"))

    def _on_reconnect(self) -> None:
        self.reconnects += 1
        self._is_loss_told = False
        self._silent.clear()  # a broker that was restarted begins anew
        log.info("reconnected", action="bus.reconnected", role=self.role)
        for restart in list(self._restarts.values()):
            restart()

    def _on_error(self, error: Exception) -> None:
        text = reason_of(error)
        if "permissions violation" in text.lower():
            del self.violations[VIOLATIONS_MAX:]
            self.violations.append(text)
        elif not self.is_connected:
            # Each try to connect again says so, ten times a second.
            if self._is_loss_told:
                return
            self._is_loss_told = True
        log.warning("bus error", action="bus.error", role=self.role, error=text)
